//! The command queue structure of a component: which command goes to which queue,
//! and the precedences between queues (PySchedCL, definition 4 and procedure
//! `setup_cq`).

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use super::{Components, DatumId, KernelId, TaskGraph};

/// A command of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QueueCommand {
    /// Host to device, before the kernel: an isolated or dependent write.
    Write(DatumId, KernelId),
    NdRange(KernelId),
    /// Device to host, after the kernel: an isolated or dependent read.
    Read(KernelId, DatumId),
}

/// A queue, and a position in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QueueSlot {
    pub queue: usize,
    pub position: usize,
}

/// Which copies a component needs on its device.
pub trait Transfers {
    /// Whether the datum must be written to the device before it is read there:
    /// it comes from the host or from another component, and is not there yet.
    fn write(&self, datum: DatumId) -> bool;

    /// Whether the datum must be read from the device when it was made: another
    /// device or the host needs it.
    fn read(&self, datum: DatumId) -> bool;
}

/// The command queue structure Q = (Q, E_Q) of a component.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandQueues {
    /// Commands by queue, in order.
    pub queues: Vec<Vec<QueueCommand>>,
    /// All commands, in the order in which they are to be enqueued: a command comes
    /// after all that it waits for.
    pub order: Vec<QueueSlot>,
    /// E_Q: the first must end before the second starts. Both are of different
    /// queues, since commands within a queue are in order. Sorted.
    pub precedences: Vec<(QueueSlot, QueueSlot)>,
}

impl CommandQueues {
    /// The structure of a component on a device with `queues` queues (at least 1).
    /// Kernels go to the queues in turns. The next one is, of the kernels whose
    /// predecessors have been enqueued, that of the highest rank, and among equals
    /// the one whose predecessors were enqueued first.
    ///
    /// A kernel's queue gets its writes, the kernel and its reads, in this order. A
    /// datum that several kernels of the component read is written once, before the
    /// first of them, and the others wait for that write.
    pub fn new(
        graph: &TaskGraph,
        components: &Components,
        component: usize,
        queues: usize,
        ranks: &[f64],
        transfers: &dyn Transfers,
    ) -> Self {
        let own = &components.list()[component].kernels;
        let mut builder = QueueBuilder {
            graph,
            components,
            component,
            transfers,
            result: Self {
                queues: vec![Vec::new(); queues.max(1)],
                ..Self::default()
            },
            precedences: BTreeSet::new(),
            launches: vec![None; own.len()],
            writes: Vec::new(),
            reads: Vec::new(),
        };
        let inside = |kernel: &&KernelId| components.of(**kernel) == component;
        let mut waits = vec![0; own.len()];
        let mut unprocessed = BinaryHeap::new();
        let mut arrivals = 0;
        let mut push = |heap: &mut BinaryHeap<_>, kernel: KernelId| {
            let rank = ranks.get(kernel.0).copied().unwrap_or(0.0);
            heap.push((Rank(rank), Reverse(arrivals), kernel));
            arrivals += 1;
        };
        for kernel in own {
            let index = components.index_in(*kernel);
            waits[index] = graph.predecessors(*kernel).iter().filter(inside).count();
            if waits[index] == 0 {
                push(&mut unprocessed, *kernel);
            }
        }
        let mut turn = 0;
        while let Some((_, _, kernel)) = unprocessed.pop() {
            builder.enqueue(kernel, turn % queues.max(1));
            turn += 1;
            for next in graph.successors(kernel).iter().filter(inside) {
                let index = components.index_in(*next);
                waits[index] -= 1;
                if waits[index] == 0 {
                    push(&mut unprocessed, *next);
                }
            }
        }
        builder.result.precedences = builder.precedences.into_iter().collect();
        builder.result
    }

    /// By how many queues the next component's first queue follows this one's: with
    /// components over all queues the turns go on, and with components over `width`
    /// queues the next one begins behind them.
    pub fn steps(&self, width: usize) -> usize {
        let launches = self.queues.iter().flatten();
        let launches = launches.filter(|command| matches!(command, QueueCommand::NdRange(_)));
        launches.count().min(width.max(1))
    }

    /// The command in a slot.
    pub fn at(&self, slot: QueueSlot) -> QueueCommand {
        self.queues[slot.queue][slot.position]
    }

    /// What each command waits for, in the order of [`CommandQueues::order`]. Of
    /// several commands of one queue it is only the last, which implies the others.
    pub fn waits(&self) -> Vec<Vec<QueueSlot>> {
        let mut by_slot: Vec<Vec<Vec<QueueSlot>>> = self
            .queues
            .iter()
            .map(|queue| vec![Vec::new(); queue.len()])
            .collect();
        for (before, after) in &self.precedences {
            let list = &mut by_slot[after.queue][after.position];
            match list.iter_mut().find(|slot| slot.queue == before.queue) {
                Some(slot) => slot.position = slot.position.max(before.position),
                None => list.push(*before),
            }
        }
        let take = |slot: &QueueSlot| std::mem::take(&mut by_slot[slot.queue][slot.position]);
        self.order.iter().map(take).collect()
    }
}

/// A rank as a key for sorting.
#[derive(PartialEq)]
struct Rank(f64);

impl Eq for Rank {}

impl PartialOrd for Rank {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Rank {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// Builds the structure, kernel by kernel.
struct QueueBuilder<'a> {
    graph: &'a TaskGraph,
    components: &'a Components,
    component: usize,
    transfers: &'a dyn Transfers,
    result: CommandQueues,
    precedences: BTreeSet<(QueueSlot, QueueSlot)>,
    /// By index in the component: the slot of the kernel's NDRange.
    launches: Vec<Option<QueueSlot>>,
    writes: Vec<(DatumId, QueueSlot)>,
    reads: Vec<(DatumId, QueueSlot)>,
}

impl QueueBuilder<'_> {
    /// The paper's `enq(k, q)` and `set_dependencies`.
    fn enqueue(&mut self, kernel: KernelId, queue: usize) {
        let graph = self.graph;
        let what = graph.kernel(kernel);
        let mut waits: Vec<QueueSlot> = Vec::new();
        for datum in what.inputs() {
            let written = self.writes.iter().find(|(d, _)| *d == datum);
            if let Some((_, slot)) = written {
                waits.push(*slot);
            } else if self.transfers.write(datum) {
                let slot = self.push(queue, QueueCommand::Write(datum, kernel));
                self.writes.push((datum, slot));
            }
            // A datum is read from the device before it is overwritten there.
            if graph.overwriter(datum) == Some(kernel) {
                let read = self.reads.iter().find(|(d, _)| *d == datum);
                waits.extend(read.map(|(_, slot)| *slot));
            }
        }
        let launches = graph.predecessors(kernel).iter();
        waits.extend(launches.filter_map(|before| self.launched(*before)));
        let launch = self.push(queue, QueueCommand::NdRange(kernel));
        self.launches[self.components.index_in(kernel)] = Some(launch);
        for before in waits {
            self.precede(before, launch);
        }
        for datum in what.outputs() {
            if self.transfers.read(datum) {
                let slot = self.push(queue, QueueCommand::Read(kernel, datum));
                self.reads.push((datum, slot));
            }
        }
    }

    /// The slot of a kernel of this component that was enqueued.
    fn launched(&self, kernel: KernelId) -> Option<QueueSlot> {
        let own = self.components.of(kernel) == self.component;
        own.then(|| self.launches[self.components.index_in(kernel)])?
    }

    fn push(&mut self, queue: usize, command: QueueCommand) -> QueueSlot {
        let position = self.result.queues[queue].len();
        self.result.queues[queue].push(command);
        let slot = QueueSlot { queue, position };
        self.result.order.push(slot);
        slot
    }

    fn precede(&mut self, before: QueueSlot, after: QueueSlot) {
        if before.queue != after.queue {
            self.precedences.insert((before, after));
        }
    }
}

#[cfg(test)]
mod tests;
