//! Takes a text out of what it is packed in, and decodes it; and compresses one.

use std::io::{self, Write};

use encoding_rs::{Encoding, UTF_16BE, UTF_16LE};
use encoding_rs_io::DecodeReaderBytesBuilder;
use flate2::write::GzEncoder;

use super::archive;
use super::decompress::{Compression, Decompressed};
use super::text::{Bytes, Peeked};

/// Compressions and archives within each other, at most.
const DEEPEST: usize = 4;

/// The bytes inside compressions and archives, of which `member` is wanted, and whether there
/// were any.
///
/// # Errors
/// Those of archives; what is wrong further on is reported when it is read.
pub fn inside<'a>(mut bytes: Peeked<'a>, member: Option<&str>) -> io::Result<(Peeked<'a>, bool)> {
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
    Ok((bytes, packed))
}

/// The bytes of a text in UTF-8 without a byte order mark, and whether they are others than
/// those of the file.
pub fn decoded(bytes: Peeked) -> (Bytes, bool) {
    let Some(encoding) = Marked::of(bytes.begin()) else {
        return (Box::new(bytes), false);
    };
    let bytes = DecodeReaderBytesBuilder::new()
        .encoding(encoding.0)
        .utf8_passthru(true)
        .strip_bom(true)
        .build(bytes);
    (Box::new(bytes), true)
}

/// A text as one gzip member.
///
/// # Errors
/// None that is expected, as it is written to memory.
pub fn gzip(text: &[u8]) -> io::Result<Vec<u8>> {
    let level = flate2::Compression::default();
    let mut encoder = GzEncoder::new(Vec::with_capacity(text.len() / 2), level);
    encoder.write_all(text)?;
    encoder.finish()
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
