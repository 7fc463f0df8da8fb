//! Threads for work that waits for devices.
//!
//! Drivers' callbacks must not wait, and the thread that calls programs back may be kept by
//! a program. Each kind of work has a thread of its own, which does one task after another.
//! A process that ends waits for the task that runs: drivers do not expect calls any more
//! then.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Condvar, LazyLock, Mutex, Once, PoisonError, RwLock};
use std::thread;
use std::time::Duration;

type Task = Box<dyn FnOnce() + Send>;

/// A thread.
pub struct Worker {
    tasks: Option<Mutex<Sender<Task>>>,
}

/// Read while a task needs drivers. Once the process ends it is kept.
static RUNNING: RwLock<()> = RwLock::new(());

/// Has what runs on threads of ours end before the drivers do. They are open already, and
/// what is wanted last at a process's end is done first.
fn stop_at_exit() {
    static AT_EXIT: Once = Once::new();
    AT_EXIT.call_once(|| {
        // SAFETY: the function may be called when the process ends.
        unsafe { libc::atexit(stop) };
    });
}

extern "C" fn stop() {
    // Tasks that begin later wait for ever, and end with the process.
    std::mem::forget(RUNNING.write().unwrap_or_else(PoisonError::into_inner));
    let launches = LAUNCHES.lock().unwrap_or_else(PoisonError::into_inner);
    let run = |launches: &mut usize| *launches > 0;
    drop(NO_LAUNCH.wait_timeout_while(launches, LONGEST_LAUNCH, run));
}

/// Launches that the program has not asked for and that may not have ended. A process that
/// ends waits for them: PoCL may compile them while what it needs for that is taken down.
static LAUNCHES: Mutex<usize> = Mutex::new(0);
static NO_LAUNCH: Condvar = Condvar::new();

/// A launch may wait for what the program never sets.
const LONGEST_LAUNCH: Duration = Duration::from_secs(10);

/// A launch that the program has not asked for, until it has ended.
pub struct OwnLaunch(());

impl OwnLaunch {
    pub fn begin() -> Self {
        stop_at_exit();
        *LAUNCHES.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        Self(())
    }
}

impl Drop for OwnLaunch {
    fn drop(&mut self) {
        *LAUNCHES.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        NO_LAUNCH.notify_all();
    }
}

impl Worker {
    fn start(name: &str) -> Self {
        stop_at_exit();
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

/// The thread that gives late writes to drivers.
pub fn writes() -> &'static Worker {
    static WORKER: LazyLock<Worker> = LazyLock::new(|| Worker::start("pdawl writes"));
    &WORKER
}

/// Does something that drivers must live for. Every call of a driver on a thread of ours is in
/// one.
pub fn while_alive<T>(work: impl FnOnce() -> T) -> T {
    let _running = RUNNING.read().unwrap_or_else(PoisonError::into_inner);
    work()
}
