//! The platform `pdawl` and its devices.

use std::sync::{LazyLock, OnceLock};

use opencl_sys::{
    CL_DEVICE_TYPE_ACCELERATOR, CL_DEVICE_TYPE_ALL, CL_DEVICE_TYPE_CPU, CL_DEVICE_TYPE_CUSTOM,
    CL_DEVICE_TYPE_DEFAULT, CL_DEVICE_TYPE_GPU, CL_INVALID_DEVICE_TYPE, CL_INVALID_PLATFORM,
    cl_device_type, cl_platform_id,
};

use crate::device::Device;
use crate::dispatch;
use crate::drivers::{self, RealDevice};
use crate::handle::{Ref, kind};
use crate::settings::settings;
use crate::status::Fallible;

pub mod calls;

/// The platform.
pub struct Platform {
    /// The devices that programs see.
    pub devices: Vec<Ref<Device>>,
}

kind!(Platform, CL_INVALID_PLATFORM);

/// The only platform of this library.
pub fn platform() -> &'static Ref<Platform> {
    static PLATFORM: LazyLock<Ref<Platform>> = LazyLock::new(|| Ref::new(open()));
    &PLATFORM
}

static OPENS: OnceLock<fn(&[RealDevice])> = OnceLock::new();

/// Has a function called with the devices when the program first asks for the platform.
pub fn when_it_opens(function: fn(&[RealDevice])) {
    let _ = OPENS.set(function);
}

fn open() -> Platform {
    let settings = settings();
    let mut real = drivers::devices(dispatch::get_platforms());
    // The first device is the one that most commands use: a GPU if there is one.
    real.sort_by_key(|device| match device.kind {
        kind if kind & CL_DEVICE_TYPE_GPU != 0 => 0,
        kind if kind & CL_DEVICE_TYPE_CPU != 0 => 2,
        _ => 1,
    });
    if !settings.devices.is_empty() {
        real = chosen(&real, &settings.devices);
    }
    if let Some(opens) = OPENS.get() {
        opens(&real);
    }
    let devices = match settings.virtual_devices {
        _ if real.is_empty() => Vec::new(),
        Some(count) => (0..count).map(|_| Device::made_of(real.clone())).collect(),
        None => real
            .into_iter()
            .map(|device| Device::made_of(vec![device]))
            .collect(),
    };
    Platform {
        devices: devices.into_iter().map(Ref::new).collect(),
    }
}

/// The devices of these names, in the names' order. The kinds `cpu` and `gpu` name all
/// devices of their kind.
fn chosen(real: &[RealDevice], names: &[String]) -> Vec<RealDevice> {
    let mut chosen: Vec<RealDevice> = Vec::new();
    for name in names {
        let kind = match name.as_str() {
            "gpu" => CL_DEVICE_TYPE_GPU,
            "cpu" => CL_DEVICE_TYPE_CPU,
            _ => 0,
        };
        let matching = real
            .iter()
            .filter(|device| device.name == *name || device.kind & kind != 0);
        let before = chosen.len();
        for device in matching {
            if chosen.iter().all(|other| other.name != device.name) {
                chosen.push(device.clone());
            }
        }
        if chosen.len() == before {
            eprintln!("pdawl: no OpenCL device is called {name}; `pdawl devices` lists them");
        }
    }
    chosen
}

/// The platform of a handle; a null handle means the only one.
pub fn of(handle: cl_platform_id) -> Fallible<Ref<Platform>> {
    if handle.is_null() {
        return Ok(platform().clone());
    }
    Ref::of(handle)
}

/// The devices of a type.
pub fn of_type(platform: &Platform, kind: cl_device_type) -> Fallible<Vec<Ref<Device>>> {
    let known = CL_DEVICE_TYPE_DEFAULT
        | CL_DEVICE_TYPE_CPU
        | CL_DEVICE_TYPE_GPU
        | CL_DEVICE_TYPE_ACCELERATOR
        | CL_DEVICE_TYPE_CUSTOM;
    if kind == CL_DEVICE_TYPE_ALL {
        return Ok(platform.devices.clone());
    }
    if kind == 0 || kind & !known != 0 {
        return Err(CL_INVALID_DEVICE_TYPE);
    }
    let first = platform.devices.first();
    let is_default =
        |device: &&Ref<Device>| kind & CL_DEVICE_TYPE_DEFAULT != 0 && Some(*device) == first;
    let devices = platform.devices.iter();
    let devices = devices.filter(|device| device.kind & kind != 0 || is_default(device));
    Ok(devices.cloned().collect())
}
