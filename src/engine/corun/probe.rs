//! Probes before the first step: every device computes a small number of units,
//! first by itself and then while others stream, so that the balancer's first
//! shares need no guess. The first probes are short; where they tell enough, they
//! were all. A device whose ring may be nearly full also computes half of a ring
//! in one launch and a full one in many, which tells what launches cost. Results
//! are thrown away.

use std::ops::Range;

use super::drive::{Drive, Kept};
use super::launches::Series;
use super::layout::length;
use super::place::Place;
use super::step::Piece;
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
/// Most chunks of a streaming probe.
const MOST_CHUNKS: u64 = 96;

/// Units that no probe has touched lately: what was just read may lie in a
/// cache, from where a step, which reads what the step before it wrote past
/// the caches, never has it. (On 16 Xeon cores with 300 MB of cache a second
/// probe of the same rows was twice as fast as any step.)
struct Untouched {
    units: u64,
    next: u64,
}

impl Untouched {
    /// The next `count` units, from the front again when they run out.
    fn take(&mut self, count: u64) -> Range<u64> {
        let count = count.min(self.units);
        if self.next + count > self.units {
            self.next = 0;
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
    /// Units that each device was given and keeps.
    held: Vec<Range<u64>>,
    /// Whether some were written for the probes alone.
    alone: bool,
    /// When they had been written.
    until: Nanos,
    /// Until then, and from then on.
    took: [Nanos; 2],
}

impl Probes {
    /// Nothing was probed yet.
    pub fn none(devices: usize) -> Self {
        Self {
            held: vec![0..0; devices],
            ..Self::default()
        }
    }
}

/// A probe on the way.
struct Sent {
    job: usize,
    /// Seconds that enqueueing it took.
    enqueue: f64,
}

/// Units, and launches beyond the first, of a probe of held units.
type Ring = (u64, u64);

impl Drive<'_> {
    /// Probes all devices, if the balancer makes something of it.
    pub fn probe(&mut self) -> Result<(), CorunError> {
        if !self.balancer.wants_probes() {
            return Ok(());
        }
        let began = self.runtime.now();
        let least = match &self.kept {
            // Bytes say little of what a kernel computes.
            Kept::Kernel(_) => 1,
            _ => LEAST_BYTES.div_ceil(self.workload.unit_bytes()),
        };
        let units = (self.workload.units() / PART)
            .max(least)
            .min(self.workload.units());
        let mut streamed: Vec<Ran> = vec![None; self.places.len()];
        let mut untouched = Untouched {
            units: self.workload.units(),
            next: 0,
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
                for device in 0..self.places.len() {
                    let (kind, ran) = match self.places[device].is_host() {
                        true => (ProbeKind::Beside, beside[device]),
                        false => (ProbeKind::Streamed, streamed[device]),
                    };
                    self.tell(device, kind, ran, 0);
                }
            }
        }
        if !certain {
            self.probe_rings()?;
        }
        for place in &mut self.places {
            // A product's entries never change: what a store has, it has.
            if let Place::Own(own) = place {
                own.held.hold(0..0);
            }
        }
        self.ledger.open();
        let ended = self.runtime.now();
        self.probes.took = [
            self.probes.until.clamp(began, ended) - began,
            ended - self.probes.until.clamp(began, ended),
        ];
        Ok(())
    }

    /// When the last of what probes hold was written.
    fn written(&self) -> Nanos {
        let writes = self.ledger.spans.iter();
        let writes = writes.filter(|span| span.kind == CommandKind::Write && span.label == PROBE);
        writes.map(|span| span.ended).max().unwrap_or(0)
    }

    /// Books what the probes took. What was written for them and stays where the
    /// first plan wants it would have been written in any case.
    pub(super) fn book_probes(&mut self) {
        let stays = |(device, range): (usize, &Range<u64>)| {
            let held = &self.layout.held[device];
            range.is_empty() || held.start <= range.start && range.end <= held.end
        };
        let [writing, rest] = self.probes.took;
        let all_stay = !self.probes.alone && self.probes.held.iter().enumerate().all(stays);
        let took = if all_stay { rest } else { writing + rest };
        self.outcome.probe_seconds = took as f64 / 1e9;
    }

    fn tell(&mut self, device: usize, kind: ProbeKind, ran: Ran, more_launches: u64) {
        if let Some((units, seconds)) = ran.filter(|_| self.alive[device]) {
            self.balancer.probed(&Probe {
                device,
                kind,
                units,
                more_launches,
                seconds,
            });
        }
    }

    /// The least and the most that is worth holding of a ring that cannot hold
    /// it all in one window.
    fn rings(&self, device: usize) -> Option<[Ring; 2]> {
        let (slots, most) = (self.places[device].slots()?, self.capacity[device]);
        let least = slots.saturating_sub(windows::SPARE) / 2;
        let ring = |units| (units, windows::more_launches(units, Some(slots)));
        (0 < least && least < most).then(|| [ring(least), ring(most)])
    }

    /// Runs the kernels of a ring twice, the fewest and the most launches that
    /// there can be.
    fn probe_rings(&mut self) -> Result<(), CorunError> {
        for device in 0..self.places.len() {
            for (units, more) in self.rings(device).into_iter().flatten() {
                let job = self.probe_held(device, units)?;
                self.drain()?;
                let ran = self.ran(job.as_slice());
                self.tell(device, ProbeKind::Held, ran[device], more);
            }
        }
        Ok(())
    }

    fn host_devices(&self) -> Vec<usize> {
        (0..self.places.len())
            .filter(|d| self.places[*d].is_host())
            .collect()
    }

    /// Writes what a memory of a device's own holds in probes.
    fn write_probe(&mut self, device: usize, units: u64) -> Result<(), CorunError> {
        match &self.places[device] {
            Place::Host { .. } | Place::Images(_) => Ok(()),
            Place::Own(_) => {
                let units = units.min(self.capacity[device]);
                let Some((own, whose)) = self.own(device, 0, PROBE) else {
                    return Ok(());
                };
                own.held.hold(0..units);
                let ring = own.held.present();
                self.probes.alone = true;
                self.write(whose, 0..units, 0, &ring, &[])
            }
            Place::Store(_) => {
                self.probes.held[device] = self.write_store_probe(device, units)?;
                Ok(())
            }
        }
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
        let mut order: Vec<usize> = (0..self.places.len()).collect();
        order.sort_by_key(|device| !self.places[*device].is_host());
        for device in order {
            if round == 0 {
                self.write_probe(device, units)?;
            }
            let before = self.enqueueing;
            let job = match &self.places[device] {
                Place::Host { .. } => Some(self.probe_chunk(device, 0, on_host, untouched)?),
                Place::Own(_) => self.probe_held(device, units)?,
                Place::Store(_) => self.probe_store(device)?,
                // It holds nothing, and has only streams to be probed.
                Place::Images(_) => None,
            };
            let enqueue = (self.enqueueing - before) as f64 / 1e9;
            sent.extend(job.map(|job| Sent { job, enqueue }));
        }
        self.drain()?;
        let jobs: Vec<usize> = sent.iter().map(|sent| sent.job).collect();
        let alone = self.ran(&jobs);
        for (device, ran) in alone.iter().enumerate() {
            let kind = match self.places[device].is_host() {
                true => ProbeKind::Alone,
                false => ProbeKind::Held,
            };
            self.tell(device, kind, *ran, 0);
        }
        for Sent { job, enqueue } in sent {
            self.tell_overhead(job, enqueue, round);
        }
        Ok(alone)
    }

    /// Tells what a probe took beside its kernels: nothing else of its device
    /// was heard of since.
    fn tell_overhead(&mut self, job: usize, enqueue: f64, round: u32) {
        let job = &self.ledger.jobs[job];
        let device = job.device;
        let seconds = |from: Nanos, to: Nanos| to.saturating_sub(from) as f64 / 1e9;
        // The first one waited for what it computes to be written.
        let before = match round == 0 && !self.places[device].is_host() {
            true => enqueue,
            false => seconds(job.issued, job.started),
        };
        // That a pool has ended is heard late while the driver enqueues for others.
        let after = match self.places[device].is_host() {
            true => 0.0,
            false => seconds(job.ended, self.heard[device]),
        };
        if !job.failed && self.alive[device] {
            self.balancer.overhead(&Overhead {
                device,
                barrier: before + after,
                enqueue,
            });
        }
    }

    fn probe_held(&mut self, device: usize, units: u64) -> Result<Option<usize>, CorunError> {
        let units = units.min(self.capacity[device]);
        let now = self.runtime.now();
        let Some(grid) = self.as_grid().filter(|_| units > 0) else {
            return Ok(None);
        };
        let Some((own, whose)) = self.own(device, 0, PROBE) else {
            return Ok(None);
        };
        own.held.hold(0..units);
        let series = Series::of(grid, whose, &own.held);
        let job = self.ledger.job(device, None, 0..units, now);
        self.launch_all(series, job)?;
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
            let place = &self.places[device];
            if place.is_host() {
                continue;
            }
            let chunk = match place {
                Place::Images(_) => units,
                _ => place.longest_chunk(),
            };
            let lanes = place.lanes() as u64;
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
        let units = untouched.take(units.min(self.places[device].longest_chunk()));
        let now = self.runtime.now();
        let job = self.ledger.job(device, Some(lane), units.clone(), now);
        let piece = Piece {
            device,
            lane,
            job: Some(job),
            step: 0,
            label: PROBE,
        };
        self.chunk_on(piece, units, &[])?;
        Ok(job)
    }

    /// What each device did in these jobs. Of several jobs of a device the
    /// first counts only as what fills the pipeline.
    fn ran(&self, jobs: &[usize]) -> Vec<Ran> {
        (0..self.places.len())
            .map(|device| {
                let all = jobs.iter().map(|job| &self.ledger.jobs[*job]);
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
