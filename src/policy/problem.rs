//! What a policy knows.

use crate::machine::DeviceKind;

/// A component, in numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Task {
    /// The longest path of components to it; those of one level are independent
    /// and make up a layer.
    pub level: usize,
    /// The components that it waits for, and the bytes that each hands it.
    pub predecessors: Vec<(usize, u64)>,
    /// Bytes that it reads of what the host has from the begin.
    pub given: u64,
    /// Its bottom-level rank in seconds: the greatest of its FRONT kernels.
    pub rank: f64,
    /// How much it is to compute, against other components: any unit, above 0.
    pub weight: f64,
    /// Seconds that it takes by itself, by device; `None` where it cannot run.
    /// Where it can and nobody knows, an estimate of the same order for all.
    pub seconds: Vec<Option<f64>>,
    /// The kind of device that it is meant for.
    pub prefers: Option<DeviceKind>,
}

/// A device, in numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Spot {
    pub kind: DeviceKind,
    /// Bytes a second to and from its own memory; `None` where it computes in
    /// the host's.
    pub bandwidth: Option<f64>,
}

impl Spot {
    /// Seconds that bytes take from the host's memory to this device's, or back.
    pub fn transfer(&self, bytes: u64) -> f64 {
        self.bandwidth.map_or(0.0, |rate| bytes as f64 / rate)
    }
}

/// Components and devices, in numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Problem {
    pub tasks: Vec<Task>,
    pub spots: Vec<Spot>,
}

impl Problem {
    /// Whether a device has what it takes to run a component.
    pub fn able(&self, component: usize, device: usize) -> bool {
        let task = self.tasks.get(component);
        task.and_then(|task| task.seconds.get(device).copied().flatten())
            .is_some()
    }

    /// Whether it has, and is of the kind that the component is meant for.
    pub fn suits(&self, component: usize, device: usize) -> bool {
        let kinds = self.tasks.get(component).zip(self.spots.get(device));
        self.able(component, device)
            && kinds.is_some_and(|(task, spot)| task.prefers.is_none_or(|kind| kind == spot.kind))
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
