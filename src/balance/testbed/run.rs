//! Steps of a machine. Work is a fluid: each device has a queue of held units and
//! one of pool chunks, a streaming device passes chunks through write, kernel and
//! read, its kernels share its compute units, and everything that touches host
//! memory slows down together when the host memory is at its limit.

use std::collections::VecDeque;

use super::{Machine, Real};
use crate::balance::{Balancer, ChunkDone, DeviceStep, Next, StepPlan, StepReport, StepState};

/// A chunk on its way through a device.
#[derive(Clone, Debug)]
struct Piece {
    units: u64,
    issued: f64,
    started: Option<f64>,
    stage: usize,
    /// Microseconds before the stage's work starts, then units to go.
    delay: f64,
    left: f64,
    slow: f64,
}

#[derive(Clone, Debug, Default)]
struct Lane {
    held: Option<Piece>,
    chunks: VecDeque<Piece>,
    step: DeviceStep,
    held_busy: f64,
    /// Streamed units computed while kernels on held ones ran, and launches.
    beside: f64,
    beside_launches: u64,
    pooled_busy: f64,
    waited: Option<f64>,
    finished: f64,
}

/// A machine's steps, one after the other.
pub(super) struct Run<'a> {
    machine: &'a Machine,
    random: u64,
    now: f64,
    held: Option<Vec<u64>>,
    alive: Vec<bool>,
    plan: StepPlan,
    /// Of the last step, until the balancer has heard it.
    unread: Option<StepReport>,
}

fn nanos(micros: f64) -> u64 {
    (micros * 1e3).round() as u64
}

impl<'a> Run<'a> {
    pub(super) fn new(machine: &'a Machine) -> Self {
        Self {
            machine,
            random: machine.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            // As in an engine, the setup comes before the first step.
            now: 1000.0,
            held: None,
            alive: vec![true; machine.devices.len()],
            plan: StepPlan::default(),
            unread: None,
        }
    }

    pub(super) fn read_report(&mut self, balancer: &mut dyn Balancer) {
        if let Some(report) = self.unread.take() {
            balancer.step_ended(&report);
        }
    }

    /// The step's plan, asked for as an engine does.
    fn plan(&mut self, step: u32, balancer: &mut dyn Balancer) -> StepPlan {
        let took = self.unread.as_ref().map(|report| report.duration);
        if !took.is_some_and(|took| balancer.again(step, took)) {
            self.read_report(balancer);
            self.plan = balancer.plan(step);
        }
        self.plan.clone()
    }

    /// A factor on a piece's duration.
    fn noise(&mut self) -> f64 {
        // The sum of twelve uniform numbers is nearly normal.
        let mut sum = -6.0;
        for _ in 0..12 {
            self.random ^= self.random << 13;
            self.random ^= self.random >> 7;
            self.random ^= self.random << 17;
            sum += (self.random >> 11) as f64 / (1u64 << 53) as f64;
        }
        (1.0 + self.machine.noise * sum).max(0.5)
    }

    fn speed(&self, step: u32, device: usize) -> f64 {
        (self.machine.speeds.iter())
            .filter(|(from, to, d, _)| (*from..*to).contains(&step) && *d == device)
            .map(|(_, _, _, factor)| factor)
            .product()
    }

    fn check(&self, plan: &StepPlan) {
        let sum: u64 = plan.held.iter().chain(&plan.pooled).sum();
        assert_eq!(sum, self.machine.units, "{plan:?}");
        for (d, device) in self.machine.devices.iter().enumerate() {
            assert!(
                plan.held[d] <= device.view.capacity.unwrap_or(0),
                "{plan:?}"
            );
            assert!(
                self.alive[d] || plan.held[d] + plan.pooled[d] == 0,
                "{plan:?}"
            );
        }
    }

    /// Microseconds of delay for each device, and units moved.
    fn moves(&mut self, plan: &StepPlan) -> (Vec<f64>, u64) {
        let old = self.held.replace(plan.held.clone());
        let old = old.unwrap_or_else(|| plan.held.clone());
        let mut delays = vec![0.0; plan.held.len()];
        let mut moved = 0;
        for (d, device) in self.machine.devices.iter().enumerate() {
            let units = old[d].abs_diff(plan.held[d]);
            moved += units;
            if units > 0 {
                delays[d] = units as f64 / (device.pool_rate * 1.2);
            }
        }
        (delays, moved)
    }

    pub(super) fn step(&mut self, step: u32, balancer: &mut dyn Balancer) -> (f64, bool) {
        let began = self.now;
        let count = self.machine.devices.len();
        let mut plan = self.plan(step, balancer);
        self.check(&plan);
        let (delays, mut moved) = self.moves(&plan);
        let mut lanes = self.begin(&plan, &delays);
        let mut left = plan.pooled.clone();
        let mut losses: Vec<_> = (self.machine.losses.iter())
            .filter(|(s, _, d)| *s == step && self.alive[*d])
            .collect();
        let mut caught_up = false;
        loop {
            self.hand_out(step, began, &mut left, &mut lanes, balancer);
            if !std::mem::replace(&mut caught_up, true) {
                self.read_report(balancer);
                balancer.think_ahead(step + 1);
            }
            let loss = losses.first().map(|(_, at, _)| began + at);
            match self.advance(step, &mut lanes, loss) {
                Event::End => break,
                Event::Loss => {
                    let device = losses.remove(0).2;
                    self.alive[device] = false;
                    balancer.lost(device);
                    plan = self.plan(step, balancer);
                    self.check(&plan);
                    let (delays, more) = self.moves(&plan);
                    moved += more;
                    // The step is done again from its begin.
                    lanes = self.begin(&plan, &delays);
                    left.clone_from(&plan.pooled);
                }
                Event::Piece { device, held } => {
                    self.finish(step, began, device, held, &mut lanes[device], balancer);
                }
            }
        }
        assert!(
            left.iter().all(|units| *units == 0),
            "units were left: {left:?}"
        );
        let done: u64 = lanes.iter().map(|l| l.step.held + l.step.pooled).sum();
        assert_eq!(done, self.machine.units);
        let several = lanes.iter().filter(|l| l.finished > 0.0).count() > 1;
        let streams =
            |(real, lane): (&Real, &Lane)| real.view.capacity.is_some() && lane.step.pooled > 0;
        let streamed = self.machine.devices.iter().zip(&lanes).any(streams);
        self.now += if several { self.machine.corun } else { 0.0 } + 5.0;
        self.now += if streamed {
            self.machine.streaming
        } else {
            0.0
        };
        let report = StepReport {
            step,
            duration: nanos(self.now - began),
            moved,
            devices: (0..count)
                .map(|d| DeviceStep {
                    held_busy: nanos(lanes[d].held_busy),
                    beside: lanes[d].beside.round() as u64,
                    beside_launches: lanes[d].beside_launches,
                    pooled_busy: nanos(lanes[d].pooled_busy),
                    waited: nanos(lanes[d].waited.map_or(0.0, |at| at - began)),
                    finished: nanos((lanes[d].finished - began).max(0.0)),
                    known: nanos((lanes[d].finished - began).max(0.0)),
                    ..lanes[d].step
                })
                .collect(),
        };
        self.unread = Some(report);
        (self.now - began, streamed)
    }

    fn begin(&mut self, plan: &StepPlan, delays: &[f64]) -> Vec<Lane> {
        let mut lanes = vec![Lane::default(); plan.held.len()];
        for (d, lane) in lanes.iter_mut().enumerate() {
            if plan.held[d] > 0 {
                let delay = self.machine.devices[d].start + delays[d];
                lane.held = Some(self.piece(plan.held[d], 0, delay));
            }
        }
        lanes
    }

    fn piece(&mut self, units: u64, stage: usize, delay: f64) -> Piece {
        Piece {
            units,
            issued: self.now,
            started: None,
            stage,
            delay,
            left: units as f64,
            slow: self.noise(),
        }
    }

    fn hand_out(
        &mut self,
        step: u32,
        began: f64,
        left: &mut [u64],
        lanes: &mut [Lane],
        balancer: &mut dyn Balancer,
    ) {
        let count = lanes.len();
        for d in 0..count {
            let real = &self.machine.devices[d];
            let slots = if real.view.capacity.is_some() { 3 } else { 2 };
            while self.alive[d] && lanes[d].chunks.len() < slots {
                let in_flight: Vec<u64> = (lanes.iter())
                    .map(|l| l.held.iter().chain(&l.chunks).map(|p| p.units).sum())
                    .collect();
                let state = StepState {
                    step,
                    began: nanos(began),
                    now: nanos(self.now),
                    left,
                    in_flight: &in_flight,
                };
                let Next::Take(units) = balancer.next(d, &state) else {
                    break;
                };
                assert!(units > 0, "took nothing");
                let most = (0..count).max_by_key(|other| left[*other]).unwrap();
                let from = if left[d] > 0 { d } else { most };
                let units = units.min(left[from]);
                if units == 0 {
                    break;
                }
                left[from] -= units;
                let first = lanes[d].held.is_none() && lanes[d].step == DeviceStep::default();
                let delay = real.chunk_start + if first { real.start } else { 0.0 };
                let piece = self.piece(units, 0, delay);
                lanes[d].chunks.push_back(piece);
            }
        }
    }

    /// Lets time pass up to the next end of a piece, or the loss.
    fn advance(&mut self, step: u32, lanes: &mut [Lane], loss: Option<f64>) -> Event {
        loop {
            let mut running = self.running(step, lanes);
            if running.is_empty() {
                return Event::End;
            }
            let demand: f64 = running.iter().map(|r| r.host).sum();
            let scale = (self.machine.host_limit / demand).min(1.0);
            for r in &mut running {
                if r.host > 0.0 {
                    r.rate *= scale;
                }
            }
            let time = |r: &Running| {
                let piece = r.piece(lanes);
                if piece.delay > 0.0 {
                    piece.delay
                } else {
                    piece.left / r.rate
                }
            };
            let next = (running.iter().map(time)).fold(f64::INFINITY, f64::min);
            if let Some(at) = loss.filter(|at| *at <= self.now + next) {
                self.now = self.now.max(at);
                return Event::Loss;
            }
            for (d, lane) in lanes.iter_mut().enumerate() {
                let works = |r: &&Running| r.device == d;
                if running.iter().filter(works).any(|r| r.index.is_none()) {
                    let delay = lane.held.as_ref().map_or(0.0, |p| p.delay);
                    lane.held_busy += if delay > 0.0 { 0.0 } else { next };
                }
                let pooled = |r: &Running| r.index.is_some_and(|i| lane.chunks[i].delay <= 0.0);
                if running.iter().filter(works).any(pooled) {
                    lane.pooled_busy += next;
                }
            }
            self.now += next;
            let mut ended = None;
            for r in &running {
                let kernel = self.machine.devices[r.device].view.capacity.is_none()
                    || r.index.is_none()
                    || r.piece(lanes).stage == 1;
                let lane = &mut lanes[r.device];
                let held_runs = lane.held.as_ref().is_some_and(|p| p.delay <= 0.0);
                let is_beside = kernel && r.streams && r.index.is_some() && held_runs;
                let piece = match r.index {
                    None => lane.held.as_mut(),
                    Some(i) => lane.chunks.get_mut(i),
                };
                let Some(piece) = piece else { continue };
                if piece.delay > 0.0 {
                    piece.delay = if piece.delay <= next * (1.0 + 1e-12) {
                        0.0
                    } else {
                        piece.delay - next
                    };
                    continue;
                }
                let from = self.now - next;
                piece.started.get_or_insert(from);
                if kernel {
                    lane.waited.get_or_insert(from);
                }
                if is_beside {
                    lane.beside += next * r.rate;
                }
                piece.left -= next * r.rate;
                if piece.left <= 1e-6 * (1.0 + piece.units as f64) {
                    piece.left = piece.units as f64;
                    piece.stage += 1;
                    lane.beside_launches += u64::from(is_beside);
                    let stages = if r.index.is_some() && r.streams { 3 } else { 1 };
                    if piece.stage == stages && ended.is_none() {
                        ended = Some(Event::Piece {
                            device: r.device,
                            held: r.index.is_none(),
                        });
                    } else if piece.stage == stages {
                        // Another ended at the same time: this one an instant later.
                        piece.stage -= 1;
                        piece.left = 1e-9;
                    }
                }
            }
            if let Some(ended) = ended {
                return ended;
            }
        }
    }

    /// What runs now: per device the held piece, and the first chunk in each
    /// stage.
    fn running(&self, step: u32, lanes: &[Lane]) -> Vec<Running> {
        let mut running = Vec::new();
        for (d, lane) in lanes.iter().enumerate() {
            let real = &self.machine.devices[d];
            let speed = self.speed(step, d);
            let streams = real.view.capacity.is_some();
            // Kernels on held units and on streamed ones share the device.
            let kernels = |p: &Piece| streams && p.stage == 1;
            let held_runs = lane.held.as_ref().is_some_and(|p| p.delay <= 0.0);
            let compute = match held_runs && lane.chunks.iter().any(kernels) {
                true => 0.5 * real.held_rate,
                false => real.held_rate,
            };
            if let Some(piece) = &lane.held {
                running.push(Running {
                    device: d,
                    index: None,
                    rate: compute * speed / piece.slow,
                    host: 0.0,
                    streams,
                });
            }
            for stage in 0..if streams { 3 } else { 1 } {
                let Some(i) = lane.chunks.iter().position(|p| p.stage == stage) else {
                    continue;
                };
                let kernel = streams && stage == 1;
                let rate = if kernel { compute } else { real.pool_rate };
                let rate = rate * speed / lane.chunks[i].slow;
                let host = match (lane.chunks[i].delay > 0.0 || kernel, streams) {
                    (true, _) => 0.0,
                    (false, true) => 0.5 * rate,
                    (false, false) => rate,
                };
                running.push(Running {
                    device: d,
                    index: Some(i),
                    rate,
                    host,
                    streams,
                });
            }
        }
        running
    }

    fn finish(
        &mut self,
        step: u32,
        began: f64,
        device: usize,
        held: bool,
        lane: &mut Lane,
        balancer: &mut dyn Balancer,
    ) {
        let piece = if held {
            lane.held.take()
        } else {
            lane.chunks.pop_front()
        };
        let piece = piece.expect("a piece that ended was there");
        if held {
            lane.step.held += piece.units;
        } else {
            lane.step.pooled += piece.units;
        }
        lane.finished = self.now;
        balancer.completed(&ChunkDone {
            step,
            device,
            units: piece.units,
            held,
            issued: nanos(piece.issued),
            started: nanos(piece.started.unwrap_or(began)),
            ended: nanos(self.now),
        });
    }
}

struct Running {
    device: usize,
    /// Index of the chunk; `None` for the held piece.
    index: Option<usize>,
    rate: f64,
    host: f64,
    streams: bool,
}

impl Running {
    fn piece<'l>(&self, lanes: &'l [Lane]) -> &'l Piece {
        let lane = &lanes[self.device];
        match self.index {
            None => lane.held.as_ref().expect("held work is running"),
            Some(i) => &lane.chunks[i],
        }
    }
}

enum Event {
    Piece { device: usize, held: bool },
    Loss,
    End,
}
