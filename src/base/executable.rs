//! The file that the program is in, and the command that starts it again. Both are those of the
//! running executable, unless that has loaded the program as a library.

use std::env;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// A program that another one has loaded, as Python loads a module.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// What starts it, before its arguments.
    pub start: Vec<OsString>,
    /// The library that it is.
    pub file: PathBuf,
}

static LOADED: OnceLock<Loaded> = OnceLock::new();

impl Loaded {
    /// Says so for the whole process. What was said first counts.
    pub fn set(self) {
        LOADED.get_or_init(|| self);
    }
}

/// The command that starts the program again, which takes its arguments.
///
/// # Errors
/// When the system does not tell where the executable is.
pub fn again() -> io::Result<Command> {
    match LOADED.get().and_then(|loaded| loaded.start.split_first()) {
        Some((first, rest)) => {
            let mut command = Command::new(first);
            command.args(rest);
            Ok(command)
        }
        None => env::current_exe().map(Command::new),
    }
}

/// The file of the program.
///
/// # Errors
/// As [`again`].
pub fn file() -> io::Result<PathBuf> {
    match LOADED.get() {
        Some(loaded) => Ok(loaded.file.clone()),
        None => env::current_exe(),
    }
}

/// The folder of programs where Python has installed this one.
pub fn scripts() -> Option<PathBuf> {
    scripts_of(&LOADED.get()?.file)
}

/// `PREFIX/lib/python3.X/site-packages/pdawl/MODULE` belongs to `PREFIX/bin`.
fn scripts_of(module: &Path) -> Option<PathBuf> {
    Some(module.ancestors().nth(5)?.join("bin"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_in_the_prefix_of_a_module() {
        let of = |module: &str| scripts_of(Path::new(module));
        let installed = of("/usr/local/lib/python3.11/dist-packages/pdawl/_pdawl.abi3.so");
        assert_eq!(installed, Some("/usr/local/bin".into()));
        assert_eq!(of("/pdawl/_pdawl.abi3.so"), None);
    }
}
