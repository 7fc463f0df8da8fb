//! The simulator, through the trait that engines see.

mod data;
mod faults;
mod links;
mod memory;
mod order;
mod rates;
mod series;

use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::codelet::Value;
use crate::codelet::{
    Codelet, Cost, HostCode, HostValue, KernelSource, NdRange, OpenClKernel, Shape,
};
use crate::machine::MachineStore;
use crate::runtime::{
    BufferId, CommandKind, Devices, HostMemoryId, Launch, Location, Notice, Runtime, Stages,
};

/// A shipped machine, or the tests' own.
fn machine(name: &str) -> MachineFile {
    if name == "pcie5" {
        let text = include_str!("pcie5.toml");
        return MachineFile::parse(text, "pcie5.toml").expect("a machine");
    }
    let nowhere = MachineStore::at("/nonexistent");
    nowhere.find(name).expect("a shipped machine")
}

fn sim(name: &str) -> Sim {
    Sim::new(&machine(name), SimOptions::default()).expect("a simulator")
}

/// Adds 1 to every u64 of argument 0.
fn increment() -> Arc<Codelet> {
    unsafe fn run(args: &[HostValue], _first: u64, _units: std::ops::Range<u64>) {
        let HostValue::Memory { address, bytes } = args[0] else {
            return;
        };
        // SAFETY: the memory has `bytes` bytes, page-aligned, and the
        // simulator runs nothing else meanwhile.
        let numbers =
            unsafe { std::slice::from_raw_parts_mut(address.cast::<u64>(), bytes as usize / 8) };
        for n in numbers {
            *n = n.wrapping_add(1);
        }
    }
    Arc::new(Codelet {
        name: "increment".into(),
        host: Some(HostCode::Kernel(run)),
        opencl: Some(OpenClKernel {
            source: KernelSource::new("", "none", "increment", ""),
            fp64: true,
            shape: Shape::Of(|_, _| NdRange::new(vec![1])),
        }),
        library: None,
    })
}

/// A launch over memory with a cost of its own.
fn launch(memory: Memory, units: u64, cost: Cost) -> Command {
    Command::Launch(Launch {
        codelet: increment(),
        units: 0..units,
        args: vec![Value::Memory(memory)],
        cost,
    })
}

fn traffic(bytes: f64) -> Cost {
    Cost { flops: 0.0, bytes }
}

/// Host memory and a buffer on a device of the same size, with its transfers.
struct Pair {
    host: HostMemoryId,
    buffer: BufferId,
    bytes: u64,
}

impl Pair {
    fn new(sim: &mut Sim, device: usize, bytes: u64) -> Self {
        Self {
            host: sim.alloc_host(bytes).expect("host memory"),
            buffer: sim.alloc(DeviceId(device), bytes).expect("a buffer"),
            bytes,
        }
    }

    fn write(&self) -> Command {
        Command::write(self.host, 0..self.bytes, self.buffer, 0)
    }

    fn read(&self) -> Command {
        Command::read(self.buffer, 0, self.host, 0..self.bytes)
    }

    fn launch(&self, cost: Cost) -> Command {
        launch(Memory::Device(self.buffer), 1024, cost)
    }
}

/// Waits until nothing is in flight; every completion, as it comes.
fn drain(sim: &mut Sim) -> Vec<Completion> {
    let mut all = Vec::new();
    while let Some(completion) = sim.wait(None).expect("a wait") {
        assert!(sim.now() >= completion.ended, "completed before its end");
        all.push(completion);
    }
    all
}

fn find(completions: &[Completion], event: EventId) -> &Completion {
    let found = completions.iter().find(|c| c.event == event);
    found.expect("the command completed")
}

fn seconds(from: Nanos, to: Nanos) -> f64 {
    to.saturating_sub(from) as f64 * 1e-9
}

#[track_caller]
fn assert_near(value: f64, expected: f64, tolerance: f64) {
    let off = (value / expected - 1.0).abs();
    assert!(off <= tolerance, "{value} is {off} away from {expected}");
}
