//! What trials do with the bytes of buffers at their device: large buffers are compared,
//! merged and filled where they are, by kernels of this program (`bytes.cl`).

use std::ops::Range;

use opencl_sys::cl_uint;

use super::fill::Numbers;
use crate::own_queue::{Built, Memory, OwnQueue};
use crate::shape::Shape;
use crate::status::Fallible;

/// Work-items of a group. Every device can run so many.
const GROUP: usize = 64;
/// Bytes of a work-item, as in the program.
const PIECE: usize = 16;

/// Kernels that work on bytes.
pub struct Bytes<'a> {
    queue: &'a OwnQueue,
    differ: Built<'a>,
    merge: Built<'a>,
    turn: Built<'a>,
    fill: Built<'a>,
    /// What was found, by slot.
    found: Memory,
}

impl<'a> Bytes<'a> {
    /// Kernels at a queue's device, with slots for what they find.
    pub fn new(queue: &'a OwnQueue, slots: usize) -> Fallible<Self> {
        let differ = queue.program(include_str!("bytes.cl").as_bytes(), c"", c"differ")?;
        let bytes = Self {
            queue,
            merge: differ.other(c"merge")?,
            turn: differ.other(c"turn")?,
            fill: differ.other(c"fill")?,
            differ,
            found: queue.memory(slots * size_of::<cl_uint>())?,
        };
        bytes.forget()?;
        Ok(bytes)
    }

    /// Notes whether two buffers differ in a range.
    pub fn differ(&self, a: &Memory, b: &Memory, range: Range<usize>, slot: usize) -> Fallible<()> {
        let pieces = range.end.div_ceil(PIECE) - range.start / PIECE;
        let (start, end) = (Size(range.start), Size(range.end));
        let given = [At(a), At(b), start, end, Slot(slot), At(&self.found)];
        run(&self.differ, &given, pieces)
    }

    /// Takes what differs between `base` and `part` over into `all`. Notes whether another
    /// part wrote an unlike value.
    pub fn merge(&self, base: &Memory, part: &Memory, all: &Memory, slot: usize) -> Fallible<()> {
        let (bytes, slot) = (Size(base.bytes), Slot(slot));
        let given = [At(base), At(part), At(all), bytes, slot, At(&self.found)];
        run(&self.merge, &given, base.bytes.div_ceil(PIECE))
    }

    /// A buffer with each byte turned over.
    pub fn turned(&self, from: &Memory) -> Fallible<Memory> {
        let to = self.queue.memory(from.bytes)?;
        let given = [At(from), At(&to), Size(from.bytes)];
        run(&self.turn, &given, from.bytes.div_ceil(PIECE))?;
        Ok(to)
    }

    /// A buffer of numbers, which are the same for each seed.
    pub fn filled(&self, bytes: usize, numbers: Numbers, seed: u64) -> Fallible<Memory> {
        let to = self.queue.memory(bytes)?;
        let (size, head, shift) = numbers.form();
        let (shift, one) = (Slot(shift as usize), Slot(size));
        let given = [At(&to), Size(bytes), one, Long(head), shift, Long(seed)];
        run(&self.fill, &given, bytes.div_ceil(size))?;
        Ok(to)
    }

    /// The first slot in which something was found, after a wait for all that was begun.
    pub fn first_found(&self) -> Fallible<Option<usize>> {
        let found = self.queue.read(&self.found)?;
        let mut slots = found.chunks(size_of::<cl_uint>());
        Ok(slots.position(|slot| slot.iter().any(|byte| *byte != 0)))
    }

    /// Forgets what was found.
    pub fn forget(&self) -> Fallible<()> {
        self.queue.write(&self.found, &vec![0; self.found.bytes])
    }
}

/// An argument of a kernel on bytes: memory, a size, a number of eight bytes, or one of four.
enum Given<'a> {
    At(&'a Memory),
    Size(usize),
    Long(u64),
    Slot(usize),
}
use Given::{At, Long, Size, Slot};

/// Runs a kernel with arguments.
fn run(built: &Built, given: &[Given], items: usize) -> Fallible<()> {
    for (index, given) in given.iter().enumerate() {
        match given {
            At(memory) => built.set_memory(index, memory)?,
            Size(size) => built.set(index, &(*size as u64).to_ne_bytes())?,
            Long(number) => built.set(index, &number.to_ne_bytes())?,
            Slot(number) => built.set(index, &(*number as cl_uint).to_ne_bytes())?,
        }
    }
    built.launch(&Shape {
        offset: None,
        global: vec![items.next_multiple_of(GROUP)],
        local: Some(vec![GROUP]),
    })
}
