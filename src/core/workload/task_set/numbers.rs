//! The contents of given data: random, and a function of the seed, the datum and the
//! position alone.

use crate::codelet::Element;
use crate::graph::Contents;
use crate::random::uniform;

/// The numbers of a given tile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Numbers {
    /// Uniform from -1 to 1.
    Uniform,
    /// The same, with this much added on the diagonal.
    Diagonal(f64),
}

impl Numbers {
    /// The contents of a tile with so many columns.
    pub(super) fn contents(self, seed: u64, columns: u32, element: Element) -> Contents {
        let number = move |index: usize| {
            let diagonal = match self {
                Self::Diagonal(more) if index.is_multiple_of(columns as usize + 1) => more,
                _ => 0.0,
            };
            2.0 * uniform(seed, index as u64) - 1.0 + diagonal
        };
        Contents::filled(move |bytes| element.store((0..).map(number), bytes))
    }
}

/// Random bytes.
pub(super) fn bytes(seed: u64) -> Contents {
    Contents::filled(move |bytes| {
        for (at, byte) in (0..).zip(bytes) {
            *byte = (256.0 * uniform(seed, at)) as u8;
        }
    })
}

/// The seed of a datum's contents.
pub(super) fn seed(seed: u64, datum: usize) -> u64 {
    seed.rotate_left(32) ^ datum as u64
}
