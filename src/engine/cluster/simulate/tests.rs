//! Small clusters, whose times can be computed by hand.

use std::collections::BTreeMap;
use std::ops::Range;

use super::*;
use crate::cluster::DEPTH;
use crate::codelet::Cost;
use crate::machine::MachineFile;
use crate::machine::file::{FORMAT, HostSpec, Noise};
use pdawl_core::cluster::space::{Block, Extent, SpaceBlock, SpaceId};

/// Subtasks of equal cost. Each reads and writes an element of its own.
struct Equal {
    count: u64,
    seconds: f64,
    reduces: bool,
    space: SpaceId,
}

impl Task for Equal {
    fn name(&self) -> &str {
        "equal"
    }

    fn count(&self) -> u64 {
        self.count
    }

    fn reads(&self, subtask: u64) -> Vec<SpaceBlock> {
        let (space, block) = (self.space, Block::new(0..1, subtask..subtask + 1));
        vec![SpaceBlock { space, block }]
    }

    fn writes(&self, subtask: u64) -> Vec<SpaceBlock> {
        let element = if self.reduces { 0 } else { subtask };
        let (space, block) = (self.space, Block::new(1..2, element..element + 1));
        vec![SpaceBlock { space, block }]
    }

    fn cost(&self, _: u64) -> Cost {
        Cost {
            flops: self.seconds,
            bytes: 0.0,
        }
    }

    fn reduces(&self) -> bool {
        self.reduces
    }
}

/// A machine whose host computes so many single-precision operations a second; nothing else
/// takes time.
pub fn machine(flops: f64) -> NodeMachine {
    let host = HostSpec {
        model: "none".to_owned(),
        sockets: 1,
        cores: 1,
        clock_mhz: None,
        l2: None,
        l3: None,
        memory: u64::MAX,
        memory_bandwidth: 1e30,
        shared_bandwidth: None,
        core_bandwidth: 1e30,
        bus_bandwidth: None,
        flops: Some(flops / 2.0),
        launch_overhead_ns: 0,
        completion_latency_ns: 0,
        efficiency: BTreeMap::new(),
    };
    let file = MachineFile {
        format: FORMAT.to_owned(),
        name: "one".to_owned(),
        title: String::new(),
        description: String::new(),
        fingerprint: None,
        host,
        devices: Vec::new(),
        peers: Vec::new(),
        noise: Noise::default(),
        source: BTreeMap::new(),
    };
    NodeMachine::new(Arc::new(file), Computing::Host)
}

/// Nodes that compute an operation a second, on a network of 1 MB/s.
fn cluster(nodes: usize) -> Cluster {
    Cluster {
        nodes: vec![machine(1.0); nodes],
        network: NetworkSpec {
            bandwidth: 1e6,
            latency_ns: 10_000,
            message_ns: 1_000,
            full_duplex: true,
            switch_bandwidth: None,
        },
    }
}

/// The tasks' space, an element of 1000 bytes for each subtask, of which each node has as
/// many.
fn spaces(count: u64, nodes: u64) -> (Spaces, SpaceId) {
    let part = |node: u64| count * node / nodes..count * (node + 1) / nodes;
    let parts = (0..nodes).map(|node| (part(node), NodeId(node as u32)));
    placed(count, &parts.collect::<Vec<_>>())
}

/// The tasks' space, with these elements on these nodes.
fn placed(count: u64, parts: &[(Range<u64>, NodeId)]) -> (Spaces, SpaceId) {
    let mut spaces = Spaces::default();
    let extent = Extent {
        rows: 2,
        columns: count,
        element: 1000,
    };
    let block = |part: &Range<u64>| Block::new(0..1, part.clone());
    let placement = parts.iter().map(|(part, node)| (block(part), *node));
    let space = spaces.add(extent, placement);
    (spaces, space)
}

fn run(nodes: usize, count: u64, options: &Options) -> Report {
    let (spaces, space) = spaces(count, nodes as u64);
    let task = |reduces| -> Arc<dyn Task> {
        Arc::new(Equal {
            count,
            seconds: 0.1,
            reduces,
            space,
        })
    };
    let report = simulate(
        &cluster(nodes),
        &spaces,
        &[task(false), task(true)],
        options,
    );
    report.unwrap()
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
        let report = run(4, 100, &options);
        // Two tasks of 25 subtasks a node, of 0.1 s.
        assert!(
            (5.0..5.5).contains(&report.seconds),
            "{spread}: {}",
            report.seconds
        );
        let copied: u64 = report.nodes.iter().map(|node| node.counts.copied).sum();
        assert!(copied <= 1, "{spread}: {copied}");
        let subtasks = report.nodes[1].counts.subtasks;
        assert!((49..=51).contains(&subtasks), "{spread}: {subtasks}");
        let work: f64 = report.nodes.iter().map(|node| node.busy).sum();
        assert!(
            (work - 20.0 - 0.1 * copied as f64).abs() < 1e-6,
            "{spread}: {work}"
        );
    }
}

#[test]
fn runs_repeat() {
    let options = Options {
        noise: 0.2,
        slowdowns: slowed(0.3, 1_000_000_000),
        spread: NamedSpread::Steal,
        ..Options::default()
    };
    let (one, other) = (run(4, 64, &options), run(4, 64, &options));
    assert_eq!((one.seconds, &one.nodes), (other.seconds, &other.nodes));
    let seed = Options { seed: 2, ..options };
    assert_ne!(one.seconds, run(4, 64, &seed).seconds);
}

/// One task, and what four nodes would take that had always known the node's speed.
fn of_ideal(spread: NamedSpread, slowdowns: Vec<Slowdown>, ideal: f64) -> f64 {
    let (spaces, space) = spaces(400, 4);
    let task: Arc<dyn Task> = Arc::new(Equal {
        count: 400,
        seconds: 0.1,
        reduces: false,
        space,
    });
    let options = Options {
        spread,
        slowdowns,
        ..Options::default()
    };
    ideal
        / simulate(&cluster(4), &spaces, &[task], &options)
            .unwrap()
            .seconds
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
    let (spaces, space) = spaces(9, 4);
    let task: Arc<dyn Task> = Arc::new(Equal {
        count: 9,
        seconds: 0.1,
        reduces: false,
        space,
    });
    let options = Options {
        slowdowns: slowed(0.05, 0),
        ..Options::default()
    };
    let seconds = |times| {
        let tasks = vec![Arc::clone(&task); times];
        simulate(&cluster(4), &spaces, &tasks, &options)
            .unwrap()
            .seconds
    };
    let (first, both) = (seconds(1), seconds(2));
    // Three nodes compute three each, and the slow one does not begin any.
    assert!(
        first > 0.33 && both - first < 0.31,
        "{first}, then {}",
        both - first
    );
}

/// Seconds of a task of 40 subtasks of 0.1 s whose elements are where `parts` say, on links
/// of so many bytes a second.
fn seconds_of_placed(spread: NamedSpread, parts: &[(Range<u64>, NodeId)], bandwidth: f64) -> f64 {
    let (spaces, space) = placed(40, parts);
    let task: Arc<dyn Task> = Arc::new(Equal {
        count: 40,
        seconds: 0.1,
        reduces: false,
        space,
    });
    let nodes = parts.iter().map(|(_, node)| node.index() + 1).max();
    let mut cluster = cluster(nodes.unwrap_or(1).max(2));
    cluster.network.bandwidth = bandwidth;
    let options = Options {
        spread,
        ..Options::default()
    };
    let report = simulate(&cluster, &spaces, &[task], &options);
    report.unwrap().seconds
}

#[test]
fn another_nodes_subtask_is_taken_only_if_it_arrives_in_time() {
    let on_first = [(0..40, NodeId(0))];
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
    let parts = [(0..10, NodeId(0)), (10..40, NodeId(1))];
    let seconds = seconds_of_placed(NamedSpread::Static, &parts, 5_000.0);
    assert!((2.1..2.3).contains(&seconds), "{seconds}");
}

#[test]
fn a_lost_node_is_replaced() {
    let losses = vec![Loss {
        node: NodeId(2),
        at: 1_000_000_000,
    }];
    for spread in NamedSpread::all() {
        let options = Options {
            spread,
            losses: losses.clone(),
            ..Options::default()
        };
        let report = run(4, 100, &options);
        assert_eq!(report.nodes[2].counts.subtasks, 0, "{spread}");
        assert!(report.seconds > 6.0, "{spread}: {}", report.seconds);
    }
    let first = Options {
        losses: vec![Loss {
            node: NodeId(0),
            at: 1_000_000_000,
        }],
        ..Options::default()
    };
    let (spaces, space) = spaces(10, 2);
    let task: Arc<dyn Task> = Arc::new(Equal {
        count: 10,
        seconds: 1.0,
        reduces: false,
        space,
    });
    let error = simulate(&cluster(2), &spaces, &[task], &first).unwrap_err();
    assert!(error.to_string().contains("node 0 was lost"), "{error}");
}

/// A node with a device separate from the host's memory: a subtask's data travel over the link,
/// while others compute, and both ways share it.
#[test]
fn copies_share_the_link_and_overlap_kernels() {
    let text = include_str!("../../../../datasets/machines/k40.toml");
    let file = Arc::new(MachineFile::parse(text, "k40").unwrap());
    let link = file.devices[0].link.clone().unwrap();
    let (flops, latency) = (
        file.devices[0].flops_f32.unwrap(),
        link.latency_ns as f64 * 1e-9,
    );
    let count = 100;
    let seconds = |kernel: f64, bytes: u64| {
        let mut spaces = Spaces::default();
        let extent = Extent {
            rows: 2,
            columns: count,
            element: bytes,
        };
        let space = spaces.add(extent, [(Block::new(0..1, 0..count), NodeId::FIRST)]);
        let task: Arc<dyn Task> = Arc::new(Equal {
            count,
            seconds: kernel * flops,
            reduces: false,
            space,
        });
        let cluster = Cluster {
            nodes: vec![NodeMachine::new(Arc::clone(&file), Computing::Gpus)],
            network: cluster(1).network,
        };
        let report = simulate(&cluster, &spaces, &[task], &Options::default()).unwrap();
        (report.seconds, report.nodes[0].busy)
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
    for (count, kernel, efficiency) in [
        (100, 0.3e-3, 1.0),
        (250, 0.3e-3, 1.0),
        (250, 0.3e-3, 0.2),
        (250, 20e-3, 1.0),
        (2000, 0.3e-3, 0.5),
    ] {
        let report = |nodes: usize| {
            let (spaces, space) = spaces(count, nodes as u64);
            let task: Arc<dyn Task> = Arc::new(Equal {
                count,
                seconds: kernel * flops,
                reduces: false,
                space,
            });
            let cluster = Cluster {
                nodes: vec![machine.clone(); nodes],
                network: network.clone(),
            };
            let options = Options {
                efficiency,
                ..Options::default()
            };
            simulate(&cluster, &spaces, &[task], &options).unwrap()
        };
        let (one, two) = (report(1), report(2));
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
    let error = simulate(&cluster(2), &Spaces::default(), &[], &options).unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is no node 3 to slow: the cluster has 2 nodes, 0 to 1"
    );
}
