//! What there is without the crate's feature `matrix-files`: texts as they lie in files.

use std::io;

use super::text::{Peeked, TextError};

/// The first bytes of what is compressed.
const PACKED: &[u8] = b"\x1f\x8b";

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
    match is_archive || begin.starts_with(PACKED) {
        true => Err(TextError::Format {
            what: "compressed, or an archive",
            remedy: REMEDY,
        }
        .into()),
        false => Ok((bytes, false)),
    }
}

/// Compresses nothing.
///
/// # Errors
/// Always.
pub fn gzip(_text: &[u8]) -> io::Result<Vec<u8>> {
    let why = format!("nothing is compressed: {REMEDY}");
    Err(io::Error::new(io::ErrorKind::Unsupported, why))
}
