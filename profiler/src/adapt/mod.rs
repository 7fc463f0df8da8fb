//! A foreign machine's model, corrected by a few runs of this one.
//!
//! A model that multiplies physics carries over to another machine, since its
//! features carry the machine's own figures; what stays is a factor, which may
//! change a little with what the model looks at. In logarithms that is a line:
//! `ln t = ln t_model + c_0 + sum c_j z_j`, where `z_j` are the model's own
//! inputs, standardised and kept within its training.
//!
//! * [`Belief`] is what is known of the coefficients: at first that they are
//!   small, then what runs tell.
//! * [`choose`] says which runs tell most, before any is made.
//! * [`fit`] corrects a model by the runs. One that something disturbed counts
//!   little.

mod belief;
mod choose;
mod fit;
mod terms;

pub use belief::Belief;
pub use choose::choose;
pub use fit::{AdaptError, Adapted, Calibration, Residual, fit};
pub use terms::terms;

/// How far a correction's coefficients are expected to lie from 0, before any
/// run: one standard deviation, in logarithms of seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expectation {
    /// Of the constant: a foreign model can be wrong by a factor of 2 or 3 as
    /// a whole (its machine's compiler, clock or virtualisation).
    pub constant: f64,
    /// Of all terms together, where each is a deviation from its mean: a tenth
    /// or so. Every term has an equal part, so that a model of more inputs does
    /// not fit better by chance.
    pub terms: f64,
}

impl Default for Expectation {
    fn default() -> Self {
        Self {
            constant: 1.0,
            terms: 0.15,
        }
    }
}
