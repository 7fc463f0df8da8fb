//! The sums' OpenCL implementation.

use super::{SLOTS, Sums};
use crate::codelet::{KernelSource, NdRange, OpenClKernel, Precision, Shape};

/// Work-items of a slot.
const GROUP: usize = 128;

/// The kernel.
pub(super) fn kernel(sums: Sums, precision: Precision) -> OpenClKernel {
    let entry = match sums {
        Sums::Squares => "sum_of_squares",
        Sums::Ranks => "sum_of_ranks",
    };
    let options = format!(
        "-DREAL={} -DGROUP={GROUP} -DSLOTS={SLOTS}",
        precision.c_type()
    );
    let text = include_str!("../../../kernels/sums.cl");
    OpenClKernel {
        source: KernelSource::new(text, "kernels/sums.cl", entry, options),
        fp64: precision == Precision::F64,
        shape: Shape::Of(|units, _| NdRange::group_per_unit(units, GROUP).exactly(vec![GROUP])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_a_work_group() {
        let kernel = kernel(Sums::Ranks, Precision::F32);
        let sizes = kernel.steps(&(0..3), &[]).remove(0).1;
        assert_eq!(sizes.global, [3 * GROUP]);
    }
}
