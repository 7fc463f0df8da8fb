//! A graph made ready to run: its memory, queues and compiled kernels, kept from
//! run to run.

use std::sync::Arc;

use super::command_graphs::KnownGraph;
use super::command_plan::CommandPlan;
use super::outcome::GraphLoss;
use super::run::windowed;
use super::storage::{Storage, layout};
use super::{GraphRunError, Options};
use crate::codelet::{Codelet, Value, copy, rows, zeros};
use crate::machine::{Device, DeviceKind, RuntimeKind};
use crate::membership::Membership;
use crate::policy::Policy;
use crate::runtime::{DeviceId, Launch, QueueId, QueueKind, Runtime, RuntimeError};
use pdawl_core::graph::{
    Argument, Components, DatumId, HostSpaceId, KernelId, TaskGraph, bottom_levels,
};

/// A device, as long as a graph is ready on it.
pub(super) struct DeviceState {
    pub name: String,
    /// Whether it computes in host memory.
    pub shares: bool,
    /// Its queues of each kind.
    profiled: Vec<QueueId>,
    plain: Vec<QueueId>,
    /// Why it takes part no more, or not at present.
    pub lost: Option<String>,
    pub membership: Membership,
}

/// A kernel's launch on a device, and before it those that write zeros to what
/// the kernel may write only in part.
#[derive(Clone)]
pub(super) struct KernelLaunch {
    pub zeros: Option<Arc<[Arc<Launch>]>>,
    pub kernel: Arc<Launch>,
}

/// A graph made ready to run on the devices of a runtime, as often as wanted and
/// under any policy.
///
/// It belongs to the runtime that it was made with; release it there.
pub struct PreparedGraph {
    pub(super) graph: Arc<TaskGraph>,
    pub(super) components: Arc<Components>,
    /// By kernel, for the order within a component.
    pub(super) ranks: Vec<f64>,
    pub(super) devices: Vec<DeviceState>,
    pub(super) storage: Storage,
    pub(super) copying: Arc<Codelet>,
    pub(super) copying_rows: Arc<Codelet>,
    zeroing: Arc<Codelet>,
    /// Whether it has run.
    pub(super) has_run: bool,
    /// Whether it grows while it runs, so that memory is made when a component begins.
    pub(super) grows: bool,
    /// By device and component: the latest command plan.
    pub(super) command_plans: Vec<Vec<Option<Arc<CommandPlan>>>>,
    /// By device and component, unless the graph grows: its launches when it ran last.
    pub(super) known_graphs: Vec<Vec<Option<KnownGraph>>>,
    /// By device and kernel, once its memory exists.
    pub(super) launches: Vec<Vec<Option<KernelLaunch>>>,
    /// Devices that were found lost while nothing ran; the next run reports them.
    pub(super) losses: Vec<GraphLoss>,
}

impl PreparedGraph {
    /// Takes a graph; [`PreparedGraph::prepare`] makes its memory. Kernels within
    /// a component are ranked by their cost.
    ///
    /// # Errors
    /// [`GraphRunError::NoDevice`].
    pub fn new(
        runtime: &dyn Runtime,
        graph: Arc<TaskGraph>,
        components: Arc<Components>,
    ) -> Result<Self, GraphRunError> {
        let devices = runtime.devices();
        if devices.is_empty() {
            return Err(GraphRunError::NoDevice);
        }
        let state = |(id, device): (usize, &Device)| DeviceState {
            name: device.name.clone(),
            shares: device.shares_host_memory,
            profiled: Vec::new(),
            plain: Vec::new(),
            lost: None,
            membership: Membership::begin(runtime, DeviceId(id)),
        };
        let cost = |kernel| {
            let cost = graph.kernel(kernel).cost;
            cost.flops + cost.bytes
        };
        Ok(Self {
            ranks: bottom_levels(&graph, cost, |_| 0.0),
            devices: devices.iter().enumerate().map(state).collect(),
            storage: Storage::new(&graph, &components, devices),
            copying: Arc::new(copy::codelet()),
            copying_rows: Arc::new(rows::codelet()),
            zeroing: Arc::new(zeros::codelet()),
            command_plans: vec![vec![None; components.len()]; devices.len()],
            known_graphs: (devices.iter())
                .map(|_| components.list().iter().map(|_| None).collect())
                .collect(),
            launches: vec![vec![None; graph.kernels().len()]; devices.len()],
            losses: Vec::new(),
            has_run: false,
            grows: false,
            graph,
            components,
        })
    }

    /// Makes all memory, queues and kernels that a policy may need with these
    /// options. A run does so itself, but then it is part of the run's time. A
    /// device that turns out to be lost is left out, and so is one that cannot run a kernel if
    /// others are left; the policy is told.
    ///
    /// # Errors
    /// When memory does not fit, or a kernel does not compile.
    pub fn prepare(
        &mut self,
        runtime: &mut dyn Runtime,
        policy: &mut dyn Policy,
        options: &Options,
    ) -> Result<(), GraphRunError> {
        if self.grows {
            return Ok(());
        }
        self.storage.ensure_given(runtime, &self.graph)?;
        let mut device = 0;
        while device < self.devices.len() {
            match self.prepare_device(runtime, policy, options, device) {
                Ok(()) => device += 1,
                Err(GraphRunError::Runtime(error)) => {
                    let Some(why) = self.leaves_out(&error, device) else {
                        return Err(error.into());
                    };
                    self.lose(runtime, policy, device, why, Vec::new());
                    // Its components may go to devices that were ready before.
                    device = 0;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Why a run goes on without a device after an error of it; `None` if it does not.
    pub(super) fn leaves_out(&self, error: &RuntimeError, device: usize) -> Option<String> {
        let is_lost = matches!(error, RuntimeError::DeviceLost { .. });
        let mut others = self.devices.iter().enumerate();
        let is_left = others.any(|(other, state)| other != device && state.lost.is_none());
        let (_, why) = error.leaves_out().filter(|_| is_lost || is_left)?;
        Some(why)
    }

    /// Notes which devices were lost since the last run, which are still, and which are
    /// back. Nothing runs.
    pub(super) fn muster(&mut self, runtime: &mut dyn Runtime, policy: &mut dyn Policy) {
        for device in 0..self.devices.len() {
            let state = &self.devices[device];
            match (&state.lost, state.membership.ended(runtime)) {
                (None, Some(why)) => {
                    self.storage.residency.lose(&[device]);
                    self.lose(runtime, policy, device, why.to_owned(), Vec::new());
                }
                // This run's policy may not know.
                (Some(_), _) => policy.lost(device),
                (None, None) => {}
            }
        }
        self.readmit(runtime, policy);
    }

    /// A device is lost. It has no data any more.
    pub(super) fn lose(
        &mut self,
        runtime: &mut dyn Runtime,
        policy: &mut dyn Policy,
        device: usize,
        why: String,
        repeated: Vec<usize>,
    ) {
        let state = &mut self.devices[device];
        state.lost = Some(why.clone());
        for queue in state.profiled.drain(..).chain(state.plain.drain(..)) {
            runtime.free_queue(queue);
        }
        if let Some(space) = self.storage.residency.space_mut(device) {
            for buffer in space.take_all() {
                runtime.free(buffer);
            }
        }
        self.losses.push(GraphLoss {
            device,
            why,
            repeated,
            back: false,
        });
        policy.lost(device);
    }

    /// Lost devices that are back take part again.
    pub(super) fn readmit(&mut self, runtime: &dyn Runtime, policy: &mut dyn Policy) {
        for (device, state) in self.devices.iter_mut().enumerate() {
            if state.lost.is_some() && state.membership.renew(runtime) {
                state.lost = None;
                policy.returned(device);
                let mut losses = self.losses.iter_mut().rev();
                if let Some(loss) = losses.find(|loss| loss.device == device) {
                    loss.back = true;
                }
            }
        }
    }

    fn prepare_device(
        &mut self,
        runtime: &mut dyn Runtime,
        policy: &dyn Policy,
        options: &Options,
        device: usize,
    ) -> Result<(), GraphRunError> {
        let own: Vec<usize> = self.components_of(policy, device).collect();
        if own.is_empty() {
            return Ok(());
        }
        let (graph, components) = (&self.graph, &self.components);
        let shares = self.devices[device].shares;
        for component in &own {
            self.check_room(device, *component)?;
            (self.storage).ensure(runtime, graph, components, *component, shares)?;
        }
        for queue in self.queues(runtime, device, options, windowed(policy))? {
            self.load(runtime, queue, &own)?;
        }
        if windowed(policy) {
            self.allocate(runtime, device)?;
        }
        Ok(())
    }

    /// Allocates as many buffers as the given data have, as far as a device has room. Drivers
    /// wait for what the device computes while they allocate. What kernels make takes the
    /// places of data that nobody needs any more.
    fn allocate(&mut self, runtime: &mut dyn Runtime, device: usize) -> Result<(), GraphRunError> {
        let given = |datum: &DatumId| self.graph.datum(*datum).contents.is_some();
        let given = self.graph.datum_ids().filter(given);
        let residency = &self.storage.residency;
        let slots: Vec<usize> = given.map(|datum| residency.slot(datum.0)).collect();
        let Some(space) = self.storage.residency.space_mut(device) else {
            return Ok(());
        };
        for bytes in space.lacking(slots.into_iter()) {
            match runtime.alloc(DeviceId(device), bytes) {
                Ok(buffer) => space.add(bytes, buffer),
                // What there is suffices for some, or the run says that it does not.
                Err(RuntimeError::OutOfMemory { .. }) => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Bytes of a device's own memory that suffice to run any component there.
    pub fn least_memory(&self) -> u64 {
        let all = 0..self.components.len();
        let needed = |component| self.storage.needed(&self.graph, component);
        all.map(needed).max().unwrap_or(0)
    }

    /// Uses at most so many bytes of each device's own memory.
    pub fn limit_memory(&mut self, bytes: u64) {
        for device in 0..self.devices.len() {
            if let Some(space) = self.storage.residency.space_mut(device) {
                space.set_capacity(bytes.min(space.capacity()));
            }
        }
    }

    /// Refuses a component whose data a device's memory cannot hold at once.
    pub(super) fn check_room(&self, device: usize, component: usize) -> Result<(), GraphRunError> {
        let Some(space) = self.storage.residency.space(device) else {
            return Ok(());
        };
        let needed = self.storage.needed(&self.graph, component);
        if needed <= space.capacity() {
            return Ok(());
        }
        Err(GraphRunError::Memory {
            device: self.devices[device].name.clone(),
            component,
            kernels: self.kernel_names(component),
            needed,
            has: space.capacity(),
        })
    }

    /// The names of a component's kernels.
    pub(super) fn kernel_names(&self, component: usize) -> String {
        let kernels = self.components.list()[component].kernels.iter();
        let names: Vec<String> = kernels
            .map(|kernel| format!("`{}`", self.graph.kernel(*kernel).name))
            .collect();
        names.join(", ")
    }

    /// The components that the policy may give to a device; none to a lost one.
    fn components_of(&self, policy: &dyn Policy, device: usize) -> impl Iterator<Item = usize> {
        let left = self.devices[device].lost.is_none();
        let all = 0..self.components.len();
        all.filter(move |component| left && policy.may_run(*component, device))
    }

    /// Compiles the kernels of components for a queue.
    fn load(
        &self,
        runtime: &mut dyn Runtime,
        queue: QueueId,
        components: &[usize],
    ) -> Result<(), RuntimeError> {
        let mut loaded: Vec<*const Codelet> = Vec::new();
        for component in components {
            for kernel in &self.components.list()[*component].kernels {
                let kernel = self.graph.kernel(*kernel);
                let zeroing = kernel.partial_outputs().next().map(|_| &self.zeroing);
                for codelet in zeroing.into_iter().chain([&kernel.codelet]) {
                    if !loaded.contains(&Arc::as_ptr(codelet)) {
                        loaded.push(Arc::as_ptr(codelet));
                        runtime.load(queue, codelet)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// By device: the queues that a run uses; none where the policy may run
    /// nothing.
    pub(super) fn run_queues(
        &mut self,
        runtime: &mut dyn Runtime,
        policy: &dyn Policy,
        options: &Options,
    ) -> Result<Vec<Vec<QueueId>>, RuntimeError> {
        (0..self.devices.len())
            .map(|device| {
                let has_data = (0..self.graph.data().len())
                    .any(|slot| self.storage.residency.version(device, slot).is_some());
                let is_there = self.devices[device].lost.is_none();
                let is_used = self.grows || has_data;
                // Others fetch what it made before a device with its components came back.
                match self.components_of(policy, device).next().is_some() || is_there && is_used {
                    true => self.queues(runtime, device, options, windowed(policy)),
                    false => Ok(Vec::new()),
                }
            })
            .collect()
    }

    /// The queues of a device for a run with these options.
    fn queues(
        &mut self,
        runtime: &mut dyn Runtime,
        device: usize,
        options: &Options,
        windowed: bool,
    ) -> Result<Vec<QueueId>, RuntimeError> {
        // A window's loads, stores and copies from other devices have their own queues.
        let wanted = options.of(device).0 + if windowed { 3 } else { 0 };
        let state = &mut self.devices[device];
        let (open, kind) = match options.trace {
            true => (&mut state.profiled, QueueKind::Profiled),
            false => (&mut state.plain, QueueKind::Plain),
        };
        while open.len() < wanted {
            let device = DeviceId(device);
            open.push(runtime.open_queue(device, kind)?);
        }
        Ok(open[..wanted].to_vec())
    }

    /// A kernel's launch on a device, the same in every run as long as its data stay in
    /// their buffers.
    pub(super) fn launch(
        &mut self,
        kernel: KernelId,
        device: usize,
    ) -> Result<KernelLaunch, RuntimeError> {
        let what = self.graph.kernel(kernel);
        let shares = self.devices[device].shares;
        if let Some(launch) = &self.launches[device][kernel.0] {
            let memory = |datum| self.storage.memory(&self.graph, datum, device, shares).ok();
            if what
                .memories()
                .map(memory)
                .eq(launch.kernel.memories().map(Some))
            {
                return Ok(launch.clone());
            }
        }
        let memory = |datum: DatumId| self.storage.memory(&self.graph, datum, device, shares);
        let args = what.arguments.iter().map(|argument| {
            Ok(match argument {
                Argument::Value(value) => *value,
                Argument::First {
                    of,
                    number,
                    row,
                    column,
                } => {
                    let (first, pitch) = layout(&self.graph, *of, shares);
                    Value::U64((first + row * pitch) / u64::from(*number) + column)
                }
                Argument::Stride { of, number } => {
                    let (_, pitch) = layout(&self.graph, *of, shares);
                    Value::U32((pitch / u64::from(*number)) as u32)
                }
                Argument::Input(datum) => Value::ReadOnly(memory(*datum)?),
                Argument::Again(datum) if what.outputs().all(|made| made != *datum) => {
                    Value::ReadOnly(memory(*datum)?)
                }
                Argument::Output(datum)
                | Argument::FullOutput(datum)
                | Argument::Again(datum)
                | Argument::InOut { to: datum, .. } => Value::Memory(memory(*datum)?),
            })
        });
        let zeros = what.partial_outputs().map(|datum| {
            let bytes = self.graph.datum(datum).bytes;
            Ok(Arc::new(Launch {
                codelet: Arc::clone(&self.zeroing),
                units: 0..zeros::units(bytes),
                args: zeros::args(memory(datum)?, bytes),
                cost: zeros::cost(bytes),
            }))
        });
        let zeros: Arc<[_]> = zeros.collect::<Result<_, RuntimeError>>()?;
        let launch = KernelLaunch {
            zeros: (!zeros.is_empty()).then_some(zeros),
            kernel: Arc::new(Launch {
                codelet: Arc::clone(&what.codelet),
                units: what.units.clone(),
                args: args.collect::<Result<_, RuntimeError>>()?,
                cost: what.cost,
            }),
        };
        self.launches[device][kernel.0] = Some(launch.clone());
        Ok(launch)
    }

    /// The graph.
    pub fn graph(&self) -> &TaskGraph {
        &self.graph
    }

    /// Its components.
    pub fn components(&self) -> &Components {
        &self.components
    }

    /// Bytes of a device's own memory that it has.
    pub fn device_bytes(&self, device: usize) -> u64 {
        let space = self.storage.residency.space(device);
        space.map_or(0, |space| space.allocated())
    }

    /// The contents of a wanted datum after a run that was not interrupted, or of
    /// a given one at any time.
    ///
    /// # Errors
    /// [`RuntimeError::Unknown`] for a datum that never was in host memory, and
    /// [`RuntimeError::NoData`] in a simulation without data.
    pub fn bytes<'r>(
        &self,
        runtime: &'r mut dyn Runtime,
        datum: DatumId,
    ) -> Result<&'r [u8], RuntimeError> {
        let length = self.graph.datum(datum).bytes as usize;
        let memory = self.storage.host(&self.graph, datum)?;
        runtime.host_bytes(memory).map(|bytes| &bytes[..length])
    }

    /// The bytes of a space after a run that was not interrupted.
    ///
    /// # Errors
    /// As [`Self::bytes`].
    pub fn space_bytes<'r>(
        &self,
        runtime: &'r mut dyn Runtime,
        space: HostSpaceId,
    ) -> Result<&'r [u8], RuntimeError> {
        let length = self.graph.space(space).bytes() as usize;
        let memory = self.storage.space(space)?;
        runtime.host_bytes(memory).map(|bytes| &bytes[..length])
    }

    /// Closes all queues. A queue of which a command failed runs no other, and what
    /// waited for that on other devices has failed, too.
    pub(super) fn close_queues(&mut self, runtime: &mut dyn Runtime) {
        for device in &mut self.devices {
            for queue in device.profiled.drain(..).chain(device.plain.drain(..)) {
                runtime.free_queue(queue);
            }
        }
    }

    /// Gives memory and queues back.
    pub fn release(mut self, runtime: &mut dyn Runtime) {
        self.close_queues(runtime);
        self.storage.release(runtime, self.devices.len());
    }
}

/// By device: whether it has an implementation of a codelet.
pub fn abilities_of(codelet: &Codelet, devices: &[Device]) -> Vec<bool> {
    devices.iter().map(|device| able(device, codelet)).collect()
}

/// Whether a device has an implementation of a codelet.
pub fn able(device: &Device, codelet: &Codelet) -> bool {
    match (device.runtime, device.kind) {
        (RuntimeKind::Host, _) | (RuntimeKind::Sim, DeviceKind::Cpu) => codelet.host.is_some(),
        (RuntimeKind::Opencl | RuntimeKind::Cuda | RuntimeKind::Sim, _) => {
            (codelet.opencl.as_ref()).is_some_and(|kernel| device.fp64 || !kernel.fp64)
        }
    }
}

/// By component and device: whether the device has an implementation of every
/// kernel.
pub fn abilities(graph: &TaskGraph, components: &Components, devices: &[Device]) -> Vec<Vec<bool>> {
    let all = |kernels: &[KernelId], device: &Device| {
        let mut codelets = kernels.iter().map(|kernel| &graph.kernel(*kernel).codelet);
        codelets.all(|codelet| able(device, codelet))
    };
    (components.list().iter())
        .map(|c| {
            devices
                .iter()
                .map(|device| all(&c.kernels, device))
                .collect()
        })
        .collect()
}
