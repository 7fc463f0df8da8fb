//! The operations on the host: panels of a few columns by loops, the rest by products of
//! one thread.

use std::ops::Range;

use super::WIDTH;
use crate::codelet::HostValue;
use crate::codelet::host::Arguments;

/// Columns or rows of a panel: the products beside it are fast, and it takes little time.
const PANEL: usize = 32;

/// A matrix stored by rows, `stride` numbers apart.
#[derive(Clone, Copy)]
struct Matrix {
    first: *mut f32,
    stride: usize,
}

impl Matrix {
    fn at(self, row: usize, column: usize) -> *mut f32 {
        self.first.wrapping_add(row * self.stride + column)
    }

    fn from(self, row: usize, column: usize) -> Self {
        Self {
            first: self.at(row, column),
            ..self
        }
    }

    /// A part of a row.
    ///
    /// # Safety
    /// The matrix has the numbers, and nobody else uses them now.
    unsafe fn row<'a>(self, row: usize, columns: Range<usize>) -> &'a mut [f32] {
        // SAFETY: the caller's contract.
        unsafe { std::slice::from_raw_parts_mut(self.at(row, columns.start), columns.len()) }
    }

    /// `self -= A B`.
    ///
    /// # Safety
    /// The matrices have these sizes, only this call uses those of `self`, and they overlap
    /// no number of the others.
    unsafe fn subtract(self, (rows, columns, depth): (usize, usize, usize), a: Self, b: Self) {
        let stride = |matrix: &Self| matrix.stride as isize;
        // SAFETY: the caller's contract.
        unsafe {
            matrixmultiply::sgemm(
                rows,
                depth,
                columns,
                -1.0,
                a.first,
                stride(&a),
                1,
                b.first,
                stride(&b),
                1,
                1.0,
                self.first,
                stride(&self),
                1,
            );
        }
    }
}

/// `to -= factor * from`.
fn subtract_row(to: &mut [f32], factor: f32, from: &[f32]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to -= factor * from;
    }
}

/// Panels of `size` rows or columns.
fn panels(size: usize) -> impl Iterator<Item = Range<usize>> {
    (0..size)
        .step_by(PANEL)
        .map(move |begin| begin..(begin + PANEL).min(size))
}

/// # Safety
/// That of `HostKernel`.
pub(super) unsafe fn factor(args: &[HostValue], _first: u64, units: Range<u64>) {
    if units.is_empty() {
        return;
    }
    let args = Arguments {
        codelet: "lu-factor",
        values: args,
    };
    let size = args.u32(2);
    let d = Matrix {
        first: args.singles(0),
        stride: size,
    };
    // SAFETY: the memories hold these numbers, and nobody else uses them.
    unsafe {
        let pivots = std::slice::from_raw_parts_mut(args.memory::<u32>(1), size);
        for panel in panels(size) {
            factor_panel(d, size, panel.clone(), pivots);
            let Range { start, end } = panel;
            if end == size {
                break;
            }
            // The row of U beside the panel, and the rest.
            for row in start + 1..end {
                for known in start..row {
                    let factor = *d.at(row, known);
                    let from = d.row(known, end..size);
                    subtract_row(d.row(row, end..size), factor, from);
                }
            }
            let rest = (size - end, size - end, end - start);
            d.from(end, end)
                .subtract(rest, d.from(end, start), d.from(start, end));
        }
    }
}

/// Factors the columns of a panel, and exchanges whole rows.
///
/// # Safety
/// `d` is a square matrix of `size` rows, which nobody else uses.
unsafe fn factor_panel(d: Matrix, size: usize, panel: Range<usize>, pivots: &mut [u32]) {
    // SAFETY: the caller's contract; all rows and columns are of the matrix.
    unsafe {
        for column in panel.clone() {
            let mut pivot = column;
            for row in column + 1..size {
                if (*d.at(row, column)).abs() > (*d.at(pivot, column)).abs() {
                    pivot = row;
                }
            }
            pivots[column] = pivot as u32;
            if pivot != column {
                let other = d.row(pivot, 0..size);
                d.row(column, 0..size).swap_with_slice(other);
            }
            let diagonal = *d.at(column, column);
            for row in column + 1..size {
                let factor = *d.at(row, column) / diagonal;
                *d.at(row, column) = factor;
                let from = d.row(column, column + 1..panel.end);
                subtract_row(d.row(row, column + 1..panel.end), factor, from);
            }
        }
    }
}

/// The columns or rows of these units.
fn others(units: &Range<u64>, count: usize) -> Range<usize> {
    let at = |unit: u64| (unit as usize * WIDTH as usize).min(count);
    at(units.start)..at(units.end)
}

/// # Safety
/// That of `HostKernel`.
pub(super) unsafe fn row(args: &[HostValue], _first: u64, units: Range<u64>) {
    let args = Arguments {
        codelet: "lu-row",
        values: args,
    };
    let (size, count) = (args.u32(3), args.u32(4));
    let columns = others(&units, count);
    let (factors, b) = (
        Matrix {
            first: args.singles(0),
            stride: size,
        },
        Matrix {
            first: args.singles(2),
            stride: count,
        },
    );
    // SAFETY: the memories hold these numbers, and these columns of B are this call's.
    unsafe {
        let pivots = std::slice::from_raw_parts(args.memory::<u32>(1), size);
        for (row, pivot) in pivots.iter().enumerate() {
            if *pivot as usize != row {
                let other = b.row(*pivot as usize, columns.clone());
                b.row(row, columns.clone()).swap_with_slice(other);
            }
        }
        for panel in panels(size) {
            for row in panel.start + 1..panel.end {
                for known in panel.start..row {
                    let factor = *factors.at(row, known);
                    let from = b.row(known, columns.clone());
                    subtract_row(b.row(row, columns.clone()), factor, from);
                }
            }
            let rest = (size - panel.end, columns.len(), panel.len());
            b.from(panel.end, columns.start).subtract(
                rest,
                factors.from(panel.end, panel.start),
                b.from(panel.start, columns.start),
            );
        }
    }
}

/// # Safety
/// That of `HostKernel`.
pub(super) unsafe fn column(args: &[HostValue], _first: u64, units: Range<u64>) {
    let args = Arguments {
        codelet: "lu-column",
        values: args,
    };
    let (size, count) = (args.u32(2), args.u32(3));
    let rows = others(&units, count);
    let (factors, b) = (
        Matrix {
            first: args.singles(0),
            stride: size,
        },
        Matrix {
            first: args.singles(1),
            stride: size,
        },
    );
    // SAFETY: the memories hold these numbers, and these rows of B are this call's.
    unsafe {
        for panel in panels(size) {
            for row in rows.clone() {
                for column in panel.clone() {
                    let number = *b.at(row, column) / *factors.at(column, column);
                    *b.at(row, column) = number;
                    let from = factors.row(column, column + 1..panel.end);
                    subtract_row(b.row(row, column + 1..panel.end), number, from);
                }
            }
            let rest = (rows.len(), size - panel.end, panel.len());
            b.from(rows.start, panel.end).subtract(
                rest,
                b.from(rows.start, panel.start),
                factors.from(panel.start, panel.end),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codelet::lu::{LuFactor, LuSolve};

    fn memory<T>(numbers: &mut [T]) -> HostValue {
        HostValue::Memory {
            address: numbers.as_mut_ptr().cast(),
            bytes: size_of_val(numbers) as u64,
        }
    }

    fn number(value: usize) -> HostValue {
        HostValue::U32(value as u32)
    }

    /// Checks `P D = L U`, `P B = L X` and `B = X U` in double precision.
    #[test]
    fn the_factors_multiply_to_the_blocks() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        for (n, m) in [(1, 1), (2, 5), (31, 70), (33, 64), (65, 130), (130, 3)] {
            let mut random = |count: usize| -> Vec<f32> {
                (0..count).map(|_| 2.0 * random.f32() - 1.0).collect()
            };
            let (d, beside, below) = (random(n * n), random(n * m), random(m * n));
            let (mut lu, mut pivots) = (d.clone(), vec![u32::MAX; n]);
            // SAFETY: the memories hold the blocks, here and below.
            unsafe { factor(&[memory(&mut lu), memory(&mut pivots), number(n)], 0, 0..1) }
            let mut x = beside.clone();
            let units = LuSolve {
                rows: n as u32,
                others: m as u32,
            }
            .units();
            for unit in (0..units).rev() {
                let args = [
                    memory(&mut lu),
                    memory(&mut pivots),
                    memory(&mut x),
                    number(n),
                    number(m),
                ];
                unsafe { row(&args, 0, unit..unit + 1) }
            }
            let mut y = below.clone();
            for unit in (0..units).rev() {
                let args = [memory(&mut lu), memory(&mut y), number(n), number(m)];
                unsafe { column(&args, 0, unit..unit + 1) }
            }
            let exchanged = |block: &[f32], width: usize| {
                let mut block = block.to_vec();
                for (row, pivot) in pivots.iter().enumerate() {
                    for column in 0..width {
                        block.swap(row * width + column, *pivot as usize * width + column);
                    }
                }
                block
            };
            let l = |i: usize, k: usize| match i.cmp(&k) {
                std::cmp::Ordering::Less => 0.0,
                std::cmp::Ordering::Equal => 1.0,
                std::cmp::Ordering::Greater => f64::from(lu[i * n + k]),
            };
            let u = |k: usize, j: usize| {
                if k <= j {
                    f64::from(lu[k * n + j])
                } else {
                    0.0
                }
            };
            let close = |found: f64, right: f32, what: &str| {
                // Pivots keep L below 1; U and X may grow.
                let error = (found - f64::from(right)).abs();
                assert!(error < 2e-2, "{what} {n} {m}: {found} {right}");
            };
            let pd = exchanged(&d, n);
            let pb = exchanged(&beside, m);
            for i in 0..n {
                for j in 0..n {
                    let product = (0..n).map(|k| l(i, k) * u(k, j)).sum();
                    close(product, pd[i * n + j], "D");
                }
                for j in 0..m {
                    let product = (0..n).map(|k| l(i, k) * f64::from(x[k * m + j])).sum();
                    close(product, pb[i * m + j], "row");
                }
            }
            for i in 0..m {
                for j in 0..n {
                    let terms = (0..n).map(|k| f64::from(y[i * n + k]) * u(k, j));
                    let size: f64 = terms.clone().map(f64::abs).sum();
                    let error = (terms.sum::<f64>() - f64::from(below[i * n + j])).abs();
                    assert!(
                        error < 1e-4 * (1.0 + size),
                        "column {n} {m}: {error} {size}"
                    );
                }
            }
            assert!(LuFactor { rows: n as u32 }.cost().flops > 0.0);
        }
    }
}
