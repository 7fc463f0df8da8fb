//! Reads a Matrix Market file. One thread reads and decompresses blocks of lines,
//! others parse their entries, and the calling thread collects these in order.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use crossbeam_channel::{Receiver, Sender, bounded};
use pdawl_profiler::file::waiting;

use super::line_error::LineError;
use super::parse;
use super::parse::{Field, Header, HeaderReader, NumberedLineError, ParsedBlock, Symmetry};
use super::text::{BlockError, Blocks, TextError};
use crate::matrix::MatrixError;
use crate::matrix::assemble::{Entries, Mirror, assemble};
use crate::matrix::checksum::Digest;
use crate::matrix::control::Control;
use crate::matrix::csr::{self, Csr};
use crate::matrix::rows::threads;

/// Bytes of a block of lines, and so of the longest line.
const BLOCK: usize = 2 << 20;

/// The matrix of a file, and the digest of the file's bytes.
#[derive(Debug)]
pub struct Market {
    pub csr: Csr,
    pub digest: Digest,
}

/// Reads a file. `memory` is the limit of the work in bytes; `None`: what is available.
///
/// # Errors
/// When the file is not in the format, is damaged, or has features that are not
/// supported; the error names the line. When the matrix does not fit into memory,
/// which is checked first. On interruption.
pub fn read(
    path: &Path,
    memory: Option<u64>,
    control: &mut Control,
) -> Result<Market, MatrixError> {
    match fs::metadata(path).is_ok_and(|about| about.is_file()) {
        true => read_file(path, memory, control),
        false => waiting(|| read_file(path, memory, control)),
    }
}

fn read_file(
    path: &Path,
    memory: Option<u64>,
    control: &mut Control,
) -> Result<Market, MatrixError> {
    let failed = |error: io::Error| failure(path, error);
    let open = || File::open(path).map_err(failed);
    let file = open()?;
    let about = file.metadata().map_err(failed)?;
    if about.is_dir() {
        return Err(failed(io::ErrorKind::IsADirectory.into()));
    }
    let blocks = match Blocks::new(file, BLOCK, None) {
        Err(error) if about.is_file() => match text_error(&error) {
            Some(TextError::OnlyMember { member }) => Blocks::new(open()?, BLOCK, Some(member)),
            _ => Err(error),
        },
        blocks => blocks,
    };
    let blocks = blocks.map_err(failed)?;
    let reader = Reader {
        path,
        // The length of a pipe is unknown.
        length: about.is_file().then_some(about.len()),
        memory,
        failed: &failed,
    };
    reader.all(blocks, control)
}

fn text_error(error: &io::Error) -> Option<&TextError> {
    error.get_ref().and_then(|error| error.downcast_ref())
}

/// The error of a file that cannot be read, or of what it has.
fn failure(path: &Path, source: io::Error) -> MatrixError {
    let file = path.to_owned();
    if let Some(error) = text_error(&source).cloned() {
        return MatrixError::Text { file, error };
    }
    if source.kind() == io::ErrorKind::UnexpectedEof {
        return MatrixError::Truncated { file, lines: 0 };
    }
    MatrixError::Read {
        file,
        remedy: match source.kind() {
            io::ErrorKind::NotFound => "give the path of a Matrix Market file",
            io::ErrorKind::IsADirectory => "give a file in it",
            io::ErrorKind::PermissionDenied => "make it readable",
            _ => "copy or fetch it again",
        },
        source,
    }
}

/// The file to read, and the limit of memory.
struct Reader<'a> {
    path: &'a Path,
    length: Option<u64>,
    memory: Option<u64>,
    failed: &'a (dyn Fn(io::Error) -> MatrixError + Sync),
}

/// A block and its number.
type Numbered<T> = (u64, T);

/// A block with its parsed entries. Its text serves to find the line of an entry.
struct Parsed {
    text: Vec<u8>,
    piece: Result<ParsedBlock, NumberedLineError>,
}

impl Reader<'_> {
    fn all(&self, mut blocks: Blocks, control: &mut Control) -> Result<Market, MatrixError> {
        let (header, lines, first) = self.header(&mut blocks)?;
        self.check_memory(&header, blocks.is_packed())?;
        let mut collector = Collector {
            reader: self,
            header,
            lines,
            entries: 0,
            below: None,
            above: None,
            parts: Vec::new(),
        };
        let digest = self.entries(blocks, first, &mut collector, control)?;
        let parts = collector.finish()?;
        let mirror = match header.symmetry {
            Symmetry::General => Mirror::No,
            Symmetry::Symmetric => Mirror::Same,
            Symmetry::SkewSymmetric => Mirror::Negated,
        };
        let csr = assemble(header.rows, header.columns, parts, mirror, control)?;
        Ok(Market { csr, digest })
    }

    /// The header, its number of lines, and the rest of its block.
    fn header(&self, blocks: &mut Blocks) -> Result<(Header, u64, Vec<u8>), MatrixError> {
        let mut reader = HeaderReader::default();
        while let Some(mut block) = self.block(blocks.next(), reader.lines())? {
            let mut at = 0;
            while at < block.len() {
                let end = memchr::memchr(b'\n', &block[at..]).map_or(block.len(), |end| at + end);
                let line = reader.line(&block[at..end]);
                at = (end + 1).min(block.len());
                let found = line.map_err(|error| self.line(reader.lines(), error))?;
                if let Some(header) = found {
                    return Ok((header, reader.lines(), block.split_off(at)));
                }
            }
        }
        Err(self.line(reader.lines().max(1), reader.unfinished()))
    }

    /// Refuses entries that the file cannot contain, or that do not fit into memory.
    fn check_memory(&self, header: &Header, packed: bool) -> Result<(), MatrixError> {
        let Header {
            entries, size_line, ..
        } = *header;
        if let Some(bytes) = self.length.filter(|_| !packed) {
            // The last line may lack its end.
            let possible = (bytes + 1) / header.shortest_line();
            if entries > possible {
                let error = LineError::Impossible {
                    declared: entries,
                    bytes,
                    possible,
                };
                return Err(self.line(size_line, error));
            }
        }
        let rows = header.rows.into();
        let value = match header.field {
            Field::Pattern => 0,
            Field::Real | Field::Integer => size_of::<f64>(),
        };
        let as_read = (2 * size_of::<u32>() + value) as u64;
        let needed = (entries.saturating_mul(as_read))
            .saturating_add(csr::matrix_bytes(rows, header.expanded()))
            // `assemble` also keeps the next entry of each row.
            .saturating_add(csr::starts_bytes(rows));
        let what = format!(
            "{}: reading {entries} entries of {} rows",
            self.path.display(),
            header.rows
        );
        csr::check_memory(&what, needed, self.memory)
    }

    /// Reads the entries into `collector`; `first` is the text behind the header.
    fn entries(
        &self,
        mut blocks: Blocks,
        first: Vec<u8>,
        collector: &mut Collector,
        control: &mut Control,
    ) -> Result<Digest, MatrixError> {
        let header = collector.header;
        let so_far = AtomicU64::new(blocks.bytes());
        // The channels are bounded, since waiting blocks take memory.
        let (todo, blocks_come) = bounded(threads());
        let (done, pieces_come) = bounded(threads());
        thread::scope(|scope| {
            let so_far = &so_far;
            let reading = scope.spawn(move || {
                let ended = read_blocks(&mut blocks, first, &todo, so_far);
                (blocks.digest(), ended)
            });
            for _ in 0..threads() {
                let (blocks_come, done) = (blocks_come.clone(), done.clone());
                scope.spawn(move || parse_blocks(&blocks_come, &done, &header));
            }
            drop((blocks_come, done));
            // If this thread leaves early, the channels close, and the other threads
            // end.
            let pieces_come = pieces_come;
            let mut early = BTreeMap::new();
            let mut next = 0;
            for (number, parsed) in &pieces_come {
                early.insert(number, parsed);
                while let Some(parsed) = early.remove(&next) {
                    collector.add(parsed)?;
                    next += 1;
                }
                let total = self.length.unwrap_or(0);
                control.report("reading", so_far.load(Ordering::Relaxed), total)?;
            }
            // The scope passes panics of the other threads on.
            match reading.join() {
                Ok((digest, None)) => Ok(digest),
                Ok((_, Some(error))) => Err(self.ended(error, collector.lines)),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }

    fn block(
        &self,
        block: Result<Option<Vec<u8>>, BlockError>,
        lines: u64,
    ) -> Result<Option<Vec<u8>>, MatrixError> {
        block.map_err(|error| self.ended(error, lines))
    }

    /// The error that ended the file after `lines` lines.
    fn ended(&self, error: BlockError, lines: u64) -> MatrixError {
        match error {
            BlockError::Read(error) => (self.failed)(error),
            BlockError::Truncated => MatrixError::Truncated {
                file: self.path.to_owned(),
                lines,
            },
            BlockError::LongLine(most) => self.line(lines + 1, LineError::LongLine(most)),
        }
    }

    fn line(&self, line: u64, error: LineError) -> MatrixError {
        MatrixError::Line {
            file: self.path.to_owned(),
            line,
            error,
        }
    }
}

/// Sends blocks until the file ends or the receivers are gone.
fn read_blocks(
    blocks: &mut Blocks,
    first: Vec<u8>,
    todo: &Sender<Numbered<Vec<u8>>>,
    so_far: &AtomicU64,
) -> Option<BlockError> {
    let mut block = first;
    for number in 0.. {
        if todo.send((number, block)).is_err() {
            return None;
        }
        block = match blocks.next() {
            Ok(Some(next)) => next,
            Ok(None) => return None,
            Err(error) => return Some(error),
        };
        so_far.store(blocks.bytes(), Ordering::Relaxed);
    }
    None
}

/// Parses blocks until there are no more, or the receiver is gone.
fn parse_blocks(
    blocks: &Receiver<Numbered<Vec<u8>>>,
    done: &Sender<Numbered<Parsed>>,
    header: &Header,
) {
    for (number, text) in blocks {
        let piece = parse::read(&text, header);
        if done.send((number, Parsed { text, piece })).is_err() {
            return;
        }
    }
}

/// Collects entries in the order of the file, and checks what concerns all of it.
struct Collector<'a> {
    reader: &'a Reader<'a>,
    header: Header,
    /// Lines so far, including the header.
    lines: u64,
    entries: u64,
    /// The first lines with entries below and above the diagonal.
    below: Option<u64>,
    above: Option<u64>,
    parts: Vec<Entries>,
}

impl Collector<'_> {
    fn add(&mut self, parsed: Parsed) -> Result<(), MatrixError> {
        let Parsed { text, piece } = parsed;
        let piece = piece.map_err(|at| self.error(self.lines + at.line, at.error))?;
        let (declared, size_line) = (self.header.entries, self.header.size_line);
        let left = declared - self.entries;
        if piece.entries.rows.len() as u64 > left {
            let line = self.lines + parse::line_of(&text, left + 1);
            let error = LineError::TooMany {
                declared,
                size_line,
            };
            return Err(self.error(line, error));
        }
        self.check_triangle(&piece)?;
        self.entries += piece.entries.rows.len() as u64;
        self.lines += piece.lines;
        self.parts.push(piece.entries);
        Ok(())
    }

    /// Checks that a symmetric file has entries of one triangle only.
    fn check_triangle(&mut self, piece: &ParsedBlock) -> Result<(), MatrixError> {
        let line_of = |line: Option<u64>| line.map(|line| self.lines + line);
        self.below = self.below.or(line_of(piece.below));
        self.above = self.above.or(line_of(piece.above));
        let (Some(below), Some(above)) = (self.below, self.above) else {
            return Ok(());
        };
        let (here, line, other) = match below > above {
            true => ("below", below, above),
            false => ("above", above, below),
        };
        Err(self.error(line, LineError::BothTriangles { here, other }))
    }

    fn finish(self) -> Result<Vec<Entries>, MatrixError> {
        let Header {
            entries: declared,
            size_line,
            ..
        } = self.header;
        if self.entries < declared {
            let error = LineError::TooFew {
                found: self.entries,
                declared,
                size_line,
            };
            return Err(self.error(self.lines, error));
        }
        Ok(self.parts)
    }

    fn error(&self, line: u64, error: LineError) -> MatrixError {
        self.reader.line(line, error)
    }
}
