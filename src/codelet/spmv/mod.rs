//! Sparse matrix times vector, `y = scale * A x + shift`, double or single.
//!
//! The matrix is stored as *units* of about equal work, which devices share: a unit
//! is a run of whole rows, or a piece of one row that is too long for a unit. So a
//! launch, a tile of a worker and a work-group are balanced by entries however
//! unequal the rows are. Pieces come first: unit `u` is one when `u < pieces`.
//!
//! A row's sum is written to `y`. The sum of a piece is written to `sums`, and the
//! host adds a row's pieces in their order when all have been computed, since they
//! may be on different devices. For the other units, `sums` gets what the next step needs
//! of the unit's results ([`UnitSums`]).
//!
//! Source: compressed sparse rows, and the division of irregular rows from
//! regular ones, from the PDAWL paper, sections 3.1 and 4.1; entries staged by
//! a work-group before rows are summed from Greathouse and Daga, "Efficient
//! sparse matrix-vector multiplication on GPUs using the CSR storage format",
//! SC 2014.
//!
//! ## Arguments
//!
//! Rows and entries are counted in the order of the units. A device may hold
//! some units only, in rings: entry `e` of a unit whose first entry is `b` is
//! at `b mod entries + (e - b)`, and row `r` of a unit whose first row is `a`
//! is in `ends` at `a mod rows + (r - a)`. A unit never wraps, so that the
//! rings have room for one more unit behind their ends. Vectors and tables of
//! units are whole everywhere.
//!
//! | # | argument | type | meaning |
//! |---|---|---|---|
//! | 0 | `x` | memory | the vector, a number a column |
//! | 1 | `y` | memory | the result, a number a row; does not overlap `x` |
//! | 2 | `columns` | memory | u32: an entry's column |
//! | 3 | `values` | memory | an entry's value |
//! | 4 | `ends` | memory | u16: where a row ends, from its unit's first entry; [`MARK`] is set on marked rows |
//! | 5 | `unit_entries` | memory | u64: a unit's first entry; one more at the end |
//! | 6 | `unit_rows` | memory | u32: a unit's first row; one more at the end |
//! | 7 | `sums` | memory | one or two numbers a unit, see above |
//! | 8 | `entries` | u64 | entries of the ring, at least 1 |
//! | 9 | `rows` | u32 | rows of the ring, at least 1 |
//! | 10 | `pieces` | u32 | units that are pieces of a row |
//! | 11 | `first` | u32 | the launch's first unit |
//! | 12 | `scale` | f64 or f32 | a factor of every sum |
//! | 13 | `shift` | f64 or f32 | what is added to every row's sum |
//! | 14 | `sums` | u32 | [`UnitSums`] |
//!
//! The product's OpenCL implementation: source, options and sizes.
//!
//! A work-group computes a unit. It reads the unit's entries side by side, puts
//! the products into local memory and sums rows there: a row a work-item where
//! a unit has many, else a row several work-items, the more the longer the rows
//! are. A piece of a long row is summed by the whole group.

pub mod host;

use crate::{KernelSource, LEAST_GROUP, NdRange, OpenClKernel, Shape};

use super::{Codelet, HostCode, Precision};

/// The heaviest unit: its entries and its rows together. They fit a
/// work-group's local memory, and a row's end 16 bits.
pub const UNIT_WEIGHT: u64 = 2048;

/// A bit of a row's end: the row is marked. [`UNIT_WEIGHT`] leaves it free.
pub const MARK: u16 = 1 << 15;

/// What a unit sums of its results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitSums {
    /// Nothing.
    None = 0,
    /// The squares.
    Squares = 1,
    /// The results of marked rows, and the absolute changes `|y - x|` of all rows of a square
    /// matrix.
    Ranks = 2,
}

impl UnitSums {
    /// Numbers of `sums` that each unit has.
    pub fn numbers(self) -> u64 {
        match self {
            Self::None | Self::Squares => 1,
            Self::Ranks => 2,
        }
    }
}

/// The codelet of a product.
pub fn codelet(precision: Precision) -> Codelet {
    Codelet {
        name: name(precision).into(),
        host: Some(HostCode::Kernel(host::kernel(precision))),
        opencl: Some(kernel(precision)),
        library: None,
    }
}

/// The name of a product's codelet.
pub fn name(precision: Precision) -> &'static str {
    precision.choose("spmv-f32", "spmv-f64")
}

/// Work-items of a group: every GPU has as many, and each has eight loads in flight.
pub const LANES: usize = 256;

/// The OpenCL kernel of a product.
pub fn kernel(precision: Precision) -> OpenClKernel {
    in_groups(LANES, precision).or(in_groups(LEAST_GROUP, precision))
}

fn in_groups(lanes: usize, precision: Precision) -> OpenClKernel {
    OpenClKernel {
        source: KernelSource::new(
            include_str!("../../../kernels/spmv.cl"),
            "kernels/spmv.cl",
            "spmv",
            format!(
                "-DREAL={} -DLANES={lanes} -DWEIGHT={UNIT_WEIGHT} -DEND={} -DSQUARES={} -DRANKS={}",
                precision.c_type(),
                MARK - 1,
                UnitSums::Squares as u32,
                UnitSums::Ranks as u32
            ),
        ),
        fp64: precision == Precision::F64,
        shape: Shape::with(move |units, _| {
            NdRange::group_per_unit(units, lanes).exactly(vec![lanes])
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_a_work_group() {
        let ndrange = kernel(Precision::F64).steps(&(10..13), &[]).remove(0).1;
        assert_eq!(ndrange, NdRange::new(vec![3 * LANES]).exactly(vec![LANES]));
        assert_eq!(
            kernel(Precision::F32).source.options(),
            format!(
                "-DREAL=float -DLANES=256 -DWEIGHT={} -DEND=32767 -DSQUARES=1 -DRANKS=2",
                crate::spmv::UNIT_WEIGHT
            )
        );
    }
}
