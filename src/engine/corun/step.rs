//! One step: moves and halos, held units, the pool, the barrier.

use std::ops::Range;
use std::time::Duration;

use super::drive::{Drive, For, Kept};
use super::launches::Enqueued;
use super::layout::length;
use super::ledger::Job;
use super::moves::Home;
use super::place::Place;
use super::pool::Pool;
use super::{CHUNK, CorunError};
use crate::balance::{ChunkDone, Next, StepState};
use crate::runtime::{Command, EventId};
use crate::time::Nanos;
use crate::workload::{Grid, Ring};

/// How a step, or several at once, ended.
pub enum StepEnd {
    /// So many steps are done.
    Done(u32),
    /// Held units were lost; the run must begin again.
    Spoiled,
}

/// Which lane a chunk goes to, and what for.
#[derive(Clone, Copy)]
pub(super) struct Piece {
    pub device: usize,
    pub lane: usize,
    pub job: Option<usize>,
    pub step: u32,
    pub label: &'static str,
}

/// What is handed out while a step runs.
struct Hand {
    pool: Pool,
    /// The job on each lane of each device.
    lanes: Vec<Vec<Option<usize>>>,
    /// Devices that want nothing more in this step.
    done: Vec<bool>,
    /// Units handed out and not completed, by device.
    in_flight: Vec<u64>,
    home: Home,
    began: Nanos,
    /// When the balancer was last asked.
    asked: Nanos,
    /// What could wait until the devices are at work is done.
    caught_up: bool,
}

/// Completions that free no lane only tell that time has passed. A step is
/// this many times as long as the time after which that makes the balancer
/// think again: asking takes longer than enqueueing.
const ASKINGS: u64 = 16;

impl Drive<'_> {
    /// Computes one step, which must have been planned.
    pub fn step(&mut self, step: u32) -> Result<StepEnd, CorunError> {
        self.begin_kernel(step)?;
        let (moved, home) = self.relocate(step)?;
        let mut hand = Hand {
            pool: Pool::new(&self.layout.segments),
            lanes: self.places.iter().map(|p| vec![None; p.lanes()]).collect(),
            done: vec![false; self.places.len()],
            in_flight: vec![0; self.places.len()],
            home,
            began: self.barrier,
            asked: self.barrier,
            caught_up: false,
        };
        for (units, held) in hand.in_flight.iter_mut().zip(&self.layout.held) {
            *units = length(held);
        }
        // Host devices first: enqueueing a ring's launches takes a while, and
        // their cores would wait for it.
        self.hand_out(step, &mut hand, true)?;
        self.launch_held(step, &mut hand)?;
        self.run_pool(step, &mut hand)?;
        if self.spoiled {
            self.end_step(step, moved);
            return Ok(StepEnd::Spoiled);
        }
        self.end_kernel(step)?;
        if self.spoiled {
            self.end_step(step, moved);
            return Ok(StepEnd::Spoiled);
        }
        self.turn();
        self.end_iteration()?;
        self.end_step(step, moved);
        Ok(StepEnd::Done(1))
    }

    /// Enqueues what is held, and keeps the others at work meanwhile: host
    /// devices from the start, streams once the kernels have a lead.
    fn launch_held(&mut self, step: u32, hand: &mut Hand) -> Result<(), CorunError> {
        self.launch_stores(step)?;
        let mut launches: Vec<_> = (0..self.places.len())
            .filter_map(|device| self.held_launches(device, step))
            .collect();
        let mut lead = false;
        while !launches.is_empty() {
            let mut i = 0;
            while i < launches.len() {
                match self.launch_next(&mut launches[i])? {
                    None => i += 1,
                    Some(Enqueued { over }) => {
                        launches.swap_remove(i);
                        if let Some(job) = over {
                            self.job_ended(step, job, hand);
                        }
                    }
                }
            }
            // The kernels keep a lead over the first streamed chunk's commands.
            if !std::mem::replace(&mut lead, true) || launches.is_empty() {
                continue;
            }
            self.hear(step, hand)?;
            if !self.spoiled {
                self.hand_out(step, hand, false)?;
                self.catch_up(step, hand);
            }
        }
        Ok(())
    }

    /// Takes in what has ended, without waiting.
    fn hear(&mut self, step: u32, hand: &mut Hand) -> Result<(), CorunError> {
        while let Some((_, job)) = self.collect(Some(Duration::ZERO))? {
            if let Some(job) = job {
                self.job_ended(step, job, hand);
            }
        }
        Ok(())
    }

    /// Does what could wait until the devices are at work: reads the report of
    /// the step before, and has the balancer think of the next.
    fn catch_up(&mut self, step: u32, hand: &mut Hand) {
        if !std::mem::replace(&mut hand.caught_up, true) {
            self.read_report();
            self.balancer.prepare_plan(step + 1);
        }
    }

    /// Hands out the pool and waits until everything has ended.
    fn run_pool(&mut self, step: u32, hand: &mut Hand) -> Result<(), CorunError> {
        if !self.spoiled {
            self.hand_out(step, hand, false)?;
            self.catch_up(step, hand);
        }
        let pause = self.outcome.steps.last().map_or(0.0, |step| step.seconds) / ASKINGS as f64;
        let pause = (pause * 1e9) as Nanos;
        let mut freed = false;
        loop {
            if !self.spoiled && (freed || self.ledger.idle()) {
                self.hand_out(step, hand, false)?;
            }
            if self.ledger.idle() {
                if self.spoiled || hand.pool.is_empty() {
                    return Ok(());
                }
                return Err(self.balancer_fault(step, "units were left to nobody"));
            }
            let Some((completion, job)) = self.collect(None)? else {
                return Err(self.balancer_fault(step, "commands vanished"));
            };
            freed = job.is_some() || completion.ended >= hand.asked + pause;
            if let Some(job) = job {
                self.job_ended(step, job, hand);
            }
        }
    }

    /// Asks the balancer for every free lane (of host devices only, if asked)
    /// until nobody takes more.
    fn hand_out(&mut self, step: u32, hand: &mut Hand, host_only: bool) -> Result<(), CorunError> {
        let mut more = !hand.pool.is_empty();
        while more && !hand.pool.is_empty() {
            more = false;
            hand.asked = self.runtime.now();
            for device in 0..self.places.len() {
                if !self.alive[device] || hand.done[device] || hand.pool.is_empty() {
                    continue;
                }
                if host_only && !self.places[device].is_host() {
                    continue;
                }
                let Some(lane) = hand.lanes[device].iter().position(Option::is_none) else {
                    continue;
                };
                let next = self.balancer.next(
                    device,
                    &StepState {
                        step,
                        began: hand.began,
                        now: hand.asked,
                        left: hand.pool.left(),
                        in_flight: &hand.in_flight,
                    },
                );
                match next {
                    Next::Take(most) => {
                        let most = most.min(self.places[device].longest_chunk());
                        let Some(units) = hand.pool.take(device, most) else {
                            continue;
                        };
                        self.chunk(device, lane, units, step, hand)?;
                        more = true;
                        // The commands of a streamed chunk take a while, and
                        // cores that are through meanwhile must not wait for
                        // those of the next.
                        if !self.places[device].is_host() {
                            self.hear(step, hand)?;
                        }
                        if self.spoiled {
                            return Ok(());
                        }
                    }
                    Next::Wait => {}
                    Next::Done => hand.done[device] = true,
                }
            }
        }
        Ok(())
    }

    /// Enqueues a chunk of the pool.
    fn chunk(
        &mut self,
        device: usize,
        lane: usize,
        units: Range<u64>,
        step: u32,
        hand: &mut Hand,
    ) -> Result<(), CorunError> {
        let now = self.runtime.now();
        let job = self.ledger.job(device, Some(lane), units.clone(), now);
        hand.lanes[device][lane] = Some(job);
        hand.in_flight[device] += length(&units);
        let halo = self.as_grid().map_or(0, Grid::halo);
        let home = hand
            .home
            .of(&(units.start.saturating_sub(halo)..units.end + halo));
        let piece = Piece {
            device,
            lane,
            job: Some(job),
            step,
            label: CHUNK,
        };
        self.chunk_on(piece, units, &home)?;
        if self.ledger.jobs[job].outstanding == 0 {
            // The device was lost before anything was enqueued.
            self.job_ended(step, job, hand);
        }
        Ok(())
    }

    /// The commands of a chunk: a launch in place, or write, launch and read.
    pub(super) fn chunk_on(
        &mut self,
        piece: Piece,
        units: Range<u64>,
        wait: &[EventId],
    ) -> Result<(), CorunError> {
        let grid = match &self.kept {
            Kept::Grid(grid) => *grid,
            Kept::Product(_) => return self.product_chunk(piece, units, wait),
            Kept::Kernel(_) => return self.kernel_chunk(piece, units, wait),
        };
        let Piece { device, lane, .. } = piece;
        let whose = |lane| For {
            device,
            lane,
            job: piece.job,
            step: piece.step,
            label: piece.label,
        };
        let stream = match &self.places[device] {
            Place::Host { lanes } => {
                let whose = whose(lanes[lane]);
                let args = grid.args(units.clone(), &self.grid(0), &self.grid(1));
                self.launch(whose, units, args, wait)?;
                return Ok(());
            }
            Place::Own(own) => own.streams[lane],
            Place::Store(_) | Place::Images(_) => return Err(self.misplaced(device)),
        };
        let whose = whose(stream.lane);
        let halo = grid.halo();
        let needed = units.start.saturating_sub(halo)..self.workload.units().min(units.end + halo);
        let input = Ring {
            unit: needed.start,
            ..stream.input
        };
        let output = Ring {
            unit: units.start,
            ..stream.output
        };
        let args = grid.args(units.clone(), &input, &output);
        let single = |(_, command)| command;
        let mut commands: Vec<Command> = self.writes(needed, 0, &input).map(single).collect();
        commands.push(self.launch_of(&units, args));
        commands.extend(self.reads(units.clone(), 1, &output).map(single));
        self.submit_together(whose, commands, &units, wait)?;
        Ok(())
    }

    /// A job has no command left: tell the balancer, or put its units back.
    fn job_ended(&mut self, step: u32, index: usize, hand: &mut Hand) {
        let Job {
            device,
            lane,
            units,
            issued,
            started,
            ended,
            failed,
            ..
        } = self.ledger.jobs[index].clone();
        hand.in_flight[device] -= length(&units);
        if let Some(lane) = lane {
            hand.lanes[device][lane] = None;
        }
        if !failed {
            self.balancer.completed(&ChunkDone {
                step,
                device,
                units: length(&units),
                held: lane.is_none(),
                issued,
                started,
                ended,
            });
            return;
        }
        let Some(heir) = self.alive.iter().position(|alive| *alive) else {
            return;
        };
        if lane.is_some() {
            hand.pool.give_back(heir, units);
        }
        if !self.alive[device] {
            hand.pool.reassign(device, heir);
        }
        // Those who had enough must be asked again.
        hand.done.fill(false);
    }
}
