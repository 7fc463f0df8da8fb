//! Where a matrix comes from, as users say it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::cache::{self, Found};
use super::control::Control;
use super::csr::{Csr, MOST};
use super::error::{FileError, MatrixError};
use super::generate::lookalike::{KNOWN, Known, LookAlike};
use super::generate::{banded, rmat, uniform};
use super::market;

/// A matrix that can be loaded.
///
/// ```
/// use pdawl::matrix::{MatrixSource, control};
///
/// # fn main() -> Result<(), pdawl::matrix::MatrixError> {
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
    /// Of what is generated.
    pub seed: u64,
    /// Whether a binary copy of a file is used and kept beside it.
    pub cache: bool,
    /// Bytes that loading may take; `None`: what is available.
    pub memory: Option<u64>,
}

/// Where its entries come from.
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

/// A matrix that was loaded.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// What outputs call it; a look-alike is called so.
    pub name: String,
    pub csr: Csr,
    /// What the user should know.
    pub notes: Vec<String>,
}

impl MatrixSource {
    /// Loads the matrix.
    ///
    /// # Errors
    /// When a file is not right, the matrix has no room, or on request.
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

    /// What outputs call the matrix.
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
        let cached = self.cache && is_lasting(path);
        if cached {
            match cache::load(path, self.memory, control)? {
                Found::Matrix(csr) => return Ok(csr),
                Found::Nothing => {}
                Found::Damaged(why) => notes.push(format!(
                    "{} is no use as a cache ({why}); the matrix is read from its text",
                    cache::path(path).display()
                )),
            }
        }
        let read = market::read(path, self.memory, control)?;
        if cached {
            match cache::save(path, read.digest, &read.csr, control) {
                Ok(()) => {}
                Err(FileError::Matrix(error)) => return Err(error),
                Err(FileError::Io(error)) => notes.push(format!(
                    "no cache was kept as {} ({error}), so the text is parsed again next time; \
                     --no-cache says not to try",
                    cache::path(path).display()
                )),
            }
        }
        Ok(read.csr)
    }
}

/// Whether a path will be the same file another time. A pipe is not, and neither
/// is what `/dev/stdin` stands for.
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
    let name = name.strip_suffix(".gz").unwrap_or(name);
    name.strip_suffix(".mtx").unwrap_or(name).to_owned()
}

impl FromStr for MatrixSource {
    type Err = MatrixError;

    /// Seed 1, with a cache, in what memory is available.
    fn from_str(text: &str) -> Result<Self, MatrixError> {
        Ok(Self {
            origin: text.parse()?,
            seed: 1,
            cache: true,
            memory: None,
        })
    }
}

impl FromStr for Origin {
    type Err = MatrixError;

    fn from_str(text: &str) -> Result<Self, MatrixError> {
        let wrong = |why: String, remedy| MatrixError::Source {
            text: text.to_owned(),
            why,
            remedy,
        };
        let (sort, rest) = text.split_once(':').unwrap_or(("", text));
        let numbers = |form, remedy| two(rest).ok_or_else(|| wrong(form, remedy));
        match sort {
            "like" => like(rest).map_err(|why| wrong(why, "write like:NAME or like:NAME@SCALE")),
            "banded" => {
                let remedy = "write banded:ROWS,HALF_BANDWIDTH, such as banded:1000000,4";
                let (rows, half) = numbers("two whole numbers are needed".into(), remedy)?;
                let rows = dimension(rows).map_err(|why| wrong(why, remedy))?;
                Ok(Self::Banded { rows, half })
            }
            "uniform" => {
                let remedy = "write uniform:ROWS,PER_ROW, such as uniform:1000000,12";
                let (rows, per_row) = numbers("two whole numbers are needed".into(), remedy)?;
                let rows = dimension(rows).map_err(|why| wrong(why, remedy))?;
                match per_row <= rows {
                    true => Ok(Self::Uniform { rows, per_row }),
                    false => Err(wrong(
                        format!("a row of {rows} columns cannot have {per_row} entries"),
                        remedy,
                    )),
                }
            }
            "rmat" => {
                let remedy = "write rmat:SCALE,PER_ROW, such as rmat:20,16 for 2^20 rows";
                let (scale, per_row) = numbers("two whole numbers are needed".into(), remedy)?;
                match scale <= 30 {
                    true => Ok(Self::Rmat { scale, per_row }),
                    false => Err(wrong(
                        format!("the scale is {scale}, and at most 30"),
                        remedy,
                    )),
                }
            }
            "web" | "circuit" => {
                let remedy = "write web:ROWS or circuit:ROWS, such as web:1000000, and the entries a \
                              row behind a comma if they shall be others: web:1000000,30";
                let (rows, per_row) = match rest.split_once(',') {
                    None => (rest, None),
                    Some((rows, per_row)) => (rows, Some(per_row)),
                };
                let whole = |text: &str| {
                    let number = text.trim().parse::<u32>();
                    number.map_err(|_| wrong(format!("`{text}` is no whole number"), remedy))
                };
                let rows = whole(rows)?;
                let per_row = per_row.map(whole).transpose()?;
                let Some(shape) = Known::shape(sort) else {
                    return Ok(Self::File(text.into()));
                };
                LookAlike::shaped(shape, rows, per_row)
                    .map(Self::LookAlike)
                    .map_err(|why| wrong(why, remedy))
            }
            _ if text.is_empty() => Err(wrong(
                "it is empty".into(),
                "give a Matrix Market file, or a generator such as rmat:20,16",
            )),
            _ => Ok(Self::File(text.into())),
        }
    }
}

impl fmt::Display for Origin {
    /// As users say it.
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

fn two(text: &str) -> Option<(u32, u32)> {
    let (first, second) = text.split_once(',')?;
    Some((first.trim().parse().ok()?, second.trim().parse().ok()?))
}

fn dimension(rows: u32) -> Result<u32, String> {
    match (1..=MOST).contains(&rows) {
        true => Ok(rows),
        false => Err(format!("a matrix has 1 to {MOST} rows, not {rows}")),
    }
}

/// `NAME` or `NAME@SCALE`.
fn like(text: &str) -> Result<Origin, String> {
    let (name, scale) = match text.split_once('@') {
        Some((name, scale)) => match scale.parse::<f64>() {
            Ok(scale) if scale > 0.0 && scale.is_finite() => (name, scale),
            _ => {
                return Err(format!(
                    "`{scale}` is no scale; it is a number above 0, such as 0.1"
                ));
            }
        },
        None => (text, 1.0),
    };
    let Some(known) = Known::find(name) else {
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
