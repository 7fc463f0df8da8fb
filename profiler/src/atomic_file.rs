//! Atomic replacement of files: a temporary file in the same folder is written and then
//! renamed.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use tempfile::NamedTempFile;

use crate::file::is_trusted;

/// Links that point at one another, at most.
const MOST_LINKS: usize = 40;

/// A temporary file in the folder of its target until it is complete. Dropped before,
/// it leaves nothing.
#[derive(Debug)]
pub struct AtomicFile {
    file: NamedTempFile,
    place: PathBuf,
}

impl AtomicFile {
    /// Prepares the file that is to be at `path`, or to replace the one there, whose mode and
    /// group it keeps. A link is followed, also to a file that does not exist yet, unless
    /// somebody else has made it.
    ///
    /// # Errors
    /// Those of the file system; a file there that may not be written; a path
    /// to something that is no regular file, which a rename would take away.
    pub fn create(path: &Path) -> io::Result<Self> {
        let place = target(path)?;
        let existing = match fs::symlink_metadata(&place) {
            Ok(existing) => Some(existing),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        match &existing {
            Some(existing) if existing.is_dir() => {
                return Err(io::Error::new(
                    io::ErrorKind::IsADirectory,
                    "it is a folder",
                ));
            }
            Some(existing) if !existing.is_file() => {
                return Err(io::Error::other("it is no regular file"));
            }
            // A rename would also replace a protected file.
            Some(_) => {
                let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
                let mut options = OpenOptions::new();
                options.write(true).custom_flags(flags.bits().cast_signed());
                drop(options.open(&place)?);
            }
            None => {}
        }
        match existing {
            None => Self::temporary(place, 0o666),
            Some(existing) => {
                let made = Self::temporary(place, 0o600)?;
                let file = made.file.as_file();
                // Only the administrator can give a file away.
                let _ = fchown(file, Some(existing.uid()), None);
                let mode = mode_for(&existing, file, existing.mode() & 0o777);
                file.set_permissions(Permissions::from_mode(mode))?;
                Ok(made)
            }
        }
    }

    /// Prepares a file at exactly this path, which the user has not named, beside the file
    /// `of`. Whoever cannot read that cannot read this one, and only its owner can write it.
    /// The caller has seen that what is there, if anything, may be replaced.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn beside(of: &Metadata, path: &Path) -> io::Result<Self> {
        let wanted = of.mode() & 0o644 | 0o600;
        let made = Self::temporary(path.to_owned(), wanted)?;
        let file = made.file.as_file();
        // The umask has taken its part.
        let mode = mode_for(of, file, file.metadata()?.mode() & wanted);
        file.set_permissions(Permissions::from_mode(mode))?;
        Ok(made)
    }

    /// A file in the folder of this place. The umask takes its part of the mode.
    fn temporary(place: PathBuf, mode: u32) -> io::Result<Self> {
        if place.file_name().is_none() {
            return Err(io::Error::other("it names no file"));
        }
        let mut builder = tempfile::Builder::new();
        builder.prefix(".pdawl-");
        builder.permissions(Permissions::from_mode(mode));
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

/// Where a file is written whose path the user has given: where its links lead, also if no file
/// is there yet. A link that somebody else has made is not what the user means, and a system
/// need not refuse it itself.
///
/// # Errors
/// Such a link, and links without an end.
pub fn target(path: &Path) -> io::Result<PathBuf> {
    let mut place = path.to_owned();
    for _ in 0..MOST_LINKS {
        match fs::symlink_metadata(&place) {
            Ok(about) if about.is_symlink() && !is_trusted(about.uid()) => {
                return Err(io::Error::other(format!(
                    "it is a link of user {}, which is not followed",
                    about.uid()
                )));
            }
            // What such a link of the system to a pipe says is no path.
            Ok(about) if about.is_symlink() && is_open_pipe(&place) => return Ok(place),
            Ok(about) if about.is_symlink() => {
                place = folder(&place).join(fs::read_link(&place)?);
            }
            _ => return Ok(place),
        }
    }
    Err(io::Error::other("its links point at one another"))
}

/// Whether a path such as `/dev/stdout` leads to an open file of a process that has no path.
fn is_open_pipe(place: &Path) -> bool {
    let is_of_system = fs::canonicalize(folder(place)).is_ok_and(|at| at.starts_with("/proc"));
    is_of_system && fs::metadata(place).is_ok_and(|about| !about.is_file() && !about.is_dir())
}

/// The mode of a file that takes the group of another one. Where it cannot have that, its own
/// group may do no more than everybody.
fn mode_for(of: &Metadata, file: &File, mode: u32) -> u32 {
    let own = file.metadata().map(|about| about.gid());
    let kept = own.is_ok_and(|own| own == of.gid()) || fchown(file, None, Some(of.gid())).is_ok();
    match kept {
        true => mode,
        false => mode & (0o707 | (mode & 0o007) << 3),
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
    use std::os::unix::fs::{chown, lchown, symlink};

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
        assert!(AtomicFile::create(Path::new("/dev/null")).is_err());
        assert!(names(folder.path()).is_empty());
    }

    #[test]
    fn a_link_stays_a_link_and_may_lead_to_no_file_yet() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("deep")).unwrap();
        for (link, to, real) in [
            ("absolute", at("one"), at("one")),
            ("relative", "deep/two".into(), at("deep/two")),
            ("twice", "relative".into(), at("deep/two")),
        ] {
            symlink(to, at(link)).unwrap();
            for text in ["new", "newer"] {
                write(&at(link), |out| out.write_all(text.as_bytes())).unwrap();
                assert!(fs::symlink_metadata(at(link)).unwrap().is_symlink());
                assert_eq!(fs::read_to_string(&real).unwrap(), text);
            }
        }
        symlink("round", at("round")).unwrap();
        assert!(AtomicFile::create(&at("round")).is_err());
        symlink("none/file", at("nowhere")).unwrap();
        let error = AtomicFile::create(&at("nowhere")).unwrap_err();
        assert_eq!(error.to_string(), "its folder does not exist");
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn a_file_that_is_replaced_keeps_its_mode_also_while_it_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npy");
        for kept in [0o600, 0o640, 0o666, 0o755] {
            fs::write(&path, "old").unwrap();
            fs::set_permissions(&path, Permissions::from_mode(kept)).unwrap();
            let made = AtomicFile::create(&path).unwrap();
            assert_eq!(mode(made.file.path()), kept);
            made.write(|out| out.write_all(b"new")).unwrap();
            assert_eq!(mode(&path), kept);
        }
    }

    #[test]
    fn a_file_beside_another_is_for_its_readers_alone() {
        let folder = tempfile::tempdir().unwrap();
        let (text, path) = (folder.path().join("a"), folder.path().join("b"));
        fs::write(&text, "").unwrap();
        for (of, most) in [
            (0o600, 0o600),
            (0o640, 0o640),
            (0o666, 0o644),
            (0o755, 0o644),
        ] {
            fs::set_permissions(&text, Permissions::from_mode(of)).unwrap();
            let made = AtomicFile::beside(&fs::metadata(&text).unwrap(), &path).unwrap();
            made.write(|out| out.write_all(b"x")).unwrap();
            assert_eq!(mode(&path) & !most, 0, "{of:o}");
        }
    }

    #[test]
    fn links_and_groups_of_other_users() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("SKIPPED: files of other users, which only the administrator can make");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("secret"), "old").unwrap();
        symlink(at("secret"), at("link")).unwrap();
        lchown(at("link"), Some(2002), None).unwrap();
        let error = AtomicFile::create(&at("link")).unwrap_err().to_string();
        assert!(error.contains("a link of user 2002"), "{error}");
        chown(at("secret"), Some(2001), Some(2003)).unwrap();
        write(&at("secret"), |out| out.write_all(b"new")).unwrap();
        let about = fs::metadata(at("secret")).unwrap();
        assert_eq!((about.uid(), about.gid()), (2001, 2003));
    }
}
