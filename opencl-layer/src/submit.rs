//! Takes the commands of programs.

use std::sync::Arc;

use opencl_sys::*;

use crate::boundary::status;
use crate::command::{Command, Work};
use crate::event::Event;
use crate::handle::Ref;
use crate::host_view;
use crate::own_time;
use crate::queue::Queue;
use crate::schedule;
use crate::status::Fallible;

/// What a program says of every command, beside what it does.
pub struct Asked {
    pub kind: cl_command_type,
    /// The wait list.
    pub list: (cl_uint, *const cl_event),
    pub event: *mut cl_event,
    /// Whether the program waits for its end.
    pub blocking: bool,
}

impl Asked {
    /// A command for whose end the program does not wait.
    pub fn new(
        kind: cl_command_type,
        count: cl_uint,
        events: *const cl_event,
        event: *mut cl_event,
    ) -> Self {
        Self {
            kind,
            list: (count, events),
            event,
            blocking: false,
        }
    }

    pub fn blocking(self, blocking: cl_bool) -> Self {
        let blocking = blocking != CL_FALSE;
        Self { blocking, ..self }
    }
}

/// The body of a function that enqueues: takes a command that does some work of a queue.
///
/// # Safety
/// As OpenCL promises about the events.
pub unsafe fn enqueue(
    queue: cl_command_queue,
    asked: Asked,
    work: impl FnOnce(&Ref<Queue>) -> Fallible<Work>,
) -> cl_int {
    status(|| {
        let queue = Ref::<Queue>::of(queue)?;
        let work = work(&queue)?;
        // SAFETY: promised by the caller.
        unsafe { take(&queue, asked, work) }
    })
}

/// Takes a command.
///
/// # Safety
/// As OpenCL promises about the events.
pub unsafe fn take(queue: &Ref<Queue>, asked: Asked, work: Work) -> Fallible<()> {
    // SAFETY: promised by the caller.
    unsafe {
        let command = Command::new(queue, asked.kind, asked.list, work)?;
        submit(queue, command, asked.event, asked.blocking)
    }
}

/// Gives a command to a driver, or records it while the scheduler does not know yet where
/// it should go.
///
/// # Safety
/// `event` is null or valid for a write.
unsafe fn submit(
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
        if command.answers() {
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
