//! Copying rows of bytes between memories of any layout: how a device that computes in host
//! memory puts together what lies apart.
//!
//! A unit is 64 KiB of the rows, taken one after the other without gaps; the last one may be
//! shorter.
//!
//! ## Arguments
//!
//! | # | argument | type | meaning |
//! |---|---|---|---|
//! | 0 | `from` | memory | what is read |
//! | 1 | `to` | memory | what is written; another one |
//! | 2, 3 | `from_first`, `from_pitch` | u64 | the bytes of `from` before the first row, and from one row to the next |
//! | 4, 5 | `to_first`, `to_pitch` | u64 | the same of `to` |
//! | 6 | `row` | u64 | bytes of a row |
//! | 7 | `bytes` | u64 | bytes of all rows |

use std::ops::Range;

use super::host::Arguments;
use super::{
    Codelet, Cost, HostCode, HostValue, KernelSource, Memory, NdRange, OpenClKernel, Shape, Value,
};

/// Bytes of a unit.
const UNIT: u64 = 64 << 10;

/// Work-items of a unit on an OpenCL device.
const GROUP: usize = 64;

/// Rows at a pitch, from some byte on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lines {
    pub first: u64,
    pub pitch: u64,
}

/// The codelet.
pub fn codelet() -> Codelet {
    Codelet {
        name: "copy-rows".into(),
        host: Some(HostCode::Kernel(run)),
        opencl: Some(OpenClKernel {
            source: KernelSource::new(
                include_str!("../../kernels/copy_rows.cl"),
                "kernels/copy_rows.cl",
                "copy_rows",
                format!("-DITEMS={GROUP}"),
            ),
            fp64: false,
            shape: Shape::Of(|units, _| NdRange::group_per_unit(units, GROUP).near(vec![GROUP])),
        }),
        library: None,
    }
}

/// Units of so many bytes.
pub fn units(bytes: u64) -> u64 {
    bytes.div_ceil(UNIT)
}

/// The arguments for `rows` rows of `row` bytes.
pub fn args(from: (Memory, Lines), to: (Memory, Lines), rows: u64, row: u64) -> Vec<Value> {
    vec![
        Value::ReadOnly(from.0),
        Value::Memory(to.0),
        Value::U64(from.1.first),
        Value::U64(from.1.pitch),
        Value::U64(to.1.first),
        Value::U64(to.1.pitch),
        Value::U64(row),
        Value::U64(rows * row),
    ]
}

/// Every byte is read and written.
pub fn cost(bytes: u64) -> Cost {
    Cost {
        flops: 0.0,
        bytes: 2.0 * bytes as f64,
    }
}

/// The native implementation.
///
/// # Safety
/// That of `HostKernel`.
unsafe fn run(args: &[HostValue], first: u64, units: Range<u64>) {
    let args = Arguments {
        codelet: "copy-rows",
        values: args,
    };
    let (from, to) = (args.memory::<u8>(0), args.memory::<u8>(1));
    let [from_first, from_pitch] = [args.u64(2), args.u64(3)];
    let [to_first, to_pitch] = [args.u64(4), args.u64(5)];
    let (row, all) = (args.u64(6), args.u64(7));
    let [mut at, end] =
        [units.start, units.end].map(|unit| (((unit - first) * UNIT) as usize).min(all));
    while at < end {
        let (number, column) = (at / row, at % row);
        let bytes = (row - column).min(end - at);
        // SAFETY: both memories have the rows, and only this call touches its part of `to`.
        unsafe {
            from.add(from_first + number * from_pitch + column)
                .copy_to_nonoverlapping(to.add(to_first + number * to_pitch + column), bytes);
        }
        at += bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls the host implementation as a device does, tile by tile.
    fn copied(from: &mut [u8], to: &mut [u8], lines: [Lines; 2], rows: u64, row: u64) {
        let memory = |bytes: &mut [u8]| HostValue::Memory {
            address: bytes.as_mut_ptr(),
            bytes: bytes.len() as u64,
        };
        let [source, target] = lines;
        let numbers = [source.first, source.pitch, target.first, target.pitch];
        let numbers = numbers.into_iter().chain([row, rows * row]);
        let args: Vec<HostValue> = ([memory(from), memory(to)].into_iter())
            .chain(numbers.map(HostValue::U64))
            .collect();
        for unit in 0..units(rows * row) {
            // SAFETY: the caller's memories have these rows.
            unsafe { run(&args, 5, unit + 5..unit + 6) };
        }
    }

    #[test]
    fn tiles_copy_their_rows_and_nothing_else() {
        let mut random = fastrand::Rng::with_seed(1);
        for (rows, row) in [(1, 1), (1, 3 * UNIT + 7), (700, 333), (3, UNIT)] {
            let lines = [(); 2].map(|()| Lines {
                first: random.u64(..50),
                pitch: row + random.u64(..20),
            });
            let [source, target] = lines;
            let length = |lines: Lines| (lines.first + rows * lines.pitch + 9) as usize;
            let mut from: Vec<u8> = (0..length(source)).map(|_| random.u8(..)).collect();
            let mut to = vec![0xEE; length(target)];
            copied(&mut from, &mut to, lines, rows, row);
            let mut right = vec![0xEE; to.len()];
            for number in 0..rows {
                let at = |lines: Lines| {
                    let first = (lines.first + number * lines.pitch) as usize;
                    first..first + row as usize
                };
                right[at(target)].copy_from_slice(&from[at(source)]);
            }
            assert!(to == right, "{rows} rows of {row}");
        }
    }
}
