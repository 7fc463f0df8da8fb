//! An open graph: kernels and data arrive, kernels are revoked and data are forgotten while
//! others run. Results stay where they are until somebody needs them.
//!
//! Its caller waits for completions and hands them on, so that it can wait for other things,
//! too. Kernels read data that exist or that the kernels before them make. A device that is
//! lost costs what only it had: the kernels that made it run again, as long as their own
//! inputs exist.

use std::collections::HashMap;
use std::sync::Arc;

use super::problem::links;
use super::run::{GraphRun, Known};
use super::state::{ComponentState, RunState};
use super::{GraphRunError, Options, PreparedGraph};
use crate::codelet::HostMemoryId;
use crate::policy::{Growing, NamedPolicy, Policy, PolicyOptions, Task};
use crate::residency::State;
use crate::runtime::{CommandKind, Completion, Runtime, RuntimeError};
use crate::time::Nanos;
use pdawl_core::graph::{Components, Datum, DatumId, Kernel, KernelId, TaskGraph};

/// A kernel that has ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ended {
    pub kernel: KernelId,
    /// Index of the device.
    pub device: usize,
    /// Seconds that it took on the device.
    pub seconds: f64,
}

/// What happened in a turn.
#[derive(Debug, Default)]
pub struct Turned {
    pub ended: Vec<Ended>,
    /// Kernels that no device can run that is left. They will not run.
    pub unplaced: Vec<KernelId>,
    /// Of a graph with a trace.
    pub commands: Vec<TimedCommand>,
}

/// A command that has ended well.
#[derive(Clone, Copy, Debug)]
pub struct TimedCommand {
    /// The kernel for which it was.
    pub kernel: KernelId,
    pub device: usize,
    pub queue: usize,
    pub kind: CommandKind,
    pub bytes: u64,
    pub queued: Nanos,
    pub started: Nanos,
    pub ended: Nanos,
}

/// A graph to which kernels and data are added as they arrive.
pub struct OpenGraph {
    prepared: PreparedGraph,
    policy: Growing,
    options: Options,
    run: Known,
    /// Data that the host wants and has not.
    wanted: Vec<DatumId>,
    /// Data that are forgotten as soon as nothing uses them.
    leaving: Vec<DatumId>,
}

impl OpenGraph {
    /// An open graph without kernels. With a trace, each command is timed. `lost` says of
    /// each device whether it takes no part; of those without an entry all do.
    ///
    /// # Errors
    /// What the runtime refuses, and a runtime without devices.
    pub fn new(
        runtime: &mut dyn Runtime,
        policy: NamedPolicy,
        of_policy: PolicyOptions,
        (trace, lost): (bool, &[bool]),
    ) -> Result<Self, GraphRunError> {
        let (graph, components) = (Arc::new(TaskGraph::empty()), Arc::new(Components::none()));
        let mut prepared = PreparedGraph::new(runtime, graph, components)?;
        prepared.grows = true;
        let lost = || (0..lost.len()).filter(|device| lost[*device]);
        for device in lost() {
            prepared.devices[device].lost = Some("it was lost before".to_owned());
        }
        let (devices, links) = links(runtime);
        let mut policy = Growing::new(policy, of_policy, devices, links);
        let options = Options {
            trace,
            trial: true,
            ..Options::queues(vec![1; runtime.devices().len()])
        };
        let run = GraphRun::open(runtime, &mut prepared, &mut policy, &options)?.known;
        lost().for_each(|device| policy.lost(device));
        Ok(Self {
            prepared,
            policy,
            options,
            run,
            wanted: Vec::new(),
            leaving: Vec::new(),
        })
    }

    /// Uses at most so many bytes of each device's own memory.
    pub fn limit_memory(&mut self, bytes: u64) {
        self.prepared.limit_memory(bytes);
    }

    /// Whether a device could have data of so many bytes all at once.
    pub fn has_room(&self, device: usize, bytes: u64) -> bool {
        let space = self.prepared.storage.residency.space(device);
        space.is_none_or(|space| bytes <= space.capacity())
    }

    fn graph_mut(&mut self) -> &mut TaskGraph {
        Arc::make_mut(&mut self.prepared.graph)
    }

    /// Adds a datum from outside, a view, or what the next kernel makes. It is kept until it
    /// is [forgotten](Self::forget).
    pub fn datum(&mut self, datum: Datum) -> DatumId {
        self.graph_mut().grow(datum)
    }

    /// Adds what the next kernel makes in place of a view, or of a datum from outside that
    /// nothing else reads. It is kept until it is [forgotten](Self::forget).
    pub fn version(&mut self, of: DatumId, datum: Datum) -> DatumId {
        self.graph_mut().grow_version(of, datum)
    }

    /// Adds a kernel, which reads only data that exist or that the kernels before it make.
    /// `seconds` are those that it is expected to take, by device; `None` where it cannot run.
    ///
    /// # Errors
    /// A kernel whose data no device has room for.
    pub fn kernel(
        &mut self,
        kernel: Kernel,
        seconds: Vec<Option<f64>>,
    ) -> Result<KernelId, GraphRunError> {
        let id = self.graph_mut().grow_kernel(kernel);
        self.grow();
        let component = self.prepared.components.of(id);
        let mut can = seconds;
        let mut refused = None;
        for (device, seconds) in can.iter_mut().enumerate() {
            if let Err(error) = self.prepared.check_room(device, component) {
                *seconds = None;
                refused = Some(error);
            }
        }
        if let (Some(error), true) = (refused, can.iter().all(Option::is_none)) {
            return Err(error);
        }
        let graph = &self.prepared.graph;
        let slots = |data: &mut dyn Iterator<Item = DatumId>| {
            let mut all: Vec<usize> = data.map(|datum| graph.first_version(datum).0).collect();
            all.sort_unstable();
            all.dedup();
            all
        };
        let what = graph.kernel(id);
        self.policy.task(Task {
            inputs: slots(&mut what.inputs()),
            outputs: slots(&mut what.outputs()),
            weight: 1.0,
            seconds: can,
            prefers: what.prefers,
            ..Task::default()
        });
        Ok(id)
    }

    /// Makes room for what the graph has got.
    fn grow(&mut self) {
        let prepared = &mut self.prepared;
        let before = prepared.storage.held.len();
        Arc::make_mut(&mut prepared.components).grow(&prepared.graph, 0);
        (prepared.storage).grow(&prepared.graph, &prepared.components);
        for datum in before..prepared.graph.data().len() {
            prepared.storage.held[datum] = true;
            self.policy.datum(prepared.graph.data()[datum].bytes);
        }
        let kernels = prepared.graph.kernels().len();
        prepared.ranks.resize(kernels, 0.0);
        for (plans, launches) in (prepared.command_plans.iter_mut()).zip(&mut prepared.launches) {
            plans.resize(prepared.components.len(), None);
            launches.resize(kernels, None);
        }
        for reported in &mut self.run.reported {
            reported.resize(prepared.graph.data().len(), false);
        }
    }

    /// Takes a kernel back that no device has, and forgets what it would have made. False if
    /// a device has it.
    pub fn revoke(&mut self, kernel: KernelId) -> bool {
        let component = self.prepared.components.of(kernel);
        if component >= self.run.state.components.len() {
            let (graph, components) = (&self.prepared.graph, &self.prepared.components);
            let ready = self.run.state.grow(graph, components);
            self.run.ready.extend(ready);
        }
        let is_revoked = (self.run.state).revoke(&self.prepared.components, component);
        if is_revoked {
            self.run.ready.retain(|other| *other != component);
            self.policy.revoke(component);
            let outputs: Vec<DatumId> = self.prepared.graph.kernel(kernel).outputs().collect();
            for datum in outputs {
                self.forget(datum);
            }
        }
        is_revoked
    }

    /// The host memory of a datum that comes from outside, to be written before it is
    /// [given](Self::given).
    ///
    /// # Errors
    /// What the runtime refuses.
    pub fn host_memory(
        &mut self,
        runtime: &mut dyn Runtime,
        datum: DatumId,
    ) -> Result<HostMemoryId, RuntimeError> {
        self.grow();
        let graph = Arc::clone(&self.prepared.graph);
        self.prepared.storage.ensure_host(runtime, &graph, datum)
    }

    /// A datum from outside is in its host memory.
    pub fn given(&mut self, datum: DatumId) {
        self.grow();
        self.prepared.storage.residency.set_in_host(datum.0, true);
    }

    /// The host will need a datum. True if that is news, so that a turn is needed.
    pub fn want(&mut self, datum: DatumId) -> bool {
        let is_new = !self.in_host(datum) && !self.wanted.contains(&datum);
        if is_new {
            self.wanted.push(datum);
        }
        is_new
    }

    /// Whether host memory has a datum.
    pub fn in_host(&self, datum: DatumId) -> bool {
        let residency = &self.prepared.storage.residency;
        datum.0 < self.prepared.storage.held.len() && residency.in_host(datum.0)
    }

    /// The bytes of a datum that host memory has.
    ///
    /// # Errors
    /// [`RuntimeError::Unknown`] for one that it has not, and [`RuntimeError::NoData`] in a
    /// simulation without data.
    pub fn bytes<'r>(
        &self,
        runtime: &'r mut dyn Runtime,
        datum: DatumId,
    ) -> Result<&'r [u8], RuntimeError> {
        let what = self.prepared.graph.datum(datum);
        let used = what.used.clone().unwrap_or(0..what.bytes);
        let memory = self.prepared.storage.host(&self.prepared.graph, datum)?;
        runtime.host_read(memory, used)
    }

    /// No kernel that has not arrived will read a datum, and the host does not need it.
    pub fn forget(&mut self, datum: DatumId) {
        self.wanted.retain(|other| *other != datum);
        if std::mem::replace(&mut self.prepared.storage.held[datum.0], false) {
            self.leaving.push(datum);
        }
    }

    /// Whether no command is in flight.
    pub fn is_quiet(&self) -> bool {
        self.run.in_flight.is_empty()
    }

    /// Whether all is done: no command is in flight, and none will follow.
    pub fn is_idle(&self) -> bool {
        let (known, all) = (self.run.state.components.len(), self.kernels());
        self.is_quiet() && known == all && self.run.state.complete() && self.wanted.is_empty()
    }

    /// Takes completions in, and gives the devices what they can do now.
    ///
    /// # Errors
    /// What the runtime refuses, and the loss of data that nobody makes again.
    pub fn turn(
        &mut self,
        runtime: &mut dyn Runtime,
        completions: impl IntoIterator<Item = Completion>,
    ) -> Result<Turned, GraphRunError> {
        self.grow();
        let known = std::mem::take(&mut self.run);
        let policy: &mut dyn Policy = &mut self.policy;
        let parts = (&mut self.prepared, policy, &self.options);
        let mut run = GraphRun::on(runtime, parts, known);
        let mut ready = std::mem::take(&mut run.known.ready);
        ready.extend(run.known.state.grow(&run.graph, &run.components));
        run.tell_ready(ready);
        for completion in completions {
            run.completed(completion);
        }
        let turned = run.advance(&mut self.wanted);
        run.reap(&mut self.leaving);
        let seconds = |ended: &super::Placement| (ended.ended - ended.started).max(0.0);
        let ended = run.known.placements.drain(..).map(|placement| Ended {
            kernel: run.components.list()[placement.component].kernels[0],
            device: placement.device,
            seconds: seconds(&placement),
        });
        let ended = ended.collect();
        let commands = std::mem::take(&mut run.known.commands);
        self.run = run.known;
        Ok(Turned {
            ended,
            unplaced: turned?,
            commands,
        })
    }

    /// The devices that were lost since the last call, and why.
    pub fn take_losses(&mut self) -> Vec<(usize, String)> {
        let losses = std::mem::take(&mut self.prepared.losses).into_iter();
        losses.map(|loss| (loss.device, loss.why)).collect()
    }

    /// How many kernels it has, those that are done among them.
    pub fn kernels(&self) -> usize {
        self.prepared.graph.kernels().len()
    }

    /// Forgets all kernels, which are done, all views, and all data that were forgotten.
    /// Nothing is in flight. Returns the new ids of the data that are left.
    ///
    /// # Panics
    /// When it is not [idle](Self::is_idle).
    pub fn compact(&mut self, runtime: &mut dyn Runtime) -> HashMap<DatumId, DatumId> {
        assert!(self.is_idle(), "nothing is in flight");
        self.grow();
        let prepared = &mut self.prepared;
        let graph = Arc::clone(&prepared.graph);
        let is_kept = |datum: &DatumId| {
            prepared.storage.held[datum.0] && graph.datum(*datum).pieces.is_empty()
        };
        let kept: Vec<DatumId> = graph.datum_ids().filter(is_kept).collect();
        let mut fresh = TaskGraph::empty();
        let mut ids = HashMap::with_capacity(kept.len());
        for datum in &kept {
            ids.insert(*datum, fresh.grow(graph.datum(*datum).clone()));
        }
        prepared.storage.keep(runtime, &graph, &kept);
        prepared.graph = Arc::new(fresh);
        prepared.components = Arc::new(Components::none());
        prepared.ranks.clear();
        prepared.command_plans.iter_mut().for_each(Vec::clear);
        prepared.launches.iter_mut().for_each(Vec::clear);
        self.policy
            .keep(&kept.iter().map(|datum| datum.0).collect::<Vec<_>>());
        self.leaving.clear();
        self.run.state = RunState::new(&prepared.graph, &prepared.components);
        for reported in &mut self.run.reported {
            *reported = kept.iter().map(|datum| reported[datum.0]).collect();
        }
        ids
    }

    /// Gives memory and queues back.
    pub fn release(self, runtime: &mut dyn Runtime) {
        self.prepared.release(runtime);
    }
}

impl GraphRun<'_> {
    /// Gives the devices what they can do now, and handles losses. Returns the kernels that
    /// no device can run any more.
    fn advance(&mut self, wanted: &mut Vec<DatumId>) -> Result<Vec<KernelId>, GraphRunError> {
        let mut unplaced = Vec::new();
        self.find_changes();
        loop {
            if self.nothing_failed() {
                self.dispatch_ready();
            }
            if self.nothing_failed()
                && let Err(error) = self.store_all(wanted)
            {
                self.refused(error);
            }
            if !self.known.in_flight.is_empty() || self.nothing_failed() {
                break;
            }
            if let Some(error) = self.known.error.take() {
                self.finish_queues();
                return Err(error.into());
            }
            self.regroup()?;
            unplaced.extend(self.give_up_unplaceable());
            self.check_whole()?;
        }
        // Nothing would go on by itself.
        match self.known.in_flight.is_empty() && !self.known.state.complete() {
            true => Err(self.lacking_room().unwrap_or_else(|| self.stuck())),
            false => Ok(unplaced),
        }
    }

    /// Revokes the kernels that no device can run that is left.
    fn give_up_unplaceable(&mut self) -> Vec<KernelId> {
        let devices = &self.prepared.devices;
        let has_device = |component: usize| {
            let mut left = (0..devices.len()).filter(|device| devices[*device].lost.is_none());
            left.any(|device| self.policy.may_run(component, device))
        };
        let components = 0..self.known.state.components.len();
        let given_up: Vec<usize> = components
            .filter(|c| !self.known.state.components[*c].state.is_over() && !has_device(*c))
            .collect();
        let mut kernels = Vec::new();
        for component in given_up {
            self.known.state.revoke(&self.components, component);
            kernels.extend(&self.components.list()[component].kernels);
        }
        kernels
    }

    /// Refuses to go on where data are gone that are needed and that nobody makes again.
    fn check_whole(&self) -> Result<(), GraphRunError> {
        let (graph, storage) = (&self.graph, &self.prepared.storage);
        let is_revoked = |kernel| {
            let run = &self.known.state.components[self.components.of(kernel)];
            run.state == ComponentState::Revoked
        };
        let gone = graph.datum_ids().find(|datum| {
            let is_view = !graph.datum(*datum).pieces.is_empty();
            let is_made = graph
                .producer(*datum)
                .is_some_and(|maker| !is_revoked(maker));
            let is_needed = storage.held[datum.0] || self.is_to_be_read(*datum);
            !is_view && !is_made && is_needed && !storage.exists(*datum)
        });
        match gone {
            Some(datum) => Err(GraphRunError::Gone(graph.datum(datum).name.to_string())),
            None => Ok(()),
        }
    }

    /// Has data copied to the host that exist, and are not on their way.
    fn store_all(&mut self, wanted: &mut Vec<DatumId>) -> Result<(), RuntimeError> {
        let residency = &self.prepared.storage.residency;
        wanted.retain(|datum| !residency.in_host(datum.0));
        for datum in wanted.iter().copied() {
            let holder = self.prepared.storage.residency.holder(datum.0);
            if let Some(device) = holder.filter(|_| self.storing(datum).is_none()) {
                let maker = self.graph.producer(datum);
                let component = maker.map_or(0, |maker| self.components.of(maker));
                self.store(component, device, datum)?;
            }
        }
        Ok(())
    }

    /// Gives back the memory of data that nothing uses any more.
    fn reap(&mut self, leaving: &mut Vec<DatumId>) {
        let loads = self.known.windows.iter().any(|window| window.loads > 0);
        leaving.retain(|datum| {
            let state = |kernel| self.known.state.components[self.components.of(kernel)].state;
            let maker = self.graph.producer(*datum);
            let is_to_be_made = maker.is_some_and(|kernel| !state(kernel).is_over());
            let is_used =
                is_to_be_made || self.is_to_be_read(*datum) || self.storing(*datum).is_some();
            // Data of a revoked kernel may be on their way.
            let is_revoked = |kernel: &KernelId| state(*kernel) == ComponentState::Revoked;
            if is_used || loads && self.graph.readers(*datum).iter().any(is_revoked) {
                return true;
            }
            let slot = self.prepared.storage.residency.slot(datum.0);
            for device in 0..self.known.windows.len() {
                let residency = &self.prepared.storage.residency;
                if residency.state(device, datum.0) == State::Absent {
                    continue;
                }
                if !self.can_leave(device, slot) {
                    return true;
                }
                self.evict(device, slot);
            }
            // What a kernel made of it in place is in the same memory.
            if self.graph.overwriter(*datum).is_none() {
                self.prepared.storage.free_host(self.runtime, *datum);
            }
            false
        });
    }
}
