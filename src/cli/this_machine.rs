//! The machine that the program runs on: its devices, its counters and sensors, its
//! fingerprint, and its measurement.

use std::sync::Arc;

use pdawl::codelet::copy;
use pdawl::engine;
use pdawl::engine::measure::{MachineDescription, MeasureOptions};
use pdawl::machine::{Device, DeviceKind, Fingerprint, Host, MachineFile};
use pdawl::report::instruments::Instruments;
use pdawl::runtime::opencl;
use pdawl::runtime::select::{self, Selection};
use pdawl_profiler::{counters, telemetry};

use super::failure::{Failure, refused, wrong_devices};
use super::size::ByteSize;

/// Every device of this machine, and warnings about its configuration.
///
/// # Errors
/// When not even the host can be opened.
pub fn devices() -> Result<(Vec<Device>, Vec<String>), Failure> {
    let host: Selection = "host".parse().map_err(wrong_devices)?;
    let (runtime, mut warnings) = select::open(Some(&host), false).map_err(refused)?;
    let mut devices = runtime.devices().to_vec();
    let discovery = opencl::discover();
    devices.extend(discovery.devices.into_iter().map(|found| found.info));
    warnings.extend(Host::detect().warnings());
    warnings.extend(discovery.warnings);
    Ok((devices, warnings))
}

/// The counters and sensors that profiles can use here. Every counter is tried, and
/// every GPU is asked for its sensors.
pub fn instruments() -> Instruments {
    Instruments {
        counters: counters::availability(),
        telemetry: telemetry::availability(),
    }
}

/// Measures this machine, with copies of at most `copy_size`, as a machine file of this
/// name. `progress` gets the device and the quantity that is measured next.
///
/// # Errors
/// When the devices cannot be opened or measured.
pub fn measure(
    name: &str,
    copy_size: ByteSize,
    progress: &mut dyn FnMut(&str, &str),
) -> Result<MachineFile, Failure> {
    let host = Host::detect();
    let (mut runtime, notes) = select::open(None, false).map_err(refused)?;
    let about = MachineDescription {
        name: name.to_owned(),
        title: format!("{} with {} cores", host.model, host.cores.len()),
        description: format!("Measured by `pdawl machine save`. {}", notes.join(" ")),
        fingerprint: Some(fingerprint().to_string()),
        sockets: host.sockets,
        l2: host.l2.map(|cache| cache.bytes),
        l3: host.l3.map(|cache| cache.bytes),
    };
    let options = MeasureOptions {
        // Several copies exist at the same time.
        bytes: copy_size.0.min(host.memory.obtainable(0) / 8),
        ..MeasureOptions::default()
    };
    let copy = Arc::new(copy::codelet());
    engine::measure::measure(runtime.as_mut(), &copy, about, options, progress).map_err(Failure::of)
}

/// The fingerprint of this machine: its CPU and its GPUs.
pub fn fingerprint() -> Fingerprint {
    let host = Host::detect();
    let discovery = opencl::discover();
    let gpus = (discovery.devices.iter())
        .filter(|found| found.info.kind != DeviceKind::Cpu)
        .map(|found| found.info.model.as_str());
    Fingerprint::of(&host.model, host.online, gpus)
}
