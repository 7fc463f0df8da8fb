//! The files that a command reads and writes. No output may overwrite another output
//! or an input.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use twox_hash::xxhash3_128::Hasher;

use super::failure::Failure;
use super::output::{Output, canonical};

/// The files of a command.
#[derive(Debug, Default)]
pub struct Paths {
    read: Vec<PathBuf>,
    written: Vec<PathBuf>,
}

impl Paths {
    /// The inputs of a command.
    pub fn reading<'a>(files: impl IntoIterator<Item = &'a Path>) -> Self {
        Self {
            read: files.into_iter().map(canonical).collect(),
            written: Vec::new(),
        }
    }

    /// The inputs in the order of the command line, each by its length and a checksum of
    /// its first and last bytes: what nodes compare, which must all have the same files. A
    /// file that cannot be read is reported where it is opened.
    pub fn fingerprints(&self) -> String {
        let inputs = self.read.iter().filter(|path| path.is_file());
        let texts = inputs.map(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            match fingerprint(path) {
                Ok((bytes, sum)) => format!(", {name} of {bytes} bytes ({sum:032x})"),
                Err(_) => String::new(),
            }
        });
        texts.collect()
    }

    /// Tries the path of an output.
    ///
    /// # Errors
    /// When the path is that of an input or of another output, and as
    /// [`Output::prepare`].
    pub fn output(&mut self, path: &Path) -> Result<Output, Failure> {
        let place = canonical(path);
        let shown = path.display();
        if self.read.contains(&place) {
            return Err(Failure::usage(
                format!("{shown} is read by this command, and would be overwritten"),
                "another path for the output",
            ));
        }
        if self.written.contains(&place) {
            return Err(Failure::usage(
                format!("two outputs have the path {shown}"),
                "a different path for each",
            ));
        }
        self.written.push(place);
        Output::prepare(path)
    }
}

/// Bytes of each end of a file that its checksum covers. A file that differs elsewhere alone
/// is taken for the same: whole files may take minutes to read.
const END: u64 = 1 << 20;

fn fingerprint(path: &Path) -> io::Result<(u64, u128)> {
    let mut file = File::open(path)?;
    let bytes = file.metadata()?.len();
    let mut ends = Vec::new();
    (&mut file).take(END).read_to_end(&mut ends)?;
    file.seek(SeekFrom::Start(
        bytes.saturating_sub(END).max(END.min(bytes)),
    ))?;
    file.take(END).read_to_end(&mut ends)?;
    Ok((bytes, Hasher::oneshot(&ends)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_differ_at_an_end_or_in_length_have_other_fingerprints() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let of = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            Paths::reading([&*path]).fingerprints()
        };
        let mut bytes = vec![0; 3 << 20];
        let all = [
            of(&bytes),
            of(&bytes[1..]),
            {
                bytes[0] = 1;
                of(&bytes)
            },
            {
                (bytes[0], bytes[(3 << 20) - 1]) = (0, 1);
                of(&bytes)
            },
            of(&[]),
            of(&[1]),
        ];
        for (place, one) in all.iter().enumerate() {
            assert!(!all[..place].contains(one), "{place}: {one}");
        }
        assert_eq!(of(&[1]), all[5]);
    }
}
