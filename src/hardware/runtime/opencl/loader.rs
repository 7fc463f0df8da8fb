//! The OpenCL loader as programs of this process's environment meet it: which library it
//! is, whether it knows layers, and what it lists.

use std::fs;
use std::path::{Path, PathBuf};

use super::drivers;
use opencl3::device::{CL_DEVICE_TYPE_ALL, Device};
use opencl3::platform::get_platforms;
use serde::{Deserialize, Serialize};

/// The variable that names layers; a loader that knows layers contains it as text.
pub const LAYERS: &str = "OPENCL_LAYERS";

/// The loader.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loader {
    /// Whether there is one.
    pub found: bool,
    /// Why it is not used although it is there.
    #[serde(default)]
    pub fault: Option<String>,
    /// Its file, if that is known.
    pub file: Option<PathBuf>,
    /// Whether its file has the name of the variable for layers.
    pub knows_layers: bool,
    pub platforms: Vec<ListedPlatform>,
}

/// A platform that the loader lists.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedPlatform {
    pub name: String,
    /// The devices' models.
    pub devices: Vec<String>,
}

/// Loads the loader and asks it. What a driver does not say is left out.
pub fn examine() -> Loader {
    let there = cl3::is_opencl_runtime_available();
    let fault = match there {
        true => drivers::hazard(&drivers::vendors()),
        false => drivers::loader_fault(),
    };
    if !there || fault.is_some() {
        return Loader {
            fault,
            ..Loader::default()
        };
    }
    let platforms = get_platforms()
        .unwrap_or_default()
        .into_iter()
        .map(|platform| {
            let devices = platform.get_devices(CL_DEVICE_TYPE_ALL).unwrap_or_default();
            let name = |id| {
                Device::new(id)
                    .name()
                    .unwrap_or_else(|_| "unnamed".to_owned())
            };
            ListedPlatform {
                name: platform.name().unwrap_or_else(|_| "unnamed".to_owned()),
                devices: devices.into_iter().map(name).collect(),
            }
        });
    let platforms = platforms.collect();
    let file = mapped_library(&fs::read_to_string("/proc/self/maps").unwrap_or_default());
    let knows_layers = file.as_deref().is_none_or(contains_layers);
    Loader {
        found: true,
        fault,
        file,
        knows_layers,
        platforms,
    }
}

/// The file of libOpenCL among the files that a process has mapped.
fn mapped_library(maps: &str) -> Option<PathBuf> {
    let files = maps
        .lines()
        .filter_map(|line| line.find('/').map(|at| &line[at..]));
    let mut files = files.map(Path::new);
    let is_loader = |file: &&Path| {
        let name = file.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with("libOpenCL.so"))
    };
    files.find(is_loader).map(Path::to_owned)
}

/// Whether a file has the variable's name; a file that cannot be read is not accused.
fn contains_layers(file: &Path) -> bool {
    let Ok(bytes) = fs::read(file) else {
        return true;
    };
    memchr::memmem::find(&bytes, LAYERS.as_bytes()).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loader_is_found_among_mapped_files() {
        let maps = "7f00-7f01 r--p 00000000 fe:00 12 /lib/libc.so.6\n\
                    7f02-7f03 r-xp 00000000 fe:00 13 /opt/a b/libOpenCL.so.1.0.0\n\
                    7f04-7f05 rw-p 00000000 00:00 0\n";
        let file = PathBuf::from("/opt/a b/libOpenCL.so.1.0.0");
        assert_eq!(mapped_library(maps), Some(file));
        assert_eq!(
            mapped_library("7f00-7f01 r--p 0 fe:00 12 /lib/libc.so.6\n"),
            None
        );
    }

    #[test]
    fn an_old_loader_lacks_the_variable() {
        let folder = tempfile::tempdir().unwrap();
        let (old, new) = (folder.path().join("old"), folder.path().join("new"));
        fs::write(&old, b"\x7fELF OCL_ICD_VENDORS\0").unwrap();
        fs::write(&new, b"\x7fELF\0OPENCL_LAYERS\0").unwrap();
        assert!(!contains_layers(&old));
        assert!(contains_layers(&new));
        assert!(contains_layers(&folder.path().join("absent")));
    }
}
