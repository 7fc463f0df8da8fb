//! Partitioning, then Ready and stealing: Algorithm 3 of Gonthier, Marchal and Thibault
//! (IPDPS 2022), hMETIS+R, with a partitioner of our own.
//!
//! Tasks are the vertices of a hypergraph and each datum is a net that joins the tasks
//! that use it. A partition with few cut bytes needs few data on several devices.

#[cfg(test)]
mod tests;

use super::device_lists::{mean_seconds, shares};
use super::problem::Adjacency;
use super::{Assigned, ListOptions, Problem};
use crate::policy::tournament::Tournament;

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

// Multilevel bisection and its recursion (Karypis et al., hMETIS 1.5): coarsen, bisect
// the coarsest hypergraph by greedy growth, refine on the way back.

/// The coarsest hypergraph has about so many vertices.
const COARSEST: usize = 100;

/// Growths of the coarsest hypergraph, each from another vertex.
const GROWTHS: usize = 10;

/// By vertex: its part. Parts have these shares of the weight, which add up to 1, within
/// `imbalance` or half the heaviest vertex.
fn partition(
    graph: &Hypergraph,
    shares: &[f64],
    imbalance: f64,
    random: &mut fastrand::Rng,
) -> Vec<usize> {
    let mut parts = vec![0; graph.weights.len()];
    if shares.len() < 2 {
        return parts;
    }
    // The imbalances of successive bisections add up.
    let bisections = usize::BITS - (shares.len() - 1).leading_zeros();
    let (left, right) = shares.split_at(shares.len() / 2);
    let sums = [left, right].map(|shares| shares.iter().sum::<f64>());
    let all = sums[0] + sums[1];
    let fraction = if all > 0.0 { sums[0] / all } else { 0.5 };
    let sides = bisect(graph, fraction, imbalance / f64::from(bisections), random);
    for (side, shares, first) in [(false, left, 0), (true, right, left.len())] {
        let mut count = 0;
        let numbers = sides.iter().map(|of| {
            (*of == side).then(|| {
                count += 1;
                count - 1
            })
        });
        let numbers: Vec<Option<usize>> = numbers.collect();
        let half = graph.contract(&numbers, count);
        let of_half = partition(&half, shares, imbalance, random);
        for (part, number) in parts.iter_mut().zip(numbers) {
            if let Some(number) = number {
                *part = first + of_half[number];
            }
        }
    }
    parts
}

/// By vertex: its side. Side 0 (`false`) has this fraction of the weight.
fn bisect(
    graph: &Hypergraph,
    fraction: f64,
    imbalance: f64,
    random: &mut fastrand::Rng,
) -> Vec<bool> {
    let total: f64 = graph.weights.iter().sum();
    let targets = [total * fraction, total * (1.0 - fraction)];
    let limits = |graph: &Hypergraph| {
        let heaviest = graph.weights.iter().copied().fold(0.0, f64::max);
        // What rounds to the target is within the limit.
        targets.map(|target| (target * (1.0 + imbalance)).max(target + heaviest * 0.501))
    };
    let mut levels: Vec<(Hypergraph, Vec<Option<usize>>)> = Vec::new();
    let mut coarsest = graph.clone();
    while coarsest.weights.len() > COARSEST {
        let heaviest = 1.5 * total / COARSEST as f64;
        let (numbers, count) = matching(&coarsest, heaviest, random);
        if count * 10 > coarsest.weights.len() * 9 {
            break;
        }
        let coarser = coarsest.contract(&numbers, count);
        levels.push((std::mem::replace(&mut coarsest, coarser), numbers));
    }
    let of_coarsest = limits(&coarsest);
    let tries = (0..GROWTHS).map(|_| {
        let mut sides = grow(&coarsest, targets[0], random);
        refine(&coarsest, &mut sides, of_coarsest);
        let quality = quality(&coarsest, &mut sides, of_coarsest);
        (quality, sides)
    });
    let best =
        tries.min_by(|(one, _), (other, _)| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
    let mut sides = best.map_or_else(Vec::new, |(_, sides)| sides);
    for (finer, numbers) in levels.into_iter().rev() {
        let numbers = numbers.into_iter();
        sides = numbers
            .map(|number| number.is_some_and(|number| sides[number]))
            .collect();
        refine(&finer, &mut sides, limits(&finer));
    }
    sides
}

/// Grows side 0 from a random vertex to this weight. The vertex with the most bytes in
/// common with it comes next; a net counts by the part of it that is there already, so
/// that begun nets are completed.
fn grow(graph: &Hypergraph, target: f64, random: &mut fastrand::Rng) -> Vec<bool> {
    let vertices = graph.weights.len();
    let mut sides = vec![true; vertices];
    let mut scores = vec![0.0; vertices];
    // Positive numbers have the order of their bits.
    let key = |score: f64| (score + 1.0).to_bits();
    let mut next = Tournament::new(vertices);
    (0..vertices).for_each(|vertex| next.set(vertex, key(0.0)));
    let mut weight = 0.0;
    while let Some(vertex) = next.random(random) {
        if weight + graph.weights[vertex] / 2.0 > target {
            break;
        }
        weight += graph.weights[vertex];
        sides[vertex] = false;
        next.set(vertex, 0);
        for net in graph.nets.of(vertex).iter().map(|net| *net as usize) {
            let pins = graph.pins.of(net);
            let share = graph.bytes[net] as f64 / pins.len() as f64;
            for pin in pins
                .iter()
                .map(|pin| *pin as usize)
                .filter(|pin| sides[*pin])
            {
                scores[pin] += share;
                next.set(pin, key(scores[pin]));
            }
        }
    }
    sides
}

// Coarsening: pairs of vertices that share heavy small nets become one (heavy-edge
// matching; Karypis and Kumar, "A fast and high quality multilevel scheme for
// partitioning irregular graphs", SIAM Journal on Scientific Computing 1998).

/// Larger nets join everything with everything and say nothing about who belongs
/// together.
const MOST_PINS: usize = 1000;

/// The number of each vertex in a coarser hypergraph, and how many there are. No pair
/// weighs more than `heaviest`.
fn matching(
    graph: &Hypergraph,
    heaviest: f64,
    random: &mut fastrand::Rng,
) -> (Vec<Option<usize>>, usize) {
    let vertices = graph.weights.len();
    let mut order: Vec<usize> = (0..vertices).collect();
    random.shuffle(&mut order);
    let mut numbers = vec![None; vertices];
    let mut count = 0;
    let mut scores = vec![0.0; vertices];
    let mut neighbours = Vec::new();
    for vertex in order {
        if numbers[vertex].is_some() {
            continue;
        }
        for net in graph.nets.of(vertex).iter().map(|net| *net as usize) {
            let pins = graph.pins.of(net);
            if pins.len() > MOST_PINS {
                continue;
            }
            for pin in pins.iter().map(|pin| *pin as usize) {
                if numbers[pin].is_none() && pin != vertex {
                    if scores[pin] == 0.0 {
                        neighbours.push(pin);
                    }
                    scores[pin] += graph.bytes[net] as f64 / pins.len() as f64;
                }
            }
        }
        let mut best: Option<usize> = None;
        for neighbour in neighbours.drain(..) {
            let score = scores[neighbour];
            let fits = graph.weights[vertex] + graph.weights[neighbour] <= heaviest;
            if fits && best.is_none_or(|best| score > scores[best]) {
                if let Some(worse) = best.replace(neighbour) {
                    scores[worse] = 0.0;
                }
            } else {
                scores[neighbour] = 0.0;
            }
        }
        numbers[vertex] = Some(count);
        if let Some(best) = best {
            scores[best] = 0.0;
            numbers[best] = Some(count);
        }
        count += 1;
    }
    (numbers, count)
}

// Refinement of a bisection: moves of single vertices (Fiduccia and Mattheyses, "A
// linear-time heuristic for improving network partitions", DAC 1982).

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
fn refine(graph: &Hypergraph, sides: &mut [bool], limits: [f64; 2]) {
    // Passes seldom help after the first few.
    for _ in 0..8 {
        if !Bisection::new(graph, sides, limits).pass() {
            break;
        }
    }
}

/// The bytes that are cut, after the weight beyond the limits: what is to be least.
fn quality(graph: &Hypergraph, sides: &mut [bool], limits: [f64; 2]) -> (f64, i64) {
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
