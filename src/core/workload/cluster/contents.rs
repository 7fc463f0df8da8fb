//! The first contents of spaces, generated, in files or in memory, and which node has which block
//! at first.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use std::sync::Arc;

use bytemuck::Pod;
use thiserror::Error;

use super::tiles::Tiles;
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
        if block.width() == columns {
            let first = (block.rows.start * columns) as usize;
            let all = &elements[first..first + bytes.len() / size_of::<T>()];
            parallel::copy(bytes, bytemuck::cast_slice(all));
            return Ok(());
        }
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

/// How blocks lie on the nodes at first (Unicorn, section V, figure 6). A node's part is in
/// proportion to its speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Bands of rows, one a node.
    Rows,
    /// Rectangles, one a node, which are as near to squares as their number allows.
    Grid,
    /// All blocks on node 0.
    Central,
    /// Rows of blocks in turns.
    RowCyclic,
    /// Columns of blocks in turns.
    ColumnCyclic,
    /// Each block anywhere.
    Random { seed: u64 },
}

impl Placement {
    /// The blocks of a space with their nodes, of these speeds. `tile` is the height and the
    /// width of blocks, where the placement has some; larger parts consist of such blocks, if
    /// there are enough.
    pub fn blocks(self, extent: Extent, tile: [u64; 2], speeds: &[f64]) -> Vec<(Block, NodeId)> {
        match self {
            Self::Rows => return rectangles(extent, tile, speeds, 1),
            Self::Grid => return rectangles(extent, tile, speeds, across(speeds)),
            _ => {}
        }
        let tiles = Tiles::new(extent, tile);
        let down = tiles.count() / tiles.across();
        let turns = turns(tiles.across().max(down), speeds);
        let whole: f64 = speeds.iter().sum();
        let any = |seed, number| {
            let mut left = uniform(seed, number) * whole;
            let before = |speed: &&f64| {
                left -= **speed;
                left >= 0.0
            };
            let node = speeds.iter().take_while(before).count();
            NodeId(node.min(speeds.len().saturating_sub(1)) as u32)
        };
        let place = |number: u64| match self {
            Self::Rows | Self::Grid | Self::Central => NodeId::FIRST,
            Self::RowCyclic => turns[(number / tiles.across()) as usize],
            Self::ColumnCyclic => turns[(number % tiles.across()) as usize],
            Self::Random { seed } => any(seed, number),
        };
        tiles.all().zip((0..).map(place)).collect()
    }
}

/// Whose turn it is: so many turns, of which each node has its part by its speed.
fn turns(count: u64, speeds: &[f64]) -> Vec<NodeId> {
    let mut had = vec![0.0; speeds.len()];
    let turn = |_| {
        let ends = (0..speeds.len()).map(|node| ((had[node] + 1.0) / speeds[node], node));
        let next = ends.min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let node = next.map_or(0, |(_, node)| node);
        if let Some(had) = had.get_mut(node) {
            *had += 1.0;
        }
        NodeId(node as u32)
    };
    (0..count).map(turn).collect()
}

/// The nodes of a column of rectangles, where there are so many columns.
fn column(index: usize, columns: usize, nodes: usize) -> Range<usize> {
    index * nodes / columns..(index + 1) * nodes / columns
}

/// Columns of rectangles such that the greatest half of a circumference is least: it is what a
/// node reads of rows and columns where it computes a rectangle of a product. All sides are
/// parts of the space's.
fn across(speeds: &[f64]) -> usize {
    let whole: f64 = speeds.iter().sum();
    let half = |columns: usize| {
        let columns = (0..columns).map(|index| &speeds[column(index, columns, speeds.len())]);
        let halves = columns.flat_map(|column| {
            let width: f64 = column.iter().sum();
            column
                .iter()
                .map(move |speed| width / whole + speed / width)
        });
        halves.fold(0.0, f64::max)
    };
    let best = (1..=speeds.len()).min_by(|a, b| half(*a).total_cmp(&half(*b)));
    best.unwrap_or(1)
}

/// A rectangle a node, in so many columns.
fn rectangles(
    extent: Extent,
    [height, width]: [u64; 2],
    speeds: &[f64],
    columns: usize,
) -> Vec<(Block, NodeId)> {
    let nodes = |index| column(index, columns, speeds.len());
    let widths = (0..columns).map(|index| speeds[nodes(index)].iter().sum());
    let widths = parts(extent.columns, width, &widths.collect::<Vec<f64>>());
    let mut blocks = Vec::new();
    for (index, columns) in widths.into_iter().enumerate() {
        let heights = parts(extent.rows, height, &speeds[nodes(index)]);
        for (rows, node) in heights.into_iter().zip(nodes(index)) {
            let block = Block::new(rows, columns.clone());
            if !block.is_empty() {
                blocks.push((block, NodeId(node as u32)));
            }
        }
    }
    blocks
}

/// Divides a length by weights, between tiles if each part can have one.
fn parts(length: u64, tile: u64, weights: &[f64]) -> Vec<Range<u64>> {
    let tiles = length.div_ceil(tile.max(1));
    let unit = if tiles < weights.len() as u64 {
        1
    } else {
        tile.max(1)
    };
    let units = length.div_ceil(unit) as f64;
    let whole: f64 = weights.iter().sum();
    let (mut sum, mut begin) = (0.0, 0);
    let mut part = |weight: &f64| {
        sum += weight;
        let end = ((units * sum / whole).round() as u64 * unit).min(length);
        let part = begin..end.max(begin);
        begin = part.end;
        part
    };
    weights.iter().map(&mut part).collect()
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rows => "rows",
            Self::Grid => "grid",
            Self::Central => "central",
            Self::RowCyclic => "row-cyclic",
            Self::ColumnCyclic => "column-cyclic",
            Self::Random { .. } => "random",
        })
    }
}

impl FromStr for Placement {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Ok(match name {
            "rows" => Self::Rows,
            "grid" => Self::Grid,
            "central" => Self::Central,
            "row-cyclic" => Self::RowCyclic,
            "column-cyclic" => Self::ColumnCyclic,
            "random" => Self::Random { seed: 0 },
            _ => {
                return Err(format!(
                    "`{name}` is no placement; choose rows, grid, central, row-cyclic, \
                     column-cyclic or random"
                ));
            }
        })
    }
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

    #[test]
    fn every_element_is_on_one_node() {
        let extent = Extent {
            rows: 10,
            columns: 7,
            element: 4,
        };
        for placement in [
            "rows",
            "grid",
            "central",
            "row-cyclic",
            "column-cyclic",
            "random",
        ] {
            let placement: Placement = placement.parse().expect("a placement");
            for nodes in 1..=12_u32 {
                let speeds: Vec<f64> = (0..nodes).map(|node| f64::from(1 + node % 3)).collect();
                let blocks = placement.blocks(extent, [3, 2], &speeds);
                let elements: u64 = blocks.iter().map(|(block, _)| block.elements()).sum();
                assert_eq!(elements, 70, "{placement:?}");
                for (index, (block, node)) in blocks.iter().enumerate() {
                    assert!(node.0 < nodes && extent.whole().contains(block));
                    let others = &blocks[..index];
                    assert!(
                        others
                            .iter()
                            .all(|(other, _)| block.common(other).is_none())
                    );
                }
            }
        }
        assert!("anywhere".parse::<Placement>().is_err());
    }

    const LARGE: Extent = Extent {
        rows: 12_000,
        columns: 12_000,
        element: 4,
    };

    #[test]
    fn each_node_has_its_part() {
        let speeds = [1.0, 3.0, 2.0, 2.0, 4.0];
        for placement in ["rows", "grid", "row-cyclic", "column-cyclic", "random"] {
            let placement: Placement = placement.parse().expect("a placement");
            let blocks = placement.blocks(LARGE, [100, 100], &speeds);
            for (node, speed) in (0..).map(NodeId).zip(speeds) {
                let own = blocks.iter().filter(|(_, owner)| *owner == node);
                let part = own.map(|(block, _)| block.elements()).sum::<u64>() as f64 / 144e6;
                assert!(
                    (part - speed / 12.0).abs() < 0.02,
                    "{placement}: {node} has {part}"
                );
            }
        }
    }

    #[test]
    fn a_grid_reads_as_little_as_squares_do() {
        for (nodes, most) in [
            (1, 2.0),
            (2, 1.5),
            (4, 1.0),
            (9, 0.67),
            (10, 0.66),
            (16, 0.5),
        ] {
            let blocks = Placement::Grid.blocks(LARGE, [100, 100], &vec![1.0; nodes]);
            let half = |(block, _): &(Block, NodeId)| (block.height() + block.width()) as f64;
            let greatest = blocks.iter().map(half).fold(0.0, f64::max) / 12_000.0;
            assert!(greatest <= most, "{nodes}: {greatest}");
        }
    }
}
