//! The stencils' OpenCL implementation: source, options and sizes.

use std::ops::Range;

use super::{Dimensions, Precision};
use crate::codelet::{NdRange, OpenClKernel, Value};

/// The OpenCL kernel of a stencil.
pub fn kernel(dimensions: Dimensions, precision: Precision) -> OpenClKernel {
    OpenClKernel {
        source: include_str!("../../../kernels/stencil.cl"),
        file: "kernels/stencil.cl",
        entry: match dimensions {
            Dimensions::Two => "stencil5",
            Dimensions::Three => "stencil7",
        },
        options: match precision {
            Precision::F64 => "-DREAL=double",
            Precision::F32 => "-DREAL=float",
        },
        fp64: precision == Precision::F64,
        ndrange: match dimensions {
            Dimensions::Two => rows,
            Dimensions::Three => planes,
        },
    }
}

fn extent(args: &[Value], index: usize) -> usize {
    match args.get(index) {
        Some(Value::U32(n)) => *n as usize,
        _ => 0,
    }
}

fn rows(units: &Range<u64>, args: &[Value]) -> NdRange {
    NdRange {
        global: vec![extent(args, 9), (units.end - units.start) as usize],
        local: None,
    }
}

fn planes(units: &Range<u64>, args: &[Value]) -> NdRange {
    NdRange {
        global: vec![
            extent(args, 9),
            extent(args, 10),
            (units.end - units.start) as usize,
        ],
        local: None,
    }
}
