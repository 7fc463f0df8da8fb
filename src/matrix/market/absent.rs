//! What there is without the crate's feature `matrix-files`: texts as they lie in files.

use std::io;

use super::text::{Bytes, Peeked, TextError};

/// The first bytes of what is compressed, of texts with a byte order mark, and of those in
/// UTF-16.
const PACKED: [&[u8]; 7] = [
    b"\x1f\x8b",
    b"BZh",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"\xfe\xff",
    b"%\0",
    b"\0%",
];

const REMEDY: &str = "build the program with the feature `matrix-files`";

/// The bytes, which are not packed.
///
/// # Errors
/// When they are.
pub fn inside<'a>(bytes: Peeked<'a>, _member: Option<&str>) -> io::Result<(Peeked<'a>, bool)> {
    let begin = bytes.begin();
    let is_archive = begin
        .get(257..)
        .is_some_and(|rest| rest.starts_with(b"ustar"));
    match is_archive || PACKED.iter().any(|magic| begin.starts_with(magic)) {
        true => Err(TextError::Format {
            what: "compressed, an archive, or a text with a byte order mark or in UTF-16",
            remedy: REMEDY,
        }
        .into()),
        false => Ok((bytes, false)),
    }
}

/// The bytes as they are.
pub fn decoded(bytes: Peeked) -> (Bytes, bool) {
    (Box::new(bytes), false)
}

/// Compresses nothing.
///
/// # Errors
/// Always.
pub fn gzip(_text: &[u8]) -> io::Result<Vec<u8>> {
    let why = format!("nothing is compressed: {REMEDY}");
    Err(io::Error::new(io::ErrorKind::Unsupported, why))
}
