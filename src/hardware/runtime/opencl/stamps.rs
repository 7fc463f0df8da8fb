//! The time stamps of OpenCL events, in nanoseconds of the device's own clock. `None` where
//! the driver has none.

use std::sync::Arc;

use cl3::event::{
    CL_PROFILING_COMMAND_END, CL_PROFILING_COMMAND_START, CL_PROFILING_COMMAND_SUBMIT,
    get_event_profiling_info,
};

use super::handle::Event;
use crate::runtime::device_clock::Stamps;

/// The times of a complete command of a profiling queue.
pub(super) fn of(event: &Event) -> Option<Stamps> {
    from_until(event, event)
}

/// The times from the start of one command to the end of another, which may be the same.
pub(super) fn from_until(first: &Event, last: &Event) -> Option<Stamps> {
    Some(Stamps {
        submitted: stamp(first, CL_PROFILING_COMMAND_SUBMIT)?,
        started: stamp(first, CL_PROFILING_COMMAND_START)?,
        ended: stamp(last, CL_PROFILING_COMMAND_END)?,
    })
}

/// The start of one command and the end of another.
pub(super) fn between([first, last]: &[Arc<Event>; 2]) -> Option<(u64, u64)> {
    let started = stamp(first, CL_PROFILING_COMMAND_START)?;
    Some((started, stamp(last, CL_PROFILING_COMMAND_END)?))
}

/// One of a complete command's stamps.
fn stamp(event: &Event, name: u32) -> Option<u64> {
    let stamp = get_event_profiling_info(event.raw(), name);
    stamp.ok().map(u64::from)
}
