//! The chunk scheduler of a running step: each device's progress on the pool, and the
//! next chunk for a device that could take one (the paper's steps 3 to 5).

use crate::balance::apportion::{Runner, finish};
use crate::balance::{ChunkDone, Next, StepPlan, StepState};
use crate::time::Nanos;

mod progress;

pub use self::progress::Progress;
use super::granularity::Granularity;

/// The part of a step's units below which step 5 applies.
const TAIL: f64 = 0.1;
/// The relative error of estimated times.
const SLACK: f64 = 0.02;
/// Chunks of this step that weigh as much as a rate's earlier estimate.
const HISTORY: f64 = 3.0;
/// A device that was not planned to stream does so only if the others take so many
/// times the planned step: its streams slow them further.
const RELUCTANCE: f64 = 1.25;
/// A device decides whether to help others so many of its least chunks before it has
/// finished its own.
const HELP_AHEAD: f64 = 2.0;
/// The part of the others' time to which unplanned streams must shorten it.
const HELP_PAYS: f64 = 0.9;
/// Chunks of a device that has the pool to itself: a few, so that others can help it.
const CHUNKS_ALONE: u64 = 3;
/// A chunk takes the rest of the segment with it if that is less than this part of
/// it: a chunk of its own would mostly be overhead.
const SCRAP: f64 = 0.05;
/// The divisor of an equal share for the first chunk of a device of unknown rate.
const PROBE: u64 = 32;

/// Nanoseconds in seconds.
pub fn seconds(nanos: Nanos) -> f64 {
    nanos as f64 * 1e-9
}

/// What is expected of a device in the step that begins.
#[derive(Clone, Copy, Debug, Default)]
pub struct Expectation {
    pub works: bool,
    pub streams: bool,
    /// Pool units a second, where known.
    pub rate: Option<f64>,
    /// Its jitter.
    pub jitter: f64,
    /// The part of it that is left while others stream, where known.
    pub contended: Option<f64>,
    /// Whether its rate while no device streams is known.
    pub alone_known: bool,
    /// Seconds of its kernels' time that a streamed unit takes, where known.
    pub streamed_kernel: Option<f64>,
    /// Seconds after the step's begin at which its held units are done, where known.
    pub held_until: Option<f64>,
}

/// Hands out the pool of a step. Nothing here allocates but [`ChunkScheduler::begin`].
#[derive(Clone, Debug)]
pub struct ChunkScheduler {
    units: u64,
    expected: Vec<Expectation>,
    chunk: Vec<u64>,
    min_chunk: Vec<u64>,
    progress: Vec<Progress>,
    /// The work done for the ratio of step 5: this step's pool units, and the planned
    /// segment.
    before: Vec<f64>,
    done: Vec<f64>,
    quota: Vec<u64>,
    in_tail: bool,
    runners: Vec<Runner>,
    /// The same while a device streams.
    contended: Vec<Runner>,
    /// Seconds of the planned step, if no device is to stream.
    unstreamed: Option<f64>,
    /// Streamed chunks in flight, and the end of the last one.
    streaming: u32,
    streamed_until: Nanos,
    /// Units move at the step's begin, which also takes bandwidth.
    moving: bool,
    /// Some device should get few chunks; then all do, since those with many chunks
    /// would help it with small ones.
    costly: bool,
    /// Devices for which a last chunk costs more than it gains.
    whole: Vec<bool>,
}

/// The intended course of a step.
#[derive(Clone, Debug)]
pub struct StepIntent {
    pub expected: Vec<Expectation>,
    /// Seconds of the step, if no device is to stream.
    pub unstreamed: Option<f64>,
    /// Whether units move.
    pub moving: bool,
    /// Whether nothing has changed for a while.
    pub settled: bool,
}

impl ChunkScheduler {
    pub fn new(units: u64, devices: usize) -> Self {
        Self {
            units,
            expected: vec![Expectation::default(); devices],
            chunk: vec![1; devices],
            min_chunk: vec![1; devices],
            progress: vec![Progress::default(); devices],
            before: vec![0.0; devices],
            done: vec![0.0; devices],
            quota: vec![0; devices],
            in_tail: false,
            runners: vec![Runner::default(); devices],
            contended: vec![Runner::default(); devices],
            unstreamed: None,
            streaming: 0,
            streamed_until: 0,
            moving: false,
            costly: false,
            whole: vec![false; devices],
        }
    }

    /// A step begins, or begins again after a loss.
    pub fn begin(&mut self, plan: &StepPlan, granularity: &[Granularity], intent: StepIntent) {
        let expected = intent.expected;
        self.unstreamed = intent.unstreamed;
        self.moving = intent.moving;
        self.streaming = 0;
        let pool: u64 = plan.pooled.iter().sum();
        let mut costly = false;
        let alone = plan.pooled.iter().filter(|units| **units > 0).count() == 1;
        for (d, granularity) in granularity.iter().enumerate() {
            let segment = plan.pooled[d];
            // A device without a segment helps the others.
            let part = if segment > 0 { segment } else { pool / 4 };
            self.min_chunk[d] = granularity.least(part, expected[d].rate);
            let seconds = expected[d].rate.map_or(0.0, |rate| segment as f64 / rate);
            let is_costly = segment > 0 && intent.settled && granularity.is_costly(seconds);
            self.chunk[d] = match alone && segment > 0 && self.unstreamed.is_some() {
                true if is_costly => segment,
                true => segment.div_ceil(CHUNKS_ALONE).max(self.min_chunk[d]),
                false => granularity.chunk(part, expected[d].rate),
            };
            costly |= is_costly;
            // A last chunk evens out the jitter, up to a tenth.
            let made_up = TAIL.min(expected[d].jitter) * seconds;
            self.whole[d] = is_costly && !granularity.is_worth_a_chunk(made_up);
            self.before[d] = segment as f64;
            self.progress[d] = Progress::of_step(plan.held[d], expected[d].streams);
        }
        self.expected = expected;
        self.costly = costly;
        self.in_tail = false;
    }

    /// A device is lost. Those for which `works` holds continue, even if they were
    /// inactive in this step.
    pub fn lost(&mut self, device: usize, works: impl Fn(usize) -> bool) {
        for (d, expected) in self.expected.iter_mut().enumerate() {
            expected.works = works(d);
        }
        if let Some(progress) = self.progress.get_mut(device) {
            progress.held_left = 0;
        }
        // The remaining devices may have to stream without having planned it.
        self.unstreamed = None;
    }

    /// A piece of work has ended.
    pub fn completed(&mut self, done: &ChunkDone) {
        let streamed = !done.held && self.expected[done.device].streams;
        if streamed {
            self.streaming = self.streaming.saturating_sub(1);
            self.streamed_until = self.streamed_until.max(done.ended);
        }
        let unstreamed = self.streaming == 0 && !streamed && !self.moving;
        let unstreamed_since = unstreamed.then_some(self.streamed_until);
        if let Some(progress) = self.progress.get_mut(done.device) {
            progress.completed(done, unstreamed_since);
        }
    }

    /// Units of a chunk of `device` in this step, if it gets several.
    pub fn chunk(&self, device: usize) -> u64 {
        self.chunk[device]
    }

    pub fn progress(&self, device: usize) -> &Progress {
        &self.progress[device]
    }

    /// The next chunk for `device`.
    pub fn next(&mut self, device: usize, state: &StepState) -> Next {
        let left: u64 = state.left.iter().sum();
        if left == 0 {
            return Next::Done;
        }
        if !self.expected[device].works || self.must_listen(device, state) {
            return Next::Wait;
        }
        self.survey(state);
        let answer = match self.runners[device].rate > 0.0 {
            true => self.chunk_in_time(device, state, left),
            false => self.probe(device, state, left),
        };
        let Some(units) = answer else {
            self.progress[device].waits = true;
            return Next::Wait;
        };
        if state.in_flight[device] <= self.progress[device].held_left {
            self.progress[device].busy_from = state.now;
        }
        self.progress[device].given(units, state.now);
        self.streaming += u32::from(self.expected[device].streams);
        self.quota[device] = self.quota[device].saturating_sub(units);
        Next::Take(units)
    }

    /// Whether a device must not stream yet, because the first chunk of a device on
    /// host memory is about to show its unknown rate without streams.
    fn must_listen(&self, device: usize, state: &StepState) -> bool {
        let tells = |d: usize| {
            let (expected, progress) = (&self.expected[d], &self.progress[d]);
            let pooled = state.in_flight[d].saturating_sub(progress.held_left);
            let will_begin = expected.rate.is_none() && state.left[d] > 0;
            let may_tell = expected.works && !expected.streams && !expected.alone_known;
            may_tell && progress.chunks == 0 && (pooled > 0 || will_begin)
        };
        let unstreamed = self.streaming == 0 && !self.moving;
        unstreamed && self.expected[device].streams && (0..self.expected.len()).any(tells)
    }

    /// Estimates each device's ready time and rate.
    fn survey(&mut self, state: &StepState) {
        let now = seconds(state.now.saturating_sub(state.began));
        for (d, expected) in self.expected.iter().enumerate() {
            let progress = &self.progress[d];
            let rate = if expected.works {
                progress.pace(expected.rate, HISTORY * self.chunk[d] as f64)
            } else {
                0.0
            };
            let others = progress.held_left + progress.order.overtaken();
            let pooled = state.in_flight[d].saturating_sub(others);
            let mut ready = now;
            if pooled > 0 && rate > 0.0 {
                let from = progress.mark.max(progress.busy_from).max(state.began);
                ready = now.max(seconds(from - state.began) + pooled as f64 / rate);
            }
            if expected.streams && (pooled == 0 || progress.mark < progress.busy_from) {
                // The pipeline is empty: a chunk is written before it is read.
                ready += self.chunk[d].min(self.units) as f64 / rate.max(f64::MIN_POSITIVE);
            }
            self.runners[d] = Runner { ready, rate };
            self.contended[d] = Runner {
                ready,
                rate: rate * expected.contended.unwrap_or(1.0),
            };
        }
    }

    /// A first chunk for a device of unknown rate.
    fn probe(&self, device: usize, state: &StepState, left: u64) -> Option<u64> {
        let progress = &self.progress[device];
        let pooled = state.in_flight[device].saturating_sub(progress.held_left);
        let segment = (self.units / self.expected.len() as u64) / PROBE;
        let nothing_runs = state.in_flight.iter().all(|units| *units == 0);
        (pooled == 0 || nothing_runs).then(|| segment.max(self.min_chunk[device]).min(left))
    }

    /// The next chunk of a device of known rate; `None` where the others would finish
    /// the pool before it could finish a chunk.
    fn chunk_in_time(&mut self, device: usize, state: &StepState, left: u64) -> Option<u64> {
        let me = self.runners[device];
        let least = self.min_chunk[device].min(left);
        let held = self.held_until(state) * (1.0 + SLACK);
        let nothing_runs = state.in_flight.iter().all(|units| *units == 0);
        // Whether a device finishes its own segment before the held units are done:
        // help would gain nothing.
        let in_time = |d: usize| {
            let runner = &self.runners[d];
            let left = state.left[d] as f64;
            left == 0.0 || runner.ready + left / runner.rate <= held
        };
        let others = finish(left as f64, &self.runners, Some(device));
        let unplanned = self.before[device] == 0.0 && self.expected[device].streams;
        let helped = || finish(left as f64, &self.contended, None);
        let hardly_helps = |step| others <= RELUCTANCE * step || helped() > HELP_PAYS * others;
        if unplanned && self.unstreamed.is_some_and(hardly_helps) {
            return (nothing_runs && self.is_first(device, left)).then_some(least);
        }
        // A busy device on host memory need not decide yet whether to help streams:
        // they may finish in the meantime.
        let now = seconds(state.now.saturating_sub(state.began));
        let pooled = state.in_flight[device].saturating_sub(self.progress[device].held_left);
        let is_busy = me.ready > now + HELP_AHEAD * least as f64 / me.rate;
        let on_host = |d: usize| !self.expected[d].streams;
        let may_wait = pooled > 0 && on_host(device);
        let for_streams = (0..self.runners.len()).all(|d| state.left[d] == 0 || !on_host(d));
        if may_wait && is_busy && for_streams {
            return None;
        }
        // Help also takes the time of the helper's own kernels.
        let helps = || self.held_end(device, least, state) * (1.0 + SLACK) <= others;
        if state.left[device] == 0 && ((0..self.runners.len()).all(in_time) || !helps()) {
            return (nothing_runs && self.is_first(device, left)).then_some(least);
        }
        let together = finish(left as f64, &self.runners, None).max(held);
        let fair = ((together - me.ready) * me.rate).max(0.0) as u64;
        let own = state.left[device];
        let chunk = self.most(device, own, left).min(fair);
        if chunk >= least {
            let rest = own.saturating_sub(chunk);
            let is_scrap = match self.whole[device] {
                true => (rest as f64) < TAIL * own as f64,
                false => rest < self.min_chunk[device] && (rest as f64) < SCRAP * chunk as f64,
            };
            return Some(if is_scrap { chunk + rest } else { chunk });
        }
        let is_early = me.ready + least as f64 / me.rate <= others.max(held);
        (is_early || nothing_runs && self.is_first(device, left)).then_some(least)
    }

    /// Most units of a chunk: the granularity's, and in the last tenth no
    /// more than the quota; leftovers go to the first free device.
    fn most(&mut self, device: usize, own: u64, left: u64) -> u64 {
        // A device of known rate on host memory begins with half of its segment; where
        // chunks are costly and plans settled, with all but the last tenth; where
        // even a last chunk costs too much, with all of it.
        let expected = &self.expected[device];
        let first = match (expected.streams || expected.rate.is_none(), self.costly) {
            (true, _) => 0,
            (false, false) => own / 2,
            (false, true) if self.whole[device] => own,
            (false, true) => own - (TAIL * own as f64) as u64,
        };
        let chunk = self.chunk[device].max(first);
        if left as f64 > TAIL * self.units as f64 {
            return chunk;
        }
        if !self.in_tail {
            self.in_tail = true;
            for (d, progress) in self.progress.iter().enumerate() {
                self.done[d] = self.before[d] + progress.done as f64;
            }
            quotas(left, &self.done, &mut self.quota);
        }
        match self.quota[device] {
            0 => (chunk / 2).max(self.min_chunk[device]),
            quota => chunk.min(quota),
        }
    }

    /// Seconds after the step's begin at which all held units should be done.
    fn held_until(&self, state: &StepState) -> f64 {
        (0..self.progress.len())
            .map(|d| self.held_end(d, 0, state))
            .fold(0.0, f64::max)
    }

    /// Seconds after the step's begin at which a device's held units should be done if
    /// it takes `more` pool units. Those beyond its plan delay them.
    fn held_end(&self, device: usize, more: u64, state: &StepState) -> f64 {
        if self.progress[device].held_left == 0 {
            return 0.0;
        }
        let now = seconds(state.now.saturating_sub(state.began));
        let expected = &self.expected[device];
        let end = expected.held_until.unwrap_or(0.0).max(now);
        let handed = (self.progress[device].order.handed() + more) as f64;
        let unplanned = (handed - self.before[device]).max(0.0);
        end + unplanned * expected.streamed_kernel.unwrap_or(0.0)
    }

    /// Whether this device would finish its least chunk of the `left` units first of
    /// all. This holds for exactly one device, so one continues when nothing runs.
    fn is_first(&self, device: usize, left: u64) -> bool {
        let end = |d: usize| {
            let least = self.min_chunk[d].min(left) as f64;
            self.runners[d].ready + least / self.runners[d].rate
        };
        let at_work = (0..self.runners.len()).filter(|d| self.runners[*d].rate > 0.0);
        at_work.min_by(|a, b| end(*a).total_cmp(&end(*b))) == Some(device)
    }
}

#[cfg(test)]
mod tests;

// The end of a step: the quotas of its last tenth (the paper's step 5).

/// Sets each device's quota to the paper's `floor(ratio * remaining)`, where `ratio`
/// is its part of all work done so far.
pub fn quotas(remaining: u64, done: &[f64], quotas: &mut [u64]) {
    let total: f64 = done.iter().sum();
    for (quota, done) in quotas.iter_mut().zip(done) {
        *quota = if total > 0.0 {
            (done / total * remaining as f64).floor() as u64
        } else {
            0
        };
    }
}

// The order in which a device's chunks end. Cores that have finished their part of
// a chunk begin the next one, so a small chunk can end while a late core still
// works on the one before. The overtaken chunk is then nearly done.

/// Chunks that were handed out and that ended.
#[derive(Clone, Copy, Debug, Default)]
struct Order {
    /// Units handed out, and those of them that are done.
    handed: u64,
    done: u64,
    /// When the last chunk was handed out, and whether that was later than the
    /// one before.
    latest: Nanos,
    is_later: bool,
    /// Units in flight that the last chunk has overtaken, and when that was
    /// issued.
    overtaken: u64,
    overtaker: Nanos,
}

impl Order {
    /// A chunk is handed out at `now`.
    pub fn hand(&mut self, units: u64, now: Nanos) {
        self.handed += units;
        self.is_later = now > self.latest;
        self.latest = now;
    }

    /// A chunk has ended.
    pub fn end(&mut self, done: &ChunkDone) {
        self.done += done.units;
        if done.issued < self.overtaker {
            self.overtaken = self.overtaken.saturating_sub(done.units);
        } else if self.is_later && done.issued >= self.latest {
            self.overtaken = self.handed.saturating_sub(self.done);
            self.overtaker = done.issued;
        }
    }

    /// Units handed out so far.
    pub fn handed(&self) -> u64 {
        self.handed
    }

    /// Units in flight that are nearly done, as a later chunk shows.
    pub fn overtaken(&self) -> u64 {
        self.overtaken
    }
}
