//! The operations on OpenCL devices.

use std::ops::Range;

use crate::codelet::{KernelSource, NdRange, OpenClKernel, Shape, Value};

/// Work-items of a group.
const ITEMS: usize = 256;

fn kernel(entry: &'static str, shape: fn(&Range<u64>, &[Value]) -> NdRange) -> OpenClKernel {
    OpenClKernel {
        source: KernelSource::new(
            include_str!("../../../kernels/lu.cl"),
            "kernels/lu.cl",
            entry,
            format!("-DITEMS={ITEMS}"),
        ),
        fp64: false,
        shape: Shape::Of(shape),
    }
}

/// One group: columns follow one another.
pub(super) fn factor() -> OpenClKernel {
    kernel("lu_factor", |_, _| {
        NdRange::new(vec![ITEMS]).exactly(vec![ITEMS])
    })
}

/// A work-item a column.
pub(super) fn row() -> OpenClKernel {
    kernel("lu_row", |_, args| {
        let columns = count(args, 4);
        NdRange::new(vec![columns.next_multiple_of(ITEMS)]).exactly(vec![ITEMS])
    })
}

/// A group a row.
pub(super) fn column() -> OpenClKernel {
    kernel("lu_column", |_, args| {
        NdRange::new(vec![count(args, 3) * ITEMS]).exactly(vec![ITEMS])
    })
}

fn count(args: &[Value], index: usize) -> usize {
    match args.get(index) {
        Some(Value::U32(count)) => *count as usize,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_items_and_rows_are_groups() {
        let args = [0, 0, 7, 300, 300].map(Value::U32);
        assert_eq!(row().shape.sizes(&(0..5), &args).global, [512]);
        assert_eq!(column().shape.sizes(&(0..5), &args).global, [300 * ITEMS]);
    }
}
