//! A program for every queue, where a driver confuses the launches of one.
//!
//! PoCL loads a kernel in several forms: for a global offset of zero or any, for
//! NDRanges up to some width. A launch counts its use of a form that fits it,
//! but when it has ended gives back the first form of the same kernel and local
//! size, whichever that is (`pocl_release_dlhandle_cache`, seen in 3.1 and 5.0).
//! Two launches that overlap and need different forms so bring one count below
//! zero, which ends the process, or close a form that is still running. Kernels
//! are told apart by the hash of their program, and launches of one in-order
//! queue never overlap; so each queue has a program of its own, which differs
//! from others by a definition that nobody reads.

use std::collections::{BTreeSet, HashMap};
use std::sync::{LazyLock, Mutex, PoisonError};

use crate::codelet::KernelSource;

/// By kernel: the numbers in use. Of the whole process, as PoCL's forms are.
static TAKEN: LazyLock<Mutex<HashMap<KernelSource, BTreeSet<u32>>>> = LazyLock::new(Mutex::default);

/// Whether a driver's queues need programs of their own.
pub(super) fn better_apart(driver: &str) -> bool {
    driver.starts_with("Portable Computing Language")
}

/// A number that no other queue has for the same kernel. What is launched must
/// keep it, since a queue can be freed while its commands run.
#[derive(Debug)]
pub(super) struct Apart {
    source: KernelSource,
    number: u32,
}

impl Apart {
    /// The lowest number that is free: a process that repeats what another did
    /// finds what the driver compiled then.
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

impl Drop for Apart {
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

/// What is added to the options of the program with this number.
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
    fn numbers_are_apart_and_used_again() {
        let source = KernelSource::new("", "apart.cl", "of this test", "");
        let other = KernelSource::new("", "apart.cl", "of this test, too", "");
        let (zero, one) = (Apart::take(&source), Apart::take(&source));
        assert_eq!((zero.number(), one.number()), (0, 1));
        assert_eq!(Apart::take(&other).number(), 0);
        drop(zero);
        let again = Apart::take(&source);
        assert_eq!((again.number(), Apart::take(&source).number()), (0, 2));
        assert_eq!(option(0), "");
        assert_ne!(option(1), option(2));
    }
}
