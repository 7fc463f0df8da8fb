//! A description of calls of a library of dense matrices or Fourier transforms that compute a
//! codelet, beside its OpenCL implementation. Which library makes the calls, and whether it is
//! there, only the runtime knows.
//!
//! Matrices are those of the codelets: row `i` of a matrix begins at number
//! `first + i * stride` of its memory. A matrix that a library wants by columns is made in the
//! launch's own memory by a kernel of ours.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::{Element, KernelSource, NdRange, Precision, ProductPrecision, Value};

/// An implementation that consists of calls of a library, and kernels of ours between them.
#[derive(Clone)]
pub struct LibraryKernel {
    /// The library that makes the calls.
    pub library: Library,
    /// The kernels between the calls, each once. They get the launch's arguments, and after
    /// these the launch's own memory, if it has some.
    pub kernels: Vec<KernelSource>,
    pub launch: LibraryLaunchFn,
}

/// Describes a launch by its units and arguments; `None` where the library has no such call.
pub type LibraryLaunchFn =
    Arc<dyn Fn(&Range<u64>, &[Value]) -> Option<LibraryLaunch> + Send + Sync>;

impl LibraryKernel {
    /// One that consists of a single call.
    pub fn call(
        library: Library,
        describe: impl Fn(&Range<u64>, &[Value]) -> Option<(LibraryCall, Vec<u64>)>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self::with_kernels(library, Vec::new(), move |units, args| {
            let (call, sizes) = describe(units, args)?;
            Some(LibraryLaunch {
                steps: vec![LibraryStep::Call(call)],
                scratch: 0,
                sizes,
            })
        })
    }

    /// One with kernels of ours.
    pub fn with_kernels(
        library: Library,
        kernels: Vec<KernelSource>,
        launch: impl Fn(&Range<u64>, &[Value]) -> Option<LibraryLaunch> + Send + Sync + 'static,
    ) -> Self {
        Self {
            library,
            kernels,
            launch: Arc::new(launch),
        }
    }
}

impl fmt::Debug for LibraryKernel {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("LibraryKernel")
            .field("library", &self.library)
            .field("kernels", &self.kernels)
            .finish_non_exhaustive()
    }
}

/// What a launch consists of.
#[derive(Clone, Debug, PartialEq)]
pub struct LibraryLaunch {
    /// In order, at least one call among them.
    pub steps: Vec<LibraryStep>,
    /// Bytes of the launch's own memory, which has no contents at its begin.
    pub scratch: u64,
    /// The sizes on which the time depends, and thus which implementation is faster.
    pub sizes: Vec<u64>,
}

/// A step of a launch.
#[derive(Clone, Debug, PartialEq)]
pub enum LibraryStep {
    Call(LibraryCall),
    /// A kernel of ours, by its place in [`LibraryKernel::kernels`].
    Kernel {
        kernel: usize,
        sizes: NdRange,
        /// Whether it writes the launch's own memory alone: another implementation can still
        /// serve after it.
        prepares: bool,
    },
}

/// A library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Library {
    /// Products and triangular solutions.
    Blas,
    /// Factors.
    Solver,
    /// Fourier transforms.
    Fft,
}

/// A matrix in the memory of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operand {
    /// The argument's place.
    pub argument: usize,
    /// Numbers before the first.
    pub first: u64,
    /// Numbers from one row to the next, at least those of a row.
    pub stride: u32,
}

/// Lines of complex numbers in the memory of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lines {
    pub argument: usize,
    /// Complex numbers before the first.
    pub first: u64,
    /// From one number of a line to the next, and from one line to the next.
    pub stride: u32,
    pub distance: u32,
}

/// A side of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Left,
    Right,
}

/// A call of a library. Sizes and strides are at most [`MOST`], and no size is 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LibraryCall {
    /// `C = beta C + alpha A B`, or with B stored transposed `A B^T`, for `batch` triples of
    /// matrices, `distance` numbers from one of each to the next. C is not read if beta is 0. A
    /// and B are stored as the precision's factors.
    Gemm {
        precision: ProductPrecision,
        /// How C is stored.
        result: Element,
        rows: u32,
        columns: u32,
        depth: u32,
        transposed: bool,
        alpha: f64,
        beta: f64,
        a: Operand,
        b: Operand,
        c: Operand,
        batch: u32,
        distance: [u64; 3],
    },
    /// The lower triangle of `C = beta C + alpha A A^T`, A of `rows x depth`.
    Syrk {
        precision: Precision,
        rows: u32,
        depth: u32,
        alpha: f64,
        beta: f64,
        a: Operand,
        c: Operand,
    },
    /// The solution X of `op(L) X = B`, or with L on the right of `X op(L) = B`, in the place
    /// of B, which is `rows x columns`. L is a lower triangle, `op(L)` perhaps its transpose.
    Trsm {
        precision: Precision,
        rows: u32,
        columns: u32,
        side: Side,
        transposed: bool,
        /// Whether L has ones on its diagonal, which are not stored.
        unit: bool,
        l: Operand,
        b: Operand,
    },
    /// The Cholesky factor in the place of A's lower triangle. At byte `info` of the launch's
    /// own memory is then an i32: 0, or the number of the column, counted from 1, that has no
    /// positive diagonal.
    Potrf {
        precision: Precision,
        rows: u32,
        a: Operand,
        info: u64,
    },
    /// LU factors with partial pivoting of a matrix by columns without gaps, which begins the
    /// launch's own memory. At the bytes `pivots` and `info` of it are then i32: the row,
    /// counted from 1, with which each row was exchanged in turn; and 0, or the number of the
    /// first column, counted from 1, whose pivot is zero.
    Getrf {
        precision: Precision,
        rows: u32,
        columns: u32,
        pivots: u64,
        info: u64,
    },
    /// Fourier transforms of lines of complex singles, not scaled, with the exponent's sign
    /// negative; perhaps in place.
    Fft {
        length: u32,
        lines: u32,
        x: Lines,
        y: Lines,
    },
}

/// The greatest size or stride of a call: libraries count in signed numbers of 32 bits.
pub const MOST: u32 = i32::MAX as u32;

/// Whether a call may have all of these sizes.
pub(super) fn are_sizes(sizes: &[u32]) -> bool {
    sizes.iter().all(|size| (1..=MOST).contains(size))
}

/// A matrix with rows of `columns` numbers, by the places of its memory, its stride and its
/// first number among the arguments; `None` if a library has no such strides.
pub(super) fn operand(
    args: &[Value],
    [argument, stride, first]: [usize; 3],
    columns: u32,
) -> Option<Operand> {
    let (stride, first) = (u32_at(args, stride)?, u64_at(args, first)?);
    (columns..=MOST).contains(&stride).then_some(Operand {
        argument,
        first,
        stride,
    })
}

/// An argument that is a size.
pub(super) fn u32_at(args: &[Value], index: usize) -> Option<u32> {
    match args.get(index) {
        Some(Value::U32(number)) => Some(*number),
        _ => None,
    }
}

/// An argument that is a place.
pub(super) fn u64_at(args: &[Value], index: usize) -> Option<u64> {
    match args.get(index) {
        Some(Value::U64(number)) => Some(*number),
        _ => None,
    }
}

/// An argument that is a factor.
pub(super) fn real_at(args: &[Value], index: usize) -> Option<f64> {
    match args.get(index) {
        Some(Value::F32(number)) => Some(f64::from(*number)),
        Some(Value::F64(number)) => Some(*number),
        _ => None,
    }
}
