//! The command queue structure of a component: what is enqueued where, and
//! what waits for what (PySchedCL, definition 4 and procedure `setup_cq`).

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use super::{Components, DatumId, KernelId, TaskGraph};

/// A command for a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Planned {
    /// Host to device, before the kernel: an isolated or dependent write.
    Write(DatumId, KernelId),
    NdRange(KernelId),
    /// Device to host, after the kernel: an isolated or dependent read.
    Read(KernelId, DatumId),
}

/// A place in the structure: a queue, and a position in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    pub queue: usize,
    pub position: usize,
}

/// Which copies a component needs on its device.
pub trait Transfers {
    /// Whether the datum must be written to the device before it is read there:
    /// it comes from the host or from another component, and is not there yet.
    fn write(&self, datum: DatumId) -> bool;

    /// Whether the datum must be read from the device when it was made: another
    /// device or the host wants it.
    fn read(&self, datum: DatumId) -> bool;
}

/// The command queue structure Q = (Q, E_Q) of a component.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandQueues {
    /// Commands by queue, in order.
    pub queues: Vec<Vec<Planned>>,
    /// All commands, in the order in which they are to be enqueued: whatever a
    /// command waits for comes before it.
    pub order: Vec<Place>,
    /// E_Q: the first must have ended before the second starts. Places are of
    /// different queues; within a queue commands are in order anyhow. Sorted.
    pub precedences: Vec<(Place, Place)>,
}

impl CommandQueues {
    /// The structure of a component on a device with `queues` queues (at least
    /// one is taken). Kernels go to the queues in turns, beginning with the
    /// kernels of FRONT; of those whose predecessors have been enqueued that
    /// of the highest rank is next, the one that became so first among equals.
    ///
    /// A kernel's queue gets its writes, then the kernel, then its reads. A
    /// datum that several kernels of the component read is written once, for
    /// the first of them, and the others wait for that write.
    pub fn new(
        graph: &TaskGraph,
        components: &Components,
        component: usize,
        queues: usize,
        ranks: &[f64],
        transfers: &dyn Transfers,
    ) -> Self {
        let own = &components.list()[component].kernels;
        let mut made = Maker {
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
            let place = components.place(*kernel);
            waits[place] = graph.predecessors(*kernel).iter().filter(inside).count();
            if waits[place] == 0 {
                push(&mut unprocessed, *kernel);
            }
        }
        let mut turn = 0;
        while let Some((_, _, kernel)) = unprocessed.pop() {
            made.enqueue(kernel, turn % queues.max(1));
            turn += 1;
            for next in graph.successors(kernel).iter().filter(inside) {
                let place = components.place(*next);
                waits[place] -= 1;
                if waits[place] == 0 {
                    push(&mut unprocessed, *next);
                }
            }
        }
        made.result.precedences = made.precedences.into_iter().collect();
        made.result
    }

    /// Queues by which the next component's first queue lies behind this one's:
    /// the turns go on where components are spread over all queues, and where
    /// they have `width` queues of their own the next has others.
    pub fn steps(&self, width: usize) -> usize {
        let launches = self.queues.iter().flatten();
        let launches = launches.filter(|command| matches!(command, Planned::NdRange(_)));
        launches.count().min(width.max(1))
    }

    /// The command at a place.
    pub fn at(&self, place: Place) -> Planned {
        self.queues[place.queue][place.position]
    }

    /// What each command waits for, in the order of [`CommandQueues::order`],
    /// without what follows from the rest: of several places in one queue only
    /// the last is needed, since queues are in order.
    pub fn waits(&self) -> Vec<Vec<Place>> {
        let mut by_place: Vec<Vec<Vec<Place>>> = self
            .queues
            .iter()
            .map(|queue| vec![Vec::new(); queue.len()])
            .collect();
        for (before, after) in &self.precedences {
            let list = &mut by_place[after.queue][after.position];
            match list.iter_mut().find(|place| place.queue == before.queue) {
                Some(place) => place.position = place.position.max(before.position),
                None => list.push(*before),
            }
        }
        let take = |place: &Place| std::mem::take(&mut by_place[place.queue][place.position]);
        self.order.iter().map(take).collect()
    }
}

/// A rank as a key.
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

/// A structure in the making.
struct Maker<'a> {
    graph: &'a TaskGraph,
    components: &'a Components,
    component: usize,
    transfers: &'a dyn Transfers,
    result: CommandQueues,
    precedences: BTreeSet<(Place, Place)>,
    /// By place in the component: where the kernel's NDRange is.
    launches: Vec<Option<Place>>,
    writes: Vec<(DatumId, Place)>,
    reads: Vec<(DatumId, Place)>,
}

impl Maker<'_> {
    /// The paper's `enq(k, q)` and `set_dependencies`.
    fn enqueue(&mut self, kernel: KernelId, queue: usize) {
        let graph = self.graph;
        let what = graph.kernel(kernel);
        let mut waits: Vec<Place> = Vec::new();
        for datum in what.inputs() {
            let written = self.writes.iter().find(|(d, _)| *d == datum);
            if let Some((_, place)) = written {
                waits.push(*place);
            } else if self.transfers.write(datum) {
                let place = self.push(queue, Planned::Write(datum, kernel));
                self.writes.push((datum, place));
            }
            // What is read from the device must have been when it is
            // overwritten there.
            if graph.overwriter(datum) == Some(kernel) {
                let read = self.reads.iter().find(|(d, _)| *d == datum);
                waits.extend(read.map(|(_, place)| *place));
            }
        }
        let launches = graph.predecessors(kernel).iter();
        waits.extend(launches.filter_map(|before| self.launched(*before)));
        let launch = self.push(queue, Planned::NdRange(kernel));
        self.launches[self.components.place(kernel)] = Some(launch);
        for before in waits {
            self.precede(before, launch);
        }
        for datum in what.outputs() {
            if self.transfers.read(datum) {
                let place = self.push(queue, Planned::Read(kernel, datum));
                self.reads.push((datum, place));
            }
        }
    }

    /// Where a kernel of this component was enqueued.
    fn launched(&self, kernel: KernelId) -> Option<Place> {
        let own = self.components.of(kernel) == self.component;
        own.then(|| self.launches[self.components.place(kernel)])?
    }

    fn push(&mut self, queue: usize, command: Planned) -> Place {
        let position = self.result.queues[queue].len();
        self.result.queues[queue].push(command);
        let place = Place { queue, position };
        self.result.order.push(place);
        place
    }

    fn precede(&mut self, before: Place, after: Place) {
        if before.queue != after.queue {
            self.precedences.insert((before, after));
        }
    }
}

#[cfg(test)]
mod tests;
