//! The text of a file: decompressed, taken out of an archive, and divided into blocks of whole
//! lines.

use std::io::{self, BufReader, Read};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use thiserror::Error;

use super::packed;
use crate::matrix::checksum::{ChecksumReader, Digest};
use crate::matrix::in_its_place;

/// Bytes by which a file is recognised: the header of an archive's first member.
const BEGIN: usize = 512;

/// A byte order mark in UTF-8.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// The bytes of a text, in UTF-8 without a byte order mark.
pub type Bytes<'a> = Box<dyn Read + Send + 'a>;

/// Why a file has no text that can be read, with a remedy. It travels in an `io::Error`.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum TextError {
    #[error("is {what}, which is not read; {remedy}")]
    Format {
        what: &'static str,
        remedy: &'static str,
    },
    #[error(
        "bytes that are no gzip data follow the gzip data: \"{begin}\"; cut them off, or \
         decompress the file with another program"
    )]
    Trailing { begin: String },
    #[error(
        "is an archive with {member}, and a pipe cannot be read twice to find that there is no \
         other; pipe `tar -xO` of that member"
    )]
    OnlyMember { member: String },
    #[error(
        "is an archive with several Matrix Market files, none of which has its folder's name: \
         {members}; extract one with `tar -x`"
    )]
    Members { members: String },
    #[error("is an archive without a file whose name ends with .mtx; extract the matrix from it")]
    NoMember,
}

impl From<TextError> for io::Error {
    fn from(error: TextError) -> Self {
        Self::other(error)
    }
}

/// A file's text, and whether its length differs from that of the file.
struct Text<'a> {
    pub bytes: Bytes<'a>,
    pub packed: bool,
}

impl<'a> Text<'a> {
    /// Opens the text of a file. Of an archive it is that of `member`; by default that of
    /// the Matrix Market file with its folder's name, as the SuiteSparse collection has
    /// it.
    ///
    /// # Errors
    /// A [`TextError`]. What is wrong further on is reported when it is read.
    pub fn open(file: impl Read + Send + 'a, member: Option<&str>) -> io::Result<Self> {
        let bytes = Peeked::new(Box::new(BufReader::with_capacity(1 << 16, file)));
        let (bytes, packed) = packed::inside(bytes, member)?;
        let known = FORMATS
            .iter()
            .find(|(magic, ..)| bytes.begin().starts_with(magic));
        let known = known.map(|(_, what, remedy)| (*what, *remedy));
        if let Some((what, remedy)) = known.or_else(|| in_its_place(bytes.begin())) {
            return Err(TextError::Format { what, remedy }.into());
        }
        let marked = bytes.begin().starts_with(MARK);
        let mut bytes: Bytes = Box::new(bytes);
        if marked {
            bytes.read_exact(&mut [0; MARK.len()])?;
        }
        Ok(Self {
            bytes,
            packed: packed || marked,
        })
    }
}

/// The first bytes of files that are not read, what they are, and a remedy.
const FORMATS: [(&[u8], &str, &str); 14] = [
    (
        b"\xfd7zXZ\0",
        "compressed with xz",
        "decompress it with `xz -d`",
    ),
    (
        b"\x28\xb5\x2f\xfd",
        "compressed with Zstandard",
        "decompress it with `zstd -d`",
    ),
    (
        b"\x04\x22\x4d\x18",
        "compressed with LZ4",
        "decompress it with `lz4 -d`",
    ),
    (
        b"\x1f\x9d",
        "compressed with compress",
        "decompress it with `uncompress`",
    ),
    (
        b"PK\x03\x04",
        "a zip archive",
        "extract the matrix with `unzip`",
    ),
    (
        b"7z\xbc\xaf\x27\x1c",
        "a 7z archive",
        "extract the matrix with `7z x`",
    ),
    (b"\x89HDF", "an HDF5 file", SCIPY),
    (b"MATLAB", "a file of MATLAB", SCIPY),
    (b"\x93NUMPY", "an NPY file, which has a dense matrix", SCIPY),
    (
        b"BZh",
        "compressed with bzip2",
        "decompress it with `bzip2 -d`",
    ),
    (b"\xff\xfe", "a text in UTF-16 or UTF-32", ICONV),
    (b"\xfe\xff", "a text in UTF-16", ICONV),
    (b"\0", "a text in UTF-16 or UTF-32", ICONV),
    (b"%\0", "a text in UTF-16 or UTF-32", ICONV),
];
const SCIPY: &str = "write the matrix with scipy.io.mmwrite";
const ICONV: &str = "convert it with `iconv -t UTF-8`";

/// A reader whose first bytes are known.
pub(super) struct Peeked<'a> {
    begin: Vec<u8>,
    /// How many of them have been read.
    at: usize,
    /// The error that ended them.
    failed: Option<io::Error>,
    rest: Bytes<'a>,
}

impl<'a> Peeked<'a> {
    pub fn new(mut rest: Bytes<'a>) -> Self {
        let mut begin = Vec::with_capacity(BEGIN);
        let failed = (&mut rest).take(BEGIN as u64).read_to_end(&mut begin).err();
        Self {
            begin,
            at: 0,
            failed,
            rest,
        }
    }

    pub fn begin(&self) -> &[u8] {
        &self.begin
    }
}

impl Read for Peeked<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if self.at < self.begin.len() {
            let read = (&self.begin[self.at..]).read(to)?;
            self.at += read;
            return Ok(read);
        }
        match self.failed.take() {
            Some(error) => Err(error),
            None => self.rest.read(to),
        }
    }
}

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
