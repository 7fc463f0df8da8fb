//! Output files. A path is tried before the long work begins, and a file appears
//! whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Seek, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pdawl_profiler::atomic_file::{self, AtomicFile, folder};
use pdawl_profiler::file::{is_trusted, waiting};

use super::failure::Failure;

/// A file that could be created when its path was tried.
#[derive(Debug)]
pub struct Output {
    path: PathBuf,
    target: Target,
}

#[derive(Debug)]
enum Target {
    /// A temporary file, renamed when it is complete.
    AtomicFile { file: AtomicFile, _listed: Listed },
    /// Something that is no regular file, such as `/dev/null`. What was written to it
    /// cannot be taken back.
    Direct { file: File, is_begun: bool },
}

impl Output {
    /// Tries the path.
    ///
    /// # Errors
    /// When its folder is missing, or it cannot be written.
    pub fn prepare(path: &Path) -> Result<Self, Failure> {
        let target = target(path).map_err(|error| refused(path, &error))?;
        Ok(Self {
            path: path.to_owned(),
            target,
        })
    }

    /// Writes the file and moves it to its path.
    ///
    /// # Errors
    /// When it cannot be written. A file that was there before then stays.
    pub fn write(
        self,
        contents: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Failure> {
        let written = match self.target {
            Target::AtomicFile { file, _listed } => file.write(contents),
            Target::Direct { file, .. } => {
                let mut writer = BufWriter::new(file);
                contents(&mut writer).and_then(|()| writer.flush())
            }
        };
        written.map_err(|error| refused(&self.path, &error))
    }
}

impl Output {
    /// Forgets what was written, if anything was.
    ///
    /// # Errors
    /// Those of the file system, and when that is not possible.
    pub fn begin(&mut self) -> io::Result<()> {
        match &mut self.target {
            Target::AtomicFile { file, .. } => {
                file.file_mut().rewind()?;
                file.file_mut().set_len(0)
            }
            Target::Direct { is_begun, .. } if *is_begun => Err(io::Error::other(
                "the result began anew, and only a file can be written again",
            )),
            Target::Direct { is_begun, .. } => {
                *is_begun = true;
                Ok(())
            }
        }
    }

    /// Writes more.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.target {
            Target::AtomicFile { file, .. } => file.file_mut().write_all(bytes),
            Target::Direct { file, .. } => file.write_all(bytes),
        }
    }

    /// Moves the file to its path.
    ///
    /// # Errors
    /// When that is not possible. A file that was there before then stays.
    pub fn finish(self) -> Result<(), Failure> {
        match self.target {
            Target::AtomicFile { file, _listed } => {
                file.finish().map_err(|error| refused(&self.path, &error))
            }
            Target::Direct { .. } => Ok(()),
        }
    }
}

/// The temporary files that this process has.
static TEMPORARY: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A temporary file is among [`TEMPORARY`] as long as this is.
#[derive(Debug)]
struct Listed(PathBuf);

impl Listed {
    fn of(path: &Path) -> Self {
        temporary().push(path.to_owned());
        Self(path.to_owned())
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        temporary().retain(|path| *path != self.0);
    }
}

fn temporary() -> MutexGuard<'static, Vec<PathBuf>> {
    TEMPORARY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes what has not been completed, for a process that ends without dropping it.
pub fn remove_temporary() {
    for path in temporary().drain(..) {
        // What is completed meanwhile has another name.
        let _ = fs::remove_file(path);
    }
}

fn target(path: &Path) -> io::Result<Target> {
    let path = &atomic_file::target(path)?;
    match fs::metadata(path) {
        // Whoever has made it could read what is written.
        Ok(existing) if existing.file_type().is_fifo() && !is_trusted(existing.uid()) => Err(
            io::Error::other(format!("it is a pipe of user {}", existing.uid())),
        ),
        Ok(existing) if !existing.is_file() && !existing.is_dir() => {
            let file = waiting(|| OpenOptions::new().write(true).open(path))?;
            Ok(Target::Direct {
                file,
                is_begun: false,
            })
        }
        _ => {
            let file = AtomicFile::create(path)?;
            let _listed = Listed::of(file.temporary_path());
            Ok(Target::AtomicFile { file, _listed })
        }
    }
}

/// The canonical form of a path, whose file need not exist.
pub fn canonical(path: &Path) -> PathBuf {
    let real = |path: &Path| fs::canonicalize(path).ok();
    let new = || {
        let place = atomic_file::target(path).ok()?;
        Some(real(folder(&place))?.join(place.file_name()?))
    };
    real(path).or_else(new).unwrap_or_else(|| path.to_owned())
}

fn refused(path: &Path, error: &io::Error) -> Failure {
    let remedy = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "make room there, or give a path on another disk"
        }
        io::ErrorKind::FileTooLarge => {
            "raise the limit of a file's size (`ulimit -f`), or give a path elsewhere"
        }
        _ => "give a path in a folder that exists and can be written",
    };
    Failure::failed(format!("cannot write {}: {error}", path.display()), remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        fs::read_dir(folder)
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    fn message(failure: Failure) -> String {
        match failure {
            Failure::Failed { what, .. } => what,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_file_appears_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        fs::write(&path, "old").unwrap();
        let output = Output::prepare(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        output.write(|out| out.write_all(b"new")).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(names(folder.path()), ["a.json"]);
    }

    #[test]
    fn a_failed_write_leaves_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        fs::write(&path, "old").unwrap();
        let output = Output::prepare(&path).unwrap();
        let failed = output.write(|out| {
            out.write_all(b"half")?;
            Err(io::ErrorKind::StorageFull.into())
        });
        assert!(message(failed.unwrap_err()).contains("a.json"));
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(names(folder.path()), ["a.json"]);
    }

    #[test]
    fn a_file_that_begins_again_has_only_what_came_then() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npy");
        let mut output = Output::prepare(&path).unwrap();
        for bytes in [&b"longer"[..], b"new"] {
            output.begin().unwrap();
            output.append(bytes).unwrap();
            assert!(!path.exists());
        }
        output.finish().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(names(folder.path()), ["a.npy"]);
        let mut null = Output::prepare(Path::new("/dev/null")).unwrap();
        null.begin().unwrap();
        assert!(null.begin().is_err());
    }

    #[test]
    fn an_unused_path_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        drop(Output::prepare(&folder.path().join("a.json")).unwrap());
        assert!(names(folder.path()).is_empty());
    }

    #[test]
    fn temporary_files_are_known_until_they_are_complete() {
        let folder = tempfile::tempdir().unwrap();
        let known = || {
            let of_folder = |path: &&PathBuf| path.starts_with(folder.path());
            temporary().iter().filter(of_folder).count()
        };
        let paths = ["a", "b", "c"].map(|name| folder.path().join(name));
        let [first, second, third] = paths.map(|path| Output::prepare(&path).unwrap());
        assert_eq!(known(), 3);
        drop(first);
        second.finish().unwrap();
        assert_eq!(known(), 1);
        third.write(|out| out.write_all(b"c")).unwrap();
        assert_eq!(known(), 0);
        assert_eq!(names(folder.path()).len(), 2);
    }

    #[test]
    fn what_cannot_be_written_is_refused_beforehand() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("none/a.json");
        let refused = |path: &Path| message(Output::prepare(path).unwrap_err());
        assert!(refused(&missing).ends_with("its folder does not exist"));
        assert!(refused(folder.path()).ends_with("it is a folder"));
        // Nobody can create a file there, not even the administrator.
        assert!(refused(Path::new("/proc/pdawl.json")).starts_with("cannot write /proc/"));
    }

    #[test]
    fn a_device_is_written_and_not_replaced() {
        let null = Path::new("/dev/null");
        let output = Output::prepare(null).unwrap();
        output.write(|out| out.write_all(b"gone")).unwrap();
        assert!(fs::metadata(null).unwrap().file_type().is_char_device());
    }

    #[test]
    fn a_place_is_one_however_it_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| canonical(&folder.path().join(path));
        std::os::unix::fs::symlink(folder.path(), folder.path().join("link")).unwrap();
        assert_eq!(at("a.json"), at("./link/a.json"));
        assert_ne!(at("a.json"), at("b.json"));
        std::os::unix::fs::symlink("a.json", folder.path().join("to-a.json")).unwrap();
        assert_eq!(at("a.json"), at("to-a.json"));
        fs::write(folder.path().join("a.json"), "").unwrap();
        assert_eq!(at("a.json"), at("link/a.json"));
    }
}
