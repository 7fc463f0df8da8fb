//! Times of launches, as drivers tell them.

use std::ptr;
use std::sync::Arc;

use opencl_sys::{
    CL_PROFILING_COMMAND_END, CL_PROFILING_COMMAND_START, cl_profiling_info, cl_ulong,
};

use super::KernelRecord;
use crate::native::Native;
use crate::queue::Queue;
use crate::status::{Fallible, check, driver};

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
    let at = |what: cl_profiling_info| -> Fallible<cl_ulong> {
        let mut nanoseconds: cl_ulong = 0;
        let (size, value) = (
            size_of::<cl_ulong>(),
            ptr::from_mut(&mut nanoseconds).cast(),
        );
        check(driver!(
            native.table,
            clGetEventProfilingInfo(native.event, what, size, value, ptr::null_mut())
        ))?;
        Ok(nanoseconds)
    };
    let (start, end) = (
        at(CL_PROFILING_COMMAND_START)?,
        at(CL_PROFILING_COMMAND_END)?,
    );
    Ok(end.saturating_sub(start) as f64 * 1e-9)
}
