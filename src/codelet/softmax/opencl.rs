//! Softmax on OpenCL devices: a work-group a row.

use std::ops::Range;

use crate::codelet::{KernelSource, NdRange, NumberFormat, OpenClKernel, Shape, Value};

/// Work-items of a row.
const LANES: usize = 64;

/// The kernel for numbers of a format.
pub(super) fn kernel(format: NumberFormat) -> OpenClKernel {
    OpenClKernel {
        source: KernelSource::new(
            concat!(
                include_str!("../../../kernels/stored.h"),
                include_str!("../../../kernels/softmax.cl")
            ),
            "kernels/softmax.cl",
            "softmax",
            format!("{} -DLANES={LANES}", format.unmultiplied().option()),
        ),
        fp64: false,
        shape: Shape::Of(rows),
    }
}

fn rows(units: &Range<u64>, _args: &[Value]) -> NdRange {
    NdRange::group_per_unit(units, LANES)
        .exactly(vec![LANES])
        .starting_at(vec![units.start as usize * LANES])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_a_work_group() {
        let expected = NdRange::new(vec![3 * LANES])
            .exactly(vec![LANES])
            .starting_at(vec![10 * LANES]);
        assert_eq!(rows(&(10..13), &[]), expected);
    }
}
