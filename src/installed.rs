//! Where libraries are that are installed with the program, and what installs them.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Folders beside that of the executable.
const FOLDERS: [&str; 4] = ["", "../lib/pdawl", "../lib64/pdawl", "../lib"];

/// A library that is installed with the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Library {
    /// The name of its file.
    pub file: &'static str,
    /// The package that it is built from.
    pub package: &'static str,
    /// The goal of `make` that installs it alone.
    pub goal: &'static str,
}

/// What `pdawl exec` puts before an OpenCL program.
pub const LAYER: Library = Library {
    file: "libpdawl_opencl.so",
    package: "pdawl-opencl-layer",
    goal: "install-layer",
};

/// What carries messages over MPI.
pub const WIRE: Library = Library {
    file: "libpdawl_wire_mpi.so",
    package: "pdawl-wire-mpi",
    goal: "install-wire",
};

/// Why a library is not found.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NotInstalled {
    /// The system does not tell.
    #[error("it is not known where this program's file is, so {} is not found beside it", library.file)]
    NoFolder { library: Library },
    /// It is in no folder where it is looked for.
    #[error("{} is neither in {} nor in ../lib/pdawl or ../lib", library.file, folder.display())]
    Absent { library: Library, folder: PathBuf },
}

impl NotInstalled {
    /// The command that builds the library and puts it where it is found.
    pub fn command(&self) -> String {
        let source = source();
        match self {
            Self::NoFolder { library } => command(*library, Path::new(""), source.as_deref()),
            Self::Absent { library, folder } => command(*library, folder, source.as_deref()),
        }
    }
}

/// The library near the running program. A link to the program does not count.
pub fn library(library: Library) -> Result<PathBuf, NotInstalled> {
    let program = env::current_exe().and_then(fs::canonicalize).ok();
    let folder = program.as_deref().and_then(Path::parent);
    match folder {
        Some(folder) => near(folder, library),
        None => Err(NotInstalled::NoFolder { library }),
    }
}

/// The source that this crate was built from, if it is still there with all its packages.
/// Cargo's copies of a published crate have none of the others.
pub fn source() -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR"));
    let is_whole = source.join("opencl-layer/Cargo.toml").is_file();
    is_whole.then(|| source.to_owned())
}

fn near(folder: &Path, library: Library) -> Result<PathBuf, NotInstalled> {
    let mut candidates = FOLDERS.iter().map(|beside| folder.join(beside));
    let found = candidates.find_map(|folder| readable(&folder.join(library.file)));
    found.ok_or_else(|| NotInstalled::Absent {
        library,
        folder: folder.into(),
    })
}

/// The command for a program in this folder. Cargo builds a library beside the program that it
/// has built; a program in `bin` is installed.
fn command(library: Library, folder: &Path, source: Option<&Path>) -> String {
    if !folder.ends_with("bin") {
        return format!("cargo build --release -p {}", library.package);
    }
    let source = source.map_or_else(
        || "PDAWLS_SOURCE".into(),
        |source| source.display().to_string(),
    );
    let prefix = folder.parent().unwrap_or(folder).display();
    format!("make -C {source} {} PREFIX={prefix}", library.goal)
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
        let name = WIRE.file;
        let (bin, lib) = (root.path().join("bin"), root.path().join("lib/pdawl"));
        fs::create_dir_all(&bin).unwrap();
        fs::create_dir_all(&lib).unwrap();
        let absent = near(&bin, WIRE).unwrap_err();
        assert!(absent.to_string().contains(name), "{absent}");
        fs::write(lib.join(name), "").unwrap();
        let root = fs::canonicalize(root.path()).unwrap();
        assert_eq!(near(&bin, WIRE), Ok(root.join("lib/pdawl").join(name)));
        fs::write(bin.join(name), "").unwrap();
        assert_eq!(near(&bin, WIRE), Ok(root.join("bin").join(name)));
    }

    #[test]
    fn the_command_puts_a_library_where_it_is_found() {
        let of = |folder: &str, source| command(WIRE, Path::new(folder), source);
        let source = Some(Path::new("/src/pdawl"));
        assert_eq!(
            of("/src/pdawl/target/release", source),
            "cargo build --release -p pdawl-wire-mpi"
        );
        assert_eq!(
            of("/root/.cargo/bin", source),
            "make -C /src/pdawl install-wire PREFIX=/root/.cargo"
        );
        assert_eq!(
            of("/usr/bin", None),
            "make -C PDAWLS_SOURCE install-wire PREFIX=/usr"
        );
    }
}
