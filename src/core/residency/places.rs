//! Sets of places: memories in which data can be, such as those of the devices and the
//! host.

use std::fmt;

/// A set of places, a bit each. A place is a number below [`Places::MOST`]; the user of a
/// set decides which place is which memory.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Places(u64);

impl Places {
    /// How many places there can be.
    pub const MOST: usize = 64;

    /// No place.
    pub const NONE: Self = Self(0);

    /// Every place.
    pub const ALL: Self = Self(u64::MAX);

    /// This place alone.
    ///
    /// # Panics
    /// When the place is not below [`Self::MOST`].
    pub fn only(place: usize) -> Self {
        assert!(place < Self::MOST, "place {place} of {}", Self::MOST);
        Self(1 << place)
    }

    /// The set of these bits: bit 0 is place 0.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// The set as bits: bit 0 is place 0.
    pub const fn bits(self) -> u64 {
        self.0
    }

    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether a place belongs to it. A number that is no place belongs to no set.
    pub const fn has(self, place: usize) -> bool {
        place < Self::MOST && self.0 >> place & 1 == 1
    }

    /// The set and this place.
    ///
    /// # Panics
    /// As [`Self::only`].
    pub fn with(self, place: usize) -> Self {
        Self(self.0 | Self::only(place).0)
    }

    /// The set without this place.
    pub const fn without(self, place: usize) -> Self {
        match self.has(place) {
            true => Self(self.0 ^ 1 << place),
            false => self,
        }
    }

    /// Its places, the lowest first.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            let place = (left != 0).then(|| left.trailing_zeros() as usize)?;
            left &= left - 1;
            Some(place)
        })
    }
}

impl FromIterator<usize> for Places {
    /// # Panics
    /// As [`Places::only`].
    fn from_iter<I: IntoIterator<Item = usize>>(places: I) -> Self {
        places.into_iter().fold(Self::NONE, Self::with)
    }
}

impl fmt::Debug for Places {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_added_and_removed() {
        let places: Places = [3, 63, 0].into_iter().collect();
        assert_eq!(places.iter().collect::<Vec<_>>(), [0, 3, 63]);
        assert!(places.has(63) && !places.has(1) && !places.has(64));
        assert_eq!(places.without(3).without(3).without(63), Places::only(0));
        assert_eq!(format!("{places:?}"), "{0, 3, 63}");
        assert!(Places::NONE.is_empty() && Places::ALL.iter().count() == 64);
    }
}
