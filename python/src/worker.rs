//! A thread that owns a session or a node. Python's threads send it jobs and wait, without the
//! interpreter's lock; Ctrl-C stops the run.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use pdawl::session::{self, Stop};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::caller::{Caller, Message, look, reason};
use crate::errors::{Error, exception};

/// Signals are looked at so often while a job runs.
const PAUSE: Duration = Duration::from_millis(20);

type Work<S> = Box<dyn FnOnce(&mut S) + Send>;

/// A job: what it does, until the thread takes it, and who waits for its end.
struct Job<S> {
    phase: Arc<Mutex<Phase<S>>>,
    waiting: Sender<Message>,
}

enum Phase<S> {
    Waits(Work<S>),
    Runs,
    Over,
}

/// The thread of a session or a node.
pub struct Worker<S> {
    jobs: Option<Sender<Job<S>>>,
    thread: Option<JoinHandle<()>>,
    caller: Caller,
    /// What Python calls the session or the node.
    name: &'static str,
    /// The process that has the thread.
    process: u32,
    /// The message of the panic that has ended it.
    panicked: Arc<OnceLock<String>>,
}

impl<S: 'static> Worker<S> {
    /// A thread with what `open` opens, and what stops its runs.
    pub fn open(
        py: Python<'_>,
        name: &'static str,
        open: impl FnOnce() -> Result<(S, Stop), session::Error> + Send + 'static,
    ) -> PyResult<Self> {
        let (jobs, waiting) = channel();
        let (opened, result) = channel();
        let panicked: Arc<OnceLock<String>> = Arc::default();
        let noted = Arc::clone(&panicked);
        let thread = std::thread::Builder::new().name("pdawl".to_owned());
        let thread = thread.spawn(move || match open() {
            Ok((session, stop)) => {
                let caller = Caller::new(stop);
                // Nobody waits any more after Ctrl-C.
                if opened.send(Ok(caller.clone())).is_ok() {
                    work(session, &waiting, &caller, &noted);
                }
            }
            Err(error) => {
                let _ = opened.send(Err(error));
            }
        })?;
        let caller = loop {
            match receive(py, &result) {
                Ok(opened) => break opened.map_err(|error| exception(&error))?,
                Err(RecvTimeoutError::Timeout) => py.check_signals()?,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(PyRuntimeError::new_err(
                        "opening the devices has panicked; standard error has the message",
                    ));
                }
            }
        };
        Ok(Self {
            jobs: Some(jobs),
            thread: Some(thread),
            caller,
            name,
            process: process::id(),
            panicked,
        })
    }

    /// Whoever waits for the present run.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Whether it can run anything: it is of this process, and has not panicked.
    pub fn works(&self) -> bool {
        self.check().is_ok()
    }

    fn check(&self) -> PyResult<()> {
        let Self { name, process, .. } = self;
        if *process != process::id() {
            return Err(Error::new_err(format!(
                "this {name} was opened in process {process}, and process {} was forked from it \
                 without its threads; open another {name} here, or start processes with \
                 multiprocessing's method `spawn`",
                process::id()
            )));
        }
        match self.panicked.get() {
            Some(why) => Err(Error::new_err(format!(
                "a run of this {name} has panicked ({why}), so it runs nothing more; open another \
                 {name}, and report the panic"
            ))),
            None => Ok(()),
        }
    }

    /// Runs a job on the session, and waits for its end. Ctrl-C stops the run; the exception
    /// follows when it has ended.
    pub fn call<'a, R: Send + 'a>(
        &self,
        py: Python<'_>,
        job: impl FnOnce(&mut S) -> R + Send + 'a,
    ) -> PyResult<R> {
        self.check()?;
        if self.caller.is_calling() {
            let name = self.name;
            return Err(Error::new_err(format!(
                "this {name} waits for the policy, balancer or task that calls it here; use \
                 another {name} there"
            )));
        }
        let mut result = None;
        let place = &mut result;
        let work: Box<dyn FnOnce(&mut S) + Send + '_> =
            Box::new(move |session| *place = Some(job(session)));
        // SAFETY: `wait` returns only when the thread has dropped the work, or is not in this
        // process, so nothing that the work borrows is used after 'a.
        let work: Work<S> = unsafe { std::mem::transmute(work) };
        let phase = Arc::new(Mutex::new(Phase::Waits(work)));
        let (waiting, messages) = channel();
        if let Some(jobs) = &self.jobs {
            let phase = Arc::clone(&phase);
            // The thread lives as long as this.
            let _ = jobs.send(Job { phase, waiting });
        }
        self.wait(py, &phase, &messages)?;
        result.ok_or_else(|| PyRuntimeError::new_err("the run has ended without a result"))
    }

    fn wait(
        &self,
        py: Python<'_>,
        phase: &Mutex<Phase<S>>,
        messages: &Receiver<Message>,
    ) -> PyResult<()> {
        let mut interrupted = None;
        let mut called = false;
        loop {
            // Calls follow one another closely.
            let looked = std::mem::take(&mut called).then(|| unlocked(py, || look(messages)));
            let message = match looked.flatten() {
                Some(message) => Ok(message),
                None => receive(py, messages),
            };
            match message {
                Ok(Message::Call(call)) => {
                    called = true;
                    self.caller.serve(py, call);
                    if self.process != process::id() {
                        // A call has forked this process, where the run does not go on.
                        return self.check();
                    }
                }
                Ok(Message::Ended(raised)) => {
                    return match interrupted.or(raised) {
                        Some(error) => Err(error),
                        None => self.check(),
                    };
                }
                Err(RecvTimeoutError::Timeout) => {
                    let Err(error) = py.check_signals() else {
                        continue;
                    };
                    let mut phase = lock(phase);
                    match *phase {
                        // Another thread's run goes on.
                        Phase::Waits(_) => {
                            *phase = Phase::Over;
                            return Err(error);
                        }
                        Phase::Runs => self.caller.raise(error),
                        Phase::Over => interrupted = interrupted.or(Some(error)),
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return self.check(),
            }
        }
    }
}

/// Does the jobs, until nobody can send more.
fn work<S>(mut session: S, jobs: &Receiver<Job<S>>, caller: &Caller, panicked: &OnceLock<String>) {
    for Job { phase, waiting } in jobs {
        let Phase::Waits(work) = std::mem::replace(&mut *lock(&phase), Phase::Runs) else {
            continue;
        };
        match panicked.get() {
            Some(_) => drop(work),
            None => {
                caller.begin(waiting.clone());
                if let Err(panic) = catch_unwind(AssertUnwindSafe(|| work(&mut session))) {
                    let _ = panicked.set(reason(&*panic));
                }
            }
        }
        // From now on Ctrl-C is not for this run.
        *lock(&phase) = Phase::Over;
        let _ = waiting.send(Message::Ended(caller.end()));
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits a while.
fn receive<T>(py: Python<'_>, from: &Receiver<T>) -> Result<T, RecvTimeoutError> {
    unlocked(py, || from.recv_timeout(PAUSE))
}

/// Waits without the interpreter's lock.
fn unlocked<R>(py: Python<'_>, wait: impl FnOnce() -> R) -> R {
    let wait = Here(wait);
    py.detach(move || wait.run()).0
}

/// What only the calling thread uses while it has left the interpreter.
struct Here<T>(T);

// SAFETY: `detach` runs its closure on the calling thread.
unsafe impl<T> Send for Here<T> {}

impl<R, F: FnOnce() -> R> Here<F> {
    fn run(self) -> Here<R> {
        Here((self.0)())
    }
}

impl<S> Drop for Worker<S> {
    fn drop(&mut self) {
        let (jobs, thread) = (self.jobs.take(), self.thread.take());
        if self.process != process::id() {
            // The thread is not here, and may have held the locks of what it shares.
            std::mem::forget((jobs, thread, self.caller.clone()));
            return;
        }
        drop(jobs);
        if let Some(thread) = thread {
            // It may wait for the interpreter's lock, to drop what is Python's.
            Python::attach(|py| py.detach(move || thread.join())).ok();
        }
    }
}
