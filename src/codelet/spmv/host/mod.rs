//! The product's native implementation.
//!
//! `product` decodes the arguments and locates units in the rings; `dot` sums one
//! row or piece, written once over the vectors `dot::Gather`, which `avx512` and
//! `avx2` implement; this file iterates over units and chooses the processor's
//! level.
//!
//! A product is bound by memory, and its streams of entries are prefetched a page
//! ahead. Short rows keep it from that bound. Rows of equal length are summed one by
//! one, without a branch where all have the same few entries; rows of unequal length
//! are summed after all of a unit's products are computed. For consecutive columns,
//! as in a band, the vector's numbers are loaded and not gathered. Results that no
//! cache keeps are written past the caches.
//!
//! A launch's arguments, decoded, and the addresses of a unit's data.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod dot;

use std::ops::Range;

use dot::{Gather, Number, OneByOne};

use crate::host::{Arguments, Level, Stores};
use crate::{HostKernel, HostValue};

use super::{MARK, Precision, UNIT_WEIGHT, UnitSums};

/// The native kernel of a product.
pub fn kernel(precision: Precision) -> HostKernel {
    precision.choose(run::<f32>, run::<f64>)
}

/// # Safety
/// That of [`HostKernel`].
unsafe fn run<T: Number>(args: &[HostValue], _first: u64, units: Range<u64>) {
    let product = Product::<T>::decode(args);
    // SAFETY: the caller's contract, and the level is this processor's.
    unsafe { run_at(Level::best(), &product, units) }
}

/// Computes `units` with the instructions of `level` and these stores, for tests.
///
/// # Safety
/// The processor has the level; otherwise that of [`HostKernel`].
#[doc(hidden)]
pub unsafe fn compute(
    level: Level,
    stores: Stores,
    precision: Precision,
    args: &[HostValue],
    units: Range<u64>,
) {
    // SAFETY: the caller's.
    unsafe fn at<T: Number>(level: Level, stores: Stores, args: &[HostValue], units: Range<u64>) {
        let mut product = Product::<T>::decode(args);
        product.stores = stores;
        // SAFETY: the caller's contract.
        unsafe { run_at(level, &product, units) }
    }
    match precision {
        // SAFETY: the caller's contract.
        Precision::F64 => unsafe { at::<f64>(level, stores, args, units) },
        // SAFETY: the caller's contract.
        Precision::F32 => unsafe { at::<f32>(level, stores, args, units) },
    }
}

/// Computes `units` with the instructions of `level`.
///
/// # Safety
/// The processor has the level; otherwise that of [`HostKernel`].
unsafe fn run_at<T: Number>(level: Level, product: &Product<T>, units: Range<u64>) {
    // SAFETY: the caller's contract.
    unsafe {
        match level {
            Level::Scalar => walk::<OneByOne<T>>(product, units),
            // It has no gathers.
            #[cfg(target_arch = "x86_64")]
            Level::Sse2 => walk::<OneByOne<T>>(product, units),
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => avx2::walk::<T>(product, units),
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => avx512::walk::<T>(product, units),
        }
    }
    #[cfg(target_arch = "x86_64")]
    if product.stores == Stores::Stream {
        crate::host::fence();
    }
}

/// Computes consecutive units.
///
/// # Safety
/// That of [`HostKernel`], and the processor has `G`.
#[inline(always)]
unsafe fn walk<G: Gather>(product: &Product<G::Number>, units: Range<u64>) {
    let mut products = [G::Number::ZERO; UNIT_WEIGHT as usize];
    let numbers = product.sums_kind.numbers() as usize;
    for unit in units {
        // SAFETY: the caller's contract: the unit is one of the launch's, so
        // its entries and rows are where the tables say.
        unsafe {
            let part = product.unit(unit);
            if unit < product.pieces {
                let sum = dot::dot::<G>(part.columns, part.values, part.entries, product.x);
                *product.sums.add(numbers * unit as usize) = product.scale * sum;
                continue;
            }
            let sums = match part.equal_length(FEW) {
                Some(length) => equal(product, &part, length),
                None if G::LANES > 1 && part.is_irregular() => {
                    staged::<G>(product, &part, &mut products)
                }
                None => rows(product, &part, |begin, end| {
                    let (columns, values) = (part.columns.add(begin), part.values.add(begin));
                    dot::dot::<G>(columns, values, end - begin, product.x)
                }),
            };
            if product.sums_kind != UnitSums::None {
                let to = product.sums.add(numbers * unit as usize);
                sums[..numbers]
                    .iter()
                    .enumerate()
                    .for_each(|(i, sum)| *to.add(i) = *sum);
            }
        }
    }
}

/// Entries of the longest rows that are summed without a branch: for longer ones the
/// branch is cheap.
const FEW: usize = 8;

/// Sums rows that all have `length` entries, at most [`FEW`].
///
/// # Safety
/// As for [`walk`].
#[inline(always)]
unsafe fn equal<T: Number>(product: &Product<T>, part: &Unit<T>, length: usize) -> [T; 2] {
    // SAFETY: the caller's contract.
    unsafe {
        match length {
            1 => equal_rows::<T, 1>(product, part),
            2 => equal_rows::<T, 2>(product, part),
            3 => equal_rows::<T, 3>(product, part),
            4 => equal_rows::<T, 4>(product, part),
            5 => equal_rows::<T, 5>(product, part),
            6 => equal_rows::<T, 6>(product, part),
            7 => equal_rows::<T, 7>(product, part),
            8 => equal_rows::<T, 8>(product, part),
            // Rows without entries.
            _ => write_rows(product, part, |_| T::ZERO),
        }
    }
}

/// # Safety
/// As for [`walk`], and all rows have `LENGTH` entries.
#[inline(always)]
unsafe fn equal_rows<T: Number, const LENGTH: usize>(
    product: &Product<T>,
    part: &Unit<T>,
) -> [T; 2] {
    // SAFETY: the caller's contract.
    unsafe {
        write_rows(product, part, |row| {
            let (columns, values) = (
                part.columns.add(row * LENGTH),
                part.values.add(row * LENGTH),
            );
            dot::dot_of::<T, LENGTH>(columns, values, product.x)
        })
    }
}

/// Sums rows of unequal length: the processor cannot predict how many entries the
/// next one has, and a wrong prediction costs more than a short row. So all products
/// are computed first, and short sums need no branch.
/// Measured on one Zen 5 core, rows of 1 to 9: 1.0 ns an entry against 1.9.
///
/// # Safety
/// As for [`walk`].
#[inline(always)]
unsafe fn staged<G: Gather>(
    product: &Product<G::Number>,
    part: &Unit<G::Number>,
    products: &mut [G::Number; UNIT_WEIGHT as usize],
) -> [G::Number; 2] {
    // SAFETY: the caller's contract.
    unsafe {
        for (i, target) in products.iter_mut().take(part.entries).enumerate() {
            if i % dot::LINE == 0 {
                dot::ask_ahead(part.columns.add(i), part.values.add(i));
            }
            *target = *part.values.add(i) * *product.x.add(*part.columns.add(i) as usize);
        }
        rows(product, part, |begin, end| {
            dot::sum::<G>(products.as_ptr().add(begin), end - begin)
        })
    }
}

/// Writes the rows' sums, and sums what the launch asks for.
///
/// # Safety
/// As for [`walk`].
#[inline(always)]
unsafe fn rows<T: Number>(
    product: &Product<T>,
    part: &Unit<T>,
    sum: impl Fn(usize, usize) -> T,
) -> [T; 2] {
    let mut begin = 0;
    // SAFETY: the caller's contract.
    unsafe {
        write_rows(product, part, |row| {
            let end = usize::from(part.end(row));
            let sum = sum(begin, end);
            begin = end;
            sum
        })
    }
}

/// Writes each row's sum, scaled and shifted, and sums what the launch asks for of what is
/// written.
///
/// # Safety
/// As for [`walk`].
#[inline(always)]
unsafe fn write_rows<T: Number>(
    product: &Product<T>,
    part: &Unit<T>,
    mut sum: impl FnMut(usize) -> T,
) -> [T; 2] {
    let mut sums = [T::ZERO; 2];
    for row in 0..part.rows {
        let number = product.scale * sum(row) + product.shift;
        // SAFETY: the caller's contract; where ranks are summed, the matrix is square.
        unsafe {
            let y = part.y.add(row);
            match product.stores {
                Stores::Plain => *y = number,
                Stores::Stream => number.stream(y),
            }
            if product.sums_kind == UnitSums::Ranks {
                if *part.ends.add(row) & MARK != 0 {
                    sums[0] = sums[0] + number;
                }
                sums[1] = sums[1] + number.distance(*part.old.add(row));
            } else {
                sums[0] = sums[0] + number * number;
            }
        }
    }
    sums
}

/// A launch's arguments.
struct Product<T> {
    x: *const T,
    y: *mut T,
    columns: *const u32,
    values: *const T,
    ends: *const u16,
    unit_entries: *const u64,
    unit_rows: *const u32,
    sums: *mut T,
    /// Entries and rows of the rings.
    entries: u64,
    rows: u32,
    /// Units that are pieces of a row.
    pieces: u64,
    scale: T,
    shift: T,
    sums_kind: UnitSums,
    /// How results are written.
    stores: Stores,
}

/// A unit's data.
struct Unit<T> {
    columns: *const u32,
    values: *const T,
    ends: *const u16,
    y: *mut T,
    /// The numbers of the vector at the places of its rows, where the matrix is square.
    old: *const T,
    entries: usize,
    rows: usize,
}

impl<T> Unit<T> {
    /// Where a row ends.
    ///
    /// # Safety
    /// The unit has the row.
    #[inline(always)]
    unsafe fn end(&self, row: usize) -> u16 {
        // SAFETY: the caller's contract.
        unsafe { *self.ends.add(row) & !MARK }
    }

    /// The length of its rows, if all have the same and it is at most `most`.
    ///
    /// # Safety
    /// The unit is there, and no piece.
    #[inline(always)]
    unsafe fn equal_length(&self, most: usize) -> Option<usize> {
        let length = self.entries / self.rows.max(1);
        if self.entries != length * self.rows || length > most {
            return None;
        }
        let mut end = 0u16;
        let mut unequal = 0u16;
        for row in 0..self.rows {
            // A unit's weight bounds it.
            end = end.wrapping_add(length as u16);
            // SAFETY: the caller's contract.
            unequal |= end ^ unsafe { self.end(row) };
        }
        (unequal == 0).then_some(length)
    }

    /// Whether its rows are short and differ in length, by a few samples.
    ///
    /// # Safety
    /// The unit is there, and no piece.
    #[inline(always)]
    unsafe fn is_irregular(&self) -> bool {
        if self.entries >= LONG * self.rows || self.rows < 2 {
            return false;
        }
        let length = self.entries / self.rows;
        let places = [0, self.rows / 3, self.rows / 2, self.rows - 2];
        self.entries != length * self.rows
            // SAFETY: the caller's contract.
            || places.iter().any(|row| usize::from(unsafe { self.end(*row) }) != length * (row + 1))
    }
}

/// Rows of so many entries on average are not short.
const LONG: usize = 32;

impl<T: Number> Product<T> {
    /// # Panics
    /// When the arguments are not those that the codelet documents, which is a
    /// fault in the caller's code.
    fn decode(args: &[HostValue]) -> Self {
        let args = Arguments {
            codelet: "spmv",
            values: args,
        };
        Self {
            x: args.memory(0),
            y: args.memory(1),
            columns: args.memory(2),
            values: args.memory(3),
            ends: args.memory(4),
            unit_entries: args.memory(5),
            unit_rows: args.memory(6),
            sums: args.memory(7),
            entries: args.u64(8) as u64,
            rows: args.u32(9) as u32,
            pieces: args.u32(10) as u64,
            scale: args.real(12),
            shift: args.real(13),
            sums_kind: match args.u32(14) {
                0 => UnitSums::None,
                1 => UnitSums::Squares,
                _ => UnitSums::Ranks,
            },
            // Other processes use the last-level cache, too, so half of it counts:
            // in a cache of 300 MiB, shared with other virtual machines, products of
            // 200 MB found no data of the step before.
            stores: Stores::for_bytes(args.bytes().saturating_mul(2)),
        }
    }

    /// The addresses of a unit's data.
    ///
    /// # Safety
    /// The tables have the unit, and the rings hold it.
    #[inline(always)]
    unsafe fn unit(&self, unit: u64) -> Unit<T> {
        let unit = unit as usize;
        // SAFETY: the caller's contract; a ring has room for a unit behind its
        // end.
        unsafe {
            let (entry, entry_end) = (
                *self.unit_entries.add(unit),
                *self.unit_entries.add(unit + 1),
            );
            let (row, row_end) = (*self.unit_rows.add(unit), *self.unit_rows.add(unit + 1));
            let at = (entry % self.entries) as usize;
            Unit {
                columns: self.columns.add(at),
                values: self.values.add(at),
                ends: self.ends.add((row % self.rows) as usize),
                y: self.y.add(row as usize),
                old: self.x.wrapping_add(row as usize),
                entries: (entry_end - entry) as usize,
                rows: (row_end - row) as usize,
            }
        }
    }
}

#[cfg(test)]
mod tests;
