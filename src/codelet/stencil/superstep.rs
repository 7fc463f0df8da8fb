//! The codelet of several steps at once.

use super::{Dimensions, Precision, host};
use crate::codelet::{Codelet, HostCode};

/// The codelet that computes so many steps of a stencil at once. Memory is read and written
/// once for all of them.
///
/// Results agree bit for bit with those of as many launches of the stencil's own codelet, whose
/// arguments these are but for:
///
/// | # | argument | type | meaning |
/// |---|---|---|---|
/// | 0 | `from` | memory | present versions of `first - steps .. first + count + steps`, as far as the grid has these units |
/// | 1 | `to` | memory | versions of `first .. first + count` that are `steps` steps later |
/// | 12 | `steps` | u32 | 1 or more |
///
/// `from` stays as it is. Other units' slots may hold anything.
///
/// How many steps are best: in 2-D about 16 to 32; in 3-D 4 to 8, since a tile's halo grows in
/// two directions.
pub fn superstep(dimensions: Dimensions, precision: Precision) -> Codelet {
    Codelet {
        name: name(dimensions, precision).into(),
        host: Some(HostCode::Shared(host::superstep(dimensions, precision))),
        opencl: None,
        library: None,
    }
}

fn name(dimensions: Dimensions, precision: Precision) -> &'static str {
    match (dimensions, precision) {
        (Dimensions::Two, Precision::F64) => "stencil5-f64-superstep",
        (Dimensions::Two, Precision::F32) => "stencil5-f32-superstep",
        (Dimensions::Three, Precision::F64) => "stencil7-f64-superstep",
        (Dimensions::Three, Precision::F32) => "stencil7-f32-superstep",
    }
}
