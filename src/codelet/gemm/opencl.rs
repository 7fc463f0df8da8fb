//! The product's OpenCL implementation: source, options and sizes.

use std::ops::Range;

use super::tile::SMALL_GROUP;
use super::{Gemm, Tile};
use crate::{KernelSource, NdRange, OpenClKernel, Shape, Value};

/// The OpenCL kernel of a product, with this tile.
pub fn kernel(gemm: &Gemm, tile: &Tile) -> OpenClKernel {
    tiled(gemm, tile).or(tiled(gemm, SMALL_GROUP))
}

fn tiled(gemm: &Gemm, tile: &Tile) -> OpenClKernel {
    let (gemm, tile) = (*gemm, *tile);
    OpenClKernel {
        source: KernelSource::new(
            concat!(
                include_str!("../../../kernels/stored.h"),
                include_str!("../../../kernels/gemm.cl")
            ),
            "kernels/gemm.cl",
            "gemm",
            options(&gemm, &tile),
        ),
        fp64: false,
        shape: Shape::with(move |units, _: &[Value]| groups(&gemm, &tile, units)),
    }
}

fn options(gemm: &Gemm, tile: &Tile) -> String {
    let quads = gemm.columns.is_multiple_of(4) && gemm.depth.is_multiple_of(4);
    format!(
        "{} -DTM={} -DTN={} -DTK={} -DWM={} -DWN={} -DWHOLE={} -DQUADS={} -DTRANSPOSED={}",
        gemm.format.option(),
        tile.rows,
        tile.columns,
        tile.depth,
        tile.item_rows,
        tile.item_columns,
        u8::from(tile.divides(gemm)),
        u8::from(quads),
        u8::from(gemm.transposed),
    )
}

/// A group a tile, a layer of groups a matrix. The matrices of these units
/// only: the layers' numbers begin with the first.
fn groups(gemm: &Gemm, tile: &Tile, units: &Range<u64>) -> NdRange {
    let blocks = gemm.blocks().max(1);
    let [across, down] = tile.grid(gemm);
    let items = tile.items() as usize;
    let matrices = (units.end - units.start) / blocks;
    NdRange::new(vec![
        across as usize * items,
        down as usize,
        matrices as usize,
    ])
    .exactly(vec![items, 1, 1])
    .starting_at(vec![0, 0, (units.start / blocks) as usize])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gemm::TILES;

    #[test]
    fn a_launch_covers_the_matrices_of_its_units() {
        // 4 blocks a matrix.
        let gemm = Gemm::square(100).batch(3);
        assert_eq!(gemm.units(), 12);
        let tile = &TILES[11];
        let sizes = groups(&gemm, tile, &(4..12));
        assert_eq!(sizes.global, [4 * 64, 4, 2]);
        assert_eq!(sizes.offset, Some(vec![0, 0, 1]));
    }

    #[test]
    fn guards_are_only_where_sizes_need_them() {
        let of = |size| options(&Gemm::square(size), &TILES[11]);
        assert!(of(64).contains("-DWHOLE=1"));
        assert!(of(100).contains("-DWHOLE=0 -DQUADS=1"));
        assert!(of(101).contains("-DWHOLE=0 -DQUADS=0"));
    }
}
