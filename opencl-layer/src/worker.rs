//! Threads for work that waits for devices.
//!
//! Drivers' callbacks must not wait, and the thread that calls programs back may be kept by
//! a program. Each kind of work has a thread of its own, which does one task after another.

use std::sync::LazyLock;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use crate::lock::{Mutex, TASKS};

type Task = Box<dyn FnOnce() + Send>;

/// A thread.
pub struct Worker {
    tasks: Option<Mutex<Sender<Task>, TASKS>>,
}

impl Worker {
    fn start(name: &str) -> Self {
        let (sender, tasks) = channel::<Task>();
        let body = move || tasks.into_iter().for_each(|task| task());
        let started = thread::Builder::new().name(name.to_owned()).spawn(body);
        Self {
            tasks: started.is_ok().then_some(Mutex::new(sender)),
        }
    }

    /// Runs a task soon, after those that came before it; at once where there is no thread.
    pub fn run(&self, task: impl FnOnce() + Send + 'static) {
        match &self.tasks {
            Some(tasks) => {
                let tasks = tasks.lock();
                let _ = tasks.send(Box::new(task));
            }
            None => task(),
        }
    }
}

/// The thread that examines kernels and builds programs for parts.
pub fn examinations() -> &'static Worker {
    static WORKER: LazyLock<Worker> = LazyLock::new(|| Worker::start("pdawl examinations"));
    &WORKER
}

/// The thread that merges results.
pub fn merges() -> &'static Worker {
    static WORKER: LazyLock<Worker> = LazyLock::new(|| Worker::start("pdawl merges"));
    &WORKER
}

/// The thread that gives late writes to drivers.
pub fn writes() -> &'static Worker {
    static WORKER: LazyLock<Worker> = LazyLock::new(|| Worker::start("pdawl writes"));
    &WORKER
}
