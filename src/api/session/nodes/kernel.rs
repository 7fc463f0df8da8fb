//! A user's kernel over nodes.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::NodesWork;
use crate::engine::cluster::DEPTH;
use crate::engine::corun::kernel::{SliceTrials, examine, undivided};
use crate::machine::{Device, likely_fastest};
use crate::quantity::Bytes;
use crate::session::{DeviceOptions, Error, OpenDevices};
use crate::workload::Divisible as _;
use crate::workload::cluster::KernelWorkload;
use crate::workload::kernel::UserKernel;

/// A kernel that is asked for: the name of its file, its steps, and the seed of its data.
pub struct AskedKernel {
    pub user: UserKernel,
    pub file: String,
    pub steps: u32,
    pub seed: u64,
}

/// A kernel over nodes.
pub struct KernelOverNodes {
    pub work: NodesWork,
    /// Of the written buffers: position and space.
    pub written: Vec<(usize, usize)>,
}

impl NodesWork {
    /// A kernel over so many nodes, which is examined on the best of a list of devices. Every node does so; what it
    /// finds is among the sizes that all nodes must have alike. With `is_compared` this node
    /// computes what the result is compared with.
    ///
    /// # Errors
    /// A kernel that cannot be divided, or that does not fit in a device's memory.
    pub fn of_kernel(
        asked: AskedKernel,
        (list, nodes): (&str, usize),
        is_compared: bool,
        stop: &AtomicBool,
    ) -> Result<KernelOverNodes, Error> {
        let AskedKernel {
            user,
            file,
            steps,
            seed,
        } = asked;
        let mut devices = OpenDevices::open(DeviceOptions {
            list: Some(list.to_owned()),
            fp64: user.fp64(),
            ..DeviceOptions::default()
        })?;
        devices.begin(None)?;
        let runtime = devices.runtime();
        for device in runtime.devices() {
            fits(&user, device)?;
        }
        let best = likely_fastest(runtime.devices(), |_| true).unwrap_or(0);
        let examined = examine(runtime, best, user, SliceTrials::Always, stop)?;
        let (user, notes) = (examined.user, examined.notes);
        if let Some(why) = examined.refusal {
            return Err(Error::NotDivided(format!(
                "{file}: the kernel cannot be divided: {why}; on one machine, without mpirun, it \
                 runs on one device"
            )));
        }
        let workload = KernelWorkload::new(user.clone(), steps.into(), nodes);
        let mut workload = workload.map_err(|error| {
            let notes: String = notes.iter().map(|note| format!("; {note}")).collect();
            Error::NotDivided(format!(
                "{file}: {error}{notes}; give \"break\": 1 to a buffer that is divided as the \
                 work is, take a smaller size, or run it on one machine, without mpirun"
            ))
        })?;
        if is_compared {
            let right = undivided(runtime, best, &user, steps, stop)?;
            workload = workload.with_reference(right);
        }
        let kernel = user.kernel();
        let written = workload.written();
        let arguments: Vec<usize> = written.iter().map(|(at, _)| *at).collect();
        let size = format!(
            "{} of {file}, {:?} work-items, {steps} steps, divided along dimension {} into {} \
             parts of arguments {arguments:?}, seed {seed}",
            kernel.name,
            kernel.global,
            user.axis().dimension,
            workload.runs(),
        );
        let work = Self {
            notes,
            ..Self::of(Arc::new(workload), size)
        };
        Ok(KernelOverNodes { work, written })
    }
}

/// Checks that a device has memory for a kernel's buffers. Subtasks on one device share what they
/// only read, and each has its own of what it writes.
fn fits(user: &UserKernel, device: &Device) -> Result<(), Error> {
    if device.shares_host_memory {
        return Ok(());
    }
    let buffers = user.buffers().map(|(_, buffer)| {
        let copies = if buffer.direction.writes() { DEPTH } else { 1 };
        buffer.bytes().saturating_mul(copies.into())
    });
    let needed = buffers.fold(0, u64::saturating_add);
    match needed <= device.memory {
        true => Ok(()),
        false => Err(Error::NotDivided(format!(
            "{}: the kernel's buffers need {} of its memory, each that is written {DEPTH} times, \
             and it has {}; name devices without it, or take a smaller size",
            device.name,
            Bytes(needed),
            Bytes(device.memory)
        ))),
    }
}
