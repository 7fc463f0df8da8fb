//! Safe functions as host implementations: each unit of a launch gets slices of the memory
//! that all units read, and of the parts of memory that it alone writes.

use std::ops::Range;
use std::sync::Arc;

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

/// The memory arguments of a function's launch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionMemory {
    /// The bytes of each argument that is read. These come first.
    pub reads: Vec<u64>,
    /// For each argument that is written, the bytes at which the parts of the units begin,
    /// and the end of the last one.
    pub cuts: Vec<Vec<u64>>,
}

/// A codelet of a function. A launch has the memory that is read, then the memory that is
/// written, and as many units as the cuts say. The function panics if a launch has other
/// memory; the launch fails then.
///
/// # Panics
/// When cuts do not ascend.
pub fn codelet(name: impl Into<Name>, memory: FunctionMemory, function: UnitFunction) -> Codelet {
    assert!(
        memory.cuts.iter().all(|cuts| cuts.is_sorted()),
        "the parts of a unit end before the next unit's begin"
    );
    let run = move |args: &[HostValue], first: u64, units: Range<u64>| {
        // SAFETY: of `HostCode::run`, as `first` is subtracted.
        unsafe {
            compute(
                &memory,
                &*function,
                args,
                units.start - first..units.end - first,
            )
        }
    };
    Codelet {
        name: name.into(),
        host: Some(HostCode::Function(Arc::new(run))),
        opencl: None,
    }
}

/// # Safety
/// That of [`HostCode::run`]: nobody writes what is read here meanwhile, and nobody else
/// touches the parts of these units.
unsafe fn compute(
    memory: &FunctionMemory,
    function: &(dyn Fn(UnitMemory<'_>) + Send + Sync),
    args: &[HostValue],
    units: Range<u64>,
) {
    let addresses: Vec<(*mut u8, u64)> = args.iter().map(address).collect();
    let (reads, writes) = addresses
        .split_at_checked(memory.reads.len())
        .filter(|(_, writes)| writes.len() == memory.cuts.len())
        .unwrap_or_else(|| panic!("{} arguments instead of {}", args.len(), memory.count()));
    for unit in units {
        let read = reads.iter().zip(&memory.reads).map(|(found, bytes)| {
            check(*found, *bytes);
            // SAFETY: the memory is at least as long, and nobody writes it meanwhile.
            unsafe { std::slice::from_raw_parts(found.0, *bytes as usize) }
        });
        let written = writes.iter().zip(&memory.cuts).map(|(found, cuts)| {
            let part = part(cuts, unit);
            check(*found, part.end);
            // SAFETY: the memory is at least as long. Arguments are distinct, and the cuts
            // ascend, so that no other unit has these bytes.
            unsafe {
                let begin = found.0.add(part.start as usize);
                std::slice::from_raw_parts_mut(begin, (part.end - part.start) as usize)
            }
        });
        function(UnitMemory {
            unit,
            reads: read.collect(),
            writes: written.collect(),
        });
    }
}

impl FunctionMemory {
    fn count(&self) -> usize {
        self.reads.len() + self.cuts.len()
    }

    /// The number of units: that of the parts of what is written.
    pub fn units(&self) -> u64 {
        let parts = self.cuts.iter().map(|cuts| cuts.len().saturating_sub(1));
        parts.min().unwrap_or(0) as u64
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
        let memory_of = FunctionMemory {
            reads: vec![3],
            cuts: vec![vec![1, 4, 4, 6], vec![0, 1, 2, 4]],
        };
        assert_eq!(memory_of.units(), 3);
        let function: UnitFunction = Arc::new(|memory| {
            let number = 10 * (memory.unit as u8 + 1) + memory.reads[0][2];
            for part in memory.writes {
                part.fill(number);
            }
        });
        let codelet = codelet("parts", memory_of, function);
        let (mut read, mut one, mut other) = ([1, 2, 3, 99], [0; 8], [0; 5]);
        let args = [memory(&mut read), memory(&mut one), memory(&mut other)];
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
        let memory_of = FunctionMemory {
            reads: vec![3],
            cuts: vec![],
        };
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
        let memory = FunctionMemory {
            reads: vec![],
            cuts: vec![vec![0, 4, 2]],
        };
        codelet("overlap", memory, Arc::new(|_| {}));
    }
}
