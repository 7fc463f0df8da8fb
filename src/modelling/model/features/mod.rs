//! The features that plan: everything that is known before a run, as numbers
//! with names.
//!
//! `table` has the name of each feature and where its value comes from. Groups:
//!
//! | group | what |
//! |---|---|
//! | `machine` | what the machine file says, see [`Descriptors`] |
//! | `known` | the work, and the configuration of the device's part |
//! | `derived` | what follows from these by counting |
//! | `prior` | the terms of [`super::prior`]; never kept in a dataset |
//!
//! Counters, traces and telemetry are not among them: they are known only after
//! a run, so they can explain a time but not plan it.

mod figure;
mod table;

use super::case::{Case, DevicePart, StepWork};
use super::derived::Derived;
use super::descriptors::{Descriptors, DeviceFigures, HostFigures, LinkFigures};
use super::matrix::MatrixFigures;
use super::prior::{self, GridTerms, ProductTerms, Terms};
pub(super) use figure::Figure;
pub(super) use table::FEATURES;

/// Bytes of a cache line.
const LINE_BYTES: f64 = 64.0;

const COUNT: usize = table::COUNT;

/// A number of a case, by its name.
pub(super) struct Feature {
    pub name: &'static str,
    source: Source,
}

/// A field of what is known, if the case has it.
type Field = fn(&mut Known) -> Option<&mut dyn Figure>;

/// Where a feature's value comes from.
enum Source {
    /// A field. Where `unless_zero`, 0 is not written.
    Kept {
        field: Field,
        unless_zero: bool,
    },
    Counted(fn(&Facts) -> Option<f64>),
    /// Seconds of a term of the prior, or of what it leaves out, over its total.
    Bound(fn(&Facts) -> Option<f64>),
    /// Seconds of a term of a grid's step on cores, over the prior's total.
    Summand(fn(&Facts) -> Option<f64>),
}

/// What is known before a run; everything else follows from it.
#[derive(Clone, Copy)]
pub(super) struct Known {
    pub case: Case,
    pub machine: Descriptors,
}

impl Known {
    /// Zeros, to be filled in. A row tells by some columns which parts there are.
    pub fn blank(has: impl Fn(&str) -> bool) -> Self {
        let link = has("machine.h2d_bytes_per_second").then(LinkFigures::default);
        let device = DeviceFigures {
            link,
            ..DeviceFigures::default()
        };
        Self {
            case: Case {
                work: StepWork {
                    matrix: has("known.matrix_rows_count").then(MatrixFigures::default),
                    ..StepWork::default()
                },
                part: match has("known.pool_units_count") {
                    true => DevicePart::whole_on_host(0, 0),
                    false => DevicePart::Discrete {
                        held: 0,
                        slots: 0,
                        streamed: 0,
                        chunk: 0,
                        queues: 0,
                        solo: false,
                    },
                },
            },
            machine: Descriptors {
                host: HostFigures::default(),
                device: has("machine.device_units_count").then_some(device),
            },
        }
    }

    fn host(&mut self) -> &mut HostFigures {
        &mut self.machine.host
    }

    fn device(&mut self) -> Option<&mut DeviceFigures> {
        self.machine.device.as_mut()
    }

    fn link(&mut self) -> Option<&mut LinkFigures> {
        self.device()?.link.as_mut()
    }

    fn matrix(&mut self) -> Option<&mut MatrixFigures> {
        self.case.work.matrix.as_mut()
    }
}

impl Feature {
    /// The field that a dataset keeps this feature of, and whether a row without it
    /// is complete. `None` for a feature that follows from others, or that the case
    /// does not have.
    pub fn field<'a>(&self, known: &'a mut Known) -> Option<(&'a mut dyn Figure, bool)> {
        match self.source {
            Source::Kept { field, unless_zero } => {
                let figure = field(known)?;
                let is_optional = unless_zero || figure.is_optional();
                Some((figure, is_optional))
            }
            _ => None,
        }
    }
}

/// What the features of a case are computed from.
pub struct Facts {
    known: Known,
    derived: Derived,
    prior: Terms,
    product: Option<ProductTerms>,
    grid: Option<GridTerms>,
}

impl Facts {
    /// The facts of a case on a machine. Allocates nothing.
    pub fn of(case: &Case, descriptors: &Descriptors) -> Self {
        let derived = Derived::of(case, descriptors);
        Self {
            known: Known {
                case: *case,
                machine: *descriptors,
            },
            prior: prior::terms(case, descriptors),
            product: ProductTerms::of(case, descriptors),
            grid: GridTerms::of(case, descriptors, &derived),
            derived,
        }
    }

    /// The value of the feature at `index` of [`NAMES`]; NaN if the case does not
    /// have it.
    pub fn value(&mut self, index: usize) -> f64 {
        let value = match FEATURES[index].source {
            Source::Kept { field, unless_zero } => field(&mut self.known)
                .and_then(|figure| figure.get())
                .filter(|value| !unless_zero || *value != 0.0),
            Source::Counted(of) => of(self),
            Source::Bound(of) | Source::Summand(of) => {
                of(self).and_then(|seconds| self.over_prior(seconds))
            }
        };
        value.unwrap_or(f64::NAN)
    }

    /// The prior's seconds of a step.
    pub fn prior_seconds(&self) -> f64 {
        self.prior.total
    }

    /// Bytes of the vector's lines that the part's entries touch: `lines` for each
    /// entry.
    fn gathered_bytes(&self, lines: impl Fn(&MatrixFigures) -> f64) -> Option<f64> {
        let Case { work, part } = &self.known.case;
        let entries = whole(part.units() * work.unit_points);
        Some(lines(work.matrix.as_ref()?) * entries * LINE_BYTES)
    }

    fn over_traffic(&self, amount: f64) -> Option<f64> {
        let traffic = self.derived.traffic_bytes;
        (traffic > 0.0).then(|| amount / traffic)
    }

    fn over_prior(&self, seconds: f64) -> Option<f64> {
        (self.prior.total > 0.0).then(|| seconds / self.prior.total)
    }
}

/// The features' names, in the order of [`values`].
pub const NAMES: [&str; COUNT] = {
    let mut names = [""; COUNT];
    let mut i = 0;
    while i < COUNT {
        names[i] = FEATURES[i].name;
        i += 1;
    }
    names
};

/// The features of a case on a machine, in the order of [`NAMES`]; NaN for one
/// that it does not have. Allocates nothing.
pub fn values(case: &Case, descriptors: &Descriptors) -> [f64; COUNT] {
    let mut facts = Facts::of(case, descriptors);
    std::array::from_fn(|index| facts.value(index))
}

/// The place of a feature in [`NAMES`].
pub fn index(name: &str) -> Option<usize> {
    NAMES.iter().position(|known| *known == name)
}

/// Whether a feature may be in a dataset: the prior's terms follow from the
/// others, and change with the physics.
pub fn is_kept(name: &str) -> bool {
    !name.starts_with("prior.")
}

/// Whether the feature at `index` is a part of the prior, or of what the prior
/// leaves out: a model may say how much of each part a step takes.
pub fn is_bound(index: usize) -> bool {
    matches!(FEATURES[index].source, Source::Bound(_))
}

/// The same of a grid's step on cores, where the bounds are no summands: what
/// hides behind another bound adds nothing. Summands correlate with the inputs of
/// all other models, so no other family of models sees them.
pub fn is_summand(index: usize) -> bool {
    matches!(FEATURES[index].source, Source::Summand(_))
}

/// Exact below 2^53.
fn whole(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_are_unique_and_found() {
        let unique: HashSet<&str> = NAMES.into_iter().collect();
        assert_eq!(unique.len(), COUNT);
        assert!(NAMES.iter().enumerate().all(|(i, n)| index(n) == Some(i)));
        assert_eq!(index("known.nothing_count"), None);
        assert_eq!((0..COUNT).filter(|i| is_bound(*i)).count(), 10);
        assert_eq!((0..COUNT).filter(|i| is_summand(*i)).count(), 9);
    }
}
