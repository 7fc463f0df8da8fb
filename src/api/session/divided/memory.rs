//! Leaves out devices whose memory is too small for a workload's smallest part, if
//! other devices have enough.

use super::{Divided, Work};
use crate::engine::corun::{kernel, product};
use crate::machine::Device;
use crate::quantity::Bytes;

/// The devices that have memory for a part of the workload, as a list if they are fewer, and why
/// the others are left out. If no device has enough, all devices stay and the run fails with an
/// explanation.
pub fn with_memory(divided: &Divided, devices: &[Device]) -> (Option<String>, Vec<String>) {
    let limit = divided.gpu_memory;
    let lacks = |device: &Device| match &divided.work {
        Work::Stencil(_) => None,
        Work::Product(spmv) => product::lacking(spmv, device, limit),
        Work::Kernel { user, .. } => kernel::lacking(user, device, limit),
    };
    let what = match divided.work {
        Work::Kernel { .. } => "the kernel's buffers",
        Work::Stencil(_) | Work::Product(_) => "the vectors and the smallest part of the matrix",
    };
    let (mut names, mut notes) = (Vec::new(), Vec::new());
    for device in devices {
        match lacks(device) {
            None => names.push(device.name.as_str()),
            Some((limit, needed)) => notes.push(format!(
                "{} is left out: {what} need {} of its memory, and {} may be used",
                device.name,
                Bytes(needed),
                Bytes(limit)
            )),
        }
    }
    match names.is_empty() || notes.is_empty() {
        true => (None, Vec::new()),
        false => (Some(names.join(",")), notes),
    }
}
