//! Prepares and enqueues kernels: arguments, sizes, and offsets.

use std::ffi::c_void;
use std::sync::Arc;

use cudarc::driver::sys::{self, CUDA_KERNEL_NODE_PARAMS, CUgraphNode};

use super::copy::Memories;
use super::device::{Limits, OpenDevice};
use super::error::{Failure, check};
use super::handle::{Graph, Stream};
use super::memory::{Allocation, KeepAlive};
use super::program::{LoadedKernel, Programs};
use super::ptx::{LOCAL_ALIGNMENT, Parameter, Register};
use crate::codelet::{KernelSource, LocalSize, Memory, NdRange, Value};
use crate::runtime::group_size::{fit, refusal};
use crate::runtime::{IdMap, Launch, RuntimeError};

/// Group sizes where the driver is to choose: 256 work-items, long along the first axis,
/// along which neighbours read neighbouring memory.
const ANY_GROUP: [&[usize]; 3] = [&[256], &[32, 8], &[32, 4, 2]];

/// A launch whose kernels can be enqueued as often as one likes.
pub(super) struct Prepared {
    kernels: Vec<Ready>,
    /// What must outlive its commands.
    pub keep_alive: KeepAlive,
}

/// One launch of CUDA's.
pub(super) struct Ready {
    kernel: Arc<LoadedKernel>,
    groups: [u32; 3],
    items: [u32; 3],
    /// Bytes of dynamic shared memory.
    local: u32,
    /// The bytes of each argument.
    arguments: Vec<Vec<u8>>,
}

/// Prepared launches, by device and address of the launch, which is held so that its
/// address stays unique.
#[derive(Default)]
pub(super) struct Repeats(IdMap<(usize, usize), (Arc<Launch>, Arc<Prepared>)>);

impl Repeats {
    /// Drops the launches that use memory about to be freed, and those that nobody else
    /// holds any more.
    pub(super) fn forget(&mut self, memory: Memory) {
        self.0.retain(|_, (launch, _)| {
            Arc::strong_count(launch) > 1 && !launch.memories().any(|own| own == memory)
        });
    }

    /// The prepared launch, prepared now if it was not before.
    pub(super) fn prepared(
        &mut self,
        launch: &Arc<Launch>,
        scratch: &mut Option<(u64, Arc<Allocation>)>,
        env: &mut LaunchEnv<'_>,
    ) -> Result<Arc<Prepared>, RuntimeError> {
        let key = (env.index, Arc::as_ptr(launch).addr());
        if let Some((_, prepared)) = self.0.get(&key) {
            return Ok(Arc::clone(prepared));
        }
        let prepared = Arc::new(prepare(launch, scratch, env)?);
        // A series of kernels uses its queue's own memory.
        let kernel = launch.codelet.opencl.as_ref();
        if kernel.is_some_and(|kernel| !kernel.is_series()) {
            let known = (Arc::clone(launch), Arc::clone(&prepared));
            self.0.insert(key, known);
        }
        Ok(prepared)
    }
}

/// The state of the backend that a launch needs beside its queue.
pub(super) struct LaunchEnv<'a> {
    /// The device, and its index.
    pub index: usize,
    pub device: &'a mut OpenDevice,
    pub programs: &'a mut Programs,
    pub memories: &'a Memories,
}

/// Compiles the kernels of a launch and computes their sizes and arguments. `scratch` is
/// its queue's memory for series of kernels.
pub(super) fn prepare(
    launch: &Launch,
    scratch: &mut Option<(u64, Arc<Allocation>)>,
    env: &mut LaunchEnv<'_>,
) -> Result<Prepared, RuntimeError> {
    let Some(kernel) = &launch.codelet.opencl else {
        return Err(RuntimeError::NoImplementation {
            device: env.device.info.name.clone(),
            codelet: launch.codelet.name.to_string(),
        });
    };
    let mut keep_alive: Vec<KeepAlive> = Vec::new();
    let mut values = Vec::with_capacity(launch.args.len() + 1);
    for arg in &launch.args {
        values.push(value(arg, &mut keep_alive, env)?);
    }
    if let Some(bytes) = kernel.scratch(&launch.args) {
        let memory = match scratch {
            // The kernels of one launch after another use it: the queue is in order.
            Some((has, memory)) if *has >= bytes => Arc::clone(memory),
            _ => {
                let memory = Arc::new(env.device.create(bytes)?);
                *scratch = Some((bytes, Arc::clone(&memory)));
                memory
            }
        };
        values.push(Argument::Memory(memory.address()));
        keep_alive.push(memory as KeepAlive);
    }
    let mut kernels = Vec::new();
    for (source, sizes) in kernel.steps(&launch.units, &launch.args) {
        if sizes.global.is_empty() || sizes.global.contains(&0) {
            continue;
        }
        let loaded = env.programs.kernel(source, env.device)?;
        keep_alive.push(Arc::clone(&loaded) as KeepAlive);
        divide(&loaded, source, &sizes, &values, env.device, &mut kernels)?;
    }
    Ok(Prepared {
        kernels,
        keep_alive: Arc::new(keep_alive),
    })
}

impl Prepared {
    /// Its kernels, which follow one another.
    pub(super) fn kernels(&self) -> &[Ready] {
        &self.kernels
    }

    /// Enqueues the kernels.
    pub(super) fn enqueue(&self, stream: &Stream) -> Result<(), Failure> {
        self.kernels
            .iter()
            .try_for_each(|ready| ready.enqueue(stream))
    }
}

impl Ready {
    /// The arguments as the driver takes them; valid as long as `self`.
    fn pointers(&self) -> Vec<*mut c_void> {
        let arguments = self.arguments.iter();
        arguments
            .map(|bytes| bytes.as_ptr().cast_mut().cast())
            .collect()
    }

    /// Adds the launch to a graph, after these nodes.
    pub(super) fn add_to(
        &self,
        graph: &Graph,
        after: &[CUgraphNode],
    ) -> Result<CUgraphNode, Failure> {
        let ([x, y, z], [a, b, c]) = (self.groups, self.items);
        let mut arguments = self.pointers();
        let parameters = CUDA_KERNEL_NODE_PARAMS {
            func: self.kernel.function.raw(),
            gridDimX: x,
            gridDimY: y,
            gridDimZ: z,
            blockDimX: a,
            blockDimY: b,
            blockDimZ: c,
            sharedMemBytes: self.local,
            kernelParams: arguments.as_mut_ptr(),
            extra: std::ptr::null_mut(),
            kern: std::ptr::null_mut(),
            ctx: std::ptr::null_mut(),
        };
        // SAFETY: the function is loaded, and who launches the graph keeps it so; there is
        // an argument of its size for each of its parameters.
        unsafe { graph.add_kernel(after, &parameters) }
    }

    fn enqueue(&self, stream: &Stream) -> Result<(), Failure> {
        let mut arguments = self.pointers();
        let ([x, y, z], [a, b, c]) = (self.groups, self.items);
        // SAFETY: the function is loaded, there is an argument of its size for each of its
        // parameters, which the driver copies before the call returns, and who enqueues
        // the command keeps the memory that they name until it has ended.
        let code = unsafe {
            sys::cuLaunchKernel(
                self.kernel.function.raw(),
                x,
                y,
                z,
                a,
                b,
                c,
                self.local,
                stream.raw(),
                arguments.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        };
        check("cuLaunchKernel", code)
    }
}

/// An argument as a kernel gets it.
enum Argument {
    /// An address on the device.
    Memory(u64),
    Plain(Vec<u8>),
    /// So many bytes of local memory.
    Local(u64),
}

fn value(
    arg: &Value,
    keep_alive: &mut Vec<KeepAlive>,
    env: &LaunchEnv<'_>,
) -> Result<Argument, RuntimeError> {
    Ok(match arg {
        Value::Memory(Memory::Device(id)) | Value::ReadOnly(Memory::Device(id)) => {
            let buffer = env.memories.buffer(*id, env.index)?;
            keep_alive.push(Arc::clone(&buffer.memory) as KeepAlive);
            Argument::Memory(buffer.memory.address())
        }
        Value::Memory(Memory::Host(_)) | Value::ReadOnly(Memory::Host(_)) => {
            return Err(RuntimeError::Call {
                device: env.device.info.name.clone(),
                call: "cuLaunchKernel",
                why: "it has memory of its own and does not compute in host memory; write the \
                      data into a buffer of the device first"
                    .to_owned(),
            });
        }
        Value::U32(n) => Argument::Plain(n.to_ne_bytes().to_vec()),
        Value::U64(n) => Argument::Plain(n.to_ne_bytes().to_vec()),
        Value::F32(x) => Argument::Plain(x.to_ne_bytes().to_vec()),
        Value::F64(x) => Argument::Plain(x.to_ne_bytes().to_vec()),
        Value::Raw(value) => Argument::Plain(value.bytes().to_vec()),
        Value::Local(bytes) => Argument::Local(*bytes),
    })
}

/// Adds the launches of an NDRange: one, or several where it has more work-groups along an
/// axis than a launch may have.
fn divide(
    loaded: &Arc<LoadedKernel>,
    source: &KernelSource,
    sizes: &NdRange,
    values: &[Argument],
    device: &OpenDevice,
    to: &mut Vec<Ready>,
) -> Result<(), RuntimeError> {
    let refuse = |why: String| RuntimeError::Call {
        device: device.info.name.clone(),
        call: "cuLaunchKernel",
        why: format!("kernel `{}` ({}): {why}", source.entry(), source.file()),
    };
    let (arguments, local) = arguments(loaded, values).map_err(refuse)?;
    let items = group_of(sizes, loaded, &device.limits).map_err(refuse)?;
    let mut groups = [1usize; 3];
    let mut begin = [0usize; 3];
    for (axis, global) in sizes.global.iter().enumerate() {
        groups[axis] = global / items[axis];
        let offsets = sizes.offset.as_ref();
        begin[axis] = offsets.and_then(|o| o.get(axis)).copied().unwrap_or(0);
        let end = begin[axis].checked_add(*global);
        if end.is_none_or(|end| u32::try_from(end).is_err()) {
            return Err(refuse(format!(
                "its work-items of dimension {axis} end behind 2^32; divide the launch"
            )));
        }
    }
    let most = device.limits.groups;
    for z in (0..groups[2]).step_by(most[2].max(1)) {
        for y in (0..groups[1]).step_by(most[1].max(1)) {
            for x in (0..groups[0]).step_by(most[0].max(1)) {
                let before = [x, y, z];
                let mut arguments = arguments.clone();
                for register in &loaded.kernel.registers {
                    let number = match *register {
                        Register::GroupOffset(axis) => before[axis],
                        Register::GlobalOffset(axis) => begin[axis] + before[axis] * items[axis],
                        Register::Groups(axis) => groups[axis],
                    };
                    // Less than 2^32, as the work-items are.
                    arguments.push((number as u32).to_ne_bytes().to_vec());
                }
                let part = |axis: usize| (groups[axis] - before[axis]).min(most[axis]) as u32;
                to.push(Ready {
                    kernel: Arc::clone(loaded),
                    groups: [part(0), part(1), part(2)],
                    items: items.map(|items| items as u32),
                    local,
                    arguments,
                });
            }
        }
    }
    Ok(())
}

/// The bytes of the arguments that the source has, and those of dynamic shared memory.
fn arguments(loaded: &LoadedKernel, values: &[Argument]) -> Result<(Vec<Vec<u8>>, u32), String> {
    let parameters = &loaded.kernel.parameters;
    if parameters.len() != values.len() {
        return Err(format!(
            "it has {} arguments, and {} are given",
            parameters.len(),
            values.len()
        ));
    }
    let mut local = 0u64;
    let mut arguments = Vec::with_capacity(values.len() + loaded.kernel.registers.len());
    for (index, (parameter, value)) in parameters.iter().zip(values).enumerate() {
        let bytes = match (parameter, value) {
            (Parameter::Memory | Parameter::Value { bytes: 8 }, Argument::Memory(address)) => {
                address.to_ne_bytes().to_vec()
            }
            (Parameter::Local { bytes }, Argument::Local(size)) => {
                let offset = local.to_ne_bytes();
                let end = local.checked_add(*size);
                local = end
                    .and_then(|end| end.checked_next_multiple_of(LOCAL_ALIGNMENT))
                    .ok_or_else(|| format!("argument {index} is more than can be addressed"))?;
                // The first bytes are the lower ones; an offset fits into four.
                offset[..(*bytes as usize).min(8)].to_vec()
            }
            (Parameter::Value { bytes }, Argument::Plain(value))
                if value.len() as u64 == *bytes =>
            {
                value.clone()
            }
            (Parameter::Value { bytes }, Argument::Plain(value)) => {
                return Err(format!(
                    "argument {index} has {bytes} bytes, and {} are given",
                    value.len()
                ));
            }
            (parameter, _) => {
                let expected = match parameter {
                    Parameter::Memory => "a buffer",
                    Parameter::Local { .. } => "local memory",
                    Parameter::Value { .. } => "a value",
                };
                return Err(format!("argument {index} is to be {expected}"));
            }
        };
        arguments.push(bytes);
    }
    let local = u32::try_from(local)
        .map_err(|_| format!("{local} bytes of local memory are more than a device has"))?;
    Ok((arguments, local))
}

/// The work-items of a group along each axis.
fn group_of(sizes: &NdRange, loaded: &LoadedKernel, limits: &Limits) -> Result<[usize; 3], String> {
    let global = &sizes.global;
    if global.len() > 3 {
        return Err(format!("{} dimensions are more than three", global.len()));
    }
    let required = loaded.kernel.group.map(|group| {
        let group = group.iter().take(global.len());
        group.map(|items| *items as usize).collect::<Vec<usize>>()
    });
    let (axes, most) = (&limits.items, loaded.group);
    let exactly = |group: &[usize]| match refusal(global, group, axes, most) {
        None => Ok(group.to_vec()),
        Some(why) => Err(why),
    };
    let group = match (&sizes.local, required) {
        (LocalSize::Exactly(wanted), _) => exactly(wanted)?,
        (_, Some(required)) => exactly(&required)?,
        (LocalSize::Near(wanted), None) => fit(global, wanted, axes, most),
        (LocalSize::Any, None) => fit(global, ANY_GROUP[global.len() - 1], axes, most),
    };
    let mut items = [1; 3];
    items[..group.len()].copy_from_slice(&group);
    Ok(items)
}
