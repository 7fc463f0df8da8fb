//! Takes a text out of what it is packed in, and compresses one.

use std::io::{self, Write};

use flate2::write::GzEncoder;

use super::archive;
use super::decompress::{Decompressed, MAGIC};
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
        let inner: Bytes = if bytes.begin().starts_with(MAGIC) {
            Box::new(Decompressed::new(Box::new(bytes)))
        } else if archive::is_one(bytes.begin()) {
            Box::new(archive::member(Box::new(bytes), member)?)
        } else {
            break;
        };
        bytes = Peeked::new(inner);
        packed = true;
    }
    Ok((bytes, packed))
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
