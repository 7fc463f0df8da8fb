//! Contents of spaces in arrays that every node has.

use std::sync::Arc;

use bytemuck::Pod;

use super::Fill;
use crate::matrix::Shared;
use crate::parallel;

/// Bytes that one thread copies at a time: some 25 us.
const PIECE: usize = 256 << 10;

/// The elements of an array that has `columns` of them in a row, row after row.
pub fn of_memory<T: Pod + Send + Sync>(elements: Shared<T>, columns: u64) -> Fill {
    Arc::new(move |block, bytes| {
        let width = block.width() as usize;
        let line = (width * size_of::<T>()).max(1);
        let rows = PIECE.div_ceil(line);
        parallel::pieces(bytes, rows * line, |piece, bytes| {
            let first = block.rows.start + (piece * rows) as u64;
            for (row, to) in (first..).zip(bytes.chunks_exact_mut(line)) {
                let at = (row * columns + block.columns.start) as usize;
                to.copy_from_slice(bytemuck::cast_slice(&elements[at..at + width]));
            }
        });
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::space::Block;

    #[test]
    fn a_block_has_the_elements_of_its_rows_and_columns() {
        let all: Vec<u32> = (0..5 * 7).collect();
        let fill = of_memory(all.into(), 7);
        let mut found = vec![0u32; 6];
        let block = Block::new(2..4, 3..6);
        fill(&block, bytemuck::cast_slice_mut(&mut found)).unwrap();
        assert_eq!(found, [17, 18, 19, 24, 25, 26]);
    }
}
