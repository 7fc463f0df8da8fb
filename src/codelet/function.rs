//! Safe functions as host implementations: each unit of a launch gets slices of the memory
//! that all units read, and of the parts of memory that it alone writes.

use std::ops::Range;
use std::sync::Arc;

use rayon::iter::{IntoParallelIterator, ParallelIterator};

use super::{Codelet, HostCode, HostValue, Name};

/// What a function gets for one unit.
pub struct UnitMemory<'a> {
    /// Its number, from 0.
    pub unit: u64,
    /// The memory that it reads, in the order of the arguments.
    pub reads: Vec<&'a [u8]>,
    /// Its parts of the memory that is written.
    pub writes: Vec<&'a mut [u8]>,
}

/// Computes one unit.
pub type UnitFunction = Arc<dyn Fn(UnitMemory<'_>) + Send + Sync>;

/// A memory argument of a function's launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FunctionArgument {
    /// It is read: from the byte `first` on, `bytes` of it.
    Read { first: u64, bytes: u64 },
    /// It is written: the bytes at which the parts of the units begin, and the end of the last
    /// one.
    Written(Vec<u64>),
}

/// The memory arguments of a function's launch, in their order. They are the first ones; a
/// function does not see those after them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionMemory(pub Vec<FunctionArgument>);

/// A codelet of a function. A launch has the memory, and as many units as the cuts say. The
/// function panics if a launch has other memory; the launch fails then.
///
/// # Panics
/// When cuts do not ascend.
pub fn codelet(name: impl Into<Name>, memory: FunctionMemory, function: UnitFunction) -> Codelet {
    assert!(
        memory.written().all(|cuts| cuts.is_sorted()),
        "the parts of a unit end before the next unit's begin"
    );
    let run = move |args: &[HostValue], first: u64, units: Range<u64>| {
        let arguments = Arguments::new(&memory, args);
        for unit in units.start - first..units.end - first {
            let reads = arguments.reads();
            // SAFETY: of `HostCode::run`, as `first` is subtracted: no other call has this
            // unit, and the cuts ascend, so that no other unit has these bytes.
            let writes = unsafe { arguments.writes(|cuts| part(cuts, unit)) };
            function(UnitMemory {
                unit,
                reads,
                writes,
            });
        }
    };
    Codelet {
        name: name.into(),
        host: Some(HostCode::Function(Arc::new(run))),
        opencl: None,
        library: None,
    }
}

/// Writes what an accumulator begins with.
pub type BeginFn = Arc<dyn Fn(&mut [u8]) + Send + Sync>;

/// Adds an accumulator to another one.
pub type CombineFn = Arc<dyn Fn(&mut [u8], &[u8]) + Send + Sync>;

/// How the accumulators of a reduction begin, and how one is added to another.
#[derive(Clone)]
pub struct Accumulators {
    pub begin: BeginFn,
    pub combine: CombineFn,
}

/// A codelet of a function that adds what it finds in a unit to all of the memory that is
/// written. Each thread has accumulators of its own, of which the launch combines those of the
/// first units with those of the next, and so on. The cuts of what is written are its begin
/// and its end.
pub fn reduction(
    name: impl Into<Name>,
    memory: FunctionMemory,
    function: UnitFunction,
    accumulators: Accumulators,
) -> Codelet {
    let run = move |args: &[HostValue], first: u64, units: Range<u64>, threads: usize| {
        let arguments = Arguments::new(&memory, args);
        // SAFETY: of `HostCode::run`; all units are of this call, which makes this once.
        let mut sums = unsafe { arguments.writes(whole) };
        let units = units.start.saturating_sub(first)..units.end.saturating_sub(first);
        let count = units.end - units.start;
        let threads = threads.clamp(1, count.max(1) as usize);
        let chunk = |thread: usize| {
            let cut = |thread: usize| units.start + count * thread as u64 / threads as u64;
            cut(thread)..cut(thread + 1)
        };
        let reads = arguments.reads();
        let add = |units: Range<u64>, sums: &mut [&mut [u8]]| {
            sums.iter_mut().for_each(|sum| (accumulators.begin)(sum));
            for unit in units {
                function(UnitMemory {
                    unit,
                    reads: reads.clone(),
                    writes: sums.iter_mut().map(|sum| &mut **sum).collect(),
                });
            }
        };
        if threads == 1 {
            return add(units, &mut sums);
        }
        let lengths: Vec<usize> = sums.iter().map(|sum| sum.len()).collect();
        let (_, others) = rayon::join(
            || add(chunk(0), &mut sums),
            || {
                let others = (1..threads).into_par_iter().map(|thread| {
                    let mut own: Vec<Aligned> = lengths.iter().map(|n| Aligned::new(*n)).collect();
                    let mut bytes: Vec<&mut [u8]> = own.iter_mut().map(Aligned::bytes).collect();
                    add(chunk(thread), &mut bytes);
                    own
                });
                others.collect::<Vec<_>>()
            },
        );
        for mut own in others {
            for (sum, other) in sums.iter_mut().zip(&mut own) {
                (accumulators.combine)(sum, other.bytes());
            }
        }
    };
    Codelet {
        name: name.into(),
        host: Some(HostCode::SharedFunction(Arc::new(run))),
        opencl: None,
        library: None,
    }
}

/// Bytes at an address that suits any element.
struct Aligned {
    words: Vec<u128>,
    length: usize,
}

impl Aligned {
    fn new(length: usize) -> Self {
        let words = vec![0; length.div_ceil(size_of::<u128>())];
        Self { words, length }
    }

    fn bytes(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.words)[..self.length]
    }
}

/// The memory of a launch, with what it is for.
struct Arguments<'a> {
    memory: &'a FunctionMemory,
    /// Address and length of each argument.
    found: Vec<(*mut u8, u64)>,
}

impl<'a> Arguments<'a> {
    fn new(memory: &'a FunctionMemory, args: &[HostValue]) -> Self {
        let count = memory.0.len();
        let args = args.get(..count);
        let args = args.unwrap_or_else(|| panic!("fewer than {count} arguments"));
        Self {
            memory,
            found: args.iter().map(address).collect(),
        }
    }

    fn all(&self) -> impl Iterator<Item = ((*mut u8, u64), &'a FunctionArgument)> {
        self.found.iter().copied().zip(&self.memory.0)
    }

    fn reads(&self) -> Vec<&'a [u8]> {
        let reads = self.all().filter_map(|(found, argument)| {
            let FunctionArgument::Read { first, bytes } = argument else {
                return None;
            };
            check(found, first + bytes);
            // SAFETY: the memory is at least as long, and nobody writes it during the launch.
            Some(unsafe {
                let begin = found.0.add(*first as usize);
                std::slice::from_raw_parts(begin, *bytes as usize)
            })
        });
        reads.collect()
    }

    /// Some bytes of each argument that is written.
    ///
    /// # Safety
    /// Nobody else has these bytes.
    unsafe fn writes(&self, part: impl Fn(&[u64]) -> Range<u64>) -> Vec<&'a mut [u8]> {
        let writes = self.all().filter_map(|(found, argument)| {
            let FunctionArgument::Written(cuts) = argument else {
                return None;
            };
            let part = part(cuts);
            check(found, part.end);
            // SAFETY: the memory is at least as long, arguments are distinct, and nobody else
            // has these bytes.
            Some(unsafe {
                let begin = found.0.add(part.start as usize);
                std::slice::from_raw_parts_mut(begin, (part.end - part.start) as usize)
            })
        });
        writes.collect()
    }
}

impl FunctionMemory {
    fn written(&self) -> impl Iterator<Item = &Vec<u64>> {
        self.0.iter().filter_map(|argument| match argument {
            FunctionArgument::Written(cuts) => Some(cuts),
            FunctionArgument::Read { .. } => None,
        })
    }

    /// The number of units: that of the parts of what is written.
    pub fn units(&self) -> u64 {
        let parts = self.written().map(|cuts| cuts.len().saturating_sub(1));
        parts.min().unwrap_or(0) as u64
    }
}

/// From the first cut to the last one.
fn whole(cuts: &[u64]) -> Range<u64> {
    match cuts {
        [begin, .., end] => *begin..*end,
        _ => 0..0,
    }
}

fn part(cuts: &[u64], unit: u64) -> Range<u64> {
    let unit = unit as usize;
    match cuts.get(unit..unit + 2) {
        Some(&[begin, end]) => begin..end,
        _ => panic!("unit {unit} is none of the launch"),
    }
}

fn address(value: &HostValue) -> (*mut u8, u64) {
    match value {
        HostValue::Memory { address, bytes } => (*address, *bytes),
        other => panic!("{other:?} instead of memory"),
    }
}

fn check((_, bytes): (*mut u8, u64), needed: u64) {
    assert!(
        needed <= bytes,
        "{bytes} bytes of memory instead of {needed}"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(of: &mut [u8]) -> HostValue {
        HostValue::Memory {
            address: of.as_mut_ptr(),
            bytes: of.len() as u64,
        }
    }

    /// Each unit writes its part, whatever ranges of units run, and nothing else changes.
    #[test]
    fn units_write_their_parts_alone() {
        let memory_of = FunctionMemory(vec![
            FunctionArgument::Written(vec![1, 4, 4, 6]),
            FunctionArgument::Read { first: 1, bytes: 2 },
            FunctionArgument::Written(vec![0, 1, 2, 4]),
        ]);
        assert_eq!(memory_of.units(), 3);
        let function: UnitFunction = Arc::new(|memory| {
            let number = 10 * (memory.unit as u8 + 1) + memory.reads[0][1];
            for part in memory.writes {
                part.fill(number);
            }
        });
        let codelet = codelet("parts", memory_of, function);
        let (mut read, mut one, mut other) = ([1, 2, 3, 99], [0; 8], [0; 5]);
        let args = [
            memory(&mut one),
            memory(&mut read),
            memory(&mut other),
            HostValue::U32(7),
        ];
        let host = codelet.host.expect("it has one");
        for units in [6..8, 5..6] {
            // SAFETY: nobody else uses the memory.
            unsafe { host.run(&args, 5, units) }
        }
        assert_eq!(one, [0, 13, 13, 13, 33, 33, 0, 0]);
        assert_eq!(other, [13, 23, 33, 33, 0]);
    }

    #[test]
    #[should_panic(expected = "2 bytes of memory instead of 3")]
    fn memory_that_is_too_short_is_refused() {
        let memory_of = FunctionMemory(vec![FunctionArgument::Read { first: 1, bytes: 2 }]);
        let codelet = codelet("short", memory_of, Arc::new(|_| {}));
        let mut short = [0; 2];
        // SAFETY: nobody else uses the memory.
        unsafe {
            codelet
                .host
                .expect("it has one")
                .run(&[memory(&mut short)], 0, 0..1)
        }
    }

    #[test]
    #[should_panic(expected = "end before")]
    fn parts_that_overlap_are_refused() {
        let memory = FunctionMemory(vec![FunctionArgument::Written(vec![0, 4, 2])]);
        codelet("overlap", memory, Arc::new(|_| {}));
    }

    /// Each unit counts in its own piece of what is read, on any number of threads; memory
    /// before and behind stays, and what was there before does not count.
    #[test]
    fn accumulators_are_combined_whatever_the_number_of_threads() {
        let mut random = fastrand::Rng::with_seed(3);
        for _ in 0..40 {
            let units = random.u64(1..9);
            let bytes: Vec<u8> = (0..random.usize(..60)).map(|_| random.u8(..4)).collect();
            let memory_of = FunctionMemory(vec![
                FunctionArgument::Read {
                    first: 0,
                    bytes: bytes.len() as u64,
                },
                FunctionArgument::Written(vec![1, 5]),
            ]);
            let count: UnitFunction = Arc::new(move |mut memory| {
                let all = memory.reads[0];
                let cut = |unit: u64| (all.len() as u64 * unit / units) as usize;
                for byte in &all[cut(memory.unit)..cut(memory.unit + 1)] {
                    memory.writes[0][usize::from(*byte)] += 1;
                }
            });
            let accumulators = Accumulators {
                begin: Arc::new(|sums| sums.fill(0)),
                combine: Arc::new(|sums, others| {
                    sums.iter_mut().zip(others).for_each(|(sum, n)| *sum += n);
                }),
            };
            let codelet = reduction("count", memory_of, count, accumulators);
            let (mut read, mut sums) = (bytes.clone(), [9; 6]);
            let args = [memory(&mut read), memory(&mut sums)];
            let host = codelet.host.expect("it has one");
            // SAFETY: nobody else uses the memory.
            unsafe { host.run_with(&args, 2, 2..2 + units, random.usize(1..6)) }
            let right = (0..4).map(|kind| bytes.iter().filter(|byte| **byte == kind).count() as u8);
            let right: Vec<u8> = [9].into_iter().chain(right).chain([9]).collect();
            assert_eq!(sums[..], right);
        }
    }
}
