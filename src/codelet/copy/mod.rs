//! Copies memory, to measure memory bandwidth.
//!
//! A unit is a piece of memory of a chosen size. A launch copies consecutive units;
//! its first unit begins at the first byte of both memories. No kernel moves memory
//! faster than a copy, so its bytes a second, read and written, bound every
//! computation that streams its data.
//!
//! ## Arguments
//!
//! | # | argument | type | meaning |
//! |---|---|---|---|
//! | 0 | `from` | memory | units to be read |
//! | 1 | `to` | memory | units to be written; does not overlap `from` |
//! | 2 | `unit_bytes` | u32 | bytes of a unit, a multiple of 16 |

mod host;

use std::ops::Range;

use super::{Codelet, Cost, HostCode, KernelSource, NdRange, OpenClKernel, Shape, Value};

/// Work-items that copy a unit on an OpenCL device.
const GROUP: usize = 256;

/// The copying codelet.
pub fn codelet() -> Codelet {
    Codelet {
        name: "copy".into(),
        host: Some(HostCode::Kernel(host::run)),
        opencl: Some(OpenClKernel {
            source: KernelSource::new(
                include_str!("../../../kernels/copy.cl"),
                "kernels/copy.cl",
                "copy",
                format!("-DITEMS={GROUP}"),
            ),
            fp64: false,
            shape: Shape::Of(groups),
        }),
        library: None,
    }
}

/// The cost of copying `units` of `unit_bytes`: every byte is read and written.
pub fn cost(units: u64, unit_bytes: u32) -> Cost {
    Cost {
        flops: 0.0,
        bytes: 2.0 * units as f64 * f64::from(unit_bytes),
    }
}

/// The arguments for copying units of `unit_bytes`.
pub fn args(from: super::Memory, to: super::Memory, unit_bytes: u32) -> Vec<Value> {
    vec![
        Value::Memory(from),
        Value::Memory(to),
        Value::U32(unit_bytes),
    ]
}

fn groups(units: &Range<u64>, _args: &[Value]) -> NdRange {
    NdRange::group_per_unit(units, GROUP).near(vec![GROUP])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_costs_a_read_and_a_write() {
        assert_eq!(cost(3, 16).bytes, 96.0);
    }

    #[test]
    fn a_unit_is_a_work_group() {
        let ndrange = groups(&(10..13), &[]);
        assert_eq!(ndrange, NdRange::new(vec![3 * GROUP]).near(vec![GROUP]));
    }
}
