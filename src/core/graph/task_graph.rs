//! A checked task graph: which kernel makes, reads and follows what, and how many kernels it may
//! have; its topological orders, the cycles that prevent them, and the ranks of kernels.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Datum, DatumId, GraphError, HostSpace, HostSpaceId, Kernel, KernelId, Place};
use crate::machine::host::Memory;

/// A datum that one kernel makes and another reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Edge {
    pub from: KernelId,
    pub datum: DatumId,
    pub to: KernelId,
}

/// Kernels and data without a cycle, in which everything that is read is made
/// first. Made by [`super::GraphBuilder`].
#[derive(Clone, Debug, Default)]
pub struct TaskGraph {
    pub(super) spaces: Vec<HostSpace>,
    pub(super) data: Vec<Datum>,
    pub(super) kernels: Vec<Kernel>,
    /// By datum: the kernel that makes it, those that read it, the one that
    /// overwrites it.
    pub(super) producers: Vec<Option<KernelId>>,
    pub(super) readers: Vec<Vec<KernelId>>,
    pub(super) overwriters: Vec<Option<KernelId>>,
    /// By kernel, sorted, each once: the kernels that it waits for, and those that
    /// wait for it.
    pub(super) predecessors: Vec<Vec<KernelId>>,
    pub(super) successors: Vec<Vec<KernelId>>,
    /// A topological order.
    pub(super) order: Vec<KernelId>,
    /// By datum: the first version of it.
    pub(super) first_versions: Vec<DatumId>,
}

impl TaskGraph {
    /// The data, by their ids.
    pub fn data(&self) -> &[Datum] {
        &self.data
    }

    /// The host memory in which data have places.
    pub fn spaces(&self) -> &[HostSpace] {
        &self.spaces
    }

    /// A space of this graph.
    ///
    /// # Panics
    /// For another graph's id.
    pub fn space(&self, id: HostSpaceId) -> &HostSpace {
        &self.spaces[id.0]
    }

    /// The place of a datum, and the bytes of a row of its space.
    pub fn place(&self, datum: DatumId) -> Option<(&Place, u64)> {
        let place = self.datum(datum).place.as_ref()?;
        Some((place, self.space(place.space).pitch))
    }

    /// The data of which a datum consists: itself, unless it is a view.
    pub fn pieces<'a>(&'a self, datum: &'a DatumId) -> &'a [DatumId] {
        match &self.datum(*datum).pieces[..] {
            [] => std::slice::from_ref(datum),
            pieces => pieces,
        }
    }

    /// The kernels, by their ids.
    pub fn kernels(&self) -> &[Kernel] {
        &self.kernels
    }

    /// A datum of this graph.
    ///
    /// # Panics
    /// For another graph's id.
    pub fn datum(&self, id: DatumId) -> &Datum {
        &self.data[id.0]
    }

    /// A kernel of this graph.
    ///
    /// # Panics
    /// For another graph's id.
    pub fn kernel(&self, id: KernelId) -> &Kernel {
        &self.kernels[id.0]
    }

    /// The ids of all kernels, in the order in which they were added.
    pub fn kernel_ids(&self) -> impl DoubleEndedIterator<Item = KernelId> + use<> {
        (0..self.kernels.len()).map(KernelId)
    }

    /// The ids of all data, in the order in which they were added.
    pub fn datum_ids(&self) -> impl DoubleEndedIterator<Item = DatumId> + use<> {
        (0..self.data.len()).map(DatumId)
    }

    /// The kernel that makes a datum; `None` if it comes from the host.
    pub fn producer(&self, datum: DatumId) -> Option<KernelId> {
        self.producers[datum.0]
    }

    /// The kernels that read a datum, the one that overwrites it among them.
    pub fn readers(&self, datum: DatumId) -> &[KernelId] {
        &self.readers[datum.0]
    }

    /// The kernel that overwrites a datum with another version.
    pub fn overwriter(&self, datum: DatumId) -> Option<KernelId> {
        self.overwriters[datum.0]
    }

    /// The kernels that a kernel waits for: those that make what it reads, those
    /// that read what it overwrites, and those that it explicitly follows.
    pub fn predecessors(&self, kernel: KernelId) -> &[KernelId] {
        &self.predecessors[kernel.0]
    }

    /// The kernels that wait for a kernel.
    pub fn successors(&self, kernel: KernelId) -> &[KernelId] {
        &self.successors[kernel.0]
    }

    /// The first version of a datum: itself, unless a kernel made it in place. All
    /// versions share one buffer on a device.
    pub fn first_version(&self, datum: DatumId) -> DatumId {
        self.first_versions[datum.0]
    }

    /// A topological order, the same for equal graphs.
    pub fn order(&self) -> &[KernelId] {
        &self.order
    }

    /// The edges. Data from the host have none, and neither has order without data.
    pub fn edges(&self) -> impl Iterator<Item = Edge> + '_ {
        self.datum_ids().flat_map(move |datum| {
            let from = self.producer(datum);
            let readers = self.readers(datum).iter();
            readers.filter_map(move |to| {
                from.map(|from| Edge {
                    from,
                    datum,
                    to: *to,
                })
            })
        })
    }
}

/// Most tasks of a graph.
pub const MOST_TASKS: u64 = 10_000_000;

/// Bytes of memory for a task, at least: its kernel and its data with their names, what is known
/// of the times of both, and the engine's part. With a trace they are 6 to 8 KB.
const TASK_BYTES: u64 = 4096;

/// Checks that a graph of so many tasks can be made.
///
/// # Errors
/// [`GraphError::TooManyTasks`], and [`GraphError::NoMemory`] for what this process can have.
pub fn check_tasks(tasks: u64) -> Result<(), GraphError> {
    if tasks > MOST_TASKS {
        return Err(GraphError::TooManyTasks { tasks });
    }
    let needed = tasks * TASK_BYTES;
    match Memory::read().map(|memory| memory.obtainable(0)) {
        Some(free) if free < needed => Err(GraphError::NoMemory {
            tasks,
            needed,
            free,
        }),
        _ => Ok(()),
    }
}

/// Whether a graph is to be made further: looked at for each task.
///
/// # Errors
/// [`GraphError::Stopped`] when the flag was set.
pub fn go_on(stop: &AtomicBool) -> Result<(), GraphError> {
    match stop.load(Ordering::Relaxed) {
        true => Err(GraphError::Stopped),
        false => Ok(()),
    }
}

/// An order of the numbers from 0 on in which each comes after its `predecessors`, the
/// smallest number first where there is a choice. The error is a cycle: from its first
/// number to its last, and the first again.
pub(super) fn topological_order(
    predecessors: &[BTreeSet<usize>],
) -> Result<Vec<usize>, Vec<usize>> {
    let mut successors = vec![Vec::new(); predecessors.len()];
    for (number, before) in predecessors.iter().enumerate() {
        before.iter().for_each(|b| successors[*b].push(number));
    }
    let mut waits: Vec<usize> = predecessors.iter().map(BTreeSet::len).collect();
    let mut ready: BinaryHeap<_> = (0..waits.len())
        .filter(|number| waits[*number] == 0)
        .map(Reverse)
        .collect();
    let mut order = Vec::with_capacity(waits.len());
    while let Some(Reverse(number)) = ready.pop() {
        order.push(number);
        for next in &successors[number] {
            waits[*next] -= 1;
            if waits[*next] == 0 {
                ready.push(Reverse(*next));
            }
        }
    }
    // Each number that is left waits for another one that is left.
    let left = |number: &usize| waits[*number] > 0;
    let mut path: Vec<usize> = (0..waits.len()).find(left).into_iter().collect();
    while let Some(last) = path.last() {
        let Some(next) = predecessors[*last].iter().copied().find(left) else {
            break;
        };
        let begin = path.iter().position(|seen| *seen == next);
        path.push(next);
        if let Some(begin) = begin {
            path.drain(..begin);
            path.reverse();
            return Err(path);
        }
    }
    Ok(order)
}

/// By kernel: the seconds from its begin to the graph's end along the longest path,
/// its own `seconds` included (Topcuoglu et al., HEFT, TPDS 2002, equation 8;
/// PySchedCL, section 5). `transfer` is the mean time of moving so many bytes from
/// one device to another; 0 if all kernels run on one device.
pub fn bottom_levels(
    graph: &TaskGraph,
    seconds: impl Fn(KernelId) -> f64,
    transfer: impl Fn(u64) -> f64,
) -> Vec<f64> {
    let mut ranks = vec![0.0; graph.kernels().len()];
    for kernel in graph.order().iter().rev() {
        let mut below: f64 = 0.0;
        for next in graph.successors(*kernel) {
            below = below.max(ranks[next.0]);
        }
        for datum in graph.kernel(*kernel).outputs() {
            for reader in graph.readers(datum) {
                below = below.max(transfer(graph.datum(datum).bytes) + ranks[reader.0]);
            }
        }
        ranks[kernel.0] = seconds(*kernel) + below;
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::fixtures::figure_6;

    #[test]
    fn a_graph_has_a_number_of_tasks_that_memory_has_room_for() {
        assert_eq!(check_tasks(0), Ok(()));
        assert_eq!(check_tasks(1000), Ok(()));
        for tasks in [MOST_TASKS + 1, 1 << 32, u64::MAX] {
            let refused = check_tasks(tasks);
            assert_eq!(refused, Err(GraphError::TooManyTasks { tasks }));
            let words = refused.unwrap_err().to_string();
            assert!(words.contains("larger tiles"), "{words}");
        }
        assert!(go_on(&AtomicBool::new(false)).is_ok());
        assert_eq!(go_on(&AtomicBool::new(true)), Err(GraphError::Stopped));
    }

    fn order(predecessors: &[&[usize]]) -> Result<Vec<usize>, Vec<usize>> {
        let sets = predecessors.iter().map(|before| before.iter().copied());
        let sets: Vec<BTreeSet<usize>> = sets.map(Iterator::collect).collect();
        topological_order(&sets)
    }

    #[test]
    fn the_smallest_number_that_waits_for_none_is_next() {
        assert_eq!(order(&[&[3], &[], &[1], &[1]]), Ok(vec![1, 2, 3, 0]));
        assert_eq!(order(&[]), Ok(Vec::new()));
    }

    #[test]
    fn a_cycle_is_reported_from_its_first_to_its_last() {
        assert_eq!(order(&[&[2], &[0], &[1], &[2]]), Err(vec![0, 1, 2, 0]));
        assert_eq!(order(&[&[1], &[1]]), Err(vec![1, 1]));
    }

    #[test]
    fn a_rank_is_the_longest_path_to_the_end() {
        let graph = figure_6();
        let seconds = |kernel: KernelId| kernel.0 as f64 + 1.0;
        assert_eq!(
            bottom_levels(&graph, seconds, |_| 0.0),
            [
                1.0 + 2.0 + 4.0 + 6.0 + 7.0,
                2.0 + 4.0 + 6.0 + 7.0,
                15.0,
                17.0,
                12.0,
                13.0,
                7.0
            ]
        );
        let with_transfers = bottom_levels(&graph, seconds, |bytes| bytes as f64 / 8.0);
        assert_eq!(with_transfers[0], 20.0 + 4.0);
        assert_eq!(with_transfers[6], 7.0);
    }
}
