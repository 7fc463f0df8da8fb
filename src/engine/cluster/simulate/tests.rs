//! Small clusters, whose times can be computed by hand.

use super::*;
use crate::cluster::DEPTH;
use crate::codelet::{Codelet, Cost, Precision, convolution};
use crate::machine::{ClusterStore, MachineStore};
use crate::verify::Checked;
use crate::workload::cluster::program::Program;
use crate::workload::cluster::{
    Check, ClusterWorkload, Contents, ConvolutionWorkload, FftWorkload, Fill, Fit, Layout,
    LuWorkload, NewSpace, Operation, Place, Placement, Product,
};
use pdawl_core::cluster::record::NodeRecord;
use pdawl_core::cluster::space::{Block, Extent, SpaceBlock, SpaceId};
use pdawl_core::cluster::task::{Combine, Computed, SubtaskLaunch, Task};

/// Tasks of subtasks of equal cost. Each reads an element of its own, and writes another one.
#[derive(Clone)]
struct Equal {
    count: u64,
    /// Operations of a subtask.
    flops: f64,
    /// Bytes of an element.
    element: u64,
    /// Where the elements are that nodes have, one node after the other.
    cuts: Vec<u64>,
    /// By task: whether it reduces.
    tasks: Vec<bool>,
    codelet: Arc<Codelet>,
}

impl Equal {
    /// One task, of which each node has as many elements of 1000 bytes.
    fn new(count: u64, flops: f64, nodes: u64) -> Self {
        Self {
            count,
            flops,
            element: 1000,
            cuts: (0..=nodes).map(|node| count * node / nodes).collect(),
            tasks: vec![false],
            codelet: Arc::new(convolution::codelet(3, 1)),
        }
    }
}

impl ClusterWorkload for Equal {
    fn name(&self) -> &'static str {
        "equal"
    }

    fn spaces(&self) -> Vec<NewSpace> {
        let extent = Extent {
            rows: 1,
            columns: self.count,
            element: self.element,
        };
        let layout = Layout::Columns(self.cuts.clone().into());
        let contents = [Some(Contents::placed(layout, unused())), None];
        contents
            .map(|contents| NewSpace { extent, contents })
            .into()
    }

    fn tasks(&self) -> u64 {
        self.tasks.len() as u64
    }

    fn task(&self, number: u64, spaces: &[SpaceId]) -> Arc<dyn Computed> {
        Arc::new(EqualTask {
            of: self.clone(),
            reduces: self.tasks[number as usize],
            spaces: [spaces[0], spaces[1]],
        })
    }

    fn result(&self) -> usize {
        1
    }

    fn check(&self) -> Check<'_> {
        Check::Blocks(Box::new(|_, _, _| Checked::default()))
    }
}

struct EqualTask {
    of: Equal,
    reduces: bool,
    spaces: [SpaceId; 2],
}

impl EqualTask {
    fn part(&self, space: usize, element: u64) -> Vec<SpaceBlock> {
        let (space, block) = (self.spaces[space], Block::new(0..1, element..element + 1));
        vec![SpaceBlock { space, block }]
    }
}

impl Task for EqualTask {
    fn name(&self) -> &str {
        "equal"
    }

    fn count(&self) -> u64 {
        self.of.count
    }

    fn reads(&self, subtask: u64) -> Vec<SpaceBlock> {
        self.part(0, subtask)
    }

    fn writes(&self, subtask: u64) -> Vec<SpaceBlock> {
        self.part(1, if self.reduces { 0 } else { subtask })
    }

    fn cost(&self, _: u64) -> Cost {
        Cost {
            flops: self.of.flops,
            bytes: 0.0,
        }
    }

    fn reduces(&self) -> bool {
        self.reduces
    }
}

impl Computed for EqualTask {
    fn launch(&self, _: u64) -> SubtaskLaunch {
        SubtaskLaunch {
            codelet: Arc::clone(&self.of.codelet),
            units: 0..4096,
            values: Vec::new(),
        }
    }

    fn combine(&self) -> Option<Combine> {
        Some(Arc::new(|_, _| panic!("a simulation has no contents")))
    }
}

/// A machine whose host computes so many single-precision operations a second; nothing else
/// takes time.
pub fn machine(flops: f64) -> NodeMachine {
    let cost = Cost { flops, bytes: 0.0 };
    super::part::machine(cost, 1.0)
}

/// Nodes that compute so many operations a second, on a network of 1 MB/s.
fn cluster_of(nodes: usize, flops: f64, full_duplex: bool) -> Cluster {
    Cluster {
        nodes: vec![machine(flops); nodes],
        network: NetworkSpec {
            bandwidth: 1e6,
            latency_ns: 10_000,
            message_ns: 1_000,
            full_duplex,
            switch_bandwidth: None,
        },
    }
}

/// Nodes that compute an operation a second.
fn cluster(nodes: usize) -> Cluster {
    cluster_of(nodes, 1.0, true)
}

/// Two tasks, of which the second one reduces.
fn run(nodes: usize, count: u64, options: &Options) -> Report {
    let workload = Equal {
        tasks: vec![false, true],
        ..Equal::new(count, 0.1, nodes as u64)
    };
    simulate(&cluster(nodes), &workload, 1, options).unwrap()
}

fn slowed(fraction: f64, at: Nanos) -> Vec<Slowdown> {
    let node = NodeId(3);
    vec![Slowdown { node, at, fraction }]
}

#[test]
fn equal_nodes_do_equally_much_without_copies() {
    for spread in NamedSpread::all() {
        let options = Options {
            spread,
            ..Options::default()
        };
        let outcome = run(4, 100, &options).outcome;
        // Two tasks of 25 subtasks a node, of 0.1 s.
        let seconds = outcome.seconds;
        assert!((5.0..5.5).contains(&seconds), "{spread}: {seconds}");
        let copied: u64 = outcome.nodes.iter().map(|node| node.copied).sum();
        assert!(copied <= 1, "{spread}: {copied}");
        let subtasks = outcome.nodes[1].subtasks;
        assert!((49..=51).contains(&subtasks), "{spread}: {subtasks}");
        let work: f64 = outcome
            .nodes
            .iter()
            .map(|node| node.devices[0].seconds)
            .sum();
        assert!(
            (work - 20.0 - 0.1 * copied as f64).abs() < 1e-6,
            "{spread}: {work}"
        );
    }
}

#[test]
fn runs_repeat() {
    let options = Options {
        noise: Some(0.2),
        slowdowns: slowed(0.3, 1_000_000_000),
        spread: NamedSpread::Steal,
        ..Options::default()
    };
    let (one, other) = (run(4, 64, &options), run(4, 64, &options));
    assert_eq!(one, other);
    let seed = Options { seed: 2, ..options };
    assert_ne!(one.outcome.seconds, run(4, 64, &seed).outcome.seconds);
}

/// One task, and what four nodes would take that had always known the node's speed.
fn of_ideal(spread: NamedSpread, slowdowns: Vec<Slowdown>, ideal: f64) -> f64 {
    let options = Options {
        spread,
        slowdowns,
        ..Options::default()
    };
    let report = simulate(&cluster(4), &Equal::new(400, 0.1, 4), 1, &options);
    ideal / report.unwrap().outcome.seconds
}

#[test]
fn a_slow_node_does_not_delay_the_others() {
    let third = |spread| of_ideal(spread, slowed(1.0 / 3.0, 0), 40.0 / (3.0 + 1.0 / 3.0));
    assert!(third(NamedSpread::Together) > 0.95);
    assert!(third(NamedSpread::Static) < 0.45);
    // At 5 s, half is done; the rest takes 20 / 3.1 s.
    let tenth = |spread| of_ideal(spread, slowed(0.1, 5_000_000_000), 5.0 + 20.0 / 3.1);
    assert!(tenth(NamedSpread::Together) > 0.93);
    assert!(tenth(NamedSpread::Static) < 0.3);
}

#[test]
fn what_a_task_has_shown_helps_the_next_one() {
    let options = Options {
        slowdowns: slowed(0.05, 0),
        ..Options::default()
    };
    let seconds = |times| {
        let workload = Equal {
            tasks: vec![false; times],
            ..Equal::new(9, 0.1, 4)
        };
        let report = simulate(&cluster(4), &workload, 1, &options);
        report.unwrap().outcome.seconds
    };
    let (first, both) = (seconds(1), seconds(2));
    // Three nodes compute three each, and the slow one does not begin any.
    assert!(
        first > 0.33 && both - first < 0.31,
        "{first}, then {}",
        both - first
    );
}

/// Seconds of a task of 40 subtasks of 0.1 s, whose elements are at one node after the other
/// from `cuts` on, on links of so many bytes a second.
fn seconds_of_placed(spread: NamedSpread, cuts: &[u64], bandwidth: f64) -> f64 {
    let workload = Equal {
        cuts: cuts.to_vec(),
        ..Equal::new(40, 0.1, 1)
    };
    let mut cluster = cluster(2);
    cluster.network.bandwidth = bandwidth;
    let options = Options {
        spread,
        ..Options::default()
    };
    let report = simulate(&cluster, &workload, 1, &options);
    report.unwrap().outcome.seconds
}

#[test]
fn another_nodes_subtask_is_taken_only_if_it_arrives_in_time() {
    let on_first = [0, 40, 40];
    // An element takes 2 s, so that both compute 39 and 1 of them at best.
    let slow = seconds_of_placed(NamedSpread::Together, &on_first, 500.0);
    assert!((3.7..4.2).contains(&slow), "{slow}");
    let fast = seconds_of_placed(NamedSpread::Together, &on_first, 1e6);
    assert!((2.0..2.2).contains(&fast), "{fast}");
    let equal = seconds_of_placed(NamedSpread::Static, &on_first, 500.0);
    assert!(equal > 40.0, "{equal}");
}

#[test]
fn what_others_have_arrives_while_a_node_computes_its_own() {
    // The first node computes 20, of which it has 10. The others take 0.2 s each.
    let seconds = seconds_of_placed(NamedSpread::Static, &[0, 10, 40], 5_000.0);
    assert!((2.1..2.3).contains(&seconds), "{seconds}");
}

/// A node with a device separate from the host's memory: data travel over the link while others
/// compute, once.
#[test]
fn copies_overlap_kernels() {
    let text = include_str!("../../../../datasets/machines/k40.toml");
    let file = Arc::new(MachineFile::parse(text, "k40").unwrap());
    let link = file.devices[0].link.clone().unwrap();
    let (flops, latency) = (
        file.devices[0].flops_f32.unwrap(),
        link.latency_ns as f64 * 1e-9,
    );
    let count = 100;
    let seconds = |kernel: f64, element: u64| {
        let workload = Equal {
            element,
            ..Equal::new(count, kernel * flops, 1)
        };
        let cluster = Cluster {
            nodes: vec![NodeMachine::new(Arc::clone(&file), Computing::Gpus)],
            network: cluster(1).network,
        };
        let report = simulate(&cluster, &workload, 1, &Options::default()).unwrap();
        let busiest = report.busiest.unwrap();
        (
            report.outcome.seconds,
            busiest.share * report.outcome.seconds,
        )
    };
    // Kernels take longer than copies: the first copy in and the last one out are all that is
    // added, and what launches cost.
    let bytes = 10_300_000;
    let copy = bytes as f64 / link.h2d + latency;
    let (long, busy) = seconds(10e-3, bytes);
    assert!((busy - 1.0).abs() < 1e-6, "{busy}");
    let least = 1.0 + 2.0 * copy;
    assert!((least..least + 0.01).contains(&long), "{long} and {least}");
    // Copies take longer: both ways at once, each at what the link gives then.
    let (short, _) = seconds(1e-6, bytes);
    let both = count as f64 * bytes as f64 / link.both_ways;
    assert!((both..1.1 * both).contains(&short), "{short} and {both}");
}

/// Two nodes, each with a GPU a hundred times as fast as its host, halve the time of one from
/// the first subtask on, whatever part of its rate the GPU reaches.
#[test]
fn two_nodes_with_fast_gpus_halve_the_time_of_one() {
    let text = include_str!("../../../../datasets/machines/h200.toml");
    let mut file = MachineFile::parse(text, "h200").unwrap();
    let flops = file.devices[0].flops_f32.unwrap();
    // The host's rate is that of doubles.
    file.host.flops = Some(flops / 200.0);
    let machine = NodeMachine::new(Arc::new(file), Computing::All);
    let network = cluster(2).network;
    for (count, kernel, part) in [
        (100, 0.3e-3, 1.0),
        (250, 0.3e-3, 1.0),
        (250, 0.3e-3, 0.2),
        (250, 20e-3, 1.0),
        (2000, 0.3e-3, 0.5),
    ] {
        let outcome = |nodes: usize| {
            let cluster = Cluster {
                nodes: vec![machine.clone(); nodes],
                network: network.clone(),
            };
            let workload = Equal::new(count, kernel * flops, nodes as u64);
            let slowdowns = (0..nodes as u32).map(|node| Slowdown {
                node: NodeId(node),
                at: 0,
                fraction: part,
            });
            let options = Options {
                slowdowns: slowdowns.collect(),
                ..Options::default()
            };
            let report = simulate(&cluster, &workload, 1, &options);
            report.unwrap().outcome
        };
        let (one, two) = (outcome(1), outcome(2));
        // At the end one GPU has as much at once as it may, and the other one nothing; a
        // subtask more belongs to neither half. The first ones come with a message, and those
        // that move with two.
        let subtask = one.seconds / count as f64;
        let messages = 3.0 * (network.latency_ns + 2 * network.message_ns) as f64 * 1e-9;
        let most = one.seconds / 2.0 + f64::from(DEPTH + 1) * subtask + messages;
        assert!(
            two.seconds <= most,
            "{count} of {kernel} s: {} and {}",
            two.seconds,
            one.seconds
        );
        for node in &two.nodes {
            let by_gpu = node.devices[1].subtasks as f64;
            let half = count as f64 / 2.0;
            assert!(by_gpu >= 0.9 * half, "{count} of {kernel} s: {by_gpu}");
        }
    }
}

#[test]
fn nodes_that_are_not_there_are_named() {
    let options = Options {
        slowdowns: slowed(0.5, 0),
        ..Options::default()
    };
    let error = simulate(&cluster(2), &Equal::new(1, 1.0, 1), 1, &options).unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is no node 3 to slow: the cluster has 2 nodes, 0 to 1"
    );
}

/// Contents that nobody may ask for.
fn unused() -> Fill {
    Arc::new(|_: &Block, _: &mut [u8]| panic!("a simulation needs no contents"))
}

fn matmul(size: u64, tile: u64, placement: Placement) -> Program {
    let product = Product {
        rows: size,
        columns: size,
        depth: size,
        precision: Precision::F32.into(),
        a: unused(),
        b: unused(),
    };
    product.in_blocks(tile, placement)
}

fn fft() -> Program {
    let fft = FftWorkload {
        rows: 64,
        columns: 64,
        precision: Precision::F32,
        placement: Placement::Rows,
        matrix: unused(),
    };
    fft.program(4)
}

fn workloads() -> Vec<(Program, u64)> {
    let lu = LuWorkload {
        size: 50,
        tile: 8,
        precision: Precision::F64,
        by_columns: false,
        placement: Placement::ColumnCyclic,
        matrix: unused(),
    };
    let convolution = ConvolutionWorkload {
        rows: 70,
        columns: 50,
        channels: 2,
        size: 5,
        placement: Placement::Random { seed: 3 },
        image: unused(),
        filter: unused(),
    };
    vec![
        (matmul(60, 16, Placement::RowCyclic), 16),
        (fft(), 4),
        (lu.program(), 8),
        (convolution.program(12), 12),
    ]
}

#[test]
fn every_subtask_of_every_task_counts_once() {
    for spread in NamedSpread::all() {
        for (workload, tile) in workloads() {
            let options = Options {
                spread,
                noise: Some(0.1),
                ..Options::default()
            };
            let cluster = cluster_of(3, 1e6, true);
            let report = simulate(&cluster, &workload, tile, &options).unwrap();
            let spaces = workload.spaces().len() as u32;
            let ids: Vec<_> = (0..spaces).map(SpaceId).collect();
            let tasks = (0..workload.tasks()).map(|number| workload.task(number, &ids));
            let all: u64 = tasks.map(|task| task.count()).sum();
            let outcome = report.outcome;
            let sum = |of: fn(&NodeRecord) -> u64| -> u64 { outcome.nodes.iter().map(of).sum() };
            let name = workload.name();
            assert_eq!(sum(|node| node.subtasks), all, "{name}, {spread}");
            let computed = sum(|node| node.devices[0].subtasks);
            assert!(
                computed <= all + sum(|node| node.copied),
                "{name}, {spread}"
            );
            assert_eq!(sum(|node| node.sent_bytes), sum(|node| node.received_bytes));
            for node in &outcome.nodes {
                let both = node.busy_seconds + node.idle_seconds;
                assert!(
                    (both / outcome.seconds - 1.0).abs() < 1e-9,
                    "{name}: {both}"
                );
            }
        }
    }
}

#[test]
fn a_task_finds_data_where_the_task_before_left_them() {
    let options = Options {
        spread: NamedSpread::Static,
        ..Options::default()
    };
    let report = simulate(&cluster_of(4, 1e6, true), &fft(), 4, &options).unwrap();
    // Each node has a quarter of the rows, transforms them, and needs a quarter of the
    // columns, of which it has a quarter.
    for node in &report.outcome.nodes {
        assert_eq!(
            (node.subtasks, node.received_bytes),
            (8, 64 * 64 * 8 / 4 * 3 / 4)
        );
    }
}

#[test]
fn matrices_need_no_memory() {
    // Each of the three matrices has 4 TiB.
    let workload = matmul(1 << 20, 1 << 17, Placement::Rows);
    let cluster = cluster_of(2, 1e15, true);
    let report = simulate(&cluster, &workload, 1 << 17, &Options::default());
    assert!(report.unwrap().outcome.seconds > 1000.0);
}

#[test]
fn the_busiest_part_limits_the_run() {
    let busiest = |cluster: &Cluster, placement| {
        let workload = matmul(64, 16, placement);
        // Others fetch whatever it costs.
        let options = Options {
            spread: NamedSpread::Static,
            ..Options::default()
        };
        let report = simulate(cluster, &workload, 16, &options);
        report.unwrap().busiest.unwrap()
    };
    let slow = busiest(&cluster_of(2, 1e4, true), Placement::Rows);
    assert_eq!(slow.resource, Resource::Device(0, "host".to_owned()));
    assert!(slow.share > 0.9, "{}", slow.share);
    // All others fetch what node 0 has.
    let fast = busiest(&cluster_of(4, 1e12, true), Placement::Central);
    assert_eq!(fast.resource, Resource::LinkOut(0));
    assert!(fast.share > 0.5 && fast.share <= 1.0, "{}", fast.share);
    // All links are of two directions, and both of them count.
    let mut switched = cluster_of(4, 1e12, true);
    switched.network.switch_bandwidth = Some(1e5);
    let switched = busiest(&switched, Placement::Central);
    assert_eq!(switched.resource, Resource::Switch);
    let half = busiest(&cluster_of(4, 1e12, false), Placement::Central);
    assert_eq!(half.resource, Resource::LinkOut(0));
}

#[test]
fn nodes_tell_what_their_machine_file_says() {
    let file = Arc::new(MachineStore::at("/nonexistent").find("m2070x2").unwrap());
    let names = |computing| -> Vec<String> {
        let machine = NodeMachine::new(Arc::clone(&file), computing);
        machine.infos().into_iter().map(|info| info.name).collect()
    };
    assert_eq!(names(Computing::All), ["host", "gpu0", "gpu1"]);
    assert_eq!(names(Computing::Gpus), ["gpu0", "gpu1"]);
    assert_eq!(names(Computing::Host), ["host"]);
    let infos = NodeMachine::new(Arc::clone(&file), Computing::All).infos();
    // Of single precision; the host's is twice that of doubles.
    assert_eq!((infos[0].flops, infos[1].flops), (256e9, 1030e9));
    assert_eq!((infos[0].depth, infos[1].depth), (1, DEPTH));
    assert_eq!(infos[0].link_bandwidth, f64::INFINITY);
    assert_eq!(infos[1].link_bandwidth, 4.6e9);
    assert_eq!(infos[1].memory_bandwidth, 115e9);
}

#[test]
fn things_happen_by_time_then_by_plan() {
    let mut events = Events::default();
    events.plan(50, 1, SimulatedEvent::Begin);
    events.plan(50, 2, SimulatedEvent::Begin);
    events.plan(70, 3, SimulatedEvent::Slowed(0.5));
    events.plan(40, 4, SimulatedEvent::Begin);
    assert_eq!(events.next_at(), Some(40));
    let seen: Vec<_> = std::iter::from_fn(|| events.next())
        .map(|(at, node, _)| (at, node))
        .collect();
    assert_eq!(seen, [(40, 4), (50, 1), (50, 2), (70, 3)]);
    assert_eq!(events.next_at(), None);
}

/// Operations, small and large, and what computes them.
fn operations() -> Vec<(Operation, Computing)> {
    let convolution = ConvolutionWorkload {
        rows: 4096,
        columns: 4096,
        channels: 1,
        size: 15,
        placement: Placement::Rows,
        image: unused(),
        filter: unused(),
    };
    let of_size = |size: u64| {
        let product = Product {
            rows: size,
            columns: size,
            depth: size,
            precision: Precision::F32.into(),
            a: unused(),
            b: unused(),
        };
        let fft = FftWorkload {
            rows: size,
            columns: size,
            precision: Precision::F32,
            placement: Placement::Rows,
            matrix: unused(),
        };
        [
            (product.operation(Placement::Grid), Computing::All),
            (fft.operation(), Computing::Host),
            (
                LuWorkload::operation(size, Precision::F32, Placement::Grid, unused()),
                Computing::All,
            ),
        ]
    };
    let all = [1024, 8192].into_iter().flat_map(of_size);
    all.chain([(convolution.operation(512), Computing::All)])
        .collect()
}

/// Seconds of an operation on a number of nodes of which some take part.
fn on_part(cluster: &Cluster, operation: &Operation, part: usize) -> f64 {
    let infos = &cluster.infos()[..part];
    let place = Place::Nodes(Fit::new(infos, cluster.assumed()));
    let placed = operation.at(place, None).unwrap();
    let options = Options {
        part: Some(part),
        ..Options::default()
    };
    let report = simulate(cluster, &*placed.workload, placed.tile, &options).unwrap();
    let without = &report.outcome.nodes[part..];
    assert!(without.iter().all(|node| node.subtasks == 0));
    report.outcome.seconds
}

/// A transform that one node computes fastest needs two where one has no memory for it.
#[test]
fn nodes_that_have_no_memory_for_an_operation_do_not_compute_it_alone() {
    let store = MachineStore::of_user();
    let file = ClusterStore::of_user().find("unicorn").unwrap();
    let cluster = Cluster::of(&file, &store, Computing::Host).unwrap();
    let (operation, _) = operations().remove(4);
    let of_policy = |memory: u128, spread| {
        let mut infos = cluster.infos();
        infos
            .iter_mut()
            .for_each(|node| node.memory = memory as u64);
        let nodes = (infos.as_slice(), cluster.assumed());
        taking_part(&operation, None, nodes, spread).unwrap().count
    };
    let count = |memory| of_policy(memory, NamedSpread::default());
    assert_eq!(count(operation.bytes), 1);
    assert!(count(operation.bytes - 1) > 1);
    assert_eq!(count(0), 10);
    assert_eq!(of_policy(operation.bytes, NamedSpread::Static), 10);
}

/// The estimate knows large parts, and one device a node.
#[test]
fn operations_begin_on_as_many_nodes_as_are_fastest() {
    let store = MachineStore::of_user();
    let clusters = ClusterStore::of_user();
    let mut ratios = Vec::new();
    for name in ["unicorn", "four"] {
        let file = clusters.find(name).unwrap().with_nodes(4).unwrap();
        for (operation, computing) in operations() {
            let cluster = Cluster::of(&file, &store, computing).unwrap();
            let infos = cluster.infos();
            let nodes = (infos.as_slice(), cluster.assumed());
            let part = taking_part(&operation, None, nodes, NamedSpread::default());
            let count = part.unwrap().count;
            let [of_part, least] = [vec![count], vec![1, 2, 4]].map(|counts| {
                let seconds = counts.into_iter();
                let seconds = seconds.map(|count| on_part(&cluster, &operation, count));
                seconds.fold(f64::INFINITY, f64::min)
            });
            let ratio = of_part / least;
            println!("{name} {} {count} nodes {ratio:.3}", operation.title);
            ratios.push(ratio);
        }
    }
    assert!(ratios.iter().all(|ratio| *ratio < 1.35), "{ratios:?}");
    let near = ratios.iter().filter(|ratio| **ratio < 1.02).count();
    assert!(4 * near >= 3 * ratios.len(), "{ratios:?}");
}
