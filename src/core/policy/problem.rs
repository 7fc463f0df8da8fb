//! The scheduling problem: what a policy knows of components and devices, and which tasks read
//! which data.

use std::collections::BTreeMap;

use crate::codelet::Cost;
use crate::machine::DeviceKind;
pub use crate::runtime::CommandCosts;

/// A component, in numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Task {
    /// The longest path of components to it. Components of one level are independent
    /// and make up a layer.
    pub level: usize,
    /// The components that it waits for.
    pub predecessors: Vec<usize>,
    /// The data that it reads, and those that it writes, sorted. A datum that it works
    /// on in place is both.
    pub inputs: Vec<usize>,
    pub outputs: Vec<usize>,
    /// Its bottom-level rank in seconds: the greatest of its FRONT kernels.
    pub rank: f64,
    /// Its work, relative to other components: any unit, above 0.
    pub weight: f64,
    /// By device: the seconds that it takes alone, measured or estimated; `None` where
    /// it cannot run.
    pub seconds: Vec<Option<f64>>,
    pub cost: Cost,
    /// The kind of device that it is to run on.
    pub prefers: Option<DeviceKind>,
}

/// What components read and write, in numbers: the memory of a datum of the graph. The
/// versions of a datum that kernels work on in place are one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Datum {
    pub bytes: u64,
}

/// A device, in numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceModel {
    pub kind: DeviceKind,
    /// Bytes a second to and from its own memory; `None` where it computes in
    /// the host's.
    pub bandwidth: Option<f64>,
    /// The same while the other way is idle, to it and from it.
    pub one_way: Option<[f64; 2]>,
    /// Bytes of its own memory for data; `None` where it computes in the host's.
    pub memory: Option<u64>,
    pub costs: CommandCosts,
}

impl DeviceModel {
    /// Seconds of a copy between the memories of the host and the device.
    pub fn transfer(&self, bytes: u64) -> f64 {
        self.bandwidth.map_or(0.0, |rate| bytes as f64 / rate)
    }
}

/// What copies share, and the ways between devices, in bytes a second.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Links {
    /// All copies from and to host memory together; `None` where they share nothing.
    pub bus: Option<f64>,
    /// These copies and what computes in the host's memory together; `None` where it is unknown.
    pub host: Option<f64>,
    /// From a device's own memory to another one's, directly, by these two devices;
    /// empty if there is no such way at all.
    pub peers: Vec<Vec<Option<f64>>>,
}

impl Links {
    /// Bytes a second from one device's memory to another one's, if they go directly.
    pub fn peer(&self, from: usize, to: usize) -> Option<f64> {
        self.peers.get(from)?.get(to).copied().flatten()
    }
}

/// Components and devices, in numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Problem {
    pub tasks: Vec<Task>,
    pub data: Vec<Datum>,
    /// Of data that are made of parts of others where they are read: these.
    pub views: BTreeMap<usize, Vec<usize>>,
    /// The data that are in host memory at the end.
    pub results: Vec<usize>,
    pub devices: Vec<DeviceModel>,
    pub links: Links,
}

impl Task {
    /// The data that it reads or writes, each once.
    pub fn data(&self) -> impl Iterator<Item = usize> + '_ {
        let only_written = self.outputs.iter();
        let only_written = only_written.filter(|datum| self.inputs.binary_search(datum).is_err());
        self.inputs.iter().chain(only_written).copied()
    }
}

impl Problem {
    /// Whether a device can run a component.
    pub fn able(&self, component: usize, device: usize) -> bool {
        let task = self.tasks.get(component);
        task.and_then(|task| task.seconds.get(device).copied().flatten())
            .is_some()
    }

    /// Whether it can, and is of the kind that the component is to run on.
    pub fn suits(&self, component: usize, device: usize) -> bool {
        let kinds = self.tasks.get(component).zip(self.devices.get(device));
        self.able(component, device)
            && kinds
                .is_some_and(|(task, device)| task.prefers.is_none_or(|kind| kind == device.kind))
    }

    /// The components of each level.
    pub fn levels(&self) -> Vec<Vec<usize>> {
        let count = self.tasks.iter().map(|task| task.level + 1).max();
        let mut levels = vec![Vec::new(); count.unwrap_or(0)];
        for (component, task) in self.tasks.iter().enumerate() {
            levels[task.level].push(component);
        }
        levels
    }
}

/// A list of numbers for each number. All lists follow each other in one vector, because
/// policies walk over many short ones.
#[derive(Clone, Debug)]
pub(super) struct Adjacency {
    items: Vec<u32>,
    /// List i is `starts[i]..starts[i + 1]`.
    starts: Vec<usize>,
}

impl Adjacency {
    pub fn new<List: IntoIterator<Item = usize>>(lists: impl IntoIterator<Item = List>) -> Self {
        let mut all = Self {
            items: Vec::new(),
            starts: vec![0],
        };
        for list in lists {
            all.items.extend(list.into_iter().map(|item| item as u32));
            all.starts.push(all.items.len());
        }
        all
    }

    /// By task: the data that it reads.
    pub fn inputs(problem: &Problem) -> Self {
        let tasks = problem.tasks.iter();
        Self::new(tasks.map(|task| task.inputs.iter().copied()))
    }

    /// By datum: the tasks that read it, in ascending order.
    pub fn readers(problem: &Problem) -> Self {
        Self::inputs(problem).transposed(problem.data.len())
    }

    /// By item, of which there are `count`: the lists that have it, in ascending order.
    pub fn transposed(&self, count: usize) -> Self {
        let mut starts = vec![0; count + 1];
        for item in &self.items {
            starts[*item as usize + 1] += 1;
        }
        for index in 0..count {
            starts[index + 1] += starts[index];
        }
        let mut next = starts.clone();
        let mut items = vec![0; self.items.len()];
        for list in 0..self.len() {
            for item in self.of(list) {
                items[next[*item as usize]] = list as u32;
                next[*item as usize] += 1;
            }
        }
        Self { items, starts }
    }

    /// Lists.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    pub fn of(&self, index: usize) -> &[u32] {
        &self.items[self.starts[index]..self.starts[index + 1]]
    }
}
