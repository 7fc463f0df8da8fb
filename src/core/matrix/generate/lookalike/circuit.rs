//! Draws the columns of circuits: the diagonal, neighbours in the order of the netlist,
//! and the few nets that connect many nodes.

use crate::matrix::generate::columns::{distinct_beside, uniform};
use crate::matrix::generate::random::Random;

/// The fraction of all nodes from which on a net counts as dense.
const DENSE: f64 = 0.01;
/// The fraction of neighbours that are near. Others are up to half the matrix away,
/// with a probability that falls with the distance.
const NEAR: f64 = 0.8;
/// Mean distance of near neighbours in a short row.
const NEAR_DISTANCE: f64 = 4.0;

/// A circuit's nodes.
pub struct Circuit {
    nodes: u32,
    /// Rows of dense nets, and the fraction of all nodes that each connects.
    dense: Vec<(u32, f64)>,
}

impl Circuit {
    /// The nodes of a matrix with these row starts.
    pub fn new(starts: &[u64]) -> Self {
        let nodes = (starts.len() - 1) as u32;
        let reached = |bounds: &[u64]| (bounds[1] - bounds[0]) as f64 / f64::from(nodes);
        let dense = (0..).zip(starts.windows(2).map(reached));
        Self {
            nodes,
            dense: dense.filter(|(_, share)| *share > DENSE).collect(),
        }
    }

    /// Writes the columns of a row.
    pub fn row(&self, row: u32, random: &mut Random, out: &mut [u32]) {
        if out.len() as f64 > DENSE * f64::from(self.nodes) {
            return uniform(out, self.nodes, random);
        }
        let mut given = 0;
        let mut give = |column: u32| {
            if let Some(slot) = out.get_mut(given) {
                *slot = column;
                given += 1;
            }
        };
        give(row);
        for (net, share) in &self.dense {
            // The matrix is about symmetric: a net's column is as full as its row.
            if *net != row && random.chance(*share) {
                give(*net);
            }
        }
        let near = NEAR_DISTANCE.max(out.len() as f64);
        distinct_beside(out, given, self.nodes, || self.neighbour(row, near, random));
    }

    fn neighbour(&self, row: u32, near: f64, random: &mut Random) -> u32 {
        let distance = match random.chance(NEAR) {
            true => 1.0 - near * random.unit().ln(),
            false => (random.unit() * (f64::from(self.nodes) / 2.0).max(1.0).ln()).exp(),
        };
        let distance = distance as i64;
        let (row, last) = (i64::from(row), i64::from(self.nodes) - 1);
        let sign = if random.chance(0.5) { 1 } else { -1 };
        // A neighbour beyond the edge is mirrored to the other side of the row.
        let column = match row + sign * distance {
            inside if (0..=last).contains(&inside) => inside,
            _ => row - sign * distance,
        };
        column.clamp(0, last) as u32
    }
}
