//! Finds CUDA's libraries: where `PDAWL_CUDA_LIBRARIES` says, where the system's loader looks,
//! and where CUDA's toolkit and pip's packages put them.

use std::env;
use std::ffi::OsStr;
use std::path::PathBuf;

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use crate::runtime::cuda::toolkit::folders_of;

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
}
