//! A layer that the program has built for itself: `cargo install` installs the program alone.
//!
//! It is built once from the source that the program was built from, by cargo, and kept in
//! the user's data under the program's version and the checksum of its sources. A program
//! that was installed later builds it again. [`plan`] decides, and [`Build`] acts.

use std::env;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, TryLockError};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;

use pdawl::installed::{self, LAYER};
use pdawl_profiler::atomic_file::AtomicFile;
use pdawl_profiler::file;

use super::program;
use crate::cli::failure::Failure;
use crate::cli::terminal;

/// The name under which a layer of this program is kept.
const NAME: &str = concat!(env!("CARGO_PKG_VERSION"), "-", env!("PDAWL_SOURCES"));

/// What there is to build with.
#[derive(Clone, Debug)]
struct There {
    source: Option<PathBuf>,
    cargo: Option<PathBuf>,
    /// The user's folder of data.
    data: Option<PathBuf>,
    /// The user's folder of what may be removed.
    cache: Option<PathBuf>,
    /// When the program's file was written.
    program: Option<SystemTime>,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Build {
    /// The file that is kept, which does not exist or is too old.
    kept: PathBuf,
    program: SystemTime,
    source: PathBuf,
    cargo: PathBuf,
    /// The folder that is built in.
    folder: PathBuf,
}

/// The kept layer, which is built if there is none.
///
/// # Errors
/// The outer one says what is missing to build it. The inner one is a build that fails or that
/// a signal ends.
pub fn provide() -> Result<Result<PathBuf, Failure>, &'static str> {
    let there = There::look();
    match kept(&there) {
        Some(file) if is_of(&file, there.program) => Ok(Ok(file)),
        _ => Ok(plan(there)?.run()),
    }
}

fn kept(there: &There) -> Option<PathBuf> {
    let data = there.data.as_ref()?;
    Some(data.join("pdawl").join(NAME).join(LAYER.file))
}

/// Whether a layer is of the program that was written then, or of one that was written later,
/// and nobody else can have written it.
fn is_of(kept: &Path, program: Option<SystemTime>) -> bool {
    let places = kept.parent().into_iter().chain([kept]);
    if places.filter_map(installed::foreign).next().is_some() {
        return false;
    }
    let written = fs::metadata(kept).and_then(|file| file.modified()).ok();
    written.is_some() && written >= program
}

/// How a layer is built with what there is.
fn plan(there: There) -> Result<Build, &'static str> {
    Ok(Build {
        kept: kept(&there).ok_or("neither XDG_DATA_HOME nor HOME names a folder to keep one")?,
        program: there.program.ok_or("this program's file cannot be read")?,
        source: (there.source).ok_or("the source that this program was built from is gone")?,
        cargo: there.cargo.ok_or("there is no cargo to build it")?,
        folder: (there.cache)
            .ok_or("neither XDG_CACHE_HOME nor HOME names a folder to build it")?
            .join("pdawl")
            .join(NAME),
    })
}

fn refuse_foreign(folder: &Path) -> io::Result<()> {
    match installed::foreign(folder) {
        None => Ok(()),
        Some(why) => Err(io::Error::other(why)),
    }
}

impl There {
    fn look() -> Self {
        let program = env::current_exe().ok();
        let written = |file: &PathBuf| fs::metadata(file)?.modified();
        Self {
            source: installed::source(),
            cargo: cargo(program.as_deref().and_then(Path::parent)),
            data: folder("XDG_DATA_HOME", ".local/share"),
            cache: folder("XDG_CACHE_HOME", ".cache"),
            program: program.as_ref().and_then(|file| written(file).ok()),
        }
    }
}

/// A folder of the user's.
fn folder(variable: &str, in_home: &str) -> Option<PathBuf> {
    let set = |name| env::var_os(name).filter(|value: &OsString| !value.is_empty());
    let named = set(variable).map(PathBuf::from);
    named.or_else(|| Some(Path::new(&set("HOME")?).join(in_home)))
}

/// Cargo in PATH, or beside the program, where `cargo install` puts it.
fn cargo(beside: Option<&Path>) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut folders = env::split_paths(&path).chain(beside.map(Path::to_owned));
    folders.find_map(|folder| Some(folder.join("cargo")).filter(|file| file.is_file()))
}

impl Build {
    fn run(&self) -> Result<PathBuf, Failure> {
        let _one = self.lock().map_err(|error| self.unkept(&error))?;
        // Another process may have built it meanwhile.
        if !is_of(&self.kept, Some(self.program)) {
            terminal::message(&format!(
                "pdawl: building the OpenCL layer from {}, once; this takes as long as to build pdawl",
                self.source.display()
            ));
            self.make_folder().map_err(|error| self.unkept(&error))?;
            self.build()?;
            self.keep().map_err(|error| self.unkept(&error))?;
            // What is left there only takes room.
            let _ = fs::remove_dir_all(&self.folder);
        }
        Ok(self.kept.clone())
    }

    /// Keeps other processes from building it until the file is closed.
    fn lock(&self) -> io::Result<File> {
        let folder = self.kept.parent().unwrap_or(&self.kept);
        file::make_folder(folder)?;
        refuse_foreign(folder)?;
        let file = file::lock(&folder.join("lock"))?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => {
                terminal::message("pdawl: waiting for a process that builds the OpenCL layer");
                file.lock()?;
            }
            Err(TryLockError::Error(error)) => return Err(error),
            Ok(()) => {}
        }
        Ok(file)
    }

    /// The folder to build in, in which nobody else can change what is built.
    fn make_folder(&self) -> io::Result<()> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder)?;
        refuse_foreign(&self.folder)
    }

    fn build(&self) -> Result<(), Failure> {
        let manifest = self.source.join("Cargo.toml");
        let mut cargo = Command::new(&self.cargo);
        cargo
            .args([
                "build",
                "--release",
                "--locked",
                "--quiet",
                "-p",
                LAYER.package,
            ])
            .arg("--manifest-path")
            .arg(&manifest)
            .arg("--target-dir")
            .arg(&self.folder)
            // The file of the toolchain there is the one that counts.
            .current_dir(&self.source)
            .stdin(Stdio::null())
            // Standard output is the program's.
            .stdout(Stdio::null());
        let by_hand = format!(
            "`cargo build --release -p {} --manifest-path {}`, and --layer with the file's path",
            LAYER.package,
            manifest.display()
        );
        let (_, status) = program::watched(&mut cargo, |error| {
            let what = format!("{} cannot be started: {error}", self.cargo.display());
            Failure::failed(what, &by_hand)
        })?;
        match status.signal() {
            None if status.success() => Ok(()),
            None => Err(Failure::failed(
                format!("the OpenCL layer cannot be built: cargo ended with {status}"),
                by_hand,
            )),
            Some(signal) => {
                terminal::message(&format!(
                    "pdawl: signal {signal} ended the build of the OpenCL layer; the next one goes \
                     on from there"
                ));
                Err(Failure::Program(u8::try_from(128 + signal).unwrap_or(1)))
            }
        }
    }

    /// Copies the file to its place, which has it whole or not at all.
    fn keep(&self) -> io::Result<()> {
        let mut built = File::open(self.folder.join("release").join(LAYER.file))?;
        AtomicFile::create(&self.kept)?.fill(|file| {
            io::copy(&mut built, file)?;
            file.set_modified(self.program)?;
            file.sync_all()
        })
    }

    fn unkept(&self, error: &io::Error) -> Failure {
        Failure::failed(
            format!("{} cannot be kept: {error}", self.kept.display()),
            "XDG_DATA_HOME with a folder that can be written, or --layer with the file's path",
        )
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::thread;
    use std::time::Duration;

    use tempfile::TempDir;

    use super::*;

    /// A folder with a `cargo` that notes each call, and then does what `script` says.
    fn there(script: &str) -> (TempDir, There) {
        let root = tempfile::tempdir().unwrap();
        let path = |name: &str| Some(root.path().join(name));
        let cargo = root.path().join("cargo");
        let text = format!(
            "#!/bin/sh\necho $* >>{}/calls\n{script}\n",
            root.path().display()
        );
        fs::write(&cargo, text).unwrap();
        fs::set_permissions(&cargo, PermissionsExt::from_mode(0o755)).unwrap();
        let there = There {
            source: path(""),
            cargo: Some(cargo),
            data: path("data"),
            cache: path("cache"),
            program: Some(SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000)),
        };
        (root, there)
    }

    /// What makes the library in the folder after --target-dir, the last argument.
    const MAKES: &str = "for last; do :; done; sleep 0.2; mkdir -p $last/release; \
                         echo made >$last/release/libpdawl_opencl.so";

    #[test]
    fn what_is_missing_is_said() {
        let (_root, there) = there("");
        assert!(plan(there.clone()).is_ok());
        for (without, said) in [
            (
                There {
                    source: None,
                    ..there.clone()
                },
                "source",
            ),
            (
                There {
                    cargo: None,
                    ..there.clone()
                },
                "no cargo",
            ),
            (
                There {
                    data: None,
                    ..there.clone()
                },
                "XDG_DATA_HOME",
            ),
            (
                There {
                    cache: None,
                    ..there.clone()
                },
                "XDG_CACHE_HOME",
            ),
            (
                There {
                    program: None,
                    ..there.clone()
                },
                "this program's file",
            ),
        ] {
            assert!(
                plan(without.clone()).unwrap_err().contains(said),
                "{without:?}"
            );
        }
    }

    #[test]
    fn processes_that_need_it_at_once_build_it_once() {
        let (root, there) = there(MAKES);
        let build = plan(there.clone()).unwrap();
        let kept = thread::scope(|scope| {
            let each = [(); 3].map(|()| scope.spawn(|| build.run().unwrap()));
            each.map(|one| one.join().unwrap())
        });
        assert!(kept.iter().all(|file| *file == build.kept));
        assert_eq!(fs::read_to_string(&build.kept).unwrap(), "made\n");
        let calls = fs::read_to_string(root.path().join("calls")).unwrap();
        assert_eq!(calls.lines().count(), 1, "{calls}");
        assert!(calls.contains("--locked") && calls.contains("-p pdawl-opencl-layer"));
        assert!(!build.folder.exists());
    }

    #[test]
    fn a_layer_is_of_its_program_or_of_a_later_one() {
        let (_root, there) = there(MAKES);
        let build = plan(there.clone()).unwrap();
        assert!(!is_of(&build.kept, there.program));
        build.run().unwrap();
        let after = |seconds| Some(build.program + Duration::from_secs(seconds));
        assert!(is_of(&build.kept, there.program));
        assert!(!is_of(&build.kept, after(1)));
        let later = Build {
            program: after(1).unwrap(),
            ..build.clone()
        };
        later.run().unwrap();
        assert!(is_of(&build.kept, after(1)) && is_of(&build.kept, there.program));
    }

    #[test]
    fn a_build_that_fails_keeps_nothing() {
        for (script, said) in [("exit 101", "exit status: 101"), ("true", "cannot be kept")] {
            let (_root, there) = there(script);
            let build = plan(there.clone()).unwrap();
            let failure = build.run().unwrap_err().in_words();
            assert!(failure.contains(said), "{failure}");
            assert!(!build.kept.exists());
        }
    }

    #[test]
    fn a_signal_that_ends_the_build_is_the_status() {
        let (_root, there) = there("kill -INT $$");
        let failure = plan(there.clone()).unwrap().run().unwrap_err();
        assert!(matches!(failure, Failure::Program(130)), "{failure:?}");
    }
}
