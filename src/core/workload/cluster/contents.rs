//! The first contents of spaces, generated, in files or in memory, and where they are.

use std::sync::Arc;

use bytemuck::Pod;
use thiserror::Error;

use super::Placement;
use crate::cluster::NodeId;
use crate::cluster::space::{Block, Extent};
use crate::codelet::{Element, Precision};
use crate::matrix::Shared;
use crate::matrix::npy::NpyMatrix;
use crate::parallel;
use crate::random::uniform;

/// Computes or reads the first contents of a block: elements by rows without gaps.
pub type Fill = Arc<dyn Fn(&Block, &mut [u8]) -> Result<(), FillError> + Send + Sync>;

/// Why a block has no contents, such as a file that cannot be read.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub struct FillError(pub String);

/// The first contents of a space.
#[derive(Clone)]
pub struct Contents {
    pub layout: Layout,
    pub fill: Fill,
    /// Whether each node makes what its subtasks read by itself, as often as it needs it,
    /// and no node sends it. The layout says where these subtasks should run.
    pub is_made: bool,
}

impl Contents {
    /// Contents whose blocks lie on the nodes, which send them to each other.
    pub fn placed(layout: impl Into<Layout>, fill: Fill) -> Self {
        Self {
            layout: layout.into(),
            fill,
            is_made: false,
        }
    }

    /// Contents that no node sends.
    pub fn made(layout: impl Into<Layout>, fill: Fill) -> Self {
        Self {
            is_made: true,
            ..Self::placed(layout, fill)
        }
    }

    /// Contents that no node sends, and that are no reason to compute anything at a node
    /// rather than at another.
    pub fn everywhere(fill: Fill) -> Self {
        Self::made(Layout::Columns(Arc::from([])), fill)
    }

    /// The contents of a block for a comparison. One that cannot be read has no numbers,
    /// which no result equals.
    pub(super) fn again(fill: &Fill, block: &Block, bytes: &mut [u8]) {
        if fill(block, bytes).is_err() {
            bytes.fill(NO_NUMBER);
        }
    }
}

/// A byte of which singles and doubles that are no numbers consist.
const NO_NUMBER: u8 = 0xff;

/// Which node has which block of a space at first.
#[derive(Clone, Debug)]
pub enum Layout {
    /// As the user says.
    By(Placement),
    /// Blocks of all rows, from one of these columns to the next. Each node has a run of
    /// them.
    Columns(Arc<[u64]>),
}

impl From<Placement> for Layout {
    fn from(placement: Placement) -> Self {
        Self::By(placement)
    }
}

impl Layout {
    /// The blocks of a space with their nodes; `tile` and `speeds` as in
    /// [`Placement::blocks`].
    pub fn blocks(&self, extent: Extent, tile: [u64; 2], speeds: &[f64]) -> Vec<(Block, NodeId)> {
        let cuts = match self {
            Self::By(placement) => return placement.blocks(extent, tile, speeds),
            Self::Columns(cuts) => cuts,
        };
        let count = cuts.len().saturating_sub(1).max(1) as u64;
        let nodes = speeds.len().max(1) as u64;
        let node = |number| NodeId((number * nodes / count) as u32);
        let bands = cuts.windows(2).zip((0..).map(node));
        let blocks = bands.map(|(cut, node)| (Block::new(0..extent.rows, cut[0]..cut[1]), node));
        blocks.filter(|(block, _)| !block.is_empty()).collect()
    }
}

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

/// The elements of a file: a node reads those of its blocks, and no others.
pub fn of_file(matrix: NpyMatrix) -> Fill {
    Arc::new(move |block, bytes| {
        let read = matrix.read(block.rows.clone(), block.columns.clone(), bytes);
        read.map_err(|error| FillError(error.to_string()))
    })
}

/// The numbers of a file as `element` has them: those of a file of singles are rounded.
pub fn rounded(matrix: NpyMatrix, element: Element) -> Fill {
    if matrix.element() == element {
        return of_file(matrix);
    }
    let singles = of_file(matrix);
    Arc::new(move |block, bytes| {
        let mut given = vec![0.0f32; bytes.len() / element.bytes() as usize];
        singles(block, bytemuck::cast_slice_mut(&mut given))?;
        element.store(given.into_iter().map(f64::from), bytes);
        Ok(())
    })
}

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
    use std::fs::File;

    use super::*;
    use crate::cluster::space::Block;
    use crate::codelet::Precision;
    use crate::matrix::npy::write_header;

    #[test]
    fn each_node_has_a_run_of_the_columns() {
        let extent = Extent {
            rows: 1,
            columns: 20,
            element: 8,
        };
        let layout = Layout::Columns(vec![0, 3, 3, 9, 12, 20].into());
        for nodes in 1..=8 {
            let blocks = layout.blocks(extent, [7, 7], &vec![1.0; nodes]);
            let begins: Vec<u64> = blocks
                .iter()
                .map(|(block, _)| block.columns.start)
                .collect();
            assert_eq!(begins, [0, 3, 9, 12]);
            assert_eq!(
                blocks.iter().map(|(block, _)| block.width()).sum::<u64>(),
                20
            );
            assert!(blocks.is_sorted_by_key(|(_, node)| *node));
            assert!(blocks.iter().all(|(_, node)| node.index() < nodes));
        }
        let two: Vec<u32> = (layout.blocks(extent, [7, 7], &[1.0; 2]).iter())
            .map(|(_, node)| node.0)
            .collect();
        assert_eq!(two, [0, 0, 1, 1]);
    }

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

    #[test]
    fn a_block_is_read_and_a_file_that_has_shrunk_is_reported() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.npy");
        let mut bytes = Vec::new();
        write_header(&mut bytes, (3, 4), Precision::F32).expect("memory");
        bytes.extend((0..12u8).flat_map(|number| f32::from(number).to_ne_bytes()));
        std::fs::write(&path, &bytes).expect("a file");
        let fill = of_file(NpyMatrix::open(&path).expect("a matrix"));
        let block = Block::new(1..3, 2..4);
        let mut found = vec![0; 16];
        fill(&block, &mut found).expect("it is there");
        let found: Vec<f32> = bytemuck::pod_collect_to_vec(&found);
        assert_eq!(found, [6.0, 7.0, 10.0, 11.0]);

        let file = File::options().write(true).open(&path).expect("the file");
        file.set_len(bytes.len() as u64 - 8).expect("it shrinks");
        let error = fill(&block, &mut [0; 16]).expect_err("it is too short");
        assert!(error.to_string().contains("a.npy"), "{error}");
    }

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
