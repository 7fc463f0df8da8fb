//! The sources of matrices, as users name them: files, look-alikes and generators.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::cache::CacheLookup;
use super::control::Control;
use super::csr::{Csr, MOST};
use super::generate::lookalike::{KNOWN, KnownMatrix, LookAlike};
use super::generate::{banded, rmat, uniform};
use super::market;
use super::{FileError, MatrixError, cache};

/// A matrix that can be loaded.
///
/// ```
/// use pdawl_core::matrix::{MatrixSource, control};
///
/// # fn main() -> Result<(), pdawl_core::matrix::MatrixError> {
/// let source: MatrixSource = "like:eu-2005@0.001".parse()?;
/// let loaded = control::quietly(|control| source.load(control))?;
/// assert_eq!(loaded.name, "look-alike of eu-2005 at 0.001");
/// assert_eq!(loaded.csr.rows(), 863);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct MatrixSource {
    pub origin: Origin,
    /// Seed of a generated matrix.
    pub seed: u64,
    /// Whether a file's binary copy is used, and kept beside it.
    pub cache: bool,
    /// Bytes of memory that loading may take; `None`: what is available.
    pub memory: Option<u64>,
}

/// Where the entries of a matrix come from.
#[derive(Clone, Debug, PartialEq)]
pub enum Origin {
    /// A Matrix Market file, or a binary one.
    File(PathBuf),
    LookAlike(LookAlike),
    Banded {
        rows: u32,
        half: u32,
    },
    Uniform {
        rows: u32,
        per_row: u32,
    },
    Rmat {
        scale: u32,
        per_row: u32,
    },
}

/// A loaded matrix.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// The name in outputs, which says so if the matrix is a look-alike.
    pub name: String,
    pub csr: Csr,
    /// Notes for the user.
    pub notes: Vec<String>,
}

impl MatrixSource {
    /// Loads the matrix.
    ///
    /// # Errors
    /// When a file is wrong or the matrix does not fit into memory, and on interruption.
    pub fn load(&self, control: &mut Control) -> Result<Loaded, MatrixError> {
        let (seed, memory) = (self.seed, self.memory);
        let mut notes = Vec::new();
        let csr = match &self.origin {
            Origin::File(path) => self.load_file(path, &mut notes, control)?,
            Origin::LookAlike(like) => like.generate(seed, memory, control)?,
            Origin::Banded { rows, half } => banded(*rows, *half, seed, memory, control)?,
            Origin::Uniform { rows, per_row } => uniform(*rows, *per_row, seed, memory, control)?,
            Origin::Rmat { scale, per_row } => rmat(*scale, *per_row, seed, memory, control)?,
        };
        Ok(Loaded {
            name: self.name(),
            csr,
            notes,
        })
    }

    /// The name of the matrix in outputs.
    pub fn name(&self) -> String {
        match &self.origin {
            Origin::File(path) => file_name(path),
            Origin::LookAlike(like) => like.name(),
            other => other.to_string(),
        }
    }

    fn load_file(
        &self,
        path: &Path,
        notes: &mut Vec<String>,
        control: &mut Control,
    ) -> Result<Csr, MatrixError> {
        if cache::is_binary(path) {
            return cache::read(path, self.memory, control);
        }
        let mut cached = self.cache && is_lasting(path);
        if cached {
            match cache::load(path, self.memory, control)? {
                CacheLookup::Matrix(csr) => return Ok(csr),
                CacheLookup::Nothing => {}
                CacheLookup::Damaged(why) => notes.push(format!(
                    "{} is not usable as a cache ({why}); the matrix is read from its text",
                    cache::path(path).display()
                )),
                CacheLookup::Foreign(why) => {
                    cached = false;
                    notes.push(format!(
                        "{} is not used as a cache ({why}), and not replaced; the matrix is read \
                         from its text each time; move that file away, or give --no-cache",
                        cache::path(path).display()
                    ));
                }
            }
        }
        let read = market::read(path, self.memory, control)?;
        if cached {
            match cache::save(path, read.digest, &read.csr, control) {
                Ok(()) => {}
                Err(FileError::Matrix(error)) => return Err(error),
                Err(FileError::Io(error)) => notes.push(format!(
                    "no cache was saved as {} ({error}), so the text is parsed again next time; \
                     --no-cache avoids the attempt",
                    cache::path(path).display()
                )),
            }
        }
        Ok(read.csr)
    }
}

/// Whether a path names the same file the next time. A pipe does not, and neither does
/// `/dev/stdin`.
fn is_lasting(path: &Path) -> bool {
    let passing = ["/dev", "/proc"]
        .iter()
        .any(|folder| path.starts_with(folder));
    path.is_file() && !passing
}

/// A file's name without the endings of its format.
fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    let name = name.to_string_lossy();
    let name = name.strip_suffix(".pdawl").unwrap_or(&name);
    let endings = [".gz", ".tgz", ".tar", ".mtx"];
    let stripped = endings
        .iter()
        .fold(name, |name, end| name.strip_suffix(end).unwrap_or(name));
    stripped.to_owned()
}

impl From<Origin> for MatrixSource {
    /// Seed 1, with a cache, in what memory is available.
    fn from(origin: Origin) -> Self {
        Self {
            origin,
            seed: 1,
            cache: true,
            memory: None,
        }
    }
}

impl FromStr for MatrixSource {
    type Err = MatrixError;

    /// As [`Self::from`] of the origin.
    fn from_str(text: &str) -> Result<Self, MatrixError> {
        text.parse().map(Origin::into)
    }
}

impl TryFrom<OsString> for MatrixSource {
    type Error = MatrixError;

    /// As [`Self::from_str`]. What is not UTF-8 is the path of a file.
    fn try_from(text: OsString) -> Result<Self, MatrixError> {
        match text.into_string() {
            Ok(text) => text.parse(),
            Err(path) => Ok(Origin::File(path.into()).into()),
        }
    }
}

impl FromStr for Origin {
    type Err = MatrixError;

    fn from_str(text: &str) -> Result<Self, MatrixError> {
        let (kind, rest) = text.split_once(':').unwrap_or(("", text));
        let (parsed, remedy) = match kind {
            "like" => (like(rest), "write like:NAME or like:NAME@SCALE"),
            "banded" => (
                banded_of(rest),
                "write banded:ROWS,HALF_BANDWIDTH, such as banded:1000000,4",
            ),
            "uniform" => (
                uniform_of(rest),
                "write uniform:ROWS,PER_ROW, such as uniform:1000000,12",
            ),
            "rmat" => (
                rmat_of(rest),
                "write rmat:SCALE,PER_ROW, such as rmat:20,16 for 2^20 rows",
            ),
            "web" | "circuit" => (
                shape(kind, rest),
                "write web:ROWS or circuit:ROWS, such as web:1000000, and after a comma the entries \
                 a row, unless the default is wanted: web:1000000,30",
            ),
            _ if text.is_empty() => (
                Err("it is empty".to_owned()),
                "give a Matrix Market file, or a generator such as rmat:20,16",
            ),
            _ => return Ok(Self::File(text.into())),
        };
        parsed.map_err(|why| MatrixError::Source {
            text: text.to_owned(),
            why,
            remedy,
        })
    }
}

impl fmt::Display for Origin {
    /// As on the command line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::LookAlike(like) => like.fmt(f),
            Self::Banded { rows, half } => write!(f, "banded:{rows},{half}"),
            Self::Uniform { rows, per_row } => write!(f, "uniform:{rows},{per_row}"),
            Self::Rmat { scale, per_row } => write!(f, "rmat:{scale},{per_row}"),
        }
    }
}

/// Parses `ROWS,HALF_BANDWIDTH`.
fn banded_of(text: &str) -> Result<Origin, String> {
    let (rows, half) = two(text)?;
    let rows = dimension(rows)?;
    Ok(Origin::Banded { rows, half })
}

/// Parses `ROWS,PER_ROW`.
fn uniform_of(text: &str) -> Result<Origin, String> {
    let (rows, per_row) = two(text)?;
    let rows = dimension(rows)?;
    match per_row <= rows {
        true => Ok(Origin::Uniform { rows, per_row }),
        false => Err(format!(
            "a row of {rows} columns cannot have {per_row} entries"
        )),
    }
}

/// Parses `SCALE,PER_ROW`.
fn rmat_of(text: &str) -> Result<Origin, String> {
    let (scale, per_row) = two(text)?;
    match scale <= 30 {
        true => Ok(Origin::Rmat { scale, per_row }),
        false => Err(format!("the scale is {scale}, and at most 30")),
    }
}

/// Parses `ROWS` or `ROWS,PER_ROW` of a shape.
fn shape(name: &str, text: &str) -> Result<Origin, String> {
    let number = |text: &str| {
        let number = text.trim().parse::<u32>();
        number.map_err(|_| format!("`{text}` is not a whole number"))
    };
    let (rows, per_row) = match text.split_once(',') {
        None => (text, None),
        Some((rows, per_row)) => (rows, Some(number(per_row)?)),
    };
    let shape = KnownMatrix::shape(name).ok_or("there is no such shape")?;
    LookAlike::shaped(shape, number(rows)?, per_row).map(Origin::LookAlike)
}

fn two(text: &str) -> Result<(u32, u32), String> {
    let numbers = text.split_once(',').and_then(|(first, second)| {
        Some((first.trim().parse().ok()?, second.trim().parse().ok()?))
    });
    numbers.ok_or_else(|| "two whole numbers are needed".to_owned())
}

fn dimension(rows: u32) -> Result<u32, String> {
    match (1..=MOST).contains(&rows) {
        true => Ok(rows),
        false => Err(format!("a matrix has 1 to {MOST} rows, not {rows}")),
    }
}

/// Parses `NAME` or `NAME@SCALE`.
fn like(text: &str) -> Result<Origin, String> {
    let (name, scale) = match text.split_once('@') {
        Some((name, scale)) => {
            let number = scale.parse().ok();
            let number = number.filter(|scale: &f64| *scale > 0.0 && scale.is_finite());
            let wrong = || format!("`{scale}` is no scale; it is a number above 0, such as 0.1");
            (name, number.ok_or_else(wrong)?)
        }
        None => (text, 1.0),
    };
    let Some(known) = KnownMatrix::find(name) else {
        let known: Vec<&str> = KNOWN.iter().map(|known| known.name).collect();
        return Err(format!(
            "there is no look-alike of `{name}`; known are {}",
            known.join(", ")
        ));
    };
    LookAlike::new(*known, scale).map(Origin::LookAlike)
}

#[cfg(test)]
mod tests;
