//! The stencils: 2-D 5-point and 3-D 7-point, Jacobi, double or single.
//!
//! A unit is a row (2-D) or a plane (3-D) of the grid. The next version of a
//! point follows from itself and its neighbours by a rule, in this order of
//! operations on every device, none of them fused, so that results agree bit for bit:
//!
//! ```text
//! mean      2-D   (((north + south) + (west + east)) + centre) * weight
//! mean      3-D   (((north + south) + (west + east)) + ((below + above) + centre)) * weight
//! weighted  2-D   ((north*cn + south*cs) + (west*cw + east*ce)) + centre*cc
//! weighted  3-D   (((north*cn + south*cs) + (west*cw + east*ce)) + (below*cb + above*ca))
//!                     + centre*cc
//! ```
//!
//! North is the row before in memory, west the point before, and below the plane
//! before. The grid's outermost points keep their value. Source: the 5-point kernel of
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
//! | 11 | `weight` | f64 or f32 | of the mean: 1/5 or 1/7 |
//!
//! The weighted rule has its coefficients in place of `weight`, each f64 or f32:
//!
//! | # | argument | factor of |
//! |---|---|---|
//! | 11 | `cc` | the point itself |
//! | 12, 13 | `cn`, `cs` | the points north and south |
//! | 14, 15 | `cw`, `ce` | the points west and east |
//! | 16, 17 | `cb`, `ca` | in 3-D the points below and above |
//!
//! [`superstep()`] computes several steps at once.
//!
//! ## The largest change
//!
//! [`changes()`] and [`superstep_changes()`] also find the largest absolute change of a point by
//! the step, or by the last of several. They have one more argument, the last:
//!
//! | argument | type | meaning |
//! |---|---|---|
//! | `changes` | memory | at least [`change_cells`] cells |
//!
//! A cell is as long as a number of the stencil, and holds the bits of one without a sign: u64 or
//! u32. As integers such bits are in the order of the numbers, and those of NaN are above all
//! others. A launch raises cells of its choice, so that the largest of them is no less than any
//! |next - present| of a point that it computes, and exactly one such, or what was there before.
//! A change that is NaN is kept as some NaN. Whoever wants the change clears all cells before,
//! and takes the [`largest_change`] afterwards. Launches that follow one another may share cells.
//! [`fold_changes()`] makes few cells of many, where these are far from whoever wants the change.

mod changes;
pub mod host;
pub mod opencl;

use crate::{Codelet, HostCode};

pub use crate::Precision;
pub use changes::{
    FOLDED_CELLS, change_cells, changes, fold_args, fold_changes, fold_cost, largest_change,
    superstep, superstep_changes, superstep_flops, superstep_named,
};

/// Number of grid dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dimensions {
    /// 5-point.
    Two,
    /// 7-point.
    Three,
}

impl Dimensions {
    /// The points that a point follows from, in the order of the weighted rule's arguments.
    pub fn neighbourhood(self) -> &'static [&'static str] {
        const ALL: [&str; 7] = ["centre", "north", "south", "west", "east", "below", "above"];
        match self {
            Self::Two => &ALL[..5],
            Self::Three => &ALL,
        }
    }
}

/// How a point follows from its neighbourhood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// The sum, times one weight.
    Mean,
    /// The sum of products, with a coefficient for each point of the neighbourhood.
    Weighted,
}

/// The codelet of a stencil.
pub fn codelet(dimensions: Dimensions, precision: Precision, rule: Rule) -> Codelet {
    Codelet {
        name: name(dimensions, precision, rule).into(),
        host: Some(HostCode::Kernel(host::kernel(dimensions, precision, rule))),
        opencl: Some(opencl::kernel(dimensions, precision, rule)),
        library: None,
    }
}

/// The name of a stencil's codelet.
pub fn name(dimensions: Dimensions, precision: Precision, rule: Rule) -> &'static str {
    match (dimensions, precision, rule) {
        (Dimensions::Two, Precision::F64, Rule::Mean) => "stencil5-f64",
        (Dimensions::Two, Precision::F32, Rule::Mean) => "stencil5-f32",
        (Dimensions::Three, Precision::F64, Rule::Mean) => "stencil7-f64",
        (Dimensions::Three, Precision::F32, Rule::Mean) => "stencil7-f32",
        (Dimensions::Two, Precision::F64, Rule::Weighted) => "stencil5-f64-weighted",
        (Dimensions::Two, Precision::F32, Rule::Weighted) => "stencil5-f32-weighted",
        (Dimensions::Three, Precision::F64, Rule::Weighted) => "stencil7-f64-weighted",
        (Dimensions::Three, Precision::F32, Rule::Weighted) => "stencil7-f32-weighted",
    }
}

/// The stencil of the mean whose codelet has this name; `None` if none has. Only these are
/// profiled.
pub fn named(codelet: &str) -> Option<(Dimensions, Precision)> {
    [Dimensions::Two, Dimensions::Three]
        .into_iter()
        .flat_map(|dimensions| [Precision::F64, Precision::F32].map(|p| (dimensions, p)))
        .find(|(dimensions, precision)| name(*dimensions, *precision, Rule::Mean) == codelet)
}
