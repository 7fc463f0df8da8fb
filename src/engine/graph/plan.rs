//! What outlives a run: memory, queues, compiled kernels.

use std::sync::Arc;

use super::score::Score;
use super::storage::Storage;
use super::{GraphRunError, Options};
use crate::codelet::{Codelet, Value, copy};
use crate::graph::{Argument, Components, DatumId, KernelId, TaskGraph, bottom_levels};
use crate::machine::{Device, DeviceKind, RuntimeKind};
use crate::policy::Policy;
use crate::runtime::{DeviceId, Launch, QueueId, Runtime, RuntimeError};

/// A device of a plan.
pub(super) struct Site {
    pub name: String,
    pub shares: bool,
    /// Its queues; with the devices' own times, and without.
    stamped: Vec<QueueId>,
    unstamped: Vec<QueueId>,
    /// Why it takes part no more.
    pub lost: Option<String>,
}

/// A graph made ready to run on the devices of a runtime, as often as wanted
/// and under any policy.
///
/// A plan belongs to the runtime that it was made with; release it there.
pub struct Plan {
    pub(super) graph: Arc<TaskGraph>,
    pub(super) components: Arc<Components>,
    pub(super) ranks: Vec<f64>,
    pub(super) sites: Vec<Site>,
    pub(super) storage: Storage,
    /// By device and datum: what earlier runs left there of the host's data.
    pub(super) resident: Vec<Vec<bool>>,
    pub(super) copying: Arc<Codelet>,
    /// By device and component: what was enqueued last.
    pub(super) scores: Vec<Vec<Option<Arc<Score>>>>,
    /// By device and kernel: its launch, once its memory was there.
    launches: Vec<Vec<Option<Arc<Launch>>>>,
    /// Devices that were found lost while nothing ran, and why.
    pub(super) noticed: Vec<(usize, String)>,
}

impl Plan {
    /// A plan without memory yet; [`Plan::prepare`] makes it. Kernels within a
    /// component are ranked by their cost.
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
        let site = |device: &Device| Site {
            name: device.name.clone(),
            shares: device.shares_host_memory,
            stamped: Vec::new(),
            unstamped: Vec::new(),
            lost: None,
        };
        let cost = |kernel| {
            let cost = graph.kernel(kernel).cost;
            cost.flops + cost.bytes
        };
        Ok(Self {
            ranks: bottom_levels(&graph, cost, |_| 0.0),
            sites: devices.iter().map(site).collect(),
            storage: Storage::new(&graph, &components, devices.len()),
            resident: vec![vec![false; graph.data().len()]; devices.len()],
            copying: Arc::new(copy::codelet()),
            scores: vec![vec![None; components.len()]; devices.len()],
            launches: vec![vec![None; graph.kernels().len()]; devices.len()],
            noticed: Vec::new(),
            graph,
            components,
        })
    }

    /// Makes all memory, queues and kernels that a policy may need with these
    /// options. A run does that by itself, but then it is part of its time. A
    /// device that turns out to be lost is left out, and the policy is told.
    ///
    /// # Errors
    /// When memory does not fit, or a kernel does not compile.
    pub fn prepare(
        &mut self,
        runtime: &mut dyn Runtime,
        policy: &mut dyn Policy,
        options: &Options,
    ) -> Result<(), GraphRunError> {
        self.storage.ensure_given(runtime, &self.graph)?;
        let mut device = 0;
        while device < self.sites.len() {
            match self.prepare_device(runtime, policy, options, device) {
                Ok(()) => device += 1,
                Err(GraphRunError::Runtime(RuntimeError::DeviceLost { why, .. })) => {
                    self.sites[device].lost = Some(why.clone());
                    self.noticed.push((device, why));
                    policy.lost(device);
                    // Its components may go to devices that were ready before.
                    device = 0;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn prepare_device(
        &mut self,
        runtime: &mut dyn Runtime,
        policy: &dyn Policy,
        options: &Options,
        device: usize,
    ) -> Result<(), GraphRunError> {
        let (graph, components) = (&self.graph, &self.components);
        let mine: Vec<usize> = (0..components.len())
            .filter(|component| policy.may_run(*component, device))
            .collect();
        if self.sites[device].lost.is_some() || mine.is_empty() {
            return Ok(());
        }
        let info = &runtime.devices()[device];
        self.storage.check(info, graph, components, &mine, device)?;
        for component in &mine {
            self.storage
                .ensure(runtime, graph, components, *component, device)?;
        }
        for queue in self.queues(runtime, device, options)? {
            self.load(runtime, queue, &mine)?;
        }
        Ok(())
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
                let codelet = &self.graph.kernel(*kernel).codelet;
                if !loaded.contains(&Arc::as_ptr(codelet)) {
                    loaded.push(Arc::as_ptr(codelet));
                    runtime.load(queue, codelet)?;
                }
            }
        }
        Ok(())
    }

    /// The queues of a device that a run with these options uses.
    pub(super) fn queues(
        &mut self,
        runtime: &mut dyn Runtime,
        device: usize,
        options: &Options,
    ) -> Result<Vec<QueueId>, RuntimeError> {
        let (wanted, _) = options.of(device);
        let site = &mut self.sites[device];
        let open = if options.trace {
            &mut site.stamped
        } else {
            &mut site.unstamped
        };
        while open.len() < wanted {
            let device = DeviceId(device);
            open.push(if options.trace {
                runtime.queue(device)?
            } else {
                runtime.queue_without_profiling(device)?
            });
        }
        Ok(open[..wanted].to_vec())
    }

    /// A kernel's launch on a device, the same in every run.
    pub(super) fn launch(
        &mut self,
        kernel: KernelId,
        device: usize,
    ) -> Result<Arc<Launch>, RuntimeError> {
        if let Some(launch) = &self.launches[device][kernel.0] {
            return Ok(Arc::clone(launch));
        }
        let what = self.graph.kernel(kernel);
        let shares = self.sites[device].shares;
        let memory = |datum: DatumId| {
            let memory = self.storage.memory(datum, device, shares)?;
            Ok(Value::Memory(memory))
        };
        let args = what.arguments.iter().map(|argument| match argument {
            Argument::Value(value) => Ok(*value),
            Argument::Input(datum) | Argument::Output(datum) => memory(*datum),
            Argument::InOut { to, .. } => memory(*to),
        });
        let launch = Arc::new(Launch {
            codelet: Arc::clone(&what.codelet),
            units: what.units.clone(),
            args: args.collect::<Result<_, RuntimeError>>()?,
            cost: what.cost,
        });
        self.launches[device][kernel.0] = Some(Arc::clone(&launch));
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

    /// Bytes of a device's own memory that the plan has.
    pub fn device_bytes(&self, device: usize) -> u64 {
        self.storage.bytes(device)
    }

    /// What a wanted datum holds after a run that was not interrupted, or a
    /// given one at any time.
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
        let memory = self.storage.host(datum)?;
        runtime.host_bytes(memory).map(|bytes| &bytes[..length])
    }

    /// Gives memory and queues back.
    pub fn release(self, runtime: &mut dyn Runtime) {
        for site in self.sites {
            for queue in site.stamped.into_iter().chain(site.unstamped) {
                runtime.free_queue(queue);
            }
        }
        self.storage.release(runtime);
    }
}

/// By component and device: whether the device has an implementation of every
/// kernel.
pub fn abilities(graph: &TaskGraph, components: &Components, devices: &[Device]) -> Vec<Vec<bool>> {
    let able = |device: &Device, codelet: &Codelet| match (device.runtime, device.kind) {
        (RuntimeKind::Host, _) | (RuntimeKind::Sim, DeviceKind::Cpu) => codelet.host.is_some(),
        (RuntimeKind::Opencl | RuntimeKind::Sim, _) => {
            let kernel = codelet.opencl.as_ref();
            kernel.is_some_and(|kernel| device.fp64 || !kernel.fp64)
        }
    };
    components
        .list()
        .iter()
        .map(|component| {
            let all = |device: &Device| {
                let mut kernels = component.kernels.iter();
                kernels.all(|kernel| able(device, &graph.kernel(*kernel).codelet))
            };
            devices.iter().map(all).collect()
        })
        .collect()
}
