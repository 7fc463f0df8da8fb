//! Data that a store makes: blocks that were given, and parts of spaces that every node makes.

use std::ops::Range;

use crate::cluster::ClusterError;
use crate::codelet::rows::Lines;
use crate::graph::OpenGraph;
use crate::parallel;
use crate::runtime::{Runtime, RuntimeError};
use crate::workload::cluster::Fill;
use pdawl_core::cluster::space::{Block, Extent, SpaceBlock, Spaces, pieces};
use pdawl_core::cluster::task::ReadArgument;
use pdawl_core::graph::{Datum, DatumId};

/// Bytes that a thread makes at once.
const PIECE: u64 = 16 << 20;

/// A datum with the bytes of a block, which `write` writes.
pub(super) fn given<E: From<RuntimeError>>(
    graph: &mut OpenGraph,
    runtime: &mut dyn Runtime,
    extent: Extent,
    block: &Block,
    write: impl FnOnce(&mut [u8]) -> Result<(), E>,
) -> Result<DatumId, E> {
    let bytes = extent.bytes(block);
    let datum = Datum::new("block", bytes).by_rows(block.width() * extent.element);
    let datum = graph.datum(datum);
    let memory = graph.host_memory(runtime, datum)?;
    write(runtime.host_range(memory, 0..bytes)?)?;
    graph.given(datum);
    Ok(datum)
}

/// Where parts are in the memory of an argument.
pub(super) struct Places {
    /// By part, its rows.
    pub lines: Vec<Lines>,
    /// Of the whole memory.
    pub bytes: u64,
    /// From the first byte of a part to the last one.
    pub used: Range<u64>,
}

impl Places {
    pub fn new(spaces: &Spaces, read: &ReadArgument) -> Self {
        Self::of(spaces, &read.parts, read.keeps_places)
    }

    pub fn of(spaces: &Spaces, parts: &[SpaceBlock], keeps_places: bool) -> Self {
        let mut lines = Vec::with_capacity(parts.len());
        let (mut end, mut begin, mut length) = (0, u64::MAX, 0);
        for part in parts {
            let extent = spaces.extent(part.space);
            let width = part.block.width() * extent.element;
            let (first, pitch) = match keeps_places {
                true => (extent.offset(&part.block), extent.columns * extent.element),
                false => (end, width),
            };
            lines.push(Lines { first, pitch });
            begin = begin.min(first);
            end = end.max(first + part.block.height().saturating_sub(1) * pitch + width);
            length = extent.bytes(&extent.whole());
        }
        Self {
            lines,
            bytes: if keeps_places { length } else { end },
            used: begin.min(end)..end,
        }
    }
}

/// A datum with parts of a space that every node makes.
pub(super) fn made(
    graph: &mut OpenGraph,
    runtime: &mut dyn Runtime,
    spaces: &Spaces,
    parts: &[SpaceBlock],
    places: &Places,
    fill: &Fill,
) -> Result<DatumId, ClusterError> {
    let datum = graph.datum(Datum::new("made", places.bytes));
    let memory = graph.host_memory(runtime, datum)?;
    let all = runtime.host_range(memory, 0..places.bytes)?;
    for (part, lines) in parts.iter().zip(&places.lines) {
        let (extent, block) = (spaces.extent(part.space), &part.block);
        let row = block.width() * extent.element;
        // Rows without gaps between them are made together.
        let runs = match lines.pitch == row || block.height() == 1 {
            true => vec![block.clone()],
            false => (block.rows.clone())
                .map(|row| Block::new(row..row + 1, block.columns.clone()))
                .collect(),
        };
        for run in runs {
            let first = lines.first + (run.rows.start - block.rows.start) * lines.pitch;
            let range = first as usize..(first + extent.bytes(&run)) as usize;
            filled(fill, extent, &run, &mut all[range])?;
        }
    }
    graph.given(datum);
    Ok(datum)
}

/// Computes the first contents of a block, by several threads.
pub(super) fn filled(
    fill: &Fill,
    extent: Extent,
    block: &Block,
    to: &mut [u8],
) -> Result<(), ClusterError> {
    let mut rest = to;
    let mut jobs = Vec::new();
    for piece in pieces(extent, block, PIECE) {
        let (bytes, behind) = rest.split_at_mut(extent.bytes(&piece) as usize);
        jobs.push((piece, bytes));
        rest = behind;
    }
    let filled = parallel::map(jobs, |(block, piece)| fill(&block, piece));
    Ok(filled.into_iter().collect::<Result<(), _>>()?)
}
