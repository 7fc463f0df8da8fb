//! What a load costs each of the tasks that it helps, kept up to date.
//!
//! The gain of a datum on a device is the work that its load makes possible: the seconds
//! of the available tasks that lack nothing else, and a part of the seconds of those that
//! lack one datum more. The seconds of its load, divided by its gain, are the load's
//! *share* in each second of work. A task costs the sum of the shares of what it lacks.
//!
//! A datum that a device starts or ceases to hold changes the tasks that read it and
//! what else these lack; a task that is taken changes what it lacks.

use std::collections::VecDeque;

use crate::policy::Problem;
use crate::policy::adjacency::Adjacency;
use crate::policy::holdings::Holdings;
use crate::policy::tournament::Tournament;

/// A second of a task that lacks another datum, too, counts so much. The other load may
/// serve other tasks better, or never come.
pub const NEARLY: f64 = 0.25;

/// So many data are examined for a task, or for a victim.
pub const CANDIDATES: usize = 32;

/// A task that lacks so many inputs never runs.
const UNABLE: u32 = 1 << 31;

/// What devices hold, the available tasks (ready, and in no device's plan or buffer), and
/// the gains.
pub struct Shares {
    pub holdings: Holdings,
    pub inputs: Adjacency,
    pub readers: Adjacency,
    devices: usize,
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
    available: Vec<bool>,
    /// By task: whether it is in some device's plan or buffer, or has ended.
    taken: Vec<bool>,
    /// By datum: its readers that no device has taken.
    pub unprocessed: Vec<u32>,
    /// By task and device: how many inputs it lacks.
    lacks: Vec<u32>,
    /// By device and datum.
    gains: Vec<Gain>,
    /// By device and datum that it does not hold: the gain in a second of loading, the
    /// inverse of the share; and by device, these in order.
    rates: Vec<f64>,
    ranked: Vec<Tournament>,
    /// By device: the tasks that came to lack nothing. Some are no longer free, and some
    /// are there twice.
    freed: Vec<VecDeque<u32>>,
    /// The data that some device started or ceased to hold.
    moved: Vec<u32>,
}

/// Nanoseconds of the available tasks that lack nothing but this datum, and of those that
/// lack one more.
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
        let (tasks, data) = (problem.tasks.len(), problem.data.len());
        let devices = problem.devices.len();
        let nanos = problem.tasks.iter().flat_map(|task| {
            let all = task.seconds.iter();
            all.map(|seconds| ((seconds.unwrap_or(0.0) * 1e9) as u64).max(1))
        });
        let sharing = problem.devices.iter().filter(|d| d.bandwidth.is_some());
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
        Self {
            holdings: Holdings::new(problem),
            inputs: Adjacency::inputs(problem),
            readers: Adjacency::readers(problem),
            devices,
            data,
            nanos: nanos.collect(),
            host: host.collect(),
            peers: peers.collect(),
            bytes: problem.data.iter().map(|d| d.bytes.max(1) as f64).collect(),
            seconds: vec![0.0; data * devices],
            available: vec![false; tasks],
            taken: vec![false; tasks],
            unprocessed: vec![0; data],
            lacks: vec![0; tasks * devices],
            gains: vec![Gain::default(); data * devices],
            rates: vec![0.0; data * devices],
            ranked: vec![Tournament::new(data); devices],
            freed: vec![VecDeque::new(); devices],
            moved: Vec::new(),
        }
    }

    /// From now on no task is available. Those of which `taken` says so have ended; lost
    /// devices run nothing.
    pub fn reset(&mut self, problem: &Problem, lost: &[bool], taken: impl Fn(usize) -> bool) {
        self.available.fill(false);
        self.unprocessed.fill(0);
        self.gains.fill(Gain::default());
        self.rates.fill(0.0);
        self.ranked.iter_mut().for_each(Tournament::clear);
        self.freed.iter_mut().for_each(VecDeque::clear);
        self.moved = (0..self.data as u32).collect();
        (0..self.data).for_each(|datum| self.measure(datum));
        for task in 0..problem.tasks.len() {
            let inputs = self.inputs.of(task);
            self.taken[task] = taken(task);
            for datum in inputs.iter().filter(|_| !self.taken[task]) {
                self.unprocessed[*datum as usize] += 1;
            }
            for (device, lost) in lost.iter().enumerate() {
                let mut lacks = missing(inputs, &self.holdings, device).count() as u32;
                if *lost || !problem.able(task, device) {
                    lacks += UNABLE;
                }
                self.lacks[task * self.devices + device] = lacks;
            }
        }
    }

    /// A datum that some device started or ceased to hold, each time once.
    pub fn pop_moved(&mut self) -> Option<usize> {
        self.moved.pop().map(|datum| datum as usize)
    }

    /// A task becomes available.
    pub fn add(&mut self, task: usize) {
        self.available[task] = true;
        if std::mem::take(&mut self.taken[task]) {
            for datum in self.inputs.of(task) {
                self.unprocessed[*datum as usize] += 1;
            }
        }
        for device in 0..self.devices {
            self.count(task, device, true);
            self.frees(task, device);
        }
    }

    /// A device takes an available task.
    pub fn take(&mut self, task: usize) {
        for device in 0..self.devices {
            self.count(task, device, false);
        }
        self.available[task] = false;
        self.taken[task] = true;
        for datum in self.inputs.of(task) {
            self.unprocessed[*datum as usize] -= 1;
        }
    }

    /// A datum is in a device's memory, or no longer.
    pub fn arrived(&mut self, device: usize, datum: usize) {
        if self.holdings.arrived(device, datum) {
            self.moves(device, datum);
        }
    }

    pub fn evicted(&mut self, device: usize, datum: usize) {
        if self.holdings.evicted(device, datum) {
            self.moves(device, datum);
        }
    }

    /// A device will load all inputs of a task, or need not any longer.
    pub fn reserve(&mut self, task: usize, device: usize) {
        for index in 0..self.inputs.of(task).len() {
            let datum = self.inputs.of(task)[index] as usize;
            if self.holdings.reserve(device, datum) {
                self.moves(device, datum);
            }
        }
    }

    pub fn release(&mut self, task: usize, device: usize) {
        for index in 0..self.inputs.of(task).len() {
            let datum = self.inputs.of(task)[index] as usize;
            if self.holdings.release(device, datum) {
                self.moves(device, datum);
            }
        }
    }

    /// The first available task that came to lack nothing on a device. Who asks takes it.
    pub fn pop_freed(&mut self, device: usize) -> Option<usize> {
        loop {
            let task = self.freed[device].pop_front()? as usize;
            if self.available[task] && self.lacks[task * self.devices + device] == 0 {
                return Some(task);
            }
        }
    }

    /// The available task that costs a device least, of those that read the data with
    /// the greatest gains and lack one other datum at most.
    pub fn cheapest(&mut self, device: usize) -> Option<usize> {
        let mut seen = Vec::new();
        let mut least: Option<(f64, usize)> = None;
        while seen.len() < CANDIDATES
            && let Some(datum) = self.ranked[device].first()
        {
            // What a task that reads this datum costs at least, and all further ones.
            let share = 1.0 / self.rates[device * self.data + datum];
            if least.is_some_and(|(least, _)| least <= share) {
                break;
            }
            seen.push(datum);
            self.ranked[device].set(datum, 0);
            let alone = self.gains[device * self.data + datum].alone > 0;
            let other = 1.0 / self.rates[device * self.data + seen[0]];
            let bound = if alone { share } else { share + other };
            for task in self.readers.of(datum).iter().map(|task| *task as usize) {
                if least.is_some_and(|(least, _)| least <= bound) {
                    break;
                }
                let lacks = self.lacks[task * self.devices + device];
                if self.available[task] && lacks <= 2 && (lacks == 1 || !alone) {
                    let cost = self.cost(task, device);
                    if least.is_none_or(|(least, _)| cost < least) {
                        least = Some((cost, task));
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

    /// How many inputs of a task are in no device's own memory.
    pub fn held_nowhere(&self, task: usize) -> usize {
        let inputs = self.inputs.of(task).iter();
        let own = (0..self.devices).filter(|device| !self.holdings.in_host(*device));
        let nowhere = inputs.filter(|datum| {
            let mut own = own.clone();
            !own.any(|device| self.holdings.holds(device, **datum as usize))
        });
        nowhere.count()
    }

    /// Of these data, which a device holds, the first one that it will use last: the
    /// cheapest task that reads it costs most in a second of loading it again.
    pub fn used_last(&self, device: usize, data: &[usize]) -> Option<usize> {
        let mut last: Option<(f64, usize)> = None;
        for datum in data.iter().copied() {
            let seconds = self.seconds[device * self.data + datum];
            let readers = self.readers.of(datum).iter().map(|task| *task as usize);
            let readers = readers.filter(|task| {
                !self.taken[*task] && self.lacks[task * self.devices + device] < UNABLE
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

    /// The shares of what a task lacks on a device.
    fn cost(&self, task: usize, device: usize) -> f64 {
        let missing = missing(self.inputs.of(task), &self.holdings, device);
        let rates = &self.rates[device * self.data..][..self.data];
        missing.map(|datum| 1.0 / rates[datum as usize]).sum()
    }

    /// Notes what a load of a datum takes now on each device, and ranks it there.
    fn measure(&mut self, datum: usize) {
        for device in 0..self.devices {
            let peers = self.peers[device].iter().enumerate();
            let having =
                peers.filter(|(peer, _)| *peer != device && self.holdings.holds(*peer, datum));
            let rates = having.filter_map(|(_, rate)| *rate);
            let least = rates.fold(self.host[device], f64::min);
            self.seconds[device * self.data + datum] = least * self.bytes[datum];
            self.rank(device, datum);
        }
    }

    /// A device started or ceased to hold a datum.
    fn moves(&mut self, device: usize, datum: usize) {
        let held = self.holdings.holds(device, datum);
        for index in 0..self.readers.of(datum).len() {
            let task = self.readers.of(datum)[index] as usize;
            let lacks = &mut self.lacks[task * self.devices + device];
            let before = *lacks;
            *lacks = if held { before - 1 } else { before + 1 };
            if self.available[task] {
                self.shift(task, device, datum, before);
                self.frees(task, device);
            }
        }
        self.measure(datum);
        self.moved.push(datum as u32);
    }

    /// The number of data that an available task lacks on a device has changed, because
    /// of `moved`: the others have more or less to wait for.
    fn shift(&mut self, task: usize, device: usize, moved: usize, before: u32) {
        let after = self.lacks[task * self.devices + device];
        if before.min(after) >= UNABLE {
            return;
        }
        let nanos = self.nanos[task * self.devices + device];
        for index in 0..self.inputs.of(task).len() {
            let datum = self.inputs.of(task)[index] as usize;
            if datum == moved {
                continue;
            }
            let own = u32::from(!self.holdings.holds(device, datum));
            let gain = &mut self.gains[device * self.data + datum];
            if let Some(part) = gain.part(before - own) {
                *part -= nanos;
            }
            if let Some(part) = gain.part(after - own) {
                *part += nanos;
            }
            self.rank(device, datum);
        }
    }

    /// Counts an available task among the gains on a device, or no longer.
    fn count(&mut self, task: usize, device: usize, counts: bool) {
        let lacks = self.lacks[task * self.devices + device];
        if lacks >= UNABLE || self.holdings.in_host(device) {
            return;
        }
        let nanos = self.nanos[task * self.devices + device];
        for index in 0..self.inputs.of(task).len() {
            let datum = self.inputs.of(task)[index] as usize;
            let own = u32::from(!self.holdings.holds(device, datum));
            let gain = &mut self.gains[device * self.data + datum];
            if let Some(part) = gain.part(lacks - own) {
                match counts {
                    true => *part += nanos,
                    false => *part -= nanos,
                }
                self.rank(device, datum);
            }
        }
    }

    fn frees(&mut self, task: usize, device: usize) {
        // A task without inputs is free everywhere, and so is every task on a device
        // that computes in host memory. No device reserves them.
        let lacks = self.lacks[task * self.devices + device];
        if lacks == 0 && !self.holdings.in_host(device) && !self.inputs.of(task).is_empty() {
            self.freed[device].push_back(task as u32);
        }
    }

    fn rank(&mut self, device: usize, datum: usize) {
        let gain = self.gains[device * self.data + datum];
        let nanos = gain.alone as f64 + NEARLY * gain.nearly as f64;
        let rate = match self.holdings.holds(device, datum) {
            true => 0.0,
            false => nanos / self.seconds[device * self.data + datum],
        };
        self.rates[device * self.data + datum] = rate;
        self.ranked[device].set(datum, key(rate));
    }
}

/// Those of the inputs that a device does not hold.
fn missing(inputs: &[u32], holdings: &Holdings, device: usize) -> impl Iterator<Item = u32> {
    let missing = inputs.iter().copied();
    missing.filter(move |datum| !holdings.holds(device, *datum as usize))
}

/// The key of a rate, which is not negative: such numbers and their bits have one order.
fn key(rate: f64) -> u64 {
    rate.to_bits()
}
