//! DAWL, the dynamic adaptive workload balancer (Geng et al., PDAWL, section
//! 3.1), for any number of CPU and GPU devices.
//!
//! The paper's seven steps and where they are:
//!
//! 1. First shares: from equal probes where the engine ran some, else equal
//!    shares ([`Dawl::plan`] of the first step).
//! 2. Configuration: the plan tells the engine what each device holds.
//! 3. Run and time: [`rates`] keeps robust estimates of what was timed.
//! 4. The next chunk to who will be free, by estimated completion:
//!    [`handout`], at the [`granularity`] that the timings suggest.
//! 5. The last tenth by the ratio of work done: [`tail`].
//! 6. At the barrier, new shares with which all [`share`] the finish, moved
//!    only where that pays, and [`explore`] whether everyone is needed.
//! 7. Release: the engine's.
//!
//! Host memory is shared: who streams slows who computes there. So two plans
//! are compared at each barrier, one in which nobody streams, with the rates
//! that were seen then, and one in which all finish together.

pub mod explore;
pub mod granularity;
pub mod handout;
pub mod rates;
pub mod share;
pub mod tail;

use self::explore::{Crew, PROMISE};
use self::granularity::Granularity;
use self::handout::{Expected, Handout, Intent, seconds};
use self::rates::{Estimate, Gauge, Verdict};
use self::share::{Ability, Division};
use super::division::largest_remainder;
use super::{
    Balancer, ChunkDone, DeviceStep, DeviceView, Next, Probe, ProbeKind, Setup, StepPlan,
    StepReport, StepState,
};

/// Steps in which a move need not pay for itself: what is learned in them
/// serves all that follow.
const LEARNING: u32 = 2;
/// Steps without a surprise after which plans are trusted to come true.
const SETTLING: u32 = 3;
/// How many times what a move costs it must gain.
const PAYS: f64 = 1.25;
/// A rate counts if it was seen on this part of a device's units.
const ENOUGH: u64 = 96;
/// How many times a prediction a measurement must be to be believed instead.
const FAR_OFF: f64 = 1.1;
/// Shares below this are worth asking whether they are worth it.
const SMALL_SHARE: f64 = 0.1;
/// Streaming must promise so much to be preferred: its cost is known less well.
const STREAMING_PAYS: f64 = 0.99;
/// Relative change of a plan after which earlier timings say little.
const OTHER_PLAN: f64 = 0.05;

/// The balancer. See the module's page.
#[derive(Clone, Debug)]
pub struct Dawl {
    units: u64,
    steps: u32,
    devices: Vec<DeviceView>,
    wants_probes: bool,
    crew: Crew,
    gauges: Vec<Gauge>,
    /// Seconds from the last device's end to the barrier's.
    barrier: Estimate,
    /// Seconds of the fastest step with the present plan.
    fastest_step: Option<f64>,
    grain: Vec<Granularity>,
    handout: Handout,
    plan: StepPlan,
    /// Seconds of the planned step, if nobody is meant to stream in it.
    quiet: Option<f64>,
    planned: u32,
    /// The last step whose plan was unlike the one before.
    replanned: u32,
    /// Step after which a change was confirmed.
    changed: Option<u32>,
    reports: u32,
}

impl Dawl {
    /// A balancer that knows nothing but the setup.
    pub fn new(setup: &Setup) -> Self {
        let count = setup.devices.len();
        Self {
            units: setup.units,
            steps: setup.steps,
            devices: setup.devices.clone(),
            wants_probes: true,
            crew: Crew::new(count),
            gauges: vec![Gauge::default(); count],
            barrier: Estimate::default(),
            fastest_step: None,
            grain: (setup.devices.iter())
                .map(|d| Granularity::new(d.capacity.is_some(), d.min_chunk))
                .collect(),
            handout: Handout::new(setup.units, count),
            plan: StepPlan::default(),
            quiet: None,
            planned: 0,
            replanned: 0,
            changed: None,
            reports: 0,
        }
    }

    /// Begins with equal shares, as the paper does, instead of probes.
    pub fn from_equal_shares(mut self) -> Self {
        self.wants_probes = false;
        self
    }

    /// Whether probes have told what the first shares need.
    fn knows_all(&self) -> bool {
        let knows = |d: usize| {
            let held = self.gauges[d].held.value().is_some();
            let pool = self.known_pool_rate(d, true).is_some();
            match self.devices[d].capacity {
                Some(0) | None => pool,
                Some(_) => held,
            }
        };
        (0..self.devices.len()).all(|d| !self.crew.works(d) || knows(d))
    }

    /// Steps 1 and 2: equal shares, held as far as memory reaches.
    fn equal_shares(&self) -> Division {
        let weights: Vec<f64> = (0..self.devices.len())
            .map(|d| f64::from(u8::from(self.crew.works(d))))
            .collect();
        let counts = largest_remainder(self.units, &weights);
        let held: Vec<u64> = (self.devices.iter().zip(&counts))
            .map(|(device, count)| device.capacity.unwrap_or(0).min(*count))
            .collect();
        Division {
            pooled: counts.iter().zip(&held).map(|(c, h)| c - h).collect(),
            held,
            seconds: 0.0,
        }
    }

    /// Step 6: the shares with which all finish together.
    fn shares(&mut self, step: u32) -> Option<Division> {
        if let Some(gauges) = self.crew.conclude() {
            self.gauges = gauges;
        }
        let target = self.best(None, |abilities| {
            share::finish_together(self.units, abilities)
        })?;
        let division = self.unless_moving_costs_more(step, target);
        if self.reports < 1 || self.crew.trial.is_some() || self.is_doubtful() {
            return Some(division);
        }
        if self.explore(step, &division) {
            return self.best(None, |abilities| {
                share::finish_together(self.units, abilities)
            });
        }
        Some(division)
    }

    /// The better of what `divide` makes of the devices' abilities when nobody
    /// streams and when all may; `other`'s part in the work is changed.
    fn best(
        &self,
        other: Option<usize>,
        divide: impl Fn(&[Ability]) -> Option<Division>,
    ) -> Option<Division> {
        let quiet = divide(&self.abilities(other, false));
        let streaming = divide(&self.abilities(other, true));
        match (quiet, streaming) {
            // Where nobody streams, rates beside streams say nothing.
            (Some(quiet), Some(other)) if self.is_quiet(&other.held, &other.pooled) => Some(quiet),
            (Some(quiet), Some(streaming)) => {
                match streaming.seconds < STREAMING_PAYS * quiet.seconds {
                    true => Some(streaming),
                    false => Some(quiet),
                }
            }
            (one, other) => one.or(other),
        }
    }

    /// Whether nobody streams in a division.
    fn is_quiet(&self, held: &[u64], pooled: &[u64]) -> bool {
        let streams = |d: usize| self.devices[d].capacity.is_some() && pooled[d] > 0;
        !held.is_empty() && !(0..self.devices.len()).any(streams)
    }

    /// What the devices that take part can do when all may stream or nobody
    /// does; `other`'s part is changed.
    fn abilities(&self, other: Option<usize>, streaming: bool) -> Vec<Ability> {
        (0..self.devices.len())
            .map(|d| {
                if self.crew.works(d) == (other == Some(d)) {
                    return Ability::default();
                }
                let capacity = self.devices[d].capacity;
                Ability {
                    capacity: capacity.unwrap_or(0),
                    held_rate: self.held_rate(d),
                    pool_rate: match capacity.is_some() && !streaming {
                        true => 0.0,
                        false => self.pool_rate(d, streaming),
                    },
                    overhead: self.gauges[d].overhead.value().unwrap_or(0.0),
                }
            })
            .collect()
    }

    /// Held units a second: measured, or else as another device of the kind,
    /// or else as fast as anything known.
    fn held_rate(&self, device: usize) -> f64 {
        let known = |d: usize| self.gauges[d].held.value();
        known(device)
            .or_else(|| self.fastest(device, known))
            .or_else(|| self.fastest(device, |d| self.known_pool_rate(d, true)))
            .unwrap_or(1.0)
    }

    /// Pool units a second when all may stream or nobody does: measured, or
    /// else what the link allows, or else as another device of the kind.
    fn pool_rate(&self, device: usize, streaming: bool) -> f64 {
        let known = |d: usize| self.known_pool_rate(d, streaming);
        known(device)
            .or(self.devices[device].stream_limit)
            .or_else(|| self.fastest(device, known))
            .unwrap_or_else(|| 0.05 * self.gauges[device].held.value().unwrap_or(1.0))
    }

    fn known_pool_rate(&self, device: usize, streaming: bool) -> Option<f64> {
        let gauge = &self.gauges[device];
        let (pool, alone) = (gauge.pool.value(), gauge.alone.value());
        match streaming {
            true => pool.or(alone),
            false => alone.or(pool),
        }
    }

    /// The greatest known figure among the devices of the same kind, or else
    /// of any.
    fn fastest(&self, device: usize, known: impl Fn(usize) -> Option<f64>) -> Option<f64> {
        let kind = self.devices[device].kind;
        let all = 0..self.devices.len();
        let alike = all.clone().filter(|d| self.devices[*d].kind == kind);
        (alike.filter_map(&known).reduce(f64::max))
            .or_else(|| all.filter_map(&known).reduce(f64::max))
    }

    /// Whether plans have come true for a while.
    fn is_settled(&self, step: u32) -> bool {
        let quiet_since = self.changed.unwrap_or(0).max(self.replanned);
        self.reports > LEARNING && step > quiet_since + SETTLING && !self.is_doubtful()
    }

    /// Whether an observation waits for its confirmation: no time for trials.
    fn is_doubtful(&self) -> bool {
        (self.gauges.iter())
            .any(|g| g.held.is_suspect() || g.pool.is_suspect() || g.alone.is_suspect())
    }

    /// Units a second that change hands.
    fn link(&self, device: usize) -> f64 {
        self.devices[device]
            .stream_limit
            .unwrap_or_else(|| self.pool_rate(device, true))
            .max(f64::MIN_POSITIVE)
    }

    /// Seconds that it takes to hold `held` instead of what is held now.
    fn moving(&self, held: &[u64]) -> f64 {
        (self.plan.held.iter().zip(held).enumerate())
            .map(|(d, (from, to))| from.abs_diff(*to) as f64 / self.link(d))
            .fold(0.0, f64::max)
    }

    /// Keeps what is held where it is, unless the steps that remain gain more
    /// than moving costs, and more than the timings' noise.
    fn unless_moving_costs_more(&self, step: u32, target: Division) -> Division {
        if self.plan.held.is_empty() {
            return target;
        }
        let must = (0..self.devices.len()).any(|d| self.plan.held[d] > 0 && !self.crew.works(d));
        let stay = self.best(None, |abilities| {
            share::around_held(self.units, &self.plan.held, abilities)
        });
        let Some(stay) = stay.filter(|_| !must) else {
            return target;
        };
        let gain = stay.seconds - target.seconds;
        let remaining = f64::from(self.steps.saturating_sub(step));
        let learning = step <= LEARNING || self.changed.is_some_and(|c| step <= c + LEARNING);
        let (noise, pays) = match learning {
            true => (0.01, true),
            false => (0.03, gain * remaining > PAYS * self.moving(&target.held)),
        };
        if gain > noise * target.seconds && pays {
            target
        } else {
            stay
        }
    }

    /// Starts a trial with one device fewer or more if it promises to pay.
    fn explore(&mut self, step: u32, division: &Division) -> bool {
        let reference = self.as_it_is(step, division);
        let remaining = f64::from(self.steps.saturating_sub(step));
        let pays = |dawl: &Self, seconds: f64, to: &Division| {
            let gain = reference - seconds;
            gain > PROMISE * reference && gain * remaining > PAYS * dawl.moving(&to.held)
        };
        let share = |d: &usize| division.held[*d] + division.pooled[*d];
        let small = SMALL_SHARE * self.units as f64;
        let mut leaving = self.crew.candidates(step, true);
        leaving.retain(|d| (share(d) as f64) < small);
        leaving.sort_by_key(share);
        for device in leaving {
            let Some((seconds, without)) = self.at_best_without(device, division) else {
                continue;
            };
            if pays(self, seconds, &without) {
                self.crew.try_other(step, device, reference, &self.gauges);
                return true;
            }
        }
        for device in self.crew.candidates(step, false) {
            let with = self.best(Some(device), |abilities| {
                share::finish_together(self.units, abilities)
            });
            if with.is_some_and(|with| pays(self, with.seconds, &with)) {
                self.crew.try_other(step, device, reference, &self.gauges);
                return true;
            }
            self.crew.defer(device, step);
        }
        false
    }

    /// Seconds of a step with everyone who takes part now: as predicted, unless
    /// a plan that was kept for some steps shows that prediction is far off.
    fn as_it_is(&self, step: u32, division: &Division) -> f64 {
        let predicted = division.seconds + self.barrier.value().unwrap_or(0.0);
        self.fastest_step
            .filter(|_| step > self.replanned + 2)
            .filter(|measured| *measured > FAR_OFF * predicted)
            .unwrap_or(predicted)
    }

    /// The least time that a step without `device` could take, and its
    /// division: a device left alone waits for nobody, and whoever computes
    /// on host memory has more of its bandwidth.
    fn at_best_without(&self, device: usize, division: &Division) -> Option<(f64, Division)> {
        let without = self.best(Some(device), |abilities| {
            let mut abilities = abilities.to_vec();
            let mut others = (0..abilities.len()).filter(|d| abilities[*d] != Ability::default());
            if let (Some(lone), None) = (others.next(), others.next()) {
                abilities[lone].overhead = 0.0;
            }
            share::finish_together(self.units, &abilities)
        })?;
        let share_the_host = division.pooled[device] > 0
            && (division.pooled.iter().enumerate()).any(|(d, units)| d != device && *units > 0);
        let relief = match share_the_host {
            true => division.pooled[device] as f64 / self.units as f64,
            false => 0.0,
        };
        Some((without.seconds * (1.0 - relief), without))
    }

    /// Takes in what a device did in a step. Says whether it changed for good.
    fn observe(&mut self, d: usize, did: &DeviceStep, anew: bool, moved: bool) -> bool {
        let mut changed = false;
        let gauge = &mut self.gauges[d];
        let mut take = |estimate: &mut Estimate, observed: f64| {
            if anew {
                estimate.observe_anew(observed);
                return false;
            }
            let sudden = estimate.observe(observed) == Verdict::Changed;
            changed |= sudden;
            sudden
        };
        if did.held > 0 && did.held_busy > 0 {
            // Kernels on streamed units took a part of that time.
            let beside = (did.held_busy as f64 / did.pooled_busy.max(1) as f64).min(1.0);
            let done = did.held as f64 + did.pooled as f64 * beside;
            take(&mut gauge.held, done / seconds(did.held_busy));
        } else {
            gauge.held.unobserved();
        }
        let progress = self.handout.progress(d);
        let (rate, alone) = match self.devices[d].capacity {
            Some(_) => (progress.rate().filter(|_| progress.done > 0), None),
            None => {
                // A few units at the end do not occupy all cores.
                let enough = self.grain[d].min_chunk().max(progress.done / ENOUGH);
                let enough = enough.min(progress.done);
                (progress.beside_rate(enough), progress.alone_rate(enough))
            }
        };
        let known = gauge.pool.value().is_some();
        let enough = !known || progress.done >= self.grain[d].min_chunk();
        // Units that change hands take bandwidth, and chunks wait for them.
        let on_host = self.devices[d].capacity.is_none();
        let disturbed = moved && on_host && (known || gauge.alone.value().is_some());
        let rate = rate.filter(|_| enough && !disturbed);
        let mut note = |seen: Option<f64>, of: &mut Estimate| {
            let Some(rate) = seen else {
                of.unobserved();
                return 1.0;
            };
            let before = of.value();
            match take(of, rate) {
                true => rate / before.unwrap_or(rate),
                false => 1.0,
            }
        };
        // What changed its speed changed it in the case not seen, too.
        let pool = note(rate, &mut gauge.pool);
        let single = note(alone, &mut gauge.alone);
        if rate.is_none() {
            gauge.pool.scale(single);
        }
        if alone.is_none() {
            gauge.alone.scale(pool);
        }
        // While units change hands, devices wait for those as well.
        if did.held + did.pooled > 0 && (!moved || gauge.overhead.value().is_none()) {
            let idle = did
                .finished
                .saturating_sub(did.held_busy.max(did.pooled_busy));
            gauge.overhead.observe_anew(seconds(did.waited.min(idle)));
        }
        changed
    }

    /// A step's seconds less the wait for units that changed hands.
    fn without_moves(&self, report: &StepReport) -> f64 {
        let waited = (report.devices.iter().zip(&self.gauges))
            .map(|(did, gauge)| seconds(did.waited) - gauge.overhead.value().unwrap_or(0.0))
            .fold(0.0, f64::max);
        let waited = if report.moved > 0 { waited } else { 0.0 };
        seconds(report.duration) - waited
    }

    /// What the handout may expect of the step that begins.
    fn expectations(&self, before: &[u64]) -> Vec<Expected> {
        let held_until = |d: usize| {
            let gauge = &self.gauges[d];
            let held = self.plan.held[d];
            let work = (held + self.plan.pooled[d]) as f64 / gauge.held.value()?;
            let moved = held.abs_diff(before.get(d).copied().unwrap_or(held));
            let overhead = gauge.overhead.value().unwrap_or(0.0);
            Some(overhead + moved as f64 / self.link(d) + work)
        };
        (0..self.devices.len())
            .map(|d| Expected {
                works: self.crew.works(d),
                streams: self.devices[d].capacity.is_some(),
                rate: (self.known_pool_rate(d, self.quiet.is_none()))
                    .or(self.devices[d].stream_limit),
                alone_known: self.gauges[d].alone.value().is_some(),
                kernels: self.gauges[d].held.value(),
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
        let rate = probe.units as f64 / probe.seconds;
        let gauge = &mut self.gauges[probe.device];
        match probe.kind {
            ProbeKind::Held => gauge.held.observe_anew(rate),
            ProbeKind::Streamed | ProbeKind::Beside => gauge.pool.observe_anew(rate),
            ProbeKind::Alone => gauge.alone.observe_anew(rate),
        }
    }

    fn plan(&mut self, step: u32) -> StepPlan {
        let division = match self.reports == 0 && !self.knows_all() {
            true => None,
            false => self.shares(step),
        };
        self.quiet = (division.as_ref())
            .filter(|division| self.is_quiet(&division.held, &division.pooled))
            .map(|division| division.seconds);
        let Division { held, pooled, .. } = division.unwrap_or_else(|| self.equal_shares());
        let plan = StepPlan { held, pooled };
        if is_other(&self.plan, &plan, self.units) {
            self.replanned = step;
            self.fastest_step = None;
        }
        let before = std::mem::replace(&mut self.plan, plan);
        self.planned = step;
        let intent = Intent {
            expected: self.expectations(&before.held),
            quiet: self.quiet,
            moving: !before.held.is_empty() && before.held != self.plan.held,
            settled: self.is_settled(step),
        };
        self.handout.begin(&self.plan, &self.grain, intent);
        self.plan.clone()
    }

    fn next(&mut self, device: usize, state: &StepState) -> Next {
        if !self.crew.is_alive(device) {
            return Next::Done;
        }
        self.handout.next(device, state)
    }

    fn completed(&mut self, done: &ChunkDone) {
        self.handout.completed(done);
    }

    fn step_ended(&mut self, report: &StepReport) {
        let anew = report.step == self.replanned;
        let mut changed = false;
        for (d, did) in report.devices.iter().enumerate() {
            changed |= self.observe(d, did, anew, report.moved > 0);
            self.grain[d].adapt(self.handout.progress(d));
        }
        let finished = report.devices.iter().map(|d| d.finished).max().unwrap_or(0);
        (self.barrier).observe_anew(seconds(report.duration.saturating_sub(finished)));
        let clean = self.without_moves(report);
        self.fastest_step = Some(self.fastest_step.map_or(clean, |least| least.min(clean)));
        // The steps of a device that is alone and holds everything follow one
        // another without waits.
        let lone = (self.crew.lone()).filter(|d| self.plan.held[*d] == self.units);
        let seconds = lone.map_or(clean, |d| seconds(report.devices[d].held_busy));
        if let Some(trial) = self.crew.trial.as_mut().filter(|t| t.step == report.step) {
            trial.seconds = Some(seconds);
        }
        if changed {
            self.changed = Some(report.step);
            self.replanned = report.step + 1;
            self.fastest_step = None;
            self.crew.start_over(report.step + 1);
        }
        self.reports += 1;
    }

    fn lost(&mut self, device: usize) {
        self.crew.lost(device);
        self.handout.lost(device, |d| self.crew.works(d));
        if let Some(held) = self.plan.held.get_mut(device) {
            *held = 0;
        }
    }

    fn lookahead(&self) -> u32 {
        let settled = self.reports >= 2
            && self.planned > self.replanned
            && self.crew.trial.is_none()
            && !self.is_doubtful()
            && self
                .crew
                .lone()
                .is_some_and(|d| self.plan.held[d] == self.units);
        if !settled {
            return 0;
        }
        let until = self.crew.next_try().unwrap_or(self.steps);
        until.saturating_sub(self.planned + 1).min(2)
    }
}

/// Whether two plans differ by more than timings can be carried over.
fn is_other(old: &StepPlan, new: &StepPlan, units: u64) -> bool {
    let changed = |old: &[u64], new: &[u64]| -> u64 {
        (new.iter().enumerate())
            .map(|(d, new)| new.abs_diff(old.get(d).copied().unwrap_or(0)))
            .sum()
    };
    let both = changed(&old.held, &new.held) + changed(&old.pooled, &new.pooled);
    both as f64 > 2.0 * OTHER_PLAN * units as f64
}
