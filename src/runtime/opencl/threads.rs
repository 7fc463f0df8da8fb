//! The drivers' own threads. PoCL computes on threads that it starts when it
//! is loaded and binds to no core; left alone, one lands on a core where a
//! host pool's worker is bound, and both run at half speed.

use std::ffi::CStr;
use std::sync::{Mutex, PoisonError};

use rustix::process::Pid;
use rustix::thread::{CpuSet, gettid, name, sched_setaffinity, set_name};

/// Threads that drivers started.
static DRIVERS: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

/// A thread's name passes on to those that it starts, so this tells drivers'
/// threads from others that appear at the same time.
const MARK: &CStr = c"pdawl-driver";

/// Does what may start drivers' threads, and remembers those.
pub(super) fn watch<T>(work: impl FnOnce() -> T) -> T {
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
        // Refused for no name that the system itself gave.
        let _ = set_name(&own);
    }
    result
}

/// Whether a thread has the name of one that drivers were set up by.
fn is_marked(task: Pid) -> bool {
    let path = format!("/proc/self/task/{}/comm", task.as_raw_nonzero());
    std::fs::read(path).is_ok_and(|name| name.trim_ascii_end() == MARK.to_bytes())
}

/// Binds the drivers' threads to these cores, which no host pool uses. Where
/// the system refuses, they run wherever they are let.
pub fn confine(cores: &[usize]) {
    let mut set = CpuSet::new();
    for core in cores.iter().filter(|core| **core < CpuSet::MAX_CPU) {
        set.set(*core);
    }
    let drivers = DRIVERS.lock().unwrap_or_else(PoisonError::into_inner);
    for task in drivers.iter() {
        // A thread that has ended meanwhile needs no core.
        let _ = sched_setaffinity(Some(*task), &set);
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
        let (tell, told) = channel();
        let thread = watch(|| {
            let thread = std::thread::spawn(move || {
                tell.send(gettid()).unwrap();
                let _ = stopped.recv();
            });
            (thread, told.recv().unwrap())
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
