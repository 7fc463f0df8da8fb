//! The first contents of spaces, and where they are.

use std::sync::Arc;

use thiserror::Error;

use super::Placement;
use crate::cluster::NodeId;
use crate::cluster::space::{Block, Extent};

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

#[cfg(test)]
mod tests {
    use super::*;

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
}
