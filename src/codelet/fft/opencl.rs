//! Transforms on OpenCL devices.

use super::Along;
use crate::{KernelSource, LEAST_GROUP, NdRange, OpenClKernel, Shape};

/// Most work-items of a line.
const ITEMS: usize = 256;

/// The kernel for lines of this length, a power of two.
pub(super) fn kernel(length: u32, along: Along) -> OpenClKernel {
    let of_items = |most: usize| in_groups(most.min(length as usize / 2), length, along);
    of_items(ITEMS).or(of_items(LEAST_GROUP))
}

fn in_groups(items: usize, length: u32, along: Along) -> OpenClKernel {
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
        shape: Shape::with(move |units, _| NdRange::exact_group_per_unit(units, items)),
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
