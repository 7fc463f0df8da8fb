//! The state of a run: how far kernels and components are, and where each datum
//! is. It decides nothing and calls no device.

use crate::graph::{Components, DatumId, KernelId, TaskGraph};
use crate::runtime::EventId;
use crate::time::Nanos;

/// Whether a datum is in a device's own memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Residency {
    Absent,
    /// The write of this event, enqueued for this component, has not ended.
    Arriving {
        event: EventId,
        component: usize,
    },
    Present,
}

/// How far a component is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ComponentState {
    /// It waits for this many kernels of other components.
    Waiting(usize),
    /// The policy was told that it is ready.
    Ready,
    /// It was dispatched to this device.
    Running(usize),
    Done(usize),
}

/// A component's part of a run.
#[derive(Clone, Debug)]
pub(super) struct ComponentRun {
    pub state: ComponentState,
    /// Commands in flight, and whether one of them failed.
    pub in_flight: u32,
    pub failed: bool,
    /// When it was dispatched, and the latest end of its commands.
    pub dispatched: Nanos,
    pub ended: Nanos,
    /// Bytes that were written to its device for it.
    pub written: u64,
}

/// A kernel's part of a run.
#[derive(Clone, Default)]
struct KernelRun {
    /// Its commands, the launch and the reads, that have not ended.
    commands_left: u32,
    /// Whether all that other components need of it is done.
    done: bool,
    /// Whether it was launched without an event: it ends with its component.
    without_event: bool,
}

/// The state of a run.
pub(super) struct RunState {
    /// By datum: whether host memory has it.
    pub in_host: Vec<bool>,
    /// By device and datum.
    pub residency: Vec<Vec<Residency>>,
    pub components: Vec<ComponentRun>,
    kernels: Vec<KernelRun>,
    /// How many components are done.
    finished: usize,
}

impl RunState {
    /// The state at the begin: the host has the given data.
    pub fn new(graph: &TaskGraph, components: &Components, devices: usize) -> Self {
        let data = graph.data();
        let component = ComponentRun {
            state: ComponentState::Waiting(0),
            in_flight: 0,
            failed: false,
            dispatched: 0,
            ended: 0,
            written: 0,
        };
        Self {
            in_host: data.iter().map(|datum| datum.contents.is_some()).collect(),
            residency: vec![vec![Residency::Absent; data.len()]; devices],
            components: vec![component; components.len()],
            kernels: vec![KernelRun::default(); graph.kernels().len()],
            finished: 0,
        }
    }

    /// Counts anew what every component that is not done waits for. Returns the
    /// components that wait for nothing.
    pub fn find_ready(&mut self, graph: &TaskGraph, components: &Components) -> Vec<usize> {
        let mut ready = Vec::new();
        for (index, component) in components.list().iter().enumerate() {
            if matches!(self.components[index].state, ComponentState::Done(_)) {
                continue;
            }
            let own = component.kernels.iter();
            let mut before: Vec<KernelId> = own
                .flat_map(|kernel| graph.predecessors(*kernel))
                .copied()
                .filter(|kernel| components.of(*kernel) != index && !self.is_done(*kernel))
                .collect();
            before.sort_unstable();
            before.dedup();
            self.components[index].state = match before.len() {
                0 => {
                    ready.push(index);
                    ComponentState::Ready
                }
                waits => ComponentState::Waiting(waits),
            };
        }
        ready
    }

    /// A command of a kernel, its launch or a read, was submitted with an event.
    pub fn command_submitted(&mut self, kernel: KernelId) {
        self.kernels[kernel.0].commands_left += 1;
    }

    /// A kernel was launched without an event.
    pub fn launched_without_event(&mut self, kernel: KernelId) {
        self.kernels[kernel.0].without_event = true;
    }

    /// A command of a kernel has ended well. Returns the components that became
    /// ready by it.
    pub fn command_ended(
        &mut self,
        graph: &TaskGraph,
        components: &Components,
        kernel: KernelId,
    ) -> Vec<usize> {
        let run = &mut self.kernels[kernel.0];
        run.commands_left = run.commands_left.saturating_sub(1);
        if run.commands_left > 0 || run.done {
            return Vec::new();
        }
        run.done = true;
        let mut seen: Vec<usize> = vec![components.of(kernel)];
        let mut ready = Vec::new();
        for next in graph.successors(kernel) {
            let component = components.of(*next);
            if seen.contains(&component) {
                continue;
            }
            seen.push(component);
            let state = &mut self.components[component].state;
            if let ComponentState::Waiting(waits) = state {
                *waits = waits.saturating_sub(1);
                if *waits == 0 {
                    *state = ComponentState::Ready;
                    ready.push(component);
                }
            }
        }
        ready
    }

    /// Takes the kernels of a component that were launched without an event. They
    /// have ended when the component has.
    pub fn take_without_event(
        &mut self,
        components: &Components,
        component: usize,
    ) -> Vec<KernelId> {
        let kernels = components.list()[component].kernels.iter().copied();
        kernels
            .filter(|kernel| std::mem::take(&mut self.kernels[kernel.0].without_event))
            .collect()
    }

    /// Whether a kernel has done all that others wait for.
    pub fn is_done(&self, kernel: KernelId) -> bool {
        self.kernels[kernel.0].done
    }

    /// A component is done.
    pub fn finish(&mut self, component: usize, device: usize) {
        self.components[component].state = ComponentState::Done(device);
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

    /// Takes a component back: none of its kernels counts as done.
    fn undo(&mut self, components: &Components, component: usize) {
        let run = &mut self.components[component];
        if let ComponentState::Done(_) = run.state {
            self.finished -= 1;
        }
        run.state = ComponentState::Waiting(0);
        run.failed = false;
        for kernel in &components.list()[component].kernels {
            self.kernels[kernel.0] = KernelRun::default();
        }
    }

    /// Devices were lost, and nothing is in flight. Takes back the components
    /// that were running, and those whose results only the lost devices had and
    /// that another component still needs. Returns the latter.
    pub fn lose(
        &mut self,
        graph: &TaskGraph,
        components: &Components,
        lost: &[usize],
    ) -> Vec<usize> {
        for device in lost {
            self.residency[*device].fill(Residency::Absent);
        }
        // A write that should have ended by now has failed.
        for residency in self.residency.iter_mut().flatten() {
            if matches!(residency, Residency::Arriving { .. }) {
                *residency = Residency::Absent;
            }
        }
        for component in 0..components.len() {
            if matches!(self.components[component].state, ComponentState::Running(_)) {
                self.undo(components, component);
            }
        }
        let done =
            |run: &Self, c: usize| matches!(run.components[c].state, ComponentState::Done(_));
        let mut repeated = Vec::new();
        let mut open: Vec<usize> = (0..components.len()).filter(|c| !done(self, *c)).collect();
        while let Some(component) = open.pop() {
            for kernel in &components.list()[component].kernels {
                for datum in graph.kernel(*kernel).inputs() {
                    let Some(maker) = graph.producer(datum).map(|k| components.of(k)) else {
                        continue;
                    };
                    if maker != component && done(self, maker) && !self.exists(datum) {
                        self.undo(components, maker);
                        repeated.push(maker);
                        open.push(maker);
                    }
                }
            }
        }
        repeated
    }

    /// Whether the host or a device has a datum.
    fn exists(&self, datum: DatumId) -> bool {
        let mut devices = self.residency.iter();
        self.in_host[datum.0] || devices.any(|data| data[datum.0] == Residency::Present)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::GraphBuilder;
    use crate::graph::fixtures::{given, step};

    #[test]
    fn data_that_were_arriving_when_a_device_was_lost_are_absent() {
        let mut graph = GraphBuilder::default();
        let first = given(&mut graph, "given");
        step(&mut graph, "a", &[first]);
        let graph = graph.build().unwrap();
        let components = Components::by(&graph, |_| ()).unwrap();
        let mut state = RunState::new(&graph, &components, 3);
        let event = EventId::fresh();
        state.residency[0][first.0] = Residency::Present;
        state.residency[1][first.0] = Residency::Arriving {
            event,
            component: 0,
        };
        state.residency[2][first.0] = Residency::Present;
        state.lose(&graph, &components, &[2]);
        let of = |device: usize| state.residency[device][first.0];
        let expected = (Residency::Present, Residency::Absent, Residency::Absent);
        assert_eq!((of(0), of(1), of(2)), expected);
    }
}
