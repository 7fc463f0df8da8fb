//! Where libraries are that are installed with the program.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Folders beside that of the executable.
const FOLDERS: [&str; 4] = ["", "../lib/pdawl", "../lib64/pdawl", "../lib"];

/// Why a library is not found.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NotInstalled {
    /// The system does not tell.
    #[error("it is not known where this program's file is, so {name} is not found beside it")]
    NoFolder { name: String },
    /// It is in no folder where it is looked for.
    #[error("{name} is neither in {} nor in ../lib/pdawl or ../lib", folder.display())]
    Absent { name: String, folder: PathBuf },
}

/// The library of this name near the running program. A link to the program does not count.
pub fn library(name: &str) -> Result<PathBuf, NotInstalled> {
    let program = env::current_exe().and_then(fs::canonicalize).ok();
    let folder = program.as_deref().and_then(Path::parent);
    match folder {
        Some(folder) => near(folder, name),
        None => Err(NotInstalled::NoFolder { name: name.into() }),
    }
}

fn near(folder: &Path, name: &str) -> Result<PathBuf, NotInstalled> {
    let mut candidates = FOLDERS.iter().map(|beside| folder.join(beside).join(name));
    let found = candidates.find_map(|path| readable(&path));
    found.ok_or_else(|| NotInstalled::Absent {
        name: name.into(),
        folder: folder.into(),
    })
}

/// The absolute path of a file that can be read.
pub fn readable(path: &Path) -> Option<PathBuf> {
    fs::File::open(path)
        .ok()
        .filter(|file| file.metadata().is_ok_and(|data| data.is_file()))?;
    fs::canonicalize(path).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_beside_the_program_or_installed() {
        let root = tempfile::tempdir().unwrap();
        let name = "libwanted.so";
        let (bin, lib) = (root.path().join("bin"), root.path().join("lib/pdawl"));
        fs::create_dir_all(&bin).unwrap();
        fs::create_dir_all(&lib).unwrap();
        let absent = near(&bin, name).unwrap_err();
        assert!(absent.to_string().contains(name), "{absent}");
        fs::write(lib.join(name), "").unwrap();
        let root = fs::canonicalize(root.path()).unwrap();
        assert_eq!(near(&bin, name), Ok(root.join("lib/pdawl").join(name)));
        fs::write(bin.join(name), "").unwrap();
        assert_eq!(near(&bin, name), Ok(root.join("bin").join(name)));
    }
}
