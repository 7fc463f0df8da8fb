//! Policies by name, as users write them: a base and its variants, `darts+luf+3inputs`.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use super::{
    Assigned, AutoFit, Darts, DartsOptions, Dmdar, Eager, Eviction, ListOptions, Locality, Policy,
    Problem, RoundRobin, WINDOW,
};

/// A policy for tasks that share data in small memories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedPolicy {
    base: Base,
    eviction: Eviction,
    three_inputs: bool,
    opti: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Base {
    Eager,
    Dmdar,
    Partition,
    Mhfp,
    Darts,
    Locality,
    AutoFit,
    RoundRobin,
}

const BASES: [(&str, Base); 8] = [
    ("eager", Base::Eager),
    ("dmdar", Base::Dmdar),
    ("partition", Base::Partition),
    ("mhfp", Base::Mhfp),
    ("darts", Base::Darts),
    ("locality", Base::Locality),
    ("auto-fit", Base::AutoFit),
    ("round-robin", Base::RoundRobin),
];

impl Base {
    /// Whether it can evict by LUF or LRU.
    fn has_eviction(self) -> bool {
        !matches!(
            self,
            Self::Eager | Self::Locality | Self::AutoFit | Self::RoundRobin
        )
    }
}

/// What exists, for messages.
const KNOWN: &str = "known are eager, locality, auto-fit, round-robin, dmdar, partition, mhfp and \
                     darts; the last four take +luf or +lru, and darts takes +3inputs and +opti, as in darts+luf+3inputs";

/// Why a text is not a policy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PolicyNameError {
    #[error("`{0}` is not a policy; {KNOWN}")]
    Base(String),

    #[error("policy {base} has no variant `+{variant}`; {KNOWN}")]
    Variant { base: &'static str, variant: String },

    #[error("policy `{0}` has a variant twice, or both +luf and +lru; {KNOWN}")]
    Twice(String),
}

impl FromStr for NamedPolicy {
    type Err = PolicyNameError;

    fn from_str(text: &str) -> Result<Self, PolicyNameError> {
        let mut words = text.trim().split('+');
        let base = words.next().unwrap_or_default();
        let Some((name, base)) = BASES.into_iter().find(|(name, _)| *name == base) else {
            return Err(PolicyNameError::Base(base.to_owned()));
        };
        let (mut eviction, mut three_inputs, mut opti) = (None, false, false);
        for word in words {
            let twice = match (word, base) {
                ("luf", base) if base.has_eviction() => eviction.replace(Eviction::Luf).is_some(),
                ("lru", base) if base.has_eviction() => eviction.replace(Eviction::Lru).is_some(),
                ("3inputs", Base::Darts) => std::mem::replace(&mut three_inputs, true),
                ("opti", Base::Darts) => std::mem::replace(&mut opti, true),
                _ => {
                    return Err(PolicyNameError::Variant {
                        base: name,
                        variant: word.to_owned(),
                    });
                }
            };
            if twice {
                return Err(PolicyNameError::Twice(text.trim().to_owned()));
            }
        }
        Ok(Self {
            base,
            eviction: eviction.unwrap_or_default(),
            three_inputs,
            opti,
        })
    }
}

impl fmt::Display for NamedPolicy {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let bases = BASES.iter().filter(|(_, base)| *base == self.base);
        let mut name: String = bases.map(|(name, _)| *name).collect();
        let variants = [
            (self.eviction == Eviction::Luf, "+luf"),
            (self.three_inputs, "+3inputs"),
            (self.opti, "+opti"),
        ];
        for (_, variant) in variants.iter().filter(|(has, _)| *has) {
            name.push_str(variant);
        }
        f.pad(&name)
    }
}

impl NamedPolicy {
    /// The policy for a problem. A device has `window` tasks at once; `None` is the
    /// policies' default. `seed` is that of random choices.
    pub fn policy(&self, problem: Problem, window: Option<usize>, seed: u64) -> Box<dyn Policy> {
        let lists = ListOptions::default();
        let lists = ListOptions {
            window: window.unwrap_or(lists.window),
            eviction: self.eviction,
        };
        match self.base {
            Base::Locality => Box::new(Locality::new(problem, window.unwrap_or(WINDOW), seed)),
            Base::Eager => Box::new(Eager::with_window(problem, lists.window)),
            Base::AutoFit => Box::new(AutoFit::new(problem, Some(lists.window))),
            Base::RoundRobin => Box::new(RoundRobin::new(problem, Some(lists.window))),
            Base::Dmdar => Box::new(Dmdar::new(problem, lists)),
            Base::Partition => Box::new(Assigned::by_partition(problem, lists, seed)),
            Base::Mhfp => Box::new(Assigned::by_packages(problem, lists)),
            Base::Darts => {
                let darts = DartsOptions::default();
                let options = DartsOptions {
                    window: window.unwrap_or(darts.window),
                    eviction: self.eviction,
                    three_inputs: self.three_inputs,
                    opti: self.opti,
                    seed,
                };
                Box::new(Darts::new(problem, options))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::fixtures::layers;

    #[test]
    fn names_are_read_and_written() {
        for (text, name) in [
            ("eager", "eager"),
            (" dmdar+lru ", "dmdar"),
            ("partition+luf", "partition+luf"),
            ("mhfp", "mhfp"),
            ("darts", "darts"),
            ("darts+3inputs+luf", "darts+luf+3inputs"),
            ("darts+opti", "darts+opti"),
            ("locality", "locality"),
            ("auto-fit", "auto-fit"),
            ("round-robin", "round-robin"),
        ] {
            let policy: NamedPolicy = text.parse().unwrap();
            assert_eq!(policy.to_string(), name);
            let made = policy.policy(layers(1, 3, [1.0, 1.0]), Some(3), 0);
            assert_eq!((made.name(), made.window()), (name, Some(3)));
        }
    }

    #[test]
    fn what_is_no_policy_is_told_with_what_exists() {
        for (text, part) in [
            ("", "`` is not a policy"),
            ("heft", "`heft` is not a policy"),
            ("eager+luf", "eager has no variant `+luf`"),
            ("locality+luf", "locality has no variant `+luf`"),
            ("auto-fit+luf", "auto-fit has no variant `+luf`"),
            ("autofit", "`autofit` is not a policy"),
            ("dmdar+opti", "dmdar has no variant `+opti`"),
            ("darts+", "darts has no variant `+`"),
            ("darts+luf+luf", "a variant twice"),
            ("darts+luf+lru", "both +luf and +lru"),
        ] {
            let error = text.parse::<NamedPolicy>().unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
            assert!(error.contains("known are eager, locality"), "{error}");
        }
    }
}
