//! Shared parts of the native kernels: the processor's instruction set ([`Level`]),
//! vectors of points ([`Lanes`], one file an instruction set), the choice between
//! plain and streaming stores ([`Stores`]), the arguments of a launch
//! ([`Arguments`]), pieces for threads ([`for_each_piece`]), absolute values compared by
//! their bits ([`magnitude`]), and a vectorisable exponential function ([`exp`]).
//!
//! Kernels are written once over [`Lanes`]. An entry with `#[target_feature]`
//! instantiates such a kernel for one level; everything beneath it is
//! `#[inline(always)]`, so that it is compiled with the entry's instructions.
//! The level is chosen when a kernel runs, so the default build uses every
//! instruction set of the processor.

mod arguments;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod exp;
mod lanes;
mod level;
#[cfg(target_arch = "x86_64")]
mod sse2;

pub use arguments::for_each_piece;
#[cfg(test)]
pub(crate) use arguments::run_on_threads;
pub(crate) use arguments::{Arguments, FromValue, map_pieces, piece};
pub(crate) use exp::{Magnitude, exp};
#[cfg(target_arch = "x86_64")]
pub(crate) use lanes::Lanes;
pub(crate) use lanes::Real;
pub use level::{Level, Stores};
pub(crate) use level::{Vectorised, vectorised};

/// Bytes of a cache line: streaming stores fill whole ones.
#[cfg(target_arch = "x86_64")]
pub(crate) const LINE: usize = 64;

/// Makes streaming stores visible before whatever the thread does next.
#[cfg(target_arch = "x86_64")]
pub(crate) fn fence() {
    // SAFETY: every x86-64 processor has SSE.
    unsafe { std::arch::x86_64::_mm_sfence() }
}
