//! Balancers of co-runs as deciders of a divider: each part is a device on host memory, and each
//! step's ranges are what the balancer plans.

use super::chunks::Chunks;
use super::{Divider, DividerError, Options};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use crate::balance::{
    Balancer, ChunkDone, DeviceStep, DeviceView, Next, Setup, StepReport, StepState, Strategy,
};
use crate::machine::DeviceKind;
use crate::time::Nanos;

/// Steps of a loop whose end is unknown.
const MANY: u32 = 1 << 20;

/// A balancer, and what it was told of the present step.
pub(super) struct Decider {
    /// Only the mutex makes it one that threads may share.
    balancer: Mutex<Box<dyn Balancer>>,
    step: u32,
    lost: Vec<bool>,
    /// When each part had ended its last chunk, from the step's begin, and units of each.
    ended: Vec<Nanos>,
    units: Vec<u64>,
}

fn nanos(seconds: f64) -> Nanos {
    (seconds * 1e9) as Nanos
}

impl Divider {
    /// A divider whose ranges a balancer of co-runs decides: `dawl`, `guided` (HGuided) or
    /// `fixed:SHARE,...`. Limits, granularity and weights hold; the cost of moves does not count.
    ///
    /// # Errors
    /// As [`Divider::new`], and when the strategy does not suit.
    pub fn with_strategy(options: Options, strategy: &Strategy) -> Result<Self, DividerError> {
        let wrong = |error: crate::balance::StrategyError| DividerError::Option {
            option: "balancer",
            why: error.to_string(),
        };
        let make = |setup: &Setup| strategy.build(setup).map_err(wrong);
        Self::with_balancer(options, make)
    }

    /// The same with a balancer of one's own, which `make` makes.
    ///
    /// # Errors
    /// As [`Divider::new`], and what `make` returns.
    pub fn with_balancer(
        options: Options,
        make: impl FnOnce(&Setup) -> Result<Box<dyn Balancer>, DividerError>,
    ) -> Result<Self, DividerError> {
        let mut divider = Self::new(options)?;
        let options = &divider.state.options;
        let device = DeviceView {
            kind: DeviceKind::Cpu,
            compute_units: 1,
            capacity: None,
            slots: None,
            stream_limit: None,
            latency: 0.0,
            min_chunk: options.granularity,
        };
        let steps = options.steps.and_then(|steps| u32::try_from(steps).ok());
        let parts = options.parts;
        let balancer = make(&Setup {
            units: options.units,
            steps: steps.unwrap_or(MANY),
            devices: vec![device; parts],
            direct: None,
            moves_directly: false,
            published: 0.0,
            runs_ahead: false,
            bus: None,
            memory: None,
            even: true,
        })?;
        divider.decider = Some(Decider {
            balancer: Mutex::new(balancer),
            step: 0,
            lost: vec![false; parts],
            ended: vec![0; parts],
            units: vec![0; parts],
        });
        Ok(divider)
    }
}

fn inner(balancer: &mut Mutex<Box<dyn Balancer>>) -> &mut dyn Balancer {
    let balancer = balancer.get_mut();
    &mut **balancer.unwrap_or_else(PoisonError::into_inner)
}

impl Decider {
    /// Shares of the next step. Parts that are lost or back since the last one are told.
    pub(super) fn shares(&mut self, is_lost: impl Fn(usize) -> bool) -> Vec<f64> {
        for part in 0..self.lost.len() {
            match (self.lost[part], is_lost(part)) {
                (false, true) => inner(&mut self.balancer).lost(part),
                (true, false) => inner(&mut self.balancer).returned(part, self.step),
                _ => {}
            }
            self.lost[part] = is_lost(part);
        }
        self.ended.fill(0);
        self.units.fill(0);
        let plan = inner(&mut self.balancer).plan(self.step);
        let both = plan.held.iter().zip(&plan.pooled);
        both.map(|(held, pooled)| (held + pooled) as f64).collect()
    }

    /// The units that a part takes next.
    pub(super) fn next(&mut self, part: usize, chunks: &Chunks) -> u64 {
        let units = |range: &Range<u64>| range.end - range.start;
        let (own, others) = chunks.left.split_at(self.lost.len());
        let mut left: Vec<u64> = own.iter().map(units).collect();
        left[part] += others.iter().map(units).sum::<u64>();
        let taken = chunks.taken.iter();
        let in_flight: Vec<u64> = taken.map(|taken| taken.as_ref().map_or(0, units)).collect();
        let state = StepState {
            step: self.step,
            began: 0,
            now: self.ended[part],
            left: &left,
            in_flight: &in_flight,
        };
        match inner(&mut self.balancer).next(part, &state) {
            Next::Take(units) => units,
            Next::Wait | Next::Done => 0,
        }
    }

    /// A part has computed units.
    pub(super) fn done(&mut self, part: usize, units: u64, seconds: f64) {
        let began = self.ended[part];
        self.ended[part] += nanos(seconds);
        self.units[part] += units;
        inner(&mut self.balancer).completed(&ChunkDone {
            step: self.step,
            device: part,
            units,
            held: false,
            issued: began,
            started: began,
            ended: self.ended[part],
        });
    }

    pub(super) fn step_ended(&mut self) {
        let devices = self
            .units
            .iter()
            .zip(&self.ended)
            .map(|(units, ended)| DeviceStep {
                pooled: *units,
                pooled_busy: *ended,
                finished: *ended,
                known: *ended,
                ..DeviceStep::default()
            });
        inner(&mut self.balancer).step_ended(&StepReport {
            step: self.step,
            duration: self.ended.iter().copied().max().unwrap_or(0),
            moved: 0,
            devices: devices.collect(),
        });
        self.step += 1;
    }
}
