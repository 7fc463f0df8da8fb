//! What will happen, in the order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::network::End;
use crate::cluster::protocol::{DeviceIndex, Event};
use crate::time::Nanos;

/// What happens at a node.
pub enum Happens {
    Event(Event),
    Done {
        device: DeviceIndex,
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

    /// What happens next.
    pub fn next(&mut self) -> Option<Planned> {
        self.heap.pop().map(|Reverse(planned)| planned)
    }
}
