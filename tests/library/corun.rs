//! Invariants of the engine for stencils, under random balancers and orders of
//! completion: every unit once a step, results equal to the sequential reference
//! bit for bit, memory limits respected, device losses survived.

use std::sync::atomic::AtomicBool;

use pdawl_api::balance::{Balancer, Next, StepPlan, StepState};
use pdawl_api::codelet::stencil::Precision;
use pdawl_api::engine::Outcome;
use pdawl_api::engine::corun::{self, Corun, CorunError, Options, Stream, Tracing};
use pdawl_api::runtime::CommandKind;
use pdawl_api::runtime::sim::{Sim, SimDevice, SimOptions};
use pdawl_api::workload::stencil::Stencil;
use pdawl_api::workload::{Grid, Supersteps};
use proptest::prelude::*;

use crate::random_balancer::RandomBalancer;
use crate::shuffled_runtime::{Fault, ShuffledRuntime, device};

const STEPS: u32 = 6;

fn corun(
    runtime: &mut ShuffledRuntime,
    stencil: &Stencil,
    seed: u64,
    (supersteps, tolerance, stream): (Supersteps, Option<f64>, Stream),
) -> Result<Outcome, CorunError> {
    let options = Options {
        stream,
        tolerance,
        verify: true,
        trace: Tracing::Commands,
        ..Options::of(supersteps)
    };
    let corun = Corun::open(runtime, stencil, &options)?;
    let balancer = Box::new(RandomBalancer::new(corun.setup(), seed));
    corun.run(
        balancer,
        &mut corun::Control {
            stop: &AtomicBool::new(false),
            progress: &mut |_, _| {},
        },
    )
}

#[derive(Clone, Debug)]
struct Case {
    nx: u64,
    ny: u64,
    nz: Option<u64>,
    precision: Precision,
    /// Whether each point of a neighbourhood has a coefficient.
    weighted: bool,
    /// Memory of each device in units; `None` for a device on host memory.
    memories: Vec<Option<u64>>,
    supersteps: Supersteps,
    /// The change of a point that ends the steps.
    tolerance: Option<f64>,
    stream: Stream,
    seed: u64,
}

/// Some steps with a barrier after each, or after up to 40, which is more than most grids
/// have units.
fn supersteps() -> impl Strategy<Value = Supersteps> {
    prop_oneof![
        Just(Supersteps::new(STEPS, 1)),
        (1u32..45, 2u32..41).prop_map(|(steps, size)| Supersteps::new(steps, size)),
    ]
}

/// A change that the steps may end with, and the period after which they are checked.
fn ends() -> impl Strategy<Value = Option<(f64, u32)>> {
    let end = (-16.0f64..0.5, 1u32..14).prop_map(|(log, period)| (log.exp2(), period));
    proptest::option::of(end)
}

fn case() -> impl Strategy<Value = Case> {
    (
        prop_oneof![Just((3u64, 3u64)), Just((17, 41)), (3u64..20, 3u64..60)],
        proptest::option::weighted(0.25, 3u64..14),
        any::<(bool, bool)>(),
        proptest::collection::vec(proptest::option::of(13u64..200), 1..5),
        (supersteps(), ends()),
        (
            proptest::option::of(0u64..70),
            proptest::option::of(1u32..9),
        ),
        any::<u64>(),
    )
        .prop_map(
            |((nx, ny), nz, (single, weighted), memories, (supersteps, ends), stream, seed)| Case {
                nx,
                ny,
                nz,
                precision: if single {
                    Precision::F32
                } else {
                    Precision::F64
                },
                weighted,
                memories,
                supersteps: match ends {
                    Some((_, period)) => supersteps.with_period(period),
                    None => supersteps,
                },
                tolerance: ends.map(|(change, _)| change),
                stream: Stream {
                    chunk: stream.0,
                    queues: stream.1,
                },
                seed,
            },
        )
}

impl Case {
    fn stencil(&self) -> Stencil {
        let mean = Stencil::new(self.nx, self.ny, self.nz, self.precision, self.seed).unwrap();
        let by = [0.3, -0.2, 0.1, 0.25, 0.05, 0.15, 0.35];
        let count = if self.nz.is_some() { 7 } else { 5 };
        match self.weighted {
            true => mean.with_coefficients(&by[..count]).unwrap(),
            false => mean,
        }
    }

    fn unit_bytes(&self) -> u64 {
        self.nx * self.nz.map_or(1, |_| self.ny) * self.precision.bytes()
    }

    /// Bytes of a device's memory: this number of units, at least what its queues
    /// need.
    fn bytes(&self, units: u64) -> u64 {
        let halos = 4 * u64::from(self.supersteps.size()) - 2;
        let least = (2 + halos) * u64::from(self.stream.queues.unwrap_or(3)) + 1;
        let stencil = self.stencil();
        let changes = stencil.changes().filter(|_| self.tolerance.is_some());
        let (each, folded) = changes.map_or((0, 0), |changes| {
            (changes.raised_bytes(1), 9 * changes.folded_bytes())
        });
        units.max(least) * (self.unit_bytes() + each) + each + folded
    }

    fn run(&self, runtime: &mut ShuffledRuntime) -> Result<Outcome, CorunError> {
        let how = (self.supersteps, self.tolerance, self.stream);
        corun(runtime, &self.stencil(), self.seed, how)
    }

    fn runtime(&self, fault: Option<Fault>) -> ShuffledRuntime {
        let devices = self
            .memories
            .iter()
            .enumerate()
            .map(|(i, units)| device(&format!("d{i}"), units.map(|n| self.bytes(n))))
            .collect();
        ShuffledRuntime::new(devices, self.seed, fault).with_ways(self.seed)
    }
}

/// Asserts that each unit is computed once in each step.
fn once_a_step(runtime: &ShuffledRuntime, units: u64, steps: u32) {
    for step in 0..steps {
        let mut count = vec![0u32; units as usize];
        for (phase, range) in &runtime.launched {
            if *phase == Some(step) {
                range.clone().for_each(|u| count[u as usize] += 1);
            }
        }
        assert!(count.iter().all(|n| *n == 1), "step {step}: {count:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn every_unit_once_and_bit_for_bit(case in case()) {
        let mut runtime = case.runtime(None);
        let outcome = case.run(&mut runtime).unwrap();
        prop_assert_eq!(outcome.verified, Some(true));
        prop_assert_eq!(outcome.max_abs_error, Some(0.0));
        let steps: u32 = outcome.steps.iter().map(|step| step.steps).sum();
        // That they are as many as the reference's was verified.
        prop_assert_eq!(outcome.change.is_some(), case.tolerance.is_some());
        let ended = case.tolerance.zip(outcome.change).is_some_and(|(most, change)| change <= most);
        if !ended {
            prop_assert_eq!(outcome.steps.len() as u32, case.supersteps.count());
            prop_assert_eq!(steps, case.supersteps.steps());
        }
        prop_assert!(runtime.is_bare(), "a run leaves nothing behind");
        let units = case.nz.unwrap_or(case.ny);
        if case.supersteps.size() == 1 {
            once_a_step(&runtime, units, steps);
        }
        for (index, step) in outcome.steps.iter().enumerate() {
            prop_assert_eq!(step.step as usize, index);
            prop_assert_eq!(step.devices.iter().map(|d| d.units).sum::<u64>(), units);
        }
        for (memory, used) in case.memories.iter().zip(&runtime.most_allocated) {
            let limit = memory.map_or(0, |units| case.bytes(units));
            // The runtime rounds its buffers, a ring and two a queue, and what each raises
            // where steps are checked, up to whole words.
            let queues = u64::from(case.stream.queues.unwrap_or(3));
            let buffers = 1 + 2 * queues + case.tolerance.map_or(0, |_| 1 + queues);
            prop_assert!(*used <= limit + 8 * buffers, "{} of {}", used, limit);
        }
    }

    #[test]
    fn a_lost_device_costs_time_but_no_result(
        case in case(),
        victim in any::<prop::sample::Index>(),
        after in 0u64..60,
    ) {
        let fault = Fault { device: victim.index(case.memories.len()), after };
        let mut runtime = case.runtime(Some(fault));
        match case.run(&mut runtime) {
            Ok(outcome) => {
                prop_assert_eq!(outcome.verified, Some(true));
                prop_assert!(outcome.losses.len() <= 1);
                for loss in &outcome.losses {
                    prop_assert_eq!(loss.device, fault.device);
                }
            }
            Err(CorunError::AllLost { .. }) => prop_assert_eq!(case.memories.len(), 1),
            Err(other) => prop_assert!(false, "{}", other),
        }
    }
}

#[test]
fn a_stop_ends_at_a_barrier_with_the_report_so_far() {
    // Also where the last step was checked and changes too much.
    for tolerance in [None, Some(1e-300)] {
        stopped(tolerance);
    }
}

fn stopped(tolerance: Option<f64>) {
    let stencil = Stencil::new(9, 31, None, Precision::F64, 1).unwrap();
    let mut runtime =
        ShuffledRuntime::new(vec![device("a", None), device("b", Some(20_000))], 5, None);
    let stop = AtomicBool::new(false);
    let options = Options {
        tolerance,
        supersteps: Supersteps::new(1000, 1).with_period(1),
        gpu_memory: None,
        stream: Stream::default(),
        verify: true,
        trace: Tracing::None,
        each_step: None,
    };
    let corun = Corun::open(&mut runtime, &stencil, &options).unwrap();
    let balancer = Box::new(RandomBalancer::new(corun.setup(), 3));
    let mut control = corun::Control {
        stop: &stop,
        progress: &mut |done, of| {
            assert_eq!(of, 1000);
            stop.store(done >= 7, std::sync::atomic::Ordering::Relaxed);
        },
    };
    let outcome = corun.run(balancer, &mut control).unwrap();
    assert!(outcome.interrupted);
    assert!(
        (7..20).contains(&outcome.steps.len()),
        "{}",
        outcome.steps.len()
    );
    assert_eq!(outcome.verified, Some(true));
    assert!(outcome.trace.spans.is_empty());
}

#[test]
fn what_cannot_run_says_why() {
    let stencil = Stencil::new(9, 31, None, Precision::F64, 1).unwrap();
    let run = |devices| {
        corun(
            &mut ShuffledRuntime::new(devices, 1, None),
            &stencil,
            1,
            (Supersteps::new(STEPS, 1), None, Stream::default()),
        )
    };
    assert!(matches!(run(vec![]), Err(CorunError::NoDevice)));
    let error = run(vec![device("tiny", Some(72 * 11))])
        .unwrap_err()
        .to_string();
    assert!(error.contains("tiny") && error.contains("936"), "{error}");
    let mut single = device("single", None);
    single.fp64 = false;
    let error = run(vec![single]).unwrap_err().to_string();
    assert!(error.contains("single precision only"), "{error}");
}

/// Holds so many units on each of two devices, step by step.
struct Given([[u64; 2]; 4]);

impl Balancer for Given {
    fn name(&self) -> String {
        "given".into()
    }

    fn plan(&mut self, step: u32) -> StepPlan {
        StepPlan {
            held: self.0[step as usize].to_vec(),
            pooled: vec![0; 2],
        }
    }

    fn next(&mut self, _device: usize, _state: &StepState) -> Next {
        Next::Done
    }

    fn lost(&mut self, _device: usize) {}

    fn returned(&mut self, _device: usize, _step: u32) {}
}

#[test]
fn halos_and_units_go_directly_from_gpu_to_gpu() {
    let machine = crate::graph::two_gpus();
    let sim = SimOptions {
        devices: Some(vec![
            SimDevice::Named("gpu0".into()),
            SimDevice::Named("gpu1".into()),
        ]),
        data: true,
        ..SimOptions::default()
    };
    let mut runtime = Sim::new(&machine, sim).unwrap();
    let stencil = Stencil::new(64, 300, None, Precision::F32, 1).unwrap();
    let options = Options {
        tolerance: None,
        supersteps: Supersteps::new(4, 1),
        gpu_memory: None,
        stream: Stream::default(),
        verify: true,
        trace: Tracing::Commands,
        each_step: None,
    };
    let corun = Corun::open(&mut runtime, &stencil, &options).unwrap();
    let balancer = Box::new(Given([[100, 200], [100, 200], [140, 160], [140, 160]]));
    let mut control = corun::Control {
        stop: &AtomicBool::new(false),
        progress: &mut |_, _| {},
    };
    let outcome = corun.run(balancer, &mut control).unwrap();
    assert_eq!(outcome.verified, Some(true));
    let copied = |label: &str, kind: CommandKind| -> Vec<u32> {
        let spans = outcome.trace.spans.iter();
        let spans = spans.filter(|span| span.label == *label && span.kind == kind);
        spans.map(|span| span.step).collect()
    };
    // Both halos in each step and before the first one, and before the third one units that
    // move and a halo.
    let halos = [0, 0, 0, 0, 1, 1, 2, 2, 2, 3, 3];
    assert_eq!(copied("halo", CommandKind::Copy), halos);
    assert_eq!(copied("move", CommandKind::Copy), [2]);
    assert!(copied("edge", CommandKind::Read).is_empty());
}

/// A device is lost in the only step that is checked, before other devices have cleared what
/// they raised: it is clear when the steps are repeated.
#[test]
fn changes_of_an_attempt_that_a_loss_ended_do_not_count() {
    let case = Case {
        nx: 17,
        ny: 41,
        nz: None,
        precision: Precision::F64,
        weighted: false,
        memories: vec![None, Some(57), Some(61), Some(25)],
        supersteps: Supersteps::new(STEPS, 1).with_period(STEPS),
        tolerance: Some(1.0),
        stream: Stream {
            chunk: None,
            queues: None,
        },
        seed: 6373615779640989768,
    };
    let mut lost = 0;
    for after in 40..60 {
        let mut runtime = case.runtime(Some(Fault { device: 2, after }));
        let outcome = case.run(&mut runtime).unwrap();
        assert_eq!(outcome.verified, Some(true), "after {after} commands");
        lost += outcome.losses.len();
    }
    assert!(lost > 10);
}
