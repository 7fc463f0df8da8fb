//! A grid whose units read two units on either side: the engine divides it as it
//! does stencils, whose halo is one unit.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pdawl_api::balance::{Balancer, Next, Setup, StepPlan, StepState};
use pdawl_api::codelet::{Codelet, Cost, HostCode, HostValue, Value};
use pdawl_api::engine::corun::{Control, Corun, Options, Stream, Tracing};
use pdawl_api::verify::Compared;
use pdawl_api::workload::{Data, Divisible, Ending, FirstVersionError, Grid, Ring, Supersteps};
use proptest::prelude::*;

use crate::random::Random;
use crate::random_balancer::RandomBalancer;
use crate::shuffled_runtime::{ShuffledRuntime, device};

const HALO: u64 = 2;
const POINTS: u64 = 3;
const STEPS: u32 = 6;

/// The next version of a point, of those of its neighbourhood that exist.
fn next(neighbours: impl Iterator<Item = (u64, u64)>) -> u64 {
    neighbours.fold(1, |sum: u64, (at, value)| {
        sum.wrapping_mul(31).wrapping_add(value ^ at)
    })
}

/// A grid of integers.
struct WideGrid {
    units: u64,
}

impl WideGrid {
    fn neighbours(&self, unit: u64) -> Range<u64> {
        unit.saturating_sub(HALO)..self.units.min(unit + HALO + 1)
    }
}

/// # Safety
/// That of `HostKernel`; the arguments are those of [`WideGrid`].
unsafe fn compute(args: &[HostValue], first: u64, units: Range<u64>) {
    let memory = |at: usize| match args[at] {
        HostValue::Memory { address, .. } => address.cast::<u64>(),
        _ => unreachable!("a memory"),
    };
    let number = |at: usize| match args[at] {
        HostValue::U64(number) => number,
        _ => unreachable!("a number"),
    };
    let slot = |at: usize, unit: u64| {
        let ahead = number(at) as i64 + unit as i64 - first as i64;
        ahead.rem_euclid(number(at + 1) as i64) as u64
    };
    let grid = WideGrid { units: number(6) };
    for unit in units {
        for point in 0..POINTS {
            let value = |unit: u64| {
                let at = slot(1, unit) * POINTS + point;
                // SAFETY: the ring has the units' neighbourhood.
                (unit, unsafe { *memory(0).add(at as usize) })
            };
            let at = slot(4, unit) * POINTS + point;
            let result = next(grid.neighbours(unit).map(value));
            // SAFETY: the other ring has room for the units.
            unsafe { *memory(3).add(at as usize) = result };
        }
    }
}

impl Divisible for WideGrid {
    fn name(&self) -> &'static str {
        "wide"
    }

    fn units(&self) -> u64 {
        self.units
    }

    fn unit_bytes(&self) -> u64 {
        8 * POINTS
    }

    fn fp64(&self) -> bool {
        false
    }

    fn codelet(&self) -> Arc<Codelet> {
        Arc::new(Codelet {
            name: "wide".into(),
            host: Some(HostCode::Kernel(compute)),
            opencl: None,
            library: None,
        })
    }

    fn cost(&self, units: &Range<u64>) -> Cost {
        Cost {
            flops: 0.0,
            bytes: ((units.end - units.start) * self.unit_bytes()) as f64,
        }
    }

    fn data(&self) -> Data<'_> {
        Data::Grid(self)
    }
}

impl Grid for WideGrid {
    fn unit_points(&self) -> u64 {
        POINTS
    }

    fn dimensions(&self) -> u32 {
        2
    }

    fn halo(&self) -> u64 {
        HALO
    }

    fn args(&self, units: Range<u64>, from: &Ring, to: &Ring) -> Vec<Value> {
        let ring = |ring: &Ring| {
            let slot = ring.slot_of(units.start);
            [
                Value::Memory(ring.memory),
                Value::U64(slot),
                Value::U64(ring.slots),
            ]
        };
        [&ring(from)[..], &ring(to), &[Value::U64(self.units)]].concat()
    }

    fn initial(&self, units: Range<u64>, bytes: &mut [u8]) -> Result<(), FirstVersionError> {
        let points: &mut [u64] = bytemuck::cast_slice_mut(bytes);
        for (i, point) in points.iter_mut().enumerate() {
            *point = (units.start * POINTS + i as u64).wrapping_mul(0x9e37_79b9);
        }
        Ok(())
    }

    fn verify(&self, steps: u32, _: Option<Ending>, result: &[u8]) -> Compared {
        let mut present = vec![0u64; (self.units * POINTS) as usize];
        let _ = self.initial(0..self.units, bytemuck::cast_slice_mut(&mut present));
        for _ in 0..steps {
            let of = |at: u64| {
                let (unit, point) = (at / POINTS, at % POINTS);
                let value = |unit: u64| (unit, present[(unit * POINTS + point) as usize]);
                next(self.neighbours(unit).map(value))
            };
            present = (0..self.units * POINTS).map(of).collect();
        }
        let right = bytemuck::cast_slice::<u8, u64>(result) == present;
        Compared {
            error: if right { 0.0 } else { 1.0 },
            right,
            numbers: present.len() as u64,
            not_finite: 0,
        }
    }
}

/// Runs a grid on devices with memory for so many units, or on host memory, divided at
/// random, with barriers after so many steps. Returns whether the result is right.
fn is_right(
    (units, superstep): (u64, u32),
    memories: &[Option<u64>],
    stream: Stream,
    seed: u64,
) -> bool {
    let grid = WideGrid { units };
    let halos = HALO * (4 * u64::from(superstep) - 2);
    let least = (2 + halos) * u64::from(stream.queues.unwrap_or(3)) + 1;
    let bytes = |units: u64| units.max(least) * grid.unit_bytes();
    let devices = (memories.iter().enumerate())
        .map(|(i, units)| device(&format!("d{i}"), units.map(bytes)))
        .collect();
    let mut runtime = ShuffledRuntime::new(devices, seed, None).with_ways(seed);
    let options = Options {
        tolerance: None,
        supersteps: Supersteps::new(STEPS, superstep),
        gpu_memory: None,
        stream,
        verify: true,
        trace: Tracing::None,
        each_step: None,
    };
    let mut control = Control {
        stop: &AtomicBool::new(false),
        progress: &mut |_, _| {},
    };
    let corun = Corun::open(&mut runtime, &grid, &options).unwrap();
    let balancer = Box::new(RandomBalancer::new(corun.setup(), seed));
    let outcome = corun.run(balancer, &mut control).unwrap();
    outcome.verified == Some(true)
}

/// A device that held units held nothing in a step, and then units again, beside a halo that
/// it had once received.
#[test]
fn a_halo_of_an_earlier_version_is_no_halo() {
    let stream = Stream {
        chunk: None,
        queues: Some(2),
    };
    let memories = [None, None, Some(48), Some(20)];
    assert!(is_right(
        (29, 1),
        &memories,
        stream,
        2_633_661_055_897_865_894
    ));
}

/// All units are held, divided anew now and then, and steps may run ahead of their reports.
struct HoldsAll {
    random: Random,
    setup: Setup,
    plan: StepPlan,
}

impl Balancer for HoldsAll {
    fn name(&self) -> String {
        "holds all".into()
    }

    fn plan(&mut self, _step: u32) -> StepPlan {
        if self.plan.held.is_empty() || self.random.below(4) == 0 {
            let room = self.setup.devices.iter().map(|d| d.capacity.unwrap_or(0));
            let room: Vec<u64> = room.collect();
            let mut left = self.setup.units;
            let mut held = Vec::new();
            for (device, most) in room.iter().enumerate() {
                let others: u64 = room[device + 1..].iter().sum();
                let (least, most) = (left.saturating_sub(others), left.min(*most));
                held.push(least + self.random.below(most - least + 1));
                left -= held[device];
            }
            let pooled = vec![0; held.len()];
            self.plan = StepPlan { held, pooled };
        }
        self.plan.clone()
    }

    fn next(&mut self, _device: usize, _state: &StepState) -> Next {
        Next::Done
    }

    fn lost(&mut self, _device: usize) {}

    fn returned(&mut self, _device: usize, _step: u32) {}

    fn lookahead(&self) -> u32 {
        3
    }
}

/// Whether devices with memory for so many units, which hold all of a grid, compute the right
/// result in an order that this seed chooses, and whether a launch of a step ran before one of
/// an earlier step.
fn ahead((units, superstep): (u64, u32), memories: &[u64], seed: u64) -> (bool, bool) {
    let grid = WideGrid { units };
    let bytes = |units: u64| units * grid.unit_bytes();
    let devices = (memories.iter().enumerate())
        .map(|(i, units)| device(&format!("d{i}"), Some(bytes(*units))))
        .collect();
    let mut runtime = ShuffledRuntime::new(devices, seed, None).with_all_ways();
    let stream = Stream {
        chunk: Some(1),
        queues: Some(1),
    };
    let options = Options {
        tolerance: None,
        supersteps: Supersteps::new(2 * STEPS, superstep),
        gpu_memory: None,
        stream,
        verify: true,
        trace: Tracing::None,
        each_step: None,
    };
    let mut control = Control {
        stop: &AtomicBool::new(false),
        progress: &mut |_, _| {},
    };
    let corun = Corun::open(&mut runtime, &grid, &options).unwrap();
    let setup = corun.setup().clone();
    let room: u64 = setup.devices.iter().filter_map(|d| d.capacity).sum();
    assert!(setup.direct.is_some() && room >= units, "{room} of {units}");
    let balancer = Box::new(HoldsAll {
        random: Random::new(seed),
        setup,
        plan: StepPlan::default(),
    });
    let outcome = corun.run(balancer, &mut control).unwrap();
    let launched = runtime.launched.iter();
    let steps: Vec<u32> = launched.filter_map(|(step, _)| *step).collect();
    (outcome.verified == Some(true), !steps.is_sorted())
}

/// Of three devices in a row, the first one can begin a step before the last one has begun
/// the one before.
#[test]
fn several_devices_run_ahead() {
    let found: Vec<(bool, bool)> = (0..40).map(|seed| ahead((40, 1), &[50; 3], seed)).collect();
    assert!(found.iter().all(|(right, _)| *right), "{found:?}");
    assert!(found.iter().any(|(_, ahead)| *ahead), "{found:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// Rings with hardly any free slots, and such as hold two versions.
    #[test]
    fn steps_that_run_ahead_are_right(
        units in 20u64..60,
        spare in proptest::collection::vec(0u64..60, 2..5),
        superstep in 1u32..6,
        seed in any::<u64>(),
    ) {
        // A chunk's buffers, the ring's spare slots and a window.
        let beside = HALO * u64::from(superstep);
        let least = 2 + 4 * beside + 3 * beside + 2;
        let each = (units.div_ceil(spare.len() as u64) + least) * 16 / 15 + 1;
        let memories: Vec<u64> = spare.iter().map(|spare| each + spare).collect();
        prop_assert!(ahead((units, superstep), &memories, seed).0);
    }

    #[test]
    fn any_division_is_right(
        units in 1u64..60,
        memories in proptest::collection::vec(proptest::option::of(0u64..200), 1..5),
        chunk in proptest::option::of(0u64..70),
        queues in proptest::option::of(1u32..9),
        superstep in 1u32..9,
        seed in any::<u64>(),
    ) {
        let stream = Stream { chunk, queues };
        prop_assert!(is_right((units, superstep), &memories, stream, seed));
    }
}
