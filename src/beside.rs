//! Files that appear whole or not at all: written beside their place, then
//! renamed.

use std::io;
use std::path::Path;

use tempfile::NamedTempFile;

/// An empty file in the folder of `path`, to be filled and then persisted there.
/// It is gone if that does not happen.
///
/// # Errors
/// When the folder is missing or takes no files.
pub fn create(path: &Path) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".pdawl-");
    #[cfg(unix)]
    {
        use std::fs::Permissions;
        use std::os::unix::fs::PermissionsExt;
        // As for any new file; the umask takes its part.
        builder.permissions(Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder(path))
}

/// The folder in which a file would lie.
pub fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}
