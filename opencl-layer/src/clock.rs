//! One clock for the times of several drivers.
//!
//! Each driver counts nanoseconds from a moment of its own. A marker that has just ended
//! tells how far that is from the host's monotonic clock.

use opencl_sys::CL_PROFILING_COMMAND_END;

use crate::own_queue::Lane;

/// The host's monotonic clock, in nanoseconds.
fn now() -> i64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the time is written during the call.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// What to add to the times of a queue. The least of several measurements is taken: what
/// is above the truth is the time until the host noticed the marker's end.
pub fn offset(lane: &Lane) -> i64 {
    let measure = |_| {
        let native = lane.marker().ok()?;
        native.wait().ok()?;
        let noticed = now();
        let end = native.device_time(CL_PROFILING_COMMAND_END).ok()?;
        (end > 0).then(|| noticed - end.cast_signed())
    };
    (0..3).filter_map(measure).min().unwrap_or(0)
}
