//! The drivers of this machine, opened without the loader.
//!
//! ocl-icd asks every platform for its devices while it starts, so calls through the
//! loader would come back here before it is ready. The drivers are therefore found as
//! loaders find them (files that name a library, in a folder) and opened directly.

use std::ffi::{CStr, CString};
use std::path::{Path, PathBuf};
use std::{env, fs, mem, ptr};

use libc::{c_char, c_void};
use opencl_sys::cl_icd::cl_icd_dispatch;
use opencl_sys::{
    CL_DEVICE_IMAGE_SUPPORT, CL_DEVICE_NAME, CL_DEVICE_TYPE, CL_DEVICE_TYPE_ALL, CL_FALSE,
    CL_PLATFORM_NAME, CL_SUCCESS, cl_bool, cl_device_id, cl_device_type, cl_int, cl_platform_id,
    cl_uint,
};

use crate::dispatch::GetPlatforms;
use crate::status::{Fallible, asking, check, driver};

type GetAddress = unsafe extern "C" fn(*const c_char) -> *mut c_void;

/// One platform of a driver.
pub struct Driver {
    /// Its functions.
    pub table: &'static cl_icd_dispatch,
    pub platform: cl_platform_id,
    pub name: String,
}

// SAFETY: OpenCL's functions may be called from every thread.
unsafe impl Send for Driver {}
// SAFETY: as above.
unsafe impl Sync for Driver {}

/// A device of a driver.
#[derive(Clone)]
pub struct RealDevice {
    pub driver: &'static Driver,
    pub id: cl_device_id,
    pub kind: cl_device_type,
    /// `opencl0.0` is the first platform's first device.
    pub name: String,
    /// Its model, as its driver says it.
    pub model: String,
}

// SAFETY: as for `Driver`.
unsafe impl Send for RealDevice {}
// SAFETY: as for `Driver`.
unsafe impl Sync for RealDevice {}

impl RealDevice {
    /// A question to its driver, as `clGetDeviceInfo` has them.
    pub fn asking(&self, what: cl_uint) -> impl Ask {
        asking!(self.driver.table, clGetDeviceInfo(self.id, what))
    }

    /// A number that its driver says.
    pub fn number<T: Copy + Default>(&self, what: cl_uint) -> Fallible<T> {
        number(self.asking(what))
    }

    /// A text that its driver says.
    pub fn text(&self, what: cl_uint) -> String {
        text(self.asking(what))
    }

    /// Numbers or other bytes that its driver says.
    pub fn bytes(&self, what: cl_uint) -> Fallible<Vec<u8>> {
        bytes(self.asking(what))
    }

    /// Whether it has images.
    pub fn has_images(&self) -> bool {
        self.number::<cl_bool>(CL_DEVICE_IMAGE_SUPPORT)
            .is_ok_and(|has| has != CL_FALSE)
    }
}

/// The devices of all drivers but this library itself, in the drivers' order.
pub fn devices(own: Option<GetPlatforms>) -> Vec<RealDevice> {
    let mut devices = Vec::new();
    let mut drivers: Vec<Driver> = Vec::new();
    for driver in libraries()
        .into_iter()
        .flat_map(|library| open(&library, own))
    {
        // Several files may name one library.
        if drivers
            .iter()
            .all(|other| other.platform != driver.platform)
        {
            drivers.push(driver);
        }
    }
    for (platform, driver) in drivers.into_iter().enumerate() {
        let driver: &'static Driver = Box::leak(Box::new(driver));
        for (index, id) in device_ids(driver).into_iter().enumerate() {
            let mut device = RealDevice {
                driver,
                id,
                kind: 0,
                name: format!("opencl{platform}.{index}"),
                model: String::new(),
            };
            device.kind = device.number(CL_DEVICE_TYPE).unwrap_or_default();
            device.model = device.text(CL_DEVICE_NAME);
            devices.push(device);
        }
    }
    devices
}

/// The libraries that loaders would open.
fn libraries() -> Vec<String> {
    let mut all = Vec::new();
    let folder = env::var_os("OCL_ICD_VENDORS")
        .or_else(|| env::var_os("OPENCL_VENDOR_PATH"))
        .map_or_else(|| PathBuf::from("/etc/OpenCL/vendors"), PathBuf::from);
    if folder.is_dir() {
        let files = fs::read_dir(&folder).into_iter().flatten().flatten();
        let mut files: Vec<PathBuf> = files.map(|file| file.path()).collect();
        files.sort();
        all.extend(files.iter().filter_map(|file| named_by(file)));
    } else if folder.extension().is_some_and(|end| end == "icd") {
        all.extend(named_by(&folder));
    } else {
        all.push(folder.to_string_lossy().into_owned());
    }
    if let Ok(more) = env::var("OCL_ICD_FILENAMES") {
        all.extend(
            more.split(':')
                .filter(|name| !name.is_empty())
                .map(str::to_owned),
        );
    }
    all
}

/// The library that a vendor's file names in its first line.
fn named_by(file: &Path) -> Option<String> {
    if file.extension().is_none_or(|end| end != "icd") {
        return None;
    }
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().next()?.trim();
    (!line.is_empty()).then(|| line.to_owned())
}

/// The platforms of a library; none if it cannot be opened, or is this one.
fn open(library: &str, own: Option<GetPlatforms>) -> Vec<Driver> {
    let Ok(path) = CString::new(library) else {
        return Vec::new();
    };
    // SAFETY: a driver's library may be loaded; its constructors are its own matter.
    let opened = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if opened.is_null() {
        return Vec::new();
    }
    match function(opened, c"clIcdGetPlatformIDsKHR") {
        Some(address) if own.is_none_or(|own| address as usize != own as usize) => {
            // SAFETY: the ICD extension defines this function's type.
            platforms(unsafe { mem::transmute::<*mut c_void, GetPlatforms>(address) })
        }
        _ => Vec::new(),
    }
}

/// A function that a library exports or returns as an extension.
fn function(library: *mut c_void, name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the handle is open, and names end in a null byte.
    let exported = unsafe { libc::dlsym(library, name.as_ptr()) };
    if !exported.is_null() {
        return Some(exported);
    }
    // SAFETY: as above.
    let get = unsafe { libc::dlsym(library, c"clGetExtensionFunctionAddress".as_ptr()) };
    if get.is_null() {
        return None;
    }
    // SAFETY: OpenCL defines this function's type.
    let get = unsafe { mem::transmute::<*mut c_void, GetAddress>(get) };
    // SAFETY: the name ends in a null byte.
    let address = unsafe { get(name.as_ptr()) };
    (!address.is_null()).then_some(address)
}

fn platforms(get: GetPlatforms) -> Vec<Driver> {
    // SAFETY: the list has so many entries.
    let ids = handles(|count, list, known| unsafe { get(count, list, known) });
    let ids = ids.into_iter().filter(|id| !id.is_null());
    let drivers = ids.map(|platform| {
        // SAFETY: an object of an ICD begins with its table.
        let table = unsafe { &**platform.cast::<*const cl_icd_dispatch>() };
        let name = text(asking!(
            table,
            clGetPlatformInfo(platform, CL_PLATFORM_NAME)
        ));
        Driver {
            table,
            platform,
            name,
        }
    });
    drivers.collect()
}

fn device_ids(driver: &Driver) -> Vec<cl_device_id> {
    let (table, platform) = (driver.table, driver.platform);
    let all = CL_DEVICE_TYPE_ALL;
    handles(|count, list, known| driver!(table, clGetDeviceIDs(platform, all, count, list, known)))
}

/// Handles that a driver gives in two calls: their number, and themselves. None if it refuses.
fn handles(ask: impl Fn(cl_uint, *mut *mut c_void, *mut cl_uint) -> cl_int) -> Vec<*mut c_void> {
    let mut count = 0;
    if ask(0, ptr::null_mut(), &mut count) != CL_SUCCESS || count == 0 {
        return Vec::new();
    }
    let mut handles = vec![ptr::null_mut(); count as usize];
    match ask(count, handles.as_mut_ptr(), ptr::null_mut()) {
        CL_SUCCESS => handles,
        _ => Vec::new(),
    }
}

/// Asks a driver for something: how many bytes there is room for, where they go, and where their
/// number goes.
pub trait Ask: Fn(usize, *mut c_void, *mut usize) -> cl_int {}

impl<F: Fn(usize, *mut c_void, *mut usize) -> cl_int> Ask for F {}

/// A plain value that a driver gives.
pub fn number<T: Copy + Default>(ask: impl Ask) -> Fallible<T> {
    let mut number = T::default();
    let value = ptr::from_mut(&mut number).cast();
    check(ask(size_of::<T>(), value, ptr::null_mut()))?;
    Ok(number)
}

/// A text that a driver gives in two calls: its size, and itself.
pub fn text(ask: impl Ask) -> String {
    let bytes = bytes(ask).unwrap_or_default();
    let end = bytes.iter().position(|byte| *byte == 0);
    let text = &bytes[..end.unwrap_or(bytes.len())];
    String::from_utf8_lossy(text).trim().to_owned()
}

/// Bytes that a driver gives in two calls: their number, and themselves.
pub fn bytes(ask: impl Ask) -> Fallible<Vec<u8>> {
    let mut size = 0;
    check(ask(0, ptr::null_mut(), &mut size))?;
    let mut bytes = vec![0_u8; size];
    if size > 0 {
        check(ask(size, bytes.as_mut_ptr().cast(), ptr::null_mut()))?;
    }
    Ok(bytes)
}

/// Numbers of a machine word that a driver gives.
pub fn words(ask: impl Ask) -> Fallible<Vec<usize>> {
    let bytes = bytes(ask)?;
    let words = bytes.chunks_exact(size_of::<usize>());
    let word = |word: &[u8]| usize::from_ne_bytes(word.try_into().unwrap_or_default());
    Ok(words.map(word).collect())
}
