//! What native kernels share: which instructions the processor has
//! ([`Level`]), vectors of points ([`Lanes`], one file an instruction set), and
//! the choice between plain and streaming stores ([`Stores`]); and [`Arguments`] and
//! [`exp`] for those that read and compute numbers of single precision.
//!
//! Kernels are written once over [`Lanes`]. An entry with `#[target_feature]`
//! instantiates such a kernel for one level; everything beneath it is
//! `#[inline(always)]`, so that it is compiled with the entry's instructions.
//! The level is chosen when a kernel runs: the default build uses all that the
//! processor has.

mod arguments;
mod exp;
mod lanes;
mod level;
mod stores;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod sse2;

pub(crate) use arguments::Arguments;
pub(crate) use exp::exp;
#[cfg(target_arch = "x86_64")]
pub(crate) use lanes::Lanes;
pub(crate) use lanes::Real;
pub(crate) use level::Level;
pub(crate) use stores::Stores;

/// Bytes of a cache line: streaming stores fill whole ones.
#[cfg(target_arch = "x86_64")]
pub(crate) const LINE: usize = 64;

/// Makes streaming stores visible before whatever the thread does next.
#[cfg(target_arch = "x86_64")]
pub(crate) fn fence() {
    // SAFETY: every x86-64 processor has SSE.
    unsafe { std::arch::x86_64::_mm_sfence() }
}
