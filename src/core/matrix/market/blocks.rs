//! Divides a file's text into blocks of whole lines.

use std::io::{self, Read};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::text::{Bytes, Text};
use crate::matrix::checksum::{ChecksumReader, Digest};

/// The blocks of a file's text.
pub struct Blocks<'a> {
    text: Text<'a>,
    file: SharedFile<'a>,
    /// Bytes of a block.
    size: usize,
    /// The begin of a line that the last block does not contain.
    left: Vec<u8>,
    ended: bool,
    /// The error after the last block.
    failed: Option<BlockError>,
}

/// The file below the text, whose bytes are counted.
#[derive(Clone)]
struct SharedFile<'a>(Arc<Mutex<ChecksumReader<Bytes<'a>>>>);

impl<'a> SharedFile<'a> {
    fn lock(&self) -> MutexGuard<'_, ChecksumReader<Bytes<'a>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Read for SharedFile<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.lock().read(to)
    }
}

/// Why there is no next block.
#[derive(Debug)]
pub enum BlockError {
    /// The file cannot be read, or its compressed data is wrong.
    Read(io::Error),
    /// The compressed data or the archive ends too early.
    Truncated,
    /// A line is longer than a block.
    LongLine(usize),
}

impl<'a> Blocks<'a> {
    /// Blocks of about `size` bytes; of an archive, those of `member`, see [`Text::open`].
    ///
    /// # Errors
    /// As [`Text::open`].
    pub fn new(file: impl Read + Send + 'a, size: usize, member: Option<&str>) -> io::Result<Self> {
        let counted = ChecksumReader::new(Box::new(file) as Bytes);
        let file = SharedFile(Arc::new(Mutex::new(counted)));
        Ok(Self {
            text: Text::open(file.clone(), member)?,
            file,
            size,
            left: Vec::new(),
            ended: false,
            failed: None,
        })
    }

    /// Whether the text's length differs from that of the file.
    pub fn is_packed(&self) -> bool {
        self.text.packed
    }

    /// The number of bytes read of the file, which may be compressed.
    pub fn bytes(&self) -> u64 {
        self.file.lock().bytes_read()
    }

    /// The digest of the bytes read of the file; of all of them, after the last block.
    pub fn digest(&self) -> Digest {
        self.file.lock().digest()
    }

    /// The next block; `None` after the last. Every block but the last ends
    /// with a line's end.
    ///
    /// # Errors
    /// When the file cannot be read any further. Earlier blocks have all lines before.
    pub fn next(&mut self) -> Result<Option<Vec<u8>>, BlockError> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        if self.ended {
            return Ok(None);
        }
        let mut block = std::mem::take(&mut self.left);
        block.reserve_exact(self.size.saturating_sub(block.len()));
        let room = self.size.saturating_sub(block.len()) as u64;
        let text = &mut self.text.bytes;
        match text.take(room).read_to_end(&mut block) {
            Ok(count) if (count as u64) < room => {
                self.ended = true;
                // The digest is of all bytes, also of those after an archive's member.
                io::copy(&mut self.file, &mut io::sink()).map_err(BlockError::Read)?;
                return Ok((!block.is_empty()).then_some(block));
            }
            Ok(_) => {}
            Err(error) if self.is_packed() && error.kind() == io::ErrorKind::UnexpectedEof => {
                self.failed = Some(BlockError::Truncated);
            }
            Err(error) => self.failed = Some(BlockError::Read(error)),
        }
        match (
            block.iter().rposition(|byte| *byte == b'\n'),
            self.failed.take(),
        ) {
            (Some(end), failed) => {
                self.failed = failed;
                self.left = block.split_off(end + 1);
                Ok(Some(block))
            }
            (None, Some(error)) => Err(error),
            (None, None) => Err(BlockError::LongLine(self.size)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn compressed(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn text() -> Vec<u8> {
        let lines: Vec<String> = (0..1000u64).map(|i| format!("{i} {}", i * i)).collect();
        lines.join("\n").into_bytes()
    }

    /// All blocks, and the error that ended them.
    fn all(file: &[u8], size: usize) -> (Vec<Vec<u8>>, Option<BlockError>) {
        let mut blocks = Blocks::new(file, size, None).unwrap();
        let mut found = Vec::new();
        loop {
            match blocks.next() {
                Ok(Some(block)) => found.push(block),
                Ok(None) => return (found, None),
                Err(error) => return (found, Some(error)),
            }
        }
    }

    #[test]
    fn blocks_are_whole_lines_of_the_text() {
        let (text, twice) = (text(), [compressed(&text()), compressed(&text())].concat());
        for (file, expected) in [
            (text.clone(), text.clone()),
            (compressed(&text), text.clone()),
            (twice, [&text[..], &text[..]].concat()),
            (Vec::new(), Vec::new()),
        ] {
            for size in [25, 26, 1000, 1 << 20] {
                let (blocks, error) = all(&file, size);
                assert!(error.is_none(), "{error:?}");
                assert_eq!(blocks.concat(), expected);
                let (_, but_last) = blocks
                    .split_last()
                    .map_or((None, &[][..]), |(l, b)| (Some(l), b));
                assert!(but_last.iter().all(|block| block.ends_with(b"\n")));
                assert!(blocks.iter().all(|block| block.len() <= size));
            }
        }
    }

    #[test]
    fn the_digest_is_of_the_file_and_not_of_its_text() {
        for file in [text(), compressed(&text())] {
            let mut blocks = Blocks::new(&file[..], 100, None).unwrap();
            while blocks.next().unwrap().is_some() {}
            let mut checksum = crate::matrix::checksum::Checksum::default();
            checksum.add(&file);
            assert_eq!(blocks.digest(), checksum.digest());
            assert_eq!(blocks.bytes(), file.len() as u64);
        }
    }

    #[test]
    fn a_truncated_file_gives_the_lines_before() {
        let (text, file) = (text(), compressed(&text()));
        let (blocks, error) = all(&file[..file.len() / 2], 1 << 20);
        assert!(matches!(error, Some(BlockError::Truncated)), "{error:?}");
        let found = blocks.concat();
        assert!(text.starts_with(&found) && found.ends_with(b"\n"));
        // Without its last bytes, which are the check of the whole.
        let (blocks, error) = all(&file[..file.len() - 4], 1 << 20);
        assert!(matches!(error, Some(BlockError::Truncated)), "{error:?}");
        assert!(!blocks.is_empty());
    }

    #[test]
    fn damage_and_long_lines_are_reported() {
        let mut file = compressed(&text());
        let middle = file.len() / 2;
        file[middle] ^= 0xff;
        let (_, error) = all(&file, 100);
        assert!(matches!(error, Some(BlockError::Read(_))), "{error:?}");
        let (_, error) = all(&[b'7'; 200], 100);
        assert!(
            matches!(error, Some(BlockError::LongLine(100))),
            "{error:?}"
        );
    }
}
