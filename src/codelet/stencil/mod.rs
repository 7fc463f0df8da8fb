//! The stencils: 2-D 5-point and 3-D 7-point, Jacobi, double or single.
//!
//! A unit is a row (2-D) or a plane (3-D) of the grid. The next version of a
//! point is the weighted sum of itself and its neighbours, in this order of
//! operations on every device, so that results agree bit for bit:
//!
//! ```text
//! 2-D   (((north + south) + (west + east)) + centre) * weight
//! 3-D   (((north + south) + (west + east)) + ((below + above) + centre)) * weight
//! ```
//!
//! The grid's outermost points keep their value. Source: the 5-point kernel of
//! the PDAWL paper, section 4.1 (double precision, no ghost cells, a barrier
//! each step).
//!
//! ## Arguments
//!
//! Units lie in rings (see `workload::Ring`): unit `first + i` is read from
//! slot `(from_slot + i) mod from_slots` of `from` and written to slot
//! `(to_slot + i) mod to_slots` of `to`. Both may be one memory, as long as the
//! slots read and written differ.
//!
//! | # | argument | type | meaning |
//! |---|---|---|---|
//! | 0 | `from` | memory | present versions of `first - 1 ..= first + count` |
//! | 1 | `to` | memory | next versions of `first .. first + count` |
//! | 2 | `from_slot` | u32 | slot of unit `first` |
//! | 3 | `from_slots` | u32 | slots of `from` |
//! | 4 | `to_slot` | u32 | slot of unit `first` |
//! | 5 | `to_slots` | u32 | slots of `to` |
//! | 6 | `first` | u32 | first unit of the launch |
//! | 7 | `count` | u32 | units of the launch |
//! | 8 | `units` | u32 | units of the grid |
//! | 9 | `nx` | u32 | points of a row |
//! | 10 | `ny` | u32 | rows of a plane; 1 in 2-D |
//! | 11 | `weight` | f64 or f32 | 1/5 or 1/7 |
//!
//! [`superstep()`] computes several steps at once.

pub mod host;
pub mod opencl;
mod superstep;

pub use superstep::superstep;

pub use crate::codelet::Precision;
use crate::codelet::{Codelet, HostCode};

/// Number of grid dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dimensions {
    /// 5-point.
    Two,
    /// 7-point.
    Three,
}

/// The codelet of a stencil.
pub fn codelet(dimensions: Dimensions, precision: Precision) -> Codelet {
    Codelet {
        name: name(dimensions, precision).into(),
        host: Some(HostCode::Kernel(host::kernel(dimensions, precision))),
        opencl: Some(opencl::kernel(dimensions, precision)),
        library: None,
    }
}

/// The name of a stencil's codelet.
pub fn name(dimensions: Dimensions, precision: Precision) -> &'static str {
    match (dimensions, precision) {
        (Dimensions::Two, Precision::F64) => "stencil5-f64",
        (Dimensions::Two, Precision::F32) => "stencil5-f32",
        (Dimensions::Three, Precision::F64) => "stencil7-f64",
        (Dimensions::Three, Precision::F32) => "stencil7-f32",
    }
}

/// The stencil whose codelet has this name; `None` if none has.
pub fn named(codelet: &str) -> Option<(Dimensions, Precision)> {
    [Dimensions::Two, Dimensions::Three]
        .into_iter()
        .flat_map(|dimensions| [Precision::F64, Precision::F32].map(|p| (dimensions, p)))
        .find(|(dimensions, precision)| name(*dimensions, *precision) == codelet)
}
