//! Where the layer's library is.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use crate::cli::failure::Failure;

/// The library's file name.
const NAME: &str = "libpdawl_opencl.so";
/// Folders beside that of the executable.
const FOLDERS: [&str; 4] = ["", "../lib/pdawl", "../lib64/pdawl", "../lib"];

const REMEDY: &str =
    "`cargo build --release -p pdawl-opencl-layer`, or --layer with the file's path";

/// The library.
pub struct Layer {
    /// Absolute, since the program may change its folder.
    pub path: PathBuf,
}

/// The library that the user names, or the one near this executable.
pub fn find(named: Option<&Path>) -> Result<Layer, Failure> {
    let path = match named {
        Some(path) => readable(path).ok_or_else(|| {
            Failure::failed(
                format!("--layer: no file {} can be read", path.display()),
                REMEDY,
            )
        })?,
        None => near(&folder()?)?,
    };
    if path.to_string_lossy().contains(':') {
        return Err(Failure::failed(
            format!(
                "the layer's path {} has a colon, which separates layers",
                path.display()
            ),
            "a copy of the file elsewhere, and --layer with its path",
        ));
    }
    Ok(Layer { path })
}

/// The folder of this executable; a link to it does not count.
fn folder() -> Result<PathBuf, Failure> {
    let here = env::current_exe().and_then(fs::canonicalize);
    let here = here.ok().and_then(|file| file.parent().map(Path::to_owned));
    here.ok_or_else(|| {
        Failure::failed(
            "it is not known where this program's file is, so its layer is not found",
            "--layer with the path of libpdawl_opencl.so",
        )
    })
}

fn near(folder: &Path) -> Result<PathBuf, Failure> {
    let candidates = FOLDERS.map(|beside| folder.join(beside).join(NAME));
    let found = candidates.iter().find_map(|path| readable(path));
    found.ok_or_else(|| {
        Failure::failed(
            format!(
                "the OpenCL layer {NAME} is neither in {} nor in ../lib/pdawl or ../lib",
                folder.display()
            ),
            REMEDY,
        )
    })
}

fn readable(path: &Path) -> Option<PathBuf> {
    fs::File::open(path)
        .ok()
        .filter(|file| file.metadata().is_ok_and(|data| data.is_file()))?;
    fs::canonicalize(path).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_is_beside_the_program_or_installed() {
        let root = tempfile::tempdir().unwrap();
        let (bin, lib) = (root.path().join("bin"), root.path().join("lib/pdawl"));
        fs::create_dir_all(&bin).unwrap();
        fs::create_dir_all(&lib).unwrap();
        let Err(Failure::Failed { what, remedy }) = near(&bin) else {
            panic!("found");
        };
        assert!(what.contains(NAME) && remedy.unwrap().contains("cargo build"));
        fs::write(lib.join(NAME), "").unwrap();
        let root = fs::canonicalize(root.path()).unwrap();
        assert_eq!(near(&bin).unwrap(), root.join("lib/pdawl").join(NAME));
        fs::write(bin.join(NAME), "").unwrap();
        assert_eq!(near(&bin).unwrap(), root.join("bin").join(NAME));
    }

    #[test]
    fn a_colon_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("a:b.so");
        fs::write(&path, "").unwrap();
        assert!(find(Some(&path)).is_err());
        assert!(find(Some(&root.path().join("absent.so"))).is_err());
    }
}
