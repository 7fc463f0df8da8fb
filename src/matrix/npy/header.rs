//! The header of a file, in the form that `npyz` reads.

use std::io::{self, Read};

use npyz::NpyHeader;

/// What a file begins with.
const MAGIC: &[u8] = b"\x93NUMPY";

/// Most bytes of a header's text. That of a matrix has 118; a hostile one could nest
/// without an end.
const MOST: usize = 2048;

/// A header, and its bytes in the file: the numbers follow.
pub(super) struct Header {
    pub header: NpyHeader,
    pub bytes: u64,
}

/// Why there is no header.
pub(super) enum HeaderError {
    Read(io::Error),
    /// The file has none, or a wrong one, and why.
    Wrong(String),
}

/// Reads a header and nothing after it.
///
/// # Errors
/// When the file cannot be read, or does not begin with a header.
pub(super) fn read(file: &mut dyn Read) -> Result<Header, HeaderError> {
    let mut begin = [0; 8];
    let found = fill(file, &mut begin)?;
    if !begin[..found].starts_with(MAGIC) {
        return Err(HeaderError::Wrong(what_it_is(&begin[..found])));
    }
    // The length of the text has 16 bits in version 1 and 32 bits in later ones.
    let mut length = [0; 4];
    let width = if begin[6] == 1 { 2 } else { 4 };
    let complete = found == begin.len() && fill(file, &mut length[..width])? == width;
    let length = u32::from_le_bytes(length) as usize;
    if length > MOST {
        let why = format!("its header has {length} bytes, and that of a matrix at most {MOST}");
        return Err(HeaderError::Wrong(why));
    }
    let mut text = vec![0; length];
    if !complete || fill(file, &mut text)? < length {
        let why = "it ends within its header".to_owned();
        return Err(HeaderError::Wrong(why));
    }
    let bytes = (begin.len() + width + length) as u64;
    let text = without_long_suffixes(&text);
    let header = [
        &begin,
        &(text.len() as u32).to_le_bytes()[..width],
        &text[..],
    ]
    .concat();
    match NpyHeader::from_reader(&header[..]) {
        Ok(header) => Ok(Header { header, bytes }),
        Err(error) => Err(HeaderError::Wrong(why(&error, &text))),
    }
}

/// Reads until `to` is full or the file ends; the bytes that were read.
fn fill(file: &mut dyn Read, to: &mut [u8]) -> Result<usize, HeaderError> {
    let mut read = 0;
    while read < to.len() {
        match file.read(&mut to[read..]) {
            Ok(0) => break,
            Ok(more) => read += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(HeaderError::Read(error)),
        }
    }
    Ok(read)
}

/// A text without the `L` that Python 2 writes after whole numbers: `(6L, 5L)`.
fn without_long_suffixes(text: &[u8]) -> Vec<u8> {
    let mut quote = None;
    let mut kept: Vec<u8> = Vec::with_capacity(text.len());
    for &byte in text {
        match quote {
            Some(open) if open == byte => quote = None,
            None if matches!(byte, b'\'' | b'"') => quote = Some(byte),
            _ => {}
        }
        let after_digit = kept.last().is_some_and(u8::is_ascii_digit);
        if !(byte == b'L' && quote.is_none() && after_digit) {
            kept.push(byte);
        }
    }
    kept
}

/// What a file is that does not begin as an NPY file.
fn what_it_is(begin: &[u8]) -> String {
    let known: [(&[u8], &str); 5] = [
        (
            b"PK\x03\x04",
            "it is a zip archive, as numpy.savez writes; numpy.load reads its arrays by name",
        ),
        (
            b"\x1f\x8b",
            "it is compressed with gzip; `gzip -d` decompresses it",
        ),
        (
            b"BZh",
            "it is compressed with bzip2; `bzip2 -d` decompresses it",
        ),
        (b"\x89HDF", "it is an HDF5 file; h5py reads its arrays"),
        (
            b"%%Matrix",
            "it is a Matrix Market file; scipy.io.mmread reads it",
        ),
    ];
    let known = known.iter().find(|(magic, _)| begin.starts_with(magic));
    match known {
        _ if begin.is_empty() => "it is empty".to_owned(),
        Some((_, what)) => (*what).to_owned(),
        None => format!("it begins with \"{}\"", begin.escape_ascii()),
    }
}

/// Why a header's text cannot be read. A parser's message of several lines draws the
/// text again; the text alone says as much.
fn why(error: &io::Error, text: &[u8]) -> String {
    const EXCERPT: usize = 80;
    let message = error.to_string();
    match message.contains('\n') {
        false => message,
        true => {
            let text = text.trim_ascii();
            let excerpt = &text[..text.len().min(EXCERPT)];
            let more = if text.len() > EXCERPT { "..." } else { "" };
            let excerpt = excerpt.escape_ascii().to_string().replace("\\'", "'");
            format!("its header is `{excerpt}{more}`, which NumPy cannot have written")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_suffixes_of_numbers_are_dropped() {
        for (text, expected) in [
            ("{'shape': (6L, 5L), }", "{'shape': (6, 5), }"),
            ("('1L', \"2L\", 3L)", "('1L', \"2L\", 3)"),
            ("(L, xL)", "(L, xL)"),
        ] {
            let kept = without_long_suffixes(text.as_bytes());
            assert_eq!(kept, expected.as_bytes(), "{text}");
        }
    }
}
