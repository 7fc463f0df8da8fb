//! Transposition on OpenCL devices: a work-group a square.

use std::ops::Range;

use crate::{KernelSource, LEAST_GROUP, NdRange, NumberFormat, OpenClKernel, Shape, Value};

/// Numbers along a square's side, and rows of it that are moved at once.
const SIDE: usize = 32;
const DEEP: usize = 8;

/// The kernel for numbers of a format.
pub(super) fn kernel(format: NumberFormat) -> OpenClKernel {
    moving(DEEP, format).or(moving(LEAST_GROUP / SIDE, format))
}

fn moving(deep: usize, format: NumberFormat) -> OpenClKernel {
    OpenClKernel {
        source: KernelSource::new(
            concat!(
                include_str!("../../../kernels/stored.h"),
                include_str!("../../../kernels/transpose.cl")
            ),
            "kernels/transpose.cl",
            "transpose",
            format!(
                "{} -DSIDE={SIDE} -DDEEP={deep}",
                format.unmultiplied().option()
            ),
        ),
        fp64: false,
        shape: Shape::with(move |units, args| squares(deep, units, args)),
    }
}

fn squares(deep: usize, units: &Range<u64>, args: &[Value]) -> NdRange {
    let size = |index: usize| match args.get(index) {
        Some(Value::U32(size)) => *size as usize,
        other => unreachable!("transpose argument {index} is a u32, not {other:?}"),
    };
    let (rows, columns) = (size(2), size(3));
    let matrix = columns.max(1) as u64;
    NdRange::new(vec![
        columns.next_multiple_of(SIDE),
        rows.div_ceil(SIDE) * deep,
        ((units.end - units.start) / matrix) as usize,
    ])
    .exactly(vec![SIDE, deep, 1])
    .starting_at(vec![0, 0, (units.start / matrix) as usize])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BufferId, Memory};

    #[test]
    fn squares_cover_the_matrices_of_the_units() {
        let memory = Value::Memory(Memory::Device(BufferId::fresh()));
        let args = [memory, memory, Value::U32(33), Value::U32(7)];
        let sizes = squares(DEEP, &(7..21), &args);
        assert_eq!(sizes.global, [32, 2 * DEEP, 2]);
        assert_eq!(sizes.offset, Some(vec![0, 0, 1]));
    }
}
