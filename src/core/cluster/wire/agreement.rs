//! What all nodes of a run must have alike: the program, how it was built, and the options
//! that decide what is computed and where. Nodes compare one record of it before they open
//! files and devices ([`super::agree()`]).

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a node has: names and their values, the ones that decide the others first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agreement(Vec<(String, String)>);

/// Two nodes have different values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    pub name: String,
    /// The value of the first node, if it has one.
    pub first: Option<String>,
    /// The value of the other node, if it has one.
    pub other: Option<String>,
}

impl Agreement {
    /// Adds a name with its value. A name that is there already has a further value.
    pub fn add(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.0.push((name.into(), value.into()));
    }

    /// The first name whose values differ from those of another node, if there is one.
    pub fn difference(&self, other: &Self) -> Option<Difference> {
        if self == other {
            return None;
        }
        let names = self.0.iter().chain(&other.0).map(|(name, _)| name);
        let mut pairs = names.map(|name| (name, self.values(name), other.values(name)));
        pairs
            .find(|(_, first, other)| first != other)
            .map(|(name, first, other)| Difference {
                name: name.clone(),
                first,
                other,
            })
    }

    fn values(&self, wanted: &str) -> Option<String> {
        let values = self.0.iter().filter(|(name, _)| name == wanted);
        let values: Vec<&str> = values.map(|(_, value)| value.as_str()).collect();
        (!values.is_empty()).then(|| values.join(" "))
    }
}

impl fmt::Display for Difference {
    /// As in `--tile is 64 at node 0 and not given`, to which the other node's name belongs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |value: &Option<String>| match value {
            Some(value) => format!("is {value}"),
            None => "is not given".to_owned(),
        };
        let (first, other) = (shown(&self.first), shown(&self.other));
        write!(f, "{} {first} at node 0, and {other}", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(entries: &[(&str, &str)]) -> Agreement {
        let mut agreement = Agreement::default();
        for (name, value) in entries {
            agreement.add(*name, *value);
        }
        agreement
    }

    #[test]
    fn equal_records_have_no_difference_whatever_their_order() {
        let one = of(&[("--size", "5"), ("-D", "n=1"), ("-D", "m=2")]);
        let other = of(&[("-D", "n=1"), ("-D", "m=2"), ("--size", "5")]);
        assert_eq!(one.difference(&one), None);
        assert_eq!(one.difference(&other), None);
    }

    #[test]
    fn the_first_name_with_other_values_is_reported_at_both_sides() {
        let first = of(&[("version", "1"), ("--size", "5"), ("--tile", "2")]);
        for (other, expected) in [
            (
                of(&[("version", "1"), ("--size", "6"), ("--tile", "3")]),
                "--size is 5 at node 0, and is 6",
            ),
            (
                of(&[("version", "1"), ("--size", "5")]),
                "--tile is 2 at node 0, and is not given",
            ),
            (
                of(&[
                    ("version", "1"),
                    ("--size", "5"),
                    ("--tile", "2"),
                    ("--steps", "9"),
                ]),
                "--steps is not given at node 0, and is 9",
            ),
        ] {
            let difference = first.difference(&other).unwrap();
            assert_eq!(difference.to_string(), expected);
        }
    }

    #[test]
    fn the_order_of_repeated_values_counts() {
        let one = of(&[("--load", "a"), ("--load", "b")]);
        let other = of(&[("--load", "b"), ("--load", "a")]);
        assert!(one.difference(&other).is_some());
    }
}
