//! What trials do with the bytes of buffers at their device: large buffers are compared,
//! merged and filled where they are, by kernels of this program (`bytes.cl`).

use std::ops::Range;

use opencl_sys::cl_uint;

use super::fill::Numbers;
use super::trial::{Built, Memory, Trial};
use crate::shape::Shape;
use crate::status::Fallible;

/// Work-items of a group. Every device can run so many.
const GROUP: usize = 64;
/// Bytes of a work-item, as in the program.
const PIECE: usize = 16;

/// Kernels that work on bytes.
pub struct Bytes<'a> {
    trial: &'a Trial,
    differ: Built<'a>,
    merge: Built<'a>,
    turn: Built<'a>,
    fill: Built<'a>,
    /// What was found, by slot.
    found: Memory,
}

impl<'a> Bytes<'a> {
    /// Kernels at the device of a trial, with slots for what they find.
    pub fn new(trial: &'a Trial, slots: usize) -> Fallible<Self> {
        let differ = trial.program(include_str!("bytes.cl").as_bytes(), c"", c"differ")?;
        let bytes = Self {
            trial,
            merge: differ.other(c"merge")?,
            turn: differ.other(c"turn")?,
            fill: differ.other(c"fill")?,
            differ,
            found: trial.memory(slots * size_of::<cl_uint>())?,
        };
        bytes.forget()?;
        Ok(bytes)
    }

    /// Notes whether two buffers differ in a range.
    pub fn differ(&self, a: &Memory, b: &Memory, range: Range<usize>, slot: usize) -> Fallible<()> {
        let pieces = range.end.div_ceil(PIECE) - range.start / PIECE;
        self.differ.set_memory(0, a)?;
        self.differ.set_memory(1, b)?;
        self.differ.set(2, &(range.start as u64).to_ne_bytes())?;
        self.differ.set(3, &(range.end as u64).to_ne_bytes())?;
        self.differ.set(4, &(slot as cl_uint).to_ne_bytes())?;
        self.differ.set_memory(5, &self.found)?;
        launch(&self.differ, pieces)
    }

    /// Takes what differs between `base` and `part` over into `all`. Notes whether another
    /// part wrote an unlike value.
    pub fn merge(&self, base: &Memory, part: &Memory, all: &Memory, slot: usize) -> Fallible<()> {
        self.merge.set_memory(0, base)?;
        self.merge.set_memory(1, part)?;
        self.merge.set_memory(2, all)?;
        self.merge.set(3, &(base.bytes as u64).to_ne_bytes())?;
        self.merge.set(4, &(slot as cl_uint).to_ne_bytes())?;
        self.merge.set_memory(5, &self.found)?;
        launch(&self.merge, base.bytes.div_ceil(PIECE))
    }

    /// A buffer with each byte turned over.
    pub fn turned(&self, from: &Memory) -> Fallible<Memory> {
        let to = self.trial.memory(from.bytes)?;
        self.turn.set_memory(0, from)?;
        self.turn.set_memory(1, &to)?;
        self.turn.set(2, &(from.bytes as u64).to_ne_bytes())?;
        launch(&self.turn, from.bytes.div_ceil(PIECE))?;
        Ok(to)
    }

    /// A buffer of numbers, which are the same for each seed.
    pub fn filled(&self, bytes: usize, numbers: Numbers, seed: u64) -> Fallible<Memory> {
        let to = self.trial.memory(bytes)?;
        let (size, head, shift) = numbers.form();
        self.fill.set_memory(0, &to)?;
        self.fill.set(1, &(bytes as u64).to_ne_bytes())?;
        self.fill.set(2, &(size as cl_uint).to_ne_bytes())?;
        self.fill.set(3, &head.to_ne_bytes())?;
        self.fill.set(4, &shift.to_ne_bytes())?;
        self.fill.set(5, &seed.to_ne_bytes())?;
        launch(&self.fill, bytes.div_ceil(size))?;
        Ok(to)
    }

    /// The first slot in which something was found, after a wait for all that was begun.
    pub fn first_found(&self) -> Fallible<Option<usize>> {
        let found = self.trial.read(&self.found)?;
        let mut slots = found.chunks(size_of::<cl_uint>());
        Ok(slots.position(|slot| slot.iter().any(|byte| *byte != 0)))
    }

    /// Forgets what was found.
    pub fn forget(&self) -> Fallible<()> {
        self.trial.write(&self.found, &vec![0; self.found.bytes])
    }
}

fn launch(built: &Built, items: usize) -> Fallible<()> {
    built.launch(&Shape {
        offset: None,
        global: vec![items.next_multiple_of(GROUP)],
        local: Some(vec![GROUP]),
    })
}
