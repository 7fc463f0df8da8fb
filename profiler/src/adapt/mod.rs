//! A foreign machine's model, corrected by a few runs of this one.
//!
//! A model that multiplies physics carries over to another machine, since its
//! features carry the machine's own figures; what stays is a factor, and
//! factors of some parts of the time: the link is a tenth slower than its
//! figure says, say. In logarithms that is a line:
//! `ln t = ln t_model + c_0 + sum c_j z_j`, where `z_j` are few features such
//! as the part of the time that transfers take.
//!
//! * [`Belief`] is what is known of the coefficients: at first that they are
//!   small, then what runs tell.
//! * [`choose`] says which runs tell most, before any is made.
//! * [`fit`] makes a [`Correction`] of the runs. One that something disturbed
//!   counts little.

mod belief;
mod choose;
mod correction;
mod fit;

pub use belief::Belief;
pub use choose::choose;
pub use correction::{Correction, Term};
pub use fit::{AdaptError, Calibration, Residual, fit};

/// How far a correction's coefficients are expected to lie from 0, before any
/// run: one standard deviation, in logarithms of seconds.
///
/// A foreign model can be wrong by a factor of 2 or 3 as a whole (its machine's
/// compiler, clock or virtualisation), while its parts keep their proportions
/// to about a quarter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expectation {
    /// Of the constant.
    pub constant: f64,
    /// Of each term, for features from about 0 to 1.
    pub term: f64,
}

impl Default for Expectation {
    fn default() -> Self {
        Self {
            constant: 1.0,
            term: 0.25,
        }
    }
}
