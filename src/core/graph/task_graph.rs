//! A checked task graph: which kernel makes, reads and follows what, and how many kernels it may
//! have.

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
#[derive(Clone, Debug)]
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
