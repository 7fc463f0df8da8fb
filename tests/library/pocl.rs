//! The devices that every machine can have: the host's cores and PoCL's.

use pdawl::machine::DeviceKind;
use pdawl::machine::host::allowed_cores;
use pdawl::runtime::opencl;
use pdawl::runtime::select::{Selection, open_union};
use pdawl::runtime::union::Union;

/// Opens `host:1,cpu:1=own`, say, where `cpu` is the OpenCL CPU device.
pub fn open(devices: &str) -> Union {
    let discovery = opencl::discover();
    let cpu = (discovery.devices.iter())
        .find(|found| found.info.kind == DeviceKind::Cpu && found.info.sub_devices.by_counts);
    let Some(cpu) = cpu else {
        panic!(
            "these tests need an OpenCL CPU device: apt-get install pocl-opencl-icd (found none; \
             {:?})",
            discovery.warnings
        );
    };
    let cores = allowed_cores(None).len();
    assert!(cores >= 2, "these tests need two cores, and have {cores}");
    let selection: Selection = (devices.replace("cpu", &cpu.info.name).parse())
        .unwrap_or_else(|error| panic!("{devices}: {error}"));
    match open_union(Some(&selection), true) {
        Ok((union, _)) => union,
        Err(error) => panic!("{devices}: {error}"),
    }
}
