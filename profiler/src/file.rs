//! Reading files whole.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The content of a file of at most so many bytes: what never ends, such as
/// `/dev/zero`, ends here.
///
/// # Errors
/// What the system refuses, and a file that is longer.
pub fn bounded(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
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
    use super::*;

    #[test]
    fn as_much_is_read_as_there_may_be_and_no_more() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, b"four").unwrap();
        assert_eq!(bounded(&path, 4).unwrap(), b"four");
        let error = bounded(&path, 3).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        assert!(error.to_string().contains("longer than the 3 bytes"));
        #[cfg(unix)]
        assert!(bounded(Path::new("/dev/zero"), 1 << 16).is_err());
    }
}
