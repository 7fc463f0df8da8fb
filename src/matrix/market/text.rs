//! The text of a file: decompressed, taken out of an archive, and decoded.

use std::io::{self, BufReader, Read};

use encoding_rs::{Encoding, UTF_16BE, UTF_16LE};
use encoding_rs_io::DecodeReaderBytesBuilder;
use thiserror::Error;

use super::archive;
use super::decompress::{Compression, Decompressed};

/// Bytes by which a file is recognised: the header of an archive's first member.
const BEGIN: usize = 512;

/// Compressions and archives within each other, at most.
const DEEPEST: usize = 4;

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
        "bytes that are no {compression} data follow the {compression} data: \"{begin}\"; cut them \
         off, or decompress the file with another program"
    )]
    Trailing {
        compression: &'static str,
        begin: String,
    },
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
    /// A [`TextError`]. What is wrong further on is told when it is read.
    pub fn open(file: impl Read + Send + 'a, member: Option<&str>) -> io::Result<Self> {
        let mut bytes = Peeked::new(Box::new(BufReader::with_capacity(1 << 16, file)));
        let mut packed = false;
        for _ in 0..DEEPEST {
            let inner: Bytes = match Compression::of(bytes.begin()) {
                Some(compression) => Box::new(Decompressed::new(Box::new(bytes), compression)),
                None if archive::is_one(bytes.begin()) => {
                    Box::new(archive::member(Box::new(bytes), member)?)
                }
                None => break,
            };
            bytes = Peeked::new(inner);
            packed = true;
        }
        if let Some((_, what, remedy)) = FORMATS
            .iter()
            .find(|(magic, ..)| bytes.begin().starts_with(magic))
        {
            return Err(TextError::Format { what, remedy }.into());
        }
        let Some(encoding) = Marked::of(bytes.begin()) else {
            return Ok(Self {
                bytes: Box::new(bytes),
                packed,
            });
        };
        let bytes = DecodeReaderBytesBuilder::new()
            .encoding(encoding.0)
            .utf8_passthru(true)
            .strip_bom(true)
            .build(bytes);
        Ok(Self {
            bytes: Box::new(bytes),
            packed: true,
        })
    }
}

/// A text that begins with a byte order mark, or that has two bytes a character: its
/// encoding, where no mark tells it.
struct Marked(Option<&'static Encoding>);

impl Marked {
    fn of(begin: &[u8]) -> Option<Self> {
        match begin {
            [0xef, 0xbb, 0xbf, ..] | [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Some(Self(None)),
            [b'%', 0, ..] => Some(Self(Some(UTF_16LE))),
            [0, b'%', ..] => Some(Self(Some(UTF_16BE))),
            _ => None,
        }
    }
}

/// The first bytes of files that are not read, what they are, and a remedy.
const FORMATS: [(&[u8], &str, &str); 12] = [
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
    (b"\xff\xfe\0\0", "a text in UTF-32", ICONV),
    (b"\0\0\xfe\xff", "a text in UTF-32", ICONV),
    (b"%\0\0\0", "a text in UTF-32", ICONV),
];
const SCIPY: &str = "write the matrix with scipy.io.mmwrite";
const ICONV: &str = "convert it with `iconv -t UTF-8`";

/// A reader whose first bytes are known.
struct Peeked<'a> {
    begin: Vec<u8>,
    /// How many of them have been read.
    at: usize,
    /// The error that ended them.
    failed: Option<io::Error>,
    rest: Bytes<'a>,
}

impl<'a> Peeked<'a> {
    fn new(mut rest: Bytes<'a>) -> Self {
        let mut begin = Vec::with_capacity(BEGIN);
        let failed = (&mut rest).take(BEGIN as u64).read_to_end(&mut begin).err();
        Self {
            begin,
            at: 0,
            failed,
            rest,
        }
    }

    fn begin(&self) -> &[u8] {
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
