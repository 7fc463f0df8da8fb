//! Command graphs: their launches one after the other, as a series.
//!
//! Of the launches that may be next, the one that comes last in the graph is next. Most
//! graphs so run in another order than the one in which they are listed, and one that lacks
//! a precedence gives a wrong result.

use std::sync::Arc;

use super::Sim;
use crate::runtime::{Command, CommandGraph, EventId, QueueId, RuntimeError};

impl Sim {
    /// Enqueues the launches of a graph; the event is the last one's.
    pub(super) fn submit_graph(
        &mut self,
        queue: QueueId,
        graph: &CommandGraph,
        wait: &[EventId],
        event: EventId,
    ) -> Result<(), RuntimeError> {
        let launches = graph.launches();
        let repeat = |index: usize| Command::Repeat(Arc::clone(&launches[index].launch));
        let commands = late_order(graph).into_iter().map(repeat).collect();
        self.submit_series(queue, commands, wait, event)
    }
}

/// The launches of a graph in an order that its precedences allow.
fn late_order(graph: &CommandGraph) -> Vec<usize> {
    let launches = graph.launches();
    let mut order = Vec::with_capacity(launches.len());
    let mut left: Vec<usize> = (0..launches.len()).collect();
    while !left.is_empty() {
        let is_free = |index: &usize| !launches[*index].after.iter().any(|b| left.contains(b));
        // The first one that is left comes after none that is.
        let next = left.iter().rposition(is_free).unwrap_or(0);
        order.push(left.remove(next));
    }
    order
}
