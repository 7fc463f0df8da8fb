//! A step on the devices of a run under one configuration: the forecast for a plan.

use super::configured::{ConfiguredDevice, Exchange, WITH_POOL};
use super::divide::{Curves, DivisionSearch, Participants};
use crate::balance::StepPlan;
use crate::balance::parts::parts;
use crate::balance::pdawl::{Expected, Forecast, Planner};
use crate::model::case::{HALO, StepWork};
use crate::runtime::sim::bandwidth_sharing::Filling;

/// The fraction of its own rate at which each device's kernels or transfers use the
/// host's memory.
pub struct MemoryShares {
    /// While streams and pools are active.
    pub together: Vec<f64>,
    /// For the pools, while no stream is active.
    pub quiet: Vec<f64>,
    /// For the streams, while no pool is active.
    pub streams: Vec<f64>,
}

/// How long a step of one workload takes on several devices, in the order of the run.
pub struct StepModel {
    pub work: StepWork,
    pub workers: Vec<ConfiguredDevice>,
    /// Seconds of a step in which each device computes nothing. A slowed device does
    /// not slow the driver.
    pub overhead: Vec<f64>,
    /// The bandwidth of the host's memory that each device uses when it computes pool
    /// units.
    flows: Vec<Flow>,
    shared: Shared,
    /// Whether devices copy from one to another by direct ways.
    is_direct: bool,
}

impl StepModel {
    pub fn new(work: StepWork, workers: Vec<ConfiguredDevice>) -> Self {
        let some = (work.units / 2).max(1);
        let flows = workers.iter().map(|w| w.flow(&work, some)).collect();
        let overhead = workers.iter().map(|w| w.overhead(&work)).collect();
        let host = workers.first().map(|w| w.time.descriptors().host);
        let host = host.unwrap_or_default();
        Self {
            shared: Shared {
                memory: host.shared_bandwidth,
                bus: host.transfers(),
            },
            is_direct: host.direct.is_some(),
            overhead,
            flows,
            workers,
            work,
        }
    }

    /// The memory shares of the devices that compute pool units.
    pub fn shares(&self, pooling: impl Fn(usize) -> bool, slowdown: &[f64]) -> MemoryShares {
        let among = |takes_part: &dyn Fn(usize) -> bool| {
            let flows = self.flows.iter().enumerate().map(|(d, flow)| Flow {
                alone: match takes_part(d) {
                    true => flow.alone / slowdown[d],
                    false => 0.0,
                },
                ..*flow
            });
            shares(self.shared, &flows.collect::<Vec<_>>())
        };
        let streams = |d: usize| self.workers[d].has_own_memory();
        MemoryShares {
            together: among(&|d| pooling(d)),
            quiet: among(&|d| pooling(d) && !streams(d)),
            streams: among(&|d| pooling(d) && streams(d)),
        }
    }

    /// The forecast of a step that follows `plan`.
    pub fn expect(&self, plan: &StepPlan, slowdown: &[f64]) -> Forecast {
        let pooling = |d: usize| plan.pooled[d] > 0 && slowdown[d].is_finite();
        let shares = self.shares(pooling, slowdown);
        let ends = self.ends(plan, &shares, slowdown);
        let devices: Vec<Expected> = (0..self.workers.len())
            .map(|d| self.expected(d, plan, slowdown, ends[d]))
            .collect();
        Forecast {
            plan: plan.clone(),
            step_seconds: ends.iter().copied().fold(0.0, f64::max),
            devices,
        }
    }

    /// When each device ends its part.
    fn ends(&self, plan: &StepPlan, shares: &MemoryShares, slowdown: &[f64]) -> Vec<f64> {
        let all = 0..self.workers.len();
        let solo = plan.held.contains(&self.work.units);
        let exchanges = self.exchanges(plan);
        let streams = |d: usize| self.workers[d].has_own_memory();
        let streaming = || all.clone().filter(|d| streams(*d) && plan.pooled[*d] > 0);
        let seconds = |d: usize, flow: f64| {
            let units = (plan.held[d], plan.pooled[d]);
            match units {
                (0, 0) => 0.0,
                _ if slowdown[d].is_infinite() => f64::INFINITY,
                _ => {
                    let worker = &self.workers[d];
                    let mut seconds = worker.seconds(&self.work, units, flow, &exchanges[d]);
                    if streams(d) {
                        seconds *= worker.crowded(&self.work, units, streaming().count());
                    }
                    let fixed = if solo { 0.0 } else { self.overhead[d] };
                    fixed.min(seconds) + slowdown[d] * (seconds - fixed).max(0.0)
                }
            }
        };
        // Assumes first that pools compute for as long as anything is streamed.
        let mut ends: Vec<f64> = (all.clone())
            .map(|d| match streams(d) {
                true => seconds(d, shares.together[d]),
                false => seconds(d, 1.0),
            })
            .collect();
        let last_stream = streaming().map(|d| ends[d]).fold(0.0, f64::max);
        let busy = self.link_busy(plan, shares, slowdown, last_stream);
        let before = self.before_pools(|d| plan.held[d] > 0);
        for d in all.clone().filter(|d| !streams(*d) && plan.pooled[*d] > 0) {
            let kernels = (ends[d] - self.overhead[d]).max(0.0);
            let fixed = before + self.overhead[d];
            let beside = shares.beside(d, busy);
            let slow = fixed + kernels / beside;
            ends[d] = if slow <= last_stream {
                slow
            } else {
                let done = (last_stream - fixed).max(0.0) * beside;
                last_stream.max(fixed) + (kernels - done) / shares.quiet[d]
            };
        }
        let last_pool = (all.clone())
            .filter(|d| !streams(*d))
            .map(|d| ends[d])
            .fold(0.0, f64::max);
        for d in streaming().collect::<Vec<_>>() {
            if ends[d] > last_pool {
                let left = 1.0 - last_pool / ends[d];
                ends[d] = last_pool + left * seconds(d, shares.streams[d]);
            }
        }
        ends
    }

    /// What each device exchanges with others.
    fn exchanges(&self, plan: &StepPlan) -> Vec<Exchange> {
        let holds = |units: &u64| *units > 0;
        let pool = plan.pooled.iter().any(holds);
        let holding = plan.held.iter().filter(|held| holds(held)).count() as u64;
        let borders = 2 * holding.saturating_sub(1);
        let by_host = if self.is_direct { 0 } else { borders } + u64::from(pool);
        let halo = HALO * u64::from(self.work.steps()) * self.work.unit_bytes;
        let bus = (by_host > 0).then_some((by_host * halo) as f64 / self.shared.bus);
        // The pool lies below what devices hold, which they do in their order.
        let of = |d: usize| {
            let below = plan.held[..d].iter().any(holds);
            let above = plan.held[d + 1..].iter().any(holds);
            let holders = u64::from(below) + u64::from(above);
            let direct = if self.is_direct { holders } else { 0 };
            Exchange {
                through_host: holders - direct + u64::from(pool && !below),
                direct,
                bus,
            }
        };
        (0..self.workers.len()).map(of).collect()
    }

    /// Seconds from the begin of a step until pools get their first chunk: the engine
    /// first enqueues the halos of devices that hold units. The pool's units lie below
    /// the held ones, so each of these devices has a halo below and, except for the
    /// last, one above.
    pub fn before_pools(&self, holds: impl Fn(usize) -> bool) -> f64 {
        let (mut all, mut last) = (0.0, 0.0);
        for worker in (self.workers.iter().enumerate())
            .filter(|(d, worker)| worker.has_own_memory() && holds(*d))
            .map(|(_, worker)| worker)
        {
            last = worker.enqueue();
            all += 2.0 * last;
        }
        all - last
    }

    /// The fraction of `until` during which links are busy both ways.
    pub fn link_busy(
        &self,
        plan: &StepPlan,
        shares: &MemoryShares,
        slowdown: &[f64],
        until: f64,
    ) -> f64 {
        if until <= 0.0 {
            return 0.0;
        }
        (0..self.workers.len())
            .map(|d| {
                let units = (plan.held[d], plan.pooled[d]);
                let busy = self.workers[d].link_seconds(&self.work, units, shares.together[d]);
                (slowdown[d] * busy / until).min(1.0)
            })
            .filter(|busy| busy.is_finite())
            .fold(0.0, f64::max)
    }

    fn expected(&self, d: usize, plan: &StepPlan, slowdown: &[f64], seconds: f64) -> Expected {
        let spread = self.workers[d].time.spread();
        if !slowdown[d].is_finite() {
            return Expected {
                spread,
                ..Expected::default()
            };
        }
        let (worker, work) = (&self.workers[d], &self.work);
        let overhead = self.overhead[d];
        let rate = |units: (u64, u64), flow: f64| {
            let took = worker.seconds(work, units, flow, &WITH_POOL) - overhead;
            let units = (units.0 + units.1) as f64;
            (took > 0.0 && units > 0.0).then(|| units / took / slowdown[d])
        };
        let or = |units: u64, else_units: u64| if units > 0 { units } else { else_units };
        // The memory shares if this device computed pool units as well.
        let beside = |d: usize| {
            let others = |o: usize| plan.pooled[o] > 0 && slowdown[o].is_finite();
            self.shares(|o| o == d || others(o), slowdown)
        };
        let solo = plan.held[d] == work.units;
        let mut expected = Expected {
            seconds,
            overhead: if solo { 0.0 } else { overhead },
            spread,
            ..Expected::default()
        };
        if worker.has_own_memory() {
            let most = worker.capacity().min(work.units);
            let streamed = or(plan.pooled[d], or(work.units - most, work.units / 4));
            let shares = beside(d);
            let held = or(plan.held[d], most);
            let (launch, all) = worker.launches(held);
            expected.held_rate = rate((held, 0), 1.0).map(|rate| {
                let kernels = held as f64 / rate;
                held as f64 / (kernels - all).max(0.1 * kernels)
            });
            expected.launch = Some(launch);
            expected.pool_rate = rate((0, streamed.max(1)), shares.together[d]);
        } else {
            expected.overhead += self.before_pools(|d| plan.held[d] > 0);
            let units = or(plan.pooled[d], (work.units / 2).max(1));
            let alone = rate((0, units), 1.0);
            let among = beside(d);
            let streams = |o: usize| self.workers[o].has_own_memory() && slowdown[o].is_finite();
            let all = self.shares(
                |o| o == d || streams(o) || plan.pooled[o] > 0 && slowdown[o].is_finite(),
                slowdown,
            );
            expected.alone_rate = alone.map(|rate| rate * among.quiet[d]);
            expected.pool_rate = alone.map(|rate| rate * all.together[d]);
        }
        expected
    }
}

impl MemoryShares {
    /// The average fraction of its rate that a pool reaches while links are busy both
    /// ways for `busy` of the time.
    pub fn beside(&self, device: usize, busy: f64) -> f64 {
        (1.0 - busy) * self.quiet[device] + busy * self.together[device]
    }
}

/// A flow that may be active together with others.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Flow {
    /// Bytes a second of the host's memory that it uses alone; 0 for an inactive flow.
    pub alone: f64,
    /// The fraction of that to which its own link limits it while busy both ways.
    pub own_limit: f64,
    /// Whether it is of transfers, which use the bus.
    pub is_transfers: bool,
    /// Commands that run at once, each of which could use all of it.
    pub commands: u32,
}

/// What flows share.
#[derive(Clone, Copy, Debug)]
pub struct Shared {
    /// Bytes a second of the host's memory, and of its bus.
    pub memory: f64,
    pub bus: f64,
}

/// The fraction of its own rate that each flow reaches together with the others.
pub fn shares(shared: Shared, flows: &[Flow]) -> Vec<f64> {
    let mut filling = Filling::default();
    filling.resource(shared.memory);
    filling.resource(shared.bus);
    for (link, flow) in flows.iter().enumerate() {
        filling.resource(flow.own_limit * flow.alone);
        let bus = flow.is_transfers.then_some((1, flow.alone));
        for _ in 0..flow.commands {
            filling.flow(
                [(0, flow.alone), (link + 2, flow.alone)]
                    .into_iter()
                    .chain(bus),
            );
        }
    }
    let mut each = filling.fill().iter();
    let of = |flow: &Flow| {
        let all: f64 = each.by_ref().take(flow.commands as usize).sum();
        all.min(1.0)
    };
    flows.iter().map(of).collect()
}

/// Corrections of a division by its exact prediction: curves are straight between their
/// points.
const CORRECTIONS: u32 = 3;

/// A plan with more participants must be predicted to take less than this part of the
/// time.
const PAYS: f64 = 0.998;

/// Plans steps of one workload on the devices of a run, as configured.
pub struct StepPlanner {
    model: StepModel,
    curves: Curves,
}

impl StepPlanner {
    /// `workers` in the order of the run's devices.
    pub fn new(work: StepWork, workers: Vec<ConfiguredDevice>) -> Self {
        let model = StepModel::new(work, workers);
        let curves = Curves::of(&model);
        Self { model, curves }
    }

    /// The planner for the memory capacities that a run found, in the order of devices.
    pub fn within(self, capacities: &[Option<u64>]) -> Self {
        let StepModel { work, workers, .. } = self.model;
        let workers = workers.into_iter().enumerate();
        let workers = workers.map(|(d, worker)| match capacities.get(d) {
            Some(Some(capacity)) => worker.with_capacity(*capacity),
            _ => worker,
        });
        Self::new(work, workers.collect())
    }

    /// The devices as configured.
    pub fn workers(&self) -> &[ConfiguredDevice] {
        &self.model.workers
    }

    /// The sets of participants to compare: each device by itself first, then several, of which
    /// fewer exchange less; without streams first.
    fn participant_sets(&self, slowdown: &[f64]) -> Vec<Participants> {
        let count = self.model.workers.len();
        let own = |d: usize| self.model.workers[d].has_own_memory();
        let alive = |d: usize| slowdown[d].is_finite();
        let overflows =
            |d: usize| own(d) && self.model.workers[d].capacity() < self.model.work.units;
        let mut participant_sets = Vec::new();
        let mut add = |takes_part: &dyn Fn(usize) -> bool, streams: &dyn Fn(usize) -> bool| {
            let takes_part: Vec<bool> = (0..count).map(|d| takes_part(d) && alive(d)).collect();
            let streams = (0..count)
                .map(|d| takes_part[d] && overflows(d) && streams(d))
                .collect();
            let participants = Participants {
                takes_part,
                streams,
            };
            if participants.takes_part.contains(&true) && !participant_sets.contains(&participants)
            {
                participant_sets.push(participants);
            }
        };
        for lone in 0..count {
            add(&|d| d == lone, &|_| true);
        }
        let (devices, others): (Vec<usize>, Vec<usize>) = (0..count).partition(|d| own(*d));
        let parts = parts(&devices, &others, |_, _| true);
        for part in &parts {
            add(&|d| part.contains(&d), &|_| false);
        }
        for lone in devices {
            add(&|d| !own(d) || d == lone, &|_| false);
            add(&|d| !own(d) || d == lone, &|_| true);
            add(&|_| true, &|d| d == lone);
        }
        for part in &parts {
            add(&|d| part.contains(&d), &|_| true);
        }
        participant_sets
    }

    /// The best division among these participants.
    fn best_of(&self, participants: &Participants, slowdown: &[f64]) -> Option<Forecast> {
        let search = DivisionSearch::new(&self.model, &self.curves, participants, slowdown);
        let mut scale = vec![1.0; slowdown.len()];
        let mut best: Option<Forecast> = None;
        for _ in 0..CORRECTIONS {
            let division = search.divide(&scale)?;
            let forecast = self.model.expect(&division.plan, slowdown);
            for (d, expected) in forecast.devices.iter().enumerate() {
                let (held, pooled) = (division.plan.held[d], division.plan.pooled[d]);
                // A device with a full memory cannot take more, whatever its rate.
                let is_full = self.model.workers[d].has_own_memory()
                    && pooled == 0
                    && held == self.model.workers[d].capacity();
                if held + pooled > 0 && !is_full {
                    scale[d] *= (expected.seconds / division.seconds).clamp(0.5, 2.0);
                }
            }
            if best
                .as_ref()
                .is_none_or(|best| forecast.step_seconds < best.step_seconds)
            {
                best = Some(forecast);
            }
        }
        best
    }
}

impl Planner for StepPlanner {
    fn forecast(&self, slowdown: &[f64]) -> Option<Forecast> {
        let mut best: Option<Forecast> = None;
        for participants in self.participant_sets(slowdown) {
            let Some(forecast) = self.best_of(&participants, slowdown) else {
                continue;
            };
            if best
                .as_ref()
                .is_none_or(|b| forecast.step_seconds < PAYS * b.step_seconds)
            {
                best = Some(forecast);
            }
        }
        best
    }

    fn expect(&self, plan: &StepPlan, slowdown: &[f64]) -> Forecast {
        self.model.expect(plan, slowdown)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn flow(alone: f64, own_limit: f64) -> Flow {
        Flow {
            alone,
            own_limit,
            is_transfers: false,
            commands: 1,
        }
    }

    fn of_memory(memory: f64, flows: &[Flow]) -> Vec<f64> {
        let bus = f64::INFINITY;
        shares(Shared { memory, bus }, flows)
    }

    #[test]
    fn the_shares_of_a_measured_machine() {
        // 16 cores take 88 GB/s, a link 55 GB/s each way alone and 46 while
        // both are busy; the memory gives 132.
        let shares = of_memory(132e9, &[flow(88e9, 1.0), flow(110e9, 46.0 / 55.0)]);
        assert!((shares[0] - 2.0 / 3.0).abs() < 1e-12);
        assert_eq!(shares[0], shares[1]);
    }

    #[test]
    fn who_is_held_up_elsewhere_leaves_the_rest() {
        let together = [flow(20e9, 1.0), flow(20e9, 0.5)];
        assert_eq!(of_memory(25e9, &together), [0.75, 0.5]);
        assert_eq!(of_memory(40e9, &together), [1.0, 0.5]);
        assert_eq!(of_memory(16e9, &together), [0.4, 0.4]);
        assert_eq!(
            of_memory(25e9, &[flow(20e9, 1.0), flow(0.0, 0.5)]),
            [1.0, 1.0]
        );
        assert!(of_memory(25e9, &[]).is_empty());
    }

    #[test]
    fn transfers_share_a_bus() {
        let transfers = |alone| Flow {
            is_transfers: true,
            ..flow(alone, 1.0)
        };
        let shared = Shared {
            memory: 100e9,
            bus: 12e9,
        };
        let flows = [flow(50e9, 1.0), transfers(20e9), transfers(20e9)];
        assert_eq!(shares(shared, &flows), [1.0, 0.3, 0.3]);
    }

    proptest! {
        /// Nobody gets more than it may, the memory is not exceeded, and it is
        /// full if anyone is held up by it.
        #[test]
        fn shares_are_max_min_fair(
            bandwidth in 1.0f64..100.0,
            flows in prop::collection::vec((0.0f64..50.0, 0.1f64..1.0), 0..6),
        ) {
            let flows: Vec<Flow> = flows.into_iter().map(|(a, l)| flow(a, l)).collect();
            let shares = of_memory(bandwidth, &flows);
            let used: f64 = flows.iter().zip(&shares).map(|(f, s)| f.alone * s).sum();
            prop_assert!(used <= bandwidth * (1.0 + 1e-9));
            let active = || flows.iter().zip(&shares).filter(|(f, _)| f.alone > 0.0);
            for (flow, share) in active() {
                prop_assert!(*share <= flow.own_limit + 1e-12);
            }
            let held_up: Vec<f64> = active()
                .filter(|(f, s)| **s < f.own_limit - 1e-9)
                .map(|(_, s)| *s)
                .collect();
            if !held_up.is_empty() {
                prop_assert!(used >= bandwidth * (1.0 - 1e-9));
                let first = held_up[0];
                prop_assert!(held_up.iter().all(|s| (s - first).abs() < 1e-9));
            }
        }
    }
}
