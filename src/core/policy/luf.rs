//! LUF, Least Used in the Future: the eviction of Gonthier, Marchal and Thibault,
//! "Memory-aware scheduling of tasks sharing data on multiple GPUs with dynamic runtime
//! systems", IPDPS 2022, Algorithm 6.
//!
//! The victim is a datum that no task in the device's task buffer needs (n_b = 0) and
//! that the fewest planned tasks need (n_p). Line 7, Belady's rule for data that the
//! buffer needs, has no counterpart: the engine pins the data of all tasks that it was
//! given, so they are never candidates. Line 8, which withdraws planned tasks, belongs
//! to the policy that planned them.
//!
//! The paper leaves ties open. Here a datum that no unplanned task reads goes first, then
//! the least recently used.

use super::Problem;
use super::tournament::Tournament;

/// Which datum leaves a full memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Eviction {
    /// The least recently used, which the engine chooses.
    #[default]
    Lru,
    /// The least used in the future.
    Luf,
}

/// The uses of each datum by the tasks of each device, and the victims in order.
#[derive(Clone, Debug)]
pub(super) struct Luf {
    data: usize,
    uses: Vec<Uses>,
    /// By device. The greatest key is the best victim.
    victims: Vec<Tournament>,
    /// Counts the tasks that ended, to tell which datum was used last.
    clock: u32,
    /// By datum: whether any task that no device has taken reads it.
    later: Vec<bool>,
}

/// The bits of a key, which is inverted so that the best victim has the greatest one.
const PLANNED: u32 = 34;
const LATER: u32 = 33;
const SCARCE: u32 = 32;

#[derive(Clone, Copy, Debug, Default)]
struct Uses {
    present: bool,
    /// n_b and n_p of Algorithm 6.
    buffered: u32,
    planned: u32,
    last: u32,
    /// Whether only the host could give it back.
    scarce: bool,
}

impl Luf {
    pub fn new(problem: &Problem) -> Self {
        let (data, devices) = (problem.data.len(), problem.devices.len());
        Self {
            data,
            uses: vec![Uses::default(); data * devices],
            victims: vec![Tournament::new(data); devices],
            clock: 0,
            later: vec![true; data],
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.uses.fill(Uses::default());
        self.victims.iter_mut().for_each(Tournament::clear);
        self.clock = 0;
    }

    /// Forgets all tasks, and the data of a lost device.
    pub fn lose(&mut self, lost: usize) {
        for device in 0..self.victims.len() {
            for datum in 0..self.data {
                self.change(device, datum, |uses| {
                    uses.buffered = 0;
                    uses.planned = 0;
                    uses.present &= device != lost;
                });
            }
        }
    }

    pub fn arrived(&mut self, device: usize, datum: usize) {
        let clock = self.clock;
        self.change(device, datum, |uses| {
            uses.present = true;
            uses.last = clock;
        });
    }

    pub fn evicted(&mut self, device: usize, datum: usize) {
        self.change(device, datum, |uses| uses.present = false);
    }

    /// A task with these inputs is planned for the device, or is so no longer.
    pub fn plan(&mut self, device: usize, inputs: &[u32]) {
        for datum in inputs {
            self.change(device, *datum as usize, |uses| uses.planned += 1);
        }
    }

    pub fn withdraw(&mut self, device: usize, inputs: &[u32]) {
        for datum in inputs {
            self.change(device, *datum as usize, |uses| uses.planned -= 1);
        }
    }

    /// A task with these inputs enters the device's task buffer, or has ended.
    pub fn give(&mut self, device: usize, inputs: &[u32]) {
        for datum in inputs {
            self.change(device, *datum as usize, |uses| uses.buffered += 1);
        }
    }

    pub fn finish(&mut self, device: usize, inputs: &[u32]) {
        self.clock = self.clock.wrapping_add(1);
        let clock = self.clock;
        for datum in inputs {
            self.change(device, *datum as usize, |uses| {
                uses.buffered -= 1;
                uses.last = clock;
            });
        }
    }

    /// Whether any task that no device has planned or given reads a datum.
    pub fn read_later(&mut self, datum: usize, later: bool) {
        if self.later[datum] != later {
            self.later[datum] = later;
            for device in 0..self.victims.len() {
                self.change(device, datum, |_| {});
            }
        }
    }

    /// Whether no other device can give a datum back faster than the host can. Of the data
    /// that LUF holds equal, those leave first that another device can give back.
    pub fn set_scarce(&mut self, device: usize, datum: usize, scarce: bool) {
        if self.uses[device * self.data + datum].scarce != scarce {
            self.change(device, datum, |uses| uses.scarce = scarce);
        }
    }

    /// The datum that leaves, among those that `evictable` admits: the fewest planned
    /// uses, and of those as above. `None` if the task buffer needs all others.
    pub fn victim(&mut self, device: usize, evictable: &dyn Fn(usize) -> bool) -> Option<usize> {
        self.victims(device, evictable, 1).pop()
    }

    /// So many data of which each may be the victim, in LUF's order. If the first one is
    /// planned to be used, or never used again, it is the only one.
    pub fn victims(
        &mut self,
        device: usize,
        evictable: &dyn Fn(usize) -> bool,
        most: usize,
    ) -> Vec<usize> {
        let victims = &mut self.victims[device];
        let mut seen = Vec::new();
        let mut found = Vec::new();
        while found.len() < most
            && let Some(datum) = victims.first()
        {
            let key = victims.get(datum);
            let is_open = !key >> LATER == 1;
            if !found.is_empty() && !is_open {
                break;
            }
            seen.push((datum, key));
            victims.set(datum, 0);
            if evictable(datum) {
                found.push(datum);
                if !is_open {
                    break;
                }
            }
        }
        for (datum, key) in seen {
            victims.set(datum, key);
        }
        found
    }

    fn change(&mut self, device: usize, datum: usize, change: impl FnOnce(&mut Uses)) {
        let uses = &mut self.uses[device * self.data + datum];
        change(uses);
        let rest = u64::from(self.later[datum]) << LATER | u64::from(uses.scarce) << SCARCE;
        let key = match uses.present && uses.buffered == 0 {
            true => !(u64::from(uses.planned) << PLANNED | rest | u64::from(uses.last)),
            false => 0,
        };
        self.victims[device].set(datum, key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Datum;
    use crate::policy::fixtures::devices;

    #[test]
    fn the_victim_is_the_least_planned_that_the_buffer_does_not_need() {
        let mut luf = Luf::new(&Problem {
            views: Default::default(),
            results: Default::default(),
            data: vec![Datum::default(); 4],
            devices: devices(),
            ..Problem::default()
        });
        assert_eq!(luf.victim(1, &|_| true), None);
        (0..3).for_each(|datum| luf.arrived(1, datum));
        luf.plan(1, &[0, 1]);
        luf.plan(1, &[0, 2]);
        luf.plan(1, &[0, 2, 3]);
        assert_eq!(luf.victim(1, &|_| true), Some(1));
        assert_eq!(luf.victim(1, &|datum| datum != 1), Some(2));
        assert_eq!(luf.victim(1, &|_| false), None);
        luf.withdraw(1, &[0, 1]);
        luf.give(1, &[0, 1]);
        assert_eq!(luf.victim(1, &|_| true), Some(2));
        luf.evicted(1, 2);
        assert_eq!(luf.victim(1, &|_| true), None);
        luf.finish(1, &[0, 1]);
        assert_eq!(luf.victim(1, &|_| true), Some(1));
        luf.lose(0);
        assert_eq!(luf.victim(1, &|datum| datum != 1), Some(0));
    }
}
