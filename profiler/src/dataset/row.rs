//! The columns of a dataset, and its rows: a run as cells, and cells as a run.

use std::collections::BTreeSet;
use std::str::FromStr;

use super::Fault;
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

// The names of features, which say when a feature is known and its unit.
//
// A name is `group.what_unit`, such as `known.unit_bytes`, or `group.unit`
// where the unit says it all, such as `derived.flops`.

/// When and how a figure of a run is known. Columns have this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    /// What a machine file says.
    Machine,
    /// Size and configuration.
    Known,
    /// Computed from the groups before.
    Derived,
    /// Counted by the processor or the operating system.
    Counter,
    /// Sums of times over the run's commands.
    Trace,
    /// Read from a GPU's sensors.
    Telemetry,
}

impl Group {
    pub const ALL: [Self; 6] = [
        Self::Machine,
        Self::Known,
        Self::Derived,
        Self::Counter,
        Self::Trace,
        Self::Telemetry,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Machine => "machine",
            Self::Known => "known",
            Self::Derived => "derived",
            Self::Counter => "counter",
            Self::Trace => "trace",
            Self::Telemetry => "telemetry",
        }
    }

    /// Whether its figures are known before a run, so that a plan can rest on
    /// them.
    pub fn is_known_before(self) -> bool {
        matches!(self, Self::Machine | Self::Known | Self::Derived)
    }
}

/// A figure's unit, as names end.
pub const UNITS: [&str; 11] = [
    "count",
    "seconds",
    "bytes",
    "flops",
    "ratio",
    "mhz",
    "watts",
    "joules",
    "bytes_per_second",
    "flops_per_second",
    "flops_per_byte",
];

/// A feature of a dataset.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Feature {
    // First, so that features sort by group and then by name.
    group: Group,
    name: String,
    unit: &'static str,
}

impl Feature {
    /// Understands a name.
    ///
    /// # Errors
    /// Says what is wrong with a name without a group or a unit of ours, or with other
    /// characters than small letters, digits and `_` after the group.
    pub fn parse(name: &str) -> Result<Self, String> {
        let split = name.split_once('.').and_then(|(group, what)| {
            let mut known = Group::ALL.into_iter();
            Some((known.find(|known| known.name() == group)?, what))
        });
        let (group, what) = split.ok_or_else(|| {
            let groups = Group::ALL.map(Group::name).join(", ");
            format!("has no group before a dot; groups are {groups}")
        })?;
        let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        if !what.chars().all(allowed) || what.starts_with('_') {
            let why = "has other characters than small letters, digits and `_` after its group";
            return Err(why.to_owned());
        }
        let ends_with = |unit: &&str| {
            let before = what.strip_suffix(unit);
            before.is_some_and(|before| before.is_empty() || before.ends_with('_'))
        };
        let unit = UNITS.into_iter().find(ends_with).ok_or_else(|| {
            let units = UNITS.join(", ");
            format!("does not end with a unit; units are {units}")
        })?;
        Ok(Self {
            group,
            name: name.to_owned(),
            unit,
        })
    }

    /// The whole name, group included.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn group(&self) -> Group {
        self.group
    }

    pub fn unit(&self) -> &'static str {
        self.unit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_its_group_and_its_unit() {
        let of = |name: &str| {
            let feature = Feature::parse(name).unwrap();
            (feature.group(), feature.unit())
        };
        assert_eq!(of("known.units_count"), (Group::Known, "count"));
        assert_eq!(of("derived.flops"), (Group::Derived, "flops"));
        assert_eq!(
            of("machine.flops_per_second"),
            (Group::Machine, "flops_per_second")
        );
        assert_eq!(
            of("telemetry.pcie_rx_bytes_per_second"),
            (Group::Telemetry, "bytes_per_second")
        );
        assert_eq!(
            of("derived.intensity_flops_per_byte"),
            (Group::Derived, "flops_per_byte")
        );
    }

    #[test]
    fn other_names_are_refused_with_what_would_do() {
        let why = |name: &str| Feature::parse(name).unwrap_err();
        assert!(why("prior.seconds").contains("groups are machine, known, derived"));
        assert!(why("seconds").contains("no group"));
        assert!(why("known.units").contains("units are count, seconds"));
        assert!(why("known.discount").contains("units are"));
        assert!(why("known.").contains("units are"));
        assert!(why("known.a b_count").contains("small letters"));
        assert!(why("known._count").contains("small letters"));
    }
}
