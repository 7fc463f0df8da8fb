//! The text of a file: decompressed, and taken out of an archive.

use std::io::{self, BufReader, Read};

use thiserror::Error;

use super::packed;
use crate::matrix::in_its_place::in_its_place;

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
pub struct Text<'a> {
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
