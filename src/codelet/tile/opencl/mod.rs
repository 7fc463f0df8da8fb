//! The tile operations' OpenCL implementations: sources, options and sizes. `product`
//! has products and symmetric updates, `triangle` solutions and factors.
//!
//! Triangular solutions and Cholesky factors: `kernels/triangle_tile.cl`.

mod product;

use std::ops::Range;

use crate::{KernelSource, LEAST_GROUP, NdRange, OpenClKernel, Precision, Shape};

use super::BLOCK;

pub(super) use product::{product, symmetric};

/// Rows of a group, and its work-items. Few rows make many groups: the columns of one
/// are computed one after the other.
const SOLUTION_ROWS: u32 = 16;
const SOLUTION_ITEMS: usize = 128;

/// Rows that the only group of a factorisation computes at once, and its work-items.
const FACTOR_ROWS: u32 = 64;
const FACTOR_ITEMS: usize = 256;

/// Rows that the group of a factorisation computes at once where groups are small: those of a
/// block of the kernel, which it cannot be less than.
const SMALL_FACTOR_ROWS: u32 = 32;

/// The OpenCL kernel of solutions.
pub(super) fn solution(precision: Precision) -> OpenClKernel {
    let in_groups = |items| OpenClKernel {
        source: source(precision, "trsm_tile", (SOLUTION_ROWS, items)),
        fp64: precision == Precision::F64,
        shape: Shape::with(move |units, _| solutions(units, items)),
    };
    in_groups(SOLUTION_ITEMS).or(in_groups(LEAST_GROUP))
}

/// The OpenCL kernel of factors.
pub(super) fn factor(precision: Precision) -> OpenClKernel {
    let in_groups = |rows, items| OpenClKernel {
        source: source(precision, "potrf_tile", (rows, items)),
        fp64: precision == Precision::F64,
        shape: Shape::with(move |_, _| NdRange::new(vec![items]).exactly(vec![items])),
    };
    in_groups(FACTOR_ROWS, FACTOR_ITEMS).or(in_groups(SMALL_FACTOR_ROWS, LEAST_GROUP))
}

/// The kernel that follows a library's factorisation, which may have stopped.
pub(super) fn unfinished(precision: Precision) -> KernelSource {
    source(precision, "potrf_unfinished", (FACTOR_ROWS, FACTOR_ITEMS))
}

/// A work-item a row, for that kernel.
pub(super) fn unfinished_rows(rows: u32) -> NdRange {
    let items = FACTOR_ITEMS;
    NdRange::new(vec![(rows as usize).next_multiple_of(items)]).exactly(vec![items])
}

/// The groups of these units. Those after the last row have nothing to compute.
fn solutions(units: &Range<u64>, items: usize) -> NdRange {
    let unit = (BLOCK / SOLUTION_ROWS) as usize * items;
    NdRange::group_per_unit(units, unit)
        .exactly(vec![items])
        .starting_at(vec![units.start as usize * unit])
}

fn source(precision: Precision, entry: &'static str, (rows, items): (u32, usize)) -> KernelSource {
    KernelSource::new(
        include_str!("../../../../kernels/triangle_tile.cl"),
        "kernels/triangle_tile.cl",
        entry,
        format!(
            "-DDOUBLE={} -DPOTRF={} -DROWS={rows} -DITEMS={items}",
            u8::from(precision == Precision::F64),
            u8::from(entry != "trsm_tile"),
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_some_groups() {
        let sizes = solutions(&(2..5), SOLUTION_ITEMS);
        assert_eq!(sizes.global, [3 * 4 * 128]);
        assert_eq!(sizes.offset, Some(vec![2 * 4 * 128]));
    }
}
