//! The state of a run: how far kernels and components are. It decides nothing and
//! calls no device.

use crate::time::Nanos;
use pdawl_core::graph::{Components, DatumId, KernelId, TaskGraph};

/// How far a component is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ComponentState {
    /// It waits for this many kernels of other components.
    Waiting(usize),
    /// The policy knows that it is ready.
    Ready,
    /// This device has it.
    Running(usize),
    Done(usize),
    /// It is not to run.
    Revoked,
}

impl ComponentState {
    /// Whether nothing is to be done for it.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Done(_) | Self::Revoked)
    }
}

/// A component's part of a run.
#[derive(Clone, Debug)]
pub(super) struct ComponentRun {
    pub state: ComponentState,
    /// Commands in flight, and whether one of them failed.
    pub in_flight: u32,
    pub failed: bool,
    /// When it was dispatched, the latest start of a kernel, and the latest end of its
    /// commands.
    pub dispatched: Nanos,
    pub started: Nanos,
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
#[derive(Default)]
pub(super) struct RunState {
    pub components: Vec<ComponentRun>,
    kernels: Vec<KernelRun>,
    /// How many components are done.
    finished: usize,
}

/// A component that nothing has happened to.
const NEW: ComponentRun = ComponentRun {
    state: ComponentState::Waiting(0),
    in_flight: 0,
    failed: false,
    dispatched: 0,
    started: 0,
    ended: 0,
    written: 0,
};

impl RunState {
    /// The state at the begin.
    pub fn new(graph: &TaskGraph, components: &Components) -> Self {
        Self {
            components: vec![NEW; components.len()],
            kernels: vec![KernelRun::default(); graph.kernels().len()],
            finished: 0,
        }
    }

    /// The graph has got components. Returns those of them that wait for nothing.
    pub fn grow(&mut self, graph: &TaskGraph, components: &Components) -> Vec<usize> {
        self.kernels
            .resize(graph.kernels().len(), KernelRun::default());
        let mut ready = Vec::new();
        for component in self.components.len()..components.len() {
            self.components.push(NEW);
            if self.waits_for(graph, components, component) == ComponentState::Ready {
                ready.push(component);
            }
        }
        ready
    }

    /// Counts what a component waits for.
    fn waits_for(
        &mut self,
        graph: &TaskGraph,
        components: &Components,
        index: usize,
    ) -> ComponentState {
        let own = components.list()[index].kernels.iter();
        let mut before: Vec<KernelId> = own
            .flat_map(|kernel| graph.predecessors(*kernel))
            .copied()
            .filter(|kernel| components.of(*kernel) != index && !self.is_done(*kernel))
            .collect();
        before.sort_unstable();
        before.dedup();
        let state = match before.len() {
            0 => ComponentState::Ready,
            waits => ComponentState::Waiting(waits),
        };
        self.components[index].state = state;
        state
    }

    /// A component that no device has is not to run. It counts as done, and so do its
    /// kernels, whose results do not exist. False if a device has it, or it is done.
    pub fn revoke(&mut self, components: &Components, component: usize) -> bool {
        let state = &mut self.components[component].state;
        let is_free = matches!(state, ComponentState::Waiting(_) | ComponentState::Ready);
        if is_free {
            *state = ComponentState::Revoked;
            self.finished += 1;
            for kernel in &components.list()[component].kernels {
                self.kernels[kernel.0].done = true;
            }
        }
        is_free
    }

    /// Counts anew what every component that is not done waits for. Returns the
    /// components that wait for nothing.
    pub fn find_ready(&mut self, graph: &TaskGraph, components: &Components) -> Vec<usize> {
        let mut ready = Vec::new();
        for index in 0..components.len() {
            if !self.components[index].state.is_over()
                && self.waits_for(graph, components, index) == ComponentState::Ready
            {
                ready.push(index);
            }
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

    /// Whether a kernel was launched.
    pub fn was_launched(&self, kernel: KernelId) -> bool {
        let run = &self.kernels[kernel.0];
        run.done || run.without_event || run.commands_left > 0
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
    /// that were running, and those with results that no longer exist and that the
    /// host or another component still needs. A component that runs again makes its
    /// data again where later versions are, if `overwritten` says that a version and
    /// the next one share their host memory; so their makers run again, too. Returns
    /// the components that had ended.
    pub fn lose(
        &mut self,
        graph: &TaskGraph,
        components: &Components,
        wanted: impl Fn(DatumId) -> bool,
        exists: impl Fn(DatumId) -> bool,
        overwritten: impl Fn(DatumId) -> Vec<KernelId>,
    ) -> Vec<usize> {
        for component in 0..components.len() {
            if matches!(self.components[component].state, ComponentState::Running(_)) {
                self.undo(components, component);
            }
        }
        let done =
            |run: &Self, c: usize| matches!(run.components[c].state, ComponentState::Done(_));
        let mut repeated = Vec::new();
        let mut open: Vec<usize> = (0..components.len())
            .filter(|c| !self.components[*c].state.is_over())
            .collect();
        let mut repeat = |run: &mut Self, kernel: Option<KernelId>, open: &mut Vec<usize>| {
            let component = kernel.map(|kernel| components.of(kernel));
            if let Some(component) = component.filter(|component| done(run, *component)) {
                run.undo(components, component);
                repeated.push(component);
                open.push(component);
            }
        };
        let lost = |datum: &DatumId| !exists(*datum);
        let wanted = graph.datum_ids().filter(|datum| wanted(*datum));
        for datum in wanted.filter(lost) {
            repeat(self, graph.producer(datum), &mut open);
        }
        while let Some(component) = open.pop() {
            for kernel in &components.list()[component].kernels {
                let kernel = graph.kernel(*kernel);
                for datum in kernel.inputs() {
                    for piece in graph.pieces(&datum).iter().filter(|piece| lost(piece)) {
                        repeat(self, graph.producer(*piece), &mut open);
                    }
                }
                for datum in kernel.outputs() {
                    for later in overwritten(datum) {
                        repeat(self, Some(later), &mut open);
                    }
                }
            }
        }
        repeated
    }
}
