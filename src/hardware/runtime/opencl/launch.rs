//! Launches kernels on a queue: arguments, sizes, and the visibility of host memory.

use std::collections::HashMap;
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;

use cl3::command_queue::{enqueue_unmap_mem_object, finish};
use cl3::error_codes::CL_INVALID_VALUE;
use cl3::kernel::set_kernel_arg;
use cl3::types::{cl_event, cl_int, cl_kernel, cl_mem};

use super::backend::OpenCl;
use super::device::OpenDevice;
use super::events::{enqueue, list};
use super::handle::{Event, Kernel, Mem};
use super::memory::{ClMemory, View, map};
use super::program::{KernelLimits, Programs};
use super::queue::ClQueue;
use super::queue_program::ProgramNumber;
use crate::codelet::{
    Codelet, HostMemoryId, KernelSource, Memory, NdRange, OpenClKernel, Step, Value,
};
use crate::machine::DeviceKind;
use crate::runtime::driven::{Enqueued, Here, KeepAlive, Memories, Uncovered, Wanted};
use crate::runtime::{Launch, RuntimeError};

/// A queue's kernel objects: one for each kernel, because a kernel's arguments
/// are part of it.
pub(super) type Kernels = HashMap<KernelSource, Loaded>;

/// A kernel, ready to be launched on one device.
pub(super) struct Loaded {
    pub kernel: Kernel,
    pub limits: KernelLimits,
    /// The arguments that are set. From one launch to the next few change.
    args: Vec<Option<Value>>,
    /// The number of its program, where every queue has its own.
    pub number: Option<Arc<ProgramNumber>>,
}

/// A kernel's own event, and the last one that is enqueued with it.
pub(super) type Events = (Arc<Event>, Arc<Event>);

/// A kernel whose arguments are set.
pub(super) struct Ready<'a> {
    pub kernel: cl_kernel,
    pub sizes: &'a NdRange,
    pub local: Option<&'a [usize]>,
    /// Host regions whose views are unmapped before it and mapped after it, so that
    /// host and device see each other's results.
    pub hosts: &'a [HostMemoryId],
}

/// What a command needs beside its queue.
pub(super) struct LaunchEnv<'a> {
    /// The device, and its index.
    pub index: usize,
    pub device: &'a OpenDevice,
    pub programs: &'a mut Programs,
    pub memories: &'a Memories<ClMemory>,
    /// What keeps the resources of kernels that run before a refused one.
    uncovered: &'a mut Uncovered,
}

impl<'a> LaunchEnv<'a> {
    /// A queue, and what its next command needs beside it.
    pub(super) fn of(
        here: &'a mut Here<'_, OpenCl>,
        contexts: &'a mut [Programs],
    ) -> (&'a mut ClQueue, Self) {
        let env = Self {
            index: here.index,
            programs: &mut contexts[here.device.context],
            device: here.device,
            memories: here.memories,
            uncovered: &mut here.queue.uncovered,
        };
        (&mut here.queue.own, env)
    }
}

impl ClQueue {
    /// Enqueues the kernels of a launch.
    pub(super) fn launch(
        &mut self,
        launch: &Launch,
        wanted: Wanted,
        env: &mut LaunchEnv<'_>,
        wait: &[cl_event],
    ) -> Result<Enqueued<Event>, RuntimeError> {
        let device = env.device;
        let kernel = self.load(implementation(&launch.codelet, device)?, env)?;
        let steps = steps(kernel, launch);
        let Some(end) = steps.len().checked_sub(1) else {
            return self.marker(device, wait);
        };
        let hosts = self.open_views(&launch.args, env)?;
        let scratch = kernel.scratch(&launch.args);
        let scratch = scratch.map(|bytes| self.scratch(bytes, env)).transpose()?;
        let mut keep_alive: Vec<KeepAlive> = Vec::new();
        for source in kernel.kernels() {
            keep_alive.extend(self.bind(source, &launch.args, scratch.as_deref(), env)?);
        }
        keep_alive.extend(scratch.map(|scratch| scratch as KeepAlive));
        // A CPU computes in host memory itself, so a map would change nothing.
        let hosts = match device.info.kind {
            DeviceKind::Cpu => Vec::new(),
            _ => hosts,
        };
        let mut all = Enqueued::silently(keep_alive);
        for (i, (source, sizes)) in steps.iter().enumerate() {
            let has_event = wanted.begin && i == 0 || wanted.end && i == end;
            let wait = if i == 0 { wait } else { &[] };
            let events = match self.step(source, sizes, &hosts, (device, has_event, wait)) {
                Ok(events) => events,
                Err(error) => {
                    env.uncovered.keep(all.keep_alive);
                    return Err(error);
                }
            };
            let Some((own, last)) = events else {
                continue;
            };
            if i == 0 {
                all.begin = Some(Arc::clone(&own));
            }
            match i == end {
                true => (all.end, all.last) = (Some(own), Some(last)),
                false => all.keep_alive.push(last),
            }
        }
        Ok(all)
    }

    /// Enqueues one kernel of a launch, whose arguments are set.
    fn step(
        &mut self,
        source: &KernelSource,
        sizes: &NdRange,
        hosts: &[HostMemoryId],
        (device, has_event, wait): (&OpenDevice, bool, &[cl_event]),
    ) -> Result<Option<Events>, RuntimeError> {
        let loaded = &self.kernels[source];
        let local = loaded.limits.local_size(sizes, source, device)?;
        let ready = Ready {
            kernel: loaded.kernel.raw(),
            sizes,
            local: local.as_deref(),
            hosts,
        };
        self.enqueue(&ready, device, has_event, wait)
    }

    /// Memory for the kernels of one launch, which those of the next one use again: the
    /// queue is in order.
    fn scratch(&mut self, bytes: u64, env: &LaunchEnv<'_>) -> Result<Arc<Mem>, RuntimeError> {
        if let Some((has, mem)) = &self.scratch
            && *has >= bytes
        {
            return Ok(Arc::clone(mem));
        }
        let mem = Arc::new(env.device.create(&env.programs.context, bytes)?);
        self.scratch = Some((bytes, Arc::clone(&mem)));
        Ok(mem)
    }

    /// Makes the first variant of a kernel ready that the device can run: the kernel, or one
    /// with smaller groups.
    pub(super) fn load<'k>(
        &mut self,
        code: &'k OpenClKernel,
        env: &mut LaunchEnv<'_>,
    ) -> Result<&'k OpenClKernel, RuntimeError> {
        let Some(smaller) = code.source.smaller() else {
            return self.create(code, env).map(|()| code);
        };
        if !self.unfit.contains(&code.source) {
            match self.create(code, env) {
                Ok(()) => return Ok(code),
                Err(RuntimeError::Unfit { .. } | RuntimeError::Build { .. }) => {
                    self.unfit.insert(code.source.clone());
                }
                Err(error) => return Err(error),
            }
        }
        self.load(smaller, env)
    }

    /// Creates the kernel objects, unless the queue has them.
    fn create(&mut self, code: &OpenClKernel, env: &mut LaunchEnv<'_>) -> Result<(), RuntimeError> {
        let device = env.device;
        for source in code.kernels() {
            if self.kernels.contains_key(source) {
                continue;
            }
            let own = device.program_per_queue;
            let number = own.then(|| Arc::new(ProgramNumber::take(source)));
            let program = number.as_ref().map_or(0, |number| number.number());
            let programs = &mut env.programs;
            let kernel = programs.kernel((source, code.fp64), program, device)?;
            let loaded = Loaded {
                limits: KernelLimits::of(&kernel, source, device)?,
                kernel,
                args: Vec::new(),
                number,
            };
            self.kernels.insert(source.clone(), loaded);
        }
        Ok(())
    }

    /// Opens a view of every host region among the arguments; returns the regions,
    /// each once.
    fn open_views(
        &mut self,
        args: &[Value],
        env: &LaunchEnv<'_>,
    ) -> Result<Vec<HostMemoryId>, RuntimeError> {
        let mut hosts = Vec::new();
        for arg in args {
            let Some(Memory::Host(id)) = arg.memory() else {
                continue;
            };
            if hosts.contains(&id) {
                continue;
            }
            hosts.push(id);
            if self.views.contains_key(&id) {
                continue;
            }
            let region = env.memories.host(id)?;
            if !env.device.info.shares_host_memory {
                let why = "it has memory of its own and cannot compute in host memory; write the \
                           data into a buffer of the device first";
                return Err(env.device.refused("clSetKernelArg", why.to_owned()));
            }
            let view = View::over(&env.programs.context, region)
                .map_err(|code| env.device.no_buffer(region.bytes, code))?;
            self.views.insert(id, view);
        }
        Ok(hosts)
    }

    /// Sets the arguments that differ from the kernel's last ones; returns the
    /// resources that must outlive the command.
    fn bind(
        &mut self,
        source: &KernelSource,
        args: &[Value],
        scratch: Option<&Mem>,
        env: &LaunchEnv<'_>,
    ) -> Result<Vec<KeepAlive>, RuntimeError> {
        let mut keep_alive: Vec<KeepAlive> = Vec::new();
        let Some(loaded) = self.kernels.get_mut(source) else {
            return Ok(keep_alive);
        };
        keep_alive.extend(loaded.number.iter().map(|n| Arc::clone(n) as KeepAlive));
        let kernel = &loaded.kernel;
        loaded.args.resize(args.len(), None);
        for (index, (arg, last)) in args.iter().zip(&mut loaded.args).enumerate() {
            let mem = match arg.memory() {
                Some(Memory::Device(id)) => {
                    let buffer = env.memories.buffer(id, env.index)?;
                    keep_alive.push(Arc::clone(&buffer.memory) as KeepAlive);
                    buffer.memory.mem.raw()
                }
                Some(Memory::Host(id)) => {
                    let view = &self.views[&id];
                    keep_alive.push(Arc::clone(&view.mem) as KeepAlive);
                    keep_alive.push(Arc::clone(&view.keeper));
                    view.mem.raw()
                }
                None => std::ptr::null_mut(),
            };
            if last.as_ref().is_some_and(|last| same(last, arg)) {
                continue;
            }
            *last = None;
            set_value(kernel, (index, arg), mem, source, env.device)?;
            *last = Some(*arg);
        }
        if let Some(scratch) = scratch {
            let mem = scratch.raw();
            set(
                kernel,
                args.len(),
                size_of_val(&mem),
                (&raw const mem).cast(),
            )
            .map_err(|code| {
                let call = "clSetKernelArg";
                env.device.failed_at(call, code)
            })?;
        }
        Ok(keep_alive)
    }

    /// Enqueues a kernel. It always has events where host memory must be mapped.
    pub(super) fn enqueue(
        &mut self,
        ready: &Ready<'_>,
        device: &OpenDevice,
        has_event: bool,
        wait: &[cl_event],
    ) -> Result<Option<Events>, RuntimeError> {
        let Ready {
            kernel,
            sizes,
            local,
            hosts,
        } = *ready;
        let failed = |call| move |code| device.failed_at(call, code);
        // A queue has the views of all its launches, so only this launch's are looked at.
        for id in hosts {
            let view = self.views.get_mut(id);
            if let Some(view) = view
                && let Some(address) = view.mapped.take()
            {
                let (count, events) = list(wait);
                let (mem, address) = (view.mem.raw(), address.as_ptr());
                let unmap = || {
                    // SAFETY: the view is mapped at this address.
                    unsafe { enqueue_unmap_mem_object(self.raw.raw(), mem, address, count, events) }
                };
                let event = unmap().or_else(|code| match code {
                    // Mesa's rusticl (22.3) may not know a map that does not block.
                    CL_INVALID_VALUE => {
                        map(&self.raw, &view.mem, view.size, true).and_then(|_| unmap())
                    }
                    code => Err(code),
                });
                drop(Event::new(
                    event.map_err(failed("clEnqueueUnmapMemObject"))?,
                ));
            }
        }
        let (count, events) = list(wait);
        let queue = self.raw.raw();
        // The arguments are set, the sizes have as many dimensions as is said, and
        // the resources that the arguments name outlive the command.
        let event = enqueue(has_event || !hosts.is_empty(), |library, event| {
            library.clEnqueueNDRangeKernel(
                queue,
                kernel,
                sizes.global.len() as u32,
                (sizes.offset.as_ref()).map_or(std::ptr::null(), |o| o.as_ptr()),
                sizes.global.as_ptr(),
                local.map_or(std::ptr::null(), <[usize]>::as_ptr),
                count,
                events,
                event,
            )
        });
        let Some(timed) = event.map_err(failed("clEnqueueNDRangeKernel"))? else {
            return Ok(None);
        };
        let mut last = Arc::clone(&timed);
        for id in hosts {
            if let Some(view) = self.views.get_mut(id) {
                let mapped = map(&self.raw, &view.mem, view.size, false);
                let (address, event) = mapped.map_err(|code| {
                    // The kernel runs; its resources are kept until it has ended.
                    let _ = finish(self.raw.raw());
                    failed("clEnqueueMapBuffer")(code)
                })?;
                view.mapped = NonNull::new(address);
                last = Arc::new(event);
            }
        }
        Ok(Some((timed, last)))
    }
}

/// Whether two values are the same to a kernel, the sign of zero included. Ids of
/// memory are never reused.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::F32(one), Value::F32(other)) => one.to_bits() == other.to_bits(),
        (Value::F64(one), Value::F64(other)) => one.to_bits() == other.to_bits(),
        _ => one == other,
    }
}

/// The OpenCL implementation of a codelet.
pub(super) fn implementation<'c>(
    codelet: &'c Codelet,
    device: &OpenDevice,
) -> Result<&'c OpenClKernel, RuntimeError> {
    let none = || RuntimeError::NoImplementation {
        device: device.info.name.clone(),
        codelet: codelet.name.to_string(),
    };
    codelet.opencl.as_ref().ok_or_else(none)
}

/// The kernels of a launch that have something to compute.
pub(super) fn steps<'k>(kernel: &'k OpenClKernel, launch: &Launch) -> Vec<Step<'k>> {
    let mut steps = kernel.steps(&launch.units, &launch.args);
    steps.retain(|(_, sizes)| !sizes.global.is_empty() && !sizes.global.contains(&0));
    steps
}

/// Sets an argument; `mem` is the driver's handle of a memory argument.
pub(super) fn set_value(
    kernel: &Kernel,
    (index, arg): (usize, &Value),
    mem: cl_mem,
    source: &KernelSource,
    device: &OpenDevice,
) -> Result<(), RuntimeError> {
    let (bytes, value): (usize, *const c_void) = match arg {
        Value::U32(n) => (size_of_val(n), std::ptr::from_ref(n).cast()),
        Value::U64(n) => (size_of_val(n), std::ptr::from_ref(n).cast()),
        Value::F32(x) => (size_of_val(x), std::ptr::from_ref(x).cast()),
        Value::F64(x) => (size_of_val(x), std::ptr::from_ref(x).cast()),
        Value::Raw(value) => (value.bytes().len(), value.bytes().as_ptr().cast()),
        // Local memory has a size and no value.
        Value::Local(bytes) => (
            usize::try_from(*bytes).unwrap_or(usize::MAX),
            std::ptr::null(),
        ),
        Value::Memory(_) | Value::ReadOnly(_) => {
            (size_of_val(&mem), std::ptr::from_ref(&mem).cast())
        }
    };
    set(kernel, index, bytes, value).map_err(|code| {
        match device.failed_at("clSetKernelArg", code) {
            RuntimeError::Call { device, call, why } => RuntimeError::Call {
                device,
                call,
                why: format!("argument {index} of `{}`, {arg:?}: {why}", source.entry()),
            },
            other => other,
        }
    })
}

/// Sets an argument to so many bytes of a live value, or to local memory if it is null.
fn set(kernel: &Kernel, index: usize, bytes: usize, value: *const c_void) -> Result<(), cl_int> {
    // SAFETY: the driver copies that many bytes of a live value, unless it is null,
    // and the kernel belongs to this thread alone.
    unsafe { set_kernel_arg(kernel.raw(), index as u32, bytes, value) }
}
