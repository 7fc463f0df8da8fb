//! Which node has which block of a space at first.

use std::fmt;
use std::str::FromStr;

use super::tiles::Tiles;
use crate::cluster::NodeId;
use crate::cluster::space::{Block, Extent};
use crate::random::uniform;

/// How blocks lie on the nodes at first (Unicorn, section V, figure 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Bands of rows, one a node.
    Rows,
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
    /// The blocks of a space with their nodes. `tile` is the height and the width of
    /// blocks, where the placement has some.
    pub fn blocks(self, extent: Extent, tile: [u64; 2], nodes: u32) -> Vec<(Block, NodeId)> {
        let count = u64::from(nodes.max(1));
        let node = |number: u64| NodeId((number % count) as u32);
        if self == Self::Rows {
            let band = extent.rows.div_ceil(count).max(1);
            let tiles = Tiles::new(extent, [band, extent.columns]);
            return tiles.all().zip((0..).map(node)).collect();
        }
        let tiles = Tiles::new(extent, tile);
        let place = |number: u64| match self {
            Self::Rows | Self::Central => NodeId::FIRST,
            Self::RowCyclic => node(number / tiles.across()),
            Self::ColumnCyclic => node(number % tiles.across()),
            Self::Random { seed } => node((uniform(seed, number) * count as f64) as u64),
        };
        tiles.all().zip((0..).map(place)).collect()
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rows => "rows",
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
            "central" => Self::Central,
            "row-cyclic" => Self::RowCyclic,
            "column-cyclic" => Self::ColumnCyclic,
            "random" => Self::Random { seed: 0 },
            _ => {
                return Err(format!(
                    "`{name}` is no placement; choose rows, central, row-cyclic, \
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
        for placement in ["rows", "central", "row-cyclic", "column-cyclic", "random"] {
            let placement: Placement = placement.parse().expect("a placement");
            for nodes in 1..=12 {
                let blocks = placement.blocks(extent, [3, 2], nodes);
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
}
