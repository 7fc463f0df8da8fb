//! The thread that calls programs back.
//!
//! Drivers call back on threads of their own, or within a call that we made. A program's
//! callback may call OpenCL again, so it runs here, where no lock is held.

use std::sync::LazyLock;
use std::sync::mpsc::{Sender, channel};
use std::thread;

type Task = Box<dyn FnOnce() + Send>;

/// Runs a task soon, after those that came before it.
pub fn run(task: impl FnOnce() + Send + 'static) {
    static TASKS: LazyLock<Option<Sender<Task>>> = LazyLock::new(start);
    let task: Task = Box::new(task);
    match &*TASKS {
        Some(tasks) => {
            let _ = tasks.send(task);
        }
        None => task(),
    }
}

fn start() -> Option<Sender<Task>> {
    let (sender, tasks) = channel::<Task>();
    let body = move || tasks.into_iter().for_each(|task| task());
    let builder = thread::Builder::new().name("pdawl callbacks".to_owned());
    builder.spawn(body).ok()?;
    Some(sender)
}
