//! Plans of the physics, run in the simulator.

use std::sync::Arc;

use super::*;
use crate::balance::pdawl::Planner;
use crate::balance::{StepPlan, Strategy};
use crate::engine::oracle;
use crate::machine::MachineFile;
use crate::model::fixtures::{Trial, grid, machine};
use crate::model::{Descriptors, DevicePart, Physics, StepTime, StepWork};
use crate::runtime::sim::SimDevice;

const GIB: u64 = 1 << 30;

/// The candidates of a machine, in the simulator's order, predicted by physics.
fn candidates(machine: &MachineFile, gpu_memory: Option<u64>) -> Vec<CandidateDevice> {
    let time = |device| {
        let descriptors = Descriptors::of(machine, device, "stencil5-f64", true);
        Arc::new(Physics(descriptors))
    };
    let host = CandidateDevice::host(machine, time(None));
    let device = |d| CandidateDevice::device(d, gpu_memory, time(Some(d)));
    let devices = machine.devices.iter().map(device);
    std::iter::once(host).chain(devices).collect()
}

/// A machine, a grid, and a limit of GPU memory.
struct Case {
    name: String,
    machine: MachineFile,
    size: u64,
    gpu_memory: Option<u64>,
}

impl Case {
    fn of(name: &str, size: u64, gpu_memory: Option<u64>) -> Self {
        Self {
            name: name.to_owned(),
            machine: machine(name),
            size,
            gpu_memory,
        }
    }

    fn candidates(&self) -> Vec<CandidateDevice> {
        candidates(&self.machine, self.gpu_memory)
    }

    fn trial(&self) -> Trial<'_> {
        Trial {
            gpu_memory: self.gpu_memory,
            ..Trial::of(&self.machine)
        }
    }

    fn plan(&self) -> RunPlan {
        plan(&StepWork::of(&grid(self.size)), &self.candidates()).unwrap()
    }

    /// Seconds of the first step of a run as planned.
    fn first_step(&self, plan: &RunPlan) -> f64 {
        let host = SimDevice::Host {
            cores: Some(plan.workers[0]),
        };
        let named = self
            .machine
            .devices
            .iter()
            .map(|d| SimDevice::Named(d.name.clone()));
        let trial = Trial {
            devices: Some(std::iter::once(host).chain(named).collect()),
            stream: plan.stream,
            ..self.trial()
        };
        trial.follow(&grid(self.size), &plan.forecast.plan, &plan.chunks)[0]
    }

    fn oracle(&self) -> f64 {
        let trial = Trial {
            steps: 5,
            ..self.trial()
        };
        let run = |make: oracle::Trial| Ok::<_, ()>(trial.run(&grid(self.size), make));
        oracle::best_shares(run).unwrap().step_seconds
    }

    /// The better of the CPU's and the GPU's median step.
    fn single(&self) -> f64 {
        let step = |strategy: Strategy| {
            let outcome = self.trial().run(&grid(self.size), |setup| {
                strategy.build(setup).expect("a strategy that suits")
            });
            outcome.median_step().unwrap()
        };
        step(Strategy::Cpu).min(step(Strategy::Gpu))
    }

    /// Whether the first step as planned is at most `allowed` of the oracle's,
    /// and no worse than the better single device; and as predicted.
    fn check(&self, allowed: f64, predicted: f64) {
        let name = format!("{} {} in {:?}", self.name, self.size, self.gpu_memory);
        let plan = self.plan();
        let first = self.first_step(&plan);
        let (oracle, single) = (first / self.oracle(), first / self.single());
        assert!(oracle <= allowed, "{name}: {oracle} oracle steps, {plan:?}");
        assert!(single <= 1.02, "{name}: {single} steps of one, {plan:?}");
        let error = plan.forecast.step_seconds / first - 1.0;
        assert!(error.abs() <= predicted, "{name}: off by {error}, {plan:?}");
    }
}

/// Those of `tests/library/simulated.rs`.
const CASES: [(&str, u64, Option<u64>); 16] = [
    ("k20-32", 8192, None),
    ("k20-32", 20_000, Some(2 * GIB)),
    ("k20-32", 40_000, None),
    ("k20-40", 16_384, None),
    ("k20-40", 60_000, None),
    ("k40", 8192, None),
    ("k40", 16_384, None),
    ("k40", 28_000, Some(2 * GIB)),
    ("titan", 16_384, None),
    ("titan", 40_000, None),
    ("h200", 16_384, None),
    ("h200", 16_384, Some(2 * GIB)),
    ("h200", 40_000, Some(2 * GIB)),
    ("h200", 80_000, Some(16 * GIB)),
    ("laptop", 8192, None),
    ("laptop", 20_000, None),
];

#[test]
fn the_first_step_is_nearly_the_oracles() {
    for (name, size, gpu_memory) in CASES {
        Case::of(name, size, gpu_memory).check(1.02, 0.02);
    }
}

/// Steps of which what the driver takes is a good part: halos that are enqueued
/// before the pool's first chunk, and completions that must be heard of.
#[test]
fn short_steps_are_planned_and_predicted_as_well() {
    for (name, size, gpu_memory) in [
        ("k20-32", 1000, None),
        ("k20-32", 1700, None),
        ("k20-40", 1000, Some(2 * GIB)),
        ("k40", 2000, Some(64 << 20)),
        ("k40", 2400, None),
        ("titan", 2100, Some(64 << 20)),
    ] {
        Case::of(name, size, gpu_memory).check(1.02, 0.02);
    }
}

/// What slows a device slows neither the driver nor the other devices.
#[test]
fn steps_of_a_slowed_device_are_expected_as_they_come() {
    for (name, size) in [("k20-32", 1100), ("k20-40", 1700), ("k40", 4096)] {
        let case = Case::of(name, size, None);
        let mut slow = case.machine.clone();
        let device = &mut slow.devices[0];
        device.memory_bandwidth /= 3.0;
        device.flops_f64 = device.flops_f64.map(|flops| flops / 3.0);
        let (work, candidates) = (StepWork::of(&grid(size)), case.candidates());
        let all: Vec<u32> = candidates.iter().map(|m| m.compute_units).collect();
        let workers = search::configured(&work, &candidates, &all, Stream::default()).unwrap();
        let chunks = search::chunks(&workers);
        let planner = StepPlanner::new(work, workers);
        let plan = StepPlan {
            held: vec![0, size / 2],
            pooled: vec![size - size / 2, 0],
        };
        let expected = planner.expect(&plan, &[1.0, 3.0]);
        let measured = Trial::of(&slow).follow(&grid(size), &plan, &chunks)[0];
        let error = expected.step_seconds / measured - 1.0;
        assert!(error.abs() < 0.01, "{name} {size}: {error}, {expected:?}");
    }
}

/// Machines on which streaming pays: cores that are far from their bandwidth,
/// few cores, or two GPUs.
fn streaming() -> Vec<(String, MachineFile)> {
    let mut slow = machine("k40");
    slow.host.efficiency.insert("stencil5".into(), 0.4);
    let mut few = machine("h200");
    few.host.cores = 4;
    let mut two = machine("k20-32");
    two.host.efficiency.insert("stencil5".into(), 0.5);
    let mut other = machine("k40").devices[0].clone();
    other.name = "gpu1".into();
    two.devices.push(other);
    let named = [("slow", slow), ("few", few), ("two", two)];
    named.map(|(name, m)| (name.to_owned(), m)).into()
}

#[test]
fn plans_with_streams_are_nearly_the_oracles_or_better() {
    for (name, machine) in streaming() {
        for (size, gpu_memory) in [(20_000, GIB), (3000, 16 << 20)] {
            let case = Case {
                name: name.clone(),
                machine: machine.clone(),
                size,
                gpu_memory: Some(gpu_memory),
            };
            let plan = case.plan();
            let streamed: u64 = plan.forecast.plan.pooled[1..].iter().sum();
            assert!(streamed > 0, "{plan:?}");
            case.check(1.05, 0.08);
        }
    }
}

/// What is expected of any plan, not only of the best.
#[test]
fn expectations_of_any_plan_come_true() {
    let mut errors = Vec::new();
    for (name, machine) in streaming() {
        let case = Case {
            name,
            machine,
            size: 16_000,
            gpu_memory: Some(GIB),
        };
        let work = StepWork::of(&grid(case.size));
        let candidates = case.candidates();
        let all: Vec<u32> = candidates.iter().map(|m| m.compute_units).collect();
        let workers = search::configured(&work, &candidates, &all, Stream::default()).unwrap();
        let chunks = search::chunks(&workers);
        let planner = StepPlanner::new(work, workers);
        for (held, streamed) in [
            (0, 0),
            (0, 2000),
            (0, 12_000),
            (3000, 0),
            (3000, 2000),
            (3000, 9000),
        ] {
            let devices = candidates.len() as u64;
            let mut plan = StepPlan {
                held: vec![held / (devices - 1); candidates.len()],
                pooled: vec![streamed / (devices - 1); candidates.len()],
            };
            plan.held[0] = 0;
            plan.pooled[0] = case.size - held - streamed;
            let expected = planner.expect(&plan, &vec![1.0; candidates.len()]);
            let measured = case.trial().follow(&grid(case.size), &plan, &chunks)[0];
            let error = (expected.step_seconds / measured - 1.0).abs();
            errors.push((error, format!("{} {plan:?}", case.name)));
        }
    }
    errors.sort_by(|a, b| a.0.total_cmp(&b.0));
    assert!(errors[errors.len() / 2].0 <= 0.01, "{errors:#?}");
    assert!(errors[errors.len() - 1].0 <= 0.08, "{errors:#?}");
}

#[test]
fn a_device_that_is_slower_than_predicted_gets_less_and_a_lost_one_nothing() {
    let case = Case::of("k40", 16_384, None);
    let work = StepWork::of(&grid(case.size));
    let candidates = case.candidates();
    let all: Vec<u32> = candidates.iter().map(|m| m.compute_units).collect();
    let workers = search::configured(&work, &candidates, &all, Stream::default()).unwrap();
    let planner = StepPlanner::new(work, workers);
    let of = |slowdown: [f64; 2]| planner.forecast(&slowdown).unwrap();
    let (even, slow) = (of([1.0, 1.0]), of([1.0, 4.0]));
    assert!(slow.plan.held[1] < even.plan.held[1]);
    assert!(slow.step_seconds > even.step_seconds);
    let rate = |forecast: &Forecast| forecast.devices[1].held_rate.unwrap();
    assert!((4.0 * rate(&slow) / rate(&even) - 1.0).abs() < 0.01);
    let without = of([1.0, f64::INFINITY]);
    assert_eq!(without.plan.pooled, [case.size, 0]);
    assert_eq!(without.plan.held, [0, 0]);
    let alone = of([f64::INFINITY, 1.0]);
    assert_eq!(alone.plan.held, [0, case.size]);
    assert!(planner.forecast(&[f64::INFINITY; 2]).is_none());
}

/// Cores that disturb each other: each beyond the sixth costs a tenth.
struct Crowded(Physics);

impl StepTime for Crowded {
    fn descriptors(&self) -> &Descriptors {
        self.0.descriptors()
    }

    fn seconds(&self, case: &crate::model::Case) -> f64 {
        let seconds = self.0.seconds(case);
        match case.part {
            DevicePart::Host { workers, .. } => {
                seconds * (1.0 + 0.1 * f64::from(workers.max(6) - 6))
            }
            DevicePart::Discrete { .. } => seconds,
        }
    }

    fn spread(&self) -> f64 {
        0.02
    }
}

#[test]
fn fewer_workers_only_where_they_are_predicted_faster() {
    let mut case = Case::of("k40", 8192, None);
    case.machine.devices.clear();
    assert_eq!(case.plan().workers, [8], "two cores are as fast as all");
    let mut candidates = case.candidates();
    let descriptors = *candidates[0].time.descriptors();
    candidates[0].time = Arc::new(Crowded(Physics(descriptors)));
    let work = StepWork::of(&grid(case.size));
    let plan = plan(&work, &candidates).unwrap();
    assert_eq!(plan.workers, [6]);
    assert_eq!(plan.forecast.devices[0].spread, 0.02);
}

/// Two pools on the same memory, and a GPU.
#[test]
fn several_pools_share_the_memory() {
    let case = Case::of("k20-32", 20_000, Some(2 * GIB));
    let mut candidates = case.candidates();
    candidates[0].compute_units = 16;
    candidates.insert(1, candidates[0].clone());
    candidates[1].compute_units = 8;
    let work = StepWork::of(&grid(case.size));
    let plan = plan(&work, &candidates).unwrap();
    let pool = |cores| SimDevice::Host { cores: Some(cores) };
    let trial = Trial {
        devices: Some(vec![
            pool(plan.workers[0]),
            pool(plan.workers[1]),
            SimDevice::Named("gpu0".into()),
        ]),
        ..case.trial()
    };
    let steps = trial.follow(&grid(case.size), &plan.forecast.plan, &plan.chunks);
    assert!((steps[0] / plan.forecast.step_seconds - 1.0).abs() < 0.02);
    assert!(steps[0] <= 1.02 * case.oracle());
}

#[test]
fn a_run_is_predicted_by_strategy() {
    for (name, size, gpu_memory) in [("k40", 20_000, Some(2 * GIB)), ("titan", 8192, None)] {
        let case = Case::of(name, size, gpu_memory);
        let (work, candidates) = (StepWork::of(&grid(size)), case.candidates());
        let of = |kind| predict_run(kind, &work, &candidates, 10).unwrap();
        for (kind, strategy) in [
            (PredictedStrategy::Cpu, Strategy::Cpu),
            (PredictedStrategy::Gpu, Strategy::Gpu),
        ] {
            let trial = Trial {
                steps: 10,
                ..case.trial()
            };
            let outcome = trial.run(&grid(size), |setup| {
                strategy.build(setup).expect("a strategy that suits")
            });
            let error = of(kind).seconds / outcome.seconds - 1.0;
            assert!(error.abs() < 0.02, "{name} {kind:?}: {error}");
        }
        let best = of(PredictedStrategy::Pdawl);
        assert!(
            best.seconds
                <= of(PredictedStrategy::Cpu)
                    .seconds
                    .min(of(PredictedStrategy::Gpu).seconds)
        );
        assert_eq!((best.low, best.high), (best.seconds, best.seconds));
    }
    let mut alone = Case::of("k40", 8192, None);
    alone.machine.devices.clear();
    let work = StepWork::of(&grid(alone.size));
    assert!(predict_run(PredictedStrategy::Gpu, &work, &alone.candidates(), 10).is_none());
}

#[test]
fn plans_keep_within_what_a_run_finds() {
    let case = Case::of("k40", 4000, Some(64 << 20));
    let (work, candidates) = (StepWork::of(&grid(case.size)), case.candidates());
    let planned = case.plan();
    let planner = || planned.planner(&work, &candidates).unwrap();
    let alone = [1.0; 2];
    let supposed = planner().forecast(&alone).unwrap().plan.held[1];
    assert!(supposed > 100, "{planned:?}");
    for found in [0, 100, supposed - 1] {
        let planner = planner().within(&[None, Some(found)]);
        let plan = planner.forecast(&alone).unwrap().plan;
        assert!(plan.held[1] <= found, "{plan:?} of {found}");
        assert_eq!(
            plan.held.iter().chain(&plan.pooled).sum::<u64>(),
            work.units
        );
    }
}
