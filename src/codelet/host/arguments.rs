//! A launch's arguments as native kernels read them.
//!
//! Pieces of a computation for the threads of a pool.

use std::ops::Range;

use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};

use crate::HostValue;

/// The arguments of a codelet. Its caller must pass those that the codelet
/// documents: another type is a fault in the program, and ends in a panic that a
/// host pool catches and reports.
#[derive(Clone, Copy)]
pub(crate) struct Arguments<'a> {
    pub(crate) codelet: &'static str,
    pub(crate) values: &'a [HostValue],
}

impl Arguments<'_> {
    /// The first number of a memory.
    ///
    /// # Panics
    /// When the argument has another type, here and in the others.
    pub(crate) fn memory<T>(&self, index: usize) -> *mut T {
        match self.values.get(index) {
            Some(HostValue::Memory { address, .. }) => address.cast(),
            other => self.wrong(index, "memory", other),
        }
    }

    /// The first single of a memory.
    pub(crate) fn singles(&self, index: usize) -> *mut f32 {
        self.memory(index)
    }

    pub(crate) fn u32(&self, index: usize) -> usize {
        match self.values.get(index) {
            Some(HostValue::U32(value)) => *value as usize,
            other => self.wrong(index, "a u32", other),
        }
    }

    pub(crate) fn u64(&self, index: usize) -> usize {
        match self.values.get(index) {
            Some(HostValue::U64(value)) => *value as usize,
            other => self.wrong(index, "a u64", other),
        }
    }

    pub(crate) fn f32(&self, index: usize) -> f32 {
        self.real(index)
    }

    /// A number of the codelet's precision.
    pub(crate) fn real<T: FromValue>(&self, index: usize) -> T {
        match self.values.get(index) {
            Some(value) => T::from_value(*value)
                .unwrap_or_else(|| self.wrong(index, "a number of its precision", Some(value))),
            None => self.wrong(index, "a number of its precision", None),
        }
    }

    /// Bytes of all memories, each counted as often as it is an argument.
    pub(crate) fn bytes(&self) -> u64 {
        let bytes = self.values.iter().map(|value| match value {
            HostValue::Memory { bytes, .. } => *bytes,
            _ => 0,
        });
        bytes.fold(0, u64::saturating_add)
    }

    fn wrong(&self, index: usize, wanted: &str, found: Option<&HostValue>) -> ! {
        unreachable!(
            "{} argument {index} is {wanted}, not {found:?}",
            self.codelet
        )
    }
}

/// A floating-point type that an argument may have.
pub(crate) trait FromValue: Sized {
    /// The argument's value, if it is of this type.
    fn from_value(value: HostValue) -> Option<Self>;
}

impl FromValue for f64 {
    fn from_value(value: HostValue) -> Option<Self> {
        match value {
            HostValue::F64(value) => Some(value),
            _ => None,
        }
    }
}

impl FromValue for f32 {
    fn from_value(value: HostValue) -> Option<Self> {
        match value {
            HostValue::F32(value) => Some(value),
            _ => None,
        }
    }
}

/// Calls `work` with each number below `count`, on so many threads of the `rayon` pool that
/// the caller belongs to. A thread that is late takes fewer pieces.
pub fn for_each_piece(threads: usize, count: usize, work: impl Fn(usize) + Sync) {
    match threads.min(count) {
        0 | 1 => (0..count).for_each(work),
        _ => (0..count).into_par_iter().with_max_len(1).for_each(&work),
    }
}

/// As [`for_each_piece`], with what `work` returns, in the order of the numbers.
pub(crate) fn map_pieces<R: Send>(
    threads: usize,
    count: usize,
    work: impl Fn(usize) -> R + Sync,
) -> Vec<R> {
    match threads.min(count) {
        0 | 1 => (0..count).map(work).collect(),
        _ => {
            let numbers = (0..count).into_par_iter().with_max_len(1);
            numbers.map(&work).collect()
        }
    }
}

/// The part of `0..size` that is piece `number` of `count`. All begin at multiples of `grain`.
pub(crate) fn piece(size: usize, grain: usize, number: usize, count: usize) -> Range<usize> {
    let grains = size.div_ceil(grain);
    let at = |number: usize| (grains * number / count * grain).min(size);
    at(number)..at(number + 1)
}

/// Runs a kernel on threads of a new pool.
#[cfg(test)]
pub(crate) fn run_on_threads(
    kernel: crate::SharedKernel,
    args: &[crate::HostValue],
    units: u64,
    threads: usize,
) {
    struct Args<'a>(&'a [crate::HostValue]);
    // SAFETY: the caller's memory outlives the call, which nobody else uses meanwhile.
    unsafe impl Send for Args<'_> {}
    impl Args<'_> {
        fn get(&self) -> &[crate::HostValue] {
            self.0
        }
    }
    let args = Args(args);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
    let pool = pool.build().expect("threads");
    // SAFETY: tests pass what the kernel's codelet documents.
    pool.install(move || unsafe { kernel(args.get(), 0, 0..units, threads) });
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn pieces_cover_everything_once() {
        for size in [0, 1, 63, 64, 1000] {
            for grain in [1, 32] {
                for count in [1, 3, 8] {
                    let mut end = 0;
                    for number in 0..count {
                        let piece = piece(size, grain, number, count);
                        assert_eq!(piece.start, end);
                        assert!(piece.is_empty() || piece.start.is_multiple_of(grain));
                        end = piece.end;
                    }
                    assert_eq!(end, size);
                }
            }
        }
    }

    #[test]
    fn each_piece_is_computed_once_whatever_the_threads() {
        for threads in [1, 2, 5] {
            let times: Vec<AtomicUsize> = (0..9).map(|_| AtomicUsize::new(0)).collect();
            for_each_piece(threads, times.len(), |piece| {
                times[piece].fetch_add(1, Ordering::Relaxed);
            });
            let times: Vec<usize> = times.into_iter().map(AtomicUsize::into_inner).collect();
            assert_eq!(times, [1; 9]);
            let squares = map_pieces(threads, 4, |piece| piece * piece);
            assert_eq!(squares, [0, 1, 4, 9]);
        }
    }
}
