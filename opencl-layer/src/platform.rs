//! The platform `pdawl` and its devices.

use std::ptr;
use std::sync::LazyLock;

use opencl_sys::{
    CL_DEVICE_NOT_FOUND, CL_DEVICE_TYPE_ACCELERATOR, CL_DEVICE_TYPE_ALL, CL_DEVICE_TYPE_CPU,
    CL_DEVICE_TYPE_CUSTOM, CL_DEVICE_TYPE_DEFAULT, CL_DEVICE_TYPE_GPU, CL_INVALID_DEVICE_TYPE,
    CL_INVALID_PLATFORM, CL_INVALID_VALUE, CL_PLATFORM_EXTENSIONS,
    CL_PLATFORM_EXTENSIONS_WITH_VERSION, CL_PLATFORM_HOST_TIMER_RESOLUTION,
    CL_PLATFORM_ICD_SUFFIX_KHR, CL_PLATFORM_NAME, CL_PLATFORM_NUMERIC_VERSION, CL_PLATFORM_PROFILE,
    CL_PLATFORM_VENDOR, CL_PLATFORM_VERSION, cl_device_id, cl_device_type, cl_int, cl_platform_id,
    cl_platform_info, cl_uint, cl_ulong,
};

use crate::answer::Answer;
use crate::device::Device;
use crate::drivers::{self, RealDevice};
use crate::handle::{Ref, kind};
use crate::leaks;
use crate::report;
use crate::settings::settings;
use crate::status::{Fallible, status};
use crate::version;

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

fn open() -> Platform {
    leaks::watch();
    let settings = settings();
    let mut real = drivers::devices(clIcdGetPlatformIDsKHR);
    // The first device is the one that most commands use: a GPU if there is one.
    real.sort_by_key(|device| match device.kind {
        kind if kind & CL_DEVICE_TYPE_GPU != 0 => 0,
        kind if kind & CL_DEVICE_TYPE_CPU != 0 => 2,
        _ => 1,
    });
    if !settings.devices.is_empty() {
        real = chosen(&real, &settings.devices);
    }
    report::begin(&real);
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

/// `clGetPlatformIDs`.
pub unsafe extern "C" fn get_platform_ids(
    entries: cl_uint,
    platforms: *mut cl_platform_id,
    count: *mut cl_uint,
) -> cl_int {
    status(|| {
        if (entries == 0 && !platforms.is_null()) || (platforms.is_null() && count.is_null()) {
            return Err(CL_INVALID_VALUE);
        }
        let platform = platform();
        // SAFETY: OpenCL's promises about both pointers.
        unsafe { write_list(&[platform.handle()], entries, platforms, count) };
        Ok(())
    })
}

/// Called by loaders.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clIcdGetPlatformIDsKHR(
    entries: cl_uint,
    platforms: *mut cl_platform_id,
    count: *mut cl_uint,
) -> cl_int {
    // SAFETY: the same promises.
    unsafe { get_platform_ids(entries, platforms, count) }
}

/// Writes at most `entries` handles, and how many there are.
///
/// # Safety
/// `list` is null or has room for `entries` handles; `count` is null or valid.
pub unsafe fn write_list(
    handles: &[*mut libc::c_void],
    entries: cl_uint,
    list: *mut *mut libc::c_void,
    count: *mut cl_uint,
) {
    if !list.is_null() {
        let fits = handles.len().min(entries as usize);
        // SAFETY: the caller promises room for `entries` handles.
        unsafe { ptr::copy_nonoverlapping(handles.as_ptr(), list, fits) };
    }
    if !count.is_null() {
        // SAFETY: the caller promises it.
        unsafe { *count = handles.len() as cl_uint };
    }
}

/// The extensions of the platform.
const EXTENSIONS: &str = "cl_khr_icd";

/// `clGetPlatformInfo`.
pub unsafe extern "C" fn get_platform_info(
    handle: cl_platform_id,
    what: cl_platform_info,
    size: usize,
    value: *mut libc::c_void,
    needed: *mut usize,
) -> cl_int {
    status(|| {
        of(handle)?;
        // SAFETY: OpenCL's promises about both pointers.
        let answer = unsafe { Answer::to(size, value, needed) };
        match what {
            CL_PLATFORM_NUMERIC_VERSION => return version::ours(answer),
            CL_PLATFORM_EXTENSIONS_WITH_VERSION => {
                return version::extensions(answer, EXTENSIONS);
            }
            // No host clock is compared with devices'.
            CL_PLATFORM_HOST_TIMER_RESOLUTION => return answer.value::<cl_ulong>(0),
            _ => {}
        }
        answer.text(match what {
            CL_PLATFORM_PROFILE => "FULL_PROFILE",
            CL_PLATFORM_VERSION => concat!("OpenCL 1.2 pdawl ", env!("CARGO_PKG_VERSION")),
            CL_PLATFORM_NAME | CL_PLATFORM_VENDOR => "pdawl",
            CL_PLATFORM_EXTENSIONS => EXTENSIONS,
            CL_PLATFORM_ICD_SUFFIX_KHR => "PDAWL",
            _ => return Err(CL_INVALID_VALUE),
        })
    })
}

/// The platform of a handle; a null handle means the only one.
pub fn of(handle: cl_platform_id) -> Fallible<Ref<Platform>> {
    if handle.is_null() {
        return Ok(platform().clone());
    }
    Ref::of(handle)
}

/// `clGetDeviceIDs`.
pub unsafe extern "C" fn get_device_ids(
    handle: cl_platform_id,
    kind: cl_device_type,
    entries: cl_uint,
    devices: *mut cl_device_id,
    count: *mut cl_uint,
) -> cl_int {
    status(|| {
        let platform = of(handle)?;
        if (entries == 0 && !devices.is_null()) || (devices.is_null() && count.is_null()) {
            return Err(CL_INVALID_VALUE);
        }
        let handles: Vec<_> = of_type(&platform, kind)?.iter().map(Ref::handle).collect();
        if handles.is_empty() {
            return Err(CL_DEVICE_NOT_FOUND);
        }
        // SAFETY: OpenCL's promises about both pointers.
        unsafe { write_list(&handles, entries, devices, count) };
        Ok(())
    })
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
