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
    let native = |timing: &Timing| Arc::clone(&timing.native);
    note_ended(timings, native, |timing, seconds| {
        let place = &queue.context.places[timing.place];
        timing.record.took(&place.profile, seconds);
    });
}

/// Notes the seconds of what has ended, and forgets it. What failed tells nothing.
pub fn note_ended<T>(
    running: &mut Vec<T>,
    native: impl Fn(&T) -> Arc<Native>,
    note: impl Fn(&T, f64),
) {
    running.retain(|one| {
        let native = native(one);
        let status = native.execution_status();
        if let (Ok(0), Ok(seconds)) = (status, duration(&native)) {
            note(one, seconds);
        }
        status.is_ok_and(|status| status > 0)
    });
}

/// The seconds that a command took on its device.
fn duration(native: &Native) -> Fallible<f64> {
    let start = native.device_time(CL_PROFILING_COMMAND_START)?;
    let end = native.device_time(CL_PROFILING_COMMAND_END)?;
    Ok(end.saturating_sub(start) as f64 * 1e-9)
}
