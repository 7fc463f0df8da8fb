//! The division with which all devices finish together, found by bisection: the least
//! time within which their curves compute all units.

use super::configured::WITH_POOL;
use super::step_model::{MemoryShares, StepModel};
use crate::balance::StepPlan;
use crate::balance::apportion::largest_remainder;
use crate::model::prior;

/// Parts of all units at which pools are asked.
const POOL_POINTS: [f64; 9] = [0.003, 0.015, 0.06, 0.125, 0.25, 0.375, 0.5, 0.75, 1.0];

/// Parts of a memory's capacity: the fuller its ring, the more launches.
const HELD_POINTS: [f64; 7] = [0.02, 0.25, 0.5, 0.75, 0.9, 0.97, 1.0];

/// Parts of what would be streamed if the device did everything.
const STREAM_POINTS: [f64; 7] = [0.01, 0.04, 0.125, 0.25, 0.5, 0.75, 1.0];

/// The devices that compute, and those of them that stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Participants {
    pub takes_part: Vec<bool>,
    pub streams: Vec<bool>,
}

/// The units that devices compute within a time, as curves.
pub struct Curves {
    devices: Vec<DeviceCurves>,
}

#[derive(Default)]
struct DeviceCurves {
    /// Units held, with a barrier at the end of a step; of a pool, units by itself.
    resident: Curve,
    /// Units streamed beside a full memory: `(streamed, seconds)`.
    streamed: Vec<(u64, f64)>,
}

/// A division, and when it should be done.
pub struct DividedStep {
    pub plan: StepPlan,
    pub seconds: f64,
}

impl Curves {
    pub fn of(model: &StepModel) -> Self {
        let work = &model.work;
        let devices = (model.workers.iter())
            .map(|worker| {
                let seconds = |held, pooled| worker.seconds(work, (held, pooled), 1.0, &WITH_POOL);
                if !worker.has_own_memory() {
                    let at = points(&POOL_POINTS, work.units);
                    return DeviceCurves {
                        resident: Curve::through(at.map(|u| (u as f64, seconds(0, u)))),
                        streamed: Vec::new(),
                    };
                }
                let capacity = worker.capacity().min(work.units);
                let held = points(&HELD_POINTS, capacity);
                let streamed = points(&STREAM_POINTS, work.units - capacity);
                DeviceCurves {
                    resident: Curve::through(held.map(|u| (u as f64, seconds(u, 0)))),
                    streamed: streamed.map(|u| (u, seconds(capacity, u))).collect(),
                }
            })
            .collect();
        Self { devices }
    }
}

/// Some whole numbers of units up to `all`.
fn points(parts: &[f64], all: u64) -> impl Iterator<Item = u64> {
    let units = parts
        .iter()
        .map(move |part| (part * all as f64).ceil() as u64);
    units.filter(|units| *units > 0)
}

/// The search for a division among participants, with their curves under contention.
pub struct DivisionSearch<'a> {
    model: &'a StepModel,
    curves: &'a Curves,
    participants: &'a Participants,
    slowdown: &'a [f64],
    shares: MemoryShares,
    streamed: Vec<Curve>,
    /// Seconds that a streamed unit keeps the link busy both ways.
    link_seconds: Vec<f64>,
}

impl<'a> DivisionSearch<'a> {
    pub fn new(
        model: &'a StepModel,
        curves: &'a Curves,
        participants: &'a Participants,
        slowdown: &'a [f64],
    ) -> Self {
        let pools = |d: usize| match model.workers[d].has_own_memory() {
            true => participants.streams[d],
            false => participants.takes_part[d],
        };
        let shares = model.shares(pools, slowdown);
        let all = 0..model.workers.len();
        let mut streamed = vec![Curve::default(); all.len()];
        let mut link_seconds = vec![0.0; all.len()];
        let streams = participants
            .streams
            .iter()
            .filter(|streams| **streams)
            .count();
        for d in all.clone().filter(|d| participants.streams[*d]) {
            let worker = &model.workers[d];
            let (held, flow) = (worker.capacity().min(model.work.units), shares.together[d]);
            let descriptors = worker.time.descriptors();
            let points = curves.devices[d].streamed.iter().map(|(units, alone)| {
                let case = worker.case(&model.work, held, *units);
                let terms = prior::beside(&case, descriptors, flow);
                link_seconds[d] = terms.link / *units as f64;
                let slower = terms.total / prior::seconds(&case, descriptors);
                let crowded = worker.crowded(&model.work, (held, *units), streams);
                (*units as f64, alone * slower * crowded)
            });
            streamed[d] = Curve::through(points);
        }
        Self {
            model,
            curves,
            participants,
            slowdown,
            shares,
            streamed,
            link_seconds,
        }
    }

    /// Writes the held and pool units that each device computes within `seconds`, if
    /// each takes `scale` times what its curves say.
    fn within(&self, seconds: f64, scale: &[f64], held: &mut [f64], pooled: &mut [f64]) {
        let mut busy: f64 = 0.0;
        let own = |d: &usize| self.model.workers[*d].has_own_memory();
        let all = 0..held.len();
        for d in all.clone().filter(own) {
            (held[d], pooled[d]) = (0.0, 0.0);
            if !self.participants.takes_part[d] {
                continue;
            }
            let time = self.unslowed(d, seconds / scale[d]);
            let resident = &self.curves.devices[d].resident;
            held[d] = resident.units(time);
            if self.participants.streams[d] && held[d] >= resident.most() {
                pooled[d] = self.streamed[d].units(time);
                busy = busy.max((pooled[d] * self.link_seconds[d] / time).min(1.0));
            }
        }
        let before = self.model.before_pools(|d| held[d] > 0.0);
        for d in all.filter(|d| !own(d)) {
            (held[d], pooled[d]) = (0.0, 0.0);
            if self.participants.takes_part[d] {
                let time = self.unslowed(d, (seconds - before) / scale[d]);
                let kernels = (time - self.model.overhead[d]).max(0.0);
                let alone = self.model.overhead[d] + kernels * self.shares.beside(d, busy);
                pooled[d] = match kernels > 0.0 {
                    true => self.curves.devices[d].resident.units(alone),
                    false => 0.0,
                };
            }
        }
    }

    /// Seconds that a device would take without its slowdown for what it computes
    /// within `seconds`.
    fn unslowed(&self, d: usize, seconds: f64) -> f64 {
        let overhead = self.model.overhead[d];
        overhead + (seconds - overhead) / self.slowdown[d]
    }

    /// The division with which all devices finish together, if each takes `scale` times
    /// what its curves say. `None` if they never compute all units.
    pub fn divide(&self, scale: &[f64]) -> Option<DividedStep> {
        let units = self.model.work.units;
        let count = self.model.workers.len();
        let (mut held, mut pooled) = (vec![0.0; count], vec![0.0; count]);
        let mut done = |seconds: f64| {
            self.within(seconds, scale, &mut held, &mut pooled);
            held.iter().chain(&pooled).sum::<f64>() >= units as f64
        };
        let mut late = 1e-6;
        while !done(late) {
            late *= 2.0;
            if late > 1e12 {
                return None;
            }
        }
        let mut early = 0.5 * late;
        // 24 halvings leave less than a unit of ten millions.
        for _ in 0..24 {
            let middle = 0.5 * (early + late);
            match done(middle) {
                true => late = middle,
                false => early = middle,
            }
        }
        done(late);
        let amounts: Vec<f64> = held.iter().chain(&pooled).copied().collect();
        let mut counts = largest_remainder(units, &amounts);
        let mut pooled = counts.split_off(count);
        for (d, held) in counts.iter_mut().enumerate() {
            // Rounding may pass a full memory by a unit.
            let over = held.saturating_sub(self.model.workers[d].capacity());
            *held -= over;
            pooled[d] += over;
        }
        Some(DividedStep {
            plan: StepPlan {
                held: counts,
                pooled,
            },
            seconds: late,
        })
    }
}

/// Points `(units, seconds)`, both never falling.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curve {
    points: Vec<(f64, f64)>,
}

impl Curve {
    /// A curve through these points, in any order. A prediction that falls
    /// where there are more units is held to what fewer take.
    pub fn through(points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let mut points: Vec<(f64, f64)> = points
            .into_iter()
            .filter(|(units, seconds)| units.is_finite() && seconds.is_finite())
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        points.dedup_by(|b, a| a.0 == b.0);
        let mut most = 0.0;
        for (_, seconds) in &mut points {
            most = f64::max(most, *seconds);
            *seconds = most;
        }
        Self { points }
    }

    /// The most units that are done within `seconds`; 0 where even the fewest
    /// take longer, and the most that the curve knows of where all take less.
    pub fn units(&self, seconds: f64) -> f64 {
        let mut done: Option<(f64, f64)> = None;
        for &(units, takes) in &self.points {
            if seconds < takes {
                return done.map_or(0.0, |(fewer, took)| {
                    fewer + (units - fewer) * (seconds - took) / (takes - took)
                });
            }
            done = Some((units, takes));
        }
        done.map_or(0.0, |(units, _)| units)
    }

    /// The most units that the curve knows of.
    pub fn most(&self) -> f64 {
        self.points.last().map_or(0.0, |(units, _)| *units)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_between_points_and_flat_beyond() {
        let curve = Curve::through([(10.0, 2.0), (20.0, 3.0), (40.0, 3.0), (50.0, 2.5)]);
        assert_eq!(curve.units(1.9), 0.0);
        assert_eq!(curve.units(2.0), 10.0);
        assert_eq!(curve.units(2.5), 15.0);
        // All of these take no longer than 20 do.
        assert_eq!(curve.units(3.0), 50.0);
        assert_eq!((curve.most(), Curve::default().units(1.0)), (50.0, 0.0));
    }

    proptest! {
        #[test]
        fn more_time_never_does_less_and_points_lie_on_the_curve(
            points in prop::collection::vec((0.0f64..100.0, 0.0f64..10.0), 1..12),
            earlier in 0.0f64..10.0,
            later in 0.0f64..10.0,
        ) {
            let curve = Curve::through(points.clone());
            let (earlier, later) = (earlier.min(later), earlier.max(later));
            prop_assert!(curve.units(earlier) <= curve.units(later));
            prop_assert!(curve.units(later) <= curve.most());
            for (units, _) in points {
                let fewer = curve.points.iter().filter(|p| p.0 <= units);
                let takes = fewer.map(|p| p.1).fold(0.0, f64::max);
                prop_assert!(curve.units(takes) >= units);
            }
        }
    }
}
