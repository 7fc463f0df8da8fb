//! A product's data: the matrix in host memory and, unit by unit, in the memory
//! of the devices that compute it; the vectors, whole everywhere.
//!
//! [`store`] is a device's memory, and `division` how it is divided; `steps` has what a
//! step takes: launches, chunks, results; `exchange` what moves between steps:
//! units that change hands and, where a result is the next step's vector, the
//! parts of it that others read. Here is what lies in host memory.
//!
//! Invariant at a barrier of an iteration: the present vector in host memory
//! has every number that a unit reads which is not held, or held by another
//! device than the number; each device has its own rows' numbers, but for rows
//! cut into pieces, which the host adds up.

mod division;
mod exchange;
mod steps;
mod store;

use std::ops::Range;

pub use division::{Division, Estimate, fixed_bytes, lacking};
pub use store::Store;

use super::claims::Claims;
use super::drive::{Drive, For, Kept};
use super::grids::{PIECE, POISON, pieces};
use super::place::Place;
use super::{CorunError, VECTOR};
use crate::codelet::Precision;
use crate::parallel;
use crate::runtime::{BufferId, Command, DeviceSpan, HostMemoryId, HostSpan, Memory, RuntimeError};
use crate::workload::Divisible;
use crate::workload::spmv::{ENDS, Placed, Spmv};

/// A matrix in host memory, and how far the product is.
pub struct Product<'a> {
    pub(super) spmv: &'a Spmv,
    columns: HostMemoryId,
    values: HostMemoryId,
    ends: HostMemoryId,
    unit_entries: HostMemoryId,
    unit_rows: HostMemoryId,
    sums: HostMemoryId,
    /// Rows that are cut into pieces; the first ones.
    long_rows: u64,
    /// Whether the matrix has been written.
    filled: bool,
    /// The factor that gives the present vector the length 1; 1 where results
    /// are no vectors.
    scale: f64,
    /// Length of the last result, in a run with data.
    length: Option<f64>,
}

impl<'a> Product<'a> {
    /// Allocates the two vectors, which are returned, and the matrix.
    pub fn open(
        runtime: &mut Claims,
        spmv: &'a Spmv,
    ) -> Result<([HostMemoryId; 2], Self), CorunError> {
        let matrix = spmv.matrix();
        let (units, rows) = (spmv.arrangement().units(), u64::from(matrix.rows()));
        let mut alloc = |count: u64, each: u64| runtime.alloc_host((count * each).max(1));
        let vectors = [
            alloc(matrix.columns().into(), spmv.number())?,
            alloc(rows, spmv.number())?,
        ];
        if spmv.iterates() {
            // Now, since it takes a while, and not in the first step.
            spmv.readers();
        }
        let product = Self {
            spmv,
            columns: alloc(matrix.nonzeros(), 4)?,
            values: alloc(matrix.nonzeros(), spmv.number())?,
            ends: alloc(rows, ENDS)?,
            unit_entries: alloc(units + 1, 8)?,
            unit_rows: alloc(units + 1, 4)?,
            sums: alloc(units, spmv.number())?,
            long_rows: spmv.arrangement().long_rows().count() as u64,
            filled: false,
            scale: 1.0,
            length: None,
        };
        Ok((vectors, product))
    }

    /// Where host devices compute, from the one vector to the other.
    fn on_host(&self, x: HostMemoryId, y: HostMemoryId) -> Placed {
        let matrix = self.spmv.matrix();
        Placed {
            x: Memory::Host(x),
            y: Memory::Host(y),
            columns: Memory::Host(self.columns),
            values: Memory::Host(self.values),
            ends: Memory::Host(self.ends),
            unit_entries: Memory::Host(self.unit_entries),
            unit_rows: Memory::Host(self.unit_rows),
            sums: Memory::Host(self.sums),
            entries: matrix.nonzeros().max(1),
            rows: matrix.rows().max(1),
        }
    }

    /// The rows of `units` that whoever computes them has whole.
    fn own_rows(&self, units: &Range<u64>) -> Range<u64> {
        let rows = self.spmv.arrangement().rows(units);
        let start = u64::from(rows.start).max(self.long_rows);
        start..u64::from(rows.end).max(start)
    }

    /// Which of the vectors is the result at the end.
    pub fn result(&self, vectors: &[HostMemoryId; 2], present: usize) -> HostMemoryId {
        match self.spmv.iterates() {
            true => vectors[present],
            false => vectors[1],
        }
    }

    /// See [`Spmv::verify`].
    pub fn verify(&self, steps: u32, result: &[u8]) -> (f64, bool) {
        let bytes = u64::from(self.spmv.matrix().rows()) * self.spmv.number();
        self.spmv.verify(steps, &result[..bytes as usize])
    }

    /// The length of `A x` in the last step, `x` having the length 1.
    pub fn eigenvalue(&self) -> Option<f64> {
        self.length.filter(|_| self.spmv.iterates())
    }
}

impl Drive<'_> {
    pub(super) fn product(&self) -> Option<&Product<'_>> {
        match &self.kept {
            Kept::Grid(_) | Kept::Kernel(_) => None,
            Kept::Product(product) => Some(product),
        }
    }

    /// Whether a step's result is the next one's vector.
    pub(super) fn iterates(&self) -> bool {
        self.product()
            .is_some_and(|product| product.spmv.iterates())
    }

    /// Writes the matrix once, and the first vector, here and on devices. A
    /// simulation without data has nothing to fill here.
    pub(super) fn fill_product(&mut self) -> Result<(), CorunError> {
        match self.runtime.host_bytes(self.grids[0]) {
            Err(RuntimeError::NoData) => {}
            Err(error) => return Err(error.into()),
            Ok(_) => self.fill_host()?,
        }
        for device in 0..self.places.len() {
            self.fill_device(device)?;
        }
        self.drain()
    }

    fn fill_host(&mut self) -> Result<(), CorunError> {
        let Kept::Product(product) = &mut self.kept else {
            return Ok(());
        };
        let (spmv, number) = (product.spmv, product.spmv.number());
        let columns = u64::from(spmv.matrix().columns());
        let x = self.runtime.host_bytes(self.grids[0])?;
        let x = &mut x[..(columns * number) as usize];
        pieces(x, PIECE as usize, &|i, piece| {
            let first = i as u64 * PIECE / number;
            spmv.write_first(first..first + piece.len() as u64 / number, piece);
        });
        product.length = None;
        product.scale = match spmv.iterates() {
            true => spmv.scale_of(squares(spmv, x)),
            false => 1.0,
        };
        for memory in [self.grids[1], product.sums] {
            pieces(
                self.runtime.host_bytes(memory)?,
                PIECE as usize,
                &|_, piece| {
                    piece.fill(POISON);
                },
            );
        }
        if std::mem::replace(&mut product.filled, true) {
            return Ok(());
        }
        let arrangement = spmv.arrangement();
        let entries: &[u8] = bytemuck::cast_slice(arrangement.unit_entries());
        let rows: &[u8] = bytemuck::cast_slice(arrangement.unit_rows());
        for (memory, table) in [(product.unit_entries, entries), (product.unit_rows, rows)] {
            self.runtime.host_bytes(memory)?[..table.len()].copy_from_slice(table);
        }
        let entry = |unit: u64| arrangement.unit_entries()[unit as usize];
        let row = |unit: u64| u64::from(arrangement.unit_rows()[unit as usize]);
        let runtime = &mut self.runtime;
        by_units(
            runtime.host_bytes(product.columns)?,
            spmv,
            &|u| 4 * entry(u),
            &|units, bytes| {
                spmv.write_columns(units, bytemuck::cast_slice_mut(bytes));
            },
        );
        let values = |unit| number * entry(unit);
        by_units(
            runtime.host_bytes(product.values)?,
            spmv,
            &values,
            &|units, bytes| {
                spmv.write_values(units, bytes);
            },
        );
        by_units(
            runtime.host_bytes(product.ends)?,
            spmv,
            &|u| ENDS * row(u),
            &|units, bytes| {
                spmv.write_ends(units, bytemuck::cast_slice_mut(bytes));
            },
        );
        Ok(())
    }

    /// Writes the tables of units and the first vector to a device's memory.
    fn fill_device(&mut self, device: usize) -> Result<(), CorunError> {
        let (Place::Store(store), Kept::Product(product)) = (&mut self.places[device], &self.kept)
        else {
            return Ok(());
        };
        if !self.alive[device] {
            return Ok(());
        }
        store.renew();
        let units = self.workload.units();
        let columns = u64::from(product.spmv.matrix().columns());
        let copies = [
            (product.unit_entries, store.unit_entries, 8 * (units + 1)),
            (product.unit_rows, store.unit_rows, 4 * (units + 1)),
            (self.grids[0], store.x(), columns * product.spmv.number()),
        ];
        let whose = For {
            device,
            lane: store.main,
            job: None,
            step: 0,
            label: VECTOR,
        };
        for (from, to, bytes) in copies.into_iter().filter(|(.., bytes)| *bytes > 0) {
            self.submit(whose, write(from, 0, to, 0, bytes), 0..units, &[])?;
        }
        Ok(())
    }
}

/// A transfer to a device.
fn write(from: HostMemoryId, at: u64, to: BufferId, offset: u64, bytes: u64) -> Command {
    Command::Write {
        from: HostSpan {
            memory: from,
            offset: at,
            bytes,
        },
        to: DeviceSpan { buffer: to, offset },
    }
}

/// A transfer to the host, to the same place of a memory of like form.
fn read(from: BufferId, to: HostMemoryId, offset: u64, bytes: u64) -> Command {
    Command::Read {
        from: DeviceSpan {
            buffer: from,
            offset,
        },
        to: HostSpan {
            memory: to,
            offset,
            bytes,
        },
    }
}

/// Calls `fill` with parts of `bytes` and the units that they are of, on all
/// cores. `start` says where a unit begins.
fn by_units(
    mut bytes: &mut [u8],
    spmv: &Spmv,
    start: &dyn Fn(u64) -> u64,
    fill: &(dyn Fn(Range<u64>, &mut [u8]) + Sync),
) {
    let units = spmv.units();
    let threads = parallel::threads() as u64;
    let mut parts = Vec::new();
    for i in 0..threads {
        let mine = units * i / threads..units * (i + 1) / threads;
        let length = (start(mine.end) - start(mine.start)) as usize;
        let own = bytes.split_off_mut(..length).unwrap_or_default();
        if !own.is_empty() {
            parts.push((mine, own));
        }
    }
    parallel::map(parts, |(units, own)| fill(units, own));
}

/// The sum of the squares of numbers.
fn squares(spmv: &Spmv, bytes: &[u8]) -> f64 {
    total(spmv, bytes, |number| number * number)
}

/// The sum of what `of` makes of numbers, which are aligned.
fn total(spmv: &Spmv, bytes: &[u8], of: impl Fn(f64) -> f64) -> f64 {
    if bytes.is_empty() {
        return 0.0;
    }
    match spmv.options().precision {
        Precision::F64 => in_chains(bytemuck::cast_slice(bytes), of),
        Precision::F32 => in_chains(bytemuck::cast_slice(bytes), |n: f32| of(n.into())),
    }
}

/// Sums in several chains, whose additions need not wait for each other.
fn in_chains<T: Copy>(numbers: &[T], of: impl Fn(T) -> f64) -> f64 {
    let mut sums = [0.0; 8];
    let chunks = numbers.chunks_exact(sums.len());
    let rest: f64 = chunks.remainder().iter().map(|n| of(*n)).sum();
    for chunk in chunks {
        for (sum, number) in sums.iter_mut().zip(chunk) {
            *sum += of(*number);
        }
    }
    sums.iter().sum::<f64>() + rest
}
