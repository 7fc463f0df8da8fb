//! What will happen, in the order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::node::Begun;
use crate::runtime::sim::schedule::Demand;
use crate::time::Nanos;
use pdawl_core::cluster::protocol::Event;

/// What happens at a node.
pub enum SimulatedEvent {
    Event(Event),
    /// Its driver has enqueued the commands of a subtask, whose kernel needs this.
    Enqueued(Box<(Begun, Demand)>),
    Done(Begun),
    Begin,
    /// Its devices and their links have this fraction of their speed from now on.
    Slowed(f64),
}

/// Something that happens, ordered by time, then by when it was planned.
pub struct Planned {
    pub at: Nanos,
    number: u64,
    pub node: usize,
    pub event: SimulatedEvent,
}

impl PartialEq for Planned {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.number) == (other.at, other.number)
    }
}

impl Eq for Planned {}

impl PartialOrd for Planned {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Planned {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

/// All that is planned.
#[derive(Default)]
pub struct Events {
    heap: BinaryHeap<Reverse<Planned>>,
    number: u64,
}

impl Events {
    /// Plans something. What is planned for the same moment happens in the order of the
    /// calls.
    pub fn plan(&mut self, at: Nanos, node: usize, event: SimulatedEvent) {
        self.number += 1;
        let number = self.number;
        self.heap.push(Reverse(Planned {
            at,
            number,
            node,
            event,
        }));
    }

    /// When something happens next.
    pub fn next_at(&self) -> Option<Nanos> {
        self.heap.peek().map(|Reverse(planned)| planned.at)
    }

    /// What happens next.
    pub fn next(&mut self) -> Option<Planned> {
        self.heap.pop().map(|Reverse(planned)| planned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_happen_by_time_then_by_plan() {
        let mut events = Events::default();
        events.plan(50, 1, SimulatedEvent::Begin);
        events.plan(50, 2, SimulatedEvent::Begin);
        events.plan(70, 3, SimulatedEvent::Slowed(0.5));
        events.plan(40, 4, SimulatedEvent::Begin);
        assert_eq!(events.next_at(), Some(40));
        let seen: Vec<_> = std::iter::from_fn(|| events.next())
            .map(|next| (next.at, next.node))
            .collect();
        assert_eq!(seen, [(40, 4), (50, 1), (50, 2), (70, 3)]);
        assert_eq!(events.next_at(), None);
    }
}
