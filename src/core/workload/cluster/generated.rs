//! Generated contents of spaces.

use std::sync::Arc;

use super::Fill;
use crate::cluster::space::Extent;
use crate::codelet::{Element, Precision};
use crate::random::uniform;

/// Singles uniform from -1 to 1, a function of the seed and the position alone, whatever
/// the blocks are.
pub fn generated(extent: Extent, seed: u64) -> Fill {
    generated_as(Precision::F32, extent, seed)
}

/// As [`generated`], rounded as they are stored.
pub fn generated_as(element: impl Into<Element>, extent: Extent, seed: u64) -> Fill {
    let element = element.into();
    let per = extent.element / element.bytes();
    Arc::new(move |block, bytes| {
        let columns = block.columns.start * per..block.columns.end * per;
        let places = block.rows.clone().flat_map(|row| {
            let line = row * extent.columns * per;
            columns.clone().map(move |column| line + column)
        });
        element.store(places.map(|place| number(seed, place)), bytes);
        Ok(())
    })
}

/// A symmetric matrix of such numbers, with `2 sqrt(n) + 1` added on its diagonal.
///
/// By Wigner's semicircle law the least eigenvalue of the other numbers is about
/// `-1.16 sqrt(n)`, so the matrix is positive definite, and its factor depends on all updates. A
/// diagonal that exceeds the sum of each row would make it definite, too, but the updates would
/// vanish beside it, and no check would find one that is missing.
pub fn definite(precision: Precision, size: u64, seed: u64) -> Fill {
    let more = 2.0 * (size as f64).sqrt() + 1.0;
    Arc::new(move |block, bytes| {
        let numbers = block.rows.clone().flat_map(|row| {
            block.columns.clone().map(move |column| {
                let number = number(seed, row.max(column) * size + row.min(column));
                number + if row == column { more } else { 0.0 }
            })
        });
        Element::from(precision).store(numbers, bytes);
        Ok(())
    })
}

fn number(seed: u64, place: u64) -> f64 {
    2.0 * uniform(seed, place) - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::space::Block;

    #[test]
    fn a_block_has_the_numbers_of_the_whole() {
        let extent = Extent {
            rows: 5,
            columns: 7,
            element: 8,
        };
        let fill = generated(extent, 3);
        let mut whole = vec![0; 5 * 7 * 8];
        fill(&extent.whole(), &mut whole).expect("it is generated");
        let block = Block::new(2..4, 3..6);
        let mut part = vec![0; 2 * 3 * 8];
        fill(&block, &mut part).expect("it is generated");
        for (row, line) in (2..4).zip(part.chunks(3 * 8)) {
            assert_eq!(line, &whole[(row * 7 + 3) * 8..][..3 * 8]);
        }
        assert_ne!(whole[..8], whole[8..16]);
    }
}
