//! The product's OpenCL implementation: source, options and sizes.
//!
//! A work-group computes a unit. It reads the unit's entries side by side, puts
//! the products into local memory and sums rows there: a row a work-item where
//! a unit has many, else a row several work-items, the more the longer the rows
//! are. A piece of a long row is summed by the whole group.

use std::ops::Range;

use super::{Precision, unit_weight};
use crate::codelet::{NdRange, OpenClKernel, Value};

macro_rules! lanes {
    () => {
        256
    };
}
macro_rules! options {
    ($real:literal) => {
        concat!(
            "-DREAL=",
            $real,
            " -DLANES=",
            lanes!(),
            " -DWEIGHT=",
            unit_weight!()
        )
    };
}

/// Work-items of a group: what every GPU offers, and eight loads each under way
/// at once.
pub const LANES: usize = lanes!();

/// The OpenCL kernel of a product.
pub fn kernel(precision: Precision) -> OpenClKernel {
    OpenClKernel {
        source: include_str!("../../../kernels/spmv.cl"),
        file: "kernels/spmv.cl",
        entry: "spmv",
        options: match precision {
            Precision::F64 => options!("double"),
            Precision::F32 => options!("float"),
        },
        fp64: precision == Precision::F64,
        ndrange: groups,
    }
}

fn groups(units: &Range<u64>, _args: &[Value]) -> NdRange {
    NdRange {
        global: vec![(units.end - units.start) as usize * LANES],
        local: Some(vec![LANES]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_a_work_group() {
        let ndrange = groups(&(10..13), &[]);
        assert_eq!(ndrange.global, [3 * LANES]);
        assert_eq!(ndrange.local, Some(vec![LANES]));
        assert_eq!(
            kernel(Precision::F32).options,
            format!(
                "-DREAL=float -DLANES=256 -DWEIGHT={}",
                crate::codelet::spmv::UNIT_WEIGHT
            )
        );
    }
}
