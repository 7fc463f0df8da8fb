//! Writing whole datasets, and adding runs to a file as they are measured.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use super::check::{self, Key, Runs};
use super::parse::Parsed;
use super::row::{self, Column};
use super::{Dataset, DatasetError, FORMAT, Fault, Provenance};
use crate::Sample;
use crate::atomic_file::{self, AtomicFile};
use crate::file_error::FileError;

/// Writes a dataset: whole, or not at all. [`super::read`] gives it back bit
/// for bit.
///
/// # Errors
/// Runs that [`super::read`] would refuse, no runs at all, and a path that
/// cannot be written; what was there stays there.
pub fn write(path: &Path, dataset: &Dataset) -> Result<(), DatasetError> {
    let file = path.display().to_string();
    if dataset.samples.is_empty() {
        return Err(DatasetError::NoRows { file });
    }
    let mut runs = Runs::default();
    for (line, sample) in (1 + lines_above(&dataset.provenance)..).zip(&dataset.samples) {
        check::check(sample)
            .and_then(|()| runs.fits(sample))
            .map_err(|fault| refused(&file, sample, fault))?;
        runs.note(sample, line);
    }
    replace(path, dataset).map(drop)
}

/// Lines above the first row.
pub(super) fn lines_above(provenance: &Provenance) -> usize {
    2 + provenance.pairs().len()
}

/// Writes runs that were checked, and returns the columns.
pub(super) fn replace(path: &Path, dataset: &Dataset) -> Result<Vec<Column>, DatasetError> {
    let failed = |source| FileError::write(path, source);
    let columns = row::columns(&dataset.samples).map_err(|e| failed(io::Error::other(e)))?;
    atomic_file::write(path, |out| contents(out, dataset, &columns)).map_err(failed)?;
    Ok(columns)
}

pub(super) fn contents(
    out: &mut dyn Write,
    dataset: &Dataset,
    columns: &[Column],
) -> io::Result<()> {
    writeln!(out, "# {FORMAT}")?;
    for (key, value) in dataset.provenance.pairs() {
        writeln!(out, "# {key}: {value}")?;
    }
    out.write_all(&row::header(columns)?)?;
    for sample in &dataset.samples {
        out.write_all(&row::line(sample, columns)?)?;
    }
    Ok(())
}

pub(super) fn refused(file: &str, sample: &Sample, fault: Fault) -> DatasetError {
    DatasetError::Refused {
        file: file.to_owned(),
        run: format!(
            "`{}` of {} on {}, repeat {}",
            sample.configuration, sample.codelet, sample.device, sample.repeat
        ),
        fault: Box::new(fault),
    }
}

/// A dataset that grows row by row.
///
/// A row goes to the file in one piece as soon as it is known. An interrupted
/// program therefore loses at most the run that it was measuring, and a crash
/// or a full disk at most the last row, which the next [`Appender::open`]
/// recognises as cut off and drops.
///
/// While it is there an appender holds a lock on its file, where the file
/// system has locks, so that two profiles do not write the same runs.
#[derive(Debug)]
pub struct Appender {
    path: PathBuf,
    dataset: Dataset,
    runs: Runs,
    /// Lines of the file.
    lines: usize,
    notes: Vec<String>,
    /// `None` as long as there is no file.
    tail: Option<Tail>,
    /// Whether the file's first lines are to say more than they do.
    says_more: bool,
}

impl Appender {
    /// Opens a dataset, or prepares a new one, whose file appears with the
    /// first row. What is there is checked and kept, but for a last row that
    /// was cut off; with the next row, `provenance` is added to what the file
    /// says of where it comes from.
    ///
    /// # Errors
    /// A file that is there and no dataset, which is not touched; one that
    /// another program is writing; a place that cannot be written.
    pub fn open(path: &Path, provenance: &Provenance) -> Result<Self, DatasetError> {
        let mut appender = Self {
            path: path.to_owned(),
            dataset: Dataset::default(),
            runs: Runs::default(),
            lines: 0,
            notes: Vec::new(),
            tail: None,
            says_more: false,
        };
        AtomicFile::create(path).map_err(|source| appender.failed(source))?;
        match open(path) {
            Ok(file) => appender.take_over(file)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(appender.failed(error)),
        }
        let said = appender.dataset.provenance.pairs().len();
        appender.dataset.provenance.merge(provenance);
        appender.says_more = appender.dataset.provenance.pairs().len() > said;
        Ok(appender)
    }

    /// The runs that the file has.
    pub fn samples(&self) -> &[Sample] {
        &self.dataset.samples
    }

    /// Whether a run was measured already.
    pub fn contains(&self, key: &Key) -> bool {
        self.runs.contains(key)
    }

    /// What the user should know of opening the file.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Adds a run to the file. The file is written anew, beside and renamed, if
    /// the run has figures that the header lacks, or if the first lines are to
    /// say more.
    ///
    /// # Errors
    /// A run that cannot be or is there already, a simulated one among measured
    /// ones, and a file that cannot be written. The file then is as it was.
    pub fn append(&mut self, sample: &Sample) -> Result<(), DatasetError> {
        check::check(sample)
            .and_then(|()| self.runs.fits(sample))
            .map_err(|fault| refused(&self.file(), sample, fault))?;
        match &self.tail {
            Some(tail) if !self.says_more && tail.has_columns_of(sample) => {
                tail.push(sample).map_err(|source| self.failed(source))?;
                self.dataset.samples.push(sample.clone());
                self.lines += 1;
                self.runs.note(sample, self.lines);
                Ok(())
            }
            _ => self.rewrite_with(sample),
        }
    }

    fn rewrite_with(&mut self, sample: &Sample) -> Result<(), DatasetError> {
        self.dataset.samples.push(sample.clone());
        let columns = match replace(&self.path, &self.dataset) {
            Ok(columns) => columns,
            Err(error) => {
                self.dataset.samples.pop();
                return Err(error);
            }
        };
        self.lines = lines_above(&self.dataset.provenance);
        self.runs = Runs::default();
        for sample in &self.dataset.samples {
            self.lines += 1;
            self.runs.note(sample, self.lines);
        }
        self.says_more = false;
        // The new file has no lock yet; the old one's goes with the old tail.
        let file = open(&self.path).map_err(|source| self.failed(source))?;
        self.lock(&file)?;
        self.tail = Some(Tail { file, columns });
        Ok(())
    }

    fn take_over(&mut self, mut file: File) -> Result<(), DatasetError> {
        self.lock(&file)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)
            .map_err(|source| FileError::read(&self.path, source))?;
        if bytes.is_empty() {
            return Ok(());
        }
        let whole = 1 + bytes.iter().rposition(|byte| *byte == b'\n').unwrap_or(0);
        // A file that is no dataset is not shortened.
        let parsed = match Parsed::parse(&bytes[..whole], &self.file()) {
            Ok(parsed) => parsed,
            Err(_) => Parsed::parse(&bytes, &self.file())?,
        };
        self.dataset = parsed.dataset;
        self.runs = parsed.runs;
        self.lines = parsed.lines;
        if whole < bytes.len() {
            file.set_len(whole as u64)
                .map_err(|source| self.failed(source))?;
            self.notes.push(format!(
                "{}, line {}: was cut off while it was written; dropped, so that its run is \
                 measured again",
                self.file(),
                self.lines + 1
            ));
        }
        self.tail = Some(Tail {
            file,
            columns: parsed.columns,
        });
        Ok(())
    }

    fn lock(&self, file: &File) -> Result<(), DatasetError> {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => Err(DatasetError::Busy { file: self.file() }),
            // Some file systems have no locks; two profiles at once are rare.
            Ok(()) | Err(TryLockError::Error(_)) => Ok(()),
        }
    }

    fn file(&self) -> String {
        self.path.display().to_string()
    }

    fn failed(&self, source: io::Error) -> DatasetError {
        FileError::write(&self.path, source).into()
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).append(true).open(path)
}

/// A file that rows can be put at the end of, in the order of its columns.
#[derive(Debug)]
struct Tail {
    file: File,
    columns: Vec<Column>,
}

impl Tail {
    fn has_columns_of(&self, sample: &Sample) -> bool {
        let has = |name: &str| self.columns.iter().any(|column| column.name() == name);
        sample.features.keys().all(|name| has(name))
    }

    fn push(&self, sample: &Sample) -> io::Result<()> {
        let line = row::line(sample, &self.columns)?;
        let length = self.file.metadata()?.len();
        (&self.file).write_all(&line).inspect_err(|_| {
            // A part of the row may be there; the next must not follow it. If
            // even that fails, the next `open` drops it.
            let _ = self.file.set_len(length);
        })
    }
}
