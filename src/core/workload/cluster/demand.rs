//! How much a workload over spaces asks for: counted without making any of it.

use super::ClusterWorkload;
use crate::cluster::space::SpaceId;

/// Tasks of which one of each kind is among the first, and later ones are not larger.
const KINDS: u64 = 3;

/// Bytes of all spaces.
pub fn bytes(workload: &dyn ClusterWorkload) -> u128 {
    let spaces = workload.spaces().into_iter();
    spaces.map(|space| space.extent.all_bytes()).sum()
}

/// The subtasks of the largest task.
pub fn largest_task(workload: &dyn ClusterWorkload) -> u64 {
    counts(workload).take(KINDS as usize).max().unwrap_or(0)
}

/// The subtasks of all tasks; where they are more than `most`, some number above it.
pub fn subtasks(workload: &dyn ClusterWorkload, most: u64) -> u64 {
    let mut all = 0u64;
    for count in counts(workload) {
        all = all.saturating_add(count);
        if all > most {
            break;
        }
    }
    all
}

/// The subtasks of each task.
fn counts(workload: &dyn ClusterWorkload) -> impl Iterator<Item = u64> {
    let spaces = workload.spaces().len() as u32;
    let ids: Vec<SpaceId> = (0..spaces).map(SpaceId).collect();
    (0..workload.tasks()).map(move |number| workload.task(number, &ids).count())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::cluster::space::Block;
    use crate::codelet::Precision;
    use crate::workload::cluster::{
        ConvolutionWorkload, FftWorkload, Fill, LuWorkload, Placement, Product,
    };

    /// Contents that nobody may ask for.
    fn unused() -> Fill {
        Arc::new(|_: &Block, _: &mut [u8]| panic!("nothing is made"))
    }

    #[test]
    fn workloads_of_any_size_are_counted_at_once() {
        let (huge, placement) = (u64::from(u32::MAX), Placement::Grid);
        let matmul = Product {
            rows: huge,
            columns: huge,
            depth: huge,
            precision: Precision::F32.into(),
            a: unused(),
            b: unused(),
        };
        let convolution = ConvolutionWorkload {
            rows: huge,
            columns: huge,
            channels: 64,
            size: 3,
            placement,
            image: unused(),
            filter: unused(),
        };
        let lu = LuWorkload {
            size: 1 << 20,
            tile: 1,
            precision: Precision::F64,
            placement,
            by_columns: true,
            matrix: unused(),
        };
        let fft = FftWorkload {
            rows: 1 << 20,
            columns: 1 << 20,
            precision: Precision::F32,
            placement,
            matrix: unused(),
        };
        let (matmul, lu) = (matmul.in_blocks(1, placement), lu.program());
        let (convolution, fft) = (convolution.program(1), fft.program(1));
        let all: [(&dyn ClusterWorkload, u64, u128); 4] = [
            (&matmul, huge * huge, 12 * u128::from(huge).pow(2)),
            (
                &convolution,
                huge * huge,
                512 * u128::from(huge).pow(2) + 36,
            ),
            (&lu, (1 << 20) - 1, (8 << 40) + (4 << 20)),
            (&fft, 1 << 20, 16 << 40),
        ];
        for (workload, largest, needed) in all {
            let name = workload.name();
            assert_eq!(largest_task(workload), largest, "{name}");
            assert_eq!(bytes(workload), needed, "{name}");
            assert!(subtasks(workload, 1000) > 1000, "{name}");
        }
        assert_eq!(subtasks(&fft, u64::MAX), 2 << 20);
    }
}
