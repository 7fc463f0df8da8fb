//! The product's native implementation.

use std::ops::Range;

use super::BLOCK;
use crate::HostValue;
use crate::host::{Arguments, for_each_piece, piece};
use crate::tile::factor::Product;
use crate::tile::gemm::rectangles;
use crate::tile::matrix::Matrix;

/// Blocks of many small matrices are divided among threads by matrices, those of few
/// matrices within them.
const MANY: usize = 4;

/// `C = A B`, or `C = A B^T`.
///
/// # Safety
/// That of `HostKernel`.
pub(super) unsafe fn multiply<T: Product, const TRANSPOSED: bool>(
    args: &[HostValue],
    _first: u64,
    units: Range<u64>,
    threads: usize,
) {
    let args = Arguments {
        codelet: "gemm",
        values: args,
    };
    let (rows, columns, depth) = (args.u32(3), args.u32(4), args.u32(5));
    let distance = [args.u64(6), args.u64(7), args.u64(8)];
    let block = BLOCK as usize;
    let across = columns.div_ceil(block).max(1);
    let blocks = (rows.div_ceil(block) * across).max(1);
    let units = units.start as usize..units.end as usize;
    let matrices = units.start / blocks..units.end.div_ceil(blocks);
    let b_stride = if TRANSPOSED { depth } else { columns };
    // SAFETY: the memories hold the matrices that are skipped.
    let (a, b) = unsafe {
        (
            args.memory::<T>(0).add(args.u64(9)),
            args.memory::<T>(1).add(args.u64(10)),
        )
    };
    let [a, b, c] = [(a, depth), (b, b_stride), (args.memory(2), columns)]
        .map(|(first, stride)| Matrix::<T>::new(first, stride));
    let multiply_one = |matrix: usize, threads: usize| {
        let [a, b, c] = [(a, distance[0]), (b, distance[1]), (c, distance[2])]
            .map(|(of, distance)| of.skip(matrix * distance));
        let within = |unit: usize| unit.clamp(matrix * blocks, (matrix + 1) * blocks);
        let of_matrix = within(units.start) - matrix * blocks..within(units.end) - matrix * blocks;
        for (down, right) in rectangles(of_matrix, across) {
            let down = down.start * block..(down.end * block).min(rows);
            let right = right.start * block..(right.end * block).min(columns);
            let size = (down.len(), right.len(), depth);
            let of = (
                a.from(down.start, 0),
                b.beginning_at(right.start, TRANSPOSED),
                TRANSPOSED,
            );
            let c = c.from(down.start, right.start);
            // SAFETY: the matrices hold these rows and columns, and only this call touches
            // these of C.
            unsafe { T::multiply_on(c, threads, size, of) }
        }
    };
    if matrices.len() < MANY * threads {
        matrices.for_each(|matrix| multiply_one(matrix, threads));
        return;
    }
    let count = MANY * threads;
    for_each_piece(threads, count, |number| {
        for matrix in piece(matrices.len(), 1, number, count) {
            multiply_one(matrices.start + matrix, 1);
        }
    });
}
