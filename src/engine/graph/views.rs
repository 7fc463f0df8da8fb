//! Views: data that are made of pieces of others, where a kernel reads them.

use std::sync::Arc;

use super::dispatch::{Destination, End};
use super::run::GraphRun;
use super::storage::transfer;
use super::timeline::Purpose;
use crate::codelet::rows::{self, Lines};
use crate::residency::State;
use crate::runtime::{Command, EventId, Launch, Location, Memory, Rows, RuntimeError};
use pdawl_core::graph::{DatumId, TaskGraph};

/// Bytes of a view that the driver thread puts together itself, at most: that takes it less
/// than a tenth of a millisecond.
const SMALL: u64 = 1 << 20;

/// Copies for one view, at most, where all its pieces are in host memory.
const MOST_COPIES: usize = 8;

impl GraphRun<'_> {
    /// The copies that bring a datum to a device: one, or one for each piece of a view, some
    /// of which are on the device already. `wait` gets the copies to the host that it takes.
    pub(super) fn load_commands(
        &mut self,
        graph: &TaskGraph,
        to: Destination,
        datum: DatumId,
        wait: &mut Vec<EventId>,
    ) -> Result<Vec<Command>, RuntimeError> {
        let is_here = |run: &Self, piece: &DatumId| {
            let residency = &run.prepared.storage.residency;
            *piece != datum && residency.state(to.device, piece.0) == State::Valid
        };
        let is_together = self.prepared.storage.residency.in_host(datum.0);
        if !graph.datum(datum).copies.is_empty() && !is_together {
            return self.gathered(graph, to, datum, wait);
        }
        let pieces = match is_together {
            true => std::slice::from_ref(&datum),
            false => graph.pieces(&datum),
        };
        let target = self.prepared.storage.buffer(datum, to.device)?;
        if !pieces.iter().any(|piece| is_here(self, piece)) {
            for piece in pieces {
                if !self.prepared.storage.residency.in_host(piece.0) {
                    wait.push(self.fetch(to.component, *piece)?);
                }
            }
            let host = self.prepared.storage.host(graph, datum)?;
            let way = transfer(graph, datum, None);
            return Ok(vec![Command::Copy {
                from: Location::host(host, way.host),
                to: Location::device(target, way.device),
                rows: way.rows,
            }]);
        }
        let whole = graph.datum(datum).place.as_ref();
        let mut commands = Vec::new();
        for piece in pieces {
            let own = graph.datum(*piece).place.as_ref();
            let Some((whole, own)) = whole.zip(own) else {
                continue;
            };
            let Some(part) = whole.common(own) else {
                continue;
            };
            if is_here(self, piece) {
                self.pin_piece(to.device, datum, *piece);
                let from = self.prepared.storage.buffer(*piece, to.device)?;
                commands.push(Command::Copy {
                    from: Location::device(from, own.offset_of(&part)),
                    to: Location::device(target, whole.offset_of(&part)),
                    rows: Rows::new(part.height(), part.width(), own.width(), whole.width()),
                });
                continue;
            }
            if !self.prepared.storage.residency.in_host(piece.0) {
                wait.push(self.fetch(to.component, *piece)?);
            }
            let host = self.prepared.storage.host(graph, datum)?;
            let way = transfer(graph, datum, Some(&part));
            commands.push(Command::Copy {
                from: Location::host(host, way.host),
                to: Location::device(target, way.device),
                rows: way.rows,
            });
        }
        Ok(commands)
    }

    /// Keeps a piece of a view on a device until the view is there.
    fn pin_piece(&mut self, device: usize, view: DatumId, piece: DatumId) {
        let residency = &mut self.prepared.storage.residency;
        let slot = residency.slot(piece.0);
        if let Some(space) = residency.space_mut(device) {
            space.pin(slot);
            self.known.pinned_pieces.push((device, view, slot));
        }
    }

    /// A view has arrived on a device, or has not: its pieces may leave.
    pub(super) fn unpin_pieces(&mut self, device: usize, view: DatumId) {
        let residency = &mut self.prepared.storage.residency;
        self.known.pinned_pieces.retain(|(on, of, slot)| {
            let is_its = (*on, *of) == (device, view);
            if is_its && let Some(space) = residency.space_mut(device) {
                space.unpin(*slot);
            }
            !is_its
        });
    }

    /// The copies of a view without a place, piece by piece, from where each piece is.
    fn gathered(
        &mut self,
        graph: &TaskGraph,
        to: Destination,
        view: DatumId,
        wait: &mut Vec<EventId>,
    ) -> Result<Vec<Command>, RuntimeError> {
        let target = self.prepared.storage.buffer(view, to.device)?;
        let mut commands = Vec::new();
        let pieces = &graph.datum(view).copies;
        let residency = &self.prepared.storage.residency;
        let mut in_host = pieces.iter().map(|piece| residency.in_host(piece.datum.0));
        if pieces.len() > MOST_COPIES && in_host.all(|there| there) {
            (self.prepared.storage).ensure_host(self.runtime, graph, view)?;
            if self.put_together_here(graph, view)? {
                return self.load_commands(graph, to, view, wait);
            }
        }
        for piece in pieces {
            let residency = &self.prepared.storage.residency;
            let from = if residency.state(to.device, piece.datum.0) == State::Valid {
                self.pin_piece(to.device, view, piece.datum);
                let buffer = self.prepared.storage.buffer(piece.datum, to.device)?;
                Location::device(buffer, piece.from.first)
            } else {
                if !residency.in_host(piece.datum.0) {
                    wait.push(self.fetch(to.component, piece.datum)?);
                }
                let host = self.prepared.storage.host(graph, piece.datum)?;
                Location::host(host, piece.from.first)
            };
            commands.push(Command::Copy {
                from,
                to: Location::device(target, piece.to.first),
                rows: Rows::new(piece.rows, piece.row, piece.from.pitch, piece.to.pitch),
            });
        }
        Ok(commands)
    }

    /// Puts a view without a place together in host memory, by the device that is to read it
    /// there. Returns what its reader waits for.
    pub(super) fn put_together(
        &mut self,
        to: Destination,
        view: DatumId,
    ) -> Result<Option<EventId>, RuntimeError> {
        if self.prepared.storage.residency.in_host(view.0) {
            return Ok(None);
        }
        if let Some(event) = self.storing(view) {
            return Ok(Some(event));
        }
        let graph = Arc::clone(&self.graph);
        let mut wait = Vec::new();
        let pieces = &graph.datum(view).copies;
        for piece in pieces {
            if !self.prepared.storage.residency.in_host(piece.datum.0) {
                wait.push(self.fetch(to.component, piece.datum)?);
            }
        }
        (self.prepared.storage).ensure_host(self.runtime, &graph, view)?;
        if wait.is_empty() && self.put_together_here(&graph, view)? {
            return Ok(None);
        }
        let mut event = None;
        for (number, piece) in pieces.iter().enumerate() {
            let storage = &self.prepared.storage;
            let host = |datum| storage.host(&graph, datum).map(Memory::Host);
            let (from, into) = (host(piece.datum)?, host(view)?);
            let bytes = piece.rows * piece.row;
            let command = Command::Launch(Launch {
                codelet: Arc::clone(&self.prepared.copying_rows),
                units: 0..rows::units(bytes),
                args: rows::args((from, piece.from), (into, piece.to), piece.rows, piece.row),
                cost: rows::cost(bytes),
            });
            // One queue has them all, so the last one ends when all have.
            event = match number + 1 == pieces.len() {
                true => Some(self.submit(to, Purpose::Together(view), command, &wait)?),
                false => {
                    let end = match self.options.trace {
                        true => End::Notified,
                        false => End::Covered,
                    };
                    self.submit_with(to, Purpose::Piece(view), command, &wait, end)?
                }
            };
        }
        self.known.fetching.extend(event.map(|event| (view, event)));
        Ok(event)
    }

    /// Puts a small view together in its host memory at once: to have a device copy each of
    /// many small pieces takes longer. All pieces are in host memory. False if the view is
    /// large, or the host cannot.
    fn put_together_here(
        &mut self,
        graph: &TaskGraph,
        view: DatumId,
    ) -> Result<bool, RuntimeError> {
        let what = graph.datum(view);
        if what.bytes > SMALL {
            return Ok(false);
        }
        let mut together = vec![0; what.bytes as usize];
        for pieces in what.copies.chunk_by(|one, other| one.datum == other.datum) {
            let memory = self.prepared.storage.host(graph, pieces[0].datum)?;
            let bytes = match self.runtime.host_read(memory, 0..u64::MAX) {
                Ok(bytes) => bytes,
                Err(RuntimeError::Busy | RuntimeError::NoData) => return Ok(false),
                Err(error) => return Err(error),
            };
            for piece in pieces {
                for row in 0..piece.rows {
                    let at = |lines: Lines| (lines.first + row * lines.pitch) as usize;
                    let (from, to, length) = (at(piece.from), at(piece.to), piece.row as usize);
                    together[to..to + length].copy_from_slice(&bytes[from..from + length]);
                }
            }
        }
        let memory = self.prepared.storage.host(graph, view)?;
        match self.runtime.host_range(memory, 0..what.bytes) {
            Ok(bytes) => bytes.copy_from_slice(&together),
            Err(RuntimeError::Busy) => return Ok(false),
            Err(error) => return Err(error),
        }
        self.prepared.storage.set_in_host(graph, view, true);
        Ok(true)
    }
}
