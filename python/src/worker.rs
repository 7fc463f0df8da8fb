//! A thread that owns a session or a node. Python's threads send it jobs and wait, without the
//! interpreter's lock; Ctrl-C stops the run.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use pdawl::session::{Error, Stop};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::errors::exception;

type Job<S> = Box<dyn FnOnce(&mut S) + Send>;

/// Signals are looked at so often while a job runs.
const PAUSE: Duration = Duration::from_millis(20);

/// The thread of a session or a node.
pub struct Worker<S> {
    jobs: Option<Sender<Job<S>>>,
    thread: Option<JoinHandle<()>>,
    stop: Stop,
}

impl<S: 'static> Worker<S> {
    /// A thread with what `open` opens, and what stops its runs.
    pub fn open(
        py: Python<'_>,
        open: impl FnOnce() -> Result<(S, Stop), Error> + Send + 'static,
    ) -> PyResult<Self> {
        let (jobs, waiting) = channel::<Job<S>>();
        let (opened, result) = channel();
        let thread = std::thread::Builder::new().name("pdawl".to_owned());
        let thread = thread.spawn(move || match open() {
            Ok((mut session, stop)) => {
                let _ = opened.send(Ok(stop));
                for job in waiting {
                    job(&mut session);
                }
            }
            Err(error) => {
                let _ = opened.send(Err(error));
            }
        })?;
        let result = py.detach(move || result.recv());
        let stop = result
            .map_err(|_| PyRuntimeError::new_err("the session's thread ended while it opened"))?
            .map_err(|error| exception(&error))?;
        Ok(Self {
            jobs: Some(jobs),
            thread: Some(thread),
            stop,
        })
    }

    /// Runs a job on the session, and waits for its end. Ctrl-C stops the run; the exception
    /// follows when it has ended.
    pub fn call<'a, R: Send + 'a>(
        &self,
        py: Python<'_>,
        job: impl FnOnce(&mut S) -> R + Send + 'a,
    ) -> PyResult<R> {
        let (done, result) = channel();
        let job: Box<dyn FnOnce(&mut S) + Send + 'a> = Box::new(move |session| {
            let _ = done.send(job(session));
        });
        // SAFETY: `wait` returns only when the job has sent its result or was dropped, so
        // nothing that it borrows is used after 'a.
        let job: Job<S> = unsafe { std::mem::transmute(job) };
        let ended = || PyRuntimeError::new_err("the session's thread has ended");
        let jobs = self.jobs.as_ref().ok_or_else(ended)?;
        jobs.send(job).map_err(|_| ended())?;
        self.wait(py, &result)
    }

    /// Lets the session run again after what has stopped it.
    pub fn clear_stop(&self) {
        self.stop.clear();
    }

    fn wait<R: Send>(&self, py: Python<'_>, result: &Receiver<R>) -> PyResult<R> {
        let mut interrupted = None;
        loop {
            let waited = Here(|| result.recv_timeout(PAUSE));
            match py.detach(move || waited.run()).0 {
                Ok(result) => {
                    return match interrupted {
                        None => Ok(result),
                        Some(error) => {
                            self.stop.clear();
                            Err(error)
                        }
                    };
                }
                Err(RecvTimeoutError::Timeout) => {
                    if interrupted.is_none()
                        && let Err(error) = py.check_signals()
                    {
                        self.stop.set();
                        interrupted = Some(error);
                    }
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(PyRuntimeError::new_err(
                        "the session's thread has panicked; open another session",
                    ));
                }
            }
        }
    }
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

/// Runs, on a thread that Python did not start, what calls Python often. The interpreter's
/// state of the thread stays meanwhile; each call would make one and end it.
pub fn calling_python<R>(run: impl FnOnce() -> R) -> R {
    let run = Here(run);
    Python::attach(|py| py.detach(move || run.run())).0
}

impl<S> Drop for Worker<S> {
    fn drop(&mut self) {
        self.jobs = None;
        let Some(thread) = self.thread.take() else {
            return;
        };
        // The thread may wait for the interpreter's lock in a policy.
        Python::attach(|py| py.detach(move || thread.join())).ok();
    }
}
