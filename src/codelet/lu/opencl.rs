//! The operations on OpenCL devices.

use std::ops::Range;
use std::sync::Arc;

use crate::{KernelSeries, KernelSource, NdRange, OpenClKernel, Precision, Shape, Value};

/// Work-items of a group.
const ITEMS: usize = 256;

/// Columns of a panel's strip, which are factored one by one, and rows that a group has of
/// them, which are not fewer. On an H200 a panel of 16384 rows takes 3.6 ms with 32 rows, and
/// 5.1 with 128.
const STRIP: usize = 32;
const ROWS: usize = 32;

/// Columns that a group exchanges beside a strip, and rows and columns below it that a group
/// computes: `CHUNK` and `TILE` of the kernels.
const CHUNK: usize = 32;
const TILE: usize = 64;

/// Columns that a group exchanges and solves beside a panel: `ACROSS` of the kernel.
const ACROSS: usize = 8;

/// Rows and columns of a panel that a group transposes: `SIDE` of the kernels.
const SIDE: u32 = 32;

/// Columns of a chunk of late exchanges, whose rows are then long enough to be read at the full
/// rate, and of which scratch has a copy.
const LATE: usize = 64;

/// The kernels of late exchanges, by their places in their series.
const EXCHANGES: [&str; 3] = ["lu_sources", "lu_gather", "lu_return"];
const SOURCES: usize = 0;
const GATHER: usize = 1;
const RETURN: usize = 2;

/// The kernels of a panel, by their places in its series.
const PANEL: [&str; 4] = ["lu_search", "lu_column", "lu_beside", "lu_below"];
const SEARCH: usize = 0;
const COLUMN: usize = 1;
const BESIDE: usize = 2;
const BELOW: usize = 3;

fn source(precision: Precision, entry: &'static str) -> KernelSource {
    let double = u8::from(precision == Precision::F64);
    KernelSource::new(
        include_str!("../../../kernels/lu.cl"),
        "kernels/lu.cl",
        entry,
        format!("-DITEMS={ITEMS} -DSTRIP={STRIP} -DROWS={ROWS} -DLATE={LATE} -DDOUBLE={double}"),
    )
}

fn kernel(precision: Precision, source: KernelSource, shape: Shape) -> OpenClKernel {
    OpenClKernel {
        source,
        fp64: precision == Precision::F64,
        shape,
    }
}

/// So many groups. The offset of dimension 1 is the column.
fn groups(count: usize, column: usize) -> NdRange {
    NdRange::new(vec![count * ITEMS, 1])
        .exactly(vec![ITEMS, 1])
        .starting_at(vec![0, column])
}

/// A series for each strip.
pub(super) fn panel(precision: Precision) -> OpenClKernel {
    series(precision, &PANEL, (panel_steps, panel_scratch))
}

/// The launches of a series: the places of their kernels, and their sizes.
type Steps = fn(&Range<u64>, &[Value]) -> Vec<(usize, NdRange)>;

fn series(
    precision: Precision,
    entries: &[&'static str],
    (steps, scratch): (Steps, fn(&[Value]) -> u64),
) -> OpenClKernel {
    let kernels = entries.iter().map(|entry| source(precision, entry));
    let kernels: Vec<KernelSource> = kernels.collect();
    let first = kernels[0].clone();
    let series = KernelSeries {
        kernels,
        steps,
        scratch,
    };
    kernel(precision, first, Shape::Series(Arc::new(series)))
}

fn panel_steps(units: &Range<u64>, args: &[Value]) -> Vec<(usize, NdRange)> {
    let (rows, columns) = (size(args, 2), size(args, 3));
    let columns = if units.is_empty() { 0 } else { columns };
    let mut steps = Vec::new();
    for begin in (0..columns).step_by(STRIP) {
        let end = (begin + STRIP).min(columns);
        let of_rows = (rows - begin).div_ceil(ROWS);
        steps.push((SEARCH, groups(of_rows, begin)));
        steps.extend((begin..end).map(|column| (COLUMN, groups(of_rows, column))));
        let right = columns - end;
        let beside = begin / CHUNK + right.div_ceil(CHUNK);
        steps.push((BESIDE, groups(beside, begin)));
        let below = (rows - end).div_ceil(TILE) * right.div_ceil(TILE);
        steps.push((BELOW, groups(below, begin)));
    }
    steps
}

/// For two columns: of each group the size and the place of a pivot and a strip's numbers of
/// its row, and another row.
fn panel_scratch(args: &[Value]) -> u64 {
    let groups = size(args, 2).div_ceil(ROWS);
    // In each precision as many bytes as doubles have.
    (2 * (groups + 1) * (1 + STRIP) * 8 + 2 * groups * 4) as u64
}

/// Exchanges and solutions.
pub(super) fn row(precision: Precision) -> OpenClKernel {
    let shape = |_: &Range<u64>, args: &[Value]| row_groups(size(args, 4));
    kernel(precision, source(precision, "lu_row"), Shape::Of(shape))
}

/// The kernels before and after a library's factors of a panel.
pub(super) fn around_panel(precision: Precision) -> Vec<KernelSource> {
    let entries = ["lu_to_columns", "lu_from_columns", "lu_pivots"];
    entries.map(|entry| source(precision, entry)).to_vec()
}

/// A group for each [`SIDE`] rows and columns, for the first two of those kernels.
pub(super) fn squares(rows: u32, columns: u32) -> NdRange {
    let groups = rows.div_ceil(SIDE) as usize * columns.div_ceil(SIDE) as usize;
    NdRange::new(vec![groups * ITEMS]).exactly(vec![ITEMS])
}

/// A work-item a column, for the third.
pub(super) fn of_columns(columns: u32) -> NdRange {
    NdRange::new(vec![(columns as usize).next_multiple_of(ITEMS)]).exactly(vec![ITEMS])
}

/// The exchanges of the kernel of [`row`].
pub(super) fn row_exchange(precision: Precision) -> KernelSource {
    source(precision, "lu_row_exchange")
}

/// A group for each [`ACROSS`] columns.
pub(super) fn row_groups(columns: usize) -> NdRange {
    NdRange::new(vec![columns.div_ceil(ACROSS) * ITEMS]).exactly(vec![ITEMS])
}

/// Where all rows come from, and then a chunk of columns after the other.
pub(super) fn exchange(precision: Precision) -> OpenClKernel {
    let scratch = match precision {
        Precision::F32 => |args: &[Value]| exchange_scratch(size(args, 2), 4),
        Precision::F64 => |args: &[Value]| exchange_scratch(size(args, 2), 8),
    };
    series(precision, &EXCHANGES, (exchange_steps, scratch))
}

fn exchange_steps(units: &Range<u64>, args: &[Value]) -> Vec<(usize, NdRange)> {
    let (rows, columns) = (size(args, 2), size(args, 3));
    if units.is_empty() {
        return Vec::new();
    }
    let mut steps = vec![(SOURCES, groups(rows.div_ceil(ITEMS), 0))];
    for chunk in (0..columns).step_by(LATE) {
        let numbers = rows * LATE.min(columns - chunk);
        let sizes = groups(numbers.div_ceil(ITEMS), chunk);
        steps.extend([(GATHER, sizes.clone()), (RETURN, sizes)]);
    }
    steps
}

/// The numbers of a chunk, and for each row a row.
fn exchange_scratch(rows: usize, number: usize) -> u64 {
    (rows * LATE * number + rows * 4) as u64
}

/// An argument that is a size.
fn size(args: &[Value], index: usize) -> usize {
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
        let size = |kernel: OpenClKernel| kernel.steps(&(0..5), &args).remove(0).1.global;
        assert_eq!(size(row(Precision::F32)), [65 * 256]);
    }

    #[test]
    fn late_exchanges_are_a_series_for_each_chunk() {
        let args = [0, 0, 300, 70].map(Value::U32);
        let kernel = exchange(Precision::F64);
        let steps = kernel.steps(&(0..2), &args);
        let launches = steps.iter().map(|(source, sizes)| {
            let offset = sizes.offset.as_ref().expect("a column");
            (source.entry(), sizes.global[0] / ITEMS, offset[1])
        });
        let expected = [
            ("lu_sources", 2, 0),
            ("lu_gather", 75, 0),
            ("lu_return", 75, 0),
            ("lu_gather", 8, 64),
            ("lu_return", 8, 64),
        ];
        assert_eq!(launches.collect::<Vec<_>>(), expected);
        assert!(kernel.steps(&(0..0), &args).is_empty());
        assert_eq!(kernel.scratch(&args), Some(300 * 64 * 8 + 300 * 4));
    }

    /// Groups and the first column of each kernel, for a panel of 100 rows and 70 columns.
    #[test]
    fn a_panel_is_a_series_for_each_strip() {
        let args = [0, 0, 100, 70].map(Value::U32);
        let kernel = panel(Precision::F32);
        let steps = kernel.steps(&(0..1), &args);
        let launches = |entry: &str| -> Vec<(usize, usize)> {
            let steps = steps.iter().filter(|(source, _)| source.entry() == entry);
            let launches = steps.map(|(_, sizes)| {
                let offset = sizes.offset.as_ref().expect("a column");
                (sizes.global[0] / ITEMS, offset[1])
            });
            launches.collect()
        };
        assert_eq!(launches("lu_search"), [(4, 0), (3, 32), (2, 64)]);
        let columns = (0..70).map(|column| (4 - column / 32, column));
        assert_eq!(launches("lu_column"), columns.collect::<Vec<_>>());
        assert_eq!(launches("lu_beside"), [(2, 0), (2, 32), (2, 64)]);
        assert_eq!(launches("lu_below"), [(2, 0), (1, 32), (0, 64)]);
        assert!(kernel.steps(&(0..0), &args).is_empty());
        assert_eq!(kernel.scratch(&args), Some(2 * 5 * 33 * 8 + 32));
    }
}
