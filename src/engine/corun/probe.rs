//! Equal probes before the first step: every device computes the same small
//! number of units, first by itself and then while others stream, so that the
//! balancer's first shares need no guess. A device whose ring may be nearly full
//! also computes half of a ring in one launch and a full one in many, which
//! tells what launches cost. Results are thrown away.

use std::ops::Range;

use super::drive::{Drive, Kept};
use super::layout::length;
use super::place::Place;
use super::step::Piece;
use super::{CorunError, PROBE};
use crate::balance::{Probe, ProbeKind, windows};

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

/// Units, and launches beyond the first, of a probe of held units.
type Ring = (u64, u64);

impl Drive<'_> {
    /// Probes all devices, if the balancer makes something of it.
    pub fn probe(&mut self) -> Result<(), CorunError> {
        if !self.balancer.wants_probes() {
            return Ok(());
        }
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
        for round in 0..ROUNDS {
            let alone = self.probe_alone(units, round, &mut untouched)?;
            let longest = (self.host_devices().iter())
                .filter_map(|d| alone[*d].map(|(_, seconds)| seconds))
                .fold(0.0, f64::max);
            let (streams, beside) =
                self.probe_streams(units, longest, &streamed, &mut untouched)?;
            streamed = streams;
            if round + 1 == ROUNDS {
                for device in 0..self.places.len() {
                    let own = !self.places[device].is_host();
                    let (first, second) = match own {
                        true => (ProbeKind::Held, ProbeKind::Streamed),
                        false => (ProbeKind::Alone, ProbeKind::Beside),
                    };
                    let second_ran = if own {
                        streamed[device]
                    } else {
                        beside[device]
                    };
                    self.tell(device, first, alone[device], 0);
                    self.tell(device, second, second_ran, 0);
                }
            }
        }
        self.probe_rings()?;
        for place in &mut self.places {
            match place {
                Place::Host { .. } | Place::Images(_) => {}
                Place::Own(own) => own.held.hold(0..0),
                Place::Store(store) => store.hold(0..0),
            }
        }
        self.ledger.open();
        Ok(())
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
                let job = self.probe_held(device, units, false)?;
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

    /// Kernels where data lies already: on the grids, or held.
    fn probe_alone(
        &mut self,
        units: u64,
        round: u32,
        untouched: &mut Untouched,
    ) -> Result<Vec<Ran>, CorunError> {
        let mut jobs = Vec::new();
        for device in 0..self.places.len() {
            match &self.places[device] {
                Place::Host { .. } => {
                    jobs.push(self.probe_chunk(device, 0, units, untouched)?);
                }
                Place::Own(_) => jobs.extend(self.probe_held(device, units, round == 0)?),
                Place::Store(_) => jobs.extend(self.probe_store(device, units, round)?),
                // It holds nothing, and has only streams to be probed.
                Place::Images(_) => {}
            }
        }
        self.drain()?;
        Ok(self.ran(&jobs))
    }

    fn probe_held(
        &mut self,
        device: usize,
        units: u64,
        is_first: bool,
    ) -> Result<Option<usize>, CorunError> {
        let units = units.min(self.capacity[device]);
        let now = self.runtime.now();
        let Some(grid) = self.as_grid().filter(|_| units > 0) else {
            return Ok(None);
        };
        let Some((own, mut whose)) = self.own(device, 0, PROBE) else {
            return Ok(None);
        };
        own.held.hold(0..units);
        let (from, to) = (own.held.present(), own.held.next());
        let windows: Vec<_> = own.held.windows().collect();
        if is_first {
            self.write(whose, 0..units, 0, &from, &[])?;
        }
        let job = self.ledger.job(device, None, 0..units, now);
        whose.job = Some(job);
        for window in windows {
            let args = grid.args(window.clone(), &from, &to);
            self.launch(whose, window, args, &[])?;
        }
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
            let chunks = (lasting as u64).saturating_add(2 * lanes).min(MOST_CHUNKS);
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
