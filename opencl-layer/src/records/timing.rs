//! Times of launches, as drivers tell them.

use std::sync::Arc;

use opencl_sys::{CL_PROFILING_COMMAND_END, CL_PROFILING_COMMAND_START};

use super::KernelRecord;
use crate::native::Native;
use crate::queue::Queue;
use crate::status::Fallible;

/// A launch of a kernel at a place, whose time is to be noted.
pub struct Timing {
    pub record: Arc<KernelRecord>,
    pub place: usize,
    pub native: Arc<Native>,
}

/// Notes the times of launches that have ended, and forgets these launches.
pub fn note(queue: &Queue, timings: &mut Vec<Timing>) {
    timings.retain(|timing| match timing.native.execution_status() {
        Ok(status) if status > 0 => true,
        Ok(0) => {
            if let Ok(seconds) = duration(&timing.native) {
                let place = &queue.context.places[timing.place];
                timing.record.took(&place.profile, seconds);
            }
            false
        }
        _ => false,
    });
}

/// The seconds that a command took on its device.
pub fn duration(native: &Native) -> Fallible<f64> {
    let start = native.device_time(CL_PROFILING_COMMAND_START)?;
    let end = native.device_time(CL_PROFILING_COMMAND_END)?;
    Ok(end.saturating_sub(start) as f64 * 1e-9)
}
