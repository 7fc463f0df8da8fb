//! Adaptive sparse matrix products compared with the best single device and the
//! best fixed shares, simulated: matrices of many shapes, on a machine with memory
//! for all of a matrix and for a quarter of it.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pdawl_api::balance::Strategy;
use pdawl_api::engine::Outcome;
use pdawl_api::engine::corun::{self, Control, Corun, CorunError, Options, Stream, Tracing};
use pdawl_api::machine::{MachineFile, MachineStore};
use pdawl_api::matrix::MatrixSource;
use pdawl_api::runtime::sim::{Sim, SimOptions};
use pdawl_api::workload::spmv::{self, Form, Spmv};
use pdawl_api::workload::{Divisible, Supersteps};

const STEPS: u32 = 100;

/// Look-alikes of published matrices, and generated shapes.
const MATRICES: [&str; 15] = [
    "like:circuit5M@0.1",
    "like:eu-2005@0.2",
    "like:in-2004@0.2",
    "like:FullChip@0.1",
    "like:kmer_U1a@0.03",
    "like:FullChip@0.01",
    "uniform:300000,16",
    "uniform:20000,12",
    "uniform:1000000,3",
    "banded:300000,16",
    "banded:2000,4",
    "banded:100000,60",
    "rmat:17,16",
    "rmat:13,8",
    "rmat:15,40",
];

const SHARES: [f64; 10] = [0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 0.95];

/// The machine `h200`, whose cores and GPU reach the parts of their bandwidths
/// that were measured for products.
fn machine() -> MachineFile {
    let mut machine = MachineStore::at("/nonexistent").find("h200").unwrap();
    let efficiency = |table: &mut std::collections::BTreeMap<String, f64>, ratio: f64| {
        table.insert("spmv".into(), ratio);
    };
    efficiency(&mut machine.host.efficiency, 0.46);
    efficiency(&mut machine.devices[0].efficiency, 0.6);
    machine
}

fn product(source: &str, form: Form) -> Spmv {
    let source: MatrixSource = source.parse().unwrap();
    let mut control = pdawl_api::matrix::Control {
        stop: &AtomicBool::new(false),
        progress: &mut |_| {},
    };
    let loaded = source.load(&mut control).unwrap();
    let options = spmv::Options {
        form,
        ..spmv::Options::default()
    };
    Spmv::new(loaded.name, Arc::new(loaded.csr), options).unwrap()
}

fn run(
    machine: &MachineFile,
    spmv: &Spmv,
    strategy: &str,
    gpu_memory: Option<u64>,
) -> Result<Outcome, CorunError> {
    let mut sim = Sim::new(machine, SimOptions::default()).unwrap();
    let strategy: Strategy = strategy.parse().unwrap();
    let options = Options {
        tolerance: None,
        supersteps: Supersteps::new(STEPS, 1),
        gpu_memory,
        stream: Stream::default(),
        verify: false,
        trace: Tracing::None,
        each_step: None,
    };
    let mut control = Control {
        stop: &AtomicBool::new(false),
        progress: &mut |_, _| {},
    };
    let corun = Corun::open(&mut sim, spmv, &options)?;
    let balancer = strategy
        .build(corun.setup())
        .expect("a strategy that suits");
    corun.run(balancer, &mut control)
}

/// Speed of the adaptive run relative to the best of the others, with all steps
/// and probes included.
fn reached(machine: &MachineFile, spmv: &Spmv, gpu_memory: Option<u64>) -> f64 {
    let mut others: Vec<String> = SHARES
        .iter()
        .map(|share| format!("fixed:{share}"))
        .collect();
    others.extend(["cpu".to_owned(), "gpu".to_owned()]);
    let seconds = |strategy: &String| run(machine, spmv, strategy, gpu_memory).map(|o| o.seconds);
    let best = (others.iter().map(seconds))
        .map(|s| s.expect("a run"))
        .fold(f64::INFINITY, f64::min);
    let adapted = run(machine, spmv, "dawl", gpu_memory).expect("a run");
    best / adapted.seconds
}

#[test]
fn adapting_is_near_the_best_that_is_known() {
    let machine = machine();
    let mut failed = Vec::new();
    let (mut product_of_all, mut count) = (1.0, 0);
    for name in MATRICES {
        let spmv = product(name, Form::Product);
        let matrix = spmv.units() * spmv.unit_bytes();
        for (memory, limit) in [("all", None), ("a quarter", Some(matrix / 4))] {
            let lacks = |d| corun::product::lacking(&spmv, d, limit).is_some();
            let sim = Sim::new(&machine, SimOptions::default()).unwrap();
            if pdawl_api::runtime::Devices::devices(&sim).iter().any(lacks) {
                continue;
            }
            let ratio = reached(&machine, &spmv, limit);
            println!("{name} with memory for {memory}: {ratio:.3}");
            if ratio < 0.93 {
                failed.push((name, memory, ratio));
            }
            product_of_all *= ratio;
            count += 1;
        }
    }
    assert!(failed.is_empty(), "{failed:?}");
    let mean = product_of_all.powf(1.0 / f64::from(count));
    assert!(mean >= 0.97, "{mean}");
}

#[test]
fn a_device_that_needs_no_help_is_alone_from_the_first_step_on() {
    let machine = machine();
    for name in ["like:FullChip@0.01", "uniform:300000,16"] {
        let spmv = product(name, Form::Product);
        let adapted = run(&machine, &spmv, "dawl", None).unwrap();
        let alone = run(&machine, &spmv, "gpu", None).unwrap();
        assert!(adapted.steps.iter().all(|step| step.devices[0].units == 0));
        assert!(adapted.seconds <= 1.01 * alone.seconds, "{name}");
        // The overhead of a write, a launch and a chunk, and of their completions.
        let probes = adapted.probe_seconds;
        assert!(probes > 0.0 && probes < 500e-6, "{name}: {probes}");
        assert_eq!(alone.probe_seconds, 0.0);
    }
}

#[test]
fn an_iteration_keeps_its_barriers_and_its_device() {
    let machine = machine();
    let spmv = product("like:eu-2005@0.2", Form::Iteration);
    let adapted = run(&machine, &spmv, "dawl", None).unwrap();
    let alone = run(&machine, &spmv, "gpu", None).unwrap();
    assert!(adapted.seconds <= 1.03 * alone.seconds);
}
