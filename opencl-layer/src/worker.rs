//! Threads for work that must not keep drivers.
//!
//! Drivers call back on threads of their own, or within a call that we made, and must not wait.
//! A program's callback may call OpenCL again, so it runs where no lock is held. Each kind of
//! work has a thread of its own, which does one task after another: the one that calls programs
//! back may be kept by a program.

use std::sync::LazyLock;
use std::sync::mpsc::{Sender, channel};
use std::thread;

type Task = Box<dyn FnOnce() + Send>;

/// A thread; none where it cannot be started.
pub struct Worker(Option<Sender<Task>>);

impl Worker {
    fn start(name: &str) -> Self {
        let (sender, tasks) = channel::<Task>();
        let body = move || tasks.into_iter().for_each(|task| task());
        let started = thread::Builder::new().name(name.to_owned()).spawn(body);
        Self(started.is_ok().then_some(sender))
    }

    /// Runs a task soon, after those that came before it; at once where there is no thread.
    pub fn run(&self, task: impl FnOnce() + Send + 'static) {
        match &self.0 {
            Some(tasks) => drop(tasks.send(Box::new(task))),
            None => task(),
        }
    }
}

/// The thread that calls programs back.
pub static CALLBACKS: LazyLock<Worker> = LazyLock::new(|| Worker::start("pdawl callbacks"));
/// The thread that examines kernels and builds programs for parts.
pub static EXAMINATIONS: LazyLock<Worker> = LazyLock::new(|| Worker::start("pdawl examinations"));
/// The thread that merges results.
pub static MERGES: LazyLock<Worker> = LazyLock::new(|| Worker::start("pdawl merges"));
/// The thread that gives late writes to drivers.
pub static WRITES: LazyLock<Worker> = LazyLock::new(|| Worker::start("pdawl writes"));
