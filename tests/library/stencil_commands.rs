//! Stencils by single commands of a runtime, against a scalar loop: on the host, on several backends
//! as one machine, and with data in the simulator.

use std::time::Instant;

use pdawl_api::codelet::Memory;
use pdawl_api::codelet::stencil::Precision;
use pdawl_api::machine::MachineStore;
use pdawl_api::machine::host::allowed_cores;
use pdawl_api::runtime::host::{HostBackend, PoolSpec};
use pdawl_api::runtime::sim::{Sim, SimOptions};
use pdawl_api::runtime::union::Union;
use pdawl_api::runtime::{Command, DeviceId, Devices, EventId, Launch, Runtime, Status};
use pdawl_api::workload::stencil::Stencil;
use pdawl_api::workload::{Divisible, Grid, Ring};
use proptest::prelude::*;

use crate::pocl;

/// A pool of this many workers, on as many cores as there are.
fn host(workers: usize) -> Union {
    let cores = allowed_cores(None);
    let pool = PoolSpec {
        name: format!("host:{workers}"),
        cores: cores.iter().copied().cycle().take(workers).collect(),
    };
    let (sender, receiver) = crossbeam_channel::unbounded();
    let epoch = Instant::now();
    let backend = HostBackend::open(&[pool], sender, epoch).expect("threads");
    Union::new(vec![Box::new(backend)], receiver, epoch)
}

/// One step of a stencil by a scalar loop, as `codelet::stencil` defines it.
fn scalar_step(stencil: &Stencil, from: &[f64]) -> Vec<f64> {
    let (nx, ny, nz) = stencil.shape();
    let (nx, ny, planes) = (nx as usize, ny as usize, nz.unwrap_or(1) as usize);
    let mut to = from.to_vec();
    let plane = nx * ny;
    let inner = |i: usize, n: usize| i > 0 && i + 1 < n;
    for z in 0..planes {
        for y in 0..ny {
            for x in 0..nx {
                let i = z * plane + y * nx + x;
                if !inner(x, nx) || !inner(y, ny) || (nz.is_some() && !inner(z, planes)) {
                    continue;
                }
                let flat = (from[i - nx] + from[i + nx]) + (from[i - 1] + from[i + 1]);
                to[i] = match nz {
                    None => (flat + from[i]) * (1.0 / 5.0),
                    Some(_) => {
                        (flat + ((from[i - plane] + from[i + plane]) + from[i])) * (1.0 / 7.0)
                    }
                };
            }
        }
    }
    to
}

/// A grid in memory that has all of it, or a part from this unit on.
fn ring(memory: Memory, slots: u64, unit: u64) -> Ring {
    Ring {
        memory,
        slots,
        unit,
        slot: 0,
    }
}

fn launch(stencil: &Stencil, units: std::ops::Range<u64>, from: &Ring, to: &Ring) -> Command {
    Command::Launch(Launch {
        codelet: stencil.codelet(),
        units: units.clone(),
        args: stencil.args(units.clone(), from, to),
        cost: stencil.cost(&units),
    })
}

/// Steps of a stencil, each step's units in so many chunks, which devices compute in turns; every
/// launch waits for the whole step before, so for other backends' events.
fn matches(runtime: &mut dyn Runtime, stencil: &Stencil, chunks: u64, steps: usize, what: &str) {
    let units = stencil.units();
    let bytes = units * stencil.unit_bytes();
    let grids = [(); 2].map(|()| runtime.alloc_host(bytes).unwrap());
    let first = runtime.host_bytes(grids[0]).unwrap();
    stencil.initial(0..units, first).unwrap();
    let mut expected: Vec<f64> = bytemuck::cast_slice(first).to_vec();
    let devices = runtime.devices().len();
    let queues: Vec<_> = (0..devices.max(2))
        .map(|number| runtime.queue(DeviceId(number % devices)).unwrap())
        .collect();
    let whole = |step: usize| ring(Memory::Host(grids[step % 2]), units, 0);
    let chunk = units.div_ceil(chunks);
    let mut before: Vec<EventId> = Vec::new();
    let mut launched = 0;
    for step in 0..steps {
        let mut events = Vec::new();
        for (number, begin) in (0..units).step_by(chunk as usize).enumerate() {
            let part = begin..(begin + chunk).min(units);
            let command = launch(stencil, part, &whole(step), &whole(step + 1));
            let queue = queues[number % queues.len()];
            events.push(runtime.enqueue(queue, command, &before).unwrap());
        }
        launched += events.len();
        before = events;
        expected = scalar_step(stencil, &expected);
    }
    for _ in 0..launched {
        let completion = runtime.wait(None).unwrap().unwrap();
        assert_eq!(completion.status, Status::Done);
    }
    let result: &[f64] = bytemuck::cast_slice(runtime.host_bytes(grids[steps % 2]).unwrap());
    let is_same = |(a, b): (&f64, &f64)| a.to_bits() == b.to_bits();
    assert!(result.iter().zip(&expected).all(is_same), "{what}");
}

fn stencil(nx: u64, ny: u64, nz: Option<u64>) -> Stencil {
    Stencil::new(nx, ny, nz, Precision::F64, 7).unwrap()
}

#[test]
fn stencils_agree_bit_for_bit_with_a_scalar_loop() {
    for (nx, ny, nz) in [
        (3, 3, None),
        (17, 4099, None),
        (4099, 17, None),
        (3, 3, Some(3)),
        (31, 37, Some(41)),
    ] {
        for workers in [1, 2, 3] {
            let what = format!("{nx} x {ny} x {nz:?} on {workers}");
            matches(&mut host(workers), &stencil(nx, ny, nz), 3, 4, &what);
        }
    }
}

#[test]
fn host_and_opencl_compute_as_one_machine() {
    for devices in ["host:1,cpu:1", "cpu:1,cpu:1", "host:1,host:1"] {
        let mut runtime = pocl::open(devices);
        assert_eq!(runtime.devices().len(), 2);
        matches(&mut runtime, &stencil(101, 211, None), 2, 25, devices);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(24) })]

    #[test]
    fn stencils_agree_however_they_are_cut(
        nx in 3u64..200, ny in 3u64..200, nz in proptest::option::of(3u64..12),
        workers in 1usize..4, chunks in 1u64..9, steps in 1usize..4,
    ) {
        matches(&mut host(workers), &stencil(nx, ny, nz), chunks, steps, "a cut");
    }
}

#[test]
fn a_simulated_host_and_gpu_share_a_stencil() {
    let (nx, ny, cut) = (37u64, 23u64, 9u64);
    let stencil = stencil(nx, ny, None);
    let row = stencil.unit_bytes();
    let machine = MachineStore::at("/nonexistent")
        .find("k40")
        .expect("a machine");
    let options = SimOptions {
        data: true,
        ..SimOptions::default()
    };
    let mut sim = Sim::new(&machine, options).expect("a simulator");
    let [from, to] = [(); 2].map(|()| sim.alloc_host(ny * row).expect("memory"));
    let first = sim.host_bytes(from).expect("bytes");
    stencil.initial(0..ny, first).expect("numbers");
    let expected = scalar_step(&stencil, bytemuck::cast_slice(first));

    // The host's rows, in place.
    let host_queue = sim.queue(DeviceId(0)).expect("a queue");
    let whole = |memory| ring(Memory::Host(memory), ny, 0);
    let command = launch(&stencil, 0..cut, &whole(from), &whole(to));
    sim.enqueue(host_queue, command, &[]).expect("submitted");

    // The GPU's rows and their halo above, through its own memory.
    let gpu_queue = sim.queue(DeviceId(1)).expect("a queue");
    let held = ny - cut + 1;
    let [present, next] = [(); 2].map(|()| sim.alloc(DeviceId(1), held * row).expect("a buffer"));
    let rows = |first: u64, count: u64| first * row..(first + count) * row;
    let own = |buffer| ring(Memory::Device(buffer), held, cut - 1);
    for command in [
        Command::write(from, rows(cut - 1, held), present, 0),
        launch(&stencil, cut..ny, &own(present), &own(next)),
        Command::read(next, row, to, rows(cut, ny - cut)),
    ] {
        sim.enqueue(gpu_queue, command, &[]).expect("submitted");
    }
    for _ in 0..4 {
        let completion = sim.wait(None).expect("a completion").expect("in time");
        assert_eq!(completion.status, Status::Done);
    }
    let after: &[f64] = bytemuck::cast_slice(sim.host_bytes(to).expect("bytes"));
    let is_same = |(a, b): (&f64, &f64)| a.to_bits() == b.to_bits();
    assert!(after.iter().zip(&expected).all(is_same));
}
