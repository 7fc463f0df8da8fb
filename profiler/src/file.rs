//! Opening files. What the user names is trusted, as far as it is a file. What the program
//! looks for itself, such as a cache beside a matrix, may be of somebody else who can write
//! into the same folder: no link is followed to it, and its owner and mode are looked at.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::fs::OFlags;
use rustix::process::geteuid;

/// The administrator, whom everybody trusts.
const ROOT: u32 = 0;
/// In a mode: the group and others may write.
const SHARED: u32 = 0o022;

/// How many threads wait for the other end of a pipe.
static WAITING: AtomicUsize = AtomicUsize::new(0);

/// Opens a regular file that the user named or keeps. Anything else is refused: to open a pipe
/// would wait for whoever writes it.
///
/// # Errors
/// What the system refuses, and what is no regular file.
pub fn regular(path: &Path) -> io::Result<File> {
    open(path, OFlags::empty())
}

/// As [`regular`], and follows no link: for files that the user did not name.
///
/// # Errors
/// As [`regular`], and a link.
pub fn found(path: &Path) -> io::Result<File> {
    if fs::symlink_metadata(path)?.is_symlink() {
        return Err(io::Error::other("it is a link, which is not followed"));
    }
    open(path, OFlags::NOFOLLOW)
}

fn open(path: &Path, flags: OFlags) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags((flags | OFlags::NONBLOCK).bits().cast_signed())
        .open(path)?;
    match file.metadata()? {
        about if about.is_file() => Ok(file),
        about if about.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        _ => Err(io::Error::other("it is no regular file")),
    }
}

/// Opens an empty file, or the one that is there, to lock it. It follows no link.
///
/// # Errors
/// What the system refuses, and what is no regular file.
pub fn lock(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = OpenOptions::new()
        .create(true)
        .write(true)
        .truncate(false)
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is no regular file")),
    }
}

/// Makes a folder and those around it, as far as they do not exist. Nobody else can write to
/// them, whatever the umask is.
///
/// # Errors
/// What the system refuses.
pub fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o755).create(path)
}

/// Whether the user or the administrator has this id.
pub fn is_trusted(owner: u32) -> bool {
    owner == geteuid().as_raw() || owner == ROOT
}

/// Whether the user has this id.
pub fn is_own(owner: u32) -> bool {
    owner == geteuid().as_raw()
}

/// Why what was found must not be used: somebody else may have written it. `owner` is trusted
/// beside the user and the administrator.
pub fn foreign(about: &Metadata, owner: Option<u32>) -> Option<String> {
    match (about.uid(), about.mode() & SHARED) {
        (of, _) if !is_trusted(of) && owner != Some(of) => Some(format!("it belongs to user {of}")),
        (_, 0) => None,
        _ => Some(format!(
            "its mode {:o} lets others write it",
            about.mode() & 0o7777
        )),
    }
}

/// As [`foreign`] for libraries and their folders. A group with the number of its owner is that
/// of this user alone: many systems give each user one, and files that it may write.
pub fn foreign_library(about: &Metadata) -> Option<String> {
    let private = about.gid() == about.uid() && about.mode() & SHARED == 0o020;
    let owned = private && is_trusted(about.uid());
    foreign(about, None).filter(|_| !owned)
}

/// Does what may wait for the other end of a pipe. A signal then ends the process at once:
/// nothing has begun.
pub fn waiting<T>(act: impl FnOnce() -> T) -> T {
    WAITING.fetch_add(1, Ordering::Relaxed);
    let done = act();
    WAITING.fetch_sub(1, Ordering::Relaxed);
    done
}

/// Whether a thread is in [`waiting`].
pub fn is_waiting() -> bool {
    WAITING.load(Ordering::Relaxed) > 0
}

/// The content of a regular file of at most so many bytes.
///
/// # Errors
/// As [`regular`], and a file that is longer.
pub fn bounded(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    content(regular(path)?, most)
}

/// As [`bounded`], of a pipe, too. What never ends, such as `/dev/zero`, ends here.
///
/// # Errors
/// What the system refuses, and what is longer.
pub fn bounded_input(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    match fs::metadata(path)?.is_file() {
        true => bounded(path, most),
        false => waiting(|| content(File::open(path)?, most)),
    }
}

/// The content of an open file of at most so many bytes.
///
/// # Errors
/// What the system refuses, and what is longer.
pub fn content(file: File, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most {
        true => Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it is longer than the {most} bytes that are read"),
        )),
        false => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use rustix::fs::{FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn as_much_is_read_as_there_may_be_and_no_more() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, b"four").unwrap();
        assert_eq!(bounded(&path, 4).unwrap(), b"four");
        let error = bounded(&path, 3).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        assert!(error.to_string().contains("longer than the 3 bytes"));
        assert!(bounded_input(Path::new("/dev/zero"), 1 << 16).is_err());
    }

    #[test]
    fn only_regular_files_are_opened_and_nothing_waits() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let here = rustix::fs::CWD;
        mknodat(here, at("fifo"), FileType::Fifo, Mode::RWXU, 0).unwrap();
        symlink(at("fifo"), at("to-fifo")).unwrap();
        fs::create_dir(at("folder")).unwrap();
        fs::write(at("file"), "x").unwrap();
        symlink(at("file"), at("link")).unwrap();
        for path in [at("fifo"), at("to-fifo"), at("folder"), "/dev/zero".into()] {
            assert!(regular(&path).is_err(), "{}", path.display());
            assert!(found(&path).is_err(), "{}", path.display());
            assert!(lock(&path).is_err(), "{}", path.display());
            assert!(bounded(&path, 10).is_err(), "{}", path.display());
        }
        assert!(regular(&at("link")).is_ok());
        let error = found(&at("link")).unwrap_err().to_string();
        assert_eq!(error, "it is a link, which is not followed");
        assert!(lock(&at("link")).is_err());
        assert_eq!(fs::read(at("file")).unwrap(), b"x");
    }

    #[test]
    fn what_others_can_write_is_foreign() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "").unwrap();
        let with = |mode: u32| {
            fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
            fs::metadata(&path).unwrap()
        };
        for mode in [0o600, 0o644, 0o755, 0o444] {
            assert_eq!(foreign(&with(mode), None), None, "{mode:o}");
        }
        for mode in [0o666, 0o664, 0o646, 0o602] {
            assert!(foreign(&with(mode), None).is_some(), "{mode:o}");
        }
        assert!(foreign_library(&with(0o757)).is_some());
        let own = with(0o775);
        assert_eq!(foreign_library(&own).is_none(), own.uid() == own.gid());
        if !geteuid().is_root() {
            eprintln!("SKIPPED: files of other users, which only the administrator can make");
            return;
        }
        let owned_by = |owner: u32, mode: u32| {
            std::os::unix::fs::chown(&path, Some(owner), None).unwrap();
            with(mode)
        };
        let other = owned_by(2002, 0o644);
        assert_eq!(foreign(&other, None).unwrap(), "it belongs to user 2002");
        assert_eq!(foreign(&other, Some(2002)), None);
        assert!(foreign(&other, Some(2001)).is_some());
        assert!(foreign_library(&other).is_some());
    }

    #[test]
    fn folders_are_not_for_others_to_write() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("a/b");
        make_folder(&path).unwrap();
        make_folder(&path).unwrap();
        for folder in [&path, path.parent().unwrap()] {
            assert_eq!(fs::metadata(folder).unwrap().mode() & SHARED, 0);
        }
    }
}
