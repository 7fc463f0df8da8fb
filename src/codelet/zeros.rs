//! Writing zeros: what memory holds before a kernel that writes only part of it.
//!
//! A unit is 4096 bytes; the last one may be shorter.
//!
//! ## Arguments
//!
//! | # | argument | type | meaning |
//! |---|---|---|---|
//! | 0 | `to` | memory | what is written |
//! | 1 | `bytes` | u64 | how many bytes of it, from the first on |

use std::ops::Range;

use super::host::Arguments;
use super::{
    Codelet, Cost, HostCode, HostValue, KernelSource, Memory, NdRange, OpenClKernel, Shape, Value,
};

/// Bytes of a unit.
const UNIT: u64 = 4096;

/// Work-items of a unit on an OpenCL device: 16 bytes each.
const GROUP: usize = UNIT as usize / 16;

/// The codelet.
pub fn codelet() -> Codelet {
    Codelet {
        name: "zeros".into(),
        host: Some(HostCode::Kernel(run)),
        opencl: Some(OpenClKernel {
            source: KernelSource::new(
                include_str!("../../kernels/zeros.cl"),
                "kernels/zeros.cl",
                "zeros",
                "",
            ),
            fp64: false,
            shape: Shape::Of(|units, _| {
                let groups = (units.end - units.start) as usize;
                NdRange::new(vec![groups * GROUP]).near(vec![GROUP])
            }),
        }),
        library: None,
    }
}

/// Units of so many bytes.
pub fn units(bytes: u64) -> u64 {
    bytes.div_ceil(UNIT)
}

/// The arguments for the first `bytes` of a memory.
pub fn args(to: Memory, bytes: u64) -> Vec<Value> {
    vec![Value::Memory(to), Value::U64(bytes)]
}

/// Every byte written once.
pub fn cost(bytes: u64) -> Cost {
    Cost {
        flops: 0.0,
        bytes: bytes as f64,
    }
}

/// The native implementation.
///
/// # Safety
/// That of `HostKernel`.
unsafe fn run(args: &[HostValue], first: u64, units: Range<u64>) {
    let args = Arguments {
        codelet: "zeros",
        values: args,
    };
    let (to, bytes) = (args.singles(0).cast::<u8>(), args.u64(1));
    let [begin, end] =
        [units.start, units.end].map(|unit| (((unit - first) * UNIT) as usize).min(bytes));
    // SAFETY: the memory has `bytes` bytes, and only this call touches its part.
    unsafe { to.add(begin).write_bytes(0, end - begin) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_write_all_bytes_and_no_others() {
        for bytes in [1, 4095, 4096, 4097, 10_000] {
            let mut memory = vec![0xEE_u8; 3 * UNIT as usize];
            let args = [
                HostValue::Memory {
                    address: memory.as_mut_ptr(),
                    bytes: memory.len() as u64,
                },
                HostValue::U64(bytes as u64),
            ];
            for unit in 0..units(bytes as u64) {
                // SAFETY: the memory has at least `bytes` bytes.
                unsafe { run(&args, 7, unit + 7..unit + 8) };
            }
            let (zeros, rest) = memory.split_at(bytes);
            assert!(zeros.iter().all(|byte| *byte == 0), "{bytes}");
            assert!(rest.iter().all(|byte| *byte == 0xEE), "{bytes}");
        }
    }
}
