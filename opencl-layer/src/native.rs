//! Events of drivers.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

use libc::c_void;
use opencl_sys::cl_icd::cl_icd_dispatch;
use opencl_sys::{
    CL_COMPLETE, CL_EVENT_COMMAND_EXECUTION_STATUS, CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST,
    CL_PROFILING_COMMAND_END, CL_PROFILING_INFO_NOT_AVAILABLE, cl_command_queue, cl_event, cl_int,
    cl_profiling_info, cl_ulong,
};

use crate::domain::{Domain, Own};
use crate::drivers::number;
use crate::lock::{BRIDGES, Mutex, ONCE_ALL_ENDED};
use crate::status::{Fallible, asking, check, driver, driver_object};

/// An event of a driver. Queues of other drivers wait for a user event of theirs, which
/// is set when this one ends.
pub struct Native {
    pub table: &'static cl_icd_dispatch,
    pub event: cl_event,
    /// Its driver's context, as an index in our context.
    pub domain: usize,
    /// Flushed before somebody else waits; null for a user event.
    queue: cl_command_queue,
    /// What to add to its times; see `clock.rs`.
    pub clock: i64,
    /// User events by domain.
    bridges: Mutex<Vec<(usize, UserEvent)>, BRIDGES>,
    /// The events of which this one is the end, if it stands for several.
    pub parts: Vec<Arc<Native>>,
    /// The code of a failure that the event does not have; 0 if there is none.
    failure: AtomicI32,
    _own: Arc<Own>,
}

// SAFETY: drivers' handles may be used by every thread.
unsafe impl Send for Native {}
// SAFETY: as above.
unsafe impl Sync for Native {}

impl Native {
    /// Owns an event of a queue, or a user event.
    pub fn new(
        table: &'static cl_icd_dispatch,
        event: Arc<Own>,
        domain: usize,
        queue: cl_command_queue,
    ) -> Self {
        Self {
            table,
            event: event.handle(),
            domain,
            queue,
            clock: 0,
            bridges: Mutex::default(),
            parts: Vec::new(),
            failure: AtomicI32::new(0),
            _own: event,
        }
    }

    /// The end of a user event of a domain.
    pub fn of_user(user: &UserEvent, domain: usize) -> Arc<Self> {
        let own = Arc::clone(&user.own);
        Arc::new(Self::new(user.table, own, domain, ptr::null_mut()))
    }

    /// Notes that what it stands for has failed. To be called before the event ends.
    pub fn fail(&self, code: cl_int) {
        self.failure.store(code.min(-1), Ordering::Release);
    }

    /// The code of a failure of its own, or of one of its parts.
    fn failed(&self) -> Fallible<()> {
        check(self.failure.load(Ordering::Acquire))?;
        let mut parts = self.parts.iter();
        parts.try_for_each(|part| match part.execution_status()? {
            code if code < 0 => Err(code),
            _ => Ok(()),
        })
    }

    /// The event, or one that ends with it, for the queues of a domain of this number. It
    /// lives as long as `self`.
    pub fn within(&self, inner: &Domain, domain: usize) -> Fallible<cl_event> {
        if domain == self.domain {
            return Ok(self.event);
        }
        let mut bridges = self.bridges.lock();
        if let Some((_, user)) = bridges.iter().find(|(other, _)| *other == domain) {
            return Ok(user.event());
        }
        let user = UserEvent::new(inner)?;
        let (event, twin) = (user.event(), user.clone());
        bridges.push((domain, user));
        drop(bridges);
        if !self.queue.is_null() {
            check(driver!(self.table, clFlush(self.queue)))?;
        }
        match self.tell(CL_COMPLETE, Box::new(move |_| twin.complete())) {
            Ok(()) => Ok(event),
            Err((code, _)) => Err(code),
        }
    }

    /// The execution status: a negative code after a failure.
    pub fn execution_status(&self) -> Fallible<cl_int> {
        let what = CL_EVENT_COMMAND_EXECUTION_STATUS;
        let status = number::<cl_int>(asking!(self.table, clGetEventInfo(self.event, what)))?;
        Ok(match self.failed() {
            Err(code) if status <= 0 => code,
            _ => status,
        })
    }

    /// Whether it has not ended.
    pub fn is_pending(&self) -> bool {
        self.execution_status().is_ok_and(|status| status > 0)
    }

    /// A time of the event, by its device's clock.
    pub fn device_time(&self, what: cl_profiling_info) -> Fallible<cl_ulong> {
        number(asking!(
            self.table,
            clGetEventProfilingInfo(self.event, what)
        ))
    }

    /// A time of the event, by the common clock: if it stands for several, when the last of
    /// them has ended, or when the first was queued, was submitted or began.
    pub fn time(&self, what: cl_profiling_info) -> Fallible<cl_ulong> {
        if self.parts.is_empty() {
            return Ok(self.device_time(what)?.saturating_add_signed(self.clock));
        }
        let times = self.parts.iter().map(|part| part.time(what));
        let times: Vec<cl_ulong> = times.collect::<Fallible<_>>()?;
        let time = match what {
            CL_PROFILING_COMMAND_END => times.into_iter().max(),
            _ => times.into_iter().min(),
        };
        time.ok_or(CL_PROFILING_INFO_NOT_AVAILABLE)
    }

    /// Runs a task when it has ended, on a driver's thread. Returns false if the driver
    /// refuses; then it never runs.
    pub fn when_ended(&self, task: impl FnOnce() + Send + 'static) -> bool {
        self.tell(CL_COMPLETE, Box::new(move |_| task())).is_ok()
    }

    /// As [`Self::when_ended`], with the execution status. A driver that refuses is waited
    /// for.
    pub fn then(self: &Arc<Self>, task: impl FnOnce(cl_int) + Send + 'static) {
        let native = Arc::clone(self);
        let task = move |_| {
            task(
                native
                    .execution_status()
                    .unwrap_or_else(|code| code.min(-1)),
            )
        };
        if let Err((code, task)) = self.tell(CL_COMPLETE, Box::new(task)) {
            let _ = self.wait();
            task(code);
        }
    }

    /// Runs a task with the status when it has got so far, on a driver's thread. A driver that
    /// refuses gives it back, with the code.
    pub fn tell(&self, when: cl_int, task: Task) -> Result<(), (cl_int, Task)> {
        let data = Box::into_raw(Box::new(task));
        let set = driver!(
            self.table,
            clSetEventCallback(self.event, when, Some(run_task), data.cast())
        );
        match set {
            opencl_sys::CL_SUCCESS => Ok(()),
            // SAFETY: the driver did not take the pointer.
            code => Err((code, *unsafe { Box::from_raw(data) })),
        }
    }

    /// Waits until it has ended.
    pub fn wait(&self) -> Fallible<()> {
        check(driver!(self.table, clWaitForEvents(1, &self.event)))?;
        match self.failed() {
            Ok(()) => Ok(()),
            Err(_) => Err(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST),
        }
    }
}

/// Does something when all events have ended; at once if there are none.
pub fn when_all_ended(natives: &[Arc<Native>], then: impl FnOnce() + Send + 'static) {
    let left = Arc::new(AtomicUsize::new(natives.len() + 1));
    let then = Arc::new(Mutex::<_, ONCE_ALL_ENDED>::new(Some(then)));
    let one_less = move || {
        if left.fetch_sub(1, Ordering::AcqRel) == 1 {
            let then = then.lock().take();
            if let Some(then) = then {
                then();
            }
        }
    };
    for native in natives {
        let one_less = one_less.clone();
        native.then(move |_| one_less());
    }
    one_less();
}

/// A user event of a driver.
#[derive(Clone)]
pub struct UserEvent {
    table: &'static cl_icd_dispatch,
    own: Arc<Own>,
}

impl UserEvent {
    pub fn new(domain: &Domain) -> Fallible<Self> {
        let table = domain.table;
        let event = driver_object!(table, clCreateUserEvent(domain.context))?;
        let own = Arc::new(Own::new(event, table.clReleaseEvent));
        Ok(Self { table, own })
    }

    fn event(&self) -> cl_event {
        self.own.handle()
    }

    /// Ends it well. Drivers disagree on user events that fail (PoCL never ends commands
    /// that wait for them), so failures are not passed on this way.
    pub fn complete(&self) {
        let _ = driver!(self.table, clSetUserEventStatus(self.event(), CL_COMPLETE));
    }
}

type Task = Box<dyn FnOnce(cl_int) + Send>;

unsafe extern "C" fn run_task(_event: cl_event, status: cl_int, data: *mut c_void) {
    let _ = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the box that `tell` gave away; drivers call once.
        let task = unsafe { Box::from_raw(data.cast::<Task>()) };
        task(status);
    }));
}
