//! The registry of policies: every policy by name, as users write it, with what it needs. A
//! name is a base and its variants, `darts+luf+3inputs`. Whatever schedules a graph or tasks
//! offers these.

use std::fmt::{self, Write};
use std::str::FromStr;

use thiserror::Error;

use super::{
    Adaptive, Assigned, AutoFit, Clustering, Darts, DartsOptions, Dmdar, Eager, Eviction, Heft,
    ListOptions, Locality, MapError, Policy, Problem, RoundRobin, WINDOW,
};

/// A policy by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedPolicy {
    base: Base,
    eviction: Eviction,
    three_inputs: bool,
    opti: bool,
}

/// How a policy is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PolicyOptions {
    /// Components that a device has at once, under a policy that
    /// [has a window](NamedPolicy::has_window); `None`: the policy's default.
    pub window: Option<usize>,
    /// Components of each level on CPUs, under a policy that
    /// [takes a map](NamedPolicy::takes_map).
    pub on_cpu: usize,
    /// Of random choices.
    pub seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Base {
    Adaptive,
    Clustering,
    AutoFit,
    RoundRobin,
    Eager,
    Heft,
    Locality,
    Dmdar,
    Partition,
    Mhfp,
    Darts,
    Recorded,
}

/// Every base with its name, and what it does, for users.
const BASES: [(&str, Base, &str); 11] = [
    (
        "adaptive",
        Base::Adaptive,
        "components, placed by the times of earlier layers and runs",
    ),
    (
        "clustering",
        Base::Clustering,
        "components on given devices; all on GPUs without a map",
    ),
    (
        "auto-fit",
        Base::AutoFit,
        "components, on the devices of the least predicted time",
    ),
    (
        "round-robin",
        Base::RoundRobin,
        "components, on devices in turns",
    ),
    ("eager", Base::Eager, "kernels, each on any idle device"),
    (
        "heft",
        Base::Heft,
        "kernels, each on the device that finishes it first",
    ),
    (
        "locality",
        Base::Locality,
        "kernels, by the expected seconds of loads and work",
    ),
    (
        "dmdar",
        Base::Dmdar,
        "kernels, each on the device that completes it first, those with the fewest loads first",
    ),
    (
        "partition",
        Base::Partition,
        "kernels, divided among devices before the run",
    ),
    (
        "mhfp",
        Base::Mhfp,
        "kernels, in packages made before the run",
    ),
    (
        "darts",
        Base::Darts,
        "kernels, after the load that frees the most of them",
    ),
];

/// The policy that only recordings have.
const RECORDING: (&str, Base, &str) = ("recorded", Base::Recorded, "kernels, as they ran");

impl Base {
    /// Whether it can evict by LUF or LRU.
    fn has_eviction(self) -> bool {
        matches!(
            self,
            Self::Dmdar | Self::Partition | Self::Mhfp | Self::Darts
        )
    }
}

const VARIANTS: &str = "the last four take +luf or +lru, and darts takes +3inputs and +opti, as \
                        in darts+luf+3inputs";

/// What exists, for messages.
fn known() -> String {
    let names = BASES.map(|(name, ..)| name);
    let (last, others) = names.split_last().unwrap_or((&"", &[]));
    format!("known are {} and {last}; {VARIANTS}", others.join(", "))
}

/// Why a text is not a policy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PolicyNameError {
    #[error("`{0}` is not a policy; {known}", known = known())]
    Base(String),

    #[error("policy {base} has no variant `+{variant}`; {known}", known = known())]
    Variant { base: &'static str, variant: String },

    #[error("policy `{0}` has a variant twice, or both +luf and +lru; {known}", known = known())]
    Twice(String),
}

impl FromStr for NamedPolicy {
    type Err = PolicyNameError;

    fn from_str(text: &str) -> Result<Self, PolicyNameError> {
        let mut words = text.trim().split('+');
        let base = words.next().unwrap_or_default();
        let mut bases = BASES.into_iter().chain([RECORDING]);
        let Some((name, base, _)) = bases.find(|(name, ..)| *name == base) else {
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
        let mut name = self.base_name().to_owned();
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
    pub const ADAPTIVE: Self = Self::plain(Base::Adaptive);
    pub const CLUSTERING: Self = Self::plain(Base::Clustering);
    pub const EAGER: Self = Self::plain(Base::Eager);
    pub const HEFT: Self = Self::plain(Base::Heft);
    pub const LOCALITY: Self = Self::plain(Base::Locality);
    pub const RECORDED: Self = Self::plain(Base::Recorded);

    const fn plain(base: Base) -> Self {
        Self {
            base,
            eviction: Eviction::Lru,
            three_inputs: false,
            opti: false,
        }
    }

    /// Its name without variants.
    pub(super) fn base_name(&self) -> &'static str {
        let mut bases = BASES.iter().chain([&RECORDING]);
        let found = bases.find(|(_, base, _)| *base == self.base);
        found.map_or("", |(name, ..)| name)
    }

    /// All policies without variants: their names, and what they do.
    pub fn all() -> Vec<(&'static str, &'static str)> {
        BASES.map(|(name, _, what)| (name, what)).to_vec()
    }

    /// What the policies do, for the help of commands that offer them.
    pub fn help() -> String {
        let mut help = String::from("The scheduling policy\n\n");
        for (name, what) in Self::all() {
            // Writing to a string does not fail.
            let _ = writeln!(help, "{name}: {what}");
        }
        help + "\nThe last four take +luf: the datum that is least used in the future leaves a \
                full memory, not the least recently used. darts also takes +3inputs and +opti."
    }

    /// Whether it places kernels one by one, even where a graph has components of several.
    pub fn places_kernels(&self) -> bool {
        !matches!(
            self.base,
            Base::Adaptive | Base::Clustering | Base::AutoFit | Base::RoundRobin
        )
    }

    /// Whether it decides by the seconds of kernels, which are measured before.
    pub fn needs_times(&self) -> bool {
        !matches!(
            self.base,
            Base::Adaptive | Base::Clustering | Base::RoundRobin | Base::Eager
        )
    }

    /// Whether it takes a map, given or searched.
    pub fn takes_map(&self) -> bool {
        self.base == Base::Clustering
    }

    /// Whether a device has so many components at once as it is told.
    pub fn has_window(&self) -> bool {
        !matches!(self.base, Base::Adaptive | Base::Clustering | Base::Heft)
    }

    /// The policy for a problem.
    ///
    /// # Errors
    /// When it takes a map, and a component can run nowhere; and for the schedule of a recording,
    /// of which [`Recorded`](super::Recorded) is made.
    pub fn policy(
        &self,
        problem: Problem,
        options: &PolicyOptions,
    ) -> Result<Box<dyn Policy>, MapError> {
        let PolicyOptions { window, seed, .. } = *options;
        let lists = ListOptions {
            window: window.unwrap_or(WINDOW),
            eviction: self.eviction,
        };
        Ok(match self.base {
            Base::Adaptive => Box::new(Adaptive::new(problem)),
            Base::Clustering => {
                let map = Clustering::map(&problem, options.on_cpu)?;
                Box::new(Clustering::new(problem, map)?)
            }
            Base::AutoFit => Box::new(AutoFit::new(problem, window)),
            Base::RoundRobin => Box::new(RoundRobin::new(problem, window)),
            Base::Eager => Box::new(Eager::with_window(problem, window.unwrap_or(1))),
            Base::Heft => Box::new(Heft::new(problem)),
            Base::Recorded => return Err(MapError::Unrecorded),
            Base::Locality => Box::new(Locality::new(problem, lists.window, seed)),
            Base::Dmdar => Box::new(Dmdar::new(problem, lists)),
            Base::Partition => Box::new(Assigned::by_partition(problem, lists, seed)),
            Base::Mhfp => Box::new(Assigned::by_packages(problem, lists)),
            Base::Darts => {
                let options = DartsOptions {
                    window: lists.window,
                    eviction: self.eviction,
                    three_inputs: self.three_inputs,
                    opti: self.opti,
                    seed,
                };
                Box::new(Darts::new(problem, options))
            }
        })
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
            ("adaptive", "adaptive"),
            ("clustering", "clustering"),
            ("heft", "heft"),
        ] {
            let policy: NamedPolicy = text.parse().unwrap();
            assert_eq!(policy.to_string(), name);
            let options = PolicyOptions {
                window: Some(3),
                ..PolicyOptions::default()
            };
            let made = policy.policy(layers(1, 3, [1.0, 1.0]), &options).unwrap();
            let window = policy.has_window().then_some(3);
            assert_eq!((made.name(), made.window()), (name, window));
        }
    }

    #[test]
    fn what_is_no_policy_is_reported_with_what_exists() {
        for (text, part) in [
            ("", "`` is not a policy"),
            ("fifo", "`fifo` is not a policy"),
            ("eager+luf", "eager has no variant `+luf`"),
            ("heft+luf", "heft has no variant `+luf`"),
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
            assert!(error.contains("known are adaptive, clustering"), "{error}");
        }
    }

    #[test]
    fn messages_and_help_name_every_policy() {
        let error = "fifo".parse::<NamedPolicy>().unwrap_err().to_string();
        for (name, ..) in BASES {
            assert!(error.contains(name), "{error}");
            assert!(NamedPolicy::help().contains(&format!("{name}: ")));
        }
    }

    #[test]
    fn a_map_has_components_on_cpus() {
        let policy: NamedPolicy = "clustering".parse().unwrap();
        let on_cpu = |on_cpu| {
            let options = PolicyOptions {
                on_cpu,
                ..PolicyOptions::default()
            };
            let made = policy.policy(layers(1, 3, [1.0, 1.0]), &options).unwrap();
            (0..3)
                .filter(|component| made.may_run(*component, 0))
                .count()
        };
        assert_eq!([on_cpu(0), on_cpu(2)], [0, 2]);
        let mut nowhere = layers(1, 1, [1.0, 1.0]);
        nowhere.tasks[0].seconds = vec![None, None];
        let made = policy.policy(nowhere, &PolicyOptions::default());
        assert!(matches!(
            made.err(),
            Some(MapError::Nowhere { component: 0 })
        ));
    }
}
