//! Topological orders, the cycles that prevent them, and the ranks of kernels that follow.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use super::{KernelId, TaskGraph};

/// An order of the numbers from 0 on in which each comes after its `predecessors`, the
/// smallest number first where there is a choice. The error is a cycle: from its first
/// number to its last, and the first again.
pub(super) fn topological_order(
    predecessors: &[BTreeSet<usize>],
) -> Result<Vec<usize>, Vec<usize>> {
    let mut successors = vec![Vec::new(); predecessors.len()];
    for (number, before) in predecessors.iter().enumerate() {
        before.iter().for_each(|b| successors[*b].push(number));
    }
    let mut waits: Vec<usize> = predecessors.iter().map(BTreeSet::len).collect();
    let mut ready: BinaryHeap<_> = (0..waits.len())
        .filter(|number| waits[*number] == 0)
        .map(Reverse)
        .collect();
    let mut order = Vec::with_capacity(waits.len());
    while let Some(Reverse(number)) = ready.pop() {
        order.push(number);
        for next in &successors[number] {
            waits[*next] -= 1;
            if waits[*next] == 0 {
                ready.push(Reverse(*next));
            }
        }
    }
    // Each number that is left waits for another one that is left.
    let left = |number: &usize| waits[*number] > 0;
    let mut path: Vec<usize> = (0..waits.len()).find(left).into_iter().collect();
    while let Some(last) = path.last() {
        let Some(next) = predecessors[*last].iter().copied().find(left) else {
            break;
        };
        let begin = path.iter().position(|seen| *seen == next);
        path.push(next);
        if let Some(begin) = begin {
            path.drain(..begin);
            path.reverse();
            return Err(path);
        }
    }
    Ok(order)
}

/// By kernel: the seconds from its begin to the graph's end along the longest path,
/// its own `seconds` included (Topcuoglu et al., HEFT, TPDS 2002, equation 8;
/// PySchedCL, section 5). `transfer` is the mean time of moving so many bytes from
/// one device to another; 0 if all kernels run on one device.
pub fn bottom_levels(
    graph: &TaskGraph,
    seconds: impl Fn(KernelId) -> f64,
    transfer: impl Fn(u64) -> f64,
) -> Vec<f64> {
    let mut ranks = vec![0.0; graph.kernels().len()];
    for kernel in graph.order().iter().rev() {
        let mut below: f64 = 0.0;
        for next in graph.successors(*kernel) {
            below = below.max(ranks[next.0]);
        }
        for datum in graph.kernel(*kernel).outputs() {
            for reader in graph.readers(datum) {
                below = below.max(transfer(graph.datum(datum).bytes) + ranks[reader.0]);
            }
        }
        ranks[kernel.0] = seconds(*kernel) + below;
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::fixtures::figure_6;

    fn order(predecessors: &[&[usize]]) -> Result<Vec<usize>, Vec<usize>> {
        let sets = predecessors.iter().map(|before| before.iter().copied());
        let sets: Vec<BTreeSet<usize>> = sets.map(Iterator::collect).collect();
        topological_order(&sets)
    }

    #[test]
    fn the_smallest_number_that_waits_for_none_is_next() {
        assert_eq!(order(&[&[3], &[], &[1], &[1]]), Ok(vec![1, 2, 3, 0]));
        assert_eq!(order(&[]), Ok(Vec::new()));
    }

    #[test]
    fn a_cycle_is_reported_from_its_first_to_its_last() {
        assert_eq!(order(&[&[2], &[0], &[1], &[2]]), Err(vec![0, 1, 2, 0]));
        assert_eq!(order(&[&[1], &[1]]), Err(vec![1, 1]));
    }

    #[test]
    fn a_rank_is_the_longest_path_to_the_end() {
        let graph = figure_6();
        let seconds = |kernel: KernelId| kernel.0 as f64 + 1.0;
        assert_eq!(
            bottom_levels(&graph, seconds, |_| 0.0),
            [
                1.0 + 2.0 + 4.0 + 6.0 + 7.0,
                2.0 + 4.0 + 6.0 + 7.0,
                15.0,
                17.0,
                12.0,
                13.0,
                7.0
            ]
        );
        let with_transfers = bottom_levels(&graph, seconds, |bytes| bytes as f64 / 8.0);
        assert_eq!(with_transfers[0], 20.0 + 4.0);
        assert_eq!(with_transfers[6], 7.0);
    }
}
