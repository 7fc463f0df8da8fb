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
//!   then the evidence of runs, which also say how small.
//! * [`choose`] selects the most informative runs, before any is made.
//! * [`fit`] corrects a model by the runs. One that something disturbed counts
//!   little.

mod belief;
mod choose;
mod fit;

pub use belief::Belief;
pub use choose::choose;
pub use fit::{AdaptError, Adapted, Calibration, Residual, Terms, fit};
