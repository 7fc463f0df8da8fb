//! Numbers of programs' variants.
//!
//! PoCL confuses overlapping launches of one program, and identifies a program by its
//! text and options. Every queue at such a driver therefore has a number that no other
//! living queue of its context has, and runs programs that were built with it. The lowest
//! free number is taken, so that the driver's cache knows its programs.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::native::Native;

/// The numbers of one context: whether a queue has each, and what must end before another
/// may.
#[derive(Default)]
pub struct Variants(Mutex<Vec<Owner>>);

enum Owner {
    Queue,
    /// A queue that is gone, whose last commands end with this event.
    Ends(Arc<Native>),
    Nobody,
}

impl Variants {
    fn numbers(&self) -> MutexGuard<'_, Vec<Owner>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the lowest free number.
    pub fn take(&self) -> u32 {
        let mut numbers = self.numbers();
        let is_free = |owner: &Owner| match owner {
            Owner::Queue => false,
            Owner::Ends(native) => native.execution_status().is_ok_and(|status| status <= 0),
            Owner::Nobody => true,
        };
        let number = numbers.iter().position(is_free).unwrap_or(numbers.len());
        match numbers.get_mut(number) {
            Some(owner) => *owner = Owner::Queue,
            None => numbers.push(Owner::Queue),
        }
        number as u32
    }

    /// Gives a number back, for use after `last` has ended.
    pub fn give_back(&self, number: u32, last: Option<Arc<Native>>) {
        if let Some(owner) = self.numbers().get_mut(number as usize) {
            *owner = last.map_or(Owner::Nobody, Owner::Ends);
        }
    }
}
