//! The threads that drivers start. PoCL computes on threads that it starts when it
//! is loaded and binds to no core. One of them may run on a core where a worker of
//! a host pool is bound, and both then run at half speed.

use std::ffi::CStr;
use std::sync::{Mutex, PoisonError};

use rustix::process::Pid;
use rustix::thread::{gettid, name, set_name};

use crate::runtime::host::affinity;

/// Threads that drivers started.
static DRIVERS: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

/// Threads inherit the name of the thread that starts them, so this name
/// identifies drivers' threads among others that start at the same time.
const MARK: &CStr = c"pdawl-driver";

/// Calls `work`, and remembers the drivers' threads that it starts.
pub(super) fn remember_started<T>(work: impl FnOnce() -> T) -> T {
    let own = name();
    if own.is_err() || set_name(MARK).is_err() {
        return work();
    }
    let result = work();
    let myself = gettid();
    let mut drivers = DRIVERS.lock().unwrap_or_else(PoisonError::into_inner);
    let started = (tasks().into_iter())
        .filter(|task| *task != myself && is_marked(*task) && !drivers.contains(task));
    let started: Vec<Pid> = started.collect();
    drivers.extend(started);
    if let Ok(own) = own {
        // The system accepts a name that it reported itself.
        let _ = set_name(&own);
    }
    result
}

/// Whether a thread has inherited [`MARK`].
fn is_marked(task: Pid) -> bool {
    let path = format!("/proc/self/task/{}/comm", task.as_raw_nonzero());
    std::fs::read(path).is_ok_and(|name| name.trim_ascii_end() == MARK.to_bytes())
}

/// Binds the drivers' threads to these cores, which no host pool uses. Where the
/// system refuses, they keep their cores.
pub fn confine(cores: &[usize]) {
    let drivers = DRIVERS.lock().unwrap_or_else(PoisonError::into_inner);
    for task in drivers.iter() {
        affinity::confine(*task, cores);
    }
}

/// The process's threads; none where the system does not list them.
fn tasks() -> Vec<Pid> {
    let Ok(entries) = std::fs::read_dir("/proc/self/task") else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(Pid::from_raw)
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use rustix::thread::sched_getaffinity;

    use super::*;
    use crate::machine::host::allowed_cores;

    #[test]
    fn threads_started_meanwhile_are_confined() {
        let allowed = allowed_cores(None);
        let (stop, stopped) = channel::<()>();
        let (sender, receiver) = channel();
        let thread = remember_started(|| {
            let thread = std::thread::spawn(move || {
                sender.send(gettid()).unwrap();
                let _ = stopped.recv();
            });
            (thread, receiver.recv().unwrap())
        });
        confine(&allowed[..1]);
        let set = sched_getaffinity(Some(thread.1)).unwrap();
        assert_eq!(set.count(), 1);
        assert!(set.is_set(allowed[0]));
        // Others may be drivers' threads that tests beside this one use.
        confine(&allowed);
        drop(stop);
        thread.0.join().unwrap();
    }
}
