//! The functions of events.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use libc::c_void;
use opencl_sys::*;

use super::{Asked, Callback, Event, OPEN, State, call_back, forward};
use crate::answer::{Answer, Answers};
use crate::boundary::{object, status};
use crate::handle::{self, Ref};
use crate::host_view;
use crate::lock::{Condvar, Mutex};
use crate::schedule;
use crate::status::Fallible;

/// `clWaitForEvents`.
pub unsafe extern "C" fn wait_for_events(count: cl_uint, events: *const cl_event) -> cl_int {
    status(|| {
        if count == 0 || events.is_null() {
            return Err(CL_INVALID_VALUE);
        }
        // SAFETY: OpenCL's promise about the list.
        let events = unsafe { handle::list::<Event>(count, events)? };
        if events
            .iter()
            .any(|event| event.context != events[0].context)
        {
            return Err(CL_INVALID_CONTEXT);
        }
        for event in &events {
            if let Some(queue) = &event.queue {
                schedule::flush(queue)?;
            }
        }
        let mut failed = false;
        for event in &events {
            failed |= schedule::wait(event)? < 0;
            if let Some(queue) = &event.queue {
                schedule::synchronised(queue);
            }
        }
        // One queue of the context is enough: what all have written is shown.
        if let Some(queue) = events.iter().find_map(|event| event.queue.as_ref()) {
            host_view::show(queue)?;
        }
        if failed {
            return Err(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
        }
        Ok(())
    })
}

/// `clGetEventInfo`.
impl Answers for Event {
    fn answer(event: &Ref<Self>, what: cl_uint, answer: Answer) -> Fallible<()> {
        match what {
            CL_EVENT_COMMAND_QUEUE => answer.handle(event.queue.as_ref()),
            CL_EVENT_CONTEXT => answer.value(event.context.handle()),
            CL_EVENT_COMMAND_TYPE => answer.value(event.command),
            CL_EVENT_COMMAND_EXECUTION_STATUS => {
                if let Some(queue) = event.queue.as_ref().filter(|_| event.is_recorded()) {
                    schedule::advance(queue);
                }
                answer.value(event.execution_status()?)
            }
            CL_EVENT_REFERENCE_COUNT => answer.value(event.users()),
            _ => Err(CL_INVALID_VALUE),
        }
    }
}

/// Questions about the times of events.
pub struct Profiling;

/// `clGetEventProfilingInfo`.
impl Answers<Profiling> for Event {
    fn answer(event: &Ref<Self>, what: cl_uint, answer: Answer) -> Fallible<()> {
        let profiles = event.queue.as_ref().is_some_and(|queue| queue.profiles());
        let native = match &*event.state() {
            State::Issued(native) if profiles => Arc::clone(native),
            _ => return Err(CL_PROFILING_INFO_NOT_AVAILABLE),
        };
        answer.value(native.time(what)?)
    }
}

/// `clCreateUserEvent`.
pub unsafe extern "C" fn create_user_event(context: cl_context, code: *mut cl_int) -> cl_event {
    let make = || {
        let event = Ref::new(Event {
            context: Ref::of(context)?,
            queue: None,
            command: CL_COMMAND_USER,
            state: Mutex::new(State::Open(Vec::new(), Vec::new())),
            changed: Condvar::new(),
        });
        OPEN.fetch_add(1, Ordering::AcqRel);
        Ok(event.give())
    };
    // SAFETY: OpenCL's promise about the code.
    unsafe { object(code, make) }
}

/// `clSetUserEventStatus`.
pub unsafe extern "C" fn set_user_event_status(handle: cl_event, code: cl_int) -> cl_int {
    status(|| {
        let event = Ref::<Event>::of(handle)?;
        if event.queue.is_some() {
            return Err(CL_INVALID_EVENT);
        }
        if code > CL_COMPLETE {
            return Err(CL_INVALID_VALUE);
        }
        match Event::end(&event, code) {
            true => Ok(()),
            false => Err(CL_INVALID_OPERATION),
        }
    })
}

/// `clSetEventCallback`.
pub unsafe extern "C" fn set_event_callback(
    handle: cl_event,
    when: cl_int,
    function: Option<Callback>,
    data: *mut c_void,
) -> cl_int {
    status(|| {
        let event = Ref::<Event>::of(handle)?;
        let function = function.ok_or(CL_INVALID_VALUE)?;
        if ![CL_SUBMITTED, CL_RUNNING, CL_COMPLETE].contains(&when) {
            return Err(CL_INVALID_VALUE);
        }
        let asked = Asked {
            when,
            function,
            data: data as usize,
        };
        let mut state = event.state();
        match &mut *state {
            State::Recorded(all) => all.push(asked),
            State::Open(_, all) if when != CL_SUBMITTED => all.push(asked),
            State::Open(..) => {
                drop(state);
                call_back(event, asked, when);
            }
            State::Ended(code) => {
                let code = *code;
                drop(state);
                call_back(event.clone(), asked, code);
            }
            State::Issued(native) => {
                let native = Arc::clone(native);
                drop(state);
                forward(&event, &native, asked);
            }
        }
        Ok(())
    })
}
