//! A matrix as a binary file: beside the text that it was read from, so that the text
//! is parsed only once, or by itself.
//!
//! The file consists of a header and the three arrays of the matrix, in the byte
//! order of the machine. The header has the digest of the text. Before a cache is
//! used, the text is read, though not parsed, and its digest compared.
//!
//! Nobody names a cache, and others may write into the folder of a text. A cache is read if the
//! user, the administrator or the text's owner wrote it and nobody else can; only a cache of the
//! user's own is replaced; and its mode is at most that of its text.

use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use bytemuck::{Pod, Zeroable};
use pdawl_profiler::atomic_file::AtomicFile;
use pdawl_profiler::file;

use super::checksum::{ChecksumReader, Digest};
use super::control::Control;
use super::csr::{self, Csr};
use super::{FileError, MatrixError};
use crate::matrix::checksum::Checksum;

/// The ending that is added to the name of the text.
const ENDING: &str = ".pdawl";
/// Why a file is none of this form.
const NO_CACHE: &str = "it does not begin like a matrix of pdawl";
/// Why a file of this form is no cache.
const GENERATED: &str = "it has a matrix that was not read from a text";
/// Bytes that are read or written at a time.
const PIECE: usize = 1 << 20;

/// The result of a search for a cache.
#[derive(Debug)]
pub enum CacheLookup {
    /// The matrix, as it would be read from the text.
    Matrix(Csr),
    /// There is none, or it is of another text or version.
    Nothing,
    /// There is one that cannot be used, and why.
    Damaged(String),
    /// What is there is no cache, or may be of somebody else, and why. It stays.
    Foreign(String),
}

/// Why a binary file gives no matrix.
enum Unusable {
    /// The file cannot be read, or its content is wrong.
    Io(io::Error),
    /// It is no such file, or may be of somebody else.
    Foreign(String),
    /// It was written by another version, or on a machine of another byte order.
    OtherForm,
    /// The matrix does not fit into memory, or the work was interrupted.
    Matrix(MatrixError),
}

impl From<MatrixError> for Unusable {
    fn from(error: MatrixError) -> Self {
        Self::Matrix(error)
    }
}

impl From<io::Error> for Unusable {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

fn damaged(why: impl Into<String>) -> Unusable {
    Unusable::Io(io::Error::new(ErrorKind::InvalidData, why.into()))
}

/// The path of a text's cache.
pub fn path(source: &Path) -> PathBuf {
    let mut name = source.as_os_str().to_owned();
    name.push(ENDING);
    name.into()
}

/// Looks for the matrix that was read from this text.
///
/// # Errors
/// When the text cannot be read or the matrix does not fit into memory, and on
/// interruption. A cache that cannot be used is no error.
pub fn load(
    source: &Path,
    memory: Option<u64>,
    control: &mut Control,
) -> Result<CacheLookup, MatrixError> {
    match load_cache(source, memory, control) {
        Ok(csr) => Ok(csr.map_or(CacheLookup::Nothing, CacheLookup::Matrix)),
        Err(Unusable::OtherForm) => Ok(CacheLookup::Nothing),
        Err(Unusable::Io(error)) if error.kind() == ErrorKind::NotFound => Ok(CacheLookup::Nothing),
        Err(Unusable::Io(error)) => Ok(CacheLookup::Damaged(error.to_string())),
        Err(Unusable::Foreign(why)) => Ok(CacheLookup::Foreign(why)),
        Err(Unusable::Matrix(error)) => Err(error),
    }
}

/// The matrix; `None` if the cache is of another text.
fn load_cache(
    source: &Path,
    memory: Option<u64>,
    control: &mut Control,
) -> Result<Option<Csr>, Unusable> {
    let of = source.metadata().map_err(unreadable(source))?;
    let cache = match file::found(&path(source)) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        found => found.map_err(|error| Unusable::Foreign(error.to_string()))?,
    };
    if let Some(why) = file::foreign(&cache.metadata()?, Some(of.uid())) {
        return Err(Unusable::Foreign(why));
    }
    let (mut cache, header) = begin(cache)?;
    if of.len() != header.source_bytes {
        return match header.has_source() {
            true => Ok(None),
            false => Err(Unusable::Foreign(GENERATED.to_owned())),
        };
    }
    let what = format!("{}: loading its cache", source.display());
    let needed = csr::matrix_bytes(header.rows, header.nonzeros);
    csr::check_memory(&what, needed, memory)?;

    let enough = AtomicBool::new(false);
    thread::scope(|scope| {
        // The digest of the text is computed while the arrays are read.
        let digest = scope.spawn(|| digest(source, &enough));
        let csr = read_arrays(&header, &mut cache, control);
        if csr.is_err() {
            enough.store(true, Ordering::Relaxed);
        }
        let digest = match digest.join() {
            Ok(digest) => digest,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        let csr = csr?;
        Ok(header.is_of(digest?).then_some(csr))
    })
}

/// Saves the cache of a text. It is not synchronised with the disk: its checksum
/// detects a file that is not complete.
///
/// # Errors
/// When it cannot be written, when what is there is no cache of the user's, and on interruption.
/// A file that was there before then stays.
pub fn save(
    source: &Path,
    digest: Digest,
    csr: &Csr,
    control: &mut Control,
) -> Result<(), FileError> {
    let place = path(source);
    match file::found(&place) {
        Ok(there) => check_own(there)?,
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error.into()),
    }
    AtomicFile::beside(&source.metadata()?, &place)?.fill(|file| {
        let mut writer = BufWriter::with_capacity(PIECE, file);
        write_with(digest, csr, &mut writer, control)?;
        Ok(writer.flush()?)
    })
}

/// Checks that a file is a cache of the user's own, or is empty.
fn check_own(there: File) -> io::Result<()> {
    let owner = there.metadata()?.uid();
    if !file::is_own(owner) {
        return Err(io::Error::other(format!(
            "that file belongs to user {owner}"
        )));
    }
    let mut begin = Vec::new();
    there
        .take(size_of::<Header>() as u64)
        .read_to_end(&mut begin)?;
    let header = bytemuck::try_pod_read_unaligned::<Header>(&begin);
    match header {
        Ok(header) if header.form() == Form::Ours && !header.has_source() => {
            Err(io::Error::other(GENERATED))
        }
        _ if is_begun(&begin) => Ok(()),
        _ => Err(io::Error::other(NO_CACHE)),
    }
}

/// Whether a path names a matrix in this form, rather than a text.
pub fn is_binary(path: &Path) -> bool {
    let name = path.as_os_str().as_encoded_bytes();
    name.ends_with(ENDING.as_bytes())
}

/// Reads a matrix from a file of this form, without regard to a text.
///
/// # Errors
/// When there is no such file, it is damaged, or the matrix does not fit into memory,
/// and on interruption.
pub fn read(path: &Path, memory: Option<u64>, control: &mut Control) -> Result<Csr, MatrixError> {
    let file = file::regular(path).map_err(Unusable::Io);
    let csr = file.and_then(begin).and_then(|(mut file, header)| {
        let what = format!("{}: loading it", path.display());
        let needed = csr::matrix_bytes(header.rows, header.nonzeros);
        csr::check_memory(&what, needed, memory)?;
        read_arrays(&header, &mut file, control)
    });
    let source = match csr {
        Ok(csr) => return Ok(csr),
        Err(Unusable::Matrix(error)) => return Err(error),
        Err(Unusable::Io(error)) => error,
        Err(Unusable::Foreign(why)) => io::Error::other(why),
        Err(Unusable::OtherForm) => {
            io::Error::other("it was written by another version of pdawl, or on another machine")
        }
    };
    Err(MatrixError::Read {
        file: path.to_owned(),
        source,
        remedy: "give a file that `pdawl matrix generate` has written, or a Matrix Market file",
    })
}

/// Writes a matrix in this form that was not read from a text.
///
/// # Errors
/// When it cannot be written, and on interruption.
pub fn write(csr: &Csr, out: &mut dyn Write, control: &mut Control) -> Result<(), FileError> {
    write_with(Digest::default(), csr, out, control)
}

fn write_with(
    source: Digest,
    csr: &Csr,
    out: &mut (impl Write + ?Sized),
    control: &mut Control,
) -> Result<(), FileError> {
    let header = Header::of(source, csr);
    let arrays: [&[u8]; 3] = [
        bytemuck::cast_slice(csr.row_starts()),
        bytemuck::cast_slice(csr.column_of()),
        bytemuck::cast_slice(csr.values()),
    ];
    let mut checksum = header.checksum_of_sizes();
    arrays.iter().for_each(|array| checksum.add(array));
    out.write_all(bytemuck::bytes_of(&header.completed(&checksum)))?;
    let (mut done, total) = (0, header.length());
    for piece in arrays.iter().flat_map(|array| array.chunks(PIECE)) {
        out.write_all(piece)?;
        done += piece.len() as u64;
        control.report("writing", done, total)?;
    }
    Ok(())
}

/// Whether bytes are the first ones of a file in this form, however few.
fn is_begun(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC) || MAGIC.starts_with(bytes)
}

/// Reads the header of a file.
fn begin(mut file: File) -> Result<(File, Header), Unusable> {
    let about = file.metadata()?;
    let mut begin = Vec::new();
    let length = size_of::<Header>() as u64;
    Read::by_ref(&mut file)
        .take(length)
        .read_to_end(&mut begin)?;
    let Ok(header) = bytemuck::try_pod_read_unaligned::<Header>(&begin) else {
        return Err(match is_begun(&begin) {
            true => damaged("it ends within its header"),
            false => Unusable::Foreign(NO_CACHE.to_owned()),
        });
    };
    match header.form() {
        Form::Ours => {}
        Form::Another => return Err(Unusable::OtherForm),
        Form::Strange => return Err(Unusable::Foreign(NO_CACHE.to_owned())),
    }
    match (about.len(), header.length()) {
        (found, expected) if found == expected => Ok((file, header)),
        (found, expected) => Err(damaged(format!(
            "it has {found} bytes and should have {expected}"
        ))),
    }
}

/// Reads the arrays that follow the header, and checks them.
fn read_arrays(
    header: &Header,
    file: &mut impl Read,
    control: &mut Control,
) -> Result<Csr, Unusable> {
    let mut starts = csr::zeros::<u64>(header.rows.saturating_add(1))?;
    let mut column_of = csr::zeros::<u32>(header.nonzeros)?;
    let mut values = csr::zeros::<f64>(header.nonzeros)?;
    let mut checksum = header.checksum_of_sizes();
    let (mut done, total) = (0, header.length());
    for array in [
        bytemuck::cast_slice_mut::<_, u8>(&mut starts),
        bytemuck::cast_slice_mut(&mut column_of),
        bytemuck::cast_slice_mut(&mut values),
    ] {
        for piece in array.chunks_mut(PIECE) {
            file.read_exact(piece)?;
            checksum.add(piece);
            done += piece.len() as u64;
            control.report("loading", done, total)?;
        }
    }
    if !header.fits(&checksum) {
        return Err(damaged("its checksum does not fit"));
    }
    let (Ok(rows), Ok(columns)) = (header.rows.try_into(), header.columns.try_into()) else {
        return Err(damaged("it has too many rows or columns"));
    };
    Csr::new(rows, columns, starts, column_of, values).map_err(|error| damaged(error.to_string()))
}

fn unreadable(source: &Path) -> impl Fn(io::Error) -> MatrixError {
    move |error| MatrixError::Read {
        file: source.to_owned(),
        source: error,
        remedy: "give the path of a Matrix Market file",
    }
}

/// The digest of a text, or of a part of it once `enough` is set.
fn digest(source: &Path, enough: &AtomicBool) -> Result<Digest, MatrixError> {
    let file = File::open(source).map_err(unreadable(source))?;
    let mut reader = ChecksumReader::new(file);
    let mut piece = vec![0; PIECE];
    while !enough.load(Ordering::Relaxed) {
        match reader.read(&mut piece) {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(unreadable(source)(error)),
        }
    }
    Ok(reader.digest())
}

#[cfg(test)]
mod tests;

const MAGIC: [u8; 8] = *b"PDAWLCSR";
/// Increased whenever the form of the file changes.
const VERSION: u32 = 1;
/// Has another value when it is read in another byte order.
const ORDER: u32 = 0x0102_0304;

/// The first bytes of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
struct Header {
    magic: [u8; 8],
    version: u32,
    order: u32,
    pub source_bytes: u64,
    source_checksum: [u64; 2],
    pub rows: u64,
    pub columns: u64,
    pub nonzeros: u64,
    /// The checksum of rows, columns, nonzeros and all that follows the header.
    checksum: [u64; 2],
}

/// The kind of file that a header belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// A file as this version writes it on this machine.
    Ours,
    /// A file of another version, or of a machine with another byte order.
    Another,
    /// Something else.
    Strange,
}

impl Header {
    /// The header of a matrix that was read from this text, without the checksum.
    pub fn of(source: Digest, csr: &Csr) -> Self {
        Self {
            magic: MAGIC,
            version: VERSION,
            order: ORDER,
            source_bytes: source.bytes,
            source_checksum: halves(source.checksum),
            rows: csr.rows().into(),
            columns: csr.columns().into(),
            nonzeros: csr.nonzeros(),
            checksum: [0; 2],
        }
    }

    pub fn form(&self) -> Form {
        match (self.magic == MAGIC, (self.version, self.order)) {
            (true, (VERSION, ORDER)) => Form::Ours,
            (true, _) => Form::Another,
            (false, _) => Form::Strange,
        }
    }

    /// Whether the matrix was read from a text, rather than generated.
    pub fn has_source(&self) -> bool {
        self.source_bytes > 0
    }

    /// Bytes of the whole file.
    pub fn length(&self) -> u64 {
        (size_of::<Self>() as u64).saturating_add(csr::matrix_bytes(self.rows, self.nonzeros))
    }

    /// Whether the matrix was read from this text.
    pub fn is_of(&self, source: Digest) -> bool {
        (self.source_bytes, self.source_checksum) == (source.bytes, halves(source.checksum))
    }

    /// The checksum of the sizes in the header, to which the arrays are added.
    pub fn checksum_of_sizes(&self) -> Checksum {
        let mut checksum = Checksum::default();
        checksum.add(bytemuck::cast_slice(&[
            self.rows,
            self.columns,
            self.nonzeros,
        ]));
        checksum
    }

    /// The header with the checksum.
    pub fn completed(self, checksum: &Checksum) -> Self {
        Self {
            checksum: halves(checksum.digest().checksum),
            ..self
        }
    }

    /// Whether this is the checksum in the header.
    pub fn fits(&self, checksum: &Checksum) -> bool {
        self.checksum == halves(checksum.digest().checksum)
    }
}

fn halves(checksum: u128) -> [u64; 2] {
    [checksum as u64, (checksum >> 64) as u64]
}
