//! Refinement of a bisection: moves of single vertices (Fiduccia and Mattheyses, "A
//! linear-time heuristic for improving network partitions", DAC 1982).

use super::hypergraph::Hypergraph;
use crate::policy::tournament::Tournament;

/// Moves without a better cut after which a pass ends.
const MOST_FRUITLESS: usize = 500;

/// Added to gains, so that keys are above 0.
const OFFSET: i64 = 1 << 62;

/// A bisection: the side of each vertex (`false` is side 0).
struct Bisection<'a> {
    graph: &'a Hypergraph,
    sides: &'a mut [bool],
    /// By side: the sum of the weights, and the greatest that is allowed.
    weights: [f64; 2],
    limits: [f64; 2],
    /// By net: its pins on each side.
    pins: Vec<[usize; 2]>,
    /// By vertex: by how many bytes its move makes the cut smaller.
    gains: Vec<i64>,
    /// By side: its vertices that have not moved, by gain.
    movable: [Tournament; 2],
}

/// Makes the weights of the sides respect the limits, and the cut small.
pub fn refine(graph: &Hypergraph, sides: &mut [bool], limits: [f64; 2]) {
    // Passes seldom help after the first few.
    for _ in 0..8 {
        if !Bisection::new(graph, sides, limits).pass() {
            break;
        }
    }
}

/// The bytes that are cut, after the weight beyond the limits: what is to be least.
pub fn quality(graph: &Hypergraph, sides: &mut [bool], limits: [f64; 2]) -> (f64, i64) {
    let bisection = Bisection::new(graph, sides, limits);
    let nets = bisection.pins.iter().zip(&graph.bytes);
    let cut = nets.filter(|(pins, _)| pins[0] > 0 && pins[1] > 0);
    (bisection.excess(), cut.map(|(_, bytes)| bytes).sum())
}

impl<'a> Bisection<'a> {
    fn new(graph: &'a Hypergraph, sides: &'a mut [bool], limits: [f64; 2]) -> Self {
        let vertices = graph.weights.len();
        let mut weights = [0.0; 2];
        for (side, weight) in sides.iter().zip(&graph.weights) {
            weights[usize::from(*side)] += weight;
        }
        let mut pins = vec![[0; 2]; graph.bytes.len()];
        for (net, pins) in pins.iter_mut().enumerate() {
            for pin in graph.pins.of(net) {
                pins[usize::from(sides[*pin as usize])] += 1;
            }
        }
        let mut bisection = Self {
            graph,
            sides,
            weights,
            limits,
            pins,
            gains: vec![0; vertices],
            movable: [Tournament::new(vertices), Tournament::new(vertices)],
        };
        for vertex in 0..vertices {
            let from = usize::from(bisection.sides[vertex]);
            for net in graph.nets.of(vertex).iter().map(|net| *net as usize) {
                let pins = bisection.pins[net];
                bisection.gains[vertex] += graph.bytes[net] * i64::from(pins[from] == 1);
                bisection.gains[vertex] -= graph.bytes[net] * i64::from(pins[1 - from] == 0);
            }
            bisection.movable[from].set(vertex, (bisection.gains[vertex] + OFFSET) as u64);
        }
        bisection
    }

    /// The weight beyond the limits.
    fn excess(&self) -> f64 {
        let excess = |side: usize| (self.weights[side] - self.limits[side]).max(0.0);
        excess(0) + excess(1)
    }

    /// Moves each vertex at most once, and goes back to the best of all states on the
    /// way. Says whether that is better than the first.
    fn pass(mut self) -> bool {
        let mut moved = Vec::new();
        let (mut gain, mut best, mut best_count) = (0, (self.excess(), 0), 0);
        while let Some(vertex) = self.choose() {
            gain += self.gains[vertex];
            self.shift(vertex);
            moved.push(vertex);
            let state = (self.excess(), -gain);
            if state < best {
                (best, best_count) = (state, moved.len());
            }
            if moved.len() - best_count > MOST_FRUITLESS {
                break;
            }
        }
        for vertex in &moved[best_count..] {
            self.sides[*vertex] = !self.sides[*vertex];
        }
        best_count > 0
    }

    /// The movable vertex of the greatest gain. A side may exceed its limit by one
    /// vertex on the way, because no exchange is possible otherwise; the next vertex
    /// then leaves that side.
    fn choose(&mut self) -> Option<usize> {
        let mut best: Option<(i64, f64, usize)> = None;
        for from in [0, 1] {
            if self.weights[1 - from] <= self.limits[1 - from]
                && let Some(vertex) = self.movable[from].first()
            {
                let candidate = (self.gains[vertex], self.weights[from], vertex);
                if best.is_none_or(|best| (candidate.0, candidate.1) > (best.0, best.1)) {
                    best = Some(candidate);
                }
            }
        }
        best.map(|(_, _, vertex)| vertex)
    }

    fn shift(&mut self, vertex: usize) {
        let from = usize::from(self.sides[vertex]);
        let to = 1 - from;
        self.movable[from].set(vertex, 0);
        self.sides[vertex] = to == 1;
        self.weights[from] -= self.graph.weights[vertex];
        self.weights[to] += self.graph.weights[vertex];
        for net in self.graph.nets.of(vertex).iter().map(|net| *net as usize) {
            let bytes = self.graph.bytes[net];
            let before = self.pins[net];
            self.pins[net][from] -= 1;
            self.pins[net][to] += 1;
            // Where a side had or has none, all other pins change; where it had or
            // has one, this pin does.
            if before[to] == 0 {
                self.change(net, vertex, None, bytes);
            } else if before[to] == 1 {
                self.change(net, vertex, Some(to), -bytes);
            }
            if before[from] == 1 {
                self.change(net, vertex, None, -bytes);
            } else if before[from] == 2 {
                self.change(net, vertex, Some(from), bytes);
            }
        }
    }

    /// Changes the gains of a net's vertices, or of those on one side, but for one.
    fn change(&mut self, net: usize, but: usize, side: Option<usize>, by: i64) {
        for pin in self.graph.pins.of(net).iter().map(|pin| *pin as usize) {
            let of = usize::from(self.sides[pin]);
            if pin != but && side.is_none_or(|side| side == of) {
                self.gains[pin] += by;
                if self.movable[of].get(pin) > 0 {
                    self.movable[of].set(pin, (self.gains[pin] + OFFSET) as u64);
                }
            }
        }
    }
}
