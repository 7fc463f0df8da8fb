//! Balancing on the six shipped machines, simulated: how near DAWL comes to
//! the best fixed shares, from equal first shares, and how it follows changes.

use std::sync::atomic::AtomicBool;

use pdawl::balance::Dawl;
use pdawl::codelet::stencil::Precision;
use pdawl::engine::corun::{self, Control, CorunError, Options, Stream};
use pdawl::engine::{Outcome, oracle};
use pdawl::machine::{MachineFile, Shelf};
use pdawl::runtime::Runtime;
use pdawl::runtime::sim::{At, Fault, Sim, SimOptions, What};
use pdawl::workload::stencil::Stencil;

const STEPS: u32 = 30;
/// Enough for a fixed share's median step.
const TRIAL_STEPS: u32 = 5;
const GIB: u64 = 1 << 30;

/// A machine, a size, and a limit of GPU memory.
struct Case {
    machine: &'static str,
    size: u64,
    gpu_memory: Option<u64>,
}

const fn case(machine: &'static str, size: u64, gpu_memory: Option<u64>) -> Case {
    Case {
        machine,
        size,
        gpu_memory,
    }
}

/// On both sides of the GPU's memory limit; where the host's memory is too
/// small for a grid beyond it, the limit is 2 GiB, as in the paper.
const CASES: [Case; 16] = [
    case("k20-32", 8192, None),
    case("k20-32", 20_000, Some(2 * GIB)),
    case("k20-32", 40_000, None),
    case("k20-40", 16_384, None),
    case("k20-40", 60_000, None),
    case("k40", 8192, None),
    case("k40", 16_384, None),
    case("k40", 28_000, Some(2 * GIB)),
    case("titan", 16_384, None),
    case("titan", 40_000, None),
    case("h200", 16_384, None),
    case("h200", 16_384, Some(2 * GIB)),
    case("h200", 40_000, Some(2 * GIB)),
    case("h200", 80_000, Some(16 * GIB)),
    case("laptop", 8192, None),
    case("laptop", 20_000, None),
];

impl Case {
    fn name(&self) -> String {
        let limit = self
            .gpu_memory
            .map_or(String::new(), |b| format!(" in {} GiB", b / GIB));
        format!("{} {}{limit}", self.machine, self.size)
    }

    fn file(&self) -> MachineFile {
        // A directory that does not exist: only what is shipped.
        Shelf::at("/nonexistent").find(self.machine).unwrap()
    }

    fn run(
        &self,
        faults: &[Fault],
        steps: u32,
        make: corun::MakeBalancer,
    ) -> Result<Outcome, CorunError> {
        let options = SimOptions {
            faults: faults.to_vec(),
            ..SimOptions::default()
        };
        let mut sim = Sim::new(&self.file(), options)?;
        let stencil = Stencil::new(self.size, self.size, None, Precision::F64, 1).unwrap();
        corun::run(
            &mut sim,
            &stencil,
            make,
            &Options {
                steps,
                gpu_memory: self.gpu_memory,
                stream: Stream::default(),
                verify: false,
                trace: false,
            },
            &mut Control {
                stop: &AtomicBool::new(false),
                progress: &mut |_, _| {},
            },
        )
    }

    fn oracle(&self, faults: &[Fault]) -> f64 {
        let best = oracle::best_shares(|make| self.run(faults, TRIAL_STEPS, make)).unwrap();
        best.step_seconds
    }

    fn dawl(&self, faults: &[Fault]) -> Outcome {
        self.run(faults, STEPS, &mut |setup| {
            Ok(Box::new(Dawl::new(setup).from_equal_shares()))
        })
        .unwrap()
    }
}

/// Steps from index `from` on that take longer than `allowed` oracle steps.
fn late(name: &str, outcome: &Outcome, oracle: f64, from: usize, allowed: f64) -> Vec<String> {
    assert_eq!(outcome.steps.len(), STEPS as usize);
    outcome.steps[from..]
        .iter()
        .filter(|s| s.seconds > allowed * oracle)
        .map(|s| {
            format!(
                "{name}: step {} takes {:.3} oracle steps",
                s.step,
                s.seconds / oracle
            )
        })
        .collect()
}

#[test]
fn from_equal_shares_dawl_is_within_3_percent_from_the_fourth_step_on() {
    let mut all = Vec::new();
    for case in &CASES {
        let oracle = case.oracle(&[]);
        all.extend(late(&case.name(), &case.dawl(&[]), oracle, 3, 1.03));
    }
    assert!(all.is_empty(), "{all:#?}");
}

#[test]
fn with_probes_dawl_is_within_5_percent_from_the_first_step_on() {
    let mut all = Vec::new();
    for case in &CASES {
        let oracle = case.oracle(&[]);
        let outcome = case
            .run(&[], STEPS, &mut |setup| Ok(Box::new(Dawl::new(setup))))
            .unwrap();
        all.extend(late(&case.name(), &outcome, oracle, 0, 1.05));
    }
    assert!(all.is_empty(), "{all:#?}");
}

#[test]
fn a_device_that_becomes_half_as_fast_is_followed_within_4_steps() {
    let mut all = Vec::new();
    for case in &CASES {
        let devices = Sim::new(&case.file(), SimOptions::default())
            .unwrap()
            .devices()
            .len();
        for device in 0..devices {
            let slow = |step| Fault {
                device,
                at: At::Step(step),
                what: What::Slowed(2.0),
            };
            let oracle = case.oracle(&[slow(0)]);
            let name = format!("{}, device {device} slow", case.name());
            all.extend(late(&name, &case.dawl(&[slow(10)]), oracle, 14, 1.05));
        }
    }
    assert!(all.is_empty(), "{all:#?}");
}
