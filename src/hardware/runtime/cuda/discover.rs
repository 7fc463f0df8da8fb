//! Finds CUDA's driver and lists its devices.

use std::ffi::{CStr, c_char};
use std::sync::OnceLock;

use cudarc::driver::sys::{self, CUdevice, CUdevice_attribute, CUresult};

use super::error::{Failure, check};
use super::{Discovery, FoundGpu};
use crate::machine::{Device, DeviceKind, RuntimeKind, SubDeviceSupport};
use crate::runtime::ids::GpuIdentity;
use crate::runtime::process::StartedIn;

/// The oldest driver whose library has all functions that this backend calls, as CUDA
/// counts versions.
const OLDEST: i32 = 11040;

/// Lists the GPUs that CUDA's driver offers. Never fails: a missing, old or broken driver is
/// the reason why there are none.
pub fn discover() -> Discovery {
    match list() {
        Ok(devices) => Discovery {
            devices,
            fault: None,
        },
        Err(fault) => Discovery {
            devices: Vec::new(),
            fault: Some(fault),
        },
    }
}

/// Starts the driver once; its version.
pub(super) fn start() -> Result<i32, String> {
    static STARTED_IN: StartedIn = StartedIn::nobody();
    static STARTED: OnceLock<Result<i32, String>> = OnceLock::new();
    STARTED_IN.start("CUDA")?;
    STARTED.get_or_init(try_start).clone()
}

fn try_start() -> Result<i32, String> {
    // SAFETY: the library is NVIDIA's driver, which may be loaded at any time.
    if !unsafe { sys::is_culib_present() } {
        return Err(
            "there is no CUDA here: no libcuda.so.1, which NVIDIA's driver brings (in a \
             container, pass it in with --gpus)"
                .to_owned(),
        );
    }
    let mut version = 0;
    // SAFETY: the driver writes a number.
    let code = unsafe { sys::cuDriverGetVersion(&mut version) };
    check("cuDriverGetVersion", code).map_err(broken)?;
    if version < OLDEST {
        return Err(format!(
            "the driver is for CUDA {}, and {} or later is needed; update NVIDIA's driver",
            release(version),
            release(OLDEST)
        ));
    }
    // SAFETY: 0 is the only value of the flags.
    match unsafe { sys::cuInit(0) } {
        CUresult::CUDA_ERROR_NO_DEVICE => Err(
            "CUDA's driver finds no GPU; check that one is visible here (nvidia-smi, \
             CUDA_VISIBLE_DEVICES, a container's devices)"
                .to_owned(),
        ),
        code => check("cuInit", code).map(|()| version).map_err(broken),
    }
}

fn broken(failure: Failure) -> String {
    format!(
        "CUDA's driver does not work: {} answers {}",
        failure.call,
        failure.describe()
    )
}

/// A version as people write it.
pub(super) fn release(version: i32) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

fn list() -> Result<Vec<FoundGpu>, String> {
    let version = start()?;
    let mut count = 0;
    // SAFETY: the driver writes a number.
    let code = unsafe { sys::cuDeviceGetCount(&mut count) };
    check("cuDeviceGetCount", code).map_err(broken)?;
    let count = usize::try_from(count).unwrap_or(0);
    let found = (0..count).map(|number| found(number, version).map_err(broken));
    found.collect()
}

/// The driver's handle of a device.
pub(super) fn handle(number: usize) -> Result<CUdevice, Failure> {
    let mut device = 0;
    let number = i32::try_from(number).unwrap_or(i32::MAX);
    // SAFETY: the driver writes a handle, or refuses the number.
    let code = unsafe { sys::cuDeviceGet(&mut device, number) };
    check("cuDeviceGet", code).map(|()| device)
}

/// A property of a device.
pub(super) fn attribute(device: CUdevice, what: CUdevice_attribute) -> Result<i32, Failure> {
    let mut value = 0;
    // SAFETY: the driver writes a number.
    let code = unsafe { sys::cuDeviceGetAttribute(&mut value, what, device) };
    check("cuDeviceGetAttribute", code).map(|()| value)
}

/// A device's properties.
pub(super) fn found(number: usize, version: i32) -> Result<FoundGpu, Failure> {
    use CUdevice_attribute::*;
    let device = handle(number)?;
    let positive = |what| attribute(device, what).map(|value| u32::try_from(value).unwrap_or(0));
    let mut memory = 0;
    // SAFETY: the driver writes a number.
    let code = unsafe { sys::cuDeviceTotalMem_v2(&mut memory, device) };
    check("cuDeviceTotalMem", code)?;
    let clock = positive(CU_DEVICE_ATTRIBUTE_CLOCK_RATE).unwrap_or(0) / 1000;
    let info = Device {
        name: format!("cuda{number}"),
        model: model(device)?,
        kind: DeviceKind::Gpu,
        runtime: RuntimeKind::Cuda,
        compute_units: positive(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        memory: memory as u64,
        max_allocation: memory as u64,
        clock_mhz: (clock > 0).then_some(clock),
        // Kernels compute in its own memory, on GPUs within a CPU's package as well.
        shares_host_memory: false,
        fp64: true,
        sub_devices: SubDeviceSupport::default(),
        // Two copy engines and the compute units overlap.
        queues: 3,
        driver: format!("NVIDIA CUDA {}", release(version)),
        link_bandwidth: None,
        one_way: None,
    };
    let bus = positive(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID).ok();
    let slot = positive(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID).ok();
    Ok(FoundGpu {
        device: number,
        info,
        identity: GpuIdentity {
            uuid: uuid(device),
            pci: bus.zip(slot),
        },
    })
}

/// Ten times a device's compute capability.
pub(super) fn capability(device: CUdevice) -> Result<u32, Failure> {
    use CUdevice_attribute::*;
    let major = attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
    let minor = attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
    Ok(u32::try_from(10 * major + minor).unwrap_or(0))
}

fn model(device: CUdevice) -> Result<String, Failure> {
    let mut name = [0 as c_char; 256];
    // SAFETY: the driver writes at most so many bytes, with a zero at the end.
    let code = unsafe { sys::cuDeviceGetName(name.as_mut_ptr(), name.len() as i32, device) };
    check("cuDeviceGetName", code)?;
    // SAFETY: as above.
    let name = unsafe { CStr::from_ptr(name.as_ptr()) };
    Ok(name.to_string_lossy().trim().to_owned())
}

fn uuid(device: CUdevice) -> Option<[u8; 16]> {
    let mut uuid = sys::CUuuid { bytes: [0; 16] };
    // SAFETY: the driver writes 16 bytes.
    let code = unsafe { sys::cuDeviceGetUuid_v2(&mut uuid, device) };
    check("cuDeviceGetUuid", code).ok()?;
    Some(uuid.bytes.map(|byte| byte as u8)).filter(|uuid| *uuid != [0; 16])
}
