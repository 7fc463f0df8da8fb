//! The arguments, decoded, and where a unit's data lie.

use super::dot::Number;
use crate::codelet::HostValue;
use crate::codelet::host::Stores;

/// A launch's arguments.
pub(super) struct Product<T> {
    pub(super) x: *const T,
    y: *mut T,
    columns: *const u32,
    values: *const T,
    ends: *const u16,
    unit_entries: *const u64,
    unit_rows: *const u32,
    pub(super) sums: *mut T,
    /// Entries and rows of the rings.
    entries: u64,
    rows: u32,
    /// Units that are pieces of a row.
    pub(super) pieces: u64,
    pub(super) scale: T,
    pub(super) squares: bool,
    /// How results are written.
    pub(super) stores: Stores,
}

/// A unit's data.
pub(super) struct Unit<T> {
    pub(super) columns: *const u32,
    pub(super) values: *const T,
    pub(super) ends: *const u16,
    pub(super) y: *mut T,
    pub(super) entries: usize,
    pub(super) rows: usize,
}

impl<T> Unit<T> {
    /// The length of its rows, if all have the same and it is at most `most`.
    ///
    /// # Safety
    /// The unit is there, and no piece.
    #[inline(always)]
    pub(super) unsafe fn equal_length(&self, most: usize) -> Option<usize> {
        let length = self.entries / self.rows.max(1);
        if self.entries != length * self.rows || length > most {
            return None;
        }
        let mut end = 0u16;
        let mut apart = 0u16;
        for row in 0..self.rows {
            // A unit's weight bounds it.
            end = end.wrapping_add(length as u16);
            // SAFETY: the caller's contract.
            apart |= end ^ unsafe { *self.ends.add(row) };
        }
        (apart == 0).then_some(length)
    }

    /// Whether its rows are short and differ in length, by a few samples.
    ///
    /// # Safety
    /// The unit is there, and no piece.
    #[inline(always)]
    pub(super) unsafe fn is_irregular(&self) -> bool {
        if self.entries >= LONG * self.rows || self.rows < 2 {
            return false;
        }
        let length = self.entries / self.rows;
        let places = [0, self.rows / 3, self.rows / 2, self.rows - 2];
        self.entries != length * self.rows
            // SAFETY: the caller's contract.
            || places.iter().any(|row| usize::from(unsafe { *self.ends.add(*row) }) != length * (row + 1))
    }
}

/// How results are best written: past the caches, unless what a product touches
/// stays in them until the next. Others use the last one, too: of a cache of
/// 300 MiB, shared with other virtual machines, products of 200 MB found nothing
/// again. So half of it counts.
fn stores(args: &[HostValue]) -> Stores {
    let touched = args.iter().map(|arg| match arg {
        HostValue::Memory { bytes, .. } => *bytes,
        _ => 0,
    });
    Stores::for_bytes(touched.fold(0, u64::saturating_add).saturating_mul(2))
}

/// Rows that are so long on average are not short.
const LONG: usize = 32;

impl<T: Number> Product<T> {
    /// # Panics
    /// When the arguments are not those that the codelet documents, which is a
    /// fault in the caller's code.
    pub(super) fn decode(args: &[HostValue]) -> Self {
        let memory = |i: usize| match args[i] {
            HostValue::Memory { address, .. } => address,
            other => unreachable!("spmv argument {i} is memory, not {other:?}"),
        };
        let number = |i: usize| match args[i] {
            HostValue::U32(n) => n,
            other => unreachable!("spmv argument {i} is a u32, not {other:?}"),
        };
        let HostValue::U64(entries) = args[8] else {
            unreachable!("spmv argument 8 is a u64, not {:?}", args[8])
        };
        let Some(scale) = T::from_value(args[12]) else {
            unreachable!("spmv argument 12 has the type of x, not {:?}", args[12])
        };
        Self {
            x: memory(0).cast_const().cast(),
            y: memory(1).cast(),
            columns: memory(2).cast_const().cast(),
            values: memory(3).cast_const().cast(),
            ends: memory(4).cast_const().cast(),
            unit_entries: memory(5).cast_const().cast(),
            unit_rows: memory(6).cast_const().cast(),
            sums: memory(7).cast(),
            entries,
            rows: number(9),
            pieces: number(10).into(),
            scale,
            squares: number(13) != 0,
            stores: stores(args),
        }
    }

    /// Where a unit's data lie.
    ///
    /// # Safety
    /// The tables have the unit, and the rings hold it.
    #[inline(always)]
    pub(super) unsafe fn unit(&self, unit: u64) -> Unit<T> {
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
                entries: (entry_end - entry) as usize,
                rows: (row_end - row) as usize,
            }
        }
    }
}
