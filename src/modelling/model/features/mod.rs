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

mod table;

use super::case::{Case, Derived, DevicePart, StepWork};
use super::descriptors::{Descriptors, DeviceFigures, HostFigures, LinkFigures};
use super::matrix::MatrixFigures;
use super::prior::{self, GridTerms, ProductTerms, Terms};
pub(super) use table::FEATURES;

/// Bytes of a cache line.
const LINE_BYTES: f64 = 64.0;

const COUNT: usize = table::COUNT;

/// A number of a case, by its name.
pub(super) struct Feature {
    pub name: &'static str,
    source: Source,
    /// Whether 0 is not written.
    unless_zero: bool,
}

/// A field of a part of what is known.
type Field<T> = fn(&mut T) -> &mut dyn Figure;

/// Where a feature's value comes from.
enum Source {
    Host(Field<HostFigures>),
    Device(Field<DeviceFigures>),
    Link(Field<LinkFigures>),
    Work(Field<StepWork>),
    Matrix(Field<MatrixFigures>),
    Part(fn(&mut DevicePart) -> Option<&mut dyn Figure>),
    /// A number that follows from these.
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
}

impl Feature {
    /// The field that a dataset keeps this feature of, and whether a row without it
    /// is complete. `None` for a feature that follows from others, or that the case
    /// does not have.
    pub fn field<'a>(&self, known: &'a mut Known) -> Option<(&'a mut dyn Figure, bool)> {
        let Known { case, machine } = known;
        let figure = match self.source {
            Source::Host(field) => field(&mut machine.host),
            Source::Device(field) => field(machine.device.as_mut()?),
            Source::Link(field) => field(machine.device.as_mut()?.link.as_mut()?),
            Source::Work(field) => field(&mut case.work),
            Source::Matrix(field) => field(case.work.matrix.as_mut()?),
            Source::Part(field) => field(&mut case.part)?,
            Source::Counted(_) | Source::Bound(_) | Source::Summand(_) => return None,
        };
        let is_optional = self.unless_zero || figure.is_optional();
        Some((figure, is_optional))
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
        let feature = &FEATURES[index];
        let value = match feature.source {
            Source::Counted(of) => of(self),
            Source::Bound(of) | Source::Summand(of) => {
                of(self).and_then(|seconds| self.over_prior(seconds))
            }
            _ => (feature.field(&mut self.known))
                .and_then(|(figure, _)| figure.get())
                .filter(|value| !feature.unless_zero || *value != 0.0),
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

/// A field that a dataset keeps as a number.
pub trait Figure {
    /// The number; `None` where the machine file has none.
    fn get(&self) -> Option<f64>;

    /// Takes the number from a dataset.
    ///
    /// # Errors
    /// What the number must be, if `value` is not.
    fn set(&mut self, value: f64) -> Result<(), &'static str>;

    /// Whether a row without the number is complete.
    fn is_optional(&self) -> bool {
        false
    }
}

impl Figure for f64 {
    fn get(&self) -> Option<f64> {
        Some(*self)
    }

    fn set(&mut self, value: f64) -> Result<(), &'static str> {
        *self = value;
        match value.is_finite() && value >= 0.0 {
            true => Ok(()),
            false => Err("a number, 0 or more"),
        }
    }
}

impl Figure for u64 {
    /// Exact below 2^53.
    fn get(&self) -> Option<f64> {
        Some(*self as f64)
    }

    fn set(&mut self, value: f64) -> Result<(), &'static str> {
        0.0.set(value)?;
        *self = value as u64;
        // Every whole number up to 2^53 is exact.
        match value.fract() == 0.0 && value <= (1u64 << 53) as f64 {
            true => Ok(()),
            false => Err("a whole number"),
        }
    }
}

impl Figure for u32 {
    fn get(&self) -> Option<f64> {
        Some(f64::from(*self))
    }

    fn set(&mut self, value: f64) -> Result<(), &'static str> {
        let mut count = 0u64;
        count.set(value)?;
        *self = u32::try_from(count).map_err(|_| "a whole number below 2^32")?;
        Ok(())
    }
}

impl Figure for bool {
    fn get(&self) -> Option<f64> {
        Some(f64::from(u8::from(*self)))
    }

    fn set(&mut self, value: f64) -> Result<(), &'static str> {
        *self = value == 1.0;
        match value == 0.0 || value == 1.0 {
            true => Ok(()),
            false => Err("0 or 1"),
        }
    }
}

impl<T: Figure + Default> Figure for Option<T> {
    fn get(&self) -> Option<f64> {
        self.as_ref()?.get()
    }

    fn set(&mut self, value: f64) -> Result<(), &'static str> {
        self.insert(T::default()).set(value)
    }

    fn is_optional(&self) -> bool {
        true
    }
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
