//! PDAWL: DAWL that begins with a cost model's plan (Geng et al., section 3.2).
//!
//! A [`Planner`] gives the first plan, so nothing is probed, and its expectations
//! stand for whatever has not been measured. The model decides the structure of
//! plans: which devices are active, and whether they stream. Within it, [`Dawl`]
//! lets shares follow the measurements.
//!
//! After each step, each device's measured seconds are compared with those that the
//! model expects for the same work; [`trust`] keeps their ratio and its spread. When
//! the gap is large and a second step confirms it, the planner is asked again, for
//! devices that are so much slower. When the model cannot explain the
//! measurements, or surprises follow one another, DAWL continues without it.

#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod tests;
pub mod trust;

use self::trust::Trust;
use super::dawl::partition::Partition;
use super::dawl::rates::Supposed;
use super::{
    Account, Balancer, ChunkDone, Dawl, Next, Overhead, Probe, Setup, StepPlan, StepReport,
    StepState, Trusted,
};
use crate::time::Nanos;

/// The balancer. See the module's page.
pub struct Pdawl {
    setup: Setup,
    model: String,
    planner: Box<dyn Planner>,
    dawl: Dawl,
    alive: Vec<bool>,
    trust: Vec<Trust>,
    /// The slowdown of each device with which the planner was last asked.
    assumed: Vec<f64>,
    /// The planner is to be asked for the next plan.
    due: bool,
    /// Steps reported, and their number at the last surprise.
    reports: u32,
    surprised: Option<u32>,
    surprises: u32,
    predicted: Option<f64>,
    expected: Vec<Option<f64>>,
    /// The plan that was noted last, and what was last asked and answered: both stay while steps are
    /// enqueued ahead, which takes less time than the planner.
    noted: StepPlan,
    answered: Option<(StepPlan, Vec<f64>, Forecast)>,
    replans: u32,
    handed_over: Option<u32>,
}

impl Pdawl {
    /// A balancer that begins with the plan of a planner with the model of this name;
    /// plain DAWL where the planner has none.
    pub fn new(setup: &Setup, model: impl Into<String>, planner: Box<dyn Planner>) -> Self {
        let count = setup.devices.len();
        let mut pdawl = Self {
            setup: setup.clone(),
            model: model.into(),
            planner,
            dawl: Dawl::new(setup),
            alive: vec![true; count],
            trust: vec![Trust::new(0.0); count],
            assumed: vec![1.0; count],
            due: false,
            reports: 0,
            surprised: None,
            surprises: 0,
            predicted: None,
            expected: Vec::new(),
            noted: StepPlan::default(),
            answered: None,
            replans: 0,
            handed_over: None,
        };
        match pdawl.forecast() {
            None => pdawl.handed_over = Some(0),
            Some(forecast) => {
                pdawl.predicted = Some(forecast.step_seconds);
                pdawl.trust = (forecast.devices.iter())
                    .map(|device| Trust::new(device.spread))
                    .collect();
                let supposed: Vec<Supposed> = forecast.devices.iter().map(supposed).collect();
                pdawl.dawl = Dawl::knowing(setup, &supposed);
                pdawl.dawl.follow(partition(forecast));
            }
        }
        pdawl
    }

    /// Measured over modelled seconds of each device.
    fn slowdown(&self) -> Vec<f64> {
        (self.assumed.iter().zip(&self.trust))
            .map(|(assumed, trust)| assumed * trust.ratio())
            .collect()
    }

    /// Assumes these slowdowns from now on.
    fn assume(&mut self, slowdown: Vec<f64>) {
        self.noted = StepPlan::default();
        self.assumed = slowdown;
        self.trust.iter_mut().for_each(Trust::corrected);
    }

    /// The planner's plan for the devices as assumed now, if it has a possible one.
    fn forecast(&self) -> Option<Forecast> {
        let forecast = self.planner.forecast(&self.assumed)?;
        let all = forecast.devices.len() == self.setup.devices.len();
        (all && self.is_possible(&forecast.plan)).then_some(forecast)
    }

    /// Whether a plan divides all units among the devices that are alive.
    fn is_possible(&self, plan: &StepPlan) -> bool {
        let works = |d: usize| plan.held[d] + plan.pooled[d] > 0;
        plan.suits(&self.setup) && (0..self.alive.len()).all(|d| self.alive[d] || !works(d))
    }

    /// Asks for a new forecast. Where its plan has the present structure, measurements
    /// decide the shares; another structure must be worth its moves.
    fn replan(&mut self, step: u32) {
        self.replans += 1;
        let Some(forecast) = self.forecast() else {
            self.hand_over(step);
            return;
        };
        for (d, expected) in forecast.devices.iter().enumerate() {
            self.dawl.suppose(d, &supposed(expected));
        }
        let partition = partition(forecast);
        if !self.dawl.keeps_to(&partition) && self.is_worth_moving(step, &partition) {
            self.dawl.follow(partition);
        }
    }

    /// Whether the remaining steps gain more by a partition than its moves cost.
    fn is_worth_moving(&self, step: u32, to: &Partition) -> bool {
        let present = self.dawl.present();
        if !self.is_possible(present) {
            return true;
        }
        let stay = self.planner.expect(present, &self.assumed).step_seconds;
        let remaining = f64::from(self.setup.steps.saturating_sub(step));
        (stay - to.seconds) * remaining > self.dawl.moving(&to.held)
    }

    fn hand_over(&mut self, step: u32) {
        self.handed_over = Some(step);
        self.noted = StepPlan::default();
        self.due = false;
        self.dawl.let_go(step);
    }

    /// Notes what the model expects of a step that begins, where no device waits for
    /// that: before the first step, and of a lone device's steps.
    fn note_early(&mut self, step: u32) {
        let ahead = self.lookahead() > 0;
        match self.expected.last() {
            Some(same) if ahead && self.noted == *self.dawl.present() => {
                self.expected.resize(step as usize + 1, *same);
            }
            _ if step == 0 || ahead => self.note(step),
            _ => {}
        }
    }

    /// Notes what the model expects of the planned step, while it is asked.
    fn note(&mut self, step: u32) {
        let (step, plan) = (step as usize, self.dawl.present());
        let expected = match self.handed_over {
            Some(_) => None,
            None => Some(self.planner.expect(plan, &self.slowdown()).step_seconds),
        };
        self.noted.clone_from(plan);
        if self.expected.len() <= step {
            self.expected.resize(step + 1, None);
        }
        self.expected[step] = expected;
    }
}

impl Balancer for Pdawl {
    fn name(&self) -> String {
        "pdawl".to_owned()
    }

    fn wants_probes(&self) -> bool {
        self.dawl.wants_probes()
    }

    fn probed(&mut self, probe: &Probe) {
        self.dawl.probed(probe);
    }

    fn overhead(&mut self, overhead: &Overhead) {
        self.dawl.overhead(overhead);
    }

    fn is_certain(&self) -> bool {
        self.dawl.is_certain()
    }

    fn plan(&mut self, step: u32) -> StepPlan {
        if std::mem::take(&mut self.due) {
            self.replan(step);
        }
        let plan = self.dawl.plan(step);
        self.note_early(step);
        plan
    }

    fn keep_plan(&mut self, step: u32, took: Nanos) -> bool {
        let again = !self.due && self.dawl.keep_plan(step, took);
        if again {
            self.note_early(step);
        }
        again
    }

    fn prepare_plan(&mut self, step: u32) {
        // Needed for the report only, so noted while the devices work.
        if step > 1 {
            self.note(step - 1);
        }
        // A suspect measurement must be read before the next plan.
        if !self.trust.iter().any(Trust::is_suspect) {
            self.dawl.prepare_plan(step);
        }
    }

    fn next(&mut self, device: usize, state: &StepState) -> Next {
        self.dawl.next(device, state)
    }

    fn completed(&mut self, done: &ChunkDone) {
        self.dawl.completed(done);
    }

    fn step_ended(&mut self, report: &StepReport) {
        self.dawl.step_ended(report);
        self.reports += 1;
        if self.handed_over.is_some() {
            return;
        }
        let shown = self.shown(report);
        if self.compare(&shown) {
            self.surprised(report.step, &shown);
        }
    }

    fn lost(&mut self, device: usize) {
        self.alive[device] = false;
        self.dawl.lost(device);
        self.due = self.handed_over.is_none();
        let mut slowdown = self.slowdown();
        slowdown[device] = f64::INFINITY;
        self.assume(slowdown);
    }

    fn returned(&mut self, device: usize, step: u32) {
        self.alive[device] = true;
        self.dawl.returned(device, step);
        self.due = self.handed_over.is_none();
        let mut slowdown = self.slowdown();
        slowdown[device] = 1.0;
        self.assume(slowdown);
    }

    fn lookahead(&self) -> u32 {
        self.dawl.lookahead()
    }

    fn account(&self) -> Option<Account> {
        let trusted = |(trust, slowdown): (&Trust, f64)| Trusted {
            slowdown: Some(slowdown).filter(|slowdown| slowdown.is_finite()),
            interval: trust.interval(),
        };
        Some(Account {
            model: self.model.clone(),
            predicted_step_seconds: self.predicted,
            expected_seconds: self.expected.clone(),
            replans: self.replans,
            handed_over: self.handed_over,
            devices: (self.trust.iter().zip(self.slowdown()))
                .map(trusted)
                .collect(),
        })
    }
}

/// The model's expectations of a device, for whatever is not measured.
fn supposed(expected: &Expected) -> Supposed {
    Supposed {
        held: expected.held_rate,
        launch: expected.launch,
        pool: expected.pool_rate,
        alone: expected.alone_rate,
        overhead: Some(expected.overhead),
    }
}

fn partition(forecast: Forecast) -> Partition {
    Partition {
        held: forecast.plan.held,
        pooled: forecast.plan.pooled,
        seconds: forecast.step_seconds,
    }
}

/// Makes plans with a cost model. Equal questions have equal answers.
pub trait Planner: Send {
    /// The plan of the least predicted step, if each device takes
    /// `slowdown[d]` times as long as the model says (infinite for one that is
    /// lost). `None` if no device can do anything.
    fn forecast(&self, slowdown: &[f64]) -> Option<Forecast>;

    /// The forecast of a given plan, with the same slowdowns.
    fn expect(&self, plan: &StepPlan, slowdown: &[f64]) -> Forecast;
}

/// A plan and its expectations.
#[derive(Clone, Debug, PartialEq)]
pub struct Forecast {
    pub plan: StepPlan,
    /// Seconds from barrier to barrier.
    pub step_seconds: f64,
    /// One entry a device.
    pub devices: Vec<Expected>,
}

/// What is expected of a device in a step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Expected {
    /// Seconds from the step's begin until the end of its last command is known; 0 if it
    /// has no work.
    pub seconds: f64,
    /// Held units a second of its kernels, without the time of launches beyond the
    /// first; `None` for a device that computes on host memory.
    pub held_rate: Option<f64>,
    /// Seconds of each of those launches.
    pub launch: Option<f64>,
    /// Pool units a second: streamed, or, on host memory, while others stream.
    pub pool_rate: Option<f64>,
    /// Pool units a second on host memory while no device streams.
    pub alone_rate: Option<f64>,
    /// Seconds of a step in which it computes nothing.
    pub overhead: f64,
    /// Relative standard deviation of the model's predictions for it, as
    /// cross-validation found it.
    pub spread: f64,
}
