//! Kernels on a queue: arguments, sizes, and host memory made visible.

use std::collections::HashMap;
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;

use cl3::command_queue::{enqueue_nd_range_kernel, enqueue_unmap_mem_object, finish};
use cl3::kernel::{CL_KERNEL_WORK_GROUP_SIZE, get_kernel_work_group_info, set_kernel_arg};
use cl3::types::{cl_event, cl_kernel, cl_mem};

use super::apart::Apart;
use super::completion::Keep;
use super::device::OpenDevice;
use super::handle::{Event, Kernel};
use super::memory::{View, map};
use super::program::Programs;
use super::queue::{Enqueued, Events, Memories, OpenQueue, list};
use super::shape::{fit, refusal};
use crate::codelet::{HostMemoryId, KernelSource, LocalSize, Memory, NdRange, OpenClKernel, Value};
use crate::machine::DeviceKind;
use crate::runtime::{Launch, RuntimeError};

/// A queue's kernel objects: one for each kernel, because a kernel's arguments
/// are part of it.
pub(super) type Kernels = HashMap<KernelSource, Loaded>;

/// A kernel, ready to be launched on one device.
pub(super) struct Loaded {
    pub kernel: Kernel,
    /// Most work-items a group.
    pub group: usize,
    /// The arguments that it has. From one launch to the next few change.
    args: Vec<Option<Value>>,
    /// What keeps its program from other queues, where that is needed.
    pub apart: Option<Arc<Apart>>,
}

/// A kernel whose arguments are set.
pub(super) struct Ready<'a> {
    pub kernel: cl_kernel,
    pub sizes: &'a NdRange,
    pub local: Option<&'a [usize]>,
    /// Host regions whose views are unmapped before it and mapped after it, so
    /// that host and device see each other's results.
    pub hosts: &'a [HostMemoryId],
}

/// What a launch needs beside its queue.
pub(super) struct Site<'a> {
    pub device: &'a OpenDevice,
    /// All devices that are open.
    pub devices: &'a [OpenDevice],
    pub programs: &'a mut Programs,
    pub memories: &'a Memories,
}

impl OpenQueue {
    /// Enqueues a kernel, with an event if its end is `heard` of.
    pub(super) fn launch(
        &mut self,
        launch: &Launch,
        heard: bool,
        site: &mut Site<'_>,
        wait: &[cl_event],
    ) -> Result<Enqueued, RuntimeError> {
        let device = site.device;
        let Some((kernel, sizes)) = sizes(launch, device)? else {
            return self.marker(device, wait);
        };
        let source = &kernel.source;
        self.load(kernel, site)?;
        let local = local_size(&sizes, device, self.kernels[source].group, source)?;
        let hosts = self.look_at(&launch.args, site)?;
        let keeps = self.bind(source, &launch.args, site)?;
        let ready = Ready {
            kernel: self.kernels[source].kernel.raw(),
            sizes: &sizes,
            local: local.as_deref(),
            // A CPU computes in host memory itself: a map would change nothing.
            hosts: match device.info.kind {
                DeviceKind::Cpu => &[],
                _ => &hosts,
            },
        };
        let events = self.enqueue(&ready, device, heard, wait)?;
        Ok(Enqueued { events, keeps })
    }

    /// Makes sure that the kernel is there.
    pub(super) fn load(
        &mut self,
        source: &OpenClKernel,
        site: &mut Site<'_>,
    ) -> Result<(), RuntimeError> {
        if self.kernels.contains_key(&source.source) {
            return Ok(());
        }
        let device = site.device;
        let apart = device.apart.then(|| Apart::take(&source.source));
        let number = apart.as_ref().map_or(0, Apart::number);
        let kernel = site.programs.kernel(source, number, device, site.devices)?;
        let group =
            get_kernel_work_group_info(kernel.raw(), device.id.id(), CL_KERNEL_WORK_GROUP_SIZE)
                .map(usize::from)
                .map_err(|code| device.shared.failed("clGetKernelWorkGroupInfo", code))?;
        let args = Vec::new();
        let loaded = Loaded {
            kernel,
            group,
            args,
            apart: apart.map(Arc::new),
        };
        self.kernels.insert(source.source.clone(), loaded);
        Ok(())
    }

    /// Makes sure of a view of every host region among the arguments; returns
    /// the regions, each once.
    fn look_at(
        &mut self,
        args: &[Value],
        site: &Site<'_>,
    ) -> Result<Vec<HostMemoryId>, RuntimeError> {
        let mut hosts = Vec::new();
        for arg in args {
            let Value::Memory(Memory::Host(id)) = arg else {
                continue;
            };
            if hosts.contains(id) {
                continue;
            }
            hosts.push(*id);
            if self.views.contains_key(id) {
                continue;
            }
            let region = site.memories.host(*id)?;
            if !site.device.info.shares_host_memory {
                return Err(RuntimeError::Call {
                    device: site.device.info.name.clone(),
                    call: "clSetKernelArg",
                    why: "it has memory of its own and cannot compute in host memory; write \
                          the data into a buffer of the device first"
                        .to_owned(),
                });
            }
            let view = View::over(&site.programs.context, region)
                .map_err(|code| site.device.no_buffer(region.bytes, code))?;
            self.views.insert(*id, view);
        }
        Ok(hosts)
    }

    /// Sets the arguments that differ from the kernel's last ones; returns
    /// what must outlive the command.
    fn bind(
        &mut self,
        source: &KernelSource,
        args: &[Value],
        site: &Site<'_>,
    ) -> Result<Vec<Keep>, RuntimeError> {
        let mut keeps: Vec<Keep> = Vec::new();
        let Some(loaded) = self.kernels.get_mut(source) else {
            return Ok(keeps);
        };
        keeps.extend(loaded.apart.iter().map(|apart| Arc::clone(apart) as Keep));
        let kernel = &loaded.kernel;
        loaded.args.resize(args.len(), None);
        for (index, (arg, last)) in args.iter().zip(&mut loaded.args).enumerate() {
            let mem = match arg {
                Value::Memory(Memory::Device(id)) => {
                    let buffer = site.memories.buffer(*id, self.device)?;
                    keeps.push(Arc::clone(&buffer.mem) as Keep);
                    buffer.mem.raw()
                }
                Value::Memory(Memory::Host(id)) => {
                    let view = &self.views[id];
                    keeps.push(Arc::clone(&view.mem) as Keep);
                    keeps.push(Arc::clone(&view.keeper));
                    view.mem.raw()
                }
                _ => std::ptr::null_mut(),
            };
            if last.as_ref().is_some_and(|last| same(last, arg)) {
                continue;
            }
            *last = None;
            set_value(kernel, (index, arg), mem, source, site.device)?;
            *last = Some(*arg);
        }
        Ok(keeps)
    }

    /// Enqueues a kernel. Where host memory has to be made visible there are
    /// events in any case.
    pub(super) fn enqueue(
        &mut self,
        ready: &Ready<'_>,
        device: &OpenDevice,
        heard: bool,
        wait: &[cl_event],
    ) -> Result<Option<Events>, RuntimeError> {
        let Ready {
            kernel,
            sizes,
            local,
            hosts,
        } = *ready;
        let failed = |call| move |code| device.shared.failed(call, code);
        for (id, view) in &mut self.views {
            if let (true, Some(address)) = (hosts.contains(id), view.mapped.take()) {
                let (count, events) = list(wait);
                // SAFETY: the view is mapped at this address.
                let event = unsafe {
                    enqueue_unmap_mem_object(
                        self.raw.raw(),
                        view.mem.raw(),
                        address.as_ptr(),
                        count,
                        events,
                    )
                };
                drop(Event::new(
                    event.map_err(failed("clEnqueueUnmapMemObject"))?,
                ));
            }
        }
        if !heard && hosts.is_empty() {
            // SAFETY: as below.
            let enqueued = unsafe { self.enqueue_unheard(kernel, sizes, local, wait) };
            return match enqueued {
                Ok(()) => Ok(None),
                Err(code) => Err(failed("clEnqueueNDRangeKernel")(code)),
            };
        }
        let (count, events) = list(wait);
        // SAFETY: the arguments are set, the sizes have as many dimensions as
        // is said, and what the arguments name outlives the command.
        let event = unsafe {
            enqueue_nd_range_kernel(
                self.raw.raw(),
                kernel,
                sizes.global.len() as u32,
                (sizes.offset.as_ref()).map_or(std::ptr::null(), |o| o.as_ptr()),
                sizes.global.as_ptr(),
                local.map_or(std::ptr::null(), |l| l.as_ptr()),
                count,
                events,
            )
        };
        let timed = event.map_err(failed("clEnqueueNDRangeKernel"))?;
        let timed = Arc::new(Event::new(timed));
        let mut last = Arc::clone(&timed);
        for (id, view) in &mut self.views {
            if hosts.contains(id) {
                let mapped = map(&self.raw, &view.mem, view.size, false, &[]);
                let (address, event) = mapped.map_err(|code| {
                    // The kernel is on its way; what it uses is kept until then.
                    let _ = finish(self.raw.raw());
                    failed("clEnqueueMapBuffer")(code)
                })?;
                view.mapped = NonNull::new(address);
                last = Arc::new(event);
            }
        }
        Ok(Some(Events {
            last,
            timed: [Arc::clone(&timed), timed],
            kernels: None,
        }))
    }
}

/// Whether two values are the same to a kernel, zeros' signs included. Ids of
/// memory are never used again.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::F32(one), Value::F32(other)) => one.to_bits() == other.to_bits(),
        (Value::F64(one), Value::F64(other)) => one.to_bits() == other.to_bits(),
        _ => one == other,
    }
}

/// The kernel of a launch and its sizes; `None` if there is nothing to compute.
pub(super) fn sizes<'l>(
    launch: &'l Launch,
    device: &OpenDevice,
) -> Result<Option<(&'l OpenClKernel, NdRange)>, RuntimeError> {
    let Some(kernel) = &launch.codelet.opencl else {
        return Err(RuntimeError::NoImplementation {
            device: device.info.name.clone(),
            codelet: launch.codelet.name.to_string(),
        });
    };
    let sizes = kernel.shape.sizes(&launch.units, &launch.args);
    let none = sizes.global.contains(&0) || sizes.global.is_empty();
    Ok((!none).then_some((kernel, sizes)))
}

/// The local size for a launch; `None` leaves it to the driver.
pub(super) fn local_size(
    sizes: &NdRange,
    device: &OpenDevice,
    group: usize,
    source: &KernelSource,
) -> Result<Option<Vec<usize>>, RuntimeError> {
    let axes = &device.group_limits;
    match &sizes.local {
        LocalSize::Any => Ok(None),
        LocalSize::Near(wanted) => Ok(Some(fit(&sizes.global, wanted, axes, group))),
        LocalSize::Exactly(wanted) => match refusal(&sizes.global, wanted, axes, group) {
            None => Ok(Some(wanted.clone())),
            Some(why) => Err(RuntimeError::Call {
                device: device.info.name.clone(),
                call: "clEnqueueNDRangeKernel",
                why: format!("kernel `{}` ({}): {why}", source.entry(), source.file()),
            }),
        },
    }
}

/// Sets an argument; memory is `mem` to the driver.
pub(super) fn set_value(
    kernel: &Kernel,
    (index, arg): (usize, &Value),
    mem: cl_mem,
    source: &KernelSource,
    device: &OpenDevice,
) -> Result<(), RuntimeError> {
    let set = match arg {
        Value::U32(n) => set(kernel, index, n),
        Value::U64(n) => set(kernel, index, n),
        Value::F32(x) => set(kernel, index, x),
        Value::F64(x) => set(kernel, index, x),
        Value::Raw(value) => set_bytes(kernel, index, value.bytes()),
        Value::Local(bytes) => set_local(kernel, index, *bytes),
        Value::Memory(_) => set(kernel, index, &mem),
    };
    set.map_err(|code| match device.shared.failed("clSetKernelArg", code) {
        RuntimeError::Call { device, call, why } => RuntimeError::Call {
            device,
            call,
            why: format!("argument {index} of `{}`, {arg:?}: {why}", source.entry()),
        },
        other => other,
    })
}

/// Sets an argument to a plain value.
fn set<T: Copy>(kernel: &Kernel, index: usize, value: &T) -> Result<(), i32> {
    // SAFETY: `value` is valid for this many bytes.
    unsafe {
        set_argument(
            kernel,
            index,
            size_of::<T>(),
            std::ptr::from_ref(value).cast(),
        )
    }
}

/// Sets an argument to a plain value of these bytes.
fn set_bytes(kernel: &Kernel, index: usize, value: &[u8]) -> Result<(), i32> {
    // SAFETY: `value` is valid for this many bytes.
    unsafe { set_argument(kernel, index, value.len(), value.as_ptr().cast()) }
}

/// Gives an argument so many bytes of local memory.
fn set_local(kernel: &Kernel, index: usize, bytes: u64) -> Result<(), i32> {
    let size = usize::try_from(bytes).unwrap_or(usize::MAX);
    // SAFETY: local memory has no value, so nothing is read.
    unsafe { set_argument(kernel, index, size, std::ptr::null()) }
}

/// Sets an argument.
///
/// # Safety
/// `value` must be null or valid for reads of `size` bytes.
unsafe fn set_argument(
    kernel: &Kernel,
    index: usize,
    size: usize,
    value: *const c_void,
) -> Result<(), i32> {
    // SAFETY: the driver copies `size` bytes from `value`, unless that is null,
    // and the kernel belongs to this thread alone.
    unsafe { set_kernel_arg(kernel.raw(), index as u32, size, value) }
}
