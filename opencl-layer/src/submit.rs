//! Takes the commands of programs.

use std::sync::Arc;

use opencl_sys::{CL_OUT_OF_RESOURCES, cl_event};

use crate::command::Command;
use crate::event::Event;
use crate::handle::Ref;
use crate::host_view;
use crate::own_time;
use crate::queue::Queue;
use crate::schedule;
use crate::status::Fallible;

/// Gives a command to a driver, or records it while the scheduler does not know yet where
/// it should go.
///
/// # Safety
/// `event` is null or valid for a write.
pub unsafe fn submit(
    queue: &Ref<Queue>,
    command: Command,
    event: *mut cl_event,
    blocking: bool,
) -> Fallible<()> {
    let own = own_time::begin();
    for before in &command.waits {
        schedule::force_before(queue, before);
    }
    let (native, made, command, done) = {
        let _issuing = queue.context.issuing();
        let mut state = queue.state();
        schedule::advance_locked(queue, &mut state);
        if command.action.answers() {
            schedule::force_locked(queue, &mut state);
        }
        let done = schedule::take_done(&mut state);
        if schedule::must_record(queue, &mut state, &command) {
            let made = Event::recorded(queue, command.kind);
            schedule::record(&mut state, command, made.clone());
            (None, Some(made), None, done)
        } else {
            let with_event = blocking || !event.is_null();
            let native = schedule::place_and_issue(queue, &mut state, &command, with_event)?;
            let made = native.as_ref().filter(|_| !event.is_null()).map(|native| {
                let made = Event::recorded(queue, command.kind);
                Event::issued(&made, Arc::clone(native));
                made
            });
            (native, made, Some(command), done)
        }
    };
    // What commands kept alive may end now, which takes locks.
    drop((command, done));
    if let Some(made) = made.as_ref().filter(|_| !event.is_null()) {
        // SAFETY: promised by the caller.
        unsafe { *event = made.give() };
    }
    drop(own);
    if blocking {
        // A driver that waits for the event flushes only the queue of its own that has it.
        schedule::flush(queue)?;
        match (native, made) {
            (Some(native), _) => native.wait()?,
            (None, Some(made)) if schedule::wait(&made)? < 0 => {
                return Err(CL_OUT_OF_RESOURCES);
            }
            _ => {}
        }
        schedule::synchronised(queue);
        host_view::show(queue)?;
    }
    Ok(())
}
