//! The names of features, which say when a feature is known and its unit.
//!
//! A name is `group.what_unit`, such as `known.unit_bytes`, or `group.unit`
//! where the unit says it all, such as `derived.flops`.

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
