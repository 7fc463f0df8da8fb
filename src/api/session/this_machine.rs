//! The machine that the program runs on: its devices, its fingerprint, and its measurement.

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use super::Error;
use crate::codelet::copy;
use crate::engine;
use crate::engine::measure::{MachineDescription, MeasureError, MeasureOptions};
use crate::machine::{Device, DeviceKind, Host, MachineFile};
use crate::profile::kernels::{KernelProfiles, KernelProfilesError, path_of_user};
use crate::runtime::select::{self, Selection};
use crate::runtime::{Runtime, RuntimeError, cuda, opencl};

pub use select::{fingerprint, fingerprint_beside};

/// A GPU that CUDA offers, and the driver that opens it where no devices are named.
#[derive(JsonSchema, Serialize)]
pub struct GpuDriver {
    model: String,
    /// Its name through CUDA, such as `cuda0`.
    cuda: String,
    /// Its name through OpenCL, if that offers it, too.
    opencl: Option<String>,
    /// The name under which it is opened.
    opened: String,
    /// Why it is not opened through CUDA.
    why: Option<String>,
    /// What compiles kernels for it, where it is opened through CUDA.
    compiler: Option<String>,
}

impl fmt::Display for GpuDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} ({}) is opened as {}",
            self.cuda, self.model, self.opened
        )?;
        match (&self.why, &self.compiler) {
            (Some(why), _) => write!(f, ": {why}"),
            (None, Some(compiler)) => write!(f, ": {compiler} compiles its kernels"),
            (None, None) => write!(
                f,
                ", but nothing compiles its kernels: install NVIDIA's OpenCL or NVRTC \
                 (docs/cuda.md)"
            ),
        }
    }
}

/// The devices of this machine.
pub struct ThisMachine {
    pub devices: Vec<Device>,
    pub gpu_drivers: Vec<GpuDriver>,
    /// About its configuration.
    pub warnings: Vec<String>,
}

/// Every device of this machine, through every driver, and warnings about its
/// configuration.
///
/// # Errors
/// When not even the host can be opened.
pub fn devices() -> Result<ThisMachine, Error> {
    let host: Selection = "host".parse()?;
    let (runtime, mut warnings) = select::open(Some(&host), false)?;
    let mut devices = runtime.devices().to_vec();
    let discovery = opencl::discover();
    devices.extend(discovery.devices.iter().map(|found| found.info.clone()));
    let cuda = cuda::discover();
    devices.extend(cuda.devices.iter().map(|found| found.info.clone()));
    let drivers = cuda.devices.iter().map(|gpu| {
        let mut others = discovery.devices.iter();
        let opencl = others.find(|other| other.identity.is(&gpu.identity));
        let opencl = opencl.map(|found| found.info.name.clone());
        let why = select::gpu_runtime().refusal(gpu, &discovery);
        let cuda = gpu.info.name.clone();
        let opened = match (&why, &opencl) {
            (Some(_), Some(opencl)) => opencl.clone(),
            (Some(_), None) => "nothing".to_owned(),
            (None, _) => cuda.clone(),
        };
        GpuDriver {
            model: gpu.info.model.clone(),
            cuda,
            opencl,
            opened,
            why,
            compiler: cuda::compiler::name(gpu, &discovery),
        }
    });
    let gpu_drivers = drivers.collect();
    let has_nvidia = |device: &Device| device.driver.starts_with("NVIDIA");
    if let Some(fault) = cuda.fault.filter(|_| devices.iter().any(has_nvidia)) {
        warnings.push(fault);
    }
    warnings.extend(Host::detect().warnings());
    warnings.extend(discovery.warnings);
    Ok(ThisMachine {
        devices,
        gpu_drivers,
        warnings,
    })
}

/// Measures this machine, with copies of at most `copy_size`, as a machine file of this
/// name. `progress` gets the device and the quantity that is measured next.
///
/// # Errors
/// When the devices cannot be opened or measured.
pub fn measure(
    name: &str,
    copy_size: u64,
    progress: &mut dyn FnMut(&str, &str),
) -> Result<MachineFile, Error> {
    let (mut runtime, notes) = select::open(None, false)?;
    let description = format!("Measured by `pdawl machine save`. {}", notes.join(" "));
    let options = MeasureOptions {
        bytes: copy_size,
        ..MeasureOptions::default()
    };
    let about = (name, description);
    Ok(measured(runtime.as_mut(), about, options, progress)?)
}

/// Measures these devices for a first run, as a machine file.
///
/// # Errors
/// As [`engine::measure::measure`], and figures that no machine has.
pub fn measure_open(runtime: &mut dyn Runtime) -> Result<MachineFile, Error> {
    let about = ("here", "Measured by the first run.".to_owned());
    let machine = measured(runtime, about, MeasureOptions::FIRST, &mut |_, _| {})?;
    machine.check("here")?;
    Ok(machine)
}

fn measured(
    runtime: &mut dyn Runtime,
    (name, description): (&str, String),
    options: MeasureOptions,
    progress: &mut dyn FnMut(&str, &str),
) -> Result<MachineFile, MeasureError> {
    let host = Host::detect();
    let about = MachineDescription {
        name: name.to_owned(),
        title: format!("{} with {} cores", host.model, host.cores.len()),
        description,
        fingerprint: Some(fingerprint().to_string()),
        sockets: host.sockets,
        l2: host.l2.map(|cache| cache.bytes),
        l3: host.l3.map(|cache| cache.bytes),
    };
    let options = MeasureOptions {
        // Several copies exist at the same time.
        bytes: options.bytes.min(host.memory.obtainable(0) / 8),
        ..options
    };
    let copy = Arc::new(copy::codelet());
    engine::measure::measure(runtime, &copy, about, options, progress)
}

/// What is known of kernels and runs on this machine.
///
/// # Errors
/// As [`KernelProfiles::open`].
pub fn kept() -> Result<KernelProfiles, KernelProfilesError> {
    let here = fingerprint();
    KernelProfiles::open(path_of_user(&here)?, &here)
}

/// The devices beside the host's, as they are opened where none are named.
///
/// # Errors
/// When CUDA was chosen and there is none.
pub fn beside_host() -> Result<Vec<Device>, RuntimeError> {
    let mut devices = select::driver_devices(select::gpu_runtime())?;
    devices.retain(|device| device.kind != DeviceKind::Cpu);
    Ok(devices)
}
