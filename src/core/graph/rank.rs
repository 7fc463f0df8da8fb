//! Bottom-level ranks of kernels.

use super::{KernelId, TaskGraph};

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
