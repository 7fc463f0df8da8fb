//! The predicted time of an iteration under a map, with the times of copies between places.

use super::{Epoch, Prediction, QueueDatum, Situation};
use crate::policy::Problem;
use crate::residency::Places;

/// A checked situation, with the order in which epochs begin.
pub(super) struct Plan<'a> {
    pub situation: &'a Situation,
    pub order: Vec<usize>,
}

/// How far an iteration is.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    /// By datum.
    places: Vec<Places>,
    /// By device: when it has ended all that it was given.
    pub free: Vec<f64>,
    /// By epoch: when it ends, if it was given to a device.
    pub end: Vec<f64>,
    /// When the last epoch ends.
    pub last: f64,
}

impl<'a> Plan<'a> {
    /// `None` if the situation contradicts itself, or if epochs wait for one another.
    pub fn new(situation: &'a Situation) -> Option<Self> {
        let order = situation.is_consistent().then(|| order(situation))??;
        Some(Self { situation, order })
    }

    /// The seconds of an epoch on a device; infinite if it cannot run there.
    pub fn seconds(&self, epoch: usize, device: usize) -> f64 {
        let epoch = &self.situation.epochs[epoch];
        match epoch.pinned {
            Some(pinned) if pinned != device => f64::INFINITY,
            _ => epoch.seconds[device],
        }
    }

    /// The state before the next iteration, with the data where they are now.
    pub fn now(&self) -> State {
        let places = self.situation.data.iter().map(|datum| datum.places);
        State {
            free: self.situation.busy.clone(),
            ..self.before(places.collect())
        }
    }

    /// The state before an iteration that has all data everywhere until they are written.
    /// No iteration of the same map is faster.
    pub fn everywhere(&self) -> State {
        self.before(vec![Places::ALL; self.situation.data.len()])
    }

    fn before(&self, places: Vec<Places>) -> State {
        let devices = self.situation.costs.devices();
        State {
            places,
            free: vec![0.0; devices],
            end: vec![0.0; self.situation.epochs.len()],
            last: 0.0,
        }
    }

    /// Gives the next epoch of the order to a device. `earliest` counts in the first
    /// iteration.
    pub fn give(&self, state: &mut State, epoch: usize, device: usize, first: bool) {
        let Situation { costs, data, .. } = self.situation;
        let seconds = self.seconds(epoch, device);
        let index = epoch;
        let epoch = &self.situation.epochs[epoch];
        let waits = epoch.after.iter().map(|before| state.end[*before]);
        let earliest = if first { epoch.earliest } else { 0.0 };
        let begin = waits.fold(state.free[device].max(earliest), f64::max);
        let mut took = seconds;
        for datum in &epoch.uploads {
            state.places[*datum] = Places::only(costs.host());
        }
        for datum in &epoch.reads {
            took += self.copy(&mut state.places[*datum], data[*datum], device);
        }
        for datum in &epoch.writes {
            state.places[*datum] = Places::only(device);
        }
        for datum in &epoch.downloads {
            took += self.copy(&mut state.places[*datum], data[*datum], costs.host());
        }
        let end = begin + took;
        state.free[device] = end;
        state.end[index] = end;
        state.last = state.last.max(end);
    }

    /// Copies a datum to a place that does not have it, and returns the seconds.
    fn copy(&self, places: &mut Places, datum: QueueDatum, to: usize) -> f64 {
        if places.is_empty() || places.has(to) {
            return 0.0;
        }
        let costs = &self.situation.costs;
        let sources = (0..=costs.devices()).filter(|place| places.has(*place));
        let ways = sources.map(|from| costs.copy(from, to, datum.bytes));
        let fastest = ways.min_by(|one, other| one.0.total_cmp(&other.0));
        let (seconds, through_host) = fastest.unwrap_or((f64::INFINITY, false));
        *places = places.with(to);
        if through_host {
            *places = places.with(costs.host());
        }
        seconds
    }

    /// The times of a map, and the state after the first iteration.
    pub fn predict(&self, map: &[usize]) -> (Prediction, State) {
        let mut now = self.now();
        for epoch in &self.order {
            self.give(&mut now, *epoch, map[*epoch], true);
        }
        let steady = self.steady(&now, map);
        let first = now.last;
        (Prediction { first, steady }, now)
    }

    /// Seconds of an iteration that follows on one of the same map.
    pub fn steady(&self, before: &State, map: &[usize]) -> f64 {
        let mut state = self.before(before.places.clone());
        for epoch in &self.order {
            self.give(&mut state, *epoch, map[*epoch], false);
        }
        state.last
    }
}

impl State {
    /// The places of a datum.
    pub fn places(&self, datum: usize) -> Places {
        self.places[datum]
    }
}

/// The epochs in their order, each after those that it waits for; `None` if some wait for one
/// another.
fn order(situation: &Situation) -> Option<Vec<usize>> {
    let epochs = &situation.epochs;
    let mut given = vec![false; epochs.len()];
    let mut order = Vec::with_capacity(epochs.len());
    while order.len() < epochs.len() {
        let can = |epoch: &usize| !given[*epoch] && epochs[*epoch].after.iter().all(|e| given[*e]);
        let next = (0..epochs.len()).find(can)?;
        given[next] = true;
        order.push(next);
    }
    Some(order)
}

impl Situation {
    /// Whether all that is named exists, and all figures are such that times can be compared: a
    /// time that is no number would be none at all.
    fn is_consistent(&self) -> bool {
        let (devices, data, epochs) = (self.costs.devices(), self.data.len(), self.epochs.len());
        let finite = |seconds: &f64| *seconds >= 0.0 && seconds.is_finite();
        let is_right = |epoch: &Epoch| {
            let lists = [
                &epoch.uploads,
                &epoch.reads,
                &epoch.writes,
                &epoch.downloads,
            ];
            finite(&epoch.earliest)
                && epoch.seconds.len() == devices
                && epoch.seconds.iter().all(|seconds| *seconds >= 0.0)
                && lists.into_iter().flatten().all(|datum| *datum < data)
                && epoch.after.iter().all(|other| *other < epochs)
                && [epoch.pinned, epoch.present]
                    .into_iter()
                    .flatten()
                    .all(|d| d < devices)
        };
        let ways = &self.costs.ways;
        devices < Places::MOST
            && self.busy.len() == devices
            && self.iterations >= 1.0
            && self.busy.iter().all(finite)
            && self.epochs.iter().all(is_right)
            && (ways.iter().flatten()).all(|way| finite(&way.latency) && way.bandwidth > 0.0)
    }
}

/// The time of a copy from any place to any other: a latency in seconds, and bytes a
/// second.
///
/// A copy goes directly, or through the host's memory where that is faster or the only
/// way. Section 5.3.3 describes the latter: "each D2D transfer is performed as a D2H-H2D
/// double operation via the host memory".
#[derive(Clone, Debug, PartialEq)]
pub struct TransferCosts {
    places: usize,
    /// By source and destination.
    ways: Vec<Option<Way>>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Way {
    latency: f64,
    bandwidth: f64,
}

impl TransferCosts {
    /// The places of so many devices and of the host, without ways between them.
    pub fn new(devices: usize) -> Self {
        let places = devices + 1;
        Self {
            places,
            ways: vec![None; places * places],
        }
    }

    /// The places of a problem's devices. A device without a bandwidth computes in the
    /// host's memory.
    pub fn of(problem: &Problem) -> Self {
        let devices = problem.devices.len();
        let mut costs = Self::new(devices);
        let host = costs.host();
        for (device, model) in problem.devices.iter().enumerate() {
            let bandwidth = model.bandwidth.unwrap_or(f64::INFINITY);
            costs.set(host, device, 0.0, bandwidth);
            costs.set(device, host, 0.0, bandwidth);
            for to in (0..devices).filter(|to| *to != device) {
                if let Some(bandwidth) = problem.links.peer(device, to) {
                    costs.set(device, to, 0.0, bandwidth);
                }
            }
        }
        costs
    }

    /// Sets the time of direct copies. An infinite bandwidth is that of places in the same
    /// memory.
    ///
    /// # Panics
    /// When a place does not exist.
    pub fn set(&mut self, from: usize, to: usize, latency: f64, bandwidth: f64) {
        assert!(from < self.places && to < self.places, "{from} to {to}");
        self.ways[from * self.places + to] = Some(Way { latency, bandwidth });
    }

    pub fn devices(&self) -> usize {
        self.places - 1
    }

    /// The place that is the host's memory.
    pub fn host(&self) -> usize {
        self.places - 1
    }

    /// Seconds of the fastest copy of so many bytes, and whether it leaves a copy in the
    /// host's memory on its way. Infinite if there is no way.
    pub fn copy(&self, from: usize, to: usize, bytes: u64) -> (f64, bool) {
        let direct = self.direct(from, to, bytes);
        let host = self.host();
        if from == host || to == host {
            return (direct, false);
        }
        let through = self.direct(from, host, bytes) + self.direct(host, to, bytes);
        match through < direct {
            true => (through, true),
            false => (direct, false),
        }
    }

    /// Seconds of a direct copy; infinite if there is none.
    pub fn direct(&self, from: usize, to: usize, bytes: u64) -> f64 {
        if from == to || bytes == 0 {
            return 0.0;
        }
        let way = self.ways[from * self.places + to];
        way.map_or(f64::INFINITY, |way| {
            way.latency + bytes as f64 / way.bandwidth
        })
    }

    /// Whether two devices' places have the same ways.
    pub(super) fn are_alike(&self, one: usize, other: usize) -> bool {
        let way = |from: usize, to: usize| self.ways[from * self.places + to];
        way(one, other) == way(other, one)
            && (0..self.places)
                .filter(|place| *place != one && *place != other)
                .all(|place| {
                    way(one, place) == way(other, place) && way(place, one) == way(place, other)
                })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_takes_the_faster_way() {
        let mut costs = TransferCosts::new(2);
        assert_eq!(costs.copy(0, 1, 10), (f64::INFINITY, false));
        for device in [0, 1] {
            costs.set(device, 2, 1.0, 10.0);
            costs.set(2, device, 1.0, 10.0);
        }
        assert_eq!(costs.copy(0, 1, 10), (4.0, true));
        assert_eq!(costs.copy(0, 2, 10), (2.0, false));
        costs.set(0, 1, 0.5, 20.0);
        assert_eq!(costs.copy(0, 1, 10), (1.0, false));
        assert_eq!(costs.copy(1, 0, 10), (4.0, true));
        assert_eq!(costs.copy(0, 1, 0), (0.0, false));
    }
}
