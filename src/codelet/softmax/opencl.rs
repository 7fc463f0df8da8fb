//! Softmax on OpenCL devices: a work-group a row.

use crate::{KernelSource, LEAST_GROUP, NdRange, NumberFormat, OpenClKernel, Shape};

/// Work-items of a row.
const LANES: usize = 64;

/// The kernel for numbers of a format.
pub(super) fn kernel(format: NumberFormat) -> OpenClKernel {
    in_groups(LANES, format).or(in_groups(LEAST_GROUP, format))
}

fn in_groups(lanes: usize, format: NumberFormat) -> OpenClKernel {
    OpenClKernel {
        source: KernelSource::new(
            concat!(
                include_str!("../../../kernels/stored.h"),
                include_str!("../../../kernels/softmax.cl")
            ),
            "kernels/softmax.cl",
            "softmax",
            format!("{} -DLANES={lanes}", format.unmultiplied().option()),
        ),
        fp64: false,
        shape: Shape::with(move |units, _| NdRange::exact_group_per_unit(units, lanes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_a_work_group() {
        let kernel = kernel(NumberFormat::F32);
        for (kernel, lanes) in [(&kernel, 64), (kernel.source.smaller().unwrap(), 32)] {
            let expected = NdRange::new(vec![3 * lanes])
                .exactly(vec![lanes])
                .starting_at(vec![10 * lanes]);
            assert_eq!(kernel.steps(&(10..13), &[]).remove(0).1, expected);
            let option = format!("-DLANES={lanes}");
            assert!(kernel.source.options().ends_with(&option), "{kernel:?}");
        }
    }
}
