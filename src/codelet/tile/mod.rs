//! Operations on tiles of dense matrices, of which tiled products and factorisations
//! are made: [`GemmTile`], [`SyrkTile`], [`TrsmTile`] and [`PotrfTile`], named as in
//! BLAS and LAPACK, in single and double precision. The factors of a product may be stored in
//! other formats, whose sums are singles (`factor`).
//!
//! Source: the tasks of StarPU's tiled Cholesky factorisation (Agullo et al., SAAHPC
//! 2010), whose task set Gonthier et al. use (IPDPS 2022, section V.F).
//!
//! A tile is stored by rows: row `i` begins at number `first + i * stride` of its
//! memory. Triangles are lower ones. What is above the diagonal of a tile of which an
//! operation needs or makes the triangle is neither read nor specified afterwards.
//!
//! Sums of numbers are computed in the operation's precision. The host gets all units at
//! once and divides them among its threads. A thread's part becomes a few products, each a
//! call of a library (`matrix`), since these reach the processor's speed; only triangles
//! of at most 32 rows are computed otherwise.
//! `opencl` has the kernels of other devices.

pub(super) mod gemm;
pub(super) mod matrix;
mod opencl;
#[cfg(any(test, not(feature = "dense")))]
mod plain;
mod potrf;
mod syrk;
mod trsm;

pub use gemm::GemmTile;
pub use potrf::PotrfTile;
pub use syrk::SyrkTile;
pub use trsm::TrsmTile;

use super::{HostCode, Precision, SharedKernel};

/// Rows, and for a product also columns, of a unit.
pub const BLOCK: u32 = 64;

/// Most rows of a triangle that is computed without products.
const LEAF: usize = 32;

/// The implementation for this precision.
pub(super) fn host(precision: Precision, f32: SharedKernel, f64: SharedKernel) -> Option<HostCode> {
    Some(HostCode::Shared(precision.choose(f32, f64)))
}

/// Where the diagonal of a triangle of `rows` rows is cut: near the middle, after a
/// multiple of [`LEAF`].
fn middle(rows: usize) -> usize {
    (rows / 2).next_multiple_of(LEAF)
}
