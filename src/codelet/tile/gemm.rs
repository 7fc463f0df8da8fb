//! A product of tiles, `C = beta C + alpha A B` or `C = beta C + alpha A B^T`. A and B are
//! stored in the format of the product's factors, C in the precision of its sums.
//!
//! ## Arguments
//!
//! Those of `kernels/gemm_tile.cl`.
//!
//! | # | argument | type | meaning |
//! |---|---|---|---|
//! | 0 | `a` | memory | A, `m x k` |
//! | 1 | `b` | memory | B, `k x n`, or transposed, `n x k` |
//! | 2 | `c` | memory | C, `m x n`; overlaps neither; not read if beta is 0 |
//! | 3 | `m` | u32 | rows of A and C |
//! | 4 | `n` | u32 | columns of C |
//! | 5 | `k` | u32 | what is summed over |
//! | 6 to 8 | `lda`, `ldb`, `ldc` | u32 | numbers from one row to the next |
//! | 9 to 11 | `a_first`, `b_first`, `c_first` | u64 | numbers before the first |
//! | 12 | `alpha` | f32 or f64 | |
//! | 13 | `beta` | f32 or f64 | |
//!
//! A unit is a block of [`BLOCK`] rows and columns of C, less at its edges; blocks are
//! counted by rows. An OpenCL launch takes all units.
//!
//! Products of matrices whose factors are stored in another format than their sums: they are
//! converted a panel at a time, and the library multiplies the panels.

use std::ops::Range;

use half::{bf16, f16};

use crate::host::Arguments;
use crate::library::{Library, LibraryCall, are_sizes, operand, real_at, u32_at};
use crate::number_format::{Stored, Tf32};
use crate::{
    Codelet, Cost, Element, HostCode, HostValue, LibraryKernel, NumberFormat, ProductPrecision,
    SharedKernel, Value,
};

use super::matrix::{Matrix, Number, for_each_part};
use super::{BLOCK, opencl};

/// A product of tiles that fill their memories.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GemmTile {
    pub precision: ProductPrecision,
    /// Rows of A and C.
    pub rows: u32,
    /// Columns of C.
    pub columns: u32,
    /// Columns of A.
    pub depth: u32,
    /// Whether B is stored transposed.
    pub transposed: bool,
    pub alpha: f64,
    pub beta: f64,
    /// Whether strides and the numbers before the first ones are multiples of 4 numbers, of 2
    /// in double precision, if those of tiles without gaps are.
    pub aligned: bool,
}

impl GemmTile {
    /// `C = A B`.
    pub fn new(
        precision: impl Into<ProductPrecision>,
        rows: u32,
        columns: u32,
        depth: u32,
    ) -> Self {
        Self {
            precision: precision.into(),
            rows,
            columns,
            depth,
            transposed: false,
            alpha: 1.0,
            beta: 0.0,
            aligned: true,
        }
    }

    /// With B stored transposed.
    pub fn transposed(self) -> Self {
        Self {
            transposed: true,
            ..self
        }
    }

    /// With matrices that begin anywhere, and have any stride.
    pub fn unaligned(self) -> Self {
        Self {
            aligned: false,
            ..self
        }
    }

    /// With these factors of the product and of C.
    pub fn factors(self, alpha: f64, beta: f64) -> Self {
        Self {
            alpha,
            beta,
            ..self
        }
    }

    /// Blocks of C.
    pub fn units(&self) -> u64 {
        u64::from(self.rows.div_ceil(BLOCK)) * u64::from(self.columns.div_ceil(BLOCK))
    }

    /// Two operations a multiplication and addition. C counts twice if it is read.
    pub fn cost(&self) -> Cost {
        let [rows, columns, depth] = [self.rows, self.columns, self.depth].map(f64::from);
        let of_c = if self.beta == 0.0 { 1.0 } else { 2.0 };
        let factors = rows * depth + depth * columns;
        let bytes = |of: Element, numbers: f64| of.bytes() as f64 * numbers;
        Cost {
            flops: 2.0 * rows * columns * depth,
            bytes: bytes(self.precision.factors(), factors)
                + bytes(self.precision.sums().into(), of_c * rows * columns),
        }
    }

    /// The arguments after the three memories.
    pub fn values(&self) -> [Value; 11] {
        let b_stride = match self.transposed {
            true => self.depth,
            false => self.columns,
        };
        [
            Value::U32(self.rows),
            Value::U32(self.columns),
            Value::U32(self.depth),
            Value::U32(self.depth),
            Value::U32(b_stride),
            Value::U32(self.columns),
            Value::U64(0),
            Value::U64(0),
            Value::U64(0),
            self.precision.sums().value(self.alpha),
            self.precision.sums().value(self.beta),
        ]
    }

    /// The codelet. The host's serves all products of this precision with B stored
    /// this way; OpenCL's those of these sizes, and of such strides and first numbers as
    /// [`Self::aligned`] says.
    pub fn codelet(&self) -> Codelet {
        let form = if self.transposed { "-nt" } else { "" };
        let host = match self.transposed {
            true => host::<true>(self.precision),
            false => host::<false>(self.precision),
        };
        Codelet {
            name: format!("gemm-tile{form}-{}", self.precision.name()).into(),
            host: Some(HostCode::Shared(host)),
            opencl: Some(opencl::product(self)),
            library: Some(library(self.precision, self.transposed)),
        }
    }
}

/// The host's implementation.
fn host<const TRANSPOSED: bool>(precision: ProductPrecision) -> SharedKernel {
    match precision {
        ProductPrecision::Single(NumberFormat::F16) => run::<f16, TRANSPOSED>,
        ProductPrecision::Single(NumberFormat::Bf16) => run::<bf16, TRANSPOSED>,
        ProductPrecision::Single(NumberFormat::Tf32) => run::<Tf32, TRANSPOSED>,
        ProductPrecision::Single(NumberFormat::F32) => run::<f32, TRANSPOSED>,
        ProductPrecision::Double => run::<f64, TRANSPOSED>,
    }
}

/// A call of a library for all products of this precision with B stored this way.
fn library(precision: ProductPrecision, transposed: bool) -> LibraryKernel {
    LibraryKernel::call(Library::Blas, move |_, args| {
        let [rows, columns, depth] = [u32_at(args, 3)?, u32_at(args, 4)?, u32_at(args, 5)?];
        let b_row = if transposed { depth } else { columns };
        let call = LibraryCall::Gemm {
            precision,
            result: precision.sums().into(),
            rows,
            columns,
            depth,
            transposed,
            alpha: real_at(args, 12)?,
            beta: real_at(args, 13)?,
            a: operand(args, [0, 6, 9], depth)?,
            b: operand(args, [1, 7, 10], b_row)?,
            c: operand(args, [2, 8, 11], columns)?,
            batch: 1,
            distance: [0; 3],
        };
        let sizes = [rows, columns, depth];
        are_sizes(&sizes).then(|| (call, sizes.map(u64::from).to_vec()))
    })
}

/// # Safety
/// That of `HostKernel`.
unsafe fn run<F: Factor, const TRANSPOSED: bool>(
    args: &[HostValue],
    _first: u64,
    units: Range<u64>,
    threads: usize,
) {
    let args = Arguments {
        codelet: "gemm-tile",
        values: args,
    };
    let (rows, columns, depth) = (args.u32(3), args.u32(4), args.u32(5));
    // SAFETY: the memories hold the matrices.
    let [a, b] = [0, 1].map(|of| unsafe { Matrix::<F>::of(&args, of, 6 + of, 9 + of) });
    // SAFETY: as above.
    let c = unsafe { Matrix::<F::Sum>::of(&args, 2, 8, 11) };
    let factors = (args.real(12), args.real(13));
    let block = BLOCK as usize;
    let across = columns.div_ceil(block).max(1);
    for (down, right) in rectangles(units.start as usize..units.end as usize, across) {
        let down = down.start * block..(down.end * block).min(rows);
        let right = right.start * block..(right.end * block).min(columns);
        let size = (down.len(), right.len(), depth);
        let b = b.beginning_at(right.start, TRANSPOSED);
        let c = c.from(down.start, right.start);
        let of = (a.from(down.start, 0), b, TRANSPOSED);
        // SAFETY: the matrices have these rows and columns, only this call touches
        // these of C, and C overlaps neither of the others.
        unsafe { F::add_product_on(c, threads, size, of, factors) }
    }
}

/// Consecutive blocks, of which a row has `across`, as at most three rectangles: the
/// end of a row, whole rows, and the begin of a row.
pub(crate) fn rectangles(
    blocks: Range<usize>,
    across: usize,
) -> impl Iterator<Item = (Range<usize>, Range<usize>)> {
    let first_whole = blocks.start.next_multiple_of(across).min(blocks.end);
    let last_whole = (blocks.end / across * across).max(first_whole);
    [
        blocks.start..first_whole,
        first_whole..last_whole,
        last_whole..blocks.end,
    ]
    .into_iter()
    .filter(|part| !part.is_empty())
    .map(move |part| {
        let (top, bottom) = (part.start / across, part.end.div_ceil(across));
        let right = match bottom - top {
            1 => part.start - top * across..part.end - top * across,
            _ => 0..across,
        };
        (top..bottom, right)
    })
}

/// A number of the factors of a product.
pub(crate) trait Factor: Copy + Send + Sync {
    /// A number of its sums.
    type Sum: Number;

    /// `C = beta C + alpha A B`, or `A B^T`, in parts for threads.
    ///
    /// # Safety
    /// That of [`Matrix::add_product`].
    unsafe fn add_product_on(
        c: Matrix<Self::Sum>,
        threads: usize,
        size: (usize, usize, usize),
        of: (Matrix<Self>, Matrix<Self>, bool),
        factors: (Self::Sum, Self::Sum),
    );
}

/// A number of the factors and the result of a product, whose sums are singles.
pub(crate) trait Product: Factor<Sum = f32> {
    /// `C = A B`, or `A B^T`, in parts for threads. Nothing of C is read.
    ///
    /// # Safety
    /// That of [`Matrix::add_product`].
    unsafe fn multiply_on(
        c: Matrix<Self>,
        threads: usize,
        size: (usize, usize, usize),
        of: (Matrix<Self>, Matrix<Self>, bool),
    );
}

macro_rules! as_its_sum {
    ($type:ty) => {
        impl Factor for $type {
            type Sum = Self;

            unsafe fn add_product_on(
                c: Matrix<Self>,
                threads: usize,
                size: (usize, usize, usize),
                of: (Matrix<Self>, Matrix<Self>, bool),
                factors: (Self, Self),
            ) {
                // SAFETY: the caller's contract.
                unsafe { c.add_product_on(threads, size, of, factors) }
            }
        }
    };
}

as_its_sum!(f32);
as_its_sum!(f64);

impl Product for f32 {
    unsafe fn multiply_on(
        c: Matrix<Self>,
        threads: usize,
        size: (usize, usize, usize),
        of: (Matrix<Self>, Matrix<Self>, bool),
    ) {
        // SAFETY: the caller's contract.
        unsafe { c.add_product_on(threads, size, of, (1.0, 0.0)) }
    }
}

macro_rules! converted {
    ($type:ty) => {
        impl Factor for $type {
            type Sum = f32;

            unsafe fn add_product_on(
                c: Matrix<f32>,
                threads: usize,
                size: (usize, usize, usize),
                (a, b, transposed): (Matrix<Self>, Matrix<Self>, bool),
                factors: (f32, f32),
            ) {
                for_each_part(threads, size, |down, right| {
                    let part = (down.len(), right.len(), size.2);
                    let b = b.beginning_at(right.start, transposed);
                    let of = (a.from(down.start, 0), b, transposed);
                    // SAFETY: the caller's contract; parts are disjoint.
                    unsafe { by_panels(c.from(down.start, right.start), part, of, factors) }
                });
            }
        }

        impl Product for $type {
            unsafe fn multiply_on(
                c: Matrix<Self>,
                threads: usize,
                size: (usize, usize, usize),
                (a, b, transposed): (Matrix<Self>, Matrix<Self>, bool),
            ) {
                for_each_part(threads, size, |down, right| {
                    let part = (down.len(), right.len(), size.2);
                    let b = b.beginning_at(right.start, transposed);
                    let of = (a.from(down.start, 0), b, transposed);
                    let width = right.len();
                    let mut sums = vec![0.0; down.len() * width];
                    // SAFETY: the caller's contract; the sums have the part's size.
                    unsafe {
                        by_panels(Matrix::new(sums.as_mut_ptr(), width), part, of, (1.0, 0.0));
                    }
                    for (row, sums) in down.zip(sums.chunks_exact(width.max(1))) {
                        // SAFETY: the caller's contract; parts are disjoint.
                        let to = unsafe { c.row(row, right.clone()) };
                        Self::from_values(sums, to);
                    }
                });
            }
        }
    };
}

converted!(f16);
converted!(bf16);
converted!(Tf32);

/// The depth of a panel: its conversion takes little of the time of its product with as many
/// rows or columns, and C is read and written once a panel.
const PANEL: usize = 512;

/// `C = beta C + alpha A B`, or `A B^T`.
///
/// # Safety
/// That of [`Matrix::add_product`].
unsafe fn by_panels<S: Stored>(
    c: Matrix<f32>,
    (rows, columns, depth): (usize, usize, usize),
    (a, b, transposed): (Matrix<S>, Matrix<S>, bool),
    (alpha, beta): (f32, f32),
) {
    let most = depth.min(PANEL);
    let mut of_a = vec![0.0; rows * most];
    let mut of_b = vec![0.0; columns * most];
    // A product without depth is one panel without depth, which gives C its factor.
    for begin in (0..depth.max(1)).step_by(PANEL) {
        let at = begin..(begin + PANEL).min(depth);
        let deep = at.len();
        // SAFETY: the caller's contract; the panels hold what is converted.
        unsafe {
            let from = a.from(0, at.start);
            let a = convert(from, (rows, deep), &mut of_a);
            let (from, size) = match transposed {
                true => (b.from(0, at.start), (columns, deep)),
                false => (b.from(at.start, 0), (deep, columns)),
            };
            let b = convert(from, size, &mut of_b);
            let beta = if begin == 0 { beta } else { 1.0 };
            c.add_product((rows, columns, deep), a, b, transposed, (alpha, beta));
        }
    }
}

/// Converts a matrix to factors without gaps.
///
/// # Safety
/// The matrix has these rows and columns, and nobody writes them now.
unsafe fn convert<S: Stored>(
    from: Matrix<S>,
    (rows, columns): (usize, usize),
    to: &mut [f32],
) -> Matrix<f32> {
    for (row, to) in (0..rows).zip(to.chunks_exact_mut(columns.max(1))) {
        // SAFETY: the caller's contract.
        let from = unsafe { from.part_of_row(row, columns) };
        S::to_factors(from, to);
    }
    Matrix::new(to.as_mut_ptr(), columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rectangles_cover_each_block_once() {
        for across in 1..5 {
            for start in 0..12 {
                for end in start..=12 {
                    let mut covered = [0; 12];
                    for (down, right) in rectangles(start..end, across) {
                        for row in down {
                            let row = row * across;
                            right.clone().for_each(|place| covered[row + place] += 1);
                        }
                    }
                    for (block, times) in covered.into_iter().enumerate() {
                        let inside = (start..end).contains(&block);
                        assert_eq!(times, i32::from(inside), "{start}..{end} of {across}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_papers_task_has_its_operations() {
        let task = GemmTile::new(NumberFormat::F32, 960, 960, 3840);
        assert_eq!(task.cost().flops, 2.0 * 960.0 * 960.0 * 3840.0);
        // A block row, a block column and a tile of C.
        assert_eq!(task.cost().bytes, 2.0 * 14_745_600.0 + 3_686_400.0);
    }
}
