//! Decompresses gzip and bzip2 data of several members, as `cat a.gz b.gz` makes them.

use std::io::{self, BufRead, BufReader, Read};

use bzip2::bufread::BzDecoder;
use flate2::bufread::GzDecoder;

use super::text::{Bytes, TextError};

/// How data are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    Gzip,
    Bzip2,
}

impl Compression {
    /// That of data with these first bytes.
    pub fn of(begin: &[u8]) -> Option<Self> {
        [Self::Gzip, Self::Bzip2]
            .into_iter()
            .find(|compression| begin.starts_with(compression.magic()))
    }

    fn magic(self) -> &'static [u8] {
        match self {
            Self::Gzip => b"\x1f\x8b",
            Self::Bzip2 => b"BZh",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Bzip2 => "bzip2",
        }
    }
}

/// The bytes of all members. Zeros after the last one, with which tapes and some
/// archives fill their blocks, are ignored; other bytes are an error.
pub struct Decompressed<'a> {
    compression: Compression,
    state: State<'a>,
    /// Whether the first member has ended.
    ended_one: bool,
}

type Compressed<'a> = BufReader<Bytes<'a>>;

enum State<'a> {
    Gzip(Box<GzDecoder<Compressed<'a>>>),
    Bzip2(Box<BzDecoder<Compressed<'a>>>),
    Ended,
}

impl<'a> Decompressed<'a> {
    pub fn new(bytes: Bytes<'a>, compression: Compression) -> Self {
        Self {
            compression,
            state: State::member(compression, BufReader::with_capacity(1 << 16, bytes)),
            ended_one: false,
        }
    }

    /// Begins the member that follows the one that has ended.
    fn next_member(&mut self) -> io::Result<()> {
        self.ended_one = true;
        let mut rest = match std::mem::replace(&mut self.state, State::Ended) {
            State::Gzip(member) => member.into_inner(),
            State::Bzip2(member) => member.into_inner(),
            State::Ended => return Ok(()),
        };
        let mut padded = false;
        loop {
            let bytes = rest.fill_buf()?;
            let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
            match bytes.get(zeros) {
                None if bytes.is_empty() => return Ok(()),
                None => {}
                Some(first) if *first == self.compression.magic()[0] && zeros == 0 && !padded => {
                    self.state = State::member(self.compression, rest);
                    return Ok(());
                }
                Some(_) => return Err(self.trailing(&bytes[zeros..])),
            }
            padded = true;
            rest.consume(zeros);
        }
    }

    fn trailing(&self, bytes: &[u8]) -> io::Error {
        let begin = &bytes[..bytes.len().min(16)];
        let error = TextError::Trailing {
            compression: self.compression.name(),
            begin: begin.escape_ascii().to_string(),
        };
        error.into()
    }
}

impl<'a> State<'a> {
    fn member(compression: Compression, bytes: Compressed<'a>) -> Self {
        match compression {
            Compression::Gzip => Self::Gzip(Box::new(GzDecoder::new(bytes))),
            Compression::Bzip2 => Self::Bzip2(Box::new(BzDecoder::new(bytes))),
        }
    }
}

impl Read for Decompressed<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = match &mut self.state {
                State::Gzip(member) => member.read(to),
                State::Bzip2(member) => member.read(to),
                State::Ended => return Ok(0),
            };
            match read {
                Ok(0) if !to.is_empty() => self.next_member()?,
                // What follows a member only looked like another one.
                Err(error) if self.ended_one && is_no_member(&error) => {
                    return Err(self.trailing(self.compression.magic()[..1].as_ref()));
                }
                read => return read,
            }
        }
    }
}

/// Whether data do not even begin as a member does.
fn is_no_member(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, InvalidInput};
    matches!(error.kind(), InvalidInput | InvalidData) && error.to_string().contains("header")
}
