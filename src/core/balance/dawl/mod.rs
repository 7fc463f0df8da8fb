//! DAWL, the dynamic adaptive workload balancer (Geng et al., PDAWL, section
//! 3.1), for any number of CPU and GPU devices.
//!
//! docs/dawl.md explains the whole balancer, with its equations and what each part
//! gains. The paper's seven steps are in these modules:
//!
//! 1. First shares: from equal probes where the engine ran some, else equal shares
//!    ([`Dawl::plan`] of the first step; `part`).
//! 2. Configuration: the plan says what each device holds.
//! 3. Run and time: [`rates`] reads each step's report, and keeps the
//!    estimates.
//! 4. The next chunk goes to the device that is free first: [`chunks`], at the
//!    [`granularity`] that the timings suggest.
//! 5. The last tenth is divided by the ratio of work done: [`chunks`].
//! 6. At the barrier, `shares` decides new shares, the [`partition`] with which all
//!    finish together, moved only where that pays; [`active_set`] has trials
//!    of other devices, and of streams.
//! 7. Release: the engine's part.
//!
//! In settled times, `ahead` prepares the coming step while the devices work. A
//! guide is a cost model's plan whose structure is kept (`shares`).

pub mod active_set;
mod ahead;
pub mod chunks;
pub mod granularity;
mod part;
pub mod partition;
pub mod rates;
mod shares;
#[cfg(test)]
mod streaming_tests;

use self::active_set::{ActiveSet, Change, STREAMING_STEPS};
use self::ahead::Ahead;
use self::chunks::{ChunkScheduler, Expectation, StepIntent, seconds};
use self::granularity::Granularity;
use self::partition::Partition;
use self::rates::{Estimate, Kernels, NEVER_SUDDEN, RateEstimates};
use self::shares::Guide;
use super::windows::more_launches;
use super::{
    Balancer, ChunkDone, DeviceView, Next, Overhead, Probe, ProbeKind, Setup, StepPlan, StepReport,
    StepState,
};
use crate::time::Nanos;

/// First steps, and steps after a change, in which a cheap move need not pay for itself:
/// what they show serves all later steps.
const LEARNING: u32 = 2;
/// Steps without a change after which plans are settled.
const SETTLING: u32 = 3;
/// Seconds of work that are enqueued ahead for a lone device, as probes tell it: three times what a
/// driver takes to report a completion, since short steps take less than probes of them.
const AHEAD: f64 = 500e-6;
/// Most steps enqueued ahead.
const MOST_AHEAD: u32 = 64;
/// Relative change of a plan after which observations are of new conditions.
const OTHER_PLAN: f64 = 0.05;

/// Steps that are alike in that devices stream, or none does. The first one after a
/// switch does not count.
#[derive(Clone, Copy, Debug)]
struct Alike {
    is_first: bool,
    steps: u32,
    /// Seconds of the fastest.
    fastest: f64,
}

impl Default for Alike {
    fn default() -> Self {
        Self {
            is_first: true,
            steps: 0,
            fastest: f64::INFINITY,
        }
    }
}

/// The balancer. See the module's page.
#[derive(Clone, Debug)]
pub struct Dawl {
    units: u64,
    steps: u32,
    devices: Vec<DeviceView>,
    /// See [`Setup::direct`].
    direct: Option<f64>,
    /// See [`Setup::published`].
    published: f64,
    moves_directly: bool,
    runs_ahead: bool,
    bus: Option<f64>,
    memory: Option<f64>,
    even: bool,
    wants_probes: bool,
    active: ActiveSet,
    rates: Vec<RateEstimates>,
    /// Seconds from the last device's end, once known, to the barrier's.
    barrier: Estimate,
    /// The steps since devices began to stream, or ceased to.
    alike: Alike,
    /// A step with streams was seen since the last change.
    has_streamed: bool,
    /// Seconds by which moves delay a step beyond their transfers.
    move_delay: Estimate,
    /// Seconds of the transfers that the present plan needs.
    transfers: f64,
    /// Seconds of the fastest step with the present plan.
    fastest_step: Option<f64>,
    granularity: Vec<Granularity>,
    chunks: ChunkScheduler,
    plan: StepPlan,
    /// Seconds of the planned step, if no device is to stream in it.
    unstreamed: Option<f64>,
    planned: u32,
    /// The last step whose plan differed from the one before.
    replanned: u32,
    /// The last step in which a change of a device was confirmed.
    changed: Option<u32>,
    reports: u32,
    /// Seconds of enqueueing a step on each device, where probed.
    enqueue: Vec<Option<f64>>,
    /// Probes have shown that one device alone is best, or those that hold all units.
    alone: bool,
    /// Nothing is decided of who works: before the first step, and after a change.
    is_open: bool,
    /// Parts of the devices, and what a step was expected to take with each before the first.
    considered: Vec<(Vec<usize>, f64)>,
    guide: Option<Guide>,
    ahead: Ahead,
}

impl Dawl {
    /// A balancer for a setup.
    pub fn new(setup: &Setup) -> Self {
        let count = setup.devices.len();
        Self {
            units: setup.units,
            steps: setup.steps,
            devices: setup.devices.clone(),
            direct: setup.direct,
            published: setup.published,
            moves_directly: setup.moves_directly,
            runs_ahead: setup.runs_ahead,
            bus: setup.bus,
            memory: setup.memory,
            even: setup.even,
            wants_probes: true,
            active: ActiveSet::new(count),
            rates: vec![RateEstimates::default(); count],
            barrier: Estimate::default(),
            alike: Alike::default(),
            has_streamed: false,
            move_delay: Estimate::default(),
            transfers: 0.0,
            fastest_step: None,
            granularity: (setup.devices.iter())
                .map(|d| Granularity::new(d.capacity.is_some(), d.min_chunk))
                .collect(),
            chunks: ChunkScheduler::new(setup.units, count),
            plan: StepPlan::default(),
            unstreamed: None,
            planned: 0,
            replanned: 0,
            changed: None,
            reports: 0,
            enqueue: vec![None; count],
            alone: false,
            is_open: true,
            considered: Vec::new(),
            guide: None,
            ahead: Ahead::default(),
        }
    }

    /// Begins with a plan of an earlier run, and keeps to its devices until one of them changes.
    /// Probes come first: they wake the devices.
    pub fn resuming(setup: &Setup, plan: StepPlan) -> Self {
        let mut dawl = Self::new(setup);
        let StepPlan { held, pooled } = plan;
        dawl.follow(Partition {
            held,
            pooled,
            seconds: 0.0,
        });
        if let Some(guide) = &mut dawl.guide {
            guide.until_change = true;
        }
        dawl
    }

    /// Begins with these devices.
    pub fn among(mut self, part: &[usize]) -> Self {
        self.active.appoint(|device| part.contains(&device));
        self.is_open = false;
        self
    }

    /// Begins with equal shares, as the paper does, without probes.
    pub fn from_equal_shares(mut self) -> Self {
        self.wants_probes = false;
        self
    }

    /// Whether all rates that the first shares need are known.
    fn knows_all(&self) -> bool {
        let knows = |d: usize| {
            let held = self.rates[d].held.value().is_some();
            let pool = self.known_pool_rate(d, true).is_some();
            match self.devices[d].capacity {
                Some(0) | None => pool,
                Some(_) => held,
            }
        };
        (0..self.devices.len()).all(|d| !self.active.works(d) || knows(d))
    }

    /// Whether nothing has changed for a while; a guide's plan is settled from the
    /// first step.
    fn is_settled(&self, step: u32) -> bool {
        let is_long_after = |of: u32| step > of + SETTLING;
        let settled = match self.guide {
            Some(_) => self.changed.is_none_or(is_long_after),
            None => {
                let last_change = self.changed.unwrap_or(0).max(self.replanned);
                self.reports > LEARNING && is_long_after(last_change)
            }
        };
        settled && !self.is_doubtful()
    }

    /// Whether a suspect observation waits for its confirmation.
    fn is_doubtful(&self) -> bool {
        (self.rates.iter())
            .any(|g| g.held.is_suspect() || g.pool.is_suspect() || g.alone.is_suspect())
    }

    /// From `step` on, the steps are unlike those before.
    fn begin_anew(&mut self, step: u32) {
        self.ahead.prepared = None;
        (self.alone, self.is_open) = (false, true);
        self.replanned = step;
        self.fastest_step = None;
        (self.alike, self.has_streamed) = (Alike::default(), false);
    }

    /// Devices begin to stream in `step`, or cease to. Where the estimates alone say
    /// so, what steps took before is remembered, and this is a trial.
    fn switch_streaming(&mut self, step: u32) {
        let before = std::mem::take(&mut self.alike);
        let is_decided = self.guide.is_some() || self.active.streams(step).is_some();
        if before.steps >= STREAMING_STEPS && !is_decided && self.active.trial.is_none() {
            let change = Change::Streaming(self.unstreamed.is_none());
            self.active.begin(change, step, before.fastest, &[]);
        }
    }

    /// Launches beyond the first of a device that holds `held` units.
    fn more_launches(&self, device: usize, held: u64) -> f64 {
        more_launches(held, self.devices[device].slots) as f64
    }

    /// Steps that these devices, which hold all units, complete within `seconds`; 0 where
    /// their rates are unknown.
    fn steps_within(&self, devices: impl Iterator<Item = usize>, seconds: f64) -> u32 {
        let rates = devices.map(|device| self.rates[device].held.value().unwrap_or(0.0));
        (seconds * rates.sum::<f64>() / self.units as f64).ceil() as u32
    }

    /// What is expected of each device in the step that begins.
    fn expectations(&self, before: &[u64]) -> Vec<Expectation> {
        let transfers = self.transfers(before, &self.plan.held);
        let holding = self.may_hold_alone() && self.plan.pooled.iter().all(|units| *units == 0);
        let held_until = |d: usize| {
            let rates = &self.rates[d];
            let held = self.plan.held[d];
            let launches = self.more_launches(d, held) * rates.launch.seconds();
            let streamed = self.plan.pooled[d] as f64 * self.streamed_kernel(d)?;
            let work = launches + held as f64 / rates.held.value()? + streamed;
            let overhead = rates.overhead(holding).value().unwrap_or(0.0);
            Some(overhead + transfers[d] + work)
        };
        (0..self.devices.len())
            .map(|d| Expectation {
                works: self.active.works(d),
                streams: self.devices[d].capacity.is_some(),
                rate: (self.known_pool_rate(d, self.unstreamed.is_none()))
                    .or(self.devices[d].stream_limit),
                jitter: self.jitter(d),
                contended: self.contended(d),
                alone_known: self.rates[d].alone.value().is_some(),
                streamed_kernel: self.streamed_kernel(d),
                held_until: held_until(d),
            })
            .collect()
    }
}

impl Balancer for Dawl {
    fn name(&self) -> String {
        "dawl".to_owned()
    }

    fn wants_probes(&self) -> bool {
        self.wants_probes
    }

    fn probed(&mut self, probe: &Probe) {
        let rates = &mut self.rates[probe.device];
        let units = probe.units as f64;
        let rate = units / probe.seconds;
        match probe.kind {
            ProbeKind::Held if probe.again => {
                rates.held.observe_within(rate, NEVER_SUDDEN);
            }
            ProbeKind::Held => {
                let kernels = Kernels {
                    units,
                    more: probe.more_launches as f64,
                    chunks: 0.0,
                    streamed: 0.0,
                    seconds: probe.seconds,
                };
                rates.learn_launches(&kernels, true, false);
                (rates.held).observe_anew(rates.launches_left_out(&kernels));
            }
            ProbeKind::Streamed | ProbeKind::Beside => rates.pool.observe_anew(rate),
            ProbeKind::Alone => rates.alone.observe_anew(rate),
        }
    }

    fn overhead(&mut self, overhead: &Overhead) {
        let device = overhead.device;
        let [pool, holding] = [false, true].map(|holding| {
            let exchange = self.exchange(&self.reference(holding, false), device);
            overhead.barrier + exchange
        });
        let rates = &mut self.rates[device];
        rates.overhead.suppose(Some(pool));
        rates.holding.suppose(Some(holding));
        self.enqueue[device] = Some(overhead.enqueue);
    }

    fn is_certain(&self) -> bool {
        self.knows_all() && self.has_certain_part()
    }

    fn plan(&mut self, step: u32) -> StepPlan {
        let given = self.guide.as_mut().and_then(|guide| guide.given.take());
        let partition = match given {
            None if self.reports == 0 && !self.knows_all() => None,
            None => self.shares(step),
            given => given,
        };
        let was_unstreamed = self.unstreamed.is_some();
        self.unstreamed = (partition.as_ref())
            .filter(|partition| self.is_unstreamed(&partition.held, &partition.pooled))
            .map(|partition| partition.seconds);
        if was_unstreamed != self.unstreamed.is_some() {
            self.switch_streaming(step);
        }
        let Partition { held, pooled, .. } = partition.unwrap_or_else(|| self.equal_shares());
        self.ahead = Ahead::default();
        self.transfers = self.transfers_to(&held);
        let plan = StepPlan { held, pooled };
        if is_other(&self.plan, &plan, self.units) {
            self.replanned = step;
            self.fastest_step = None;
        }
        let before = std::mem::replace(&mut self.plan, plan);
        self.planned = step;
        let intent = StepIntent {
            expected: self.expectations(&before.held),
            unstreamed: self.unstreamed,
            moving: !before.held.is_empty() && before.held != self.plan.held,
            settled: self.is_settled(step),
        };
        self.chunks.begin(&self.plan, &self.granularity, intent);
        self.plan.clone()
    }

    fn keep_plan(&mut self, step: u32, took: Nanos) -> bool {
        self.begin_prepared(step, took)
    }

    fn prepare_plan(&mut self, step: u32) {
        self.prepare(step);
    }

    fn next(&mut self, device: usize, state: &StepState) -> Next {
        if !self.active.is_alive(device) {
            return Next::Done;
        }
        self.chunks.next(device, state)
    }

    fn completed(&mut self, done: &ChunkDone) {
        self.chunks.completed(done);
    }

    fn step_ended(&mut self, report: &StepReport) {
        let anew = report.step == self.replanned;
        let mut changed = false;
        for (d, did) in report.devices.iter().enumerate() {
            if self.observe(d, did, anew, report.moved > 0) {
                changed = true;
            }
            let progress = self.progress(d);
            self.granularity[d].adapt(&progress);
        }
        let known = report.devices.iter().map(|d| d.known).max().unwrap_or(0);
        (self.barrier).observe_anew(seconds(report.duration.saturating_sub(known)));
        let clean = self.without_moves(report);
        if report.moved > 0 {
            let usual = self.fastest_step.unwrap_or(clean);
            let delay = seconds(report.duration) - usual - self.transfers;
            (self.move_delay).observe_within(delay.max(0.0), NEVER_SUDDEN);
        }
        self.fastest_step = Some(self.fastest_step.map_or(clean, |least| least.min(clean)));
        let seconds = match self.needs_no_barrier() {
            true => seconds(
                report
                    .devices
                    .iter()
                    .map(|did| did.held_busy)
                    .max()
                    .unwrap_or(0),
            ),
            false => clean,
        };
        if let Some(trial) = &mut self.active.trial {
            trial.observe(report.step, seconds);
        }
        if changed || self.is_disappointed(report.step, seconds) {
            self.changed = Some(report.step);
            self.begin_anew(report.step + 1);
            self.guide.take_if(|guide| guide.until_change);
            if self.guide.is_none() {
                self.active.start_over(report.step + 1);
            }
        }
        if report.moved == 0 && !changed {
            self.has_streamed |= self.unstreamed.is_none() && !self.alike.is_first;
            if !std::mem::take(&mut self.alike.is_first) {
                self.alike.steps += 1;
                self.alike.fastest = self.alike.fastest.min(clean);
            }
        }
        self.reports += 1;
        self.ahead.ended = None;
    }

    fn lost(&mut self, device: usize) {
        self.ahead.prepared = None;
        if let Some(guide) = &mut self.guide {
            let needs = |given: &mut Partition| given.held[device] + given.pooled[device] > 0;
            guide.given.take_if(needs);
        }
        let worked = self.active.works(device);
        self.guide.take_if(|guide| worked && guide.until_change);
        self.active.lost(device);
        if worked && self.guide.is_none() {
            // What did not pay beside the lost device may pay now.
            self.active.start_over(self.planned);
            self.begin_anew(self.planned);
        }
        self.chunks.lost(device, |d| self.active.works(d));
        if self.plan.held.get(device).is_some_and(|held| *held > 0) {
            // Steps begin again from 0, with nothing held.
            self.plan = StepPlan::default();
        }
    }

    fn considered(&self) -> Vec<(Vec<usize>, f64)> {
        self.considered.clone()
    }

    fn returned(&mut self, device: usize, step: u32) {
        self.active.returned(device, step);
        self.changed = Some(step.saturating_sub(1));
        self.begin_anew(step);
    }

    fn lookahead(&self) -> u32 {
        let is_guided = self.guide.is_some();
        let has_settled = self.reports >= 2 && self.planned > self.replanned;
        let is_known = is_guided || has_settled || self.alone;
        let settled = is_known && self.active.trial.is_none() && !self.is_doubtful();
        if !settled || !self.needs_no_barrier() {
            return 0;
        }
        let holds = |device: &usize| self.plan.held[*device] > 0;
        let holders = (0..self.devices.len()).filter(holds);
        self.steps_within(holders, AHEAD).clamp(2, MOST_AHEAD)
    }
}

/// Whether two plans differ so much that conditions are new.
fn is_other(old: &StepPlan, new: &StepPlan, units: u64) -> bool {
    let changed = |old: &[u64], new: &[u64]| -> u64 {
        (new.iter().enumerate())
            .map(|(d, new)| new.abs_diff(old.get(d).copied().unwrap_or(0)))
            .sum()
    };
    let both = changed(&old.held, &new.held) + changed(&old.pooled, &new.pooled);
    both as f64 > 2.0 * OTHER_PLAN * units as f64
}
