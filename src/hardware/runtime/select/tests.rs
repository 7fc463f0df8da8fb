//! Opening what this machine has. PoCL, or another OpenCL CPU device with
//! sub-devices, must be installed.

use super::*;
use crate::machine::DeviceKind;

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
