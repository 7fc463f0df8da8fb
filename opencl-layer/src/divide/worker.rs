//! Threads for work that waits for devices.
//!
//! Drivers' callbacks must not wait, and the thread that calls programs back may be kept by
//! a program. Each kind of work has a thread of its own, which does one task after another.
//! A process that ends waits for the task that runs: drivers do not expect calls any more
//! then.

use std::sync::mpsc::{Sender, channel};
use std::sync::{LazyLock, Mutex, Once, PoisonError, RwLock};
use std::thread;

type Task = Box<dyn FnOnce() + Send>;

/// A thread.
pub struct Worker {
    tasks: Option<Mutex<Sender<Task>>>,
}

/// Read while a task needs drivers. Once the process ends it is kept.
static RUNNING: RwLock<()> = RwLock::new(());

extern "C" fn stop() {
    // Tasks that begin later wait for ever, and end with the process.
    std::mem::forget(RUNNING.write().unwrap_or_else(PoisonError::into_inner));
}

impl Worker {
    fn start(name: &str) -> Self {
        static AT_EXIT: Once = Once::new();
        AT_EXIT.call_once(|| {
            // SAFETY: the function may be called when the process ends.
            unsafe { libc::atexit(stop) };
        });
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
                let tasks = tasks.lock().unwrap_or_else(PoisonError::into_inner);
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

/// Does something that drivers must live for.
pub fn while_alive<T>(work: impl FnOnce() -> T) -> T {
    let _running = RUNNING.read().unwrap_or_else(PoisonError::into_inner);
    work()
}
