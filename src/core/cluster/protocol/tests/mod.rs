//! Random tasks on random clusters, where messages and devices take random times, and nodes
//! are killed and stopped.

mod check;
mod driver;
mod mistaken;
mod seen;
mod turns;
mod world;

use std::sync::Arc;

use crate::cluster::NodeId;
use crate::cluster::info::{DeviceInfo, NodeInfo};
use crate::cluster::protocol::{Action, Event, Message, NodeMachine, Settings};
use crate::cluster::space::{Block, Extent, SpaceBlock, SpaceId, Spaces};
use crate::cluster::task::Task;
use crate::codelet::Cost;
use crate::parallel;
use crate::spread::{NamedSpread, Spread};
use mistaken::Mistaken;
use seen::{Faults, Seen};
use world::World;

/// The sides of all spaces.
pub(super) const SIDE: u64 = 6;

/// A task that reads random blocks and writes the elements of one space, or reduces to
/// one element.
pub(super) struct RandomTask {
    reads: Vec<Vec<SpaceBlock>>,
    writes: Vec<Vec<SpaceBlock>>,
    costs: Vec<f64>,
    reduces: bool,
}

impl Task for RandomTask {
    fn name(&self) -> &str {
        "random"
    }

    fn count(&self) -> u64 {
        self.reads.len() as u64
    }

    fn reads(&self, subtask: u64) -> Vec<SpaceBlock> {
        self.reads[subtask as usize].clone()
    }

    fn writes(&self, subtask: u64) -> Vec<SpaceBlock> {
        self.writes[subtask as usize].clone()
    }

    fn cost(&self, subtask: u64) -> Cost {
        Cost {
            flops: self.costs[subtask as usize],
            bytes: 0.0,
        }
    }

    fn reduces(&self) -> bool {
        self.reduces
    }
}

fn random_block(random: &mut fastrand::Rng) -> Block {
    let mut range = || {
        let begin = random.u64(..SIDE);
        begin..random.u64(begin..=SIDE)
    };
    Block::new(range(), range())
}

fn random_task(spaces: u32, random: &mut fastrand::Rng) -> RandomTask {
    let reduces = random.u32(..3) == 0;
    let space = SpaceId(random.u32(..spaces));
    // Runs of elements divide the space among the subtasks.
    let pieces = random.u64(1..=SIDE);
    let mut writes = Vec::new();
    for row in 0..SIDE {
        let columns = (0..pieces).map(|piece| SIDE * piece / pieces..SIDE * (piece + 1) / pieces);
        for columns in columns {
            let block = match reduces {
                true => Block::new(0..1, 0..1),
                false => Block::new(row..row + 1, columns),
            };
            writes.push(vec![SpaceBlock { space, block }]);
        }
    }
    writes.truncate(random.usize(..=writes.len()));
    // Where subtasks read little, others may begin before all of a task have ended.
    let reads_little = random.bool();
    let any = |random: &mut fastrand::Rng| SpaceBlock {
        space: SpaceId(random.u32(..spaces)),
        block: match reads_little {
            true => {
                let (row, column) = (random.u64(..SIDE), random.u64(..SIDE));
                Block::new(row..row + 1, column..(column + 2).min(SIDE))
            }
            false => random_block(random),
        },
    };
    // What many subtasks read, nodes send on to each other.
    let common = [any(random), any(random)];
    let read = |random: &mut fastrand::Rng| match random.u32(..3) {
        choice @ 0..2 => common[choice as usize].clone(),
        _ => any(random),
    };
    let reads = writes
        .iter()
        .map(|_| (0..random.u32(..4)).map(|_| read(random)).collect());
    let reads = reads.collect();
    let costs = writes.iter().map(|_| 1e6 * (0.5 + random.f64()));
    RandomTask {
        reads,
        costs: costs.collect(),
        writes,
        reduces,
    }
}

fn random_node(random: &mut fastrand::Rng) -> NodeInfo {
    let device = |random: &mut fastrand::Rng| DeviceInfo {
        name: "device".into(),
        flops: 1e9 * 10f64.powf(random.f64() * 1.5),
        memory_bandwidth: 1e10,
        link_bandwidth: f64::INFINITY,
        depth: random.u32(1..=2),
    };
    NodeInfo {
        name: "node".into(),
        devices: (0..random.u32(1..=3)).map(|_| device(random)).collect(),
        memory: 1 << 34,
    }
}

/// A random cluster with random tasks.
fn random_world(spread: Box<dyn Spread>, faults: Faults, seed: u64) -> World {
    let mut random = fastrand::Rng::with_seed(seed);
    let nodes: Vec<_> = (0..random.u32(1..=8))
        .map(|_| random_node(&mut random))
        .collect();
    let count = nodes.len() as u32;
    let mut spaces = Spaces::default();
    let extent = Extent {
        rows: SIDE,
        columns: SIDE,
        element: 8,
    };
    let number = random.u32(1..=3);
    for _ in 0..number {
        let blocks =
            (0..random.u32(1..6)).map(|_| (random_block(&mut random), NodeId(random.u32(..count))));
        let blocks: Vec<_> = blocks.collect();
        spaces.add(extent, blocks);
    }
    let tasks = (0..random.u32(1..=6)).map(|_| Arc::new(random_task(number, &mut random)));
    let tasks = tasks.collect();
    World::new(nodes, (spaces, number), tasks, spread, faults, random)
}

fn run_all(spread: NamedSpread, faults: Faults, seeds: std::ops::Range<u64>) -> Seen {
    let run = |seed| match random_world(spread.spread(1), faults, seed).run() {
        Ok(seen) => seen,
        Err(why) => panic!("{spread}, seed {seed}: {why}"),
    };
    let seen = parallel::map(seeds.collect(), run);
    seen.into_iter().fold(Seen::default(), Seen::and)
}

#[test]
fn tasks_end_with_the_right_results() {
    for spread in NamedSpread::all() {
        let seen = run_all(spread, Faults::default(), 0..150);
        assert!(
            seen.fetches > 500 && seen.combined > 20 && seen.relays > 5,
            "{spread}: {seen:?}"
        );
        let helps = spread != NamedSpread::Static;
        assert!(
            !helps || seen.discards > 10 && seen.revoked > 10,
            "{spread}: {seen:?}"
        );
        let looks_ahead = matches!(spread, NamedSpread::Together | NamedSpread::Oblivious);
        assert_eq!(looks_ahead, seen.ahead > 0, "{spread}: {seen:?}");
        assert!(!looks_ahead || seen.ahead > 500, "{spread}: {seen:?}");
    }
}

#[test]
fn nodes_may_be_lost_at_any_moment() {
    let faults = Faults {
        nodes: 0.4,
        ..Faults::default()
    };
    for spread in NamedSpread::all() {
        let seen = run_all(spread, faults, 1000..1250);
        assert!(
            seen.losses > 100 && seen.restarts > 100,
            "{spread}: {seen:?}"
        );
    }
}

/// Ten thousand schedules: kills and stops of any node, the first one included, at any of its
/// messages. All nodes come to one verdict, a result is right, and a run ends without one only
/// if the first node was struck, or a node before all had joined.
#[test]
fn whatever_befalls_nodes_all_come_to_one_verdict() {
    let mut all = Seen::default();
    for (any, spread) in [1, 2, 3].into_iter().cycle().zip(NamedSpread::all()) {
        let faults = Faults {
            any,
            ..Faults::default()
        };
        all = all.and(run_all(spread, faults, 10_000..12_500));
    }
    assert_eq!(all.right + all.ended, 10_000, "{all:?}");
    assert!(all.right > 5000 && all.ended > 1000, "{all:?}");
    assert!(all.restarts > 1000 && all.excluded > 1000, "{all:?}");
    assert!(all.relays > 200 && all.not_here > 0, "{all:?}");
}

/// A policy that breaks rules now and then costs attempts; one that breaks them always ends
/// the run, at all nodes.
#[test]
fn a_mistake_of_a_policy_begins_the_tasks_anew() {
    let run = |mistakes, seed| {
        let spread = Box::new(Mistaken::new(NamedSpread::default().spread(1), mistakes));
        match random_world(spread, Faults::default(), seed).run() {
            Ok(seen) => Ok(seen),
            Err(why) if why.contains("have begun anew") => Err(why),
            Err(why) => panic!("seed {seed}: {why}"),
        }
    };
    let seen = (0..50).map(|seed| run(2, seed).unwrap());
    let seen = seen.fold(Seen::default(), Seen::and);
    assert_eq!(seen.right, 50);
    assert!(seen.restarts > 50, "{seen:?}");
    assert!((0..50).filter(|seed| run(100, *seed).is_err()).count() > 25);
}

/// Attempts have equal numbers at all nodes, also where a node learns of two losses at
/// once.
#[test]
fn each_restart_that_is_reported_counts() {
    let info = random_node(&mut fastrand::Rng::with_seed(1));
    let settings = Settings::default();
    let mut machine = NodeMachine::new(NodeId(1), 4, "test".to_owned(), info, settings, None);
    for (restarts, node) in (0..).zip([NodeId(2), NodeId(3)]) {
        assert_eq!(machine.restarts(), restarts);
        let message = Message::Lost {
            node,
            successor: NodeId::FIRST,
            restart: true,
        };
        let from = NodeId::FIRST;
        let event = Event::Message { from, message };
        machine.on(event, 0, &Spaces::default(), &mut Vec::new());
    }
    assert_eq!(machine.restarts(), 2);
}

#[test]
fn devices_may_fail_at_any_moment() {
    let faults = Faults {
        nodes: 0.15,
        devices: 0.3,
        any: 0,
    };
    for spread in NamedSpread::all() {
        let seen = run_all(spread, faults, 2000..2250);
        assert!(seen.losses > 20 && seen.revoked > 20, "{spread}: {seen:?}");
    }
}

#[test]
fn the_first_node_alone_says_why_a_run_does_not_begin() {
    let lost = |me: u32| {
        let info = random_node(&mut fastrand::Rng::with_seed(1));
        let spread = (me == 0).then(|| NamedSpread::default().spread(1));
        let (me, settings) = (NodeId(me), Settings::default());
        let mut machine = NodeMachine::new(me, 4, "test".to_owned(), info, settings, spread);
        let mut actions = Vec::new();
        let event = Event::NodeLost { node: NodeId(1) };
        machine.on(event, 0, &Spaces::default(), &mut actions);
        actions
    };
    // Node 1 may have ended since node 3 has told why it cannot go on.
    let (to, message) = (NodeId::FIRST, Message::Unreachable { node: NodeId(1) });
    assert_eq!(lost(2), [Action::Send { to, message }]);
    let first = lost(0);
    assert!(
        matches!(&first[..], [Action::Fail { why }] if why.contains("before the run began")),
        "{first:?}"
    );
}
