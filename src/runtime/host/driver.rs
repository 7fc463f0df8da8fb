//! The thread that drives the runtime, and the cores that it is kept on.
//!
//! It yields while it watches for ends. On a core where a worker is bound, the
//! worker then has the core until it is through: on 16 cores beside an H200,
//! whose kernel preempts nobody, launches came a whole chunk late, in bouts of
//! 20 to 100 ms, and steps took 3 ms instead of 1.4.

use rustix::process::Pid;
use rustix::thread::gettid;

use super::affinity;
use crate::machine::host::allowed_cores;

/// Where the driving thread belongs.
#[derive(Debug, Default)]
pub struct Driver {
    /// Cores that no device was given.
    spare: Vec<usize>,
    /// The thread that drives, and the cores that it had before.
    thread: Option<(Pid, Vec<usize>)>,
}

impl Driver {
    /// One for whom these cores are spared.
    pub fn on(spare: Vec<usize>) -> Self {
        Self {
            spare,
            thread: None,
        }
    }

    /// The calling thread drives. It is left alone if nothing is spared for it,
    /// or if it is `watched`: its affinity mask is then what says which cores
    /// may be used.
    pub fn begin(&mut self, watched: Pid) {
        let thread = gettid();
        if self.spare.is_empty() || self.thread.is_some() || thread == watched {
            return;
        }
        self.thread = Some((thread, allowed_cores(None)));
        affinity::confine(thread, &self.spare);
    }

    /// Other cores may be used now, of which workers have those `taken`.
    pub fn settle(&self, allowed: &[usize], taken: &[Option<usize>]) {
        let Some((thread, _)) = &self.thread else {
            return;
        };
        let is_taken = |core: &usize| taken.contains(&Some(*core));
        let left = |cores: &[usize]| -> Vec<usize> {
            let left = cores.iter().filter(|core| allowed.contains(core));
            left.copied().filter(|core| !is_taken(core)).collect()
        };
        let spared = left(&self.spare);
        let free = left(allowed);
        let found = [spared, free].into_iter().find(|cores| !cores.is_empty());
        affinity::confine(*thread, found.as_deref().unwrap_or(allowed));
    }

    /// Nobody drives any more.
    pub fn end(&mut self) {
        if let Some((thread, before)) = self.thread.take() {
            affinity::confine(thread, &before);
        }
    }
}
