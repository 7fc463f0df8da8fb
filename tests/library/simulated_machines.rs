//! Simulated cases: the shipped machines, with grids smaller and larger than their
//! GPU's memory.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, LazyLock, Mutex, OnceLock};

use pdawl_api::balance::{Balancer, Setup};
use pdawl_api::codelet::stencil::Precision;
use pdawl_api::engine::corun::{Control, Corun, Options, Stream, Tracing};
use pdawl_api::engine::{Outcome, oracle};
use pdawl_api::machine::{MachineFile, MachineStore};
use pdawl_api::runtime::sim::{Fault, Sim, SimDevice, SimOptions};
use pdawl_api::workload::Supersteps;
use pdawl_api::workload::stencil::Stencil;

pub const STEPS: u32 = 30;
/// Enough for the median step with fixed shares.
const TRIAL_STEPS: u32 = 5;
const GIB: u64 = 1 << 30;

/// A machine, a grid's size, and a limit of GPU memory.
pub struct Case {
    pub machine: &'static str,
    pub size: u64,
    pub gpu_memory: Option<u64>,
}

const fn case(machine: &'static str, size: u64, gpu_memory: Option<u64>) -> Case {
    Case {
        machine,
        size,
        gpu_memory,
    }
}

/// Where the host's memory is too small for a grid beyond the GPU's, the limit
/// is 2 GiB, as in the paper.
pub const CASES: [Case; 16] = [
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

/// Options of a run that differ between tests.
#[derive(Clone, Default)]
pub struct Start {
    pub faults: Vec<Fault>,
    pub devices: Option<Vec<SimDevice>>,
    pub stream: Stream,
}

impl Start {
    /// With faults, and defaults otherwise.
    pub fn with(faults: &[Fault]) -> Self {
        Self {
            faults: faults.to_vec(),
            ..Self::default()
        }
    }
}

impl Case {
    pub fn name(&self) -> String {
        let limit = self
            .gpu_memory
            .map_or(String::new(), |b| format!(" in {} GiB", b / GIB));
        format!("{} {}{limit}", self.machine, self.size)
    }

    pub fn file(&self) -> MachineFile {
        // The directory does not exist, so only shipped machines are found.
        MachineStore::at("/nonexistent").find(self.machine).unwrap()
    }

    pub fn grid(&self) -> Stencil {
        Stencil::new(self.size, self.size, None, Precision::F64, 1).unwrap()
    }

    pub fn run(
        &self,
        start: Start,
        steps: u32,
        make: impl FnOnce(&Setup) -> Box<dyn Balancer>,
    ) -> Outcome {
        let options = SimOptions {
            faults: start.faults,
            devices: start.devices,
            ..SimOptions::default()
        };
        let mut sim = Sim::new(&self.file(), options).unwrap();
        let grid = self.grid();
        let options = Options {
            tolerance: None,
            supersteps: Supersteps::new(steps, 1),
            gpu_memory: self.gpu_memory,
            stream: start.stream,
            verify: false,
            trace: Tracing::None,
            each_step: None,
        };
        let mut control = Control {
            stop: &AtomicBool::new(false),
            progress: &mut |_, _| {},
        };
        let corun = Corun::open(&mut sim, &grid, &options).unwrap();
        let balancer = make(corun.setup());
        corun.run(balancer, &mut control).unwrap()
    }

    /// Seconds of a step with the best fixed shares. Many tests ask for the same.
    pub fn oracle(&self, faults: &[Fault]) -> f64 {
        static KNOWN: LazyLock<Mutex<HashMap<String, Arc<OnceLock<f64>>>>> =
            LazyLock::new(Mutex::default);
        let name = format!("{} {faults:?}", self.name());
        let known = Arc::clone(KNOWN.lock().unwrap().entry(name).or_default());
        *known.get_or_init(|| {
            let run = |make: oracle::Trial| {
                Ok::<_, Infallible>(self.run(Start::with(faults), TRIAL_STEPS, make))
            };
            oracle::best_shares(run).unwrap().step_seconds
        })
    }
}

/// Steps from index `from` on that take longer than `allowed` oracle steps.
pub fn late(name: &str, outcome: &Outcome, oracle: f64, from: usize, allowed: f64) -> Vec<String> {
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
