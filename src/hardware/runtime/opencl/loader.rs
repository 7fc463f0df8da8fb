//! The OpenCL loader as programs of this process's environment meet it: which library it
//! is, whether it knows layers, and what it lists.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use libloading::os::unix::{Library, RTLD_LAZY, RTLD_LOCAL};
use opencl3::device::{CL_DEVICE_TYPE_ALL, Device};
use opencl3::platform::get_platforms;
use serde::{Deserialize, Serialize};

use super::warnings;

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
        true => hazard(&vendors()),
        false => loader_fault(),
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

// The drivers that the loader learns of: its `.icd` files, looked at before it reads
// them, since not every loader survives every file, and why a driver or the loader
// cannot be loaded.

/// The variable by which a user sets the loader's directory.
pub(super) const VENDORS: &str = "OCL_ICD_VENDORS";

/// The longest name of a library that a loader takes: that of the longest path.
const LONGEST: u64 = 4096;

/// The functions that a loader asks a driver for.
const ENTRIES: [&[u8]; 2] = [
    b"clGetExtensionFunctionAddress\0",
    b"clIcdGetPlatformIDsKHR\0",
];

/// The directory in which the loader finds drivers, or a file of one.
pub(super) fn vendors() -> PathBuf {
    vendors_directory(std::env::var_os(VENDORS).map(PathBuf::from))
}

pub(super) fn vendors_directory(variable: Option<PathBuf>) -> PathBuf {
    variable
        .filter(|path| !path.as_os_str().is_empty())
        .unwrap_or_else(|| PathBuf::from("/etc/OpenCL/vendors"))
}

/// The files of a directory with this ending, or the path itself when it is
/// such a file; in order of name.
pub(super) fn files_ending(path: &Path, ending: &str) -> Vec<PathBuf> {
    let is_one = |path: &Path| path.extension().is_some_and(|e| e == ending);
    if path.is_file() && is_one(path) {
        return vec![path.to_owned()];
    }
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|e| e.path()).filter(|p| is_one(p)).collect();
    files.sort();
    files
}

/// What loaders do not survive in the `.icd` files of a directory. ocl-icd crashes on a
/// file that begins with a NUL byte and on one of megabytes, and waits for a pipe for
/// ever.
pub(super) fn hazard(vendors: &Path) -> Option<String> {
    let of_file = |file: &PathBuf| {
        let what = hazard_of(file)?;
        Some(format!(
            "{} {what}, which OpenCL loaders do not survive, so OpenCL is not used: write the \
             name of the driver's library into it, or remove it",
            file.display()
        ))
    };
    let files = files_ending(vendors, "icd");
    let found = files.iter().find_map(of_file);
    found.or_else(|| warnings::hazard(&files))
}

/// The `.icd` files that can be read.
pub(super) fn registered(vendors: &Path) -> Vec<PathBuf> {
    let mut files = files_ending(vendors, "icd");
    files.retain(|file| hazard_of(file).is_none());
    files
}

fn hazard_of(file: &Path) -> Option<&'static str> {
    let about = fs::metadata(file).ok()?;
    if about.is_dir() {
        return None;
    }
    if !about.is_file() {
        return Some("is no regular file");
    }
    if about.len() > LONGEST {
        return Some("is longer than any name of a library");
    }
    let content = fs::read(file).ok()?;
    content
        .starts_with(&[0])
        .then_some("begins with a NUL byte")
}

/// The library that an `.icd` file names, as loaders read it: up to a NUL byte, without
/// the end of the line. Spaces and carriage returns belong to it.
pub(super) fn library_of(content: &[u8]) -> &OsStr {
    let name = content.split(|byte| *byte == 0).next().unwrap_or_default();
    OsStr::from_bytes(name.strip_suffix(b"\n").unwrap_or(name))
}

/// Loads a driver's library, as the loader does. The error is the reason.
///
/// # Errors
/// The dynamic linker's words, or that it is no driver.
pub(super) fn load(library: &OsStr) -> Result<(), String> {
    let opened = open(library)?;
    // SAFETY: the symbol's address is not used.
    let has = |entry: &&[u8]| unsafe { opened.get::<*const ()>(entry) }.is_ok();
    let is_driver = ENTRIES.iter().any(has);
    // A driver that the loader uses stays; unloading one is what not all survive.
    std::mem::forget(opened);
    match is_driver {
        true => Ok(()),
        false => Err("it has none of the functions of an OpenCL driver".to_owned()),
    }
}

/// Why the OpenCL loader's library cannot be loaded, if it is there.
pub(super) fn loader_fault() -> Option<String> {
    let name = "libOpenCL.so.1";
    let why = open(OsStr::new(name)).err()?;
    // The linker's words of a library that is not there begin with its name.
    let absent = format!("{name}: cannot open shared object file");
    let is_there = !why.starts_with(&absent) || !why.ends_with("No such file or directory");
    is_there.then_some(why)
}

fn open(library: &OsStr) -> Result<Library, String> {
    // SAFETY: a library's constructors run, which the loader has made them do already or
    // is about to.
    let opened = unsafe { Library::open(Some(library), RTLD_LAZY | RTLD_LOCAL) };
    opened.map_err(|error| error.to_string())
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

    #[test]
    fn what_loaders_do_not_survive_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.icd");
        for (content, hazardous) in [
            (&b"\0\0\0"[..], true),
            (b"\0libpocl.so", true),
            (&[b'x'; 5000], true),
            (b"libpocl.so.2\n", false),
            (b"libpocl.so.2\n\0", false),
            (b"", false),
        ] {
            fs::write(&file, content).unwrap();
            let found = hazard(folder.path());
            assert_eq!(found.is_some(), hazardous, "{content:?}");
            assert!(found.is_none_or(|why| why.contains("a.icd") && why.contains("remove it")));
        }
        fs::remove_file(&file).unwrap();
        assert_eq!(hazard(folder.path()), None);
        std::os::unix::net::UnixListener::bind(&file).unwrap();
        assert!(hazard(folder.path()).unwrap().contains("no regular file"));
    }

    #[test]
    fn names_are_read_as_loaders_read_them() {
        for (content, name) in [
            (&b"libpocl.so.2\n"[..], "libpocl.so.2"),
            (b"libpocl.so.2", "libpocl.so.2"),
            (b"libpocl.so.2\r\n", "libpocl.so.2\r"),
            (b"libpocl.so.2\0more", "libpocl.so.2"),
            (b"", ""),
        ] {
            assert_eq!(library_of(content), name);
        }
    }

    #[test]
    fn the_reason_is_that_of_the_dynamic_linker() {
        let folder = tempfile::tempdir().unwrap();
        let text = folder.path().join("libtext.so");
        fs::write(
            &text,
            "this is no library, and long enough to be looked at as one: ".repeat(9),
        )
        .unwrap();
        let why = load(text.as_os_str()).unwrap_err();
        assert!(
            why.contains("libtext.so") && why.contains("invalid ELF header"),
            "{why}"
        );
        let why = load(OsStr::new("libc.so.6")).unwrap_err();
        assert!(why.contains("none of the functions"), "{why}");
        let why = load(OsStr::new("libabsent.so.7")).unwrap_err();
        assert!(why.contains("No such file"), "{why}");
    }
}
