//! On how many nodes an operation is expected to end first.
//!
//! Each number of nodes is simulated, with the protocol and the policy that decide in a run, but in
//! parts so large that this takes little beside the run. A node is one device here, as fast as all
//! of its own together, among which such parts would not divide evenly.

use std::collections::BTreeMap;
use std::iter::successors;
use std::sync::Arc;

use super::{Cluster, Computing, NodeMachine, Options, simulate};
use crate::balance::parts::fewest;
use crate::codelet::Cost;
use crate::machine::MachineFile;
use crate::machine::cluster::NetworkSpec;
use crate::machine::file::{FORMAT, HostSpec, Noise};
use crate::spread::{NamedSpread, Network};
use crate::workload::cluster::{
    ClusterWorkload, Fit, Operation, OperationError, Place, Placed, demand,
};
use pdawl_core::cluster::info::NodeInfo;
use pdawl_core::cluster::space::SpaceId;

/// Subtasks of a task for each node, at least, as far as those of a run are so many.
const PARTS: u64 = 8;

/// So many subtasks are simulated for a number of nodes in any case, or for each second that the run
/// is expected to take: simulating one takes 50 to 100 us.
const ALWAYS: f64 = 40.0;
const SUBTASKS_A_SECOND: f64 = 500.0;

/// Where nodes take at most this part of the time of half as many, so many times more are simulated
/// for more nodes; if these are too many, too, all nodes take part.
const SCALES: f64 = 0.85;
const PATIENCE: f64 = 3.0;

/// The nodes of a run: the first `count` of all.
#[derive(Clone, Debug, PartialEq)]
pub struct TakingPart {
    pub count: usize,
    /// What reports say of it, if not all take part.
    pub note: Option<String>,
}

/// As many of the nodes as an operation is expected to be fastest on: 1, 2, 4 and so on, or all.
/// `tile` are the rows of a part, if the user says so. With another policy than the usual one all
/// take part: who names a policy asks what it does with these nodes.
///
/// # Errors
/// As [`Operation::at`].
pub fn taking_part(
    operation: &Operation,
    tile: Option<u64>,
    (nodes, network): (&[NodeInfo], Network),
    spread: NamedSpread,
) -> Result<TakingPart, OperationError> {
    let all = nodes.len();
    let every = TakingPart {
        count: all,
        note: None,
    };
    if spread != NamedSpread::default() {
        return Ok(every);
    }
    let has_room = |count: &usize| {
        let memory = nodes[..*count].iter().map(|node| node.memory).min();
        let needed = operation.bytes.div_ceil(*count as u128);
        needed <= u128::from(memory.unwrap_or(0))
    };
    let counts = successors(Some(1), |count| Some(2 * count));
    let counts = counts.take_while(|count| *count < all).chain([all]);
    let mut expected: Vec<(usize, f64)> = Vec::new();
    for count in counts.filter(has_room) {
        let of = &nodes[..count];
        let least = expected.iter().map(|of| of.1).reduce(f64::min);
        let most = ALWAYS.max(SUBTASKS_A_SECOND * least.unwrap_or(0.0));
        let placed = coarse(operation, tile, (of, network), most)?;
        let patience = if scale(&expected) { PATIENCE } else { 1.0 };
        if !expected.is_empty() && subtasks(&placed) > patience * most {
            break;
        }
        let Some(seconds) = expected_seconds(&placed, of, network) else {
            break;
        };
        expected.push((count, seconds));
    }
    let best = fewest(expected.iter().copied()).map(|best| expected[best]);
    let is_last = best == expected.last().copied();
    let scales = is_last && scale(&expected);
    let Some((count, seconds)) = best.filter(|best| best.0 < all && !scales) else {
        return Ok(every);
    };
    let last = expected.last().filter(|last| last.0 > count);
    let than = last.map_or_else(String::new, |(more, seconds)| {
        format!(", {:.3} ms on {more}", 1e3 * seconds)
    });
    let note = format!(
        "{count} of {all} nodes take part: {:.3} ms expected{than}",
        1e3 * seconds
    );
    Ok(TakingPart {
        count,
        note: Some(note),
    })
}

/// Whether the last number of nodes takes much less than half of it.
fn scale(expected: &[(usize, f64)]) -> bool {
    matches!(expected, [.., half, last] if last.1 <= SCALES * half.1)
}

/// An operation for nodes, in parts of which there are so many at most, as far as each node has
/// some.
fn coarse(
    operation: &Operation,
    tile: Option<u64>,
    (nodes, network): (&[NodeInfo], Network),
    most: f64,
) -> Result<Placed, OperationError> {
    let place = Place::Nodes(Fit::new(nodes, network));
    let mut placed = operation.at(place, tile)?;
    while subtasks(&placed) > most {
        let coarser = operation.at(place, Some(placed.tile + placed.tile.div_ceil(2)))?;
        let largest = demand::largest_task(&*coarser.workload);
        if largest < PARTS * nodes.len() as u64 || coarser.tile == placed.tile {
            break;
        }
        placed = coarser;
    }
    Ok(placed)
}

fn subtasks(placed: &Placed) -> f64 {
    demand::subtasks(&*placed.workload, u64::MAX) as f64
}

/// Seconds that the tasks of an operation are expected to take on nodes; none if it cannot be
/// simulated.
fn expected_seconds(placed: &Placed, nodes: &[NodeInfo], network: Network) -> Option<f64> {
    let (cost, moved) = whole(&*placed.workload);
    let machines = nodes.iter().map(|node| {
        let devices = node.devices.iter();
        let rates = devices.map(|device| 1.0 / device.seconds(cost, moved));
        machine(cost, 1.0 / rates.sum::<f64>())
    });
    let cluster = Cluster {
        nodes: machines.collect(),
        network: NetworkSpec {
            bandwidth: network.bandwidth,
            // A message is handled by its sender's driver and by its receiver's.
            latency_ns: network.round_trip / 4,
            message_ns: network.round_trip / 8,
            full_duplex: true,
            switch_bandwidth: None,
        },
    };
    let options = Options::default();
    let simulated = simulate(&cluster, &*placed.workload, placed.tile, &options);
    simulated.ok().map(|report| report.outcome.seconds)
}

/// What all subtasks cost, and the bytes that they read and write.
fn whole(workload: &dyn ClusterWorkload) -> (Cost, f64) {
    let spaces = workload.spaces();
    let ids: Vec<SpaceId> = (0..spaces.len() as u32).map(SpaceId).collect();
    let (mut all, mut moved) = (Cost::default(), 0.0);
    for number in 0..workload.tasks() {
        let task = workload.task(number, &ids);
        for subtask in 0..task.count() {
            let cost = task.cost(subtask);
            (all.flops, all.bytes) = (all.flops + cost.flops, all.bytes + cost.bytes);
            for part in task.reads(subtask).iter().chain(&task.writes(subtask)) {
                moved += spaces[part.space.0 as usize].extent.bytes(&part.block) as f64;
            }
        }
    }
    (all, moved)
}

/// A machine whose host alone pays such a cost in so many seconds; nothing else takes time.
pub(super) fn machine(cost: Cost, seconds: f64) -> NodeMachine {
    let memory_bandwidth = match cost.bytes > 0.0 {
        true => cost.bytes / seconds,
        false => 1e30,
    };
    let host = HostSpec {
        model: "all devices of a node".to_owned(),
        sockets: 1,
        cores: 1,
        clock_mhz: None,
        l2: None,
        l3: None,
        memory: u64::MAX,
        memory_bandwidth,
        shared_bandwidth: None,
        core_bandwidth: memory_bandwidth,
        bus_bandwidth: None,
        // Single precision counts twice.
        flops: Some(cost.flops / seconds / 2.0),
        launch_overhead_ns: 0,
        completion_latency_ns: 0,
        efficiency: BTreeMap::new(),
    };
    let file = MachineFile {
        format: FORMAT.to_owned(),
        name: "node".to_owned(),
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
