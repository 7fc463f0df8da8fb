//! Probes before the first step: every device computes a small number of units,
//! first by itself and then while others stream, so that the balancer's first
//! shares need no guess. The first probes are short; where they tell enough, they
//! were all. A device whose ring may be nearly full also computes half of a ring
//! in one launch and a full one in many, which tells what launches cost. Results
//! are thrown away.

use std::ops::Range;

use super::context::{MAIN, Purpose};
use super::form::Arrivals;
use super::layout::length;
use super::run::RunState;
use super::{CorunError, PROBE};
use crate::balance::{Overhead, Probe, ProbeKind, windows};
use crate::runtime::CommandKind;
use crate::time::Nanos;

/// A probe is this part of a step ...
const PART: u64 = 32;
/// ... but has at least so many bytes, to outlast its own overhead ...
const LEAST_BYTES: u64 = 4 << 20;
/// ... and is run so often; the last run counts, the others warm up.
const ROUNDS: u32 = 2;
/// Where several devices hold units, their kernels are run so often besides in each round: a
/// single one does not tell equal devices from others. The first one warms up.
const REPEATS: u32 = 6;
/// Most chunks of a streaming probe.
const MOST_CHUNKS: u64 = 96;

/// Units that no probe has touched lately: what was just read may lie in a
/// cache, from where a step, which reads what the step before it wrote past
/// the caches, never has it. (On 16 Xeon cores with 300 MB of cache a second
/// probe of the same rows was twice as fast as any step.)
struct Untouched {
    units: Range<u64>,
    next: u64,
}

impl Untouched {
    /// The next `count` units, from the front again when they run out.
    fn take(&mut self, count: u64) -> Range<u64> {
        let count = count.min(length(&self.units));
        if self.next + count > self.units.end {
            self.next = self.units.start;
        }
        let taken = self.next..self.next + count;
        self.next = taken.end;
        taken
    }
}

/// A probe that ran: units, and seconds from first start to last end.
type Ran = Option<(u64, f64)>;

/// What probes have left behind.
#[derive(Debug, Default)]
pub struct Probes {
    /// Units written to devices that hold them since, by device.
    written: Vec<(usize, Range<u64>)>,
    /// Whether the devices keep them.
    kept: bool,
    /// When they had been written.
    until: Nanos,
    /// Until then, and from then on.
    took: [Nanos; 2],
}

/// A submitted probe.
struct SubmittedProbe {
    job: usize,
    /// Seconds that submitting it took.
    submit: f64,
}

/// Units, and launches beyond the first, of a probe of held units.
type Ring = (u64, u64);

impl RunState<'_, '_> {
    /// Probes all devices, if the balancer makes something of it.
    pub(super) fn probe(&mut self) -> Result<(), CorunError> {
        if !self.balancer.wants_probes() {
            return Ok(());
        }
        let began = self.context.runtime.now();
        let least = match self.form.bytes_tell_time() {
            true => LEAST_BYTES.div_ceil(self.context.workload.unit_bytes()),
            false => 1,
        };
        let all = self.context.units.clone();
        let units = (length(&all) / PART).max(least).min(length(&all));
        let mut streamed: Vec<Ran> = vec![None; self.context.devices.len()];
        let mut untouched = Untouched {
            next: all.start,
            units: all,
        };
        let mut certain = false;
        for round in 0..ROUNDS {
            let on_host = if round == 0 { least } else { units };
            let alone = self.probe_alone(units, on_host, round, &mut untouched)?;
            if round == 0 {
                self.probes.until = self.written();
            }
            certain = round == 0 && self.balancer.is_certain();
            if certain {
                break;
            }
            let longest = (self.host_devices().iter())
                .filter_map(|d| alone[*d].map(|(_, seconds)| seconds))
                .fold(0.0, f64::max);
            let (streams, beside) =
                self.probe_streams(units, longest, &streamed, &mut untouched)?;
            streamed = streams;
            if round + 1 == ROUNDS {
                for device in 0..self.context.devices.len() {
                    let (kind, ran) = match self.context.devices[device].is_host() {
                        true => (ProbeKind::Beside, beside[device]),
                        false => (ProbeKind::Streamed, streamed[device]),
                    };
                    self.tell(device, kind, ran, (0, false));
                }
            }
        }
        if !certain {
            self.probe_rings()?;
        }
        self.probes.kept = self.form.end_probes();
        self.context.jobs.clear();
        let ended = self.context.runtime.now();
        self.probes.took = [
            self.probes.until.clamp(began, ended) - began,
            ended - self.probes.until.clamp(began, ended),
        ];
        Ok(())
    }

    /// When the last of what probes hold was written.
    fn written(&self) -> Nanos {
        let writes = self.context.jobs.spans.iter();
        let writes = writes.filter(|span| span.kind == CommandKind::Write && span.label == PROBE);
        writes.map(|span| span.ended).max().unwrap_or(0)
    }

    /// Notes what the probes took. What was written for them and stays where the
    /// first plan wants it would have been written in any case.
    pub(super) fn note_probe_seconds(&mut self) {
        let probes = &self.probes;
        let held = &self.context.layout.held;
        let all_stay = probes.written.iter().all(|(device, units)| {
            let held = &held[*device];
            probes.kept && held.start <= units.start && units.end <= held.end
        });
        let [writing, rest] = probes.took;
        let took = if all_stay { rest } else { writing + rest };
        self.outcome.probe_seconds = took as f64 / 1e9;
    }

    fn tell(
        &mut self,
        device: usize,
        kind: ProbeKind,
        ran: Ran,
        (more_launches, again): (u64, bool),
    ) {
        if let Some((units, seconds)) = ran.filter(|_| self.context.devices[device].alive) {
            self.balancer.probed(&Probe {
                device,
                kind,
                units,
                more_launches,
                seconds,
                again,
            });
        }
    }

    /// The least and the most that is worth holding of a ring that cannot hold
    /// it all in one window.
    fn rings(&self, device: usize) -> Option<[Ring; 2]> {
        let space = &self.context.devices[device].space;
        let (slots, most) = (space.slots?, space.capacity?);
        let least = slots.saturating_sub(windows::SPARE) / 2;
        let ring = |units| (units, windows::more_launches(units, Some(slots)));
        (0 < least && least < most).then(|| [ring(least), ring(most)])
    }

    /// Runs the kernels of a ring twice, the fewest and the most launches that
    /// there can be.
    fn probe_rings(&mut self) -> Result<(), CorunError> {
        for device in 0..self.context.devices.len() {
            for (units, more) in self.rings(device).into_iter().flatten() {
                let job = self.probe_held(device, units, false)?;
                self.drain()?;
                let ran = self.ran(job.as_slice());
                self.tell(device, ProbeKind::Held, ran[device], (more, false));
            }
        }
        Ok(())
    }

    fn host_devices(&self) -> Vec<usize> {
        (0..self.context.devices.len())
            .filter(|d| self.context.devices[*d].is_host())
            .collect()
    }

    /// Kernels where data lies already: on the grids, or held. Tells the
    /// balancer of them.
    fn probe_alone(
        &mut self,
        units: u64,
        on_host: u64,
        round: u32,
        untouched: &mut Untouched,
    ) -> Result<Vec<Ran>, CorunError> {
        let mut sent = Vec::new();
        // The host's are under way while others' units are written.
        for device in self.host_devices() {
            let before = self.context.submitting;
            let job = self.probe_chunk(device, 0, on_host, untouched)?;
            let submit = (self.context.submitting - before) as f64 / 1e9;
            sent.push(SubmittedProbe { job, submit });
        }
        let held = self.submit_held(units, round == 0)?;
        self.drain()?;
        let jobs: Vec<usize> = sent.iter().map(|sent| sent.job).collect();
        let alone = self.ran(&jobs);
        for (device, ran) in alone.iter().enumerate() {
            self.tell(device, ProbeKind::Alone, *ran, (0, false));
        }
        for probe in sent {
            self.tell_overhead(&probe, false);
        }
        match held.len() {
            0 | 1 => self.tell_held(&held, round == 0, false),
            _ => {
                for repeat in 0..REPEATS {
                    let held = self.submit_held(units, false)?;
                    self.drain()?;
                    self.tell_held(&held, false, round + repeat > 0);
                }
            }
        }
        Ok(alone)
    }

    /// Launches on the units that all devices with memory of their own hold, which are
    /// written first if asked.
    fn submit_held(&mut self, units: u64, write: bool) -> Result<Vec<SubmittedProbe>, CorunError> {
        let mut sent = Vec::new();
        for device in 0..self.context.devices.len() {
            if self.context.devices[device].is_host() {
                continue;
            }
            let before = self.context.submitting;
            let job = self.probe_held(device, units, write)?;
            let submit = (self.context.submitting - before) as f64 / 1e9;
            sent.extend(job.map(|job| SubmittedProbe { job, submit }));
        }
        Ok(sent)
    }

    /// Tells the balancer of launches that have ended, which have `waited` for their units
    /// or were run `again`.
    fn tell_held(&mut self, sent: &[SubmittedProbe], waited: bool, again: bool) {
        let jobs: Vec<usize> = sent.iter().map(|sent| sent.job).collect();
        for (device, ran) in self.ran(&jobs).into_iter().enumerate() {
            self.tell(device, ProbeKind::Held, ran, (0, again));
        }
        for probe in sent {
            self.tell_overhead(probe, waited);
        }
    }

    /// Tells what a probe took beside its kernels. No other command of its device
    /// has completed since. One that `waited` for its units shows no start.
    fn tell_overhead(&mut self, probe: &SubmittedProbe, waited: bool) {
        let (job, submit) = (&self.context.jobs.all[probe.job], probe.submit);
        let device = job.device;
        let seconds = |from: Nanos, to: Nanos| to.saturating_sub(from) as f64 / 1e9;
        let before = match waited {
            true => submit,
            false => seconds(job.issued, job.started),
        };
        // That a pool has ended is noticed late while the engine submits for others.
        let after = match self.context.devices[device].is_host() {
            true => 0.0,
            false => seconds(job.ended, self.context.devices[device].heard),
        };
        if !job.failed && self.context.devices[device].alive {
            self.balancer.overhead(&Overhead {
                device,
                barrier: before + after,
                enqueue: submit,
            });
        }
    }

    /// Launches on held units, which are written first if asked; `None` if the
    /// device holds nothing. What submitting the writes took does not count.
    fn probe_held(
        &mut self,
        device: usize,
        units: u64,
        write: bool,
    ) -> Result<Option<usize>, CorunError> {
        if !self.context.devices[device].alive {
            return Ok(None);
        }
        let (form, context) = (&mut self.form, &mut self.context);
        let purpose = Purpose::new(device, MAIN, 0, PROBE);
        let before = context.submitting;
        let units = form.hold_probe(context, purpose, units, write)?;
        context.submitting = before;
        if units.is_empty() {
            return Ok(None);
        }
        if write {
            self.probes.written.push((device, units.clone()));
        }
        let job = self.held_job(device, units);
        let purpose = Purpose {
            job: Some(job),
            ..purpose
        };
        while self.form.launch(&mut self.context, purpose, false)? {}
        self.tell_losses();
        Ok(Some(job))
    }

    /// Streams, as long as the host devices' probes beside them last.
    fn probe_streams(
        &mut self,
        units: u64,
        longest: f64,
        before: &[Ran],
        untouched: &mut Untouched,
    ) -> Result<(Vec<Ran>, Vec<Ran>), CorunError> {
        let (mut streams, mut beside) = (Vec::new(), Vec::new());
        for (device, before) in before.iter().enumerate() {
            let state = &self.context.devices[device];
            if state.is_host() {
                continue;
            }
            let chunk = state.space.longest_chunk.unwrap_or(units);
            let lanes = state.space.chunk_queues as u64;
            let lasting = before.map_or(0.0, |(units, seconds)| {
                longest * units as f64 / seconds / chunk as f64
            });
            let chunks = (lasting as u64)
                .saturating_add(if before.is_some() { 2 * lanes } else { lanes })
                .min(MOST_CHUNKS);
            for i in 0..chunks {
                let lane = (i % lanes) as usize;
                streams.push(self.probe_chunk(device, lane, chunk, untouched)?);
            }
        }
        if streams.is_empty() {
            return Ok((vec![None; before.len()], vec![None; before.len()]));
        }
        for device in self.host_devices() {
            beside.push(self.probe_chunk(device, 0, units, untouched)?);
        }
        self.drain()?;
        Ok((self.ran(&streams), self.ran(&beside)))
    }

    fn probe_chunk(
        &mut self,
        device: usize,
        lane: usize,
        units: u64,
        untouched: &mut Untouched,
    ) -> Result<usize, CorunError> {
        let longest = self.context.devices[device].space.longest_chunk;
        let units = untouched.take(longest.map_or(units, |longest| units.min(longest)));
        self.submit_chunk((device, lane), units, (0, PROBE), &Arrivals::default())
    }

    /// What each device did in these jobs. Of several jobs of a device the
    /// first counts only as what fills the pipeline.
    fn ran(&self, jobs: &[usize]) -> Vec<Ran> {
        (0..self.context.devices.len())
            .map(|device| {
                let all = jobs.iter().map(|job| &self.context.jobs.all[*job]);
                let mine: Vec<_> = all.filter(|j| j.device == device && !j.failed).collect();
                let (first, rest) = mine.split_first()?;
                let (from, counted) = match rest.is_empty() {
                    true => (first.started, &mine[..]),
                    false => (first.ended, rest),
                };
                let units: u64 = counted.iter().map(|j| length(&j.units)).sum();
                let until = counted.iter().map(|j| j.ended).max()?;
                (until > from).then(|| (units, (until - from) as f64 / 1e9))
            })
            .collect()
    }
}
