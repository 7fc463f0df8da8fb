//! The product's OpenCL implementation: source, options and sizes.
//!
//! A work-group computes a unit. It reads the unit's entries side by side, puts
//! the products into local memory and sums rows there: a row a work-item where
//! a unit has many, else a row several work-items, the more the longer the rows
//! are. A piece of a long row is summed by the whole group.

use super::{MARK, Precision, UNIT_WEIGHT, UnitSums};
use crate::{KernelSource, LEAST_GROUP, NdRange, OpenClKernel, Shape};

/// Work-items of a group: every GPU has as many, and each has eight loads in flight.
pub const LANES: usize = 256;

/// The OpenCL kernel of a product.
pub fn kernel(precision: Precision) -> OpenClKernel {
    in_groups(LANES, precision).or(in_groups(LEAST_GROUP, precision))
}

fn in_groups(lanes: usize, precision: Precision) -> OpenClKernel {
    OpenClKernel {
        source: KernelSource::new(
            include_str!("../../../kernels/spmv.cl"),
            "kernels/spmv.cl",
            "spmv",
            format!(
                "-DREAL={} -DLANES={lanes} -DWEIGHT={UNIT_WEIGHT} -DEND={} -DSQUARES={} -DRANKS={}",
                precision.c_type(),
                MARK - 1,
                UnitSums::Squares as u32,
                UnitSums::Ranks as u32
            ),
        ),
        fp64: precision == Precision::F64,
        shape: Shape::with(move |units, _| {
            NdRange::group_per_unit(units, lanes).exactly(vec![lanes])
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_a_work_group() {
        let ndrange = kernel(Precision::F64).steps(&(10..13), &[]).remove(0).1;
        assert_eq!(ndrange, NdRange::new(vec![3 * LANES]).exactly(vec![LANES]));
        assert_eq!(
            kernel(Precision::F32).source.options(),
            format!(
                "-DREAL=float -DLANES=256 -DWEIGHT={} -DEND=32767 -DSQUARES=1 -DRANKS=2",
                crate::spmv::UNIT_WEIGHT
            )
        );
    }
}
