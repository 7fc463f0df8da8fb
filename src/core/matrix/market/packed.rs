//! Takes a text out of what it is packed in, and compresses one.

use std::io;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;

use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;
use tar::{EntryType, Header, PaxExtensions};

use super::text::{Bytes, Peeked, TextError};

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
        } else if is_one(bytes.begin()) {
            Box::new(archived(Box::new(bytes), member)?)
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

/// The first bytes of a member.
const MAGIC: &[u8] = b"\x1f\x8b";

type Compressed<'a> = BufReader<Bytes<'a>>;

/// The bytes of all members. Zeros after the last one, with which tapes and some
/// archives fill their blocks, are ignored; other bytes are an error.
struct Decompressed<'a> {
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

/// Bytes of a header, and the unit of contents.
const UNIT: usize = 512;

/// Most bytes of a member's long name.
const LONGEST_NAME: u64 = 1 << 16;

/// Most names of members in a message.
const NAMED: usize = 5;

/// Whether these are the first bytes of an archive in the formats of POSIX and GNU.
fn is_one(begin: &[u8]) -> bool {
    begin.len() == UNIT && begin[257..].starts_with(b"ustar")
}

/// The contents of a member.
struct Member<'a> {
    archive: Bytes<'a>,
    left: u64,
}

/// The contents of the member with this name; without one, of the Matrix Market file
/// with its folder's name.
///
/// # Errors
/// When there is none, or several files that might be meant. An archive with one Matrix
/// Market file of another name gives [`TextError::OnlyMember`] after all of it was read.
fn archived<'a>(mut archive: Bytes<'a>, wanted: Option<&str>) -> io::Result<Member<'a>> {
    let mut found: Vec<String> = Vec::new();
    let mut long_name = None;
    while let Some(header) = next_header(&mut archive)? {
        let size = header.entry_size()?;
        match header.entry_type() {
            EntryType::GNULongName => {
                let name = contents(&mut archive, size)?;
                long_name = Some(text(name.strip_suffix(b"\0").unwrap_or(&name)));
                continue;
            }
            EntryType::XHeader => {
                let pairs = contents(&mut archive, size)?;
                let pairs = PaxExtensions::new(&pairs).filter_map(Result::ok);
                let mut path = pairs.filter(|pair| pair.key_bytes() == b"path");
                long_name = path.next().map(|pair| text(pair.value_bytes()));
                continue;
            }
            EntryType::Regular | EntryType::Continuous => {
                let name = long_name.take();
                let name = name.unwrap_or_else(|| text(&header.path_bytes()));
                let is_wanted = match wanted {
                    Some(wanted) => name == wanted,
                    None => has_name_of_folder(&name),
                };
                if is_wanted {
                    let left = size;
                    return Ok(Member { archive, left });
                }
                if is_matrix(&name) {
                    found.push(name);
                }
            }
            _ => long_name = None,
        }
        skip(&mut archive, padded(size))?;
    }
    let error = match &mut found[..] {
        [] => TextError::NoMember,
        [only] => TextError::OnlyMember {
            member: std::mem::take(only),
        },
        several => TextError::Members {
            members: several[..several.len().min(NAMED)].join(", "),
        },
    };
    Err(error.into())
}

/// The next header; `None` at the end of the archive.
fn next_header(archive: &mut Bytes) -> io::Result<Option<Header>> {
    let mut header = Header::new_old();
    let bytes = header.as_mut_bytes();
    let mut read = 0;
    while read < UNIT {
        match archive.read(&mut bytes[read..])? {
            0 if read == 0 => return Ok(None),
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            more => read += more,
        }
    }
    let ends = bytes.iter().all(|byte| *byte == 0);
    Ok((!ends).then_some(header))
}

/// The contents of a member that describes the next one.
fn contents(archive: &mut Bytes, size: u64) -> io::Result<Vec<u8>> {
    if size > LONGEST_NAME {
        let why = "the archive is damaged: a member's name has more than 64 KiB";
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    let mut bytes = vec![0; padded(size) as usize];
    archive.read_exact(&mut bytes)?;
    bytes.truncate(size as usize);
    Ok(bytes)
}

fn skip(archive: &mut Bytes, bytes: u64) -> io::Result<()> {
    match io::copy(&mut archive.take(bytes), &mut io::sink())? == bytes {
        true => Ok(()),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

fn padded(size: u64) -> u64 {
    size.saturating_add(UNIT as u64 - 1) / UNIT as u64 * UNIT as u64
}

fn text(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

/// Whether a name is that of a Matrix Market file. `._NAME` is what macOS keeps beside
/// a file.
fn is_matrix(name: &str) -> bool {
    let path = Path::new(name);
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    let ending = path.extension().unwrap_or_default();
    ending.eq_ignore_ascii_case("mtx") && !file.starts_with("._")
}

/// As `add32/add32.mtx`, beside which there is `add32/add32_b.mtx`.
fn has_name_of_folder(name: &str) -> bool {
    let path = Path::new(name);
    let folder = path.parent().and_then(Path::file_name);
    is_matrix(name) && folder.is_some() && folder == path.file_stem()
}

impl Read for Member<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let read = (&mut self.archive).take(self.left).read(to)?;
        if read == 0 && self.left > 0 && !to.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.left -= read as u64;
        Ok(read)
    }
}
