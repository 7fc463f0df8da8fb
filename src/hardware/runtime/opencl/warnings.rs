//! Warnings about the OpenCL installation, each with its remedy.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::{Resource, getrlimit};

use super::loader::{VENDORS, files_ending};
use super::{FoundDevice, loader};
use crate::machine::DeviceKind;
use crate::machine::host::Memory;

/// The warning of a loader that is missing or cannot be loaded.
pub(super) fn no_loader() -> String {
    match loader::loader_fault() {
        Some(why) => format!(
            "the OpenCL loader cannot be loaded: {why}; install what it lacks, or the loader \
             again; only the host runtime serves until then"
        ),
        None => NO_LOADER.to_owned(),
    }
}

const NO_LOADER: &str = "no OpenCL loader (libOpenCL.so.1): install ocl-icd-libopencl1 \
     (Debian, Ubuntu) or ocl-icd (Fedora, Arch); only the host runtime serves until then";

/// The warning of a loader without drivers.
pub(super) const NO_PLATFORM: &str = "the OpenCL loader finds no driver: install pocl-opencl-icd \
     for the CPU, or your GPU vendor's OpenCL driver";

/// Mesa's platforms. Distributions register both whether they have devices or not, so that is
/// worth a warning only where there are no others.
pub(super) const MESA: [&str; 2] = [RUSTICL, "Clover"];
const RUSTICL: &str = "rusticl";

/// Why the platform of this name may have no devices, and the remedy.
pub(super) fn no_devices(platform: &str) -> String {
    let of_pocl = is_pocl(platform).then(fault);
    if let Some(fault) = of_pocl.flatten() {
        return format!(": {fault}");
    }
    match platform == RUSTICL {
        true => "; name Mesa's drivers in RUSTICL_ENABLE, such as radeonsi, iris or llvmpipe",
        false => {
            "; check that its hardware is visible here (in a container, that its device files \
             are passed in)"
        }
    }
    .to_owned()
}

/// The NVIDIA driver's OpenCL library.
const NVIDIA_LIBRARY: &str = "libnvidia-opencl.so.1";

/// Locked memory that pinning a few streaming buffers takes.
const LITTLE_LOCKED: u64 = 64 << 20;

/// Checks the loader, the drivers and the limits of the process.
pub(super) fn surroundings(gpu: bool) -> Vec<String> {
    let variable = std::env::var_os(VENDORS).map(PathBuf::from);
    let vendors = loader::vendors();
    let libraries = library_directories(Path::new("/"), std::env::var_os("LD_LIBRARY_PATH"));
    let mut all: Vec<String> = empty_vendors(variable.as_deref()).into_iter().collect();
    all.extend(icd_warnings(&vendors, &libraries, &loader::load));
    let card = ["/dev/nvidia0", "/proc/driver/nvidia"]
        .iter()
        .any(|path| Path::new(path).exists());
    all.extend(nvidia_warning(Path::new("/"), &vendors, &libraries, card));
    if gpu {
        all.extend(memlock_warning(getrlimit(Resource::Memlock).current));
    }
    all.extend(Memory::read().as_ref().and_then(cgroup_warning));
    all
}

/// A variable that names a directory without registered drivers.
fn empty_vendors(variable: Option<&Path>) -> Option<String> {
    let path = variable.filter(|path| !path.as_os_str().is_empty())?;
    files_ending(path, "icd").is_empty().then(|| {
        format!(
            "{VENDORS} is {}, where there is no .icd file: unset it, or set it to the folder in \
             which the drivers are registered",
            path.display()
        )
    })
}

/// The directories in which a library is looked for by its bare name.
fn library_directories(root: &Path, variable: Option<std::ffi::OsString>) -> Vec<PathBuf> {
    let mut directories: Vec<PathBuf> = variable
        .iter()
        .flat_map(std::env::split_paths)
        .filter(|path| !path.as_os_str().is_empty())
        .collect();
    let mut configurations = vec![root.join("etc/ld.so.conf")];
    configurations.extend(files_ending(&root.join("etc/ld.so.conf.d"), "conf"));
    for file in configurations {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let lines = text.lines().map(str::trim);
        directories.extend(lines.filter(|l| l.starts_with('/')).map(PathBuf::from));
    }
    let machine = std::env::consts::ARCH;
    for usual in ["lib", "usr/lib", "lib64", "usr/lib64", "usr/local/lib"] {
        directories.push(root.join(usual));
    }
    directories.push(root.join(format!("lib/{machine}-linux-gnu")));
    directories.push(root.join(format!("usr/lib/{machine}-linux-gnu")));
    directories
}

/// ICD files whose library is not there or cannot be loaded. `vendors` is the directory of
/// the `.icd` files, or one such file; `load` loads a library as the loader does.
fn icd_warnings(
    vendors: &Path,
    libraries: &[PathBuf],
    load: &dyn Fn(&OsStr) -> Result<(), String>,
) -> Vec<String> {
    let mut all = Vec::new();
    for file in loader::registered(vendors) {
        let shown = file.display();
        let content = match std::fs::read(&file) {
            Ok(content) => content,
            Err(error) => {
                all.push(format!("{shown} cannot be read: {error}"));
                continue;
            }
        };
        let library = loader::library_of(&content);
        let name = library.to_string_lossy();
        if name.trim().is_empty() {
            all.push(format!(
                "{shown} is empty: write the driver library's name into it, or remove it"
            ));
        } else if locate(name.trim(), libraries).is_none() {
            all.push(format!(
                "{shown} names {}, which is not there: install the driver that it belongs \
                 to, or remove the file",
                name.trim()
            ));
        } else if let Err(why) = load(library) {
            all.push(format!(
                "{shown} names {}, which cannot be loaded: {}; install what it lacks, or the \
                 driver again",
                name.escape_debug(),
                why.escape_debug()
            ));
        }
    }
    all
}

/// Where a library is: an absolute path itself, a bare name where the dynamic
/// linker looks.
fn locate(name: &str, libraries: &[PathBuf]) -> Option<PathBuf> {
    let path = Path::new(name);
    if name.contains('/') {
        return path.exists().then(|| path.to_owned());
    }
    libraries
        .iter()
        .map(|directory| directory.join(name))
        .find(|path| path.exists())
}

/// An NVIDIA GPU, or its driver, that no ICD file registers. `card` says
/// whether the kernel's driver shows a GPU.
fn nvidia_warning(
    root: &Path,
    vendors: &Path,
    libraries: &[PathBuf],
    card: bool,
) -> Option<String> {
    let mut usual = libraries.to_vec();
    usual.extend(
        [
            "usr/local/nvidia/lib64",
            "usr/local/nvidia/lib",
            "usr/lib/nvidia",
        ]
        .map(|directory| root.join(directory)),
    );
    let library = locate(NVIDIA_LIBRARY, &usual);
    if !card && library.is_none() {
        return None;
    }
    let registered = loader::registered(vendors)
        .iter()
        .any(|file| std::fs::read_to_string(file).is_ok_and(|text| text.contains("nvidia-opencl")));
    if registered {
        return None;
    }
    let file = if vendors.is_file() {
        vendors.to_owned()
    } else {
        vendors.join("nvidia.icd")
    };
    let Some(library) = library else {
        return Some(format!(
            "an NVIDIA GPU is here, but not its OpenCL library {NVIDIA_LIBRARY}: install \
             NVIDIA's driver libraries (in a container, set NVIDIA_DRIVER_CAPABILITIES to \
             include compute)"
        ));
    };
    let line = if libraries.iter().any(|dir| library.starts_with(dir)) {
        NVIDIA_LIBRARY.to_owned()
    } else {
        library.display().to_string()
    };
    Some(format!(
        "NVIDIA's OpenCL driver is here, but no file in {} registers it: run `mkdir -p {} && \
         echo {line} > {}`",
        vendors.display(),
        vendors.display(),
        file.display()
    ))
}

/// A limit on locked memory that pinned buffers may hit; `None` is unlimited.
fn memlock_warning(limit: Option<u64>) -> Option<String> {
    let limit = limit.filter(|limit| *limit < LITTLE_LOCKED)?;
    Some(format!(
        "locked memory is limited to {} KiB, and some drivers cannot pin host memory then: run \
         `ulimit -l unlimited`, or raise memlock in /etc/security/limits.conf",
        limit >> 10
    ))
}

/// A control group that allows less memory than the machine has.
fn cgroup_warning(memory: &Memory) -> Option<String> {
    let gib = |bytes: u64| bytes as f64 / (1u64 << 30) as f64;
    (memory.total() < memory.installed).then(|| {
        format!(
            "this process may use {:.1} of the machine's {:.1} GiB of memory (control group); \
             a larger grid would get it killed",
            gib(memory.total()),
            gib(memory.installed)
        )
    })
}

/// PoCL takes every core, whatever the affinity mask says.
pub(super) fn ignored_affinity(found: &FoundDevice) -> Option<String> {
    let allowed = std::thread::available_parallelism().ok()?.get();
    let taken = found.info.compute_units as usize;
    (is_pocl(&found.info.driver) && found.info.kind == DeviceKind::Cpu && taken > allowed).then(
        || {
            format!(
                "{} takes {taken} cores where this process may use {allowed}: set \
             POCL_MAX_PTHREAD_COUNT={allowed}",
                found.info.name
            )
        },
    )
}

#[cfg(test)]
#[path = "warnings_tests.rs"]
mod tests;

// PoCL's cache of compiled kernels. Without it PoCL (3.1) lists no devices, or builds no
// program, and tells no reason.

/// The variable by which a user sets the folder.
const VARIABLE: &str = "POCL_CACHE_DIR";

/// Whether a platform or a driver is PoCL.
pub(super) fn is_pocl(driver: &str) -> bool {
    driver.starts_with("Portable Computing Language")
}

/// What PoCL does not survive, if one of these `.icd` files registers it.
pub(super) fn hazard(registered: &[PathBuf]) -> Option<String> {
    let is_pocl = |file: &PathBuf| fs::read_to_string(file).is_ok_and(|text| text.contains("pocl"));
    let is_empty = std::env::var_os(VARIABLE).is_some_and(|value| value.is_empty());
    (is_empty && registered.iter().any(is_pocl)).then(|| {
        format!(
            "{VARIABLE} is empty, which PoCL does not survive, so OpenCL is not used: unset it, or \
             set it to a folder that can be written"
        )
    })
}

/// What PoCL cannot do with its cache, and the remedy; nothing if the cache is in order.
pub(super) fn fault() -> Option<String> {
    fault_of(folder(|name| std::env::var_os(name)))
}

/// Where PoCL has its cache in this environment.
fn folder(variable: impl Fn(&str) -> Option<OsString>) -> PathBuf {
    let set = |name| variable(name).filter(|value| !value.is_empty());
    let of_user = || {
        let cache = set("XDG_CACHE_HOME").map(PathBuf::from);
        let home = || variable("HOME").map(|home| PathBuf::from(home).join(".cache"));
        let cache = cache.or_else(home).unwrap_or_else(|| "/tmp".into());
        cache.join("pocl/kcache")
    };
    set(VARIABLE).map_or_else(of_user, PathBuf::from)
}

fn fault_of(folder: PathBuf) -> Option<String> {
    let made = fs::create_dir_all(&folder).and_then(|()| tempfile::tempfile_in(&folder));
    let why = made.err()?;
    Some(format!(
        "PoCL cannot write its cache of compiled kernels, {}: {why}; set {VARIABLE} to a folder \
         that can be written",
        folder.display()
    ))
}
