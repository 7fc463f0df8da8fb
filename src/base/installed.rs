//! Where libraries are that are installed with the program, and what installs them.
//!
//! Nobody names these libraries, and others may write into a folder near the program. One is
//! loaded only if it, and the folder that it is in, are the user's or the administrator's and
//! nobody else can change them.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use pdawl_profiler::file::{foreign_library, is_trusted, regular};
use thiserror::Error;

use crate::executable;

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
    /// It is there, and may be of somebody else.
    #[error("{} is not loaded, since {why}", file.display())]
    Foreign {
        library: Library,
        folder: PathBuf,
        file: PathBuf,
        why: String,
    },
}

impl NotInstalled {
    /// The command that builds the library and puts it where it is found.
    pub fn command(&self) -> String {
        let source = source();
        match self {
            Self::NoFolder { library } => command(*library, Path::new(""), source.as_deref()),
            Self::Absent { library, folder }
            | Self::Foreign {
                library, folder, ..
            } => command(*library, folder, source.as_deref()),
        }
    }
}

/// The library near the running program. A link to the program does not count.
pub fn library(library: Library) -> Result<PathBuf, NotInstalled> {
    let program = executable::file().and_then(fs::canonicalize).ok();
    let folder = program.as_deref().and_then(Path::parent);
    let found = match folder {
        Some(folder) => near(folder, library),
        None => Err(NotInstalled::NoFolder { library }),
    };
    match (found, executable::scripts()) {
        // Beside a module of Python's are the package's libraries alone.
        (Err(NotInstalled::Absent { .. }), Some(scripts)) => near(&scripts, library),
        (found, _) => found,
    }
}

/// The source that this crate was built from, if it is still there with all its packages.
/// Cargo's copies of a published crate have none of the others.
pub fn source() -> Option<PathBuf> {
    let source = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let is_whole = source.join("opencl-layer/Cargo.toml").is_file();
    is_whole.then(|| source.to_owned())
}

fn near(folder: &Path, library: Library) -> Result<PathBuf, NotInstalled> {
    let mut not = NotInstalled::Absent {
        library,
        folder: folder.into(),
    };
    for beside in FOLDERS.map(|beside| folder.join(beside)) {
        let Some(file) = readable(&beside.join(library.file)) else {
            continue;
        };
        let folders = [Some(&*beside), file.parent()];
        let why = (folders.into_iter().flatten())
            .chain([&*file])
            .find_map(foreign);
        match why {
            None => return Ok(file),
            Some(why) => {
                not = NotInstalled::Foreign {
                    library,
                    folder: folder.into(),
                    file,
                    why,
                };
            }
        }
    }
    Err(not)
}

/// Why a library at this path, or in this folder, may be of somebody else.
pub fn foreign(path: &Path) -> Option<String> {
    /// In such a folder, only who owns a file can replace it.
    const STICKY: u32 = 0o1000;
    let about = match fs::metadata(path) {
        Ok(about) => about,
        Err(error) => return Some(error.to_string()),
    };
    let kept = about.is_dir() && about.mode() & STICKY != 0 && is_trusted(about.uid());
    let why = foreign_library(&about).filter(|_| !kept)?;
    Some(match about.is_dir() {
        true => format!("others may write to {}: {why}", path.display()),
        false => why,
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
    regular(path).ok()?;
    fs::canonicalize(path).ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown};

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
    fn a_library_that_others_can_write_is_passed_over() {
        let root = tempfile::tempdir().unwrap();
        let (bin, lib) = (root.path().join("bin"), root.path().join("lib"));
        for folder in [&bin, &lib] {
            fs::create_dir_all(folder).unwrap();
            fs::write(folder.join(WIRE.file), "").unwrap();
        }
        let set = |path: &Path, mode: u32| {
            fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        };
        let is_of = |folder: &Path| {
            let folder = fs::canonicalize(folder).unwrap();
            assert_eq!(near(&bin, WIRE), Ok(folder.join(WIRE.file)));
        };
        for path in [bin.clone(), bin.join(WIRE.file)] {
            set(&path, 0o755);
            is_of(&bin);
            set(&path, 0o777);
            is_of(&lib);
            set(&path, 0o755);
        }
        set(&bin, 0o1777);
        is_of(&bin);
        set(&bin, 0o777);
        set(&lib, 0o777);
        let refused = near(&bin, WIRE).unwrap_err();
        assert!(
            matches!(&refused, NotInstalled::Foreign { .. }),
            "{refused}"
        );
        assert!(
            refused.command().contains(WIRE.goal),
            "{}",
            refused.command()
        );
        if !rustix::process::geteuid().is_root() {
            eprintln!("SKIPPED: files of other users, which only the administrator can make");
            return;
        }
        set(&bin, 0o755);
        set(&lib, 0o755);
        for path in [bin.clone(), bin.join(WIRE.file)] {
            chown(&path, Some(2002), None).unwrap();
            is_of(&lib);
            chown(&path, Some(0), None).unwrap();
        }
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
