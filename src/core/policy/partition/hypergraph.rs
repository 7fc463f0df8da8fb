//! Hypergraphs: tasks are vertices, and each datum is a net that joins its tasks.

use crate::policy::adjacency::Adjacency;

/// A hypergraph with weights.
#[derive(Clone, Debug)]
pub struct Hypergraph {
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
