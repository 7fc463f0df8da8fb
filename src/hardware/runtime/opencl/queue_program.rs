//! A program for every queue, where a driver confuses the launches of one program.
//!
//! PoCL compiles a kernel in several variants: for a global offset of zero or any,
//! for NDRanges up to some width. A launch increments the use count of its variant,
//! but at its end decrements that of the first variant with the same kernel and
//! local size (`pocl_release_dlhandle_cache`, seen in 3.1 and 5.0). Two overlapping
//! launches of different variants therefore bring one count below zero, which
//! aborts the process, or unload a variant that is still running. PoCL identifies
//! kernels by the hash of their program, and launches of one in-order queue never
//! overlap. So each queue gets its own program, which differs from others by an
//! unused definition.

use std::collections::{BTreeSet, HashMap};
use std::sync::{LazyLock, Mutex, PoisonError};

use crate::codelet::KernelSource;

/// For each kernel the numbers in use in the process, as PoCL's variants are
/// process-wide.
static TAKEN: LazyLock<Mutex<HashMap<KernelSource, BTreeSet<u32>>>> = LazyLock::new(Mutex::default);

/// A number that no other queue has for the same kernel. Commands must keep it,
/// since a queue can be freed while its commands run.
#[derive(Debug)]
pub(super) struct ProgramNumber {
    source: KernelSource,
    number: u32,
}

impl ProgramNumber {
    /// The lowest free number, so that a later process finds the driver's cached
    /// binaries.
    pub(super) fn take(source: &KernelSource) -> Self {
        let mut all = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = all.entry(source.clone()).or_default();
        let mut number = 0;
        while !taken.insert(number) {
            number += 1;
        }
        Self {
            source: source.clone(),
            number,
        }
    }

    /// The number; the first queue's is 0.
    pub(super) fn number(&self) -> u32 {
        self.number
    }
}

impl Drop for ProgramNumber {
    fn drop(&mut self) {
        let mut all = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(taken) = all.get_mut(&self.source) {
            taken.remove(&self.number);
            if taken.is_empty() {
                all.remove(&self.source);
            }
        }
    }
}

/// The compiler option that makes the program of this number differ.
pub(super) fn option(number: u32) -> String {
    match number {
        0 => String::new(),
        _ => format!(" -DPDAWL_QUEUE={number}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_distinct_and_used_again() {
        let source = KernelSource::new("", "distinct.cl", "of this test", "");
        let other = KernelSource::new("", "distinct.cl", "of this test, too", "");
        let (zero, one) = (ProgramNumber::take(&source), ProgramNumber::take(&source));
        assert_eq!((zero.number(), one.number()), (0, 1));
        assert_eq!(ProgramNumber::take(&other).number(), 0);
        drop(zero);
        let again = ProgramNumber::take(&source);
        assert_eq!(
            (again.number(), ProgramNumber::take(&source).number()),
            (0, 2)
        );
        assert_eq!(option(0), "");
        assert_ne!(option(1), option(2));
    }
}
