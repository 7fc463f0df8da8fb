//! Coarsening: pairs of vertices that share heavy small nets become one (heavy-edge
//! matching; Karypis and Kumar, "A fast and high quality multilevel scheme for
//! partitioning irregular graphs", SIAM Journal on Scientific Computing 1998).

use super::hypergraph::Hypergraph;

/// Larger nets join everything with everything and say nothing about who belongs
/// together.
const MOST_PINS: usize = 1000;

/// The number of each vertex in a coarser hypergraph, and how many there are. No pair
/// weighs more than `heaviest`.
pub fn matching(
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
