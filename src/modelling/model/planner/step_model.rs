//! A step on the devices of a run under one configuration: the forecast for a plan.

use super::configured::ConfiguredDevice;
use super::contention::{self, Flow, Shared};
use crate::balance::StepPlan;
use crate::balance::pdawl::{Expected, Forecast};
use crate::model::case::StepWork;

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
            contention::shares(self.shared, &flows.collect::<Vec<_>>())
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
        // The pool lies below what devices hold, which they do in their order.
        let borders = |d: usize| {
            let pool = plan.pooled.iter().any(|units| *units > 0);
            let holds = |units: &u64| *units > 0;
            let below = pool || plan.held[..d].iter().any(holds);
            let above = plan.held[d + 1..].iter().any(holds);
            u64::from(below) + u64::from(above)
        };
        let streams = |d: usize| self.workers[d].has_own_memory();
        let streaming = || all.clone().filter(|d| streams(*d) && plan.pooled[*d] > 0);
        let seconds = |d: usize, flow: f64| {
            let units = (plan.held[d], plan.pooled[d]);
            match units {
                (0, 0) => 0.0,
                _ if slowdown[d].is_infinite() => f64::INFINITY,
                _ => {
                    let worker = &self.workers[d];
                    let mut seconds = worker.seconds(&self.work, units, flow, borders(d));
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
            let took = worker.seconds(work, units, flow, 1) - overhead;
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
