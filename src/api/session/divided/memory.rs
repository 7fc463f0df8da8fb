//! Leaves out devices whose memory is too small for a workload's smallest part, if
//! other devices have enough.

use super::{Divided, Work};
use crate::engine::corun::grid::{Beside, GridDivision};
use crate::engine::corun::memory::memory_limit;
use crate::engine::corun::{Stream, kernel, product};
use crate::machine::Device;
use crate::quantity::Bytes;
use crate::workload::{Divisible as _, Grid as _};

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

/// The most steps between two barriers for whose halos each device has memory, or about so many.
pub fn longest_superstep(divided: &Divided, devices: &[Device]) -> u32 {
    let Work::Stencil(grid) = &divided.work else {
        return 1;
    };
    let (units, bytes) = (grid.units(), grid.unit_bytes());
    let fits = |steps: &u32| {
        let beside = Beside {
            step: grid.halo(),
            superstep: grid.halo() * u64::from(*steps),
            all: units,
        };
        let mut own = devices.iter().filter(|device| !device.shares_host_memory);
        own.all(|device| {
            // Some is for the changes of a run that ends with a tolerance.
            let limit = memory_limit(device.memory, divided.gpu_memory) / 16 * 15;
            let (largest, stream) = (device.max_allocation, Stream::default());
            GridDivision::with_halo(&beside, units, bytes, limit, largest, stream).is_ok()
        })
    };
    let halves = std::iter::successors(Some(divided.supersteps.period()), |steps| Some(steps / 2));
    halves
        .take_while(|steps| *steps > 1)
        .find(fits)
        .unwrap_or(1)
}
