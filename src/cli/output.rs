//! Files that a run writes. A path is tried before the long work begins, and a
//! file appears whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use pdawl::beside;
use tempfile::NamedTempFile;

use super::failure::Failure;

/// A place that could be written when it was asked for.
#[derive(Debug)]
pub struct Output {
    path: PathBuf,
    target: Target,
}

#[derive(Debug)]
enum Target {
    /// Written beside `path`, and renamed.
    Beside { file: NamedTempFile, path: PathBuf },
    /// Something that is no regular file, such as `/dev/null`.
    Direct(File),
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

    /// Writes the file, and puts it in its place.
    ///
    /// # Errors
    /// When the disk is full, say; what was there before stays there.
    pub fn write(
        self,
        contents: impl FnOnce(&mut BufWriter<&mut File>) -> io::Result<()>,
    ) -> Result<(), Failure> {
        let Self { path, target } = self;
        let fill = |file: &mut File| {
            let mut writer = BufWriter::new(file);
            contents(&mut writer)?;
            writer.flush()
        };
        let written = match target {
            Target::Direct(mut file) => fill(&mut file),
            Target::Beside {
                mut file,
                path: place,
            } => fill(file.as_file_mut())
                .and_then(|()| file.persist(place).map(drop).map_err(|e| e.error)),
        };
        written.map_err(|error| refused(&path, &error))
    }
}

fn target(path: &Path) -> io::Result<Target> {
    // A link is followed, so that what it points at is replaced.
    let path = match fs::canonicalize(path) {
        Ok(real) => real,
        Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_owned(),
        Err(error) => return Err(error),
    };
    if let Ok(existing) = fs::metadata(&path) {
        if existing.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let file = OpenOptions::new().write(true).open(&path)?;
        if !existing.is_file() {
            return Ok(Target::Direct(file));
        }
    }
    if path.file_name().is_none() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    Ok(Target::Beside {
        file: beside::create(&path)?,
        path,
    })
}

fn refused(path: &Path, error: &io::Error) -> Failure {
    // tempfile puts the path of its own file into the message.
    let why = match error.kind() {
        // Some folders, such as /proc, have no room for files.
        io::ErrorKind::NotFound if beside::folder(path).is_dir() => {
            "no file can be created in that folder".to_owned()
        }
        io::ErrorKind::NotFound => "its folder does not exist".to_owned(),
        io::ErrorKind::IsADirectory => "it is a folder".to_owned(),
        kind @ (io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem) => {
            kind.to_string()
        }
        _ => error.to_string(),
    };
    Failure::failed(
        format!("cannot write {}: {why}", path.display()),
        "give a path in a folder that exists and can be written",
    )
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
    fn an_unused_path_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        drop(Output::prepare(&folder.path().join("a.json")).unwrap());
        assert!(names(folder.path()).is_empty());
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

    #[cfg(unix)]
    #[test]
    fn a_device_is_written_and_not_replaced() {
        use std::os::unix::fs::FileTypeExt;
        let null = Path::new("/dev/null");
        let output = Output::prepare(null).unwrap();
        output.write(|out| out.write_all(b"gone")).unwrap();
        assert!(fs::metadata(null).unwrap().file_type().is_char_device());
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        fs::write(&real, "old").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let output = Output::prepare(&link).unwrap();
        output.write(|out| out.write_all(b"new")).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&real).unwrap(), "new");
    }
}
