//! Candidates: for devices with memory of their own, and for pools of the host's cores and devices
//! that share its memory. Pure.

use super::{Candidate, Gpu, SizedGrid, Space, chunks_of};
use crate::engine::corun::Stream;
use crate::engine::corun::grid::{GridDivision, HeldRing, WINDOW_FRACTION};
use crate::machine::host::Placement;
use crate::profile::configuration::{Configuration, Grid, ModelKind, Setting};

/// Parts of the grid that are held, when not all of it is.
const HELD: [f64; 3] = [0.9, 0.5, 0.0];

/// Free slots of the ring, as a fraction of the units held: enough for one
/// launch a step, for some, and as few as a run with little memory has.
const FREE: [Free; 3] = [Free::Ample, Free::Fraction(0.2), Free::Least];

/// Bytes of a streamed chunk.
const CHUNKS: [u64; 5] = [512 << 10, 2 << 20, 8 << 20, 32 << 20, 128 << 20];

/// Queues to stream over.
const QUEUES: [u32; 4] = [1, 2, 3, 4];

/// The most streamed chunks of a step: with more, a run takes long and adds no
/// information.
const MOST_CHUNKS: u64 = 256;

/// Weights of the coordinates of a resident grid: size, aspect, free slots, barriers.
const RESIDENT: [f64; 4] = [1.5, 0.4, 0.5, 0.4];

/// Weights of the coordinates of a streamed grid: size, aspect, held, free slots,
/// chunk, queues.
const STREAMED: [f64; 6] = [1.5, 0.4, 0.8, 0.3, 0.7, 0.7];

/// Candidates that hold the whole grid.
pub fn resident(gpu: &Gpu, grids: &[SizedGrid]) -> Vec<Candidate> {
    let mut candidates = Vec::new();
    for sized in grids {
        for (level, free) in FREE.into_iter().enumerate() {
            for ahead in [true, false] {
                let desired = DesiredSetting {
                    held: sized.grid.units(),
                    free,
                    chunk: 8 << 20,
                    queues: 3,
                    ahead,
                };
                let Some(configuration) = desired.on(gpu, &sized.grid) else {
                    continue;
                };
                let barriers = f64::from(u8::from(!ahead));
                candidates.push(Candidate::new(
                    configuration,
                    sized,
                    [sized.size, sized.aspect, part(level, FREE.len()), barriers],
                    RESIDENT,
                ));
            }
        }
    }
    candidates
}

/// Candidates that stream the grid or a part of it.
pub fn streamed(gpu: &Gpu, grids: &[SizedGrid]) -> Vec<Candidate> {
    let mut candidates = Vec::new();
    for sized in grids {
        for held in HELD {
            for (level, free) in FREE.into_iter().enumerate() {
                for (length, chunk) in CHUNKS.into_iter().enumerate() {
                    for queues in QUEUES {
                        let desired = DesiredSetting {
                            held: (held * sized.grid.units() as f64).round() as u64,
                            free,
                            chunk,
                            queues,
                            ahead: false,
                        };
                        let Some(configuration) = desired.on(gpu, &sized.grid) else {
                            continue;
                        };
                        let at = [
                            sized.size,
                            sized.aspect,
                            held,
                            part(level, FREE.len()),
                            part(length, CHUNKS.len()),
                            f64::from(queues - 1) / 3.0,
                        ];
                        candidates.push(Candidate::new(configuration, sized, at, STREAMED));
                    }
                }
            }
        }
    }
    candidates
}

/// A coordinate from 0 to 1.
fn part(index: usize, of: usize) -> f64 {
    index as f64 / (of - 1) as f64
}

/// Free slots of a ring.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Free {
    /// A step is one launch.
    Ample,
    /// Of the units held.
    Fraction(f64),
    Least,
}

/// The properties that a configuration should have.
struct DesiredSetting {
    held: u64,
    free: Free,
    /// Bytes.
    chunk: u64,
    queues: u32,
    ahead: bool,
}

impl DesiredSetting {
    /// The configuration, if the device's memory allows it and no other setting gives
    /// the same one.
    fn on(&self, gpu: &Gpu, grid: &Grid) -> Option<Configuration> {
        let (units, unit_bytes) = (grid.units(), grid.unit_bytes());
        let streamed = units - self.held;
        // The stream buffers exist even where nothing is streamed.
        let most = if streamed == 0 { units } else { streamed };
        let longest = units.div_ceil(8).min(most);
        let chunk = (self.chunk / unit_bytes).clamp(1, longest);
        if streamed.div_ceil(chunk) > MOST_CHUNKS {
            return None;
        }
        let slots = self.slots()?;
        let buffers = u64::from(self.queues) * (2 * chunk + 2);
        let memory = (slots + buffers).checked_mul(unit_bytes)?;
        if memory > gpu.memory {
            return None;
        }
        let stream = Stream {
            chunk: Some(chunk),
            queues: Some(self.queues),
        };
        let division = GridDivision::of(units, unit_bytes, memory, gpu.largest, stream).ok()?;
        let as_wished = division.chunk == chunk
            && division.queues == self.queues
            && division.slots == slots
            && division.capacity >= self.held;
        as_wished.then(|| {
            let setting = Setting::Discrete {
                memory,
                held: self.held,
                chunk,
                queues: self.queues,
                ahead: self.ahead,
            };
            Configuration::new(*grid, ModelKind::Gpu, &gpu.name, setting)
        })
    }

    /// Slots of the ring; `None` where another desired setting has the same.
    fn slots(&self) -> Option<u64> {
        let least = least_slots(self.held);
        let slots = match self.free {
            Free::Least => return Some(least),
            Free::Ample => 2 * self.held + 3,
            Free::Fraction(part) => self.held + (part * self.held as f64) as u64 + 3,
        };
        (self.held > 0 && slots > least).then_some(slots)
    }
}

/// The fewest slots with which a run may hold `held` units.
fn least_slots(held: u64) -> u64 {
    if held == 0 {
        return 1;
    }
    let mut slots = held + held / (WINDOW_FRACTION - 1);
    while HeldRing::capacity(slots, slots / WINDOW_FRACTION) < held {
        slots += 1;
    }
    slots
}

// Candidates for pools of the host's cores, and for devices that share its
// memory. Pure.

/// Chunks into which the units are cut: whole, and some divisions.
const CUTS: [u64; 5] = [1, 3, 8, 24, 64];

/// Weights of the coordinates: size, aspect, workers, placement, cuts.
const WEIGHTS: [f64; 5] = [1.5, 0.4, 1.0, 0.3, 0.6];

/// A pool of workers and their placement.
struct Pool {
    workers: u32,
    sockets: u32,
    placement: Option<Placement>,
}

/// The candidates for pools of cores.
pub fn pools(space: &Space, grids: &[SizedGrid]) -> Vec<Candidate> {
    let pools = placed(space);
    let all = space.topology.cores().max(1) as f64;
    let mut candidates = Vec::new();
    for sized in grids {
        for pool in &pools {
            for (cuts, chunk) in chunks_of(sized.grid.units(), &CUTS) {
                let setting = Setting::Host {
                    workers: pool.workers,
                    sockets: pool.sockets,
                    placement: pool.placement,
                    chunk,
                };
                let workers = f64::from(pool.workers).ln() / all.max(2.0).ln();
                let spread = f64::from(u8::from(pool.placement == Some(Placement::Spread)));
                candidates.push(Candidate::new(
                    Configuration::new(sized.grid, ModelKind::Cpu, "host", setting),
                    sized,
                    [sized.size, sized.aspect, workers, spread, cuts],
                    WEIGHTS,
                ));
            }
        }
    }
    candidates
}

/// The candidates for a device on host memory.
pub fn shared(gpu: &Gpu, grids: &[SizedGrid]) -> Vec<Candidate> {
    let mut candidates = Vec::new();
    for sized in grids {
        for (cuts, chunk) in chunks_of(sized.grid.units(), &CUTS) {
            let setting = Setting::Shared {
                workers: gpu.compute_units,
                chunk,
            };
            let [size, aspect, _, _, cut] = WEIGHTS;
            candidates.push(Candidate::new(
                Configuration::new(sized.grid, ModelKind::Gpu, &gpu.name, setting),
                sized,
                [sized.size, sized.aspect, cuts],
                [size, aspect, cut],
            ));
        }
    }
    candidates
}

/// 1, 2, 4 ... workers and all, close together and far apart where that is
/// not the same.
fn placed(space: &Space) -> Vec<Pool> {
    let topology = &space.topology;
    let cores: Vec<usize> = topology.numbers();
    let all = cores.len();
    let mut counts: Vec<usize> = (0..usize::BITS)
        .map(|bit| 1usize << bit)
        .take_while(|count| *count < all)
        .collect();
    counts.push(all);
    let mut pools = Vec::new();
    for count in counts {
        let mut pool = |placement: Option<Placement>| {
            let taken = topology.take(count, placement, &cores);
            pools.push(Pool {
                workers: count as u32,
                sockets: topology.sockets_of(&taken) as u32,
                placement,
            });
            taken
        };
        if count == all || !topology.is_uneven() {
            pool(None);
            continue;
        }
        let compact = pool(Some(Placement::Compact));
        if topology.take(count, Some(Placement::Spread), &cores) != compact {
            pool(Some(Placement::Spread));
        }
    }
    pools
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codelet::stencil::Precision;

    #[test]
    fn the_fewest_slots_hold_just_so_many() {
        for held in [1, 2, 7, 47, 48, 100, 12_345] {
            let capacity = |slots: u64| HeldRing::capacity(slots, slots / WINDOW_FRACTION);
            let slots = least_slots(held);
            assert!(
                capacity(slots) >= held && capacity(slots - 1) < held,
                "{held}"
            );
        }
    }

    #[test]
    fn a_wish_is_as_the_engine_divides_it() {
        let grid = Grid {
            nx: 4000,
            ny: 4001,
            nz: None,
            precision: Precision::F64,
        };
        let gpu = |memory| Gpu {
            name: "gpu0".into(),
            compute_units: 13,
            memory,
            largest: memory,
            own: true,
        };
        let desired = DesiredSetting {
            held: 2000,
            free: Free::Least,
            chunk: 2 << 20,
            queues: 2,
            ahead: true,
        };
        let configuration = desired.on(&gpu(1 << 30), &grid);
        let Some(Setting::Discrete {
            memory,
            held,
            chunk,
            ..
        }) = configuration.map(|configuration| configuration.device_use.setting)
        else {
            panic!("1 GiB is enough");
        };
        assert_eq!((held, chunk), (2000, 65));
        let (slots, buffers) = (2000 + 42 + 3, 2 * (2 * 65 + 2));
        assert_eq!(memory, (slots + buffers) * 32_000);
        assert!(desired.on(&gpu(memory), &grid).is_some());
        assert!(desired.on(&gpu(memory - 1), &grid).is_none());
        // Tiny chunks of a large grid would be too many.
        let tiny = DesiredSetting {
            held: 0,
            chunk: 1,
            ..desired
        };
        assert!(tiny.on(&gpu(1 << 30), &grid).is_none());
    }
}
