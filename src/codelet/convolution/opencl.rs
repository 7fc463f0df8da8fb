//! Convolution on OpenCL devices.

use std::ops::Range;

use crate::codelet::{KernelSource, NdRange, OpenClKernel, Shape, Value};

/// Work-items of a group, and output rows that each computes.
const ITEMS: [usize; 2] = [32, 8];
const ROWS: usize = 4;

/// Local memory that a tile may take. Every GPU has 32 KiB.
const LOCAL: usize = 32 << 10;

pub(super) fn kernel(size: u32, channels: u32) -> OpenClKernel {
    let halo = (size as usize).saturating_sub(1);
    let [across, down] = tile(halo, channels as usize);
    let tiled = 4 * across * down <= LOCAL;
    OpenClKernel {
        source: KernelSource::new(
            include_str!("../../../kernels/convolution.cl"),
            "kernels/convolution.cl",
            "convolution",
            format!(
                "-DITEMS_X={} -DITEMS_Y={} -DROWS={ROWS} -DACROSS={across} -DDOWN={down} \
                 -DTILED={} -DSIZE={size} -DCHANNELS={channels}",
                ITEMS[0],
                ITEMS[1],
                u8::from(tiled)
            ),
        ),
        fp64: false,
        shape: Shape::Of(groups),
    }
}

/// Numbers and rows of input that a group reads.
fn tile(halo: usize, channels: usize) -> [usize; 2] {
    [ITEMS[0] + halo * channels, ITEMS[1] * ROWS + halo]
}

/// A work-item for each number of a row, and for each [`ROWS`] rows.
fn groups(_units: &Range<u64>, args: &[Value]) -> NdRange {
    let number = |index: usize| match args.get(index) {
        Some(Value::U32(number)) => *number as usize,
        _ => 0,
    };
    let (rows, numbers) = (number(11), number(12) * number(14));
    NdRange::new(vec![
        numbers.next_multiple_of(ITEMS[0]),
        rows.div_ceil(ROWS).next_multiple_of(ITEMS[1]),
    ])
    .exactly(ITEMS.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_items_cover_the_block() {
        let mut args = vec![Value::U32(0); 15];
        (args[11], args[12], args[14]) = (Value::U32(33), Value::U32(11), Value::U32(3));
        let expected = NdRange::new(vec![64, 16]).exactly(vec![32, 8]);
        assert_eq!(groups(&(0..33), &args), expected);
    }
}
