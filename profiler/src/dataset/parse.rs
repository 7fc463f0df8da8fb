//! Parsing a dataset; every error has its line number.
//!
//! No value has a line break, so a row is a line. Lines are counted here and
//! taken apart by the `csv` crate one by one: its own line numbers do not
//! count blank lines and carriage returns.

use super::check::Runs;
use super::row::{self, Column, IDENTITY};
use super::{Dataset, DatasetError, FORMAT, Fault};
use super::{Quoted, check};
use crate::Sample;

/// Reads and checks the contents of a dataset; `file` is its name in messages.
///
/// # Errors
/// Another format or version, a header with missing, unknown or repeated
/// columns, a row with too few or too many cells, a value that cannot be, a
/// run that is there twice, simulated and measured runs in one file, a last
/// line that was cut off, no rows.
pub fn parse(bytes: &[u8], file: &str) -> Result<Dataset, DatasetError> {
    let parsed = Parsed::parse(bytes, file)?;
    if parsed.dataset.samples.is_empty() {
        return Err(DatasetError::NoRows {
            file: file.to_owned(),
        });
    }
    Ok(parsed.dataset)
}

/// A file's contents.
pub(super) struct Parsed {
    pub dataset: Dataset,
    /// As the file has them.
    pub columns: Vec<Column>,
    pub runs: Runs,
    /// How many lines the file has.
    pub lines: usize,
}

impl Parsed {
    /// As [`parse`], but a file without rows is accepted.
    pub fn parse(bytes: &[u8], file: &str) -> Result<Self, DatasetError> {
        let text = text(bytes, file)?;
        let mut lines = Lines {
            file,
            rest: text,
            number: 0,
        };
        first_line(&mut lines)?;
        let mut dataset = Dataset::default();
        let header = loop {
            let line = lines.next_whole()?;
            match line.and_then(|line| line.strip_prefix('#')) {
                None => break line.unwrap_or_default(),
                Some(comment) if dataset.provenance.read_line(comment) => {}
                Some(_) => {
                    return Err(lines.wrong(
                        "no `# key: value`",
                        "say where the data comes from as `# key: value`, or remove the line",
                    ));
                }
            }
        };
        let columns = columns(header, &lines)?;
        let mut runs = Runs::default();
        while let Some(line) = lines.next_whole()? {
            if line.trim().is_empty() {
                continue;
            }
            let sample = sample(line, &columns, &lines)?;
            check::check(&sample)
                .and_then(|()| runs.fits(&sample))
                .map_err(|fault| lines.fault(fault))?;
            runs.note(&sample, lines.number);
            dataset.samples.push(sample);
        }
        Ok(Self {
            dataset,
            columns,
            runs,
            lines: lines.number,
        })
    }
}

/// A text's lines with their numbers.
struct Lines<'a> {
    file: &'a str,
    rest: &'a str,
    number: usize,
}

impl<'a> Lines<'a> {
    fn next(&mut self) -> Option<&'a str> {
        let end = self.rest.find('\n').map_or(self.rest.len(), |at| at + 1);
        let (line, rest) = self.rest.split_at(end);
        self.rest = rest;
        self.number += usize::from(!line.is_empty());
        (!line.is_empty()).then_some(line)
    }

    /// The next line without its end, which it must have.
    fn next_whole(&mut self) -> Result<Option<&'a str>, DatasetError> {
        let Some(line) = self.next() else {
            return Ok(None);
        };
        let whole = line.strip_suffix('\n').ok_or_else(|| {
            self.wrong(
                "the line has no end, so it may have been cut off while it was written",
                "`pdawl profile` continues the file without it; else remove it, \
                 or end it with a line break if it is whole",
            )
        })?;
        Ok(Some(whole.strip_suffix('\r').unwrap_or(whole)))
    }

    fn wrong(&self, why: impl Into<String>, remedy: impl Into<String>) -> DatasetError {
        DatasetError::Line {
            file: self.file.to_owned(),
            line: self.number,
            why: why.into(),
            remedy: remedy.into(),
        }
    }

    fn fault(&self, fault: Fault) -> DatasetError {
        DatasetError::Value {
            file: self.file.to_owned(),
            line: self.number,
            fault: Box::new(fault),
        }
    }
}

fn text<'a>(bytes: &'a [u8], file: &str) -> Result<&'a str, DatasetError> {
    if bytes.is_empty() {
        return Err(DatasetError::Empty {
            file: file.to_owned(),
        });
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let before = &bytes[..error.valid_up_to()];
        DatasetError::Line {
            file: file.to_owned(),
            line: 1 + before.iter().filter(|byte| **byte == b'\n').count(),
            why: "not UTF-8".to_owned(),
            remedy: "save the file as UTF-8, or get it again from its source".to_owned(),
        }
    })?;
    // Spreadsheets put a byte order mark before the first line.
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

fn first_line(lines: &mut Lines) -> Result<(), DatasetError> {
    let file = lines.file.to_owned();
    let line = lines.next().unwrap_or_default().trim_end();
    let name = line.strip_prefix('#').map(str::trim);
    if name == Some(FORMAT) {
        return Ok(());
    }
    let version = name
        .and_then(|name| name.strip_prefix("pdawl-samples/"))
        .and_then(|version| version.parse::<u32>().ok());
    if version.is_some_and(|version| version > 1) {
        return Err(DatasetError::Newer {
            file,
            found: name.unwrap_or_default().to_owned(),
        });
    }
    Err(DatasetError::Format {
        file,
        found: Quoted(line).to_string(),
    })
}

fn columns(header: &str, lines: &Lines) -> Result<Vec<Column>, DatasetError> {
    let mut columns = Vec::new();
    for name in &cells(header, lines)? {
        let column = Column::parse(name)
            .map_err(|why| lines.fault(Fault::new(name, name, why, check::RENAME)))?;
        if columns.contains(&column) {
            let fault = Fault::new(name, name, "names two columns", "remove one of them");
            return Err(lines.fault(fault));
        }
        columns.push(column);
    }
    let is_missing = |name: &&str| !columns.iter().any(|column| column.name() == *name);
    let missing: Vec<&str> = IDENTITY.into_iter().filter(is_missing).collect();
    if !missing.is_empty() {
        return Err(lines.wrong(
            format!("the header has no column `{}`", missing.join("`, `")),
            "this line must name the columns; every dataset has those that docs/datasets.md \
             lists first",
        ));
    }
    Ok(columns)
}

fn sample(line: &str, columns: &[Column], lines: &Lines) -> Result<Sample, DatasetError> {
    if line.starts_with('#') {
        return Err(lines.wrong(
            "a comment stands among the rows",
            "comments stand before the header, as `# key: value`; move or remove it",
        ));
    }
    let cells = cells(line, lines)?;
    if cells.len() != columns.len() {
        return Err(lines.wrong(
            format!(
                "the row has {} cells, the header {}",
                cells.len(),
                columns.len()
            ),
            "give each column a cell, empty where the figure is not known, or remove the row",
        ));
    }
    row::sample(cells.iter(), columns).map_err(|fault| lines.fault(fault))
}

fn cells(line: &str, lines: &Lines) -> Result<csv::StringRecord, DatasetError> {
    if !line.matches('"').count().is_multiple_of(2) {
        return Err(lines.wrong("a `\"` is left open", "close it on the same line"));
    }
    let mut record = csv::StringRecord::new();
    let read = csv::ReaderBuilder::new()
        .has_headers(false)
        .buffer_capacity(line.len().max(1))
        .from_reader(line.as_bytes())
        .read_record(&mut record);
    match read {
        Ok(_) => Ok(record),
        Err(error) => Err(lines.wrong(error.to_string(), "write it as CSV")),
    }
}
