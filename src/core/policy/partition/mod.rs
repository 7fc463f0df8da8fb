//! Partitioning, then Ready and stealing: Algorithm 3 of Gonthier, Marchal and Thibault
//! (IPDPS 2022), hMETIS+R, with a partitioner of our own.
//!
//! Tasks are the vertices of a hypergraph and each datum is a net that joins the tasks
//! that use it. A partition with few cut bytes needs few data on several devices.

mod bisect;

#[cfg(test)]
mod tests;

use super::device_lists::{mean_seconds, shares};
use super::problem::Adjacency;
use super::{Assigned, ListOptions, Problem};
use bisect::partition;

/// The imbalance that is allowed, as in the paper (UBfactor 1).
const IMBALANCE: f64 = 0.01;

/// Partitions that are tried, the best of which counts. The paper has 20.
const TRIES: usize = 4;

/// Uses of data above which a further try would take too long.
const MANY_USES: usize = 1 << 16;

impl Assigned {
    /// The policy in which each device has a part of the tasks, by its speed, such that
    /// few bytes are needed by several parts.
    pub fn by_partition(problem: Problem, options: ListOptions, seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let devices = problem.devices.len();
        let mut users = vec![Vec::new(); problem.data.len()];
        for (task, datum) in uses(&problem) {
            users[datum].push(task);
        }
        let bytes = problem.data.iter().map(|datum| datum.bytes as i64);
        let graph = Hypergraph::new(mean_seconds(&problem), bytes.zip(users));
        let shares = shares(&problem);
        let many = uses(&problem).count() > MANY_USES;
        let tries = (0..if many { 1 } else { TRIES }).map(|_| {
            let parts = partition(&graph, &shares, IMBALANCE, &mut random);
            (copies(&graph, &parts, devices), parts)
        });
        let best = tries.min_by_key(|(copies, _)| *copies);
        let mut orders = vec![Vec::new(); devices];
        for (task, part) in best.into_iter().flat_map(|(_, parts)| parts).enumerate() {
            orders[part].push(task);
        }
        Self::new(["partition", "partition+luf"], problem, &orders, options)
    }
}

/// Tasks and the data that they use.
fn uses(problem: &Problem) -> impl Iterator<Item = (usize, usize)> {
    let tasks = problem.tasks.iter().enumerate();
    tasks.flat_map(|(task, what)| what.data().map(move |datum| (task, datum)))
}

/// Bytes of the copies of data that several parts need, beyond the first.
fn copies(graph: &Hypergraph, parts: &[usize], count: usize) -> i64 {
    let mut last_net = vec![usize::MAX; count];
    let mut copies = 0;
    for (net, bytes) in graph.bytes.iter().enumerate() {
        let pins = graph.pins.of(net).iter().map(|pin| parts[*pin as usize]);
        let parts = pins.filter(|part| std::mem::replace(&mut last_net[*part], net) != net);
        copies += (parts.count() as i64 - 1) * bytes;
    }
    copies
}

/// A hypergraph with weights.
#[derive(Clone, Debug)]
struct Hypergraph {
    /// Seconds of each vertex.
    pub weights: Vec<f64>,
    /// Bytes of each net.
    pub bytes: Vec<i64>,
    /// By net: its vertices, at least two.
    pub pins: Adjacency,
    /// By vertex: its nets.
    pub nets: Adjacency,
}

impl Hypergraph {
    /// The hypergraph of these nets, of which those that cannot be cut are left out.
    pub fn new(weights: Vec<f64>, nets: impl Iterator<Item = (i64, Vec<usize>)>) -> Self {
        let cuttable = nets.filter(|(bytes, pins)| *bytes > 0 && pins.len() > 1);
        let (bytes, pins): (Vec<_>, Vec<_>) = cuttable.unzip();
        let pins = Adjacency::new(pins);
        Self {
            nets: pins.transposed(weights.len()),
            weights,
            bytes,
            pins,
        }
    }

    /// The hypergraph in which the vertices of one number are one. `None` leaves a
    /// vertex out. Numbers are below `count`.
    pub fn contract(&self, numbers: &[Option<usize>], count: usize) -> Self {
        let mut weights = vec![0.0; count];
        for (number, weight) in numbers.iter().zip(&self.weights) {
            if let Some(number) = number {
                weights[*number] += weight;
            }
        }
        let mut last_net = vec![usize::MAX; count];
        let nets = (0..self.bytes.len()).map(|net| {
            let pins = self.pins.of(net).iter();
            let mut pins: Vec<usize> = pins.filter_map(|pin| numbers[*pin as usize]).collect();
            pins.retain(|pin| std::mem::replace(&mut last_net[*pin], net) != net);
            (self.bytes[net], pins)
        });
        Self::new(weights, nets)
    }

    /// Bytes of the nets that have pins on both sides.
    #[cfg(test)]
    pub fn cut(&self, sides: &[bool]) -> i64 {
        let mixed = |net: &usize| {
            let pins = self.pins.of(*net);
            pins.iter()
                .any(|pin| sides[*pin as usize] != sides[pins[0] as usize])
        };
        let nets = (0..self.bytes.len()).filter(mixed);
        nets.map(|net| self.bytes[net]).sum()
    }
}
