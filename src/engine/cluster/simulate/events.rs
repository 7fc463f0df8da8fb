//! What will happen, in the order of time.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use super::network::End;
use crate::cluster::protocol::{DeviceIndex, Event};
use crate::cluster::task::TaskId;
use crate::time::Nanos;

/// What happens at a node.
pub enum Happens {
    Event(Event),
    Done {
        device: DeviceIndex,
        task: TaskId,
        subtask: u64,
        began: Nanos,
    },
    Begin,
    Lost,
    /// A transfer ends. This concerns no node.
    Transferred(End),
}

/// Something that happens, ordered by time, then by when it was planned.
pub struct Planned {
    pub at: Nanos,
    number: u64,
    pub node: usize,
    pub happens: Happens,
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
    /// Ends of transfers: when, in which order they were planned, and the transfer. They
    /// change with every transfer on the same links, so old ones are taken out.
    ends: BTreeSet<(Nanos, u64, usize)>,
    /// By transfer: the number of its planned end.
    planned_ends: Vec<Option<(u64, End)>>,
}

impl Events {
    /// Plans something. What is planned for the same moment happens in the order of the
    /// calls.
    pub fn plan(&mut self, at: Nanos, node: usize, happens: Happens) {
        self.number += 1;
        let number = self.number;
        self.heap.push(Reverse(Planned {
            at,
            number,
            node,
            happens,
        }));
    }

    /// Plans the end of a transfer, instead of the one that was planned before.
    pub fn plan_end(&mut self, end: End) {
        self.number += 1;
        if self.planned_ends.len() <= end.flow {
            self.planned_ends.resize(end.flow + 1, None);
        }
        let before = self.planned_ends[end.flow].replace((self.number, end));
        if let Some((number, before)) = before {
            self.ends.remove(&(before.at, number, before.flow));
        }
        self.ends.insert((end.at, self.number, end.flow));
    }

    /// What happens next.
    pub fn next(&mut self) -> Option<Planned> {
        let other = self.heap.peek();
        let other = other.map(|Reverse(planned)| (planned.at, planned.number));
        let end = self.ends.first().copied();
        match end.filter(|end| other.is_none_or(|other| (end.0, end.1) < other)) {
            None => self.heap.pop().map(|Reverse(planned)| planned),
            Some((at, number, flow)) => {
                self.ends.pop_first();
                let (_, end) = self.planned_ends[flow].take()?;
                Some(Planned {
                    at,
                    number,
                    node: 0,
                    happens: Happens::Transferred(end),
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_happen_by_time_then_by_plan_and_ends_are_replaced() {
        let mut events = Events::default();
        let end = |flow, version, at| End { flow, version, at };
        events.plan(50, 1, Happens::Begin);
        events.plan_end(end(2, 1, 40));
        events.plan_end(end(0, 2, 50));
        events.plan(50, 2, Happens::Begin);
        events.plan_end(end(2, 3, 60));
        events.plan(70, 3, Happens::Lost);
        let mut seen = Vec::new();
        while let Some(next) = events.next() {
            seen.push(match next.happens {
                Happens::Transferred(end) => (next.at, format!("flow {}", end.flow)),
                _ => (next.at, format!("node {}", next.node)),
            });
        }
        let expected = [
            (50, "node 1"),
            (50, "flow 0"),
            (50, "node 2"),
            (60, "flow 2"),
            (70, "node 3"),
        ];
        assert_eq!(seen, expected.map(|(at, what)| (at, what.to_owned())));
    }
}
