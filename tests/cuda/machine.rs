//! A machine of the fake driver's GPUs, and commands for it.

use std::sync::Arc;
use std::time::Duration;

use pdawl_api::codelet::{Codelet, Cost, KernelSource, NdRange, OpenClKernel, Shape, Value};
use pdawl_api::runtime::select::{Selection, open_union};
use pdawl_api::runtime::union::Union;
use pdawl_api::runtime::{
    BufferId, Command, Completion, DeviceId, EventId, HostMemoryId, Launch, Memory, QueueId,
    Runtime, Status,
};

pub const ONE: DeviceId = DeviceId(0);
pub const OTHER: DeviceId = DeviceId(1);

/// What NVIDIA's compiler would make of the kernels of `fake/kernels.c`: their parameters,
/// and the special registers that they read.
pub const PTX: &str = "\
.version 9.0
.target sm_90, texmode_independent
.address_size 64
.entry add(
\t.param .u64 .ptr .global .align 4 add_param_0,
\t.param .u32 add_param_1
)
{
\tmov.b32 \t%r1, %envreg3;
}
.entry mix(
\t.param .u64 .ptr .global .align 4 mix_param_0,
\t.param .u64 .ptr .global .align 4 mix_param_1,
\t.param .u64 .ptr .global .align 4 mix_param_2,
\t.param .u32 mix_param_3
)
{
}
.entry sum(
\t.param .u64 .ptr .global .align 4 sum_param_0,
\t.param .u64 .ptr .global .align 4 sum_param_1,
\t.param .u64 .ptr .global .align 4 sum_param_2
)
{
}
.entry slow(
\t.param .u64 .ptr .global .align 4 slow_param_0,
\t.param .u32 slow_param_1
)
{
}
.entry place(
\t.param .u64 .ptr .global .align 4 place_param_0,
\t.param .u32 place_param_1
)
{
\tmov.b32 \t%r1, %envreg0;
\tmov.b32 \t%r1, %envreg1;
\tmov.b32 \t%r1, %envreg3;
\tmov.b32 \t%r1, %envreg4;
\tmov.b32 \t%r1, %envreg7;
}
.entry local(
\t.param .u64 .ptr .global .align 4 local_param_0,
\t.param .u64 .ptr .shared .align 4 local_param_1,
\t.param .u64 .ptr .shared .align 4 local_param_2
)
{
\tld.param.u64 \t%rd1, [local_param_1];
\tld.param.u64 \t%rd2, [local_param_2];
}
.entry scratch(
\t.param .u64 .ptr .global .align 4 scratch_param_0,
\t.param .u64 .ptr .global .align 4 scratch_param_1
)
{
}
.entry prints(
\t.param .u64 .ptr .global .align 4 prints_param_0
)
{
\tcall.uni (retval0), vprintf, (param0, param1);
}
";

/// A machine of these devices.
pub fn machine(devices: &str) -> Union {
    let selection: Selection = devices.parse().expect("devices");
    let (union, notes) = open_union(Some(&selection), true).expect("it opens");
    assert!(notes.is_empty(), "{notes:?}");
    union
}

/// A codelet of an entry, launched with these sizes.
pub fn codelet(ptx: &str, entry: &'static str, sizes: NdRange) -> Arc<Codelet> {
    Arc::new(Codelet {
        name: entry.into(),
        host: None,
        opencl: Some(OpenClKernel {
            source: KernelSource::new(ptx.to_owned(), "kernels.ptx", entry, ""),
            fp64: false,
            shape: Shape::with(move |_, _| sizes.clone()),
        }),
        library: None,
    })
}

/// A launch of a codelet.
pub fn launch(codelet: &Arc<Codelet>, args: Vec<Value>) -> Launch {
    Launch {
        codelet: Arc::clone(codelet),
        units: 0..1,
        args,
        cost: Cost::default(),
    }
}

/// `numbers[i] += value` over 64 numbers.
pub fn add(buffer: BufferId, value: u32) -> Command {
    let codelet = codelet(PTX, "add", NdRange::new(vec![64]));
    let args = vec![Value::Memory(Memory::Device(buffer)), Value::U32(value)];
    Command::Launch(launch(&codelet, args))
}

/// After a while, `numbers[i] += 1` over 64 numbers.
pub fn slow(buffer: BufferId) -> Command {
    let codelet = codelet(PTX, "slow", NdRange::new(vec![1]));
    let args = vec![Value::Memory(Memory::Device(buffer)), Value::U32(64)];
    Command::Launch(launch(&codelet, args))
}

/// `to[i] = 3 one[i] + other[i] + value + i` over 64 numbers.
pub fn mix([one, other]: [BufferId; 2], to: BufferId, value: u32) -> Command {
    let codelet = codelet(PTX, "mix", NdRange::new(vec![64]));
    let args = vec![
        Value::ReadOnly(Memory::Device(one)),
        Value::ReadOnly(Memory::Device(other)),
        Value::Memory(Memory::Device(to)),
        Value::U32(value),
    ];
    Command::Launch(launch(&codelet, args))
}

/// What [`mix`] makes of numbers.
pub fn mixed([one, other]: [&[u32]; 2], value: u32) -> Vec<u32> {
    let mix = |(i, (one, other)): (u32, (&u32, &u32))| {
        (one.wrapping_mul(3)).wrapping_add(other.wrapping_add(value + i))
    };
    (0..).zip(one.iter().zip(other)).map(mix).collect()
}

/// Host memory with these numbers.
pub fn host(machine: &mut Union, numbers: &[u32]) -> HostMemoryId {
    let bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_ne_bytes()).collect();
    let memory = machine.alloc_host(bytes.len() as u64).expect("host memory");
    machine
        .host_bytes(memory)
        .expect("free")
        .copy_from_slice(&bytes);
    memory
}

/// The numbers of host memory.
pub fn numbers(machine: &mut Union, memory: HostMemoryId) -> Vec<u32> {
    let bytes = machine.host_bytes(memory).expect("nothing uses it");
    let words = bytes.chunks_exact(4);
    words
        .map(|word| u32::from_ne_bytes(word.try_into().expect("four")))
        .collect()
}

/// The next completion.
pub fn next(machine: &mut Union) -> Completion {
    let next = machine
        .wait(Some(Duration::from_secs(60)))
        .expect("no error");
    next.expect("a completion within a minute")
}

/// Waits for all that is in flight, which ends well; the events in the order of their ends.
pub fn finish(machine: &mut Union) -> Vec<EventId> {
    let mut events = Vec::new();
    while let Some(completion) = machine
        .wait(Some(Duration::from_secs(60)))
        .expect("no error")
    {
        assert_eq!(completion.status, Status::Done);
        events.push(completion.event);
    }
    events
}

/// Enqueues a command, which is accepted.
pub fn enqueue(machine: &mut Union, queue: QueueId, command: Command, wait: &[EventId]) -> EventId {
    machine.enqueue(queue, command, wait).expect("accepted")
}
