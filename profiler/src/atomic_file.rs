//! Atomic replacement of files: a temporary file in the same folder is written and then
//! renamed.

use std::fs::{self, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// A temporary file in the folder of its target until it is complete. Dropped before,
/// it leaves nothing.
#[derive(Debug)]
pub struct AtomicFile {
    file: NamedTempFile,
    place: PathBuf,
}

impl AtomicFile {
    /// Prepares the file that is to be at `path`, or to replace the one there.
    ///
    /// # Errors
    /// Those of the file system; a file there that may not be written; a path
    /// to something that is no regular file, which a rename would take away.
    pub fn create(path: &Path) -> io::Result<Self> {
        // A link is followed, so that what it points at is replaced.
        let place = match fs::canonicalize(path) {
            Ok(real) => real,
            Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_owned(),
            Err(error) => return Err(error),
        };
        match fs::metadata(&place) {
            Ok(existing) if existing.is_dir() => {
                return Err(io::Error::new(
                    io::ErrorKind::IsADirectory,
                    "it is a folder",
                ));
            }
            Ok(existing) if !existing.is_file() => {
                return Err(io::Error::other("it is no regular file"));
            }
            // A rename would also replace a protected file.
            Ok(_) => drop(OpenOptions::new().write(true).open(&place)?),
            Err(_) => {}
        }
        if place.file_name().is_none() {
            return Err(io::Error::other("it names no file"));
        }
        let mut builder = tempfile::Builder::new();
        builder.prefix(".pdawl-");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // As for any new file; the umask takes its part.
            builder.permissions(fs::Permissions::from_mode(0o666));
        }
        let folder = folder(&place);
        let file = builder
            .tempfile_in(folder)
            .map_err(|e| explained(folder, e))?;
        Ok(Self { file, place })
    }

    /// Fills the file, and puts it in its place. When anything fails, what was
    /// there before stays there.
    ///
    /// # Errors
    /// Those of the file system and of `contents`.
    pub fn write(self, contents: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        self.fill(|file| {
            let mut writer = BufWriter::new(&mut *file);
            contents(&mut writer)?;
            writer.flush()?;
            drop(writer);
            // Without this a power cut after the rename may leave an empty file.
            file.sync_all()
        })
    }

    /// The file, before it is in its place.
    pub fn file_mut(&mut self) -> &mut fs::File {
        self.file.as_file_mut()
    }

    /// Where the file is before it is in its place.
    pub fn temporary_path(&self) -> &Path {
        self.file.path()
    }

    /// Puts the file in its place.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn finish(self) -> io::Result<()> {
        // Without this a power cut after the rename may leave an empty file.
        self.file.as_file().sync_all()?;
        self.file.persist(self.place).map_err(|error| error.error)?;
        Ok(())
    }

    /// As [`Self::write`] for who wants the file itself, and takes care that its content
    /// is on the disk where that matters.
    ///
    /// # Errors
    /// Those of the file system and of `contents`.
    pub fn fill<E: From<io::Error>>(
        self,
        contents: impl FnOnce(&mut fs::File) -> Result<(), E>,
    ) -> Result<(), E> {
        let Self { mut file, place } = self;
        contents(file.as_file_mut())?;
        file.persist(place).map_err(|error| error.error)?;
        Ok(())
    }
}

/// Why no file can be made in a folder, without the name that the file has as
/// long as it is beside its place.
fn explained(folder: &Path, error: io::Error) -> io::Error {
    let why = match error.kind() {
        // Some folders, such as /proc, have no room for files.
        io::ErrorKind::NotFound if folder.is_dir() => "no file can be created in that folder",
        io::ErrorKind::NotFound => "its folder does not exist",
        kind @ (io::ErrorKind::PermissionDenied
        | io::ErrorKind::ReadOnlyFilesystem
        | io::ErrorKind::NotADirectory) => return kind.into(),
        _ => return error,
    };
    io::Error::new(error.kind(), why)
}

/// Replaces the file at `path` by what `contents` writes.
///
/// # Errors
/// As [`AtomicFile::create`] and [`AtomicFile::write`].
pub fn write(
    path: &Path,
    contents: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    AtomicFile::create(path)?.write(contents)
}

/// Where a file lies, or would lie.
pub fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    #[test]
    fn a_failed_write_leaves_what_was_there_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        write(&path, |out| out.write_all(b"old")).unwrap();
        let failed = write(&path, |out| {
            out.write_all(b"half")?;
            Err(io::ErrorKind::StorageFull.into())
        });
        assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(names(folder.path()), ["a.csv"]);
    }

    #[test]
    fn what_is_no_file_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        assert!(AtomicFile::create(folder.path()).is_err());
        let missing = AtomicFile::create(&folder.path().join("none/a.csv")).unwrap_err();
        assert_eq!(missing.to_string(), "its folder does not exist");
        // Not even the administrator can create a file there.
        let full = AtomicFile::create(Path::new("/proc/pdawl.csv")).unwrap_err();
        assert_eq!(full.to_string(), "no file can be created in that folder");
        assert!(AtomicFile::create(Path::new("")).is_err());
        #[cfg(unix)]
        assert!(AtomicFile::create(Path::new("/dev/null")).is_err());
        assert!(names(folder.path()).is_empty());
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        fs::write(&real, "old").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        write(&link, |out| out.write_all(b"new")).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&real).unwrap(), "new");
    }
}
