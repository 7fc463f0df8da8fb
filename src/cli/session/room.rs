//! Devices that have no room for a workload's smallest part: left out, with a
//! note, where others are left.

use pdawl::engine::corun::{kernel, lacking};
use pdawl::machine::Device;
use pdawl::quantity::Bytes;

use crate::cli::size::ByteSize;
use crate::cli::task::Task;

/// The devices to go on with.
pub struct Roomy {
    /// Their names as a list, if they are fewer than before.
    pub list: Option<String>,
    /// Why the others are left out.
    pub notes: Vec<String>,
}

/// Who of `devices` has room for a part of the task, `limit` bytes at most of
/// each device's memory. If nobody has, all stay, and the run says why.
pub fn roomy(task: &Task, devices: &[Device], limit: Option<ByteSize>) -> Roomy {
    let mut roomy = Roomy {
        list: None,
        notes: Vec::new(),
    };
    let limit = limit.map(|size| size.0);
    let lacks = |device: &Device| match task {
        Task::Stencil(..) => None,
        Task::Spmv(_, spmv) => lacking(spmv, device, limit),
        Task::Kernel(kernel) => kernel::lacking(&kernel.user, device, limit),
    };
    let mut names = Vec::new();
    for device in devices {
        match lacks(device) {
            None => names.push(device.name.as_str()),
            Some((limit, needed)) => roomy.notes.push(format!(
                "{} is left out: {} need {} of its memory, and {} may be used",
                device.name,
                what(task),
                Bytes(needed),
                Bytes(limit)
            )),
        }
    }
    if names.is_empty() {
        roomy.notes.clear();
    } else if !roomy.notes.is_empty() {
        roomy.list = Some(names.join(","));
    }
    roomy
}

/// What has to fit.
fn what(task: &Task) -> &'static str {
    match task {
        Task::Kernel(_) => "the kernel's buffers",
        Task::Stencil(..) | Task::Spmv(..) => "the vectors and the smallest part of the matrix",
    }
}
