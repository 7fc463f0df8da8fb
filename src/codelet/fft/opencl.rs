//! Transforms on OpenCL devices.

use std::ops::Range;

use super::Along;
use crate::codelet::{KernelSource, NdRange, OpenClKernel, Shape, Value};

/// Most work-items of a line.
const ITEMS: u32 = 256;

/// The kernel for lines of this length, a power of two.
pub(super) fn kernel(length: u32, along: Along) -> OpenClKernel {
    let items = (length / 2).min(ITEMS);
    OpenClKernel {
        source: KernelSource::new(
            include_str!("../../../kernels/fft.cl"),
            "kernels/fft.cl",
            "fft",
            format!(
                "-DLENGTH={length} -DITEMS={items} -DCOLUMNS={}",
                u8::from(along == Along::Columns)
            ),
        ),
        fp64: false,
        shape: Shape::with(move |units: &Range<u64>, _: &[Value]| {
            NdRange::group_per_unit(units, items as usize)
                .exactly(vec![items as usize])
                .starting_at(vec![units.start as usize * items as usize])
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_work_group() {
        let sizes = kernel(64, Along::Rows).steps(&(3..5), &[]).remove(0).1;
        assert_eq!((sizes.global, sizes.offset), (vec![64], Some(vec![96])));
    }
}
