//! The operations on OpenCL devices.

use std::ops::Range;

use crate::codelet::{KernelSource, NdRange, OpenClKernel, Precision, Shape, Value};

/// Work-items of a group.
const ITEMS: usize = 256;

/// Columns that a group exchanges and solves: `ACROSS_B` of the kernel.
const ACROSS: usize = 32;

fn kernel(
    precision: Precision,
    entry: &'static str,
    shape: fn(&Range<u64>, &[Value]) -> NdRange,
) -> OpenClKernel {
    let fp64 = precision == Precision::F64;
    OpenClKernel {
        source: KernelSource::new(
            include_str!("../../../kernels/lu.cl"),
            "kernels/lu.cl",
            entry,
            format!("-DITEMS={ITEMS} -DDOUBLE={}", u8::from(fp64)),
        ),
        fp64,
        shape: Shape::Of(shape),
    }
}

/// One group: columns follow one another.
pub(super) fn panel(precision: Precision) -> OpenClKernel {
    kernel(precision, "lu_panel", |_, _| {
        NdRange::new(vec![ITEMS]).exactly(vec![ITEMS])
    })
}

/// A group for each [`ACROSS`] columns.
pub(super) fn row(precision: Precision) -> OpenClKernel {
    kernel(precision, "lu_row", |_, args| {
        let groups = width(args, 4).div_ceil(ACROSS);
        NdRange::new(vec![groups * ITEMS]).exactly(vec![ITEMS])
    })
}

/// A work-item a column.
pub(super) fn exchange(precision: Precision) -> OpenClKernel {
    kernel(precision, "lu_exchange", |_, args| columns(args, 3))
}

/// A work-item for each column, whose number is an argument.
fn columns(args: &[Value], index: usize) -> NdRange {
    NdRange::new(vec![width(args, index).next_multiple_of(ITEMS)]).exactly(vec![ITEMS])
}

fn width(args: &[Value], index: usize) -> usize {
    match args.get(index) {
        Some(Value::U32(count)) => *count as usize,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_divided_among_groups() {
        let args = [0, 0, 7, 300, 513].map(Value::U32);
        let size = |kernel: OpenClKernel| kernel.shape.sizes(&(0..5), &args).global;
        assert_eq!(size(row(Precision::F32)), [17 * 256]);
        assert_eq!(size(exchange(Precision::F64)), [512]);
    }
}
