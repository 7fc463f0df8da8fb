//! The user's memory as host memory, on the host's cores, on PoCL's CPU device with and
//! without memory of its own, and in the simulator.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pdawl_api::codelet::{
    Codelet, Cost, HostCode, HostValue, KernelSource, NdRange, OpenClKernel, Shape, Value,
};
use pdawl_api::machine::MachineStore;
use pdawl_api::runtime::sim::{Sim, SimOptions};
use pdawl_api::runtime::{
    AdoptedMemory, BufferId, Command, DeviceId, Devices, HostMemoryId, Launch, Location, Memory,
    QueueId, Rows, Runtime, RuntimeError, Status,
};

use crate::pocl;

/// Numbers of elements: one, primes and one more than a page has.
const LENGTHS: [usize; 5] = [1, 7, 127, 1025, 100_003];

/// Computes x = 3 x + i.
fn codelet() -> Arc<Codelet> {
    Arc::new(Codelet {
        name: "mix".into(),
        host: Some(HostCode::Kernel(|args, _first, units| {
            let HostValue::Memory { address, bytes } = args[0] else {
                return;
            };
            assert!(units.end * 4 <= bytes && address.cast::<u32>().is_aligned());
            for i in units {
                // SAFETY: the memory has a number for each unit.
                unsafe {
                    let x = address.cast::<u32>().add(i as usize);
                    x.write(x.read().wrapping_mul(3).wrapping_add(i as u32));
                }
            }
        })),
        opencl: Some(OpenClKernel {
            source: KernelSource::new(
                "__kernel void advance(__global uint *x) {
                    size_t i = get_global_id(0);
                    x[i] = 3 * x[i] + (uint)i;
                }",
                "advance.cl",
                "advance",
                "",
            ),
            fp64: false,
            shape: Shape::Of(|units, _| NdRange::new(vec![(units.end - units.start) as usize])),
        }),
        library: None,
    })
}

fn sim(data: bool) -> Sim {
    let nowhere = MachineStore::at("/nonexistent");
    let machine = nowhere.find("k40").expect("a shipped machine");
    let options = SimOptions {
        data,
        ..SimOptions::default()
    };
    Sim::new(&machine, options).expect("a simulator")
}

/// The runtimes with data, by name.
fn runtimes() -> Vec<(&'static str, Box<dyn Runtime>)> {
    vec![
        ("the host", Box::new(pocl::open("host:1"))),
        ("PoCL in host memory", Box::new(pocl::open("cpu:1"))),
        ("PoCL with memory", Box::new(pocl::open("cpu:1=own"))),
        (
            "the host and PoCL",
            Box::new(pocl::open("host:1,cpu:1=own")),
        ),
        ("the simulator", Box::new(sim(true))),
    ]
}

/// A device, a queue of it, and a buffer where it has memory of its own.
struct Lane {
    queue: QueueId,
    buffer: Option<BufferId>,
}

/// A lane of each device.
fn lanes(runtime: &mut dyn Runtime, bytes: u64) -> Vec<Lane> {
    let own: Vec<bool> = (runtime.devices().iter())
        .map(|device| !device.shares_host_memory)
        .collect();
    let lane = |(index, own): (usize, bool)| Lane {
        queue: runtime.queue(DeviceId(index)).expect("a queue"),
        buffer: own.then(|| runtime.alloc(DeviceId(index), bytes).expect("a buffer")),
    };
    own.into_iter().enumerate().map(lane).collect()
}

/// Enqueues the codelet over the numbers of a host memory, with the copies that it needs.
fn mix(runtime: &mut dyn Runtime, lane: &Lane, memory: HostMemoryId, numbers: usize) {
    let bytes = 4 * numbers as u64;
    let target = lane.buffer.map_or(Memory::Host(memory), Memory::Device);
    let launch = Command::Launch(Launch {
        codelet: codelet(),
        units: 0..numbers as u64,
        args: vec![Value::Memory(target)],
        cost: Cost {
            flops: 2.0 * numbers as f64,
            bytes: 2.0 * bytes as f64,
        },
    });
    let copies = lane.buffer.map(|buffer| {
        let write = Command::write(memory, 0..bytes, buffer, 0);
        (write, Command::read(buffer, 0, memory, 0..bytes))
    });
    let (write, read) = copies.unzip();
    for command in write.into_iter().chain([launch]).chain(read) {
        runtime.enqueue(lane.queue, command, &[]).expect("enqueued");
    }
}

fn finish(runtime: &mut dyn Runtime) {
    while let Some(done) = runtime.wait(None).expect("a completion") {
        assert_eq!(done.status, Status::Done);
    }
}

/// What [`mix`] computes.
fn reference(numbers: &mut [u32]) {
    for (i, x) in numbers.iter_mut().enumerate() {
        *x = x.wrapping_mul(3).wrapping_add(i as u32);
    }
}

fn numbers(count: usize) -> Vec<u32> {
    let spread = |i: u32| i.wrapping_mul(2_654_435_761);
    (0..count as u32).map(spread).collect()
}

#[test]
fn vectors_are_computed_in_place_and_return() {
    for (name, mut runtime) in runtimes() {
        let lanes = lanes(runtime.as_mut(), 4 * 100_003);
        for count in LENGTHS {
            let given = numbers(count);
            let mut expected = given.clone();
            let first = given.as_ptr();
            let memory = runtime.adopt_host(given.into()).expect("adopted");
            // The host, too, reaches it as any host memory.
            let second: &mut [u8] = runtime.host_range(memory, 1..3).expect("its bytes");
            second[0] ^= 0x55;
            expected[0] ^= 0x5500;
            for lane in &lanes {
                mix(runtime.as_mut(), lane, memory, count);
                finish(runtime.as_mut());
                reference(&mut expected);
            }
            let taken = runtime.take_host(memory).expect("no command uses it");
            let taken: Vec<u32> = taken.into_owner().expect("a vector");
            assert_eq!(taken.as_ptr(), first, "{name} copied {count} numbers");
            assert_eq!(taken, expected, "{name} with {count} numbers");
            let gone = runtime.host_bytes(memory).map(drop);
            assert!(matches!(gone, Err(RuntimeError::Unknown { .. })), "{name}");
        }
    }
}

#[test]
fn memory_can_be_taken_as_soon_as_its_last_command_has_completed() {
    for (name, mut runtime) in runtimes() {
        let lanes = lanes(runtime.as_mut(), 4 * 1025);
        let mut given = numbers(1025);
        let mut expected = given.clone();
        for round in 0..100 {
            let memory = runtime.adopt_host(given.into()).expect("adopted");
            let lane = &lanes[round % lanes.len()];
            mix(runtime.as_mut(), lane, memory, 1025);
            reference(&mut expected);
            finish(runtime.as_mut());
            let taken = runtime.take_host(memory).expect("every command completed");
            given = taken.into_owner().expect("a vector");
            assert_eq!(given, expected, "{name}, round {round}");
        }
    }
}

#[test]
fn memory_in_use_is_busy() {
    // Nothing ends in the simulator before it is waited for.
    let mut runtime = sim(true);
    let lanes = lanes(&mut runtime, 28);
    for lane in &lanes {
        let memory = runtime.adopt_host(numbers(7).into()).expect("adopted");
        mix(&mut runtime, lane, memory, 7);
        let busy = runtime.take_host(memory).map(drop);
        assert!(matches!(busy, Err(RuntimeError::Busy)), "{busy:?}");
        let busy = runtime.host_bytes(memory).map(drop);
        assert!(matches!(busy, Err(RuntimeError::Busy)), "{busy:?}");
        finish(&mut runtime);
        let taken = runtime.take_host(memory).expect("no command uses it");
        let mut expected = numbers(7);
        reference(&mut expected);
        assert_eq!(taken.into_owner::<Vec<u32>>().unwrap(), expected);
    }
}

#[test]
fn memory_stays_busy_until_its_commands_without_events_are_covered() {
    let mut runtime = pocl::open("cpu:1=own");
    let queue = runtime.queue(DeviceId(0)).expect("a queue");
    let buffer = runtime.alloc(DeviceId(0), 28).expect("a buffer");
    let memory = runtime.adopt_host(numbers(7).into()).expect("adopted");
    let write = Command::write(memory, 0..28, buffer, 0);
    runtime.submit(queue, write, &[], None).expect("submitted");
    let busy = runtime.take_host(memory).map(drop);
    assert!(matches!(busy, Err(RuntimeError::Busy)), "{busy:?}");
    runtime.finish(queue);
    assert!(runtime.take_host(memory).is_ok());
}

#[test]
fn copies_out_of_range_are_refused_as_for_other_memory() {
    for (name, mut runtime) in runtimes() {
        let lanes = lanes(runtime.as_mut(), 1 << 20);
        let Some(lane) = lanes.iter().find(|lane| lane.buffer.is_some()) else {
            continue;
        };
        let buffer = lane.buffer.expect("found by it");
        let adopted = runtime.adopt_host(numbers(7).into()).expect("adopted");
        let allocated = runtime.alloc_host(28).expect("host memory");
        for (offset, bytes) in [(0, 29), (28, 1), (u64::MAX, 8), (27, 2)] {
            let texts = [adopted, allocated].map(|memory| {
                let copy = Command::Copy {
                    from: Location::host(memory, offset),
                    to: Location::device(buffer, 0),
                    rows: Rows::one(bytes),
                };
                let refused = runtime.enqueue(lane.queue, copy, &[]);
                refused.expect_err("out of range").to_string()
            });
            assert_eq!(texts[0], texts[1], "{name}");
        }
        for memory in [adopted, allocated] {
            let whole = Command::write(memory, 0..28, buffer, 0);
            runtime.enqueue(lane.queue, whole, &[]).expect("in range");
            finish(runtime.as_mut());
            assert_eq!(runtime.host_bytes(memory).expect("its bytes").len(), 28);
        }
    }
}

/// Bytes from some on, whose owner counts its drops.
struct OwnedBytes {
    bytes: Vec<u64>,
    range: Range<usize>,
    drops: Arc<AtomicUsize>,
}

impl OwnedBytes {
    /// `count` numbers, the first at `begin` bytes behind a multiple of 64.
    fn new(count: usize, begin: usize, drops: &Arc<AtomicUsize>) -> Self {
        let mut bytes = vec![0u64; (4 * count + begin).div_ceil(8) + 8];
        let line = bytes.as_ptr().cast::<u8>().align_offset(64);
        let range = line + begin..line + begin + 4 * count;
        let all: &mut [u8] = bytemuck::cast_slice_mut(&mut bytes);
        all[range.clone()].copy_from_slice(bytemuck::cast_slice(&numbers(count)));
        Self {
            bytes,
            range,
            drops: Arc::clone(drops),
        }
    }
}

impl AsMut<[u8]> for OwnedBytes {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.bytes)[self.range.clone()]
    }
}

impl Drop for OwnedBytes {
    fn drop(&mut self) {
        self.drops.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn too_little_alignment_is_refused_and_the_memory_returns() {
    let drops = Arc::default();
    for (name, mut runtime) in runtimes() {
        for begin in [1, 4, 8, 24] {
            let part = AdoptedMemory::new(OwnedBytes::new(99, begin, &drops));
            let refused = runtime.adopt_host(part).expect_err("not aligned");
            let text = refused.to_string();
            let aligned = format!("aligned to {} bytes", begin & begin.wrapping_neg());
            assert!(text.contains(&aligned), "{name}: {text}");
            assert!(text.contains("need 16;"), "{name}: {text}");
            let before = drops.load(Ordering::Relaxed);
            assert!(refused.memory.into_owner::<OwnedBytes>().is_ok());
            assert_eq!(drops.load(Ordering::Relaxed), before + 1);
        }
    }
}

#[test]
fn sixteen_bytes_of_alignment_suffice() {
    let drops = Arc::default();
    for (name, mut runtime) in runtimes() {
        let lanes = lanes(runtime.as_mut(), 4 * 1025);
        for begin in [16, 32, 48] {
            let part = AdoptedMemory::new(OwnedBytes::new(1025, begin, &drops));
            let memory = runtime.adopt_host(part).expect("adopted");
            let mut expected = numbers(1025);
            for lane in &lanes {
                mix(runtime.as_mut(), lane, memory, 1025);
                finish(runtime.as_mut());
                reference(&mut expected);
            }
            let bytes: &[u8] = runtime.host_bytes(memory).expect("its bytes");
            assert_eq!(bytes, bytemuck::cast_slice::<_, u8>(&expected), "{name}");
        }
    }
}

#[test]
fn owners_are_dropped_once_whoever_drops_them() {
    for index in 0..runtimes().len() {
        let drops = Arc::default();
        let dropped = || AtomicUsize::load(&drops, Ordering::Relaxed);
        let (name, mut runtime) = runtimes().swap_remove(index);
        let adopt = |runtime: &mut dyn Runtime| {
            let part = AdoptedMemory::new(OwnedBytes::new(1025, 0, &drops));
            runtime.adopt_host(part).expect("adopted")
        };
        let lanes = lanes(runtime.as_mut(), 4 * 1025);
        let (taken, unused) = (adopt(runtime.as_mut()), adopt(runtime.as_mut()));
        let (freed, left) = (adopt(runtime.as_mut()), adopt(runtime.as_mut()));
        drop(runtime.take_host(taken).expect("unused"));
        assert_eq!(dropped(), 1, "{name}");
        runtime.free_host(unused);
        assert_eq!(dropped(), 2, "{name}");
        for lane in &lanes {
            for memory in [freed, left] {
                mix(runtime.as_mut(), lane, memory, 1025);
            }
        }
        // Its commands keep it until they end.
        runtime.free_host(freed);
        drop(runtime);
        assert_eq!(dropped(), 4, "{name}");
    }
}

#[test]
fn a_simulation_without_data_leaves_the_bytes_alone() {
    let mut runtime = sim(false);
    let lanes = lanes(&mut runtime, 28);
    let memory = runtime.adopt_host(numbers(7).into()).expect("adopted");
    for lane in &lanes {
        mix(&mut runtime, lane, memory, 7);
    }
    finish(&mut runtime);
    let none = runtime.host_bytes(memory).map(drop);
    assert!(matches!(none, Err(RuntimeError::NoData)), "{none:?}");
    let taken = runtime.take_host(memory).expect("no command uses it");
    assert_eq!(taken.into_owner::<Vec<u32>>().unwrap(), numbers(7));
}
