//! Leaves out devices whose memory is too small for a workload's smallest part, if
//! other devices have enough.

use pdawl::engine::corun::{kernel, product};
use pdawl::machine::Device;
use pdawl::quantity::Bytes;

use crate::size::ByteSize;
use crate::workload::PreparedWorkload;

/// The devices that have the memory.
pub struct WithMemory {
    /// Their names as a list, if they are fewer than before.
    pub list: Option<String>,
    /// Why the others are left out.
    pub notes: Vec<String>,
}

/// Selects the devices that have memory for a part of the workload. At most `limit`
/// of each device's memory counts. If no device has enough, all devices stay and the
/// run fails with an explanation.
pub fn with_memory(
    workload: &PreparedWorkload,
    devices: &[Device],
    limit: Option<ByteSize>,
) -> WithMemory {
    let limit = limit.map(|size| size.0);
    let lacks = |device: &Device| match workload {
        PreparedWorkload::Stencil(..) => None,
        PreparedWorkload::Spmv(_, spmv) => product::lacking(spmv, device, limit),
        PreparedWorkload::Kernel(kernel) => kernel::lacking(&kernel.user, device, limit),
    };
    let what = match workload {
        PreparedWorkload::Kernel(_) => "the kernel's buffers",
        PreparedWorkload::Stencil(..) | PreparedWorkload::Spmv(..) => {
            "the vectors and the smallest part of the matrix"
        }
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
    if names.is_empty() {
        notes.clear();
    }
    WithMemory {
        list: (!notes.is_empty()).then(|| names.join(",")),
        notes,
    }
}
