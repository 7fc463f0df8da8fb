//! Which node has which block of a space at first.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use super::tiles::Tiles;
use crate::cluster::NodeId;
use crate::cluster::space::{Block, Extent};
use crate::random::uniform;

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
    use super::*;

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
