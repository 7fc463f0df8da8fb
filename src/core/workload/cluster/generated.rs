//! Generated contents of spaces.

use std::sync::Arc;

use super::Fill;
use crate::cluster::space::Extent;
use crate::codelet::Precision;
use crate::random::uniform;

/// Singles uniform from -1 to 1, a function of the seed and the position alone, whatever
/// the blocks are.
pub fn generated(extent: Extent, seed: u64) -> Fill {
    generated_as(Precision::F32, extent, seed)
}

/// As [`generated`], of this precision.
pub fn generated_as(precision: Precision, extent: Extent, seed: u64) -> Fill {
    let per = extent.element / precision.bytes();
    Arc::new(move |block, bytes| {
        let columns = block.columns.start * per..block.columns.end * per;
        let places = block.rows.clone().flat_map(|row| {
            let line = row * extent.columns * per;
            columns.clone().map(move |column| line + column)
        });
        let numbers = bytes.chunks_exact_mut(precision.bytes() as usize);
        for (to, place) in numbers.zip(places) {
            let number = 2.0 * uniform(seed, place) - 1.0;
            match precision {
                Precision::F32 => to.copy_from_slice(&(number as f32).to_ne_bytes()),
                Precision::F64 => to.copy_from_slice(&number.to_ne_bytes()),
            }
        }
        Ok(())
    })
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
