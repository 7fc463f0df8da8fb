//! Convolution on OpenCL devices.

use crate::{KernelSource, LEAST_GROUP, NdRange, OpenClKernel, Shape, Value};

/// Work-items of a group, and output rows that each computes.
const ITEMS: [usize; 2] = [32, 8];
const ROWS: usize = 4;

/// Local memory that a tile may take. Every GPU has 32 KiB.
const LOCAL: usize = 32 << 10;

pub(super) fn kernel(size: u32, channels: u32) -> OpenClKernel {
    in_groups(ITEMS, size, channels).or(in_groups([LEAST_GROUP, 1], size, channels))
}

fn in_groups(items: [usize; 2], size: u32, channels: u32) -> OpenClKernel {
    let halo = (size as usize).saturating_sub(1);
    let [across, down] = tile(items, halo, channels as usize);
    let tiled = 4 * across * down <= LOCAL;
    OpenClKernel {
        source: KernelSource::new(
            include_str!("../../../kernels/convolution.cl"),
            "kernels/convolution.cl",
            "convolution",
            format!(
                "-DITEMS_X={} -DITEMS_Y={} -DROWS={ROWS} -DACROSS={across} -DDOWN={down} \
                 -DTILED={} -DSIZE={size} -DCHANNELS={channels}",
                items[0],
                items[1],
                u8::from(tiled)
            ),
        ),
        fp64: false,
        shape: Shape::with(move |_, args| groups(items, args)),
    }
}

/// Numbers and rows of input that a group reads.
fn tile(items: [usize; 2], halo: usize, channels: usize) -> [usize; 2] {
    [items[0] + halo * channels, items[1] * ROWS + halo]
}

/// A work-item for each number of a row, and for each [`ROWS`] rows.
fn groups(items: [usize; 2], args: &[Value]) -> NdRange {
    let number = |index: usize| match args.get(index) {
        Some(Value::U32(number)) => *number as usize,
        _ => 0,
    };
    let (rows, numbers) = (number(11), number(12) * number(14));
    NdRange::new(vec![
        numbers.next_multiple_of(items[0]),
        rows.div_ceil(ROWS).next_multiple_of(items[1]),
    ])
    .exactly(items.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_items_cover_the_block() {
        let mut args = vec![Value::U32(0); 15];
        (args[11], args[12], args[14]) = (Value::U32(33), Value::U32(11), Value::U32(3));
        let expected = NdRange::new(vec![64, 16]).exactly(vec![32, 8]);
        assert_eq!(groups(ITEMS, &args), expected);
    }
}
