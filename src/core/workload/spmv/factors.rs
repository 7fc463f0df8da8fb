//! What connects the steps of an iteration: the sums of a step's results, and the factors of
//! the next step.

use super::{Form, Spmv, reference};
use crate::codelet::spmv::UnitSums;

/// What a step multiplies each row's sum with, and what it adds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Factors {
    pub scale: f64,
    pub shift: f64,
}

impl Factors {
    /// The sums themselves.
    pub const NONE: Self = Self {
        scale: 1.0,
        shift: 0.0,
    };
}

impl Spmv {
    /// What units sum of their results.
    pub fn unit_sums(&self) -> UnitSums {
        match self.options.form {
            Form::Product => UnitSums::None,
            Form::Iteration => UnitSums::Squares,
            Form::Ranks => UnitSums::Ranks,
        }
    }

    /// The factors of a step, from the first sum of the vector that it reads: of the squares,
    /// or of the ranks of vertices without links.
    pub fn factors(&self, sum: f64) -> Factors {
        let (damping, vertices) = (self.options.damping, f64::from(self.matrix.rows()));
        match self.options.form {
            Form::Product => Factors::NONE,
            Form::Iteration => Factors {
                scale: reference::scale_of(sum.sqrt()),
                shift: 0.0,
            },
            Form::Ranks => Factors {
                scale: damping,
                shift: (1.0 - damping + damping * sum) / vertices,
            },
        }
    }
}
