//! Events as programs see them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use libc::c_void;
use opencl_sys::*;

use crate::context::Context;
use crate::handle::{Ref, kind};
use crate::lock::{Condvar, EVENT, Guard, Mutex};
use crate::native::{Native, UserEvent};
use crate::process_end::CALLBACKS;
use crate::queue::Queue;
use crate::status::{Fallible, driver};

pub mod calls;

type Callback = unsafe extern "C" fn(cl_event, cl_int, *mut c_void);

/// An event: of a command, or the program's own.
pub struct Event {
    pub context: Ref<Context>,
    /// `None` for a user event.
    pub queue: Option<Ref<Queue>>,
    pub command: cl_command_type,
    state: Mutex<State, EVENT>,
    changed: Condvar,
}

enum State {
    /// A command that no driver has yet, with the callbacks for when one has.
    Recorded(Vec<Asked>),
    /// A driver's event tells how far it is.
    Issued(Arc<Native>),
    /// The program's own event that it has not set, with drivers' user events by domain.
    Open(Vec<(usize, Arc<Native>)>, Vec<Asked>),
    /// It ended with this status.
    Ended(cl_int),
}

/// A callback that a program wants.
#[derive(Clone, Copy)]
struct Asked {
    when: cl_int,
    function: Callback,
    data: usize,
}

kind!(Event, CL_INVALID_EVENT);

/// The program's own events that it has not set.
static OPEN: AtomicUsize = AtomicUsize::new(0);

/// Whether there are events of the program that it has not set.
pub fn any_is_open() -> bool {
    OPEN.load(Ordering::Acquire) > 0
}

impl Drop for Event {
    fn drop(&mut self) {
        if let State::Open(..) = *self.state.get_mut() {
            OPEN.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

impl Event {
    /// The event of a command that no driver has yet.
    pub fn recorded(queue: &Ref<Queue>, command: cl_command_type) -> Ref<Self> {
        Ref::new(Self {
            context: queue.context.clone(),
            queue: Some(queue.clone()),
            command,
            state: Mutex::new(State::Recorded(Vec::new())),
            changed: Condvar::new(),
        })
    }

    fn state(&self) -> Guard<'_, State, EVENT> {
        self.state.lock()
    }

    /// A driver has the command now.
    pub fn issued(this: &Ref<Self>, native: Arc<Native>) {
        let before = std::mem::replace(&mut *this.state(), State::Issued(Arc::clone(&native)));
        if let State::Recorded(asked) = before {
            for asked in asked {
                forward(this, &native, asked);
            }
        }
        this.changed.notify_all();
    }

    /// Ends it, as the program says or because no driver takes its command; returns whether it had not ended before.
    pub fn end(this: &Ref<Self>, code: cl_int) -> bool {
        let before = {
            let mut state = this.state();
            if matches!(*state, State::Ended(_)) {
                return false;
            }
            std::mem::replace(&mut *state, State::Ended(code))
        };
        this.changed.notify_all();
        let asked = match before {
            State::Recorded(asked) => asked,
            State::Open(natives, asked) => {
                OPEN.fetch_sub(1, Ordering::AcqRel);
                for (_, native) in natives {
                    let _ = driver!(native.table, clSetUserEventStatus(native.event, code));
                }
                asked
            }
            _ => Vec::new(),
        };
        for asked in asked {
            call_back(this.clone(), asked, code);
        }
        true
    }

    /// A driver's event that ends with this one, for the queues of a domain, and what
    /// keeps it alive; `None` if it has ended well.
    ///
    /// # Errors
    /// The status of an event that has failed.
    pub fn native(this: &Ref<Self>, domain: usize) -> Fallible<Option<Arc<Native>>> {
        let mut state = this.state();
        match &mut *state {
            State::Issued(native) => Ok(Some(Arc::clone(native))),
            State::Ended(code) if *code < 0 => Err(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST),
            State::Ended(_) => Ok(None),
            State::Open(natives, _) => {
                if let Some((_, native)) = natives.iter().find(|(other, _)| *other == domain) {
                    return Ok(Some(Arc::clone(native)));
                }
                let user = UserEvent::new(&this.context.domains[domain])?;
                let native = Native::of_user(&user, domain);
                natives.push((domain, Arc::clone(&native)));
                Ok(Some(native))
            }
            // Whoever waits for a recorded command has its queue give it to a driver
            // before.
            State::Recorded(_) => Err(CL_INVALID_EVENT),
        }
    }

    /// Whether no driver has the command yet.
    pub fn is_recorded(&self) -> bool {
        matches!(*self.state(), State::Recorded(_))
    }

    /// The execution status: a negative code after a failure.
    pub fn execution_status(&self) -> Fallible<cl_int> {
        let native = match &*self.state() {
            State::Recorded(_) => return Ok(CL_QUEUED),
            State::Open(..) => return Ok(CL_SUBMITTED),
            State::Ended(code) => return Ok(*code),
            State::Issued(native) => Arc::clone(native),
        };
        native.execution_status()
    }

    /// Waits until it has ended; returns its status. A driver must have its command.
    pub fn wait(&self) -> Fallible<cl_int> {
        let mut state = self.state();
        loop {
            match &*state {
                State::Ended(code) => return Ok(*code),
                State::Issued(native) => {
                    let native = Arc::clone(native);
                    drop(state);
                    // An event that failed is an error of this call for some drivers.
                    let waited = native.wait();
                    let status = native.execution_status()?;
                    return match waited {
                        Err(code) if status >= 0 => Err(code),
                        _ => Ok(status),
                    };
                }
                State::Recorded(_) | State::Open(..) => {
                    state = self.changed.wait(state);
                }
            }
        }
    }
}

/// Has the driver tell when its event gets there.
fn forward(event: &Ref<Event>, native: &Native, asked: Asked) {
    let event = event.clone();
    let task = move |status| call_back(event, asked, status);
    if let Err((code, task)) = native.tell(asked.when, Box::new(task)) {
        task(code);
    }
}

/// Calls the program on a thread that holds no lock and that no driver needs.
fn call_back(event: Ref<Event>, asked: Asked, status: cl_int) {
    let status = if status < 0 { status } else { asked.when };
    CALLBACKS.run(move || {
        // SAFETY: the program gave the function and its data for this call.
        unsafe { (asked.function)(event.handle(), status, asked.data as *mut c_void) };
    });
}
