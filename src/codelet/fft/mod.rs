//! Fourier transforms of the rows or the columns of a block of complex singles or doubles:
//! `y_k = sum over j of x_j exp(-2 pi i j k / n)`, not scaled.
//!
//! Source: the 2-D FFT of Unicorn (Beri, Bansal and Kumar, section V), a task along rows and
//! one along columns. The host uses the library `rustfft` (with the crate's feature `dense`); OpenCL devices use Stockham's
//! algorithm (Cochran et al., "What is the fast Fourier transform?", 1967) in local memory.
//!
//! A block is stored by rows, real and imaginary part side by side, perhaps in place.
//!
//! ## Arguments
//!
//! | # | argument | type | meaning |
//! |---|---|---|---|
//! | 0 | `x` | memory | the block |
//! | 1 | `y` | memory | the transforms: the same memory and place, or memory that does not overlap |
//! | 2, 3 | `x_first`, `x_stride` | u64, u32 | complex numbers before x, and from one row of it to the next |
//! | 4, 5 | `y_first`, `y_stride` | u64, u32 | those of y |
//! | 6 | `rows` | u32 | |
//! | 7 | `columns` | u32 | |
//!
//! A unit is a line: a row, or a column.
//!
//! Transforms on OpenCL devices.

#[cfg(feature = "dense")]
mod host;

use crate::{KernelSource, LEAST_GROUP, NdRange, OpenClKernel, Shape};

use super::library::{Library, LibraryCall, Lines, MOST, are_sizes, u32_at, u64_at};
use super::{Codelet, Cost, HostCode, LibraryKernel, Precision, Value};

/// The longest lines of singles that OpenCL devices transform: 32 KiB of local memory.
pub const LONGEST: u32 = 8192;

/// What the codelets' names begin with.
pub const NAME: &str = "fft-";

/// What devices transform.
pub const LIMITS: &str = "GPUs transform lines of a power of two from 2 to 8192 numbers \
     (4096 doubles), and the host all others";

/// Which lines are transformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Along {
    Rows,
    Columns,
}

/// Transforms of a block's lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fft {
    pub rows: u32,
    pub columns: u32,
    pub along: Along,
    pub precision: Precision,
}

impl Fft {
    /// Lines.
    pub fn units(&self) -> u64 {
        match self.along {
            Along::Rows => self.rows.into(),
            Along::Columns => self.columns.into(),
        }
    }

    /// Numbers of a line.
    pub fn length(&self) -> u32 {
        match self.along {
            Along::Rows => self.columns,
            Along::Columns => self.rows,
        }
    }

    /// `5 n log2 n` operations a line, as is usual; the block read and written.
    pub fn cost(&self) -> Cost {
        let length = f64::from(self.length());
        let lines = self.units() as f64;
        Cost {
            flops: 5.0 * length * length.log2().max(1.0) * lines,
            bytes: 4.0 * self.precision.bytes() as f64 * length * lines,
        }
    }

    /// The arguments after the places.
    pub fn values(&self) -> [Value; 2] {
        [Value::U32(self.rows), Value::U32(self.columns)]
    }

    /// The codelet for lines of this length. OpenCL devices transform lengths that are
    /// powers of two from 2 to [`LONGEST`], of doubles to half of that.
    pub fn codelet(&self) -> Codelet {
        let name = match self.along {
            Along::Rows => self.precision.choose("fft-rows-f32", "fft-rows-f64"),
            Along::Columns => self.precision.choose("fft-columns-f32", "fft-columns-f64"),
        };
        let (length, longest) = (self.length(), LONGEST / self.precision.choose(1, 2));
        let fits = length.is_power_of_two() && (2..=longest).contains(&length);
        Codelet {
            name: name.into(),
            host: host(self.along, self.precision),
            opencl: fits.then(|| opencl_kernel(length, self.along, self.precision)),
            library: self.precision.choose(Some(library(self.along)), None),
        }
    }
}

/// The host's transforms along lines.
#[cfg(feature = "dense")]
fn host(along: Along, precision: Precision) -> Option<HostCode> {
    Some(HostCode::Kernel(match along {
        Along::Rows => precision.choose(host::rows::<f32>, host::rows::<f64>),
        Along::Columns => precision.choose(host::columns::<f32>, host::columns::<f64>),
    }))
}

/// The host transforms nothing without the crate's feature `dense`.
#[cfg(not(feature = "dense"))]
fn host(_along: Along, _precision: Precision) -> Option<HostCode> {
    None
}

/// A call of a library for the lines of some units.
fn library(along: Along) -> LibraryKernel {
    LibraryKernel::call(Library::Fft, move |units, args| {
        let [rows, columns] = [u32_at(args, 6)?, u32_at(args, 7)?];
        let lines = u32::try_from(units.end.saturating_sub(units.start)).ok()?;
        let block = |argument: usize, first: usize| {
            let (first, row) = (u64_at(args, first)?, u32_at(args, first + 1)?);
            let (stride, distance) = match along {
                Along::Rows => (1, row),
                Along::Columns => (row, 1),
            };
            (columns..=MOST).contains(&row).then(|| Lines {
                argument,
                first: first + units.start * u64::from(distance),
                stride,
                distance,
            })
        };
        let length = match along {
            Along::Rows => columns,
            Along::Columns => rows,
        };
        let call = LibraryCall::Fft {
            length,
            lines,
            x: block(0, 2)?,
            y: block(1, 4)?,
        };
        let in_place = args[0].memory() == args[1].memory();
        let sizes = vec![length.into(), lines.into(), 1 + u64::from(in_place)];
        are_sizes(&[length, lines]).then_some((call, sizes))
    })
}

/// Most work-items of a line.
const ITEMS: usize = 256;

/// The opencl_kernel for lines of this length, a power of two.
fn opencl_kernel(length: u32, along: Along, precision: Precision) -> OpenClKernel {
    let of_items = |most: usize| in_groups(most.min(length as usize / 2), length, along, precision);
    of_items(ITEMS).or(of_items(LEAST_GROUP))
}

fn in_groups(items: usize, length: u32, along: Along, precision: Precision) -> OpenClKernel {
    OpenClKernel {
        source: KernelSource::new(
            include_str!("../../../kernels/fft.cl"),
            "kernels/fft.cl",
            "fft",
            format!(
                "-DLENGTH={length} -DITEMS={items} -DCOLUMNS={} -DDOUBLES={}",
                u8::from(along == Along::Columns),
                precision.choose(0, 1)
            ),
        ),
        fp64: precision == Precision::F64,
        shape: Shape::with(move |units, _| NdRange::exact_group_per_unit(units, items)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_work_group() {
        let sizes = opencl_kernel(64, Along::Rows, Precision::F32)
            .steps(&(3..5), &[])
            .remove(0)
            .1;
        assert_eq!((sizes.global, sizes.offset), (vec![64], Some(vec![96])));
    }
}
