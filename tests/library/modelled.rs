//! PDAWL on the shipped machines, simulated: its first step, and its reaction to
//! changes. The model is the machine file's analytic one, a shipped one, or one
//! that was trained on noisy runs.

use std::cell::Cell;
use std::sync::Arc;

use pdawl_api::balance::{Dawl, Pdawl};
use pdawl_api::engine::Outcome;
use pdawl_api::machine::MachineFile;
use pdawl_api::model::planner::{CandidateDevice, ModelledMachine, plan};
use pdawl_api::model::{Descriptors, ModelStore, Physics, StepWork};
use pdawl_api::runtime::sim::{At, Fault, FaultEffect, SimDevice};
use pdawl_profiler::train::Family;

use crate::simulated_machines::{CASES, Case, STEPS, Start, late};
use crate::synthetic_models::{CODELET, model, samples};

/// The devices of a machine file, in the simulator's order.
fn candidates(machine: &MachineFile, gpu_memory: Option<u64>) -> Vec<CandidateDevice> {
    let time = |device| {
        let descriptors = Descriptors::of(machine, device, CODELET, true);
        Arc::new(Physics(descriptors))
    };
    let host = CandidateDevice::host(machine, time(None));
    let device = |d| CandidateDevice::device(d, gpu_memory, time(Some(d)));
    let devices = machine.devices.iter().map(device);
    std::iter::once(host).chain(devices).collect()
}

/// A run planned with the machine file `believed`, which may differ from the
/// simulated machine.
fn pdawl(case: &Case, believed: &MachineFile, faults: &[Fault]) -> Outcome {
    planned(case, &candidates(believed, case.gpu_memory), faults)
}

/// A run planned for these devices.
fn planned(case: &Case, candidates: &[CandidateDevice], faults: &[Fault]) -> Outcome {
    planned_for(case, candidates, faults, STEPS)
}

/// A run of this number of steps, planned for these devices.
fn planned_for(
    case: &Case,
    candidates: &[CandidateDevice],
    faults: &[Fault],
    steps: u32,
) -> Outcome {
    let work = StepWork::of(&case.grid());
    let planned = plan(&work, candidates).unwrap();
    let cores = Some(planned.workers[0]);
    let named = |name: &String| SimDevice::Named(name.clone());
    let others = planned.devices[1..].iter().map(named);
    let start = Start {
        faults: faults.to_vec(),
        devices: Some(
            std::iter::once(SimDevice::Host { cores })
                .chain(others)
                .collect(),
        ),
        stream: planned.stream,
    };
    case.run(start, steps, |setup| {
        let planner = planned.planner(&work, candidates).unwrap();
        Box::new(Pdawl::new(setup, "model", Box::new(planner)))
    })
}

/// A factor around 1, with a standard deviation of 2 %.
fn noise(random: &Cell<u64>) -> f64 {
    // The sum of twelve uniform numbers is nearly normal.
    let mut sum = -6.0;
    for _ in 0..12 {
        let next = random
            .get()
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(1);
        random.set(next);
        sum += (next >> 11) as f64 / (1u64 << 53) as f64;
    }
    1.0 + 0.02 * sum
}

/// Describes a run that is not near the oracle's from its first step on, or slower
/// than DAWL's.
fn shortfall(case: &Case, outcome: &Outcome) -> Option<String> {
    let oracle = case.oracle(&[]);
    let dawl = case.run(Start::default(), STEPS, |setup| Box::new(Dawl::new(setup)));
    let mean = |outcome: &Outcome, count: usize| -> f64 {
        let seconds = outcome.steps[..count].iter().map(|s| s.seconds);
        seconds.sum::<f64>() / (count as f64 * oracle)
    };
    let (one, five) = (mean(outcome, 1), mean(outcome, 5));
    let to_dawl = outcome.seconds / dawl.seconds;
    let replans = outcome.model.as_ref().map(|model| model.replans);
    let short = one > 1.05 || five > 1.03 || to_dawl > 1.01 || replans != Some(0);
    short.then(|| {
        let dawls = (mean(&dawl, 1), mean(&dawl, 5));
        format!(
            "{}: the first step takes {one:.3}, five {five:.3} (DAWL's {dawls:.3?}) of the \
             oracle's, all {to_dawl:.3} of DAWL's; {replans:?} replans",
            case.name()
        )
    })
}

#[test]
fn the_first_step_is_within_5_percent_and_all_together_no_worse_than_dawl() {
    let all: Vec<String> = (CASES.iter())
        .filter_map(|case| shortfall(case, &pdawl(case, &case.file(), &[])))
        .collect();
    assert!(all.is_empty(), "{all:#?}");
}

/// The cases on the paper's four machines, with their shipped models.
fn shipped() -> impl Iterator<Item = (&'static Case, Vec<CandidateDevice>)> {
    let papers = ["k20-32", "k20-40", "k40", "titan"];
    let cases = CASES
        .iter()
        .filter(move |case| papers.contains(&case.machine));
    cases.map(|case| (case, shipped_candidates(case)))
}

/// The devices of a case, with the shipped model of its machine.
fn shipped_candidates(case: &Case) -> Vec<CandidateDevice> {
    let modelled = ModelledMachine {
        bundle: &ModelStore::at("/nonexistent").find(case.machine).unwrap(),
        machine: &case.file(),
        codelet: CODELET,
        fp64: true,
        gpu_memory: case.gpu_memory,
    };
    modelled.described().unwrap()
}

#[test]
fn the_shipped_models_serve_as_well() {
    let all: Vec<String> = shipped()
        .filter_map(|(case, candidates)| shortfall(case, &planned(case, &candidates, &[])))
        .collect();
    assert!(all.is_empty(), "{all:#?}");
}

#[test]
fn with_the_shipped_models_a_run_recovers_within_4_steps() {
    let mut all = Vec::new();
    for (case, candidates) in shipped() {
        for (name, device, what) in [
            (
                "half of the cores gone",
                0,
                FaultEffect::Cores(case.file().host.cores / 2),
            ),
            ("the GPU at half speed", 1, FaultEffect::Slowed(2.0)),
        ] {
            let fault = |step| Fault {
                device,
                at: At::Phase(step),
                what,
            };
            let oracle = case.oracle(&[fault(0)]);
            let outcome = planned(case, &candidates, &[fault(10)]);
            let name = format!("{}, {name}", case.name());
            all.extend(late(&name, &outcome, oracle, 14, 1.05));
        }
    }
    assert!(all.is_empty(), "{all:#?}");
}

/// Seconds of `steps` steps as planned with the model, divided by DAWL's.
fn to_dawl(case: &Case, candidates: &[CandidateDevice], steps: u32) -> f64 {
    let planned = planned_for(case, candidates, &[], steps);
    let dawl = case.run(Start::default(), steps, |setup| Box::new(Dawl::new(setup)));
    planned.seconds / dawl.seconds
}

/// Covers sizes from a few rows to more than GPU memory holds: where a step is as
/// short as the driver's overhead, a plan's error may exceed its gain.
#[test]
fn with_the_shipped_models_no_grid_takes_longer_than_with_dawl() {
    const SIZES: [u64; 13] = [
        3, 17, 100, 300, 1000, 1500, 1700, 2000, 2100, 2400, 4096, 8192, 16_384,
    ];
    let mut all = Vec::new();
    for machine in ["k20-32", "k20-40", "k40", "titan"] {
        for gpu_memory in [None, Some(2 << 30), Some(64 << 20)] {
            for size in SIZES {
                let case = Case {
                    machine,
                    size,
                    gpu_memory,
                };
                let candidates = shipped_candidates(&case);
                for steps in [5, 30] {
                    let ratio = to_dawl(&case, &candidates, steps);
                    if ratio > 1.02 {
                        all.push(format!("{}, {steps} steps: {ratio:.3}", case.name()));
                    }
                }
            }
        }
    }
    assert!(all.is_empty(), "{all:#?}");
}

#[test]
fn a_model_learned_from_noisy_runs_serves_as_well() {
    let mut all = Vec::new();
    for name in ["k40", "titan"] {
        let machine = crate::synthetic_models::machine(name);
        let random = Cell::new(1);
        let samples = samples(&machine, |_| noise(&random));
        let bundle = model(&machine, &samples, &[Family::PriorGaussian]);
        for case in CASES.iter().filter(|case| case.machine == name) {
            let modelled = ModelledMachine {
                bundle: &bundle,
                machine: &machine,
                codelet: CODELET,
                fp64: true,
                gpu_memory: case.gpu_memory,
            };
            let outcome = planned(case, &modelled.described().unwrap(), &[]);
            all.extend(shortfall(case, &outcome));
        }
    }
    assert!(all.is_empty(), "{all:#?}");
}

#[test]
fn devices_that_become_half_as_fast_are_followed_within_4_steps() {
    let mut all = Vec::new();
    for case in &CASES {
        let machine = case.file();
        for device in 0..=machine.devices.len() {
            let what = match device {
                0 => FaultEffect::Cores(machine.host.cores / 2),
                _ => FaultEffect::Slowed(2.0),
            };
            let fault = |step| Fault {
                device,
                at: At::Phase(step),
                what,
            };
            let oracle = case.oracle(&[fault(0)]);
            let outcome = pdawl(case, &machine, &[fault(10)]);
            let name = format!("{}, device {device} slow", case.name());
            all.extend(late(&name, &outcome, oracle, 14, 1.05));
        }
    }
    assert!(all.is_empty(), "{all:#?}");
}

#[test]
fn a_model_of_another_machine_is_put_right_within_5_steps() {
    let mut all = Vec::new();
    for case in &CASES {
        let mut believed = case.file();
        believed.host.memory_bandwidth *= 0.6;
        believed.host.core_bandwidth *= 0.6;
        if let Some(shared) = &mut believed.host.shared_bandwidth {
            *shared *= 0.6;
        }
        for device in &mut believed.devices {
            device.memory_bandwidth *= 1.8;
            if let Some(link) = &mut device.link {
                (link.h2d, link.d2h, link.both_ways) =
                    (link.h2d / 2.0, link.d2h / 2.0, link.both_ways / 2.0);
            }
        }
        let oracle = case.oracle(&[]);
        let outcome = pdawl(case, &believed, &[]);
        all.extend(late(&case.name(), &outcome, oracle, 5, 1.05));
    }
    assert!(all.is_empty(), "{all:#?}");
}
