//! What trials do with the bytes of buffers at their device: large buffers are compared,
//! merged and filled where they are, by kernels of this program (`bytes.cl`).

use std::ops::Range;

use opencl_sys::cl_uint;

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
use pdawl_api::graph::spec::scalar::{Base, ElementType};

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

// Contents for trials: numbers with which a kernel's stores are seen.
//
// A kernel that adds zero or multiplies by one writes what is there already. On numbers
// without such meaning, every store changes something.

/// What a value is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbers {
    Float,
    Double,
    /// Whole numbers of so many bytes.
    Whole(usize),
}

impl Numbers {
    /// The numbers of an OpenCL type, if they are known.
    pub fn of(type_name: &str) -> Option<Self> {
        let base = type_name.parse::<ElementType>().ok()?.base;
        match base {
            Base::Float => Some(Self::Float),
            Base::Double => Some(Self::Double),
            Base::Half | Base::Struct => None,
            base => Some(Self::Whole(base.bytes() as usize)),
        }
    }

    /// The bytes of a number, and its exponent and how far random bits are shifted for a
    /// fraction between 1 and 2. Whole numbers have no exponent: they are of one byte and
    /// above 1.
    pub fn form(self) -> (usize, u64, u32) {
        match self {
            Self::Float => (4, 0x3f80_0000, 41),
            Self::Double => (8, 0x3ff0_0000_0000_0000, 12),
            Self::Whole(size) => (size, 0, 0),
        }
    }

    /// So many bytes of such numbers.
    pub fn fill(self, bytes: usize, random: &mut Random) -> Vec<u8> {
        let (size, head, shift) = self.form();
        let number = |bits: u64| match head {
            0 => 2 + bits % 120,
            head => head | bits >> shift,
        };
        let numbers = (0..bytes.div_ceil(size)).map(|_| number(random.next()).to_le_bytes());
        let mut made: Vec<u8> = numbers
            .flat_map(|made| made.into_iter().take(size))
            .collect();
        made.truncate(bytes);
        made
    }
}

/// A generator of numbers that are the same in each run (splitmix64).
pub struct Random(pub u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_neither_zero_nor_one() {
        let mut random = Random(1);
        for bytes in Numbers::Float.fill(4000, &mut random).chunks(4) {
            let number = f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            assert!((1.0..2.0).contains(&number));
        }
        for bytes in Numbers::Whole(4).fill(4000, &mut random).chunks(4) {
            assert!((2..122).contains(&i32::from_le_bytes([
                bytes[0], bytes[1], bytes[2], bytes[3]
            ])));
        }
        assert_eq!(Numbers::Double.fill(13, &mut random).len(), 13);
    }

    #[test]
    fn types_are_known_by_their_names() {
        for (name, numbers) in [
            ("float4", Some(Numbers::Float)),
            ("unsigned int", Some(Numbers::Whole(4))),
            ("uchar16", Some(Numbers::Whole(1))),
            ("ulong", Some(Numbers::Whole(8))),
            ("particle", None),
            ("half", None),
        ] {
            assert_eq!(Numbers::of(name), numbers, "{name}");
        }
    }
}
