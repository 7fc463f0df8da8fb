//! The thread of Python's that waits for a run. It calls the policy, the balancer and the tasks
//! of the run, so that signals reach them as they reach all code of the user's. What they raise
//! ends the run.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use pdawl::session::Stop;
use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi::PyObject;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

/// What a run tells the thread that waits for it.
pub enum Message {
    /// It needs a call.
    Call(Call),
    /// It has ended, perhaps by what was raised.
    Ended(Option<PyErr>),
}

/// What is called with the interpreter's lock.
pub type Call = Box<dyn FnOnce(Python<'_>) + Send>;

/// For so long who waits for the next call, or for an answer, looks for it before it sleeps: most
/// policies answer within that, and waking takes longer than they do.
const ATTENTIVE: Duration = Duration::from_micros(50);

/// Looks for a message for a while.
pub fn look<T>(from: &Receiver<T>) -> Option<T> {
    let began = Instant::now();
    loop {
        match from.try_recv() {
            Ok(message) => return Some(message),
            Err(TryRecvError::Empty) if began.elapsed() < ATTENTIVE => thread::yield_now(),
            Err(_) => return None,
        }
    }
}

/// Whoever waits for the present run of a session.
#[derive(Clone)]
pub struct Caller {
    stop: Stop,
    run: Arc<Mutex<Run>>,
}

/// The present run.
#[derive(Default)]
struct Run {
    waiting: Option<Sender<Message>>,
    /// The thread that calls something for it.
    calling: Option<ThreadId>,
    /// The first exception.
    raised: Option<PyErr>,
}

impl Caller {
    /// Of the session that `stop` stops.
    pub fn new(stop: Stop) -> Self {
        Self {
            stop,
            run: Arc::default(),
        }
    }

    fn run(&self) -> MutexGuard<'_, Run> {
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A run begins, for which `waiting` waits.
    pub fn begin(&self, waiting: Sender<Message>) {
        self.run().waiting = Some(waiting);
    }

    /// The run has ended, perhaps by what is returned. The session can run again.
    pub fn end(&self) -> Option<PyErr> {
        let raised = std::mem::take(&mut *self.run()).raised;
        if raised.is_some() {
            self.stop.clear();
        }
        raised
    }

    /// Ends the run with this exception, unless there is one.
    pub fn raise(&self, error: PyErr) {
        self.run().raised.get_or_insert(error);
        self.stop.set();
    }

    /// Whether this thread is in a call for the run.
    pub fn is_calling(&self) -> bool {
        self.run().calling == Some(thread::current().id())
    }

    /// Makes a call on this thread, which waits for the run.
    pub fn serve(&self, py: Python<'_>, call: Call) {
        self.run().calling = Some(thread::current().id());
        call(py);
        self.run().calling = None;
    }

    /// What `call` returns on the thread that waits; `otherwise` when it raises something,
    /// which ends the run, and when the run ends already.
    pub fn call<R: Send>(
        &self,
        otherwise: R,
        call: impl FnOnce(Python<'_>) -> PyResult<R> + Send,
    ) -> R {
        let waiting = {
            let run = self.run();
            run.waiting.clone().filter(|_| run.raised.is_none())
        };
        let Some(waiting) = waiting else {
            return otherwise;
        };
        let (answer, answered) = channel();
        let call: Box<dyn FnOnce(Python<'_>) + Send + '_> = Box::new(move |py| {
            // Who waits must not unwind, as the run uses what it has borrowed.
            let made = catch_unwind(AssertUnwindSafe(|| call(py)));
            let _ = answer
                .send(made.unwrap_or_else(|panic| Err(PyRuntimeError::new_err(reason(&*panic)))));
        });
        // SAFETY: this function returns only when the call has sent its answer or was dropped,
        // so nothing that it borrows is used afterwards.
        let call: Call = unsafe { std::mem::transmute(call) };
        let _ = waiting.send(Message::Call(call));
        match look(&answered).map_or_else(|| answered.recv(), Ok) {
            Ok(Ok(made)) => made,
            Ok(Err(error)) => {
                self.raise(error);
                otherwise
            }
            Err(_) => otherwise,
        }
    }
}

/// The message of a panic.
pub fn reason(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message").to_owned()
}

/// Calls what the user has written. Before Python 3.14 a thread that is not the main one ends in
/// there when the interpreter does: it is unwound, which no function of Rust lets pass.
pub fn call<'py>(
    function: &Bound<'py, PyAny>,
    arguments: impl IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>, Error = PyErr>,
) -> PyResult<Bound<'py, PyAny>> {
    unsafe extern "C-unwind" {
        fn PyObject_CallObject(function: *mut PyObject, arguments: *mut PyObject) -> *mut PyObject;
    }
    let py = function.py();
    let arguments = arguments.into_pyobject(py)?;
    let stays = StaysForEver;
    // SAFETY: both are objects, and this thread has the interpreter's lock.
    let made = unsafe { PyObject_CallObject(function.as_ptr(), arguments.as_ptr()) };
    std::mem::forget(stays);
    // SAFETY: what a call returns belongs to who has called.
    unsafe { Bound::from_owned_ptr_or_err(py, made) }
}

/// The same with a method.
pub fn method<'py>(
    of: &Bound<'py, PyAny>,
    name: &Bound<'py, PyString>,
    arguments: impl IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>, Error = PyErr>,
) -> PyResult<Bound<'py, PyAny>> {
    call(&of.getattr(name)?, arguments)
}

/// A place in a thread above which nothing is unwound.
struct StaysForEver;

impl Drop for StaysForEver {
    fn drop(&mut self) {
        loop {
            thread::park();
        }
    }
}
