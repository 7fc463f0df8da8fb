//! What a load costs each of the tasks that it helps, kept up to date.
//!
//! The gain of a datum on a device is the work that its load makes possible: the seconds
//! of the available tasks that lack nothing else, and a part of the seconds of those that
//! lack one datum more. The seconds of its load, divided by its gain, are the load's
//! *share* in each second of work. A task costs the sum of the shares of what it lacks.
//!
//! A datum that a device starts or ceases to hold changes the tasks that read it and
//! what else these lack; a task that is taken changes what it lacks.

use crate::policy::Problem;
use crate::policy::lacks::{Lacking, Lacks, UNABLE};
use crate::policy::tournament::Tournament;

/// A second of a task that lacks another datum, too, counts so much. The other load may
/// serve other tasks better, or never come.
pub const NEARLY: f64 = 0.4;

/// The same of a task of which the device has nothing yet, and on a device whose memory
/// has room for all data: it loads each datum once, so only the begin matters, what makes
/// tasks possible at once. Of equal data, those that help more tasks still come first.
pub const HARDLY: f64 = 0.05;

/// So many data are examined for a task that lacks two, or for a victim.
pub const CANDIDATES: usize = 32;

/// What tasks lack, and the gains.
pub struct Shares {
    pub lacks: Lacks,
    data: usize,
    /// By task and device: the nanoseconds of the task.
    nanos: Vec<u64>,
    /// By device: the seconds of a byte from the host, while all devices load; and from
    /// each other device, where there is a way.
    host: Vec<f64>,
    peers: Vec<Vec<Option<f64>>>,
    bytes: Vec<f64>,
    /// By device and datum: the seconds of a load now.
    seconds: Vec<f64>,
    /// By device and datum.
    gains: Vec<Gain>,
    /// By device and datum that it does not hold: the gain in a second of loading, the
    /// inverse of the share; and by device, these in order.
    rates: Vec<f64>,
    ranked: Vec<Tournament>,
    /// By device: as `ranked`, of the data that are all that some available task lacks.
    ranked_alone: Vec<Tournament>,
    /// By device: whether its memory has room for all data.
    roomy: Vec<bool>,
    /// The data that some device started or ceased to hold.
    moved: Vec<u32>,
}

/// Nanoseconds of the available tasks that lack nothing but this datum, and those that
/// count of the tasks that lack one more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Gain {
    alone: u64,
    nearly: u64,
}

impl Gain {
    fn part(&mut self, others: u32) -> Option<&mut u64> {
        match others {
            0 => Some(&mut self.alone),
            1 => Some(&mut self.nearly),
            _ => None,
        }
    }
}

impl Shares {
    /// The shares of no available task.
    pub fn new(problem: &Problem) -> Self {
        let (data, devices) = (problem.data.len(), problem.devices.len());
        let nanos = problem.tasks.iter().flat_map(|task| {
            let all = task.seconds.iter();
            all.map(|seconds| ((seconds.unwrap_or(0.0) * 1e9) as u64).max(1))
        });
        let runs_some = |d: usize| problem.tasks.iter().any(|task| task.seconds[d].is_some());
        let linked = (0..devices).filter(|d| problem.devices[*d].bandwidth.is_some());
        let sharing = linked.filter(|d| runs_some(*d));
        let part = problem
            .links
            .bus
            .map(|bus| bus / sharing.count().max(1) as f64);
        let host = problem.devices.iter().map(|device| {
            let link = device.bandwidth.unwrap_or(f64::INFINITY);
            1.0 / part.map_or(link, |part| part.min(link))
        });
        let peers = (0..devices).map(|to| {
            let from = (0..devices).map(|from| problem.links.peer(from, to));
            from.map(|rate| rate.map(|rate| 1.0 / rate)).collect()
        });
        let all: u64 = problem.data.iter().map(|datum| datum.bytes).sum();
        let memories = problem.devices.iter().map(|device| device.memory);
        let roomy = memories.map(|memory| memory.is_none_or(|memory| memory >= all));
        Self {
            lacks: Lacks::new(problem),
            data,
            nanos: nanos.collect(),
            host: host.collect(),
            peers: peers.collect(),
            bytes: problem.data.iter().map(|d| d.bytes.max(1) as f64).collect(),
            seconds: vec![0.0; data * devices],
            gains: vec![Gain::default(); data * devices],
            rates: vec![0.0; data * devices],
            ranked: vec![Tournament::new(data); devices],
            ranked_alone: vec![Tournament::new(data); devices],
            roomy: roomy.collect(),
            moved: Vec::new(),
        }
    }

    /// From now on no task is available. Those of which `taken` says so have ended; lost
    /// devices run nothing.
    pub fn reset(&mut self, problem: &Problem, lost: &[bool], taken: impl Fn(usize) -> bool) {
        self.lacks.reset(problem, lost, taken);
        self.gains.fill(Gain::default());
        self.rates.fill(0.0);
        let ranked = self.ranked.iter_mut().chain(&mut self.ranked_alone);
        ranked.for_each(Tournament::clear);
        self.moved = (0..self.data as u32).collect();
        (0..self.data).for_each(|datum| self.measure(datum));
    }

    /// A datum that some device started or ceased to hold, each time once.
    pub fn pop_moved(&mut self) -> Option<usize> {
        self.moved.pop().map(|datum| datum as usize)
    }

    /// A task becomes available.
    pub fn add(&mut self, task: usize) {
        let lacks = &mut self.lacks;
        lacks.available[task] = true;
        if std::mem::take(&mut lacks.taken[task]) {
            for datum in lacks.inputs.of(task) {
                lacks.unprocessed[*datum as usize] += 1;
            }
        }
        for device in 0..lacks.devices {
            self.count(task, device, true);
            self.frees(task, device);
        }
    }

    /// A device takes an available task.
    pub fn take(&mut self, task: usize) {
        for device in 0..self.lacks.devices {
            self.count(task, device, false);
        }
        let lacks = &mut self.lacks;
        lacks.available[task] = false;
        lacks.taken[task] = true;
        for datum in lacks.inputs.of(task) {
            lacks.unprocessed[*datum as usize] -= 1;
        }
    }

    /// The available task that costs a device least, of those that lack one datum, and
    /// of those that lack two and read one of the data with the greatest gains.
    pub fn cheapest(&mut self, device: usize) -> Option<usize> {
        let mut least = self.cheapest_alone(device);
        let mut seen = Vec::new();
        while seen.len() < CANDIDATES
            && let Some(datum) = self.ranked[device].first()
        {
            seen.push(datum);
            // What a task costs at least that lacks this datum and another one, and all
            // further ones.
            let share = |datum: usize| 1.0 / self.rates[device * self.data + datum];
            let bound = share(datum) + share(seen[0]);
            if least.is_some_and(|(least, _)| least <= bound) {
                break;
            }
            self.ranked[device].set(datum, 0);
            // Then a task that lacks it alone costs less.
            if self.gains[device * self.data + datum].alone > 0 {
                continue;
            }
            let readers = self.lacks.readers.of(datum).iter();
            for task in readers.map(|task| *task as usize) {
                if self.lacks.available[task] && self.lacks.count(task, device) == 2 {
                    let cost = self.cost(task, device);
                    if least.is_none_or(|(least, _)| cost < least) {
                        least = Some((cost, task));
                    }
                    if cost <= bound {
                        break;
                    }
                }
            }
        }
        for datum in seen {
            let rate = self.rates[device * self.data + datum];
            self.ranked[device].set(datum, key(rate));
        }
        least.map(|(_, task)| task)
    }

    /// The cheapest available task that lacks one datum, and its cost. However many data
    /// have greater gains, of tasks that lack two, it is found at once.
    fn cheapest_alone(&mut self, device: usize) -> Option<(f64, usize)> {
        let datum = self.ranked_alone[device].first()?;
        let readers = self.lacks.readers.of(datum).iter();
        let mut readers = readers.map(|task| *task as usize);
        let task = readers
            .find(|task| self.lacks.available[*task] && self.lacks.count(*task, device) == 1)?;
        Some((1.0 / self.rates[device * self.data + datum], task))
    }

    /// How many inputs of a task are in no device's own memory.
    pub fn held_nowhere(&self, task: usize) -> usize {
        let inputs = self.lacks.inputs.of(task).iter();
        let own = (0..self.lacks.devices).filter(|device| !self.lacks.holdings.in_host(*device));
        let nowhere = inputs.filter(|datum| {
            let mut own = own.clone();
            !own.any(|device| self.lacks.holdings.holds(device, **datum as usize))
        });
        nowhere.count()
    }

    /// Of these data, which a device holds, the first one that it will use last: the
    /// cheapest task that reads it costs most in a second of loading it again.
    pub fn used_last(&self, device: usize, data: &[usize]) -> Option<usize> {
        let mut last: Option<(f64, usize)> = None;
        for datum in data.iter().copied() {
            let seconds = self.seconds[device * self.data + datum];
            let readers = self
                .lacks
                .readers
                .of(datum)
                .iter()
                .map(|task| *task as usize);
            let readers = readers.filter(|task| {
                !self.lacks.taken[*task] && self.lacks.count(*task, device) < UNABLE
            });
            let mut least = f64::INFINITY;
            for task in readers {
                least = least.min(self.cost(task, device) / seconds);
                if last.is_some_and(|(latest, _)| least <= latest) {
                    break;
                }
            }
            if last.is_none_or(|(latest, _)| least > latest) {
                last = Some((least, datum));
            }
        }
        last.map(|(_, datum)| datum)
    }

    /// Seconds of the loads that a task needs on a device now: all, or its part where readers of a
    /// datum share the load.
    pub fn load_seconds(&self, task: usize, device: usize, shared: bool) -> f64 {
        let missing = self.lacks.missing(task, device).map(|datum| datum as usize);
        let loads = missing.map(|datum| {
            let readers = if shared {
                self.lacks.readers.of(datum).len()
            } else {
                1
            };
            self.seconds[device * self.data + datum] / readers as f64
        });
        loads.sum()
    }

    /// Seconds of bringing a datum to host memory; 0 where a device computes there.
    pub fn store_seconds(&self, datum: usize, device: usize) -> f64 {
        match self.lacks.holdings.in_host(device) {
            true => 0.0,
            false => self.host[device] * self.bytes[datum],
        }
    }

    /// Whether no other device can give a datum to this one faster than the host.
    pub fn is_scarce(&self, device: usize, datum: usize) -> bool {
        let host = self.host[device] * self.bytes[datum];
        self.seconds[device * self.data + datum] >= host
    }

    /// The nanoseconds of work that a second of loading a datum makes possible.
    #[cfg(test)]
    pub fn rate(&self, device: usize, datum: usize) -> f64 {
        self.rates[device * self.data + datum]
    }

    /// The nanoseconds that count of an available task among the gain of a datum, if the
    /// task lacks so many others on a device.
    fn counted(&self, task: usize, device: usize, others: u32) -> u64 {
        let nanos = self.nanos[task * self.lacks.devices + device];
        match others {
            1 if self.roomy[device] || self.lacks.inputs.of(task).len() == 2 => {
                (nanos as f64 * HARDLY) as u64
            }
            1 => (nanos as f64 * NEARLY) as u64,
            _ => nanos,
        }
    }

    /// The shares of what a task lacks on a device.
    fn cost(&self, task: usize, device: usize) -> f64 {
        let missing = self.lacks.missing(task, device);
        let rates = &self.rates[device * self.data..][..self.data];
        missing.map(|datum| 1.0 / rates[datum as usize]).sum()
    }

    /// Notes what a load of a datum takes now on each device, and ranks it there.
    fn measure(&mut self, datum: usize) {
        for device in 0..self.lacks.devices {
            let peers = self.peers[device].iter().enumerate();
            let having = peers
                .filter(|(peer, _)| *peer != device && self.lacks.holdings.holds(*peer, datum));
            let rates = having.filter_map(|(_, rate)| *rate);
            let least = rates.fold(self.host[device], f64::min);
            self.seconds[device * self.data + datum] = least * self.bytes[datum];
            self.rank(device, datum);
        }
    }

    /// The number of data that an available task lacks on a device has changed, because
    /// of `moved`: the others have more or less to wait for.
    fn shift(&mut self, task: usize, device: usize, moved: usize, (before, after): (u32, u32)) {
        if before.min(after) >= UNABLE {
            return;
        }
        for index in 0..self.lacks.inputs.of(task).len() {
            let datum = self.lacks.inputs.of(task)[index] as usize;
            if datum == moved {
                continue;
            }
            let own = u32::from(!self.lacks.holdings.holds(device, datum));
            let (before, after) = (before - own, after - own);
            let counted = [before, after].map(|others| self.counted(task, device, others));
            let gain = &mut self.gains[device * self.data + datum];
            if let Some(part) = gain.part(before) {
                *part -= counted[0];
            }
            if let Some(part) = gain.part(after) {
                *part += counted[1];
            }
            self.rank(device, datum);
        }
    }

    /// Counts an available task among the gains on a device, or no longer.
    fn count(&mut self, task: usize, device: usize, counts: bool) {
        let lacks = self.lacks.count(task, device);
        if lacks >= UNABLE || self.lacks.holdings.in_host(device) {
            return;
        }
        for index in 0..self.lacks.inputs.of(task).len() {
            let datum = self.lacks.inputs.of(task)[index] as usize;
            let others = lacks - u32::from(!self.lacks.holdings.holds(device, datum));
            let counted = self.counted(task, device, others);
            let gain = &mut self.gains[device * self.data + datum];
            if let Some(part) = gain.part(others) {
                match counts {
                    true => *part += counted,
                    false => *part -= counted,
                }
                self.rank(device, datum);
            }
        }
    }

    fn frees(&mut self, task: usize, device: usize) {
        if self.lacks.count(task, device) == 0 {
            self.lacks.frees(task, device);
        }
    }

    fn rank(&mut self, device: usize, datum: usize) {
        let gain = self.gains[device * self.data + datum];
        let nanos = (gain.alone + gain.nearly) as f64;
        let rate = match self.lacks.holdings.holds(device, datum) {
            true => 0.0,
            false => nanos / self.seconds[device * self.data + datum],
        };
        self.rates[device * self.data + datum] = rate;
        self.ranked[device].set(datum, key(rate));
        let alone = if gain.alone > 0 { rate } else { 0.0 };
        self.ranked_alone[device].set(datum, key(alone));
    }
}

impl Lacking for Shares {
    fn lacks(&mut self) -> &mut Lacks {
        &mut self.lacks
    }

    fn moves(&mut self, device: usize, datum: usize) {
        let held = self.lacks.holdings.holds(device, datum);
        for index in 0..self.lacks.readers.of(datum).len() {
            let task = self.lacks.readers.of(datum)[index] as usize;
            let changed = self.lacks.change(task, device, held);
            if self.lacks.available[task] {
                self.shift(task, device, datum, changed);
                self.frees(task, device);
            }
        }
        self.measure(datum);
        self.moved.push(datum as u32);
    }
}

/// The key of a rate, which is not negative: such numbers and their bits have one order.
fn key(rate: f64) -> u64 {
    rate.to_bits()
}
