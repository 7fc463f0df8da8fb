//! Opening what this machine has. PoCL, or another OpenCL CPU device with
//! sub-devices, must be installed.

use super::*;
use crate::codelet::Memory;
use crate::codelet::stencil::Precision;
use crate::machine::DeviceKind;
use crate::runtime::{Command, DeviceId, EventId, Launch, Status};
use crate::workload::stencil::Stencil;
use crate::workload::{Divisible, Grid, Ring};

/// The name of the first OpenCL CPU device.
fn opencl_cpu() -> String {
    let discovery = opencl::discover();
    let cpu = discovery
        .devices
        .iter()
        .find(|found| found.info.kind == DeviceKind::Cpu && found.info.sub_devices.by_counts);
    let Some(cpu) = cpu else {
        panic!(
            "this test needs an OpenCL CPU device (PoCL, say); {:?}",
            discovery.warnings
        );
    };
    format!("opencl{}.{}", cpu.platform, cpu.device)
}

fn open_named(text: &str) -> Box<dyn Runtime> {
    let selection: Selection = text.parse().unwrap();
    open(Some(&selection), true).unwrap().0
}

/// Steps of a stencil, each step's rows divided among all devices; every
/// launch waits for the whole step before, so for other backends' events.
fn run(runtime: &mut dyn Runtime, stencil: &Stencil, steps: usize) -> Vec<u8> {
    let bytes = stencil.units() * stencil.unit_bytes();
    let grids = [(); 2].map(|()| runtime.alloc_host(bytes).unwrap());
    stencil
        .initial(0..stencil.units(), runtime.host_bytes(grids[0]).unwrap())
        .unwrap();
    let count = runtime.devices().len();
    let queues: Vec<_> = (0..count)
        .map(|device| runtime.queue(DeviceId(device)).unwrap())
        .collect();
    let ring = |grid| Ring {
        memory: Memory::Host(grid),
        slots: stencil.units(),
        unit: 0,
        slot: 0,
    };
    let part = stencil.units().div_ceil(count as u64);
    let mut before: Vec<EventId> = Vec::new();
    for step in 0..steps {
        let (from, to) = (ring(grids[step % 2]), ring(grids[(step + 1) % 2]));
        let mut events = Vec::new();
        for (device, queue) in queues.iter().enumerate() {
            let begin = device as u64 * part;
            let units = begin..(begin + part).min(stencil.units());
            let command = Command::Launch(Launch {
                codelet: stencil.codelet(),
                units: units.clone(),
                args: stencil.args(units.clone(), &from, &to),
                cost: stencil.cost(&units),
            });
            events.push(runtime.enqueue(*queue, command, &before).unwrap());
        }
        before = events;
    }
    for _ in 0..steps * count {
        let completion = runtime.wait(None).unwrap().unwrap();
        assert_eq!(completion.status, Status::Done);
    }
    runtime.host_bytes(grids[steps % 2]).unwrap().to_vec()
}

#[test]
fn host_and_opencl_compute_as_one_machine() {
    let stencil = Stencil::new(101, 211, None, Precision::F64, 3).unwrap();
    let expected = run(&mut *open_named("host:1"), &stencil, 25);
    let cpu = opencl_cpu();
    for devices in [
        format!("host:1,{cpu}:1"),
        format!("{cpu}:1,{cpu}:1"),
        "host:1,host:1".to_owned(),
    ] {
        let mut runtime = open_named(&devices);
        assert_eq!(runtime.devices().len(), 2);
        assert!(run(&mut *runtime, &stencil, 25) == expected, "{devices}");
    }
}

#[test]
fn without_a_selection_the_host_has_every_core() {
    let (runtime, notes) = open(None, true).unwrap();
    let host = &runtime.devices()[0];
    assert_eq!(host.name, "host");
    assert_eq!(host.compute_units as usize, allowed_cores(None).len());
    assert!(
        runtime.devices()[1..]
            .iter()
            .all(|d| d.kind != DeviceKind::Cpu)
    );
    let left_out = format!("{} (", opencl_cpu());
    assert!(
        notes.iter().any(|note| note.starts_with(&left_out)),
        "{notes:?}"
    );
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    let selection: Selection = "host:1,opencl99.0".parse().unwrap();
    let Err(error) = open(Some(&selection), true) else {
        panic!("opened the hundredth platform");
    };
    assert!(
        error
            .to_string()
            .starts_with("there is no opencl99.0; this machine has host")
    );
}
