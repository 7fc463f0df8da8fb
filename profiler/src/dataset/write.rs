//! Writing whole datasets.

use std::io::{self, Write};
use std::path::Path;

use super::columns::Column;
use super::runs::Runs;
use super::{Dataset, DatasetError, FORMAT, Fault, Provenance, check, columns, row};
use crate::Sample;
use crate::atomic_file;
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
    let columns = columns::of(&dataset.samples).map_err(|e| failed(io::Error::other(e)))?;
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
