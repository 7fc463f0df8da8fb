//! An answer that comes in several messages: each is copied to its place when it comes.

use crate::cluster::copying::Copying;
use crate::graph::OpenGraph;
use crate::runtime::{Runtime, RuntimeError};
use pdawl_core::cluster::space::Spaces;
use pdawl_core::cluster::task::chain::Source;
use pdawl_core::graph::{Datum, DatumId};

/// How much of an answer is here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cluster) enum Received {
    All,
    Some,
    /// More than was asked for.
    TooMuch,
}

/// An answer of which some bytes are here, the first ones.
pub(super) struct Arriving {
    /// By part: where it is to be, and its bytes.
    parts: Vec<(DatumId, u64)>,
    received: u64,
    bytes: u64,
}

impl Arriving {
    /// Nothing has come of these parts.
    pub fn new(graph: &mut OpenGraph, spaces: &Spaces, sources: &[Source]) -> Self {
        let datum = |source: &Source| {
            let (part, bytes) = (&source.part, spaces.bytes(&source.part));
            let row = part.block.width() * spaces.extent(part.space).element;
            (graph.datum(Datum::new("block", bytes).by_rows(row)), bytes)
        };
        let parts: Vec<_> = sources.iter().map(datum).collect();
        Self {
            bytes: parts.iter().map(|(_, bytes)| bytes).sum(),
            parts,
            received: 0,
        }
    }

    /// Where the parts are to be.
    pub fn data(&self) -> impl Iterator<Item = DatumId> {
        self.parts.iter().map(|(datum, _)| *datum)
    }

    /// Takes the bytes from `first` on, if they are the next ones or the first ones.
    ///
    /// # Errors
    /// What the runtime refuses.
    pub fn take(
        &mut self,
        graph: &mut OpenGraph,
        runtime: &mut dyn Runtime,
        copying: &Copying,
        (first, data): (u64, &[u8]),
    ) -> Result<Received, RuntimeError> {
        let end = first.saturating_add(data.len() as u64);
        if end > self.bytes {
            return Ok(Received::TooMuch);
        }
        if first != 0 && first != self.received {
            // Of a node that has answered before another one did.
            return Ok(Received::Some);
        }
        let mut begin = 0;
        for (datum, bytes) in &self.parts {
            let (from, to) = (first.max(begin), end.min(begin + bytes));
            if from < to {
                let memory = graph.host_memory(runtime, *datum)?;
                let place = runtime.host_range(memory, from - begin..to - begin)?;
                copying.copy(&data[(from - first) as usize..(to - first) as usize], place);
            }
            begin += bytes;
        }
        self.received = end;
        Ok(match end == self.bytes {
            true => Received::All,
            false => Received::Some,
        })
    }
}
