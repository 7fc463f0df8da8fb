//! Contents for trials: numbers with which a kernel's stores are seen.
//!
//! A kernel that adds zero or multiplies by one writes what is there already. On numbers
//! without such meaning, every store changes something.

use pdawl::graph::spec::scalar::{Base, ElementType};

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
