//! Cores for the thread that drives the runtime.
//!
//! The driver thread yields while it polls. On a core where a worker is bound, the
//! worker then keeps the core until its chunk is done. On 16 cores beside an H200
//! launches came a whole chunk late, for 20 to 100 ms at a time, and steps took
//! 3 ms instead of 1.4.

use rustix::process::Pid;
use rustix::thread::gettid;

use super::affinity;
use crate::machine::host::allowed_cores;

/// The driver thread and the cores reserved for it.
#[derive(Debug, Default)]
pub struct DriverThread {
    /// Cores that no device was given.
    spare: Vec<usize>,
    /// The thread that drives, and the cores that it had before.
    thread: Option<(Pid, Vec<usize>)>,
}

impl DriverThread {
    /// Reserves these cores.
    pub fn on(spare: Vec<usize>) -> Self {
        Self {
            spare,
            thread: None,
        }
    }

    /// The calling thread begins to drive. It keeps its cores if none is reserved,
    /// or if it is `watched`: its affinity mask then says which cores may be used.
    pub fn begin(&mut self, watched: Pid) {
        let thread = gettid();
        if self.spare.is_empty() || self.thread.is_some() || thread == watched {
            return;
        }
        self.thread = Some((thread, allowed_cores(None)));
        affinity::confine(thread, &self.spare);
    }

    /// Moves the driver thread after a change of the `allowed` cores, of which
    /// workers have those `taken`.
    pub fn settle(&self, allowed: &[usize], taken: &[Option<usize>]) {
        let Some((thread, _)) = &self.thread else {
            return;
        };
        let left = |cores: &[usize]| -> Vec<usize> {
            let is_left = |core: &usize| allowed.contains(core) && !taken.contains(&Some(*core));
            cores.iter().copied().filter(is_left).collect()
        };
        let choices = [left(&self.spare), left(allowed)];
        let found = choices.into_iter().find(|cores| !cores.is_empty());
        affinity::confine(*thread, found.as_deref().unwrap_or(allowed));
    }

    /// Driving has ended; the thread gets its former cores back.
    pub fn end(&mut self) {
        if let Some((thread, before)) = self.thread.take() {
            affinity::confine(thread, &before);
        }
    }
}
