//! The operations by calls of a library, which factors panels by columns, and counts pivots
//! from 1.

use super::opencl;
use crate::library::{
    Library, LibraryCall, LibraryLaunch, LibraryStep, Side, are_sizes, operand, u32_at,
};
use crate::{LibraryKernel, Precision};

/// The panel's columns go to the launch's own memory, and the factors back. The library looks
/// for no infinite numbers, so that a kernel of ours does.
pub(super) fn panel(precision: Precision) -> LibraryKernel {
    let kernels = opencl::around_panel(precision);
    LibraryKernel::with_kernels(Library::Solver, kernels, move |units, args| {
        let [rows, columns] = [u32_at(args, 2)?, u32_at(args, 3)?];
        operand(args, [0, 6, 5], columns)?;
        let numbers = u64::from(rows) * u64::from(columns) * precision.bytes();
        let word = |index: u32| numbers + 4 * u64::from(index);
        let kernel = |kernel: usize, prepares: bool| LibraryStep::Kernel {
            kernel,
            sizes: match kernel {
                2 => opencl::of_columns(columns),
                _ => opencl::squares(rows, columns),
            },
            prepares,
        };
        let factors = LibraryCall::Getrf {
            precision,
            rows,
            columns,
            pivots: word(0),
            info: word(2 * columns),
        };
        let is_one = !units.is_empty() && are_sizes(&[rows, columns]);
        is_one.then(|| LibraryLaunch {
            steps: vec![
                kernel(0, true),
                LibraryStep::Call(factors),
                kernel(1, false),
                kernel(2, false),
            ],
            scratch: word(2 * columns + 1),
            sizes: vec![rows.into(), columns.into()],
        })
    })
}

/// Exchanges of ours, and the solution.
pub(super) fn row(precision: Precision) -> LibraryKernel {
    let kernels = vec![opencl::row_exchange(precision)];
    LibraryKernel::with_kernels(Library::Blas, kernels, move |units, args| {
        let [rows, columns, depth] = [u32_at(args, 3)?, u32_at(args, 4)?, u32_at(args, 5)?];
        let exchange = LibraryStep::Kernel {
            kernel: 0,
            sizes: opencl::row_groups(columns as usize),
            prepares: false,
        };
        let solution = LibraryCall::Trsm {
            precision,
            rows: depth,
            columns,
            side: Side::Left,
            transposed: false,
            unit: true,
            l: operand(args, [0, 8, 7], depth)?,
            b: operand(args, [2, 11, 10], columns)?,
        };
        let sizes = [rows, columns, depth];
        let is_one = !units.is_empty() && are_sizes(&sizes);
        is_one.then(|| LibraryLaunch {
            steps: vec![exchange, LibraryStep::Call(solution)],
            scratch: 0,
            sizes: sizes.map(u64::from).to_vec(),
        })
    })
}
