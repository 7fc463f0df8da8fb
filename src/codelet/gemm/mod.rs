//! General matrix multiplication, `C = A B` or `C = A B^T` with B stored transposed, for one
//! pair of matrices or for a batch of them. All matrices are stored in one format, and sums are
//! singles, rounded once when they are stored.
//!
//! Source: the kernel that each head of the PySchedCL paper's transformer uses six
//! times (section 2.1); tiles in local memory and blocks in registers are the common
//! way, described for instance by Volkov and Demmel, "Benchmarking GPUs to tune
//! dense linear algebra", SC 2008.
//!
//! All matrices are stored by rows without gaps: A is `rows x depth`, C is
//! `rows x columns`, B is `depth x columns` or, transposed, `columns x depth`.
//!
//! ## Arguments
//!
//! | # | argument | type | meaning |
//! |---|---|---|---|
//! | 0 | `a` | memory | of every matrix A |
//! | 1 | `b` | memory | of every matrix B |
//! | 2 | `c` | memory | of every matrix C; overlaps neither |
//! | 3 | `rows` | u32 | rows of A and C |
//! | 4 | `columns` | u32 | columns of C |
//! | 5 | `depth` | u32 | what is summed over |
//! | 6 | `a_apart` | u64 | numbers from one A to the next; 0: all use the first |
//! | 7 | `b_apart` | u64 | likewise for B |
//! | 8 | `c_apart` | u64 | likewise for C; not 0 in a batch |
//! | 9 | `a_first` | u64 | numbers before the first A, a multiple of a matrix's |
//! | 10 | `b_first` | u64 | likewise for B |
//!
//! ## Units
//!
//! A unit is a block of [`BLOCK`] rows and columns of a C, less at its edges;
//! blocks are counted by rows, and through the batch. The host gets all units at once, and
//! divides them among its threads. An OpenCL launch takes whole matrices: its units begin
//! and end with one.

mod host;
pub mod opencl;
mod tile;

pub use tile::{TILES, Tile};

use half::{bf16, f16};

use super::library::{Library, LibraryCall, Operand, are_sizes, u32_at, u64_at};
use super::stored::Tf32;
use super::{Codelet, Cost, HostCode, LibraryKernel, NumberFormat, SharedKernel, Value};

/// Rows and columns of a unit.
pub const BLOCK: u32 = 64;

/// The shapes of a product's matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gemm {
    /// Of all matrices.
    pub format: NumberFormat,
    pub rows: u32,
    pub columns: u32,
    pub depth: u32,
    /// Pairs of matrices.
    pub batch: u32,
    /// Whether B is stored transposed.
    pub transposed: bool,
    /// Whether every pair has the first A.
    pub common_a: bool,
    /// Matrices in the memory of A, and of B, before the first that is meant.
    pub skip_a: u32,
    pub skip_b: u32,
}

impl Gemm {
    /// Square matrices of this many rows, of singles.
    pub fn square(size: u32) -> Self {
        Self {
            format: NumberFormat::F32,
            rows: size,
            columns: size,
            depth: size,
            batch: 1,
            transposed: false,
            common_a: false,
            skip_a: 0,
            skip_b: 0,
        }
    }

    /// With matrices of this format.
    pub fn format(self, format: NumberFormat) -> Self {
        Self { format, ..self }
    }

    /// So many pairs of matrices.
    pub fn batch(self, batch: u32) -> Self {
        Self { batch, ..self }
    }

    /// With B stored transposed.
    pub fn transposed(self) -> Self {
        Self {
            transposed: true,
            ..self
        }
    }

    /// One A for all pairs.
    pub fn common_a(self) -> Self {
        Self {
            common_a: true,
            ..self
        }
    }

    /// With operands that begin after this many matrices of their memory.
    pub fn after(self, skip_a: u32, skip_b: u32) -> Self {
        Self {
            skip_a,
            skip_b,
            ..self
        }
    }

    /// Blocks of all matrices.
    pub fn units(&self) -> u64 {
        self.blocks() * u64::from(self.batch)
    }

    /// Blocks of a matrix.
    fn blocks(&self) -> u64 {
        let along = |size: u32| u64::from(size.div_ceil(BLOCK));
        along(self.rows) * along(self.columns)
    }

    /// Two operations a multiplication and addition; every matrix once.
    pub fn cost(&self) -> Cost {
        let [rows, columns, depth, batch] =
            [self.rows, self.columns, self.depth, self.batch].map(f64::from);
        let of_a = if self.common_a { 1.0 } else { batch };
        let numbers = of_a * rows * depth + batch * (depth * columns + rows * columns);
        Cost {
            flops: 2.0 * rows * columns * depth * batch,
            bytes: self.format.element().bytes() as f64 * numbers,
        }
    }

    /// The arguments after the three memories.
    pub fn sizes(&self) -> [Value; 8] {
        let of = |rows: u32, columns: u32| u64::from(rows) * u64::from(columns);
        let (a, b) = (of(self.rows, self.depth), of(self.depth, self.columns));
        [
            Value::U32(self.rows),
            Value::U32(self.columns),
            Value::U32(self.depth),
            Value::U64(if self.common_a { 0 } else { a }),
            Value::U64(b),
            Value::U64(of(self.rows, self.columns)),
            Value::U64(u64::from(self.skip_a) * a),
            Value::U64(u64::from(self.skip_b) * b),
        ]
    }

    /// The codelet, with the tile that suits these sizes.
    pub fn codelet(&self) -> Codelet {
        self.codelet_with(Tile::of(self))
    }

    /// The codelet with this tile. A library may serve instead.
    pub fn codelet_with(&self, tile: &Tile) -> Codelet {
        Codelet {
            name: match self.transposed {
                true => format!("gemm-nt-{}", self.format.name()).into(),
                false => format!("gemm-{}", self.format.name()).into(),
            },
            host: Some(HostCode::Shared(match self.transposed {
                true => on_host::<true>(self.format),
                false => on_host::<false>(self.format),
            })),
            opencl: Some(opencl::kernel(self, tile)),
            library: Some(library(self)),
        }
    }
}

/// The host's implementation.
fn on_host<const TRANSPOSED: bool>(format: NumberFormat) -> SharedKernel {
    match format {
        NumberFormat::F16 => host::multiply::<f16, TRANSPOSED>,
        NumberFormat::Bf16 => host::multiply::<bf16, TRANSPOSED>,
        NumberFormat::Tf32 => host::multiply::<Tf32, TRANSPOSED>,
        NumberFormat::F32 => host::multiply::<f32, TRANSPOSED>,
    }
}

/// A call of a library for the matrices of some units.
fn library(gemm: &Gemm) -> LibraryKernel {
    let (blocks, transposed, format) = (gemm.blocks(), gemm.transposed, gemm.format);
    LibraryKernel::call(Library::Blas, move |units, args| {
        let size = |index| u32_at(args, index);
        let [rows, columns, depth] = [size(3)?, size(4)?, size(5)?];
        let place = |index| u64_at(args, index);
        let distance = [place(6)?, place(7)?, place(8)?];
        let before = units.start / blocks.max(1);
        let batch = (units.end / blocks.max(1)).saturating_sub(before);
        let batch = u32::try_from(batch).ok()?;
        let matrix = |argument: usize, first: u64, stride: u32| Operand {
            argument,
            first: first + before * distance[argument],
            stride,
        };
        let call = LibraryCall::Gemm {
            precision: format.into(),
            result: format.element(),
            rows,
            columns,
            depth,
            transposed,
            alpha: 1.0,
            beta: 0.0,
            a: matrix(0, place(9)?, depth),
            b: matrix(1, place(10)?, if transposed { depth } else { columns }),
            c: matrix(2, 0, columns),
            batch,
            distance,
        };
        let sizes = [rows, columns, depth, batch];
        are_sizes(&sizes).then(|| (call, sizes.map(u64::from).to_vec()))
    })
}
