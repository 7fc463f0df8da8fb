//! The search for the map with the least predicted time, and its lower bounds.

use super::iteration::{Plan, State};
use super::{Prediction, Situation};
use crate::balance::apportion::{Runner, finish};
use crate::residency::Places;

/// Maps up to which all are examined.
const FEW: usize = 512;

/// A map is better only if it is so by this part of the time; what is less is rounding.
const GAIN: f64 = 1e-9;

/// A map from queues to devices.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// By queue: its device.
    pub map: Vec<usize>,
    pub predicted: Prediction,
    /// Whether no map is better. Only a search with a limit may not know.
    pub proven: bool,
}

/// How a map is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapSearch {
    /// The most partial maps to examine; the best map of these is taken. Unlimited by
    /// default. A search always examines one complete map.
    pub most: usize,
}

impl Default for MapSearch {
    fn default() -> Self {
        Self { most: usize::MAX }
    }
}

/// Finds the map with the least mean time of the expected iterations.
///
/// The first iteration includes the copies with which queues move to other devices. So
/// a queue moves only if the iterations gain more than its data cost, and among equal maps
/// the present one stays. Section 5.1.3 warns of "significant runtime overhead due to
/// potential cross-device data migration".
///
/// Up to a few hundred maps are all examined. Beyond, branch and bound leaves out those
/// that cannot be the best.
///
/// `None` if there is no map: no device can run a queue, data have no way to it, queues wait for
/// one another, or the situation contradicts itself: a time is no number, an index does not exist,
/// or a list has not an entry for each device.
pub fn fit(situation: &Situation, search: MapSearch) -> Option<Fit> {
    let plan = Plan::new(situation)?;
    let (queues, devices) = (plan.order.len(), situation.costs.devices());
    let maps = u32::try_from(queues).ok();
    let maps = maps.and_then(|queues| devices.checked_pow(queues));
    fit_by(&plan, search, maps.is_none_or(|maps| maps > FEW))
}

/// Finds the map, with branch and bound or among all.
pub(super) fn fit_by(plan: &Plan, search: MapSearch, bounded: bool) -> Option<Fit> {
    let devices = plan.situation.costs.devices();
    let epochs = &plan.situation.epochs;
    let able = |queue: usize| (0..devices).any(|d| plan.seconds(queue, d).is_finite());
    if !(0..epochs.len()).all(able) {
        return None;
    }
    let present: Option<Vec<usize>> = epochs.iter().map(|epoch| epoch.present).collect();
    let present = present.and_then(|map| {
        let predicted = plan.predict(&map).0;
        (predicted.first.is_finite() && predicted.steady.is_finite()).then_some((map, predicted))
    });
    let mut branch = Branch {
        plan,
        bounds: bounded.then(|| Bounds::new(plan)),
        alike: alike(plan),
        map: vec![0; epochs.len()],
        best: present,
        left: search.most,
    };
    let (now, everywhere) = (plan.now(), plan.everywhere());
    branch.search(0, &now, &everywhere);
    let proven = branch.left > 0;
    let (map, predicted) = branch.best?;
    Some(Fit {
        map,
        predicted,
        proven,
    })
}

/// By device: the first one that differs from it in nothing.
fn alike(plan: &Plan) -> Vec<usize> {
    let Situation {
        epochs,
        data,
        costs,
        busy,
        ..
    } = plan.situation;
    let same = |one: usize, other: usize| {
        busy[one] == busy[other]
            && costs.are_alike(one, other)
            && (0..epochs.len()).all(|e| plan.seconds(e, one) == plan.seconds(e, other))
            && (data.iter()).all(|datum| datum.places.has(one) == datum.places.has(other))
    };
    (0..costs.devices())
        .map(|device| {
            (0..device)
                .find(|other| same(*other, device))
                .unwrap_or(device)
        })
        .collect()
}

/// A partial map, and the best one so far.
struct Branch<'a> {
    plan: &'a Plan<'a>,
    /// `None`: every map is examined.
    bounds: Option<Bounds>,
    alike: Vec<usize>,
    map: Vec<usize>,
    best: Option<(Vec<usize>, Prediction)>,
    left: usize,
}

/// A device for the next epoch, and the states in which it leaves the first iteration and
/// one with all data everywhere.
struct Child {
    bound: f64,
    device: usize,
    now: State,
    everywhere: State,
}

impl Branch<'_> {
    /// Examines the maps whose first epochs have the devices of `map`.
    fn search(&mut self, given: usize, now: &State, everywhere: &State) {
        let Some(epoch) = self.plan.order.get(given).copied() else {
            self.complete(now);
            return;
        };
        let mut children: Vec<Child> = (0..now.free.len())
            .filter(|device| self.plan.seconds(epoch, *device).is_finite())
            .filter(|device| self.bounds.is_none() || self.is_first_alike(given, *device))
            .map(|device| self.child(given, device, now, everywhere))
            .collect();
        if self.bounds.is_some() {
            children.sort_by(|one, other| one.bound.total_cmp(&other.bound));
        }
        for child in children {
            if self.left == 0 && self.best.is_some() {
                return;
            }
            if self.is_worse(child.bound) {
                continue;
            }
            self.left = self.left.saturating_sub(1);
            self.map[epoch] = child.device;
            self.search(given + 1, &child.now, &child.everywhere);
        }
    }

    fn child(&self, given: usize, device: usize, now: &State, everywhere: &State) -> Child {
        let (mut now, mut everywhere) = (now.clone(), everywhere.clone());
        let epoch = self.plan.order[given];
        self.plan.give(&mut now, epoch, device, true);
        self.plan.give(&mut everywhere, epoch, device, false);
        let bound = self.bounds.as_ref().map_or(0.0, |bounds| {
            let of = |state: &State| bounds.of(self.plan, state, given + 1);
            let least = Prediction {
                first: of(&now),
                steady: of(&everywhere),
            };
            least.mean(self.plan.situation.iterations)
        });
        Child {
            bound,
            device,
            now,
            everywhere,
        }
    }

    /// Whether a device is the first of those that are alike and have no epoch yet.
    fn is_first_alike(&self, given: usize, device: usize) -> bool {
        let used = self.plan.order[..given]
            .iter()
            .map(|epoch| self.map[*epoch]);
        let used: Places = used.collect();
        used.has(device)
            || !(0..device).any(|other| self.alike[other] == self.alike[device] && !used.has(other))
    }

    /// A map is complete. `now` is the state after its first iteration.
    fn complete(&mut self, now: &State) {
        let predicted = Prediction {
            first: now.last,
            steady: self.plan.steady(now, &self.map),
        };
        let possible = predicted.first.is_finite() && predicted.steady.is_finite();
        if possible && !self.is_worse(predicted.mean(self.plan.situation.iterations)) {
            self.best = Some((self.map.clone(), predicted));
        }
    }

    /// Whether a time is no gain.
    fn is_worse(&self, seconds: f64) -> bool {
        let best = self.best.as_ref().map(|(_, best)| best);
        best.is_some_and(|best| seconds >= best.mean(self.plan.situation.iterations) * (1.0 - GAIN))
    }
}

/// What bounds need to know of the epochs that have no device yet.
///
/// Every bound ignores copies that are not certain, gives each such epoch the device where
/// it is fastest, and so never exceeds the time of any map that the given devices allow.
struct Bounds {
    /// By epoch: the least seconds of those that wait for it, one after another.
    tail: Vec<f64>,
    /// By number of epochs that have a device: the least seconds of the others.
    left: Vec<f64>,
    /// The same by device, of those that can only run there.
    only: Vec<Vec<f64>>,
    /// Of every map: no iteration is faster.
    least: f64,
}

impl Bounds {
    pub fn new(plan: &Plan) -> Self {
        let devices = plan.situation.costs.devices();
        let epochs = plan.order.len();
        let least: Vec<f64> = (0..epochs)
            .map(|epoch| {
                let all = (0..devices).map(|device| plan.seconds(epoch, device));
                all.fold(f64::INFINITY, f64::min)
            })
            .collect();
        let mut tail = vec![0.0_f64; epochs];
        let mut chain = 0.0_f64;
        let mut left = vec![0.0; epochs + 1];
        let mut only = vec![vec![0.0; devices]; epochs + 1];
        for (position, epoch) in plan.order.iter().copied().enumerate().rev() {
            let whole = least[epoch] + tail[epoch];
            chain = chain.max(whole);
            for before in &plan.situation.epochs[epoch].after {
                tail[*before] = tail[*before].max(whole);
            }
            left[position] = left[position + 1] + least[epoch];
            only[position] = only[position + 1].clone();
            let mut able = (0..devices).filter(|d| plan.seconds(epoch, *d).is_finite());
            if let (Some(device), None) = (able.next(), able.next()) {
                only[position][device] += least[epoch];
            }
        }
        Self {
            tail,
            left,
            only,
            least: chain.max(packed(least, devices)),
        }
    }

    /// The least time of an iteration whose first `given` epochs have led to a state.
    pub fn of(&self, plan: &Plan, state: &State, given: usize) -> f64 {
        let mut bound = self.least.max(state.last);
        for epoch in &plan.order[..given] {
            bound = bound.max(state.end[*epoch] + self.tail[*epoch]);
        }
        for (free, only) in state.free.iter().zip(&self.only[given]) {
            if *only > 0.0 {
                bound = bound.max(free + only);
            }
        }
        bound.max(shared(&state.free, self.left[given]))
    }
}

/// When devices that are free at these times end if they share so many seconds of work
/// evenly. A device that is free later gets none.
fn shared(free: &[f64], work: f64) -> f64 {
    if work <= 0.0 {
        return 0.0;
    }
    let runner = |ready: &f64| Runner {
        ready: *ready,
        rate: 1.0,
    };
    let runners: Vec<Runner> = free.iter().map(runner).collect();
    finish(work, &runners, None)
}

/// The least time in which so many devices run epochs of these seconds: of the longest
/// `k * devices + 1`, some device has `k + 1`.
fn packed(mut seconds: Vec<f64>, devices: usize) -> f64 {
    seconds.sort_by(|one, other| other.total_cmp(one));
    let mut bound = 0.0_f64;
    let mut count = 1;
    while (count - 1) * devices < seconds.len() {
        let longest = &seconds[..=(count - 1) * devices];
        let fewest = &longest[longest.len().saturating_sub(count)..];
        bound = bound.max(fewest.iter().sum());
        count += 1;
    }
    bound
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_devices_share_less() {
        assert_eq!(shared(&[0.0, 0.0], 4.0), 2.0);
        assert_eq!(shared(&[1.0, 0.0], 4.0), 2.5);
        assert_eq!(shared(&[100.0, 0.0, 1.0], 4.0), 2.5);
        assert_eq!(shared(&[3.0, 3.0], 0.0), 0.0);
    }

    #[test]
    fn equal_epochs_are_packed() {
        assert_eq!(packed(vec![1.0; 16], 8), 2.0);
        assert_eq!(packed(vec![1.0; 17], 8), 3.0);
        assert_eq!(packed(vec![5.0, 1.0, 1.0], 2), 5.0);
        assert_eq!(packed(vec![5.0, 4.0, 3.0], 2), 7.0);
        assert_eq!(packed(Vec::new(), 2), 0.0);
    }
}
