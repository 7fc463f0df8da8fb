//! The drivers' own threads. PoCL computes on threads that it starts when it
//! is loaded and binds to no core; left alone, one lands on a core where a
//! host pool's worker is bound, and both run at half speed.

use std::sync::{Mutex, PoisonError};

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_setaffinity};

/// Threads that appeared while drivers set themselves up.
static DRIVERS: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

/// Does what may start drivers' threads, and remembers those.
pub(super) fn watch<T>(work: impl FnOnce() -> T) -> T {
    let before = tasks();
    let result = work();
    let new = tasks().into_iter().filter(|task| !before.contains(task));
    DRIVERS
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .extend(new);
    result
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

    use rustix::thread::{gettid, sched_getaffinity};

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
