//! A matrix as a binary file: beside the text that it was read from, so that the
//! text is parsed once, or by itself.
//!
//! The file consists of a `header` and the three arrays of the matrix, in
//! the byte order of the machine. It belongs to the content of the text: the
//! header has the digest of the text's bytes, and the text is read, though not
//! parsed, whenever its cache is to be used.

mod header;

use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use bytemuck::Zeroable;
use pdawl_profiler::atomic_file::Beside;

use header::{Form, Header};

use super::checksum::{Digest, Summed};
use super::control::Control;
use super::csr::Csr;
use super::error::{FileError, MatrixError};
use super::memory;

/// What is added to the text's name.
const ENDING: &str = ".pdawl";
/// Bytes that are read or written at a time.
const PIECE: usize = 1 << 20;

/// What became of looking for a cache.
#[derive(Debug)]
pub enum Found {
    /// The matrix, as it would be read from the text.
    Matrix(Csr),
    /// There is none, or it is of another text or version.
    Nothing,
    /// There is one that cannot be used, and why.
    Damaged(String),
}

/// Where the cache of a text lies.
pub fn path(source: &Path) -> PathBuf {
    let mut name = source.as_os_str().to_owned();
    name.push(ENDING);
    name.into()
}

/// Looks for the matrix that was read from this text.
///
/// # Errors
/// When the text cannot be read, the matrix has no room, or on request. A cache
/// that cannot be used is none.
pub fn load(
    source: &Path,
    memory: Option<u64>,
    control: &mut Control,
) -> Result<Found, MatrixError> {
    let path = path(source);
    let unreadable = |error: io::Error| Found::Damaged(error.to_string());
    let (mut cache, length) = match open(&path) {
        Ok(opened) => opened,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Found::Nothing),
        Err(error) => return Ok(unreadable(error)),
    };
    let mut header = Header::zeroed();
    if let Err(error) = cache.read_exact(bytemuck::bytes_of_mut(&mut header)) {
        return Ok(unreadable(error));
    }
    match header.form() {
        Form::Ours => {}
        Form::Another => return Ok(Found::Nothing),
        Form::Strange => return Ok(Found::Damaged("it begins like no cache".into())),
    }
    if header.length() != length {
        return Ok(Found::Damaged(format!(
            "it has {length} bytes and should have {}",
            header.length()
        )));
    }
    if source_length(source)? != header.source_bytes {
        return Ok(Found::Nothing);
    }
    let what = format!("{}: loading its cache", source.display());
    let needed = memory::of_matrix(header.rows, header.nonzeros);
    memory::check(&what, needed, memory)?;

    let enough = AtomicBool::new(false);
    thread::scope(|scope| {
        // The text is checked while the arrays are read.
        let digest = scope.spawn(|| digest(source, &enough));
        let arrays = read_arrays(&header, &mut cache, control);
        if arrays.is_err() {
            enough.store(true, Ordering::Relaxed);
        }
        let digest = match digest.join() {
            Ok(digest) => digest,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        let found = match arrays {
            Ok(found) => found,
            Err(FileError::Matrix(error)) => return Err(error),
            Err(FileError::Io(error)) => return Ok(unreadable(error)),
        };
        match header.is_of(digest?) {
            true => Ok(found),
            false => Ok(Found::Nothing),
        }
    })
}

/// Keeps a matrix beside the text that it was read from.
///
/// # Errors
/// When it cannot be written, or on request; what was there before is there
/// still.
pub fn save(
    source: &Path,
    digest: Digest,
    csr: &Csr,
    control: &mut Control,
) -> Result<(), FileError> {
    let path = path(source);
    Beside::create(&path)?.fill(|file| fill(file, digest, csr, control))
}

/// Whether a path names a matrix in this form, rather than a text.
pub fn is_binary(path: &Path) -> bool {
    let name = path.as_os_str().as_encoded_bytes();
    name.ends_with(ENDING.as_bytes())
}

/// A matrix from a file of this form, whatever text it was read from.
///
/// # Errors
/// When there is no such file or it is not whole, the matrix has no room, or on
/// request.
pub fn read(path: &Path, memory: Option<u64>, control: &mut Control) -> Result<Csr, MatrixError> {
    let refused = |why: io::Error| MatrixError::Read {
        file: path.to_owned(),
        source: why,
        remedy: "give a file that `pdawl matrix generate` has written, or a Matrix Market file",
    };
    let strange = |why: &str| refused(io::Error::new(ErrorKind::InvalidData, why));
    let (mut file, length) = open(path).map_err(refused)?;
    let mut header = Header::zeroed();
    file.read_exact(bytemuck::bytes_of_mut(&mut header))
        .map_err(refused)?;
    match header.form() {
        Form::Ours => {}
        Form::Another => return Err(strange("it is of another version of pdawl, or machine")),
        Form::Strange => return Err(strange("it does not begin like a matrix of pdawl")),
    }
    if header.length() != length {
        return Err(strange("it has another length than its begin says"));
    }
    let what = format!("{}: loading it", path.display());
    memory::check(
        &what,
        memory::of_matrix(header.rows, header.nonzeros),
        memory,
    )?;
    match read_arrays(&header, &mut file, control) {
        Ok(Found::Matrix(csr)) => Ok(csr),
        Ok(Found::Damaged(why)) => Err(strange(&why)),
        Ok(Found::Nothing) => Err(strange("it has no matrix")),
        Err(FileError::Matrix(error)) => Err(error),
        Err(FileError::Io(error)) => Err(refused(error)),
    }
}

/// Writes a matrix that was read from no text in this form.
///
/// # Errors
/// When it cannot be written, or on request.
pub fn write(csr: &Csr, out: &mut dyn Write, control: &mut Control) -> Result<(), FileError> {
    let header = Header::of(Digest::default(), csr);
    let mut checksum = header.begun();
    arrays(csr)
        .into_iter()
        .for_each(|array| checksum.add(array));
    out.write_all(bytemuck::bytes_of(&header.completed(&checksum)))?;
    let (mut done, total) = (0, header.length());
    for piece in arrays(csr)
        .into_iter()
        .flat_map(|array| array.chunks(PIECE))
    {
        out.write_all(piece)?;
        done += piece.len() as u64;
        control.tell("writing", done, total)?;
    }
    Ok(())
}

/// Writes a cache. It is not synchronised with the disk: its checksum tells
/// whether all of it got there.
fn fill(
    file: &mut File,
    digest: Digest,
    csr: &Csr,
    control: &mut Control,
) -> Result<(), FileError> {
    let header = Header::of(digest, csr);
    let mut writer = BufWriter::with_capacity(PIECE, &mut *file);
    writer.write_all(bytemuck::bytes_of(&header))?;
    let mut checksum = header.begun();
    let (mut done, total) = (0, header.length());
    for array in arrays(csr) {
        for piece in array.chunks(PIECE) {
            writer.write_all(piece)?;
            checksum.add(piece);
            done += piece.len() as u64;
            control.tell("keeping", done, total)?;
        }
    }
    writer.flush()?;
    drop(writer);
    let header = header.completed(&checksum);
    file.rewind()?;
    file.write_all(bytemuck::bytes_of(&header))?;
    Ok(())
}

/// Reads the arrays that follow the header, and checks them.
fn read_arrays(
    header: &Header,
    cache: &mut impl Read,
    control: &mut Control,
) -> Result<Found, FileError> {
    let mut starts = memory::zeros::<u64>(header.rows.saturating_add(1))?;
    let mut column_of = memory::zeros::<u32>(header.nonzeros)?;
    let mut values = memory::zeros::<f64>(header.nonzeros)?;
    let mut checksum = header.begun();
    let (mut done, total) = (0, header.length());
    for array in [
        bytemuck::cast_slice_mut::<_, u8>(&mut starts),
        bytemuck::cast_slice_mut(&mut column_of),
        bytemuck::cast_slice_mut(&mut values),
    ] {
        for piece in array.chunks_mut(PIECE) {
            cache.read_exact(piece)?;
            checksum.add(piece);
            done += piece.len() as u64;
            control.tell("loading", done, total)?;
        }
    }
    if !header.fits(&checksum) {
        return Ok(Found::Damaged("its checksum does not fit".into()));
    }
    let (Ok(rows), Ok(columns)) = (header.rows.try_into(), header.columns.try_into()) else {
        return Ok(Found::Damaged("it has too many rows or columns".into()));
    };
    Ok(match Csr::new(rows, columns, starts, column_of, values) {
        Ok(csr) => Found::Matrix(csr),
        Err(error) => Found::Damaged(error.to_string()),
    })
}

/// A matrix's arrays as bytes, in the order of the file.
fn arrays(csr: &Csr) -> [&[u8]; 3] {
    [
        bytemuck::cast_slice(csr.row_starts()),
        bytemuck::cast_slice(csr.column_of()),
        bytemuck::cast_slice(csr.values()),
    ]
}

fn open(path: &Path) -> io::Result<(File, u64)> {
    let file = File::open(path)?;
    let about = file.metadata()?;
    if !about.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    Ok((file, about.len()))
}

fn unreadable(source: &Path) -> impl Fn(io::Error) -> MatrixError {
    move |error| MatrixError::Read {
        file: source.to_owned(),
        source: error,
        remedy: "give the path of a Matrix Market file",
    }
}

fn source_length(source: &Path) -> Result<u64, MatrixError> {
    let about = source.metadata().map_err(unreadable(source))?;
    Ok(about.len())
}

/// The digest of a text; whatever was read when it was `enough`.
fn digest(source: &Path, enough: &AtomicBool) -> Result<Digest, MatrixError> {
    let file = File::open(source).map_err(unreadable(source))?;
    let mut summed = Summed::new(file);
    let mut piece = vec![0; PIECE];
    while !enough.load(Ordering::Relaxed) {
        match summed.read(&mut piece) {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(unreadable(source)(error)),
        }
    }
    Ok(summed.digest())
}

#[cfg(test)]
mod tests;
