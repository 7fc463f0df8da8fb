//! The stencils' OpenCL implementation: source, options and sizes.
//!
//! A work-item computes one column of several units. The figures below were
//! chosen for GPUs; the kernels are right with any other, and need neither
//! barriers nor a particular local size. Those that find the largest change need both: each
//! group raises a cell of its own.

use std::ops::Range;

use super::{Dimensions, Precision, Rule};
use crate::{KernelSource, NdRange, OpenClKernel, Shape, Value};

/// Rows that a work-item of the 5-point stencil computes. It reads two more, which
/// its neighbours read too and the second-level cache mostly holds. PoCL runs twice
/// as fast with 8 as with 1, and slower with 16.
pub const ROWS_PER_ITEM: usize = 8;

/// Planes that a work-item of the 7-point stencil computes.
pub const PLANES_PER_ITEM: usize = 4;

/// Columns of a work-group of the 5-point stencil: whole cache lines to every
/// warp, and enough groups for every multiprocessor in small chunks too.
pub const GROUP: usize = 128;

/// Columns along x and y of a work-group of the 7-point stencil.
pub const GROUP_3D: [usize; 2] = [64, 4];

/// The OpenCL kernel of a stencil.
pub fn kernel(dimensions: Dimensions, precision: Precision, rule: Rule) -> OpenClKernel {
    let (entry, shape) = match dimensions {
        Dimensions::Two => ("stencil5", Shape::Of(rows)),
        Dimensions::Three => ("stencil7", Shape::Of(planes)),
    };
    built((dimensions, precision, rule), entry, "", shape)
}

/// The OpenCL kernel of a stencil that also finds the largest change.
pub fn changes(dimensions: Dimensions, precision: Precision, rule: Rule) -> OpenClKernel {
    let (entry, shape) = match dimensions {
        Dimensions::Two => ("stencil5", Shape::Of(whole_rows)),
        Dimensions::Three => ("stencil7", Shape::Of(whole_planes)),
    };
    let options = cells(dimensions, precision);
    built((dimensions, precision, rule), entry, &options, shape)
}

/// The OpenCL kernel that folds what launches of [`changes()`] raised.
pub fn fold_changes(dimensions: Dimensions, precision: Precision, rule: Rule) -> OpenClKernel {
    let shape = match dimensions {
        Dimensions::Two => Shape::Of(|cells, _| folded(cells, Dimensions::Two)),
        Dimensions::Three => Shape::Of(|cells, _| folded(cells, Dimensions::Three)),
    };
    let options = cells(dimensions, precision);
    built(
        (dimensions, precision, rule),
        "fold_changes",
        &options,
        shape,
    )
}

/// Work-items of a group.
fn group_items(dimensions: Dimensions) -> usize {
    match dimensions {
        Dimensions::Two => GROUP,
        Dimensions::Three => GROUP_3D[0] * GROUP_3D[1],
    }
}

/// Options of the kernels that find the largest change.
fn cells(dimensions: Dimensions, precision: Precision) -> String {
    let (cell, bits) = precision.choose(("uint", "as_uint"), ("ulong", "as_ulong"));
    let group = group_items(dimensions);
    format!(" -DCELL={cell} -DAS_CELL={bits} -DGROUP_ITEMS={group}")
}

fn built(
    (dimensions, precision, rule): (Dimensions, Precision, Rule),
    entry: &'static str,
    options: &str,
    shape: Shape,
) -> OpenClKernel {
    let per_item = match dimensions {
        Dimensions::Two => ROWS_PER_ITEM,
        Dimensions::Three => PLANES_PER_ITEM,
    };
    let real = precision.c_type();
    let rule = match rule {
        Rule::Mean => "",
        Rule::Weighted => " -DWEIGHTED",
    };
    OpenClKernel {
        source: KernelSource::new(
            include_str!("../../../kernels/stencil.cl"),
            "kernels/stencil.cl",
            entry,
            format!("-DREAL={real} -DUNITS_PER_ITEM={per_item}{rule}{options}"),
        ),
        fp64: precision == Precision::F64,
        shape,
    }
}

/// A work-group for each cell that others are folded to.
fn folded(cells: &Range<u64>, dimensions: Dimensions) -> NdRange {
    let (groups, items) = ((cells.end - cells.start) as usize, group_items(dimensions));
    NdRange::new(vec![groups * items]).exactly(vec![items])
}

/// Points along an axis, from argument `index`.
fn extent(args: &[Value], index: usize) -> usize {
    match args.get(index) {
        Some(Value::U32(n)) => *n as usize,
        _ => 0,
    }
}

fn rows(units: &Range<u64>, args: &[Value]) -> NdRange {
    row_items(units, args).near(vec![GROUP, 1])
}

fn whole_rows(units: &Range<u64>, args: &[Value]) -> NdRange {
    row_items(units, args).exactly(vec![GROUP, 1])
}

fn row_items(units: &Range<u64>, args: &[Value]) -> NdRange {
    let count = (units.end - units.start) as usize;
    NdRange::new(vec![
        extent(args, 9).next_multiple_of(GROUP),
        count.div_ceil(ROWS_PER_ITEM),
    ])
}

fn planes(units: &Range<u64>, args: &[Value]) -> NdRange {
    let [x, y] = GROUP_3D;
    plane_items(units, args).near(vec![x, y, 1])
}

fn whole_planes(units: &Range<u64>, args: &[Value]) -> NdRange {
    let [x, y] = GROUP_3D;
    plane_items(units, args).exactly(vec![x, y, 1])
}

fn plane_items(units: &Range<u64>, args: &[Value]) -> NdRange {
    let count = (units.end - units.start) as usize;
    let [x, y] = GROUP_3D;
    NdRange::new(vec![
        extent(args, 9).next_multiple_of(x),
        extent(args, 10).next_multiple_of(y),
        count.div_ceil(PLANES_PER_ITEM),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_and_sizes_agree_on_the_units_of_an_item() {
        for (dimensions, units) in [
            (Dimensions::Two, ROWS_PER_ITEM),
            (Dimensions::Three, PLANES_PER_ITEM),
        ] {
            let kernel = kernel(dimensions, Precision::F64, Rule::Mean);
            let option = format!("-DUNITS_PER_ITEM={units}");
            assert!(kernel.source.options().ends_with(&option), "{kernel:?}");
        }
    }

    #[test]
    fn every_column_and_unit_has_an_item() {
        let mut args = vec![Value::U32(0); 12];
        args[9] = Value::U32(4099);
        args[10] = Value::U32(17);
        let flat = rows(&(5..22), &args);
        assert_eq!(flat.global, [4224, 3]);
        let solid = planes(&(0..5), &args);
        assert_eq!(solid.global, [4160, 20, 2]);
    }
}
