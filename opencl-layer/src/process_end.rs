//! The end of the process: what this library has begun on its own ends before the drivers do.
//!
//! When `main` returns, libraries take themselves down, the last one set up first. A driver's
//! compiler sets parts of itself up when it is first used, perhaps by a task of ours that runs
//! at that moment, so that no function for `atexit` is early enough. A thread's own objects go
//! before all that. The main thread has one here that waits for our tasks and launches.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, LazyLock, Once, OnceLock};
use std::time::{Duration, Instant};
use std::{fs, process, thread};

use libc::c_void;
use opencl_sys::cl_icd::cl_icd_dispatch;
use opencl_sys::{CL_RUNNING, cl_int, cl_mem};

use crate::lock::{Condvar, ENDING, Mutex, OWN};
use crate::native::Native;
use crate::status::{Fallible, check, driver};

/// What this library does on its own.
struct Own {
    /// Whether the process ends, so that nothing begins any more.
    ends: bool,
    /// Tasks that call drivers on threads of ours.
    running: usize,
    tasks: usize,
    /// Launches that the program has not asked for.
    commands: Vec<Arc<Native>>,
}

static STATE: Mutex<Own, OWN> = Mutex::new(Own {
    ends: false,
    running: 0,
    tasks: 0,
    commands: Vec::new(),
});
static LESS: Condvar = Condvar::new();

/// What drivers still have of the program's own commands; the parts above say it.
pub struct Unfinished {
    /// The ends of what drivers have of all queues.
    pub commands: fn() -> Vec<Arc<Native>>,
    /// Whether there are events of the program that it has not set.
    pub any_event_is_open: fn() -> bool,
}

static UNFINISHED: OnceLock<Unfinished> = OnceLock::new();

/// Has the process's end ask what drivers still have.
pub fn ask(unfinished: Unfinished) {
    let _ = UNFINISHED.set(unfinished);
}

/// The process that first called; 0 before.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// Whether this process was forked by one that has called before. It has none of its threads,
/// neither ours nor the drivers', so nothing that they should do or give back is waited for.
pub fn is_forked() -> bool {
    let process = PROCESS.load(Ordering::Acquire);
    process != 0 && process != process::id()
}

/// How long a process that ends waits for commands that drivers have: PoCL may compile a launch
/// while what it needs for that is taken down. Some wait for events that the program never sets.
const LONGEST: Duration = Duration::from_secs(10);
const BEHIND_EVENTS: Duration = Duration::from_secs(1);
/// The time between looks at what has changed.
const LOOK: Duration = Duration::from_millis(2);

/// Goes when the thread ends, which for the main thread is when the process does.
struct Last(Cell<()>);

impl Drop for Last {
    fn drop(&mut self) {
        // SAFETY: the call has no arguments.
        let thread = unsafe { libc::gettid() };
        if u32::try_from(thread) == Ok(process::id()) {
            end();
        }
    }
}

thread_local! {
    static LAST: Last = const { Last(Cell::new(())) };
}

/// The program calls on this thread, which may be the main one.
pub fn watch() {
    if PROCESS.load(Ordering::Relaxed) == 0 {
        PROCESS.store(process::id(), Ordering::Release);
    }
    // A thread that ends may call, too.
    let _ = LAST.try_with(|last| last.0.set(()));
}

/// Has the end waited for where the main thread never calls us or another one ends the process.
fn watch_exit() {
    extern "C" fn at_exit() {
        end();
    }
    // SAFETY: the function may be called when the process ends.
    unsafe { libc::atexit(at_exit) };
}

/// Waits until nothing of ours runs and drivers have nothing to do; nothing of ours begins any
/// more.
fn end() {
    if is_forked() {
        return;
    }
    let began = Instant::now();
    let mut own = STATE.lock();
    own.ends = true;
    while own.running > 0 {
        own = LESS.wait_for(own, LOOK);
    }
    let mut commands = std::mem::take(&mut own.commands);
    // A driver may want this lock while we ask it.
    drop(own);
    let unfinished = UNFINISHED.get();
    commands.extend(unfinished.map_or_else(Vec::new, |unfinished| (unfinished.commands)()));
    loop {
        let patience = match unfinished.is_some_and(|it| (it.any_event_is_open)()) {
            true => BEHIND_EVENTS,
            false => LONGEST,
        };
        let may_run = |native: &Arc<Native>| match native.execution_status() {
            Ok(CL_RUNNING) => began.elapsed() < LONGEST,
            Ok(status) => status > CL_RUNNING as cl_int && began.elapsed() < patience,
            Err(_) => false,
        };
        if !commands.iter().any(may_run) {
            return;
        }
        thread::sleep(LOOK);
    }
}

/// Does something that drivers must live for. Every call of a driver on a thread of ours is in
/// one. Once the process ends, this waits for that.
pub fn while_alive<T>(work: impl FnOnce() -> T) -> T {
    let mut own = STATE.lock();
    while own.ends {
        own = LESS.wait_for(own, LOOK);
        if own.ends && main_thread_left() {
            own.ends = false;
        }
    }
    own.running += 1;
    own.tasks += 1;
    let is_new = own.tasks.is_power_of_two();
    drop(own);
    if is_new {
        watch_exit();
    }
    let _running = Running;
    let result = work();
    if is_new {
        // After what the task has set up.
        watch_exit();
    }
    result
}

struct Running;

impl Drop for Running {
    fn drop(&mut self) {
        STATE.lock().running -= 1;
        LESS.notify_all();
    }
}

/// Whether the main thread has ended without the process, by `pthread_exit`.
fn main_thread_left() -> bool {
    let state = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = state.rsplit(')').next();
    after_name.is_some_and(|rest| rest.trim_start().starts_with('Z'))
}

/// Has the process's end wait for a command that no queue of the program tells of.
pub fn waits_for(native: &Arc<Native>) {
    static WATCHED: Once = Once::new();
    WATCHED.call_once(watch_exit);
    let before = std::mem::take(&mut STATE.lock().commands);
    // A driver is asked without the lock.
    let (mut left, ended): (Vec<_>, Vec<_>) =
        before.into_iter().partition(|native| native.is_pending());
    drop(ended);
    left.push(Arc::clone(native));
    STATE.lock().commands.append(&mut left);
}

// What a program wants reported when one of its objects is gone.
//
// A memory object is gone when every driver has ended the commands that use it. Each
// driver's object therefore keeps the list of callbacks alive until its driver says that
// it is gone; the last owner calls the program.

/// A program's function for the end of an object.
pub type Ended = unsafe extern "C" fn(*mut c_void, *mut c_void);

/// The callbacks for the end of one object.
#[derive(Default)]
pub struct Ending {
    handle: AtomicUsize,
    wanted: Mutex<Vec<(Ended, usize)>, ENDING>,
}

impl Ending {
    /// Adds a callback.
    pub fn call(&self, handle: *mut c_void, function: Ended, data: *mut c_void) {
        self.handle.store(handle as usize, Ordering::Release);
        let mut wanted = self.wanted.lock();
        wanted.push((function, data as usize));
    }

    /// Whether anybody wants a report.
    pub fn is_wanted(&self) -> bool {
        !self.wanted.lock().is_empty()
    }

    /// Has a driver's memory object keep the callbacks back until it is gone.
    pub fn after(this: &Arc<Self>, table: &'static cl_icd_dispatch, mem: cl_mem) -> Fallible<()> {
        let data = Arc::into_raw(Arc::clone(this)).cast_mut();
        let set = driver!(
            table,
            clSetMemObjectDestructorCallback(mem, Some(gone), data.cast())
        );
        check(set).inspect_err(|_| {
            // SAFETY: the driver did not take the pointer.
            drop(unsafe { Arc::from_raw(data) });
        })
    }
}

unsafe extern "C" fn gone(_mem: cl_mem, data: *mut c_void) {
    // SAFETY: the pointer that `after` gave away; drivers call once.
    drop(unsafe { Arc::from_raw(data.cast_const().cast::<Ending>()) });
}

impl Drop for Ending {
    fn drop(&mut self) {
        let wanted = self.wanted.get_mut();
        let handle = self.handle.load(Ordering::Acquire);
        // The last one set is called first.
        for (function, data) in wanted.drain(..).rev() {
            // SAFETY: the program gave the function for this moment. The object is gone,
            // so the handle is an identifier only.
            CALLBACKS.run(move || unsafe { function(handle as *mut c_void, data as *mut c_void) });
        }
    }
}

// Threads for work that must not keep drivers.
//
// Drivers call back on threads of their own, or within a call that we made, and must not wait.
// A program's callback may call OpenCL again, so it runs where no lock is held. Each kind of
// work has a thread of its own, which does one task after another: the one that calls programs
// back may be kept by a program.

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
