//! The prior beside the simulator, whose figures are those of the machine file.

use proptest::prelude::*;

use super::*;
use crate::balance::StepPlan;
use crate::engine::corun::Stream;
use crate::engine::corun::grid::GridDivision;
use crate::engine::corun::memory::memory_limit;
use crate::machine::MachineFile;
use crate::model::StepWork;
use crate::model::fixtures::{Trial, grid, machine};
use crate::model::training::fixtures::CODELET;
use crate::runtime::sim::SimDevice;
use crate::workload::Divisible;

/// Relative errors, each of a case.
struct Errors(Vec<(f64, String)>);

impl Errors {
    fn add(&mut self, predicted: f64, measured: f64, what: String) {
        let error = predicted / measured - 1.0;
        self.0.push((error, what));
    }

    fn are_within(mut self, median: f64, worst: f64) {
        self.0.sort_by(|a, b| a.0.abs().total_cmp(&b.0.abs()));
        let middle = &self.0[self.0.len() / 2];
        assert!(middle.0.abs() <= median, "{middle:?}");
        let last = &self.0[self.0.len() - 1];
        assert!(last.0.abs() <= worst, "{last:?}");
    }
}

fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}

fn pools(name: &str, errors: &mut Errors) {
    let machine = machine(name);
    let cores = machine.host.cores;
    for size in [200, 1000, 4000, 16_000] {
        let stencil = grid(size);
        let work = StepWork::of(&stencil);
        let descriptors = Descriptors::of(&machine, None, CODELET, true);
        for workers in [1, 2, cores / 2, cores] {
            for chunk in [size, size / 4, 64, 9] {
                let trial = Trial {
                    devices: Some(vec![SimDevice::Host {
                        cores: Some(workers),
                    }]),
                    ..Trial::of(&machine)
                };
                let plan = StepPlan {
                    held: vec![0],
                    pooled: vec![size],
                };
                let measured = median(trial.follow(&stencil, &plan, &[chunk]));
                let part = DevicePart::Host {
                    workers,
                    sockets: 1,
                    units: size,
                    chunk,
                };
                let case = Case { work, part };
                let what = format!("{name} {size} {part:?}");
                errors.add(seconds(&case, &descriptors), measured, what);
            }
        }
    }
}

fn gpus(name: &str, errors: &mut Errors) {
    let machine = machine(name);
    let mib = |mib: u64| Some(mib << 20);
    for (size, limit) in [
        (500, None),
        (4000, None),
        (4000, mib(64)),
        (16_000, None),
        (16_000, mib(512)),
        (28_000, mib(2048)),
    ] {
        for (chunk, queues) in [
            (None, 3),
            (None, 1),
            (None, 2),
            (Some(8), 3),
            (Some(32), 2),
            (Some(100), 4),
            (Some(400), 3),
        ] {
            let stream = Stream {
                chunk,
                queues: Some(queues),
            };
            gpu(&machine, size, limit, stream, errors);
        }
    }
}

fn gpu(machine: &MachineFile, size: u64, limit: Option<u64>, stream: Stream, errors: &mut Errors) {
    let stencil = grid(size);
    let work = StepWork::of(&stencil);
    let device = &machine.devices[0];
    let descriptors = Descriptors::of(machine, Some(device), CODELET, true);
    let bytes = memory_limit(device.memory, limit);
    let division =
        GridDivision::of(size, stencil.unit_bytes(), bytes, device.memory, stream).unwrap();
    for held in [0, division.capacity / 2, division.capacity] {
        let held = held.min(size);
        let trial = Trial {
            devices: Some(vec![SimDevice::Named(device.name.clone())]),
            gpu_memory: limit,
            stream,
            ..Trial::of(machine)
        };
        let plan = StepPlan {
            held: vec![held],
            pooled: vec![size - held],
        };
        let measured = median(trial.follow(&stencil, &plan, &[division.chunk]));
        let part = DevicePart::Discrete {
            held,
            slots: division.slots,
            streamed: size - held,
            chunk: division.chunk,
            queues: division.queues,
            solo: held == size,
        };
        let case = Case { work, part };
        let what = format!("{} {size} {limit:?} {part:?}", machine.name);
        errors.add(seconds(&case, &descriptors), measured, what);
    }
}

#[test]
fn a_pools_step_is_that_of_the_simulator() {
    let mut errors = Errors(Vec::new());
    for name in ["k20-32", "k20-40", "k40", "titan", "h200"] {
        pools(name, &mut errors);
    }
    errors.are_within(1e-4, 0.01);
}

/// The two K20 machines have one and the same device.
#[test]
fn a_devices_step_is_that_of_the_simulator() {
    let mut errors = Errors(Vec::new());
    for name in ["k20-32", "k40", "titan", "h200"] {
        gpus(name, &mut errors);
    }
    errors.are_within(0.002, 0.09);
}

#[test]
fn a_device_on_host_memory_steps_as_in_the_simulator() {
    let machine = machine("laptop");
    let mut errors = Errors(Vec::new());
    for size in [200, 1000, 8000] {
        let stencil = grid(size);
        let work = StepWork::of(&stencil);
        let device = &machine.devices[0];
        let descriptors = Descriptors::of(&machine, Some(device), CODELET, true);
        for chunk in [size, 64] {
            let trial = Trial {
                devices: Some(vec![SimDevice::Named(device.name.clone())]),
                ..Trial::of(&machine)
            };
            let plan = StepPlan {
                held: vec![0],
                pooled: vec![size],
            };
            let measured = median(trial.follow(&stencil, &plan, &[chunk]));
            let part = DevicePart::Host {
                workers: device.compute_units,
                sockets: 1,
                units: size,
                chunk,
            };
            let case = Case { work, part };
            let what = format!("{size} {part:?}");
            errors.add(seconds(&case, &descriptors), measured, what);
        }
    }
    errors.are_within(0.02, 0.1);
}

proptest! {
    /// The terms are never more than the whole, and what others leave of the
    /// memory only makes it longer.
    #[test]
    fn terms_are_parts_of_the_whole(
        size in 3u64..40_000,
        held in 0.0f64..1.0,
        chunk in 1u64..500,
        queues in 1u32..5,
        flow in 0.1f64..1.0,
        name in prop::sample::select(vec!["k20-32", "k40", "titan", "h200"]),
    ) {
        let machine = machine(name);
        let work = StepWork::of(&grid(size));
        let held = (size as f64 * held) as u64;
        let own = DevicePart::Discrete {
            held,
            slots: held + held / 20 + 4,
            streamed: size - held,
            chunk,
            queues,
            solo: false,
        };
        let host = DevicePart::Host { workers: queues, sockets: 1, units: size, chunk };
        for (part, device) in [(own, Some(&machine.devices[0])), (host, None)] {
            let descriptors = Descriptors::of(&machine, device, CODELET, true);
            let case = Case { work, part };
            let alone = terms(&case, &descriptors);
            let others = beside(&case, &descriptors, flow);
            for terms in [alone, others] {
                prop_assert!(terms.total.is_finite() && terms.total > 0.0);
                prop_assert!(terms.overhead >= 0.0);
                let parts = terms.compute.max(terms.memory).max(terms.link);
                prop_assert!(parts <= terms.total * (1.0 + 1e-9), "{:?}", terms);
            }
            prop_assert!(others.total >= alone.total * (1.0 - 1e-9));
        }
    }
}
