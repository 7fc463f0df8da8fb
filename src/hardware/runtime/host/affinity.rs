//! Assigns workers to cores, again whenever the cores that the process may use
//! change. A worker without a core rests.

use rustix::process::Pid;
use rustix::thread::{CpuSet, gettid, sched_setaffinity};

use crate::machine::host::allowed_cores;

/// Binds a thread (`None`: the calling one) to a core. False when the system
/// refuses; the thread then keeps its cores.
pub fn pin(thread: Option<Pid>, core: usize) -> bool {
    core < CpuSet::MAX_CPU && sched_setaffinity(thread, &cpu_set(&[core])).is_ok()
}

/// Binds a thread to these cores, or leaves it where it is if there are none or
/// the system refuses.
pub fn confine(thread: Pid, cores: &[usize]) {
    let set = cpu_set(cores);
    if set.count() > 0 {
        let _ = sched_setaffinity(Some(thread), &set);
    }
}

fn cpu_set(cores: &[usize]) -> CpuSet {
    let mut set = CpuSet::new();
    for core in cores.iter().filter(|core| **core < CpuSet::MAX_CPU) {
        set.set(*core);
    }
    set
}

/// For each pool and worker the core to run on, or `None` to rest.
///
/// `assigned` are the cores that each pool's workers were opened with and
/// `allowed` those that may be used now. A worker whose assigned core is allowed stays;
/// the others move to allowed cores that are assigned to no worker, or rest if none is
/// left. A pool left without any core keeps one worker, on a core that it
/// then shares, so that its commands still end.
pub fn assign(assigned: &[Vec<usize>], allowed: &[usize]) -> Vec<Vec<Option<usize>>> {
    if allowed.is_empty() {
        return assigned
            .iter()
            .map(|pool| pool.iter().copied().map(Some).collect())
            .collect();
    }
    let mut free: Vec<usize> = allowed.to_vec();
    let mut take = |wanted: Option<usize>| {
        let position = match wanted {
            Some(core) => free.iter().position(|free| *free == core),
            None => (!free.is_empty()).then_some(0),
        }?;
        Some(free.remove(position))
    };
    let mut cores: Vec<Vec<Option<usize>>> = assigned
        .iter()
        .map(|pool| pool.iter().map(|core| take(Some(*core))).collect())
        .collect();
    // Pools with the fewest cores choose first.
    let mut order: Vec<usize> = (0..cores.len()).collect();
    order.sort_by_key(|pool| cores[*pool].iter().flatten().count());
    for pool in order {
        for core in &mut cores[pool] {
            if core.is_none() {
                *core = take(None);
            }
        }
    }
    for (index, pool) in cores.iter_mut().enumerate() {
        if pool.iter().all(Option::is_none)
            && let Some(first) = pool.first_mut()
        {
            *first = Some(allowed[index % allowed.len()]);
        }
    }
    cores
}

// Cores for the thread that drives the runtime.
//
// The driver thread yields while it polls. On a core where a worker is bound, the
// worker then keeps the core until its chunk is done. On 16 cores beside an H200
// launches came a whole chunk late, for 20 to 100 ms at a time, and steps took
// 3 ms instead of 1.4.

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
        confine(thread, &self.spare);
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
        confine(*thread, found.as_deref().unwrap_or(allowed));
    }

    /// Driving has ended; the thread gets its former cores back.
    pub fn end(&mut self) {
        if let Some((thread, before)) = self.thread.take() {
            confine(thread, &before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_stay_on_their_assigned_core_while_it_is_allowed() {
        let cores = assign(&[vec![0, 1], vec![2, 3]], &[0, 1, 2, 3]);
        assert_eq!(cores, [vec![Some(0), Some(1)], vec![Some(2), Some(3)]]);
    }

    #[test]
    fn no_more_workers_than_allowed_cores_run() {
        let cores = assign(&[vec![0, 1, 2, 3]], &[1, 3]);
        assert_eq!(cores, [vec![None, Some(1), None, Some(3)]]);
    }

    #[test]
    fn workers_move_to_cores_that_replace_theirs() {
        let cores = assign(&[vec![0, 1, 2, 3]], &[2, 3, 4, 5]);
        assert_eq!(cores, [vec![Some(4), Some(5), Some(2), Some(3)]]);
    }

    #[test]
    fn a_pool_that_lost_every_core_shares_one() {
        let cores = assign(&[vec![0], vec![1]], &[0]);
        assert_eq!(cores, [vec![Some(0)], vec![Some(0)]]);
    }

    #[test]
    fn a_pool_without_cores_is_served_before_a_fuller_one() {
        let cores = assign(&[vec![0, 1], vec![2]], &[0, 3]);
        assert_eq!(cores, [vec![Some(0), None], vec![Some(3)]]);
    }

    #[test]
    fn workers_that_share_an_assigned_core_take_turns_for_it() {
        let cores = assign(&[vec![0, 0, 0]], &[0, 1]);
        assert_eq!(cores, [vec![Some(0), Some(1), None]]);
    }

    #[test]
    fn an_unreadable_mask_changes_nothing() {
        assert_eq!(assign(&[vec![5]], &[]), [vec![Some(5)]]);
    }
}
