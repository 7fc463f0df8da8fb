//! The processor's vector instruction set, which a kernel uses.
//!
//! Plain or streaming stores.

use std::sync::OnceLock;

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

/// How a kernel writes its results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stores {
    /// Through the caches: a line that is not there is read from memory first.
    Plain,
    /// Past the caches: whole lines go to memory unread.
    Stream,
}

impl Stores {
    /// The stores for a kernel that cycles through `bytes` of memory, read and
    /// written, on a processor with `cache` bytes of last-level cache.
    ///
    /// Data that stays in the cache from one step to the next must not be written to
    /// memory; other data must not be read before it is overwritten.
    /// Measured with the 5-point stencil on one core and 32 MiB of cache: plain
    /// stores 1.4 (AVX2) and 1.6 (AVX-512) times as fast at 8 MiB and 1.1 and
    /// 1.2 at 24 MiB, both alike at 28 MiB, streaming ones 1.1 times as fast at
    /// 32 MiB and 1.3 at 48 MiB.
    pub fn choose(bytes: u64, cache: u64) -> Self {
        if bytes > cache / 8 * 7 {
            Self::Stream
        } else {
            Self::Plain
        }
    }

    /// The stores for a kernel that cycles through `bytes` on this machine.
    pub fn for_bytes(bytes: u64) -> Self {
        static CACHE: OnceLock<u64> = OnceLock::new();
        Self::choose(bytes, *CACHE.get_or_init(last_level_cache))
    }
}

/// Bytes of the last-level cache, as Linux reports it; a common size elsewhere.
fn last_level_cache() -> u64 {
    const COMMON: u64 = 32 << 20;
    (0..8)
        .filter_map(|index| {
            let path = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/size");
            parse_size(&std::fs::read_to_string(path).ok()?)
        })
        .max()
        .unwrap_or(COMMON)
}

/// Bytes of a size as Linux writes it: `32768K`, `32M` or plain bytes.
fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim();
    let (number, unit) = match text.as_bytes().last()? {
        b'K' => (&text[..text.len() - 1], 1 << 10),
        b'M' => (&text[..text.len() - 1], 1 << 20),
        _ => (text, 1),
    };
    number.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_the_cache_is_stored_through_it() {
        assert_eq!(Stores::choose(28 << 20, 32 << 20), Stores::Plain);
        assert_eq!(Stores::choose((28 << 20) + 1, 32 << 20), Stores::Stream);
    }

    #[test]
    fn sizes_are_read_as_linux_writes_them() {
        assert_eq!(parse_size("32768K\n"), Some(32 << 20));
        assert_eq!(parse_size("32M"), Some(32 << 20));
        assert_eq!(parse_size("4096"), Some(4096));
        assert_eq!(parse_size(""), None);
        assert_eq!(parse_size("K"), None);
        assert_eq!(parse_size("18446744073709551615M"), None);
    }
}
