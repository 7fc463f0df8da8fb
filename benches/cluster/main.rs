//! Figures of simulated clusters: `cargo bench --bench cluster -- NAME`, where NAME is
//! `slow`, `copies`, `paper`, `thousand`, `locality`, `overhead`, `regions` or `nodes`. They
//! are virtual times, so they do not depend on this machine, except where real time is said,
//! and those of `regions` and `nodes`.

mod nodes;
mod regions;
mod tasks;

use std::sync::Arc;
use std::time::Instant;

use pdawl::cluster::NodeId;
use pdawl::cluster::protocol::Settings;
use pdawl::cluster::space::Spaces;
use pdawl::cluster::task::Task;
use pdawl::engine::cluster::simulate::{Cluster, Computing, Options, Report, Slowdown, simulate};
use pdawl::machine::{ClusterStore, MachineStore};
use pdawl::spread::NamedSpread;

use tasks::{Convolution, Equal, Product, matrix};

fn cluster(name: &str, computing: Computing) -> Cluster {
    let file = ClusterStore::of_user()
        .find(name)
        .expect("a shipped cluster");
    Cluster::of(&file, &MachineStore::of_user(), computing).expect("its machines")
}

fn run(cluster: &Cluster, spaces: &Spaces, task: &Arc<dyn Task>, options: &Options) -> Report {
    simulate(cluster, spaces, std::slice::from_ref(task), options).expect("the run ends")
}

fn copied(report: &Report) -> u64 {
    report.nodes.iter().map(|node| node.counts.copied).sum()
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
        let (spaces, ids) = Equal::spaces(count, 4);
        // 25 s on equal nodes.
        let flops = speed(&cluster) * 4.0 * 25.0 / count as f64;
        let task: Arc<dyn Task> = Arc::new(Equal {
            count,
            flops,
            spaces: ids,
        });
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
                        noise: 0.05,
                        slowdowns: vec![slowdown],
                        ..Options::default()
                    };
                    let report = run(&cluster, &spaces, &task, &options);
                    parts.push(ideal / report.seconds);
                    last = Some(report);
                }
                parts.sort_by(f64::total_cmp);
                let report = last.expect("five runs");
                let back: u64 = report.nodes.iter().map(|node| node.counts.given_back).sum();
                let requests = report.requests;
                println!(
                    "{computing:?} {case:18} {spread:10} median {:.3} worst {:.3} back {back} copied {} asked {} brought {}",
                    parts[2],
                    parts[0],
                    copied(&report),
                    requests.asked,
                    requests.brought
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
        let (spaces, ids) = Equal::spaces(count, 10);
        let flops = speed(&cluster) * 10.0 * 20.0 / count as f64;
        let task: Arc<dyn Task> = Arc::new(Equal {
            count,
            flops,
            spaces: ids,
        });
        for spread in NamedSpread::all() {
            let options = Options {
                spread,
                noise,
                ..Options::default()
            };
            let report = run(&cluster, &spaces, &task, &options);
            println!(
                "{computing:?}, 10 equal nodes, {count} subtasks, noise {noise}: {spread:10} {:.3} of ideal, copied {:.2} %, requests {} of {} brought work",
                20.0 / report.seconds,
                copied(&report) as f64 * 100.0 / count as f64,
                report.requests.brought,
                report.requests.asked,
            );
        }
    }
}

fn random_place(seed: u64, nodes: u32) -> impl FnMut(u64, u64) -> NodeId {
    let mut random = fastrand::Rng::with_seed(seed);
    move |_, _| NodeId(random.u32(..nodes))
}

fn convolution(nodes: u32) -> (Spaces, Arc<dyn Task>) {
    let mut spaces = Spaces::default();
    let size = (32768, 43008, 3);
    let image = matrix(&mut spaces, size, 2048, random_place(1, nodes));
    let result = matrix(&mut spaces, size, 2048, random_place(2, nodes));
    let extent = spaces.extent(image);
    let task = Convolution {
        image: (image, extent),
        result,
        block: 2048,
        filter: 31,
    };
    (spaces, Arc::new(task))
}

fn product(nodes: u32, seed: u64) -> (Spaces, Arc<dyn Task>) {
    let mut spaces = Spaces::default();
    let (side, block) = (32768, 2048);
    let mut space = |seed| {
        matrix(
            &mut spaces,
            (side, side, 4),
            block,
            random_place(seed, nodes),
        )
    };
    let ids = [space(3 * seed), space(3 * seed + 1), space(3 * seed + 2)];
    let task = Product {
        spaces: ids,
        side,
        block,
    };
    (spaces, Arc::new(task))
}

/// Single-precision products on a Tesla M2070. Unicorn, section V: 5.1 TFLOP/s on 20 GPUs
/// would be 31 % more if all data were local, which is 0.324 of the peak.
const PRODUCT: f64 = 0.324;

/// A convolution with a filter of 31 x 31 in a kernel that uses local memory: 0.3 of the
/// peak is assumed.
const CONVOLUTION: f64 = 0.3;

/// The paper's cluster, with and without prefetching.
fn paper() {
    for computing in [Computing::Gpus, Computing::All] {
        let cluster = cluster("unicorn", computing);
        for (name, (spaces, task), efficiency, flops) in [
            ("convolution", convolution(10), CONVOLUTION, 0.0),
            ("product", product(10, 1), PRODUCT, 2.0 * 32768f64.powi(3)),
        ] {
            for spread in [
                NamedSpread::Together,
                NamedSpread::Oblivious,
                NamedSpread::Steal,
            ] {
                let at = |prefetch| {
                    let options = Options {
                        spread,
                        efficiency,
                        settings: Settings {
                            prefetch,
                            ..Settings::default()
                        },
                        ..Options::default()
                    };
                    run(&cluster, &spaces, &task, &options)
                };
                let (with, without) = (at(2), at(0));
                let moved: u64 = with.nodes.iter().map(|node| node.bytes_in).sum();
                println!(
                    "{computing:?} {name:12} {spread:10} {:.2} s, {:.2} TFLOP/s, {:.1} GB moved; without prefetching {:.2} s, {:.2} times",
                    with.seconds,
                    flops / with.seconds / 1e12,
                    moved as f64 / 1e9,
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
    let (spaces, ids) = Equal::spaces(count, 1024);
    let ideal = 20.0;
    let flops = speed(&cluster) * 1024.0 * ideal / count as f64;
    let task: Arc<dyn Task> = Arc::new(Equal {
        count,
        flops,
        spaces: ids,
    });
    for spread in NamedSpread::all() {
        let options = Options {
            spread,
            noise: 0.05,
            ..Options::default()
        };
        let begin = Instant::now();
        let report = run(&cluster, &spaces, &task, &options);
        println!(
            "{spread:10} {:.3} of ideal, copied {:.3} %, {} messages; real: {:.1} s, of which node 0 decided {:.1} s; {}",
            ideal / report.seconds,
            copied(&report) as f64 * 100.0 / count as f64,
            report.messages,
            begin.elapsed().as_secs_f64(),
            report.decided.as_secs_f64(),
            peak_memory(),
        );
    }
}

/// Products of blocks at random places, with and without regard to where they are.
fn locality() {
    for computing in [Computing::Gpus, Computing::All] {
        for bandwidth in [3.2e9, 1.25e9, 0.456e9] {
            let mut cluster = cluster("unicorn", computing);
            cluster.network.bandwidth = bandwidth;
            for seed in 1..=3 {
                let (spaces, task) = product(10, seed);
                let at = |spread| {
                    let options = Options {
                        spread,
                        efficiency: PRODUCT,
                        ..Options::default()
                    };
                    run(&cluster, &spaces, &task, &options)
                };
                let (with, without) = (at(NamedSpread::Together), at(NamedSpread::Oblivious));
                let moved = |report: &Report| report.nodes.iter().map(|n| n.bytes_in).sum::<u64>();
                println!(
                    "{computing:?} {:.2} GB/s, placement {seed}: {:.2} s, oblivious {:.2} s: {:.1} % faster; {:.1} and {:.1} GB",
                    bandwidth / 1e9,
                    with.seconds,
                    without.seconds,
                    (without.seconds / with.seconds - 1.0) * 100.0,
                    moved(&with) as f64 / 1e9,
                    moved(&without) as f64 / 1e9,
                );
            }
        }
    }
}

/// Real time to decide, beside the simulated time of the paper's convolution.
fn overhead() {
    let cluster = cluster("unicorn", Computing::All);
    let (spaces, task) = convolution(10);
    for spread in NamedSpread::all() {
        let options = Options {
            spread,
            efficiency: CONVOLUTION,
            ..Options::default()
        };
        let report = run(&cluster, &spaces, &task, &options);
        let decided = report.decided.as_secs_f64();
        println!(
            "{spread:10} 336 subtasks: {:.2} s simulated, node 0 took {:.2} ms: {:.3} %",
            report.seconds,
            decided * 1e3,
            decided / report.seconds * 100.0
        );
    }
}

fn main() {
    let figures: [(&str, fn()); 8] = [
        ("slow", slow),
        ("copies", copies),
        ("paper", paper),
        ("thousand", thousand),
        ("locality", locality),
        ("overhead", overhead),
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
