//! Numbers of programs' variants.
//!
//! PoCL confuses overlapping launches of one program if one of them has an offset or a
//! smaller range, and identifies a program by its text and options. Samples and parts of
//! launches are such launches, which the program knows nothing of. Every queue that may
//! have them therefore has a number that no other living queue of its context has, and runs
//! programs that were built with it. The lowest free number is taken, so that the driver's
//! cache knows its programs. All queues that only have the program's own launches run the
//! program as it was first built: each build takes as long as the program's.

use std::sync::Arc;

use crate::lock::{Mutex, VARIANTS};
use crate::native::Native;

/// The numbers of one context: whether a queue has each, and what must end before another
/// may.
#[derive(Default)]
pub struct Variants(Mutex<Vec<Owner>, VARIANTS>);

enum Owner {
    Queue,
    /// All queues that launch nothing but what the program does.
    Whole,
    /// A queue that is gone, whose last commands end with this event.
    Ends(Arc<Native>),
    Nobody,
}

impl Variants {
    /// Takes the lowest free number.
    pub fn take(&self) -> u32 {
        take(&mut self.0.lock())
    }

    /// Takes the number of all queues that launch nothing but what the program does: that of
    /// the program as it was first built, unless another queue has it.
    pub fn take_whole(&self) -> u32 {
        let mut numbers = self.0.lock();
        if let Some(Owner::Whole) = numbers.first() {
            return 0;
        }
        let number = take(&mut numbers);
        if number == 0 {
            numbers[0] = Owner::Whole;
        }
        number
    }

    /// Gives a number back, for use after `last` has ended.
    pub fn give_back(&self, number: u32, last: Option<Arc<Native>>) {
        match self.0.lock().get_mut(number as usize) {
            None | Some(Owner::Whole) => {}
            Some(owner) => *owner = last.map_or(Owner::Nobody, Owner::Ends),
        }
    }
}

fn take(numbers: &mut Vec<Owner>) -> u32 {
    let is_free = |owner: &Owner| match owner {
        Owner::Queue | Owner::Whole => false,
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
