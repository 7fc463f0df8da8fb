//! A launch's arguments, decoded, and the addresses of a unit's data.

use super::dot::Number;
use crate::HostValue;
use crate::host::{Arguments, Stores};
use crate::spmv::{MARK, UnitSums};

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
    pub(super) shift: T,
    pub(super) sums_kind: UnitSums,
    /// How results are written.
    pub(super) stores: Stores,
}

/// A unit's data.
pub(super) struct Unit<T> {
    pub(super) columns: *const u32,
    pub(super) values: *const T,
    pub(super) ends: *const u16,
    pub(super) y: *mut T,
    /// The numbers of the vector at the places of its rows, where the matrix is square.
    pub(super) old: *const T,
    pub(super) entries: usize,
    pub(super) rows: usize,
}

impl<T> Unit<T> {
    /// Where a row ends.
    ///
    /// # Safety
    /// The unit has the row.
    #[inline(always)]
    pub(super) unsafe fn end(&self, row: usize) -> u16 {
        // SAFETY: the caller's contract.
        unsafe { *self.ends.add(row) & !MARK }
    }

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
    pub(super) unsafe fn is_irregular(&self) -> bool {
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
    pub(super) fn decode(args: &[HostValue]) -> Self {
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
                old: self.x.wrapping_add(row as usize),
                entries: (entry_end - entry) as usize,
                rows: (row_end - row) as usize,
            }
        }
    }
}
