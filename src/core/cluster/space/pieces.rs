//! A block cut into pieces whose bytes follow one another.

use super::{Block, Extent};

/// Cuts a block into pieces of at most so many bytes, or one element: whole rows where some
/// fit, parts of a row otherwise. The bytes of the pieces, one after the other, are those of
/// the block by rows.
pub fn pieces(extent: Extent, block: &Block, bytes: u64) -> Vec<Block> {
    let row = extent.element * block.width();
    let (rows, columns) = match row > 0 && row <= bytes {
        true => (bytes / row, block.width()),
        false => (1, (bytes / extent.element.max(1)).max(1)),
    };
    let mut pieces = Vec::new();
    for begin in block.rows.clone().step_by(rows as usize) {
        for first in block.columns.clone().step_by(columns as usize) {
            pieces.push(Block::new(
                begin..(begin + rows).min(block.rows.end),
                first..(first + columns).min(block.columns.end),
            ));
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Elements come in the order of the block, each once.
    #[test]
    fn pieces_follow_one_another() {
        let extent = Extent {
            rows: 9,
            columns: 9,
            element: 3,
        };
        for bytes in 1..100 {
            for block in [
                Block::new(2..7, 1..8),
                Block::new(0..1, 0..9),
                Block::new(3..3, 0..9),
                Block::new(0..9, 4..4),
            ] {
                let elements = |block: &Block| {
                    let columns = block.columns.clone();
                    let rows = block.rows.clone();
                    rows.flat_map(|row| columns.clone().map(move |column| (row, column)))
                        .collect::<Vec<_>>()
                };
                let pieces = pieces(extent, &block, bytes);
                assert!(pieces.iter().all(|piece| {
                    let size = extent.bytes(piece);
                    size > 0 && (size <= bytes || piece.elements() == 1)
                }));
                let found: Vec<_> = pieces.iter().flat_map(elements).collect();
                assert_eq!(found, elements(&block), "{bytes} bytes of {block:?}");
            }
        }
    }
}
