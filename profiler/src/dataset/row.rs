//! The columns of a dataset, and its rows: a run as cells, and cells as a run.

use std::collections::BTreeSet;
use std::str::FromStr;

use super::Fault;
use super::feature::Feature;
use crate::Sample;

/// The columns that every dataset has, in the order in which they are written:
/// which run it is, and what it took.
pub const IDENTITY: [&str; 10] = [
    "machine",
    "simulated",
    "device",
    "kind",
    "codelet",
    "configuration",
    "repeat",
    "counters",
    "steps",
    "seconds",
];

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Column {
    /// An index into [`IDENTITY`].
    Identity(usize),
    Feature(Feature),
}

impl Column {
    /// Understands a name of a header.
    ///
    /// # Errors
    /// A name that is neither one of [`IDENTITY`] nor a feature's.
    pub fn parse(name: &str) -> Result<Self, String> {
        match IDENTITY.iter().position(|column| *column == name) {
            Some(index) => Ok(Self::Identity(index)),
            None => Feature::parse(name).map(Self::Feature),
        }
    }

    pub fn name(&self) -> &str {
        match self {
            Self::Identity(index) => IDENTITY[*index],
            Self::Feature(feature) => feature.name(),
        }
    }
}

/// The columns in which all these runs can be written: [`IDENTITY`], then
/// every feature that a run has, by group and within a group by name.
///
/// # Errors
/// A feature's name that a dataset cannot have.
pub(super) fn columns<'a>(
    samples: impl IntoIterator<Item = &'a Sample>,
) -> Result<Vec<Column>, String> {
    let names = samples
        .into_iter()
        .flat_map(|sample| sample.features.keys());
    let names: BTreeSet<&str> = names.map(String::as_str).collect();
    let features: Result<BTreeSet<Feature>, String> =
        names.into_iter().map(Feature::parse).collect();
    let features = features?.into_iter().map(Column::Feature);
    let identity = (0..IDENTITY.len()).map(Column::Identity);
    Ok(identity.chain(features).collect())
}

/// The run as a line of CSV, its line end included. Figures that the run does
/// not have are empty cells.
pub(super) fn line(sample: &Sample, columns: &[Column]) -> std::io::Result<Vec<u8>> {
    csv_line(columns.iter().map(|column| {
        match column {
            Column::Identity(index) => identity(sample, *index),
            Column::Feature(feature) => sample
                .features
                .get(feature.name())
                .map_or_else(String::new, |value| number(*value)),
        }
    }))
}

/// The header as a line of CSV.
pub(super) fn header(columns: &[Column]) -> std::io::Result<Vec<u8>> {
    csv_line(columns.iter().map(|column| column.name().to_owned()))
}

fn csv_line(cells: impl Iterator<Item = String>) -> std::io::Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(cells.map(String::into_bytes))?;
    writer.into_inner().map_err(|e| e.into_error())
}

fn identity(sample: &Sample, index: usize) -> String {
    match index {
        0 => sample.machine.clone(),
        1 => sample.simulated.to_string(),
        2 => sample.device.clone(),
        3 => sample.kind.clone(),
        4 => sample.codelet.clone(),
        5 => sample.configuration.clone(),
        6 => sample.repeat.to_string(),
        7 => sample.counters.clone(),
        8 => sample.steps.to_string(),
        _ => number(sample.seconds),
    }
}

/// The shortest text that reads back as the same number.
fn number(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 || (1e-5..1e16).contains(&size) {
        value.to_string()
    } else {
        format!("{value:e}")
    }
}

/// The run that the cells say; `cells` and `columns` are equally many. Whether
/// there is such a run is for `check` to say.
pub(super) fn sample<'a>(
    cells: impl Iterator<Item = &'a str>,
    columns: &[Column],
) -> Result<Sample, Fault> {
    let mut sample = Sample::default();
    for (column, cell) in columns.iter().zip(cells) {
        match column {
            Column::Identity(index) => set(&mut sample, *index, cell, column.name())?,
            Column::Feature(_) if cell.is_empty() => {}
            Column::Feature(feature) => {
                let value = parsed(feature.name(), cell, "is no number", FIGURE)?;
                sample.features.insert(feature.name().to_owned(), value);
            }
        }
    }
    Ok(sample)
}

const FIGURE: &str = "give a figure such as `12.5`, or leave the cell empty";

fn set(sample: &mut Sample, index: usize, cell: &str, name: &str) -> Result<(), Fault> {
    const COUNTED: &str = "give a number such as `3`, without a decimal point";
    let text = cell.to_owned();
    match index {
        0 => sample.machine = text,
        1 => {
            let remedy = "give `true` or `false`";
            sample.simulated = parsed(name, cell, "is neither true nor false", remedy)?;
        }
        2 => sample.device = text,
        3 => sample.kind = text,
        4 => sample.codelet = text,
        5 => sample.configuration = text,
        6 => sample.repeat = parsed(name, cell, "is no whole number from 0", COUNTED)?,
        7 => sample.counters = text,
        8 => sample.steps = parsed(name, cell, "is no whole number from 1", COUNTED)?,
        _ => sample.seconds = parsed(name, cell, "is no number", "give seconds such as `0.25`")?,
    }
    Ok(())
}

fn parsed<T: FromStr>(column: &str, cell: &str, why: &str, remedy: &str) -> Result<T, Fault> {
    cell.parse()
        .map_err(|_| Fault::new(column, cell, why, remedy))
}
