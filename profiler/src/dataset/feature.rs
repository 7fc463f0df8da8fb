//! The names of features, which say when a feature is known and its unit.
//!
//! A name is `group.what_unit`, such as `known.unit_bytes`, or `group.unit`
//! where the unit says it all, such as `derived.flops`.

use std::fmt;

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

/// A figure's unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unit {
    Count,
    Seconds,
    Bytes,
    Flops,
    Ratio,
    Mhz,
    Watts,
    Joules,
    BytesPerSecond,
    FlopsPerSecond,
    FlopsPerByte,
}

impl Unit {
    pub const ALL: [Self; 11] = [
        Self::Count,
        Self::Seconds,
        Self::Bytes,
        Self::Flops,
        Self::Ratio,
        Self::Mhz,
        Self::Watts,
        Self::Joules,
        Self::BytesPerSecond,
        Self::FlopsPerSecond,
        Self::FlopsPerByte,
    ];

    /// As names end.
    pub fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Seconds => "seconds",
            Self::Bytes => "bytes",
            Self::Flops => "flops",
            Self::Ratio => "ratio",
            Self::Mhz => "mhz",
            Self::Watts => "watts",
            Self::Joules => "joules",
            Self::BytesPerSecond => "bytes_per_second",
            Self::FlopsPerSecond => "flops_per_second",
            Self::FlopsPerByte => "flops_per_byte",
        }
    }
}

/// A feature of a dataset.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Feature {
    // First, so that features sort by group and then by name.
    group: Group,
    name: String,
    unit: Unit,
}

impl Feature {
    /// Understands a name.
    ///
    /// # Errors
    /// A name without a group or a unit of ours, or with other characters than
    /// small letters, digits and `_` after the group.
    pub fn parse(name: &str) -> Result<Self, NameError> {
        let error = |why| NameError {
            name: name.to_owned(),
            why,
        };
        let (group, what) = name.split_once('.').ok_or_else(|| error(Why::Group))?;
        let group = Group::ALL
            .into_iter()
            .find(|known| known.name() == group)
            .ok_or_else(|| error(Why::Group))?;
        let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        if !what.chars().all(allowed) || what.starts_with('_') {
            return Err(error(Why::Characters));
        }
        let ends_with = |unit: &Unit| {
            what.strip_suffix(unit.name())
                .is_some_and(|before| before.is_empty() || before.ends_with('_'))
        };
        let unit = Unit::ALL
            .into_iter()
            .find(ends_with)
            .ok_or_else(|| error(Why::Unit))?;
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

    pub fn unit(&self) -> Unit {
        self.unit
    }
}

/// A name that no feature can have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameError {
    pub name: String,
    why: Why,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    Group,
    Characters,
    Unit,
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self.why {
            Why::Group => {
                let groups = Group::ALL.map(Group::name).join(", ");
                write!(f, "has no group before a dot; groups are {groups}")
            }
            Why::Characters => f.write_str(
                "has other characters than small letters, digits and `_` after its group",
            ),
            Why::Unit => {
                let units = Unit::ALL.map(Unit::name).join(", ");
                write!(f, "does not end with a unit; units are {units}")
            }
        }
    }
}

impl std::error::Error for NameError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_its_group_and_its_unit() {
        let of = |name: &str| {
            let feature = Feature::parse(name).unwrap();
            (feature.group(), feature.unit())
        };
        assert_eq!(of("known.units_count"), (Group::Known, Unit::Count));
        assert_eq!(of("derived.flops"), (Group::Derived, Unit::Flops));
        assert_eq!(
            of("machine.flops_per_second"),
            (Group::Machine, Unit::FlopsPerSecond)
        );
        assert_eq!(
            of("telemetry.pcie_rx_bytes_per_second"),
            (Group::Telemetry, Unit::BytesPerSecond)
        );
        assert_eq!(
            of("derived.intensity_flops_per_byte"),
            (Group::Derived, Unit::FlopsPerByte)
        );
    }

    #[test]
    fn other_names_are_refused_with_what_would_do() {
        let why = |name: &str| Feature::parse(name).unwrap_err().to_string();
        assert!(why("prior.seconds").contains("groups are machine, known, derived"));
        assert!(why("seconds").contains("no group"));
        assert!(why("known.units").contains("units are count, seconds"));
        assert!(why("known.discount").contains("units are"));
        assert!(why("known.").contains("units are"));
        assert!(why("known.a b_count").contains("small letters"));
        assert!(why("known._count").contains("small letters"));
    }
}
