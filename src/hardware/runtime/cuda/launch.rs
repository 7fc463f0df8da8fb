//! Prepares and enqueues launches: kernels with their arguments, sizes and offsets, and calls
//! of libraries.

use std::ffi::c_void;
use std::sync::Arc;

use cudarc::driver::sys::{self, CUDA_KERNEL_NODE_PARAMS, CUgraphNode};

use super::device::{Limits, OpenDevice};
use super::error::{Failure, check};
use super::handle::{Graph, Stream};
use super::library::{Call, Libraries, Room};
use super::memory::Allocation;
use super::program::{LoadedKernel, Programs};
use super::ptx::{LOCAL_ALIGNMENT, Parameter, Register};
use crate::codelet::{KernelSource, LocalSize, Memory, NdRange, Value};
use crate::runtime::driven::{KeepAlive, Memories};
use crate::runtime::group_size::{fit, refusal};
use crate::runtime::{Launch, RuntimeError};

/// Group sizes where the driver is to choose: 256 work-items, long along the first axis,
/// along which neighbours read neighbouring memory.
const ANY_GROUP: [&[usize]; 3] = [&[256], &[32, 8], &[32, 4, 2]];

/// A launch that can be enqueued as often as one likes.
pub(super) struct Prepared {
    pub parts: Vec<LaunchPart>,
    /// The first parts that only write the launch's own memory.
    pub harmless: usize,
    /// Bytes of its queue's memory for libraries.
    pub room: u64,
    /// Whether it uses its queue's own memory, and so is for that queue alone.
    pub is_of_queue: bool,
    /// What must outlive its commands.
    pub keep_alive: KeepAlive,
}

/// A part of a launch.
pub(super) enum LaunchPart {
    Kernel(Ready),
    Call(Call),
}

/// Why a launch was not enqueued as a whole.
pub(super) enum Stopped {
    Driver(Failure),
    /// A library refused a call. If what was enqueued before it is harmless, ours can serve.
    Library {
        why: String,
        is_harmless: bool,
    },
}

impl From<Failure> for Stopped {
    fn from(failure: Failure) -> Self {
        Self::Driver(failure)
    }
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

/// The state of the backend that a launch needs beside its queue.
pub(super) struct LaunchEnv<'a> {
    /// The device, and its index.
    pub index: usize,
    pub device: &'a mut OpenDevice,
    pub programs: &'a mut Programs,
    pub libraries: Option<&'a mut Libraries>,
    pub memories: &'a Memories<Allocation>,
}

/// Memory of a queue that what follows on it uses in turn, and its bytes.
pub(super) type QueueMemory = Option<(u64, Arc<Allocation>)>;

/// At least so many bytes of a queue's memory.
pub(super) fn lend(
    memory: &mut QueueMemory,
    bytes: u64,
    device: &mut OpenDevice,
) -> Result<Arc<Allocation>, RuntimeError> {
    match memory {
        // What is enqueued uses it one after another: the queue is in order.
        Some((has, memory)) if *has >= bytes => Ok(Arc::clone(memory)),
        _ => {
            let larger = Arc::new(device.create(bytes)?);
            *memory = Some((bytes, Arc::clone(&larger)));
            Ok(larger)
        }
    }
}

/// Compiles our kernels of a launch and computes their sizes and arguments. `scratch` is
/// its queue's memory for series of kernels.
pub(super) fn prepare(
    launch: &Launch,
    scratch: &mut QueueMemory,
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
        let memory = lend(scratch, bytes, env.device)?;
        values.push(Argument::Memory(memory.address()));
        keep_alive.push(memory as KeepAlive);
    }
    let mut parts = Vec::new();
    for (source, sizes) in kernel.steps(&launch.units, &launch.args) {
        step(source, &sizes, &values, (&mut keep_alive, &mut parts), env)?;
    }
    Ok(Prepared {
        parts,
        harmless: 0,
        room: 0,
        is_of_queue: kernel.is_series(),
        keep_alive: Arc::new(keep_alive),
    })
}

/// Prepares a kernel, unless it has no work-items.
pub(super) fn step(
    source: &KernelSource,
    sizes: &NdRange,
    values: &[Argument],
    (keep_alive, parts): (&mut Vec<KeepAlive>, &mut Vec<LaunchPart>),
    env: &mut LaunchEnv<'_>,
) -> Result<(), RuntimeError> {
    if sizes.global.is_empty() || sizes.global.contains(&0) {
        return Ok(());
    }
    let loaded = env.programs.kernel(source, env.device)?;
    keep_alive.push(Arc::clone(&loaded) as KeepAlive);
    divide(&loaded, source, sizes, values, env.device, parts)
}

impl Prepared {
    /// Bytes of memory that its calls need.
    pub(super) fn least_room(&self) -> u64 {
        let calls = self.parts.iter().filter_map(|part| match part {
            LaunchPart::Kernel(_) => None,
            LaunchPart::Call(call) => Some(call.least_room),
        });
        calls.max().unwrap_or(0)
    }

    /// Its kernels, which follow one another.
    pub(super) fn kernels(&self) -> impl Iterator<Item = &Ready> {
        self.parts.iter().filter_map(|part| match part {
            LaunchPart::Kernel(ready) => Some(ready),
            LaunchPart::Call(_) => None,
        })
    }

    /// Enqueues its kernels and calls. `room` is as much memory as its calls want.
    pub(super) fn enqueue(&self, stream: &Stream, room: Room) -> Result<(), Stopped> {
        for (index, part) in self.parts.iter().enumerate() {
            match part {
                LaunchPart::Kernel(ready) => ready.enqueue(stream).map_err(Stopped::Driver)?,
                LaunchPart::Call(call) => {
                    call.enqueue(stream, room).map_err(|why| Stopped::Library {
                        why,
                        is_harmless: index <= self.harmless,
                    })?
                }
            }
        }
        Ok(())
    }

    /// Whether it consists of our kernels alone, without calls of a library.
    pub(super) fn has_only_kernels(&self) -> bool {
        let mut parts = self.parts.iter();
        parts.all(|part| matches!(part, LaunchPart::Kernel(_)))
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

    pub(super) fn enqueue(&self, stream: &Stream) -> Result<(), Failure> {
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
pub(super) enum Argument {
    /// An address on the device.
    Memory(u64),
    Plain(Vec<u8>),
    /// So many bytes of local memory.
    Local(u64),
}

/// An argument, whose memory must outlive the launch.
pub(super) fn value(
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
            let why = "it has memory of its own and does not compute in host memory; write the \
                       data into a buffer of the device first";
            return Err(env.device.refused("cuLaunchKernel", why.to_owned()));
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
    to: &mut Vec<LaunchPart>,
) -> Result<(), RuntimeError> {
    let refuse = |why: String| {
        let why = format!("kernel `{}` ({}): {why}", source.entry(), source.file());
        device.refused("cuLaunchKernel", why)
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
                to.push(LaunchPart::Kernel(Ready {
                    kernel: Arc::clone(loaded),
                    groups: [part(0), part(1), part(2)],
                    items: items.map(|items| items as u32),
                    local,
                    arguments,
                }));
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
        (LocalSize::Near(wanted), None) => fit(global, wanted, axes, (most, 1)),
        (LocalSize::Any, None) => fit(global, ANY_GROUP[global.len() - 1], axes, (most, 1)),
    };
    let mut items = [1; 3];
    items[..group.len()].copy_from_slice(&group);
    Ok(items)
}
