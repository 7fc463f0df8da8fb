//! Multilevel bisection and its recursion (Karypis et al., hMETIS 1.5): coarsen, bisect
//! the coarsest hypergraph by greedy growth, refine on the way back.

use super::coarsen::matching;
use super::hypergraph::Hypergraph;
use super::refine::{quality, refine};
use crate::policy::tournament::Tournament;

/// The coarsest hypergraph has about so many vertices.
const COARSEST: usize = 100;

/// Growths of the coarsest hypergraph, each from another vertex.
const GROWTHS: usize = 10;

/// By vertex: its part. Parts have these shares of the weight, which add up to 1, within
/// `imbalance` or half the heaviest vertex.
pub fn partition(
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
