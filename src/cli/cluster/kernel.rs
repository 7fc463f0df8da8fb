//! A user's kernel over several nodes.

use std::sync::Arc;

use pdawl::engine::cluster::DEPTH;
use pdawl::engine::cluster::simulate::Computing;
use pdawl::engine::corun::kernel::SliceTrials;
use pdawl::machine::host::Host;
use pdawl::machine::{Device, likely_fastest};
use pdawl::quantity::Bytes;
use pdawl::runtime::select;
use pdawl::workload::Divisible;
use pdawl::workload::cluster::KernelWorkload;
use pdawl::workload::kernel::UserKernel;

use super::options::is_first;
use super::prepared::PreparedWorkload;
use crate::failure::{Failure, refused, wrong_devices};
use crate::grid::MemoryBudget;
use crate::size::ByteSize;
use crate::spec::kernel::KernelTask;

/// Blocks of spaces have no common height and width.
const NO_TILE: u64 = 1;

/// A kernel over nodes, and which of its spaces has the buffer at a position.
pub struct PreparedKernel {
    pub prepared: PreparedWorkload,
    /// Of the written buffers: position and space.
    pub written: Vec<(usize, usize)>,
}

/// Examines a kernel on this node's best device. Every node does so; what it
/// finds is among the sizes that all nodes must have alike. With `verify`, the first node
/// computes what the result is compared with.
///
/// # Errors
/// A kernel that cannot be divided, or that does not fit in memory.
pub fn prepare(task: KernelTask, verify: bool) -> Result<PreparedKernel, Failure> {
    examined(task, verify && is_first())
}

fn examined(mut task: KernelTask, is_compared: bool) -> Result<PreparedKernel, Failure> {
    let memory = ByteSize(Host::detect().memory.obtainable(0));
    // The memory of a node is what it has: --host-memory is for runs on one.
    task.fits(MemoryBudget { memory, grids: 0 })
        .map_err(|failure| match failure {
            Failure::Failed { what, .. } => Failure::failed(what, "a smaller size with -D"),
            other => other,
        })?;
    let selection = task.devices.parse().map_err(wrong_devices)?;
    let (mut runtime, _) = select::open(Some(&selection), task.user.fp64()).map_err(refused)?;
    for device in runtime.devices() {
        fits(&task.user, device)?;
    }
    let best = likely_fastest(runtime.devices(), |_| true).unwrap_or(0);
    if let Some(why) = task.examine_on(runtime.as_mut(), best, SliceTrials::Always)? {
        return Err(Failure::failed(
            format!("{}: the kernel cannot be divided: {why}", task.file()),
            "the run on one machine, without mpirun, where it runs on one device",
        ));
    }
    let workload = KernelWorkload::new(task.user.clone(), task.steps().into());
    let mut workload = workload.map_err(|error| not_divided(&task, &error.to_string()))?;
    if is_compared {
        workload = workload.with_reference(task.reference(runtime.as_mut(), best)?);
    }
    let kernel = task.user.kernel();
    let arguments: Vec<usize> = workload.written().into_iter().map(|(at, _)| at).collect();
    Ok(PreparedKernel {
        written: workload.written(),
        prepared: PreparedWorkload {
            computing: Computing::All,
            size: format!(
                "{} of {}, {:?} work-items, {} steps, divided along dimension {} into {} parts \
                 of arguments {arguments:?}, seed {}",
                kernel.name,
                task.file(),
                kernel.global,
                task.steps(),
                task.user.axis().dimension,
                workload.runs(),
                task.seed()
            ),
            tile: NO_TILE,
            workload: Arc::new(workload),
            tolerance: None,
            notes: task.notes,
            operation: None,
        },
    })
}

/// The failure of a kernel with a buffer that cannot be on several nodes.
fn not_divided(task: &KernelTask, why: &str) -> Failure {
    let notes = task.notes.iter().map(|note| format!("; {note}"));
    Failure::failed(
        format!("{}: {why}{}", task.file(), notes.collect::<String>()),
        "\"break\": 1 for a buffer that is divided as the work is, a smaller size, or the run \
         on one machine, without mpirun",
    )
}

/// Checks that a device has memory for a kernel's buffers. Subtasks on one device share
/// what they only read, and each has its own of what it writes.
fn fits(user: &UserKernel, device: &Device) -> Result<(), Failure> {
    if device.shares_host_memory {
        return Ok(());
    }
    let buffers = user.buffers().map(|(_, buffer)| {
        let copies = if buffer.direction.writes() { DEPTH } else { 1 };
        buffer.bytes().saturating_mul(copies.into())
    });
    let needed = buffers.fold(0, u64::saturating_add);
    if needed <= device.memory {
        return Ok(());
    }
    Err(Failure::failed(
        format!(
            "{}: the kernel's buffers need {} of its memory, each that is written \
             {DEPTH} times, and it has {}",
            device.name,
            Bytes(needed),
            Bytes(device.memory)
        ),
        "--devices without it, or a smaller size with -D",
    ))
}
