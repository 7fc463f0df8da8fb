//! Policies by name, as users write them.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use super::{Spread, StaticShares, Steal, Together};

/// A policy between nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NamedSpread {
    /// [`Together`], the default.
    #[default]
    Together,
    /// [`Together`] without regard to where data are.
    Oblivious,
    /// [`StaticShares`].
    Static,
    /// [`Steal`].
    Steal,
}

const NAMES: [(&str, NamedSpread); 4] = [
    ("together", NamedSpread::Together),
    ("oblivious", NamedSpread::Oblivious),
    ("static", NamedSpread::Static),
    ("steal", NamedSpread::Steal),
];

/// Why a text is not a policy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` is not a policy between nodes; known are together, oblivious, static and steal")]
pub struct SpreadNameError(String);

impl FromStr for NamedSpread {
    type Err = SpreadNameError;

    fn from_str(text: &str) -> Result<Self, SpreadNameError> {
        let found = NAMES.into_iter().find(|(name, _)| *name == text.trim());
        found
            .map(|(_, spread)| spread)
            .ok_or_else(|| SpreadNameError(text.to_owned()))
    }
}

impl fmt::Display for NamedSpread {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let name = NAMES.into_iter().find(|(_, spread)| spread == self);
        f.pad(name.map_or("", |(name, _)| name))
    }
}

impl NamedSpread {
    /// All policies.
    pub fn all() -> impl Iterator<Item = Self> {
        NAMES.into_iter().map(|(_, spread)| spread)
    }

    /// The policy. `seed` is that of random choices.
    pub fn spread(self, seed: u64) -> Box<dyn Spread> {
        match self {
            Self::Together => Box::new(Together::new(true)),
            Self::Oblivious => Box::new(Together::new(false)),
            Self::Static => Box::new(StaticShares),
            Self::Steal => Box::new(Steal::new(seed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_written() {
        for named in NamedSpread::all() {
            assert_eq!(named.to_string().parse(), Ok(named));
            assert_eq!(named.spread(0).name(), named.to_string());
        }
        let error = "equal".parse::<NamedSpread>().unwrap_err();
        assert!(
            error.to_string().starts_with("`equal` is not a policy"),
            "{error}"
        );
    }
}
