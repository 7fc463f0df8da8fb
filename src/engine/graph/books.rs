//! What has been made, where it lies, and who is next. Pure.

use crate::graph::{Components, DatumId, KernelId, TaskGraph};
use crate::runtime::EventId;

/// Whether a datum is in a device's own memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum There {
    No,
    /// When this write, enqueued for this component, has ended.
    Coming {
        event: EventId,
        component: usize,
    },
    Here,
}

/// How far a component has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// For so many kernels of other components.
    Waiting(usize),
    /// The policy has been told.
    Ready,
    Running(usize),
    Done(usize),
}

/// The books of a run.
pub(super) struct Books {
    /// By datum: whether host memory has it.
    pub host: Vec<bool>,
    /// By device and datum.
    pub there: Vec<Vec<There>>,
    /// By kernel: commands that have not ended, and whether all it has to do for
    /// others is done.
    left: Vec<u32>,
    done: Vec<bool>,
    /// By kernel: launched, and heard of only when its component has ended.
    pub unheard: Vec<bool>,
    components: Vec<Progress>,
    /// How many components are done.
    finished: usize,
    /// By component: commands in flight, and whether one of them failed.
    pub flying: Vec<u32>,
    pub failed: Vec<bool>,
}

impl Books {
    /// At a graph's begin: the host has what it gives.
    pub fn new(graph: &TaskGraph, components: &Components, devices: usize) -> Self {
        let data = graph.data();
        Self {
            host: data.iter().map(|datum| datum.contents.is_some()).collect(),
            there: vec![vec![There::No; data.len()]; devices],
            left: vec![0; graph.kernels().len()],
            done: vec![false; graph.kernels().len()],
            unheard: vec![false; graph.kernels().len()],
            components: vec![Progress::Waiting(0); components.len()],
            finished: 0,
            flying: vec![0; components.len()],
            failed: vec![false; components.len()],
        }
    }

    /// The kernels of other components that a component waits for, each once.
    fn before(graph: &TaskGraph, components: &Components, component: usize) -> Vec<KernelId> {
        let mut before: Vec<KernelId> = Vec::new();
        for kernel in &components.list()[component].kernels {
            let outside = graph.predecessors(*kernel).iter();
            before.extend(outside.filter(|k| components.of(**k) != component));
        }
        before.sort_unstable();
        before.dedup();
        before
    }

    /// Counts anew for whom every component that is not done waits; returns
    /// those that wait for nobody, and are ready now.
    pub fn count(&mut self, graph: &TaskGraph, components: &Components) -> Vec<usize> {
        let mut ready = Vec::new();
        for component in 0..components.len() {
            if matches!(self.components[component], Progress::Done(_)) {
                continue;
            }
            let before = Self::before(graph, components, component);
            let waits = before.iter().filter(|k| !self.done[k.0]).count();
            self.components[component] = Progress::Waiting(waits);
            if waits == 0 {
                self.components[component] = Progress::Ready;
                ready.push(component);
            }
        }
        ready
    }

    /// A command of a kernel's own, its launch or a read, was submitted.
    pub fn submitted(&mut self, kernel: KernelId) {
        self.left[kernel.0] += 1;
    }

    /// One of them has ended well; returns components that became ready by it.
    pub fn ended(
        &mut self,
        graph: &TaskGraph,
        components: &Components,
        kernel: KernelId,
    ) -> Vec<usize> {
        self.left[kernel.0] = self.left[kernel.0].saturating_sub(1);
        if self.left[kernel.0] > 0 || self.done[kernel.0] {
            return Vec::new();
        }
        self.done[kernel.0] = true;
        let own = components.of(kernel);
        let mut told: Vec<usize> = Vec::new();
        let mut ready = Vec::new();
        for next in graph.successors(kernel) {
            let other = components.of(*next);
            if other == own || told.contains(&other) {
                continue;
            }
            told.push(other);
            if let Progress::Waiting(waits) = &mut self.components[other] {
                *waits = waits.saturating_sub(1);
                if *waits == 0 {
                    self.components[other] = Progress::Ready;
                    ready.push(other);
                }
            }
        }
        ready
    }

    /// A component has ended, and so have the kernels of which nothing was heard:
    /// takes them out.
    pub fn take_unheard(&mut self, components: &Components, component: usize) -> Vec<KernelId> {
        let kernels = components.list()[component].kernels.iter().copied();
        kernels
            .filter(|kernel| std::mem::take(&mut self.unheard[kernel.0]))
            .collect()
    }

    /// Whether a kernel has done all that others wait for.
    pub fn is_done(&self, kernel: KernelId) -> bool {
        self.done[kernel.0]
    }

    /// How far every component has come.
    pub fn components(&self) -> &[Progress] {
        &self.components
    }

    /// A component has been handed to a device.
    pub fn begin(&mut self, component: usize, device: usize) {
        self.components[component] = Progress::Running(device);
    }

    /// A component is done.
    pub fn finish(&mut self, component: usize, device: usize) {
        self.components[component] = Progress::Done(device);
        self.finished += 1;
    }

    /// Whether every component is done.
    pub fn complete(&self) -> bool {
        self.finished == self.components.len()
    }

    /// How many components are done.
    pub fn finished(&self) -> usize {
        self.finished
    }

    /// Takes back a component: none of its kernels counts as done.
    fn undo(&mut self, components: &Components, component: usize) {
        if let Progress::Done(_) = self.components[component] {
            self.finished -= 1;
        }
        self.components[component] = Progress::Waiting(0);
        self.failed[component] = false;
        for kernel in &components.list()[component].kernels {
            self.done[kernel.0] = false;
            self.unheard[kernel.0] = false;
            self.left[kernel.0] = 0;
        }
    }

    /// Devices were lost, and nothing is in flight: takes back what they had not
    /// finished, and what they alone had of which somebody is in need. Returns
    /// the components that had been done and must be done again.
    pub fn lose(
        &mut self,
        graph: &TaskGraph,
        components: &Components,
        lost: &[usize],
    ) -> Vec<usize> {
        for device in lost {
            self.there[*device].fill(There::No);
        }
        // What was on its way to another device, and is not there, has failed.
        let coming = |there: &&mut There| matches!(there, There::Coming { .. });
        for there in self.there.iter_mut().flatten().filter(coming) {
            *there = There::No;
        }
        for component in 0..components.len() {
            if matches!(self.components[component], Progress::Running(_)) {
                self.undo(components, component);
            }
        }
        let mut again = Vec::new();
        let mut open: Vec<usize> = (0..components.len())
            .filter(|c| !matches!(self.components[*c], Progress::Done(_)))
            .collect();
        while let Some(component) = open.pop() {
            let kernels = components.list()[component].kernels.iter();
            let needed: Vec<DatumId> = kernels
                .flat_map(|kernel| graph.kernel(*kernel).inputs())
                .collect();
            for datum in needed {
                let Some(maker) = graph.producer(datum).map(|k| components.of(k)) else {
                    continue;
                };
                let done = matches!(self.components[maker], Progress::Done(_));
                if done && maker != component && !self.somewhere(datum) {
                    self.undo(components, maker);
                    again.push(maker);
                    open.push(maker);
                }
            }
        }
        again
    }

    /// Whether the host or a device has a datum.
    fn somewhere(&self, datum: DatumId) -> bool {
        let there = self.there.iter().any(|d| d[datum.0] == There::Here);
        self.host[datum.0] || there
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::GraphBuilder;
    use crate::graph::testbed::{given, step};

    #[test]
    fn what_was_on_its_way_when_a_device_was_lost_is_nowhere() {
        let mut graph = GraphBuilder::default();
        let first = given(&mut graph, "given");
        step(&mut graph, "a", &[first]);
        let graph = graph.build().unwrap();
        let components = Components::by(&graph, |_| ()).unwrap();
        let mut books = Books::new(&graph, &components, 3);
        let event = EventId::fresh();
        books.there[0][first.0] = There::Here;
        books.there[1][first.0] = There::Coming {
            event,
            component: 0,
        };
        books.there[2][first.0] = There::Here;
        books.lose(&graph, &components, &[2]);
        let of = |device: usize| books.there[device][first.0];
        assert_eq!((of(0), of(1), of(2)), (There::Here, There::No, There::No));
    }
}
