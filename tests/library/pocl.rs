//! Devices that every machine can have: the host's cores and an OpenCL CPU device
//! (PoCL).

use pdawl_api::machine::DeviceKind;
use pdawl_api::machine::host::allowed_cores;
use pdawl_api::runtime::opencl::{self, FoundDevice};
use pdawl_api::runtime::select::{Selection, open_union};
use pdawl_api::runtime::union::Union;

/// The OpenCL CPU device that these tests need.
pub fn cpu_device() -> FoundDevice {
    let discovery = opencl::discover();
    let mut devices = discovery.devices.into_iter();
    let cpu = devices
        .find(|found| found.info.kind == DeviceKind::Cpu && found.info.sub_devices.by_counts);
    cpu.unwrap_or_else(|| {
        panic!(
            "these tests need an OpenCL CPU device: apt-get install pocl-opencl-icd (found none; \
             {:?})",
            discovery.warnings
        )
    })
}

/// Opens a selection such as `host:1,cpu:1=own`, where `cpu` stands for the OpenCL
/// CPU device. The GPUs of `PDAWL_TEST_GPUS=cuda0,cuda1` take the places of those with
/// memory of their own, as far as there are enough.
pub fn open(devices: &str) -> Union {
    let cpu = cpu_device();
    let gpus = std::env::var("PDAWL_TEST_GPUS").unwrap_or_default();
    let devices = (gpus.split(',').filter(|gpu| !gpu.is_empty()))
        .fold(devices.to_owned(), |all, gpu| {
            all.replacen("cpu:1=own", gpu, 1)
        });
    let cores = allowed_cores(None).len();
    assert!(cores >= 2, "these tests need two cores, and have {cores}");
    let selection: Selection = (devices.replace("cpu", &cpu.info.name).parse())
        .unwrap_or_else(|error| panic!("{devices}: {error}"));
    match open_union(Some(&selection), true) {
        Ok((union, _)) => union,
        Err(error) => panic!("{devices}: {error}"),
    }
}
