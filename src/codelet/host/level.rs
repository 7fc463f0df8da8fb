//! The processor's vector instruction set, which a kernel uses.

/// An instruction set that kernels are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Plain loops, vectorised by the compiler for the build's target.
    Scalar,
    #[cfg(target_arch = "x86_64")]
    Sse2,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

#[cfg(target_arch = "x86_64")]
impl Level {
    /// Every level, the best first.
    const ALL: [Self; 4] = [Self::Avx512, Self::Avx2, Self::Sse2, Self::Scalar];

    fn is_available(self) -> bool {
        match self {
            Self::Scalar | Self::Sse2 => true,
            Self::Avx2 => is_x86_feature_detected!("avx2"),
            Self::Avx512 => is_x86_feature_detected!("avx512f"),
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
impl Level {
    const ALL: [Self; 1] = [Self::Scalar];

    fn is_available(self) -> bool {
        true
    }
}

impl Level {
    /// The levels that this processor has, the best first. Never empty.
    pub fn available() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|level| level.is_available())
    }

    /// The best level of this processor. The standard library remembers what
    /// it detected, so asking costs a load.
    pub fn best() -> Self {
        Self::available().next().unwrap_or(Self::Scalar)
    }
}

/// Loops that the compiler vectorises. Their function is `#[inline(always)]`, and so is what
/// it calls.
pub(crate) trait Vectorised {
    fn run(self);
}

/// Runs loops, compiled for the best level of this processor.
pub(crate) fn vectorised(work: impl Vectorised) {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx512f")]
        fn avx512(work: impl Vectorised) {
            work.run();
        }
        #[target_feature(enable = "avx2")]
        fn avx2(work: impl Vectorised) {
            work.run();
        }
        match Level::best() {
            // SAFETY: the processor has the level.
            Level::Avx512 => return unsafe { avx512(work) },
            // SAFETY: as above.
            Level::Avx2 => return unsafe { avx2(work) },
            Level::Sse2 | Level::Scalar => {}
        }
    }
    work.run();
}
