//! Finds CUDA's libraries: where `PDAWL_CUDA_LIBRARIES` says, where the system's loader looks,
//! and where CUDA's toolkit and pip's packages put them.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

/// Names folders, separated as in `PATH`; libraries are then looked for there alone.
const VARIABLE: &str = "PDAWL_CUDA_LIBRARIES";

/// Versions of a library's interface, by the version of CUDA that it belongs to.
pub(super) type Versions = [(i32, &'static str); 3];

/// The file names of a library for this version of CUDA and earlier ones, the newest first, and
/// last the one without a version.
fn names(library: &str, versions: &Versions, cuda: i32) -> Vec<String> {
    let fitting = versions.iter().filter(|(of, _)| *of <= cuda);
    let mut names: Vec<String> = fitting
        .map(|(_, version)| format!("lib{library}.so.{version}"))
        .collect();
    // Two versions of CUDA may share one of a library.
    names.dedup();
    names.push(format!("lib{library}.so"));
    names
}

/// Loads a library for a driver of this version of CUDA.
///
/// # Errors
/// When there is none, with where it was looked for.
pub(super) fn load(library: &str, versions: &Versions, cuda: i32) -> Result<Library, String> {
    let names = names(library, versions, cuda);
    let given = env::var_os(VARIABLE).filter(|folders| !folders.is_empty());
    let (found, place) = match given {
        Some(folders) => {
            let folders: Vec<PathBuf> = env::split_paths(&folders).collect();
            let place = format!("where {VARIABLE} says");
            (of_folders(&folders, &names).next(), place)
        }
        None => {
            let place = "by the loader, in /usr/local/cuda*/lib64, or among Python's packages";
            let mut all = libraries(library, library, versions, cuda);
            (all.next(), place.to_owned())
        }
    };
    found.ok_or_else(|| {
        format!(
            "{} is not found {place}; install CUDA {cuda}'s libraries, or set {VARIABLE} to the \
             folders that have them",
            names[0]
        )
    })
}

/// The libraries here for this version of CUDA or an earlier one; `folder` is the one in which
/// pip's packages have them. A version that the loader has is before another one elsewhere.
pub(in crate::runtime::cuda) fn libraries(
    library: &str,
    folder: &str,
    versions: &Versions,
    cuda: i32,
) -> impl Iterator<Item = Library> {
    let names = names(library, versions, cuda);
    let folder = folder.to_owned();
    let by_loader = names
        .clone()
        .into_iter()
        .filter_map(|name| open(OsStr::new(&name)));
    by_loader
        .chain(std::iter::once_with(move || of_folders(&folders_of(&folder), &names)).flatten())
}

/// The files of these names, the first name in all folders first.
fn of_folders(folders: &[PathBuf], names: &[String]) -> impl Iterator<Item = Library> + use<> {
    let in_folders = |name: &String| folders.iter().map(|f| f.join(name)).collect::<Vec<_>>();
    let files: Vec<PathBuf> = names.iter().flat_map(in_folders).collect();
    // A loader's name for a file that it does not find would mean another one.
    let files = files.into_iter().filter(|file| file.is_file());
    files.filter_map(|file| open(file.as_os_str()))
}

fn open(name: &OsStr) -> Option<Library> {
    // SAFETY: CUDA's libraries only set up their own tables when they are loaded.
    unsafe { Library::open(Some(name), RTLD_NOW | RTLD_LOCAL) }.ok()
}

// Where libraries of CUDA are that the system's loader does not find: in the folders of
// CUDA's toolkits, and among the packages of Python.

/// The folders of toolkits, of pip's packages, of which this one has a library, and of conda's.
fn folders_of(folder: &str) -> Vec<PathBuf> {
    let named = |variables: [&str; 2]| {
        let folders = variables.into_iter().filter_map(env::var_os);
        folders.map(PathBuf::from).collect::<Vec<PathBuf>>()
    };
    let toolkits = named(["CUDA_HOME", "CUDA_PATH"]).into_iter();
    let toolkits = toolkits.chain(entries(Path::new("/usr/local"), "cuda"));
    let mut folders: Vec<PathBuf> = toolkits.map(|toolkit| toolkit.join("lib64")).collect();
    let home = env::home_dir().map(|home| home.join(".local"));
    let systems = ["/usr/local", "/usr", "/opt/conda"].map(PathBuf::from);
    let own = named(["VIRTUAL_ENV", "CONDA_PREFIX"]).into_iter();
    for prefix in own.chain(home).chain(systems) {
        let lib = prefix.join("lib");
        folders.extend(of_python(&lib, folder));
        folders.push(lib);
    }
    folders
}

/// The folders of the packages of all Pythons that a folder has.
fn of_python(lib: &Path, folder: &str) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for python in entries(lib, "python3") {
        for packages in ["site-packages", "dist-packages"] {
            let nvidia = python.join(packages).join("nvidia");
            folders.push(nvidia.join(folder).join("lib"));
            // From CUDA 13 on, one folder has all libraries.
            folders.extend(entries(&nvidia, "cu1").map(|cuda| cuda.join("lib")));
        }
    }
    folders
}

/// The folders in a folder whose names begin so, the last one first.
fn entries(folder: &Path, begin: &str) -> impl Iterator<Item = PathBuf> {
    let listed = fs::read_dir(folder).into_iter().flatten().flatten();
    let fitting = listed.filter(|entry| entry.file_name().to_string_lossy().starts_with(begin));
    let mut found: Vec<PathBuf> = fitting.map(|entry| entry.path()).collect();
    found.sort();
    found.into_iter().rev()
}

#[cfg(test)]
mod tests {
    use super::super::functions::Nvrtc;
    use super::*;

    #[test]
    fn what_is_no_library_is_not_loaded() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(open(file.path().as_os_str()).is_none());
        assert!(open(OsStr::new("/nowhere/libnvrtc.so")).is_none());
        // A library without NVRTC's functions.
        let other = open(OsStr::new("libc.so.6")).expect("the C library");
        assert!(Nvrtc::of(other).is_err());
    }

    #[test]
    fn a_driver_takes_its_own_version_or_an_earlier_one() {
        let versions = [(13, "12"), (12, "11"), (11, "11")];
        let of = |cuda| names("cusolver", &versions, cuda);
        let all = ["libcusolver.so.12", "libcusolver.so.11", "libcusolver.so"];
        assert_eq!(of(13), all);
        assert_eq!(of(12), all[1..]);
        assert_eq!(of(11), all[1..]);
        assert_eq!(of(14), all);
    }

    #[test]
    fn packages_are_found_by_the_begin_of_their_names() {
        let root = tempfile::tempdir().unwrap();
        for name in ["python3.9", "python3.12", "perl"] {
            fs::create_dir(root.path().join(name)).unwrap();
        }
        let found: Vec<PathBuf> = entries(root.path(), "python3").collect();
        assert_eq!(found.len(), 2);
        assert!(entries(&root.path().join("none"), "").next().is_none());
    }

    #[test]
    fn packages_of_python_are_found() {
        let root = tempfile::tempdir().unwrap();
        let packages = |python: &str| root.path().join(python).join("site-packages/nvidia");
        let folders = [
            packages("python3.12").join("cublas/lib"),
            packages("python3.12").join("cu13/lib"),
            packages("python3.11").join("cublas/lib"),
        ];
        for folder in &folders {
            fs::create_dir_all(folder).unwrap();
        }
        fs::create_dir_all(root.path().join("other/site-packages/nvidia/cublas/lib")).unwrap();
        let mut found = of_python(root.path(), "cublas");
        found.retain(|folder| folder.is_dir());
        assert_eq!(found, folders);
    }
}
