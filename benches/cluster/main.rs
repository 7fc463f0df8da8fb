//! Figures of simulated clusters: `cargo bench --bench cluster -- NAME`, where NAME is
//! `slow`, `copies`, `paper`, `thousand`, `locality`, `regions` or `nodes`. They
//! are virtual times, so they do not depend on this machine, except where real time is said,
//! and those of `regions` and `nodes`.

mod nodes;
mod regions;
mod tasks;

use std::sync::Arc;
use std::time::Instant;

use pdawl_api::cluster::NodeId;
use pdawl_api::cluster::protocol::Settings;
use pdawl_api::cluster::record::{ClusterOutcome, NodeRecord};
use pdawl_api::codelet::Precision;
use pdawl_api::engine::cluster::simulate::{
    Cluster, Computing, NodeMachine, Options, Report, Slowdown, simulate,
};
use pdawl_api::machine::{ClusterStore, MachineStore};
use pdawl_api::spread::NamedSpread;
use pdawl_api::workload::cluster::program::Program;
use pdawl_api::workload::cluster::{
    ClusterWorkload, ConvolutionWorkload, Fill, Placement, Product,
};

use tasks::Equal;

fn cluster(name: &str, computing: Computing) -> Cluster {
    let file = ClusterStore::of_user()
        .find(name)
        .expect("a shipped cluster");
    Cluster::of(&file, &MachineStore::of_user(), computing).expect("its machines")
}

/// The cluster of a name, of which kernels reach this part of the rates.
fn at_part(name: &str, computing: Computing, part: f64) -> Cluster {
    let file = ClusterStore::of_user()
        .find(name)
        .expect("a shipped cluster");
    let machines = file.machines(&MachineStore::of_user());
    let nodes = machines.expect("its machines").into_iter().map(|mut file| {
        let rates = file.devices.iter_mut();
        let rates = rates.flat_map(|device| [&mut device.flops_f32, &mut device.flops_f64]);
        for rate in rates.chain([&mut file.host.flops]).flatten() {
            *rate *= part;
        }
        NodeMachine::new(Arc::new(file), computing)
    });
    Cluster {
        nodes: nodes.collect(),
        network: file.network.clone(),
    }
}

fn run(cluster: &Cluster, workload: &dyn ClusterWorkload, options: &Options) -> Report {
    simulate(cluster, workload, BLOCK, options).expect("the run ends")
}

fn sum(outcome: &ClusterOutcome, of: fn(&NodeRecord) -> u64) -> u64 {
    outcome.nodes.iter().map(of).sum()
}

/// Work a second of all devices of a node, in operations.
fn speed(cluster: &Cluster) -> f64 {
    let devices = cluster.nodes[0].infos();
    devices.iter().map(|device| device.flops).sum()
}

/// Four equal nodes, of which one slows.
fn slow() {
    println!("four nodes, 1000 subtasks; part of the ideal, given back, copied");
    for computing in [Computing::Gpus, Computing::All] {
        let cluster = cluster("four", computing);
        let count = 1000;
        // 25 s on equal nodes.
        let flops = speed(&cluster) * 4.0 * 25.0 / count as f64;
        let task = Equal::new(count, flops, 4);
        let (third, half) = (25.0 * 4.0 / (3.0 + 1.0 / 3.0), 12.5 + 50.0 / 3.1);
        let cases = [
            ("equal", 1.0, 0.0, 25.0),
            ("third", 1.0 / 3.0, 0.0, third),
            ("tenth in mid-run", 0.1, 12.5, half),
        ];
        for (case, fraction, at, ideal) in cases {
            for spread in NamedSpread::all() {
                let mut parts = Vec::new();
                let mut last = None;
                for seed in 1..=5 {
                    let slowdown = Slowdown {
                        node: NodeId(3),
                        at: (at * 1e9) as u64,
                        fraction,
                    };
                    let options = Options {
                        spread,
                        seed,
                        noise: Some(0.05),
                        slowdowns: vec![slowdown],
                        ..Options::default()
                    };
                    let report = run(&cluster, &task, &options);
                    parts.push(ideal / report.outcome.seconds);
                    last = Some(report.outcome);
                }
                parts.sort_by(f64::total_cmp);
                let outcome = last.expect("five runs");
                let back = sum(&outcome, |node| node.given_back);
                let [asked, brought] = outcome.requests.unwrap_or_default();
                println!(
                    "{computing:?} {case:18} {spread:10} median {:.3} worst {:.3} back {back} copied {} asked {asked} brought {brought}",
                    parts[2],
                    parts[0],
                    sum(&outcome, |node| node.copied),
                );
            }
        }
    }
}

/// Copies on equal nodes, and requests of `steal` that bring work.
fn copies() {
    let cases = [
        (0.0, 336),
        (0.05, 336),
        (0.2, 336),
        (0.05, 4000),
        (0.2, 4000),
    ];
    let alike = [Computing::Gpus, Computing::All];
    for (computing, (noise, count)) in alike.iter().flat_map(|c| cases.map(|case| (*c, case))) {
        let cluster = cluster("unicorn", computing);
        let flops = speed(&cluster) * 10.0 * 20.0 / count as f64;
        let task = Equal::new(count, flops, 10);
        for spread in NamedSpread::all() {
            let options = Options {
                spread,
                noise: Some(noise),
                ..Options::default()
            };
            let outcome = run(&cluster, &task, &options).outcome;
            let [asked, brought] = outcome.requests.unwrap_or_default();
            println!(
                "{computing:?}, 10 equal nodes, {count} subtasks, noise {noise}: {spread:10} {:.3} of ideal, copied {:.2} %, requests {brought} of {asked} brought work",
                20.0 / outcome.seconds,
                sum(&outcome, |node| node.copied) as f64 * 100.0 / count as f64,
            );
        }
    }
}

/// Rows and columns of blocks.
const BLOCK: u64 = 2048;

/// Contents that nobody asks for.
fn unused() -> Fill {
    Arc::new(|_, _| panic!("a simulation has no contents"))
}

fn convolution() -> Program {
    let convolution = ConvolutionWorkload {
        rows: 32768,
        columns: 43008,
        channels: 3,
        size: 31,
        placement: Placement::Random { seed: 1 },
        image: unused(),
        filter: unused(),
    };
    convolution.program(BLOCK)
}

fn product(seed: u64) -> Program {
    let product = Product {
        rows: 32768,
        columns: 32768,
        depth: 32768,
        precision: Precision::F32.into(),
        a: unused(),
        b: unused(),
    };
    product.in_blocks(BLOCK, Placement::Random { seed })
}

/// Single-precision products on a Tesla M2070. Unicorn, section V: 5.1 TFLOP/s on 20 GPUs
/// would be 31 % more if all data were local, which is 0.324 of the peak.
const PRODUCT: f64 = 0.324;

/// A convolution with a filter of 31 x 31 in a kernel that uses local memory: 0.3 of the
/// peak is assumed.
const CONVOLUTION: f64 = 0.3;

/// The paper's cluster, with and without prefetching.
fn paper() {
    let (convolution, product) = (convolution(), product(1));
    for computing in [Computing::Gpus, Computing::All] {
        let workloads: [(&dyn ClusterWorkload, f64, f64); 2] = [
            (&convolution, CONVOLUTION, 0.0),
            (&product, PRODUCT, 2.0 * 32768f64.powi(3)),
        ];
        for (workload, part, flops) in workloads {
            let cluster = at_part("unicorn", computing, part);
            for spread in [
                NamedSpread::Together,
                NamedSpread::Oblivious,
                NamedSpread::Steal,
            ] {
                let at = |prefetch| {
                    let options = Options {
                        spread,
                        settings: Settings {
                            prefetch,
                            ..Settings::default()
                        },
                        ..Options::default()
                    };
                    run(&cluster, workload, &options).outcome
                };
                let (with, without) = (at(2), at(0));
                println!(
                    "{computing:?} {:12} {spread:10} {:.2} s, {:.2} TFLOP/s, {:.1} GB moved; without prefetching {:.2} s, {:.2} times",
                    workload.name(),
                    with.seconds,
                    flops / with.seconds / 1e12,
                    sum(&with, |node| node.received_bytes) as f64 / 1e9,
                    without.seconds,
                    without.seconds / with.seconds,
                );
            }
        }
    }
}

/// Bytes of memory that this process has had at most.
fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM"));
    line.unwrap_or("unknown").to_owned()
}

/// A thousand nodes, a million subtasks.
fn thousand() {
    let cluster = cluster("thousand", Computing::All);
    let count = 1_000_000;
    let ideal = 20.0;
    let flops = speed(&cluster) * 1024.0 * ideal / count as f64;
    let task = Equal::new(count, flops, 1024);
    for spread in NamedSpread::all() {
        let options = Options {
            spread,
            noise: Some(0.05),
            ..Options::default()
        };
        let begin = Instant::now();
        let report = run(&cluster, &task, &options);
        println!(
            "{spread:10} {:.3} of ideal, copied {:.3} %, {} messages; real: {:.1} s; {}",
            ideal / report.outcome.seconds,
            sum(&report.outcome, |node| node.copied) as f64 * 100.0 / count as f64,
            report.messages,
            begin.elapsed().as_secs_f64(),
            peak_memory(),
        );
    }
}

/// Products of blocks at random places, with and without regard to where they are.
fn locality() {
    for computing in [Computing::Gpus, Computing::All] {
        for bandwidth in [3.2e9, 1.25e9, 0.456e9] {
            let mut cluster = at_part("unicorn", computing, PRODUCT);
            cluster.network.bandwidth = bandwidth;
            for seed in 1..=3 {
                let workload = product(seed);
                let at = |spread| {
                    let options = Options {
                        spread,
                        ..Options::default()
                    };
                    run(&cluster, &workload, &options).outcome
                };
                let (with, without) = (at(NamedSpread::Together), at(NamedSpread::Oblivious));
                let moved = |outcome| sum(outcome, |node| node.received_bytes) as f64 / 1e9;
                println!(
                    "{computing:?} {:.2} GB/s, placement {seed}: {:.2} s, oblivious {:.2} s: {:.1} % faster; {:.1} and {:.1} GB",
                    bandwidth / 1e9,
                    with.seconds,
                    without.seconds,
                    (without.seconds / with.seconds - 1.0) * 100.0,
                    moved(&with),
                    moved(&without),
                );
            }
        }
    }
}

fn main() {
    let figures: [(&str, fn()); 7] = [
        ("slow", slow),
        ("copies", copies),
        ("paper", paper),
        ("thousand", thousand),
        ("locality", locality),
        ("regions", regions::figure),
        ("nodes", nodes::figure),
    ];
    let asked: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with('-'))
        .collect();
    for (name, figure) in figures {
        if asked.is_empty() || asked.iter().any(|asked| asked == name) {
            println!("== {name}");
            figure();
        }
    }
}
