//! Decompresses gzip data of several members, as `cat a.gz b.gz` makes them.

use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::GzDecoder;

use super::text::{Bytes, TextError};

/// The first bytes of a member.
pub const MAGIC: &[u8] = b"\x1f\x8b";

type Compressed<'a> = BufReader<Bytes<'a>>;

/// The bytes of all members. Zeros after the last one, with which tapes and some
/// archives fill their blocks, are ignored; other bytes are an error.
pub struct Decompressed<'a> {
    /// `None` after the last one.
    member: Option<GzDecoder<Compressed<'a>>>,
    /// Whether the first member has ended.
    ended_one: bool,
}

impl<'a> Decompressed<'a> {
    pub fn new(bytes: Bytes<'a>) -> Self {
        let bytes = BufReader::with_capacity(1 << 16, bytes);
        Self {
            member: Some(GzDecoder::new(bytes)),
            ended_one: false,
        }
    }

    /// Begins the member that follows the one that has ended.
    fn next_member(&mut self) -> io::Result<()> {
        self.ended_one = true;
        let Some(member) = self.member.take() else {
            return Ok(());
        };
        let mut rest = member.into_inner();
        let mut padded = false;
        loop {
            let bytes = rest.fill_buf()?;
            let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
            match bytes.get(zeros) {
                None if bytes.is_empty() => return Ok(()),
                None => {}
                Some(first) if *first == MAGIC[0] && zeros == 0 && !padded => {
                    self.member = Some(GzDecoder::new(rest));
                    return Ok(());
                }
                Some(_) => return Err(trailing(&bytes[zeros..])),
            }
            padded = true;
            rest.consume(zeros);
        }
    }
}

fn trailing(bytes: &[u8]) -> io::Error {
    let begin = &bytes[..bytes.len().min(16)];
    let begin = begin.escape_ascii().to_string();
    TextError::Trailing { begin }.into()
}

impl Read for Decompressed<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        loop {
            let Some(member) = &mut self.member else {
                return Ok(0);
            };
            match member.read(to) {
                Ok(0) if !to.is_empty() => self.next_member()?,
                // What follows a member only looked like another one.
                Err(error) if self.ended_one && is_no_member(&error) => {
                    return Err(trailing(&MAGIC[..1]));
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
