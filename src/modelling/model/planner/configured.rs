//! A candidate device under a configuration: its part in a step, and how long that
//! takes.
//!
//! A model knows runs of one device by itself. It is therefore asked about a grid of
//! just the device's units, and [`crate::model::prior`] gives the effects of other
//! devices: shared bandwidth, a barrier, a halo.

use std::sync::Arc;

use super::candidate::{CandidateDevice, MemoryKind};
use super::step_model::Flow;
use crate::balance::dawl::granularity::POOL_CHUNKS;
use crate::balance::fixed::STREAM_CHUNKS;
use crate::balance::windows::more_launches;
use crate::engine::corun::Stream;
use crate::engine::corun::grid::{self, Beside, GridDivision};
use crate::engine::corun::memory::{least_host_chunk, least_streamed_chunk};
use crate::engine::corun::product::{ProductEstimate, fixed_bytes};
use crate::model::case::{Case, DevicePart, HALO, StepWork};
use crate::model::{StepTime, prior};

/// A device in a run.
#[derive(Clone)]
pub struct ConfiguredDevice {
    pub time: Arc<dyn StepTime>,
    form: Form,
}

#[derive(Clone, Copy)]
enum Form {
    Host {
        workers: u32,
        sockets: u32,
        /// Most units of a chunk, and the number of chunks into which a balancer cuts a part.
        longest: u64,
        chunks: u64,
    },
    Discrete(GridDivision),
}

/// What a device copies of its neighbours' units, and they of its own, at a barrier.
#[derive(Clone, Copy, Debug, Default)]
pub struct Exchange {
    /// Sides of what it holds beyond which others compute: those whose units pass through the
    /// host's memory, and those to which a direct way leads.
    pub through_host: u64,
    pub direct: u64,
    /// Seconds of all devices' units on the bus, each way; `None` where nobody waits for the host.
    pub bus: Option<f64>,
}

/// That of a device beside a pool.
pub const WITH_POOL: Exchange = Exchange {
    through_host: 1,
    direct: 0,
    bus: Some(0.0),
};

/// What a grid's units read of others.
fn beside(work: &StepWork) -> Beside {
    Beside {
        step: HALO,
        superstep: HALO * u64::from(work.steps()),
        all: work.units,
    }
}

impl ConfiguredDevice {
    /// Configures a candidate with `workers` of a pool's cores, or with `stream` for
    /// device memory. `None` if that is too small for the smallest stream buffers.
    pub fn new(
        candidate: &CandidateDevice,
        workers: u32,
        stream: Stream,
        work: &StepWork,
    ) -> Option<Self> {
        let host = &candidate.time.descriptors().host;
        let form = match candidate.memory {
            MemoryKind::HostPool => {
                // On as few sockets as possible.
                let socket = (host.cores / host.sockets.max(1)).max(1);
                Form::Host {
                    workers,
                    sockets: workers.div_ceil(socket).clamp(1, host.sockets.max(1)),
                    longest: work.units,
                    chunks: POOL_CHUNKS,
                }
            }
            MemoryKind::HostShared => Form::Host {
                workers: candidate.compute_units,
                sockets: 1,
                // It has no kernel of a whole superstep, and goes through it step by step.
                longest: match work.superstep {
                    Some(_) => grid::scratch_chunk(work.units, work.unit_bytes, &beside(work)),
                    None => work.units,
                },
                chunks: POOL_CHUNKS,
            },
            MemoryKind::Discrete { limit, .. } if let Some(matrix) = &work.matrix => {
                let number = work.number_bytes();
                let fixed = fixed_bytes(work.units, matrix.rows, matrix.columns, number);
                let unit_bytes = (work.unit_bytes as f64 * matrix.unevenness()) as u64;
                let estimate = ProductEstimate::of(work.units, unit_bytes, fixed, limit, stream)?;
                Form::Discrete(GridDivision {
                    slots: 2 * work.units + 3,
                    capacity: estimate.held,
                    chunk: estimate.chunk,
                    queues: estimate.queues,
                })
            }
            MemoryKind::Discrete { limit, largest } => {
                let (beside, unit_bytes) = (beside(work), work.unit_bytes);
                let division = GridDivision::with_halo(
                    &beside, work.units, unit_bytes, limit, largest, stream,
                );
                let division = division.ok()?;
                Form::Discrete(GridDivision {
                    slots: grid::counted(division.slots, beside.superstep),
                    ..division
                })
            }
        };
        let time = Arc::clone(&candidate.time);
        Some(Self { time, form })
    }

    /// Hands out what a pool computes of a step as far as possible at once.
    pub fn at_once(self) -> Self {
        let form = match self.form {
            Form::Host {
                workers,
                sockets,
                longest,
                ..
            } => Form::Host {
                workers,
                sockets,
                longest,
                chunks: 1,
            },
            discrete => discrete,
        };
        Self { form, ..self }
    }

    /// Changes the chunks that are streamed, up to the length of the buffers.
    pub fn with_chunk(self, chunk: u64) -> Self {
        let form = match self.form {
            Form::Discrete(division) => Form::Discrete(GridDivision {
                chunk: chunk.clamp(1, division.chunk),
                ..division
            }),
            host => host,
        };
        Self { form, ..self }
    }

    /// Changes the number of units that fit its device memory: where units differ in
    /// size, the run knows it and the average does not.
    pub fn with_capacity(self, capacity: u64) -> Self {
        let form = match self.form {
            Form::Discrete(division) => Form::Discrete(GridDivision {
                capacity,
                ..division
            }),
            host => host,
        };
        Self { form, ..self }
    }

    /// The division of its device memory, if it has any.
    pub fn division(&self) -> Option<GridDivision> {
        match self.form {
            Form::Host { .. } => None,
            Form::Discrete(division) => Some(division),
        }
    }

    /// Most units that it can hold.
    pub fn capacity(&self) -> u64 {
        self.division().map_or(0, |division| division.capacity)
    }

    /// Units of the shortest chunk, as a run has it.
    pub fn least_chunk(&self, work: &StepWork) -> u64 {
        let (least, longest) = match self.form {
            Form::Host {
                workers, longest, ..
            } => (least_host_chunk(work.unit_bytes, workers), longest),
            Form::Discrete(division) => (
                least_streamed_chunk(work.unit_bytes, division.chunk),
                division.chunk,
            ),
        };
        match work.superstep {
            Some(_) => least.max(grid::least_chunk(&beside(work)).min(longest)),
            None => least,
        }
    }

    pub fn has_own_memory(&self) -> bool {
        self.division().is_some()
    }

    /// The grid of `held` and `pooled` units by itself.
    pub fn case(&self, work: &StepWork, held: u64, pooled: u64) -> Case {
        let units = held + pooled;
        // Chunks of a superstep have halos, so their length counts; other steps are predicted
        // with the longest ones.
        let cut = |longest: u64, chunks: u64| match work.superstep {
            Some(_) => longest.min(pooled.div_ceil(chunks).max(self.least_chunk(work))),
            None => longest,
        };
        let part = match self.form {
            Form::Host {
                workers,
                sockets,
                longest,
                chunks,
            } => DevicePart::Host {
                workers,
                sockets,
                units,
                chunk: cut(longest, chunks).min(units),
            },
            Form::Discrete(division) => DevicePart::Discrete {
                held,
                // More slots are useless for so few units.
                slots: division.slots.min(2 * units + 3),
                streamed: pooled,
                chunk: cut(division.chunk, STREAM_CHUNKS),
                queues: division.queues,
                solo: pooled == 0,
            },
        };
        Case {
            work: StepWork {
                units,
                matrix: work.matrix.map(|matrix| matrix.part(units, work.units)),
                ..*work
            },
            part,
        }
    }

    /// Seconds of a step with these units, while host kernels or transfers run at
    /// `flow` of their rate alone.
    pub fn seconds(
        &self,
        work: &StepWork,
        units: (u64, u64),
        flow: f64,
        exchange: &Exchange,
    ) -> f64 {
        let (held, pooled) = units;
        if held + pooled == 0 {
            return 0.0;
        }
        let case = self.case(work, held, pooled);
        let alone = self.time.seconds(&case);
        let slowed = match flow < 1.0 && pooled > 0 {
            true => alone * self.slowed(&case, flow),
            false => alone,
        };
        match held > 0 {
            true => slowed + self.exchange(&case, exchange),
            false => slowed,
        }
    }

    /// The factor by which a case takes longer at `flow`.
    pub fn slowed(&self, case: &Case, flow: f64) -> f64 {
        let descriptors = self.time.descriptors();
        prior::beside(case, descriptors, flow).total / prior::seconds(case, descriptors)
    }

    /// The factor by which these units take longer when the driver enqueues for
    /// `streams` streaming devices in turns.
    pub fn crowded(&self, work: &StepWork, units: (u64, u64), streams: usize) -> f64 {
        let (held, pooled) = units;
        if pooled == 0 || streams < 2 {
            return 1.0;
        }
        let case = self.case(work, held, pooled);
        let mut shared = *self.time.descriptors();
        if let Some(device) = &mut shared.device {
            device.enqueue_seconds *= streams as f64;
        }
        prior::seconds(&case, &shared) / prior::seconds(&case, self.time.descriptors())
    }

    /// The cost of other devices: halos, what is computed twice, and the completion's latency.
    /// `case` is that of the device by itself.
    fn exchange(&self, case: &Case, exchange: &Exchange) -> f64 {
        let descriptors = self.time.descriptors();
        let by_itself = prior::seconds(case, descriptors);
        let beyond = |units: u64, waits: bool| {
            let mut beside = *case;
            beside.work.units += units;
            if let DevicePart::Discrete { solo, .. } = &mut beside.part {
                *solo &= !waits;
            }
            (prior::seconds(&beside, descriptors) - by_itself).max(0.0)
        };
        let halo = (HALO * u64::from(case.work.steps()) * case.work.unit_bytes) as f64;
        let mut seconds = 0.0;
        if let Some(way) = descriptors.host.direct.filter(|_| exchange.direct > 0) {
            let copy = way.latency_seconds + halo / way.h2d;
            seconds += beyond(exchange.direct, false) + exchange.direct as f64 * copy;
        }
        if let Some(bus) = exchange.bus {
            // The bus has the halos of all devices, then their edges.
            let link = descriptors.device.and_then(|device| device.link);
            let own = link.map_or(0.0, |link| exchange.through_host as f64 * halo / link.h2d);
            seconds += beyond(exchange.through_host, true) + 2.0 * (bus - own).max(0.0);
        }
        seconds
    }

    /// Seconds that the engine takes to enqueue one command for it.
    pub fn enqueue(&self) -> f64 {
        let device = self.time.descriptors().device;
        device.map_or(0.0, |device| device.enqueue_seconds)
    }

    /// Seconds of a launch on held units, and of all launches beyond the first if it
    /// holds `held`.
    pub fn launches(&self, held: u64) -> (f64, f64) {
        let device = self.time.descriptors().device;
        let launch = device.map_or(0.0, |device| device.launch_seconds);
        let slots = self.division().map(|division| division.slots);
        (launch, launch * more_launches(held, slots) as f64)
    }

    /// Seconds of a step in which the device computes nothing.
    pub fn overhead(&self, work: &StepWork) -> f64 {
        let descriptors = self.time.descriptors();
        match (self.form, &descriptors.device) {
            (Form::Host { .. }, None) => {
                descriptors.host.launch_seconds + descriptors.host.completion_seconds
            }
            (Form::Host { .. }, Some(device)) => {
                device.enqueue_seconds + device.launch_seconds + device.completion_seconds
            }
            (Form::Discrete(_), device) => {
                let launch = device.map_or(0.0, |device| device.launch_seconds);
                launch + self.exchange(&self.case(work, 1, 0), &WITH_POOL)
            }
        }
    }

    /// Seconds of a step during which its link is busy both ways.
    pub fn link_seconds(&self, work: &StepWork, units: (u64, u64), flow: f64) -> f64 {
        let (held, pooled) = units;
        if pooled == 0 || !self.has_own_memory() {
            return 0.0;
        }
        let case = self.case(work, held, pooled);
        prior::beside(&case, self.time.descriptors(), flow).link
    }

    /// The bandwidth of the host's memory that it uses when it computes `units` pool
    /// units.
    pub fn flow(&self, work: &StepWork, units: u64) -> Flow {
        let descriptors = self.time.descriptors();
        let host = descriptors.host.bandwidth;
        if let Some(link) = descriptors.device.and_then(|device| device.link) {
            let device = descriptors.device.unwrap_or_default();
            let queues = self.division().map_or(1, |division| division.queues);
            let both = link.h2d + link.d2h;
            let (alone, own_limit) = match device.copy_engines == 1 || queues == 1 {
                true => (link.h2d.max(link.d2h).min(host), 1.0),
                false => (both, (2.0 * link.both_ways / both).min(1.0)),
            };
            return Flow {
                alone,
                own_limit,
                is_transfers: true,
                commands: 1,
            };
        }
        let kernel = self.seconds(work, (0, units), 1.0, &WITH_POOL) - self.overhead(work);
        // The cores keep a superstep's steps in their caches; other devices read and write
        // memory in each.
        let computed = match descriptors.device {
            Some(_) => work.computed(units, 2 * self.case(work, 0, units).part.chunks()),
            None => units,
        };
        let traffic = computed as f64 * work.unit_traffic;
        let alone = match kernel > 0.0 {
            true => (traffic / kernel).min(host),
            false => host,
        };
        Flow {
            alone,
            // Chunks of both lanes of a device run at once.
            commands: match descriptors.device {
                Some(_) => prior::LANES,
                None => 1,
            },
            own_limit: 1.0,
            is_transfers: false,
        }
    }
}
