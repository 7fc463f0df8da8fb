//! A foreign machine's model, corrected by a few runs of this one.
//!
//! A model that multiplies physics carries over to another machine, since its
//! features carry the machine's own figures; what stays is that some of these
//! figures, or what a codelet makes of them, are off: kernels reach a tenth
//! less of the memory's bandwidth, say. In logarithms that is a line:
//! `ln t = ln t_model + c_0 + sum c_j z_j`, where `z_j` are the parts of the
//! time that memory, the link and so on take, since a cost that is a tenth
//! higher makes a step longer by a tenth of its part.
//!
//! * [`Terms`] are these parts, by their names among the features.
//! * [`Belief`] is what is known of the coefficients: at first that they are small,
//!   then the evidence of runs; `learn` estimates from the runs how small.
//! * [`choose`] selects the most informative runs, before any is made.
//! * [`fit`] corrects a model by the runs. One that something disturbed counts
//!   little.

mod belief;
mod choose;
mod fit;
mod learn;
mod terms;

pub use belief::Belief;
pub use choose::choose;
pub use fit::{AdaptError, Adapted, Calibration, Residual, fit};
pub use terms::Terms;

/// How far a correction's coefficients are expected to lie from 0 at most,
/// before any run: one standard deviation, in logarithms of seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expectation {
    /// Of the constant: a foreign model can be wrong by a factor of 2 or so as
    /// a whole (its machine's compiler, clock or virtualisation).
    pub constant: f64,
    /// Of a term: what one figure is off beyond the others.
    pub term: f64,
}

impl Default for Expectation {
    fn default() -> Self {
        Self {
            constant: 0.7,
            term: 0.3,
        }
    }
}
