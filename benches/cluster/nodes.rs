//! Runs of nodes that are threads of this process, in real time: two, each with half of the
//! cores.

use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use pdawl_api::cluster::protocol::Settings;
use pdawl_api::cluster::space::Extent;
use pdawl_api::cluster::wire::{LocalWire, Wire};
use pdawl_api::codelet::Precision;
use pdawl_api::engine::cluster::{Control, Node, Options, expected};
use pdawl_api::machine::host::allowed_cores;
use pdawl_api::runtime::{Runtime, select};
use pdawl_api::spread::NamedSpread;
use pdawl_api::workload::Supersteps;
use pdawl_api::workload::cluster::program::{Program, ProgramTask};
use pdawl_api::workload::cluster::{
    BandsWorkload, ClusterWorkload, LuWorkload, Placement, SortWorkload, generated,
};
use pdawl_api::workload::stencil::Stencil;
use rustix::thread::{CpuSet, sched_setaffinity};

/// What a node's driver has done.
struct Driven {
    /// Of all tasks, at the first node.
    seconds: Option<f64>,
    /// Seconds of its core, from joining to the end.
    driver: f64,
}

/// Seconds for which the calling thread has had a core.
fn own_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = text.split(' ').next().and_then(|of| of.parse::<u64>().ok());
    nanos.unwrap_or(0) as f64 * 1e-9
}

fn node(wire: LocalWire, cores: &[usize], workload: &dyn ClusterWorkload, tile: u64) -> Driven {
    let mut set = CpuSet::new();
    cores.iter().for_each(|core| set.set(*core));
    sched_setaffinity(None, &set).expect("cores of this process");
    let host = "host".parse().expect("a selection");
    let (mut runtime, _) = select::open(Some(&host), false).expect("a host");
    let options = Options {
        program: "the benchmark".to_owned(),
        devices: runtime.devices().iter().map(expected).collect(),
        settings: Settings::default(),
        leaves_out: None,
        input_bytes: 1 << 30,
        traces: false,
    };
    let is_first = wire.rank() == 0;
    let spread = is_first.then(|| NamedSpread::default().spread(1));
    let stop = AtomicBool::new(false);
    let runtime: &mut dyn Runtime = &mut *runtime;
    let node = Node::join(Box::new(wire), runtime, options, spread, &stop).expect("all join");
    let before = own_seconds();
    let control = Control {
        tile,
        verify: None,
        outputs: Vec::new(),
        progress: &mut |_| {},
    };
    let (ran, wire) = node.run_until_settled(workload, control).expect("it runs");
    wire.finish().expect("all end");
    Driven {
        seconds: ran.map(|outcome| outcome.seconds),
        driver: own_seconds() - before,
    }
}

/// The seconds of a workload on two nodes, and those of each driver.
fn run(workload: &(dyn ClusterWorkload + Sync), tile: u64) -> (f64, [f64; 2]) {
    let cores = allowed_cores(None);
    let parts: Vec<&[usize]> = cores.chunks(cores.len().div_ceil(2)).collect();
    let driven: Vec<Driven> = thread::scope(|scope| {
        let nodes = LocalWire::cluster(2).into_iter().enumerate();
        let nodes: Vec<_> = nodes
            .map(|(rank, wire)| {
                let cores = parts[rank % parts.len()];
                scope.spawn(move || node(wire, cores, workload, tile))
            })
            .collect();
        let driven = nodes.into_iter().map(|node| node.join());
        driven.map(|node| node.expect("no node panics")).collect()
    });
    let seconds = driven[0].seconds.expect("the first node tells");
    (seconds, [driven[0].driver, driven[1].driver])
}

/// Runs of so many: a run's time depends on what else this machine does.
const RUNS: usize = 5;

fn median(workload: &(dyn ClusterWorkload + Sync), tile: u64) -> (f64, [f64; 2]) {
    let mut runs: Vec<_> = (0..RUNS).map(|_| run(workload, tile)).collect();
    runs.sort_by(|a, b| a.0.total_cmp(&b.0));
    runs[RUNS / 2]
}

/// A subtask that takes a second on one node, for which both drivers wait.
fn sleeping() -> Program {
    let mut program = Program::new("sleep");
    let space = program.space::<f32>(1, 1);
    let write = space.write(move |_| space.whole()).full();
    program.add_task(ProgramTask::new("sleep", 1, write, |_, mut to| {
        thread::sleep(Duration::from_secs(1));
        to.slice().fill(1.0);
    }));
    program.set_result(space);
    program
}

/// Many regions, many small tasks, and waiting.
pub fn figure() {
    let row = |columns| Extent {
        rows: 1,
        columns,
        element: 4,
    };
    let numbers = 1_000_000;
    let sort = SortWorkload::<f32>::new(numbers, 1 << 14, generated(row(numbers), 1));
    let (seconds, _) = median(&sort.expect("generated numbers"), 1 << 14);
    println!("sort {numbers} numbers, 62 x 62 x 16 regions: {seconds:.3} s");

    let (size, tile) = (1024, 16);
    let extent = Extent {
        rows: size,
        columns: size,
        element: 4,
    };
    let lu = LuWorkload {
        size,
        tile,
        precision: Precision::F32,
        by_columns: false,
        placement: Placement::Rows,
        matrix: generated(extent, 1),
    };
    let (seconds, _) = median(&lu.program(), tile);
    println!("lu {size} x {size}, blocks of {tile}: {seconds:.3} s");

    let steps = 300;
    let stencil = Stencil::new(256, 256, None, Precision::F32, 1).expect("a grid");
    let (seconds, _) = median(
        &BandsWorkload::stencil(stencil, Supersteps::new(steps, 1)),
        1,
    );
    println!(
        "stencil 256 x 256, {steps} steps: {:.1} us a step",
        seconds / f64::from(steps) * 1e6
    );

    let (seconds, drivers) = median(&sleeping(), 1);
    let shares = drivers.map(|driver| format!("{:.1} %", driver / seconds * 100.0));
    println!("a subtask of {seconds:.2} s: drivers use {shares:?} of a core");
}
