//! This machine: what is found on it, what runs on it can be observed with,
//! which one it is, and measuring it.

use std::sync::Arc;

use pdawl::codelet::copy;
use pdawl::engine::measure::{self, About, MeasureOptions};
use pdawl::machine::{Device, DeviceKind, Fingerprint, Host, MachineFile};
use pdawl::report::instruments::Instruments;
use pdawl::runtime::opencl;
use pdawl::runtime::select::{self, Selection};
use pdawl_profiler::{counters, telemetry};

use super::failure::{Failure, refused, wrong_devices};
use super::size::ByteSize;

/// Every device of this machine, and what would hurt.
///
/// # Errors
/// When not even the host can be opened.
pub fn found() -> Result<(Vec<Device>, Vec<String>), Failure> {
    let host: Selection = "host".parse().map_err(wrong_devices)?;
    let (runtime, mut warnings) = select::open(Some(&host), false).map_err(refused)?;
    let mut devices = runtime.devices().to_vec();
    let discovery = opencl::discover();
    devices.extend(discovery.devices.into_iter().map(|found| found.info));
    warnings.extend(Host::detect().warnings());
    warnings.extend(discovery.warnings);
    Ok((devices, warnings))
}

/// What runs here can be observed with: every counter is tried, and every GPU
/// asked that can be.
pub fn instruments() -> Instruments {
    Instruments {
        counters: counters::availability(),
        telemetry: telemetry::availability(),
    }
}

/// This machine, measured with copies of this size, under a name. `progress` is told the device and
/// what of it is measured next.
///
/// # Errors
/// When the devices cannot be opened or measured.
pub fn measured(
    name: &str,
    copy_size: ByteSize,
    progress: &mut dyn FnMut(&str, &str),
) -> Result<MachineFile, Failure> {
    let host = Host::detect();
    let (mut runtime, notes) = select::open(None, false).map_err(refused)?;
    let about = About {
        name: name.to_owned(),
        title: format!("{} with {} cores", host.model, host.cores.len()),
        description: format!("Measured by `pdawl machine save`. {}", notes.join(" ")),
        fingerprint: Some(fingerprint().to_string()),
        sockets: host.sockets,
        l2: host.l2.map(|cache| cache.bytes),
        l3: host.l3.map(|cache| cache.bytes),
    };
    let options = MeasureOptions {
        // Several copies are kept at a time.
        bytes: copy_size.0.min(host.memory.obtainable(0) / 8),
        ..MeasureOptions::default()
    };
    let copy = Arc::new(copy::codelet());
    measure::measure(runtime.as_mut(), &copy, about, options, progress).map_err(Failure::of)
}

/// Which machine this is.
pub fn fingerprint() -> Fingerprint {
    let host = Host::detect();
    let discovery = opencl::discover();
    let gpus = (discovery.devices.iter())
        .filter(|found| found.info.kind != DeviceKind::Cpu)
        .map(|found| found.info.model.as_str());
    Fingerprint::of(&host.model, host.online, gpus)
}
