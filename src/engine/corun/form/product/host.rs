//! A product's data in host memory: the matrix, the vectors, and the sums of its
//! units.

use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

use super::store::{MOST_SUMS, Slots, Store, runs};
use super::sums::{by_units, squares, total};
use crate::codelet::Precision;
use crate::codelet::spmv::UnitSums;
use crate::corun::context::{Context, MAIN, Purpose};
use crate::corun::form::{Later, PIECE, When, data, pieces, poison};
use crate::corun::{CorunError, VECTOR};
use crate::matrix::Csr;
use crate::parallel;
use crate::runtime::{AdoptedMemory, BufferId, Command, HostMemoryId, Memory, Runtime, Value};
use crate::scope::RuntimeScope;
use crate::workload::Divisible;
use crate::workload::spmv::factors::Factors;
use crate::workload::spmv::links::Links;
use crate::workload::spmv::{ENDS, Form, Placed, Spmv};

/// A matrix and its vectors in host memory.
pub struct HostProduct<'a> {
    pub spmv: &'a Spmv,
    /// The units that are computed here.
    pub all: Range<u64>,
    /// The units of other nodes.
    pub peers: Vec<Range<u64>>,
    vectors: [HostMemoryId; 2],
    /// Which of the vectors is multiplied with.
    pub present: usize,
    columns: HostMemoryId,
    values: HostMemoryId,
    ends: HostMemoryId,
    pub unit_entries: HostMemoryId,
    pub unit_rows: HostMemoryId,
    sums: HostMemoryId,
    /// Rows that are cut into pieces; the first ones.
    pub long_rows: u64,
    /// Whether the entries are in the matrix's own arrays.
    is_adopted: bool,
    /// Whether the matrix has been written.
    filled: bool,
    factors: Factors,
    /// The sums of the last result of an iteration, in a run with data.
    pub last: Option<[f64; 2]>,
}

/// The columns and the values of a matrix as host memory, where they are; `None` where a device
/// does not take them so.
fn adopt(runtime: &mut RuntimeScope, matrix: &Arc<Csr>) -> Option<[HostMemoryId; 2]> {
    let arrays: [&[u8]; 2] = [
        bytemuck::cast_slice(matrix.column_of()),
        bytemuck::cast_slice(matrix.values()),
    ];
    let mut adopted = [None; 2];
    for (id, bytes) in adopted.iter_mut().zip(arrays) {
        // SAFETY: a matrix never changes, and products only read their entries. The owner
        // keeps it.
        let memory = unsafe { AdoptedMemory::read_only(Arc::clone(matrix), NonNull::from(bytes)) };
        match runtime.adopt_host(memory) {
            Ok(memory) => *id = Some(memory),
            Err(_) => return None,
        }
    }
    adopted[0].zip(adopted[1]).map(<[_; 2]>::from)
}

impl<'a> HostProduct<'a> {
    /// Allocates the vectors and the matrix, of which only these units are written. Arrays of
    /// the matrix that need no conversion are read where they are.
    pub fn open(
        runtime: &mut RuntimeScope,
        spmv: &'a Spmv,
        all: Range<u64>,
    ) -> Result<Self, CorunError> {
        let (matrix, arrangement) = (spmv.matrix(), spmv.arrangement());
        let (units, rows) = (arrangement.units(), u64::from(matrix.rows()));
        if spmv.iterates() {
            // Now, since it takes a while, and not in the first step.
            spmv.readers();
        }
        let adopted = match spmv.has_own_arrays() {
            true => adopt(runtime, matrix),
            false => None,
        };
        let mut alloc = |count: u64, each: u64| runtime.alloc_host((count * each).max(1));
        let [columns, values] = match adopted {
            Some(arrays) => arrays,
            None => [
                alloc(matrix.nonzeros(), 4)?,
                alloc(matrix.nonzeros(), spmv.number())?,
            ],
        };
        Ok(Self {
            spmv,
            all,
            peers: Vec::new(),
            vectors: [
                alloc(matrix.columns().into(), spmv.number())?,
                alloc(rows, spmv.number())?,
            ],
            present: 0,
            columns,
            values,
            ends: alloc(rows, ENDS)?,
            unit_entries: alloc(units + 1, 8)?,
            unit_rows: alloc(units + 1, 4)?,
            sums: alloc(MOST_SUMS * units, spmv.number())?,
            long_rows: arrangement.long_rows().count() as u64,
            is_adopted: adopted.is_some(),
            filled: false,
            factors: Factors::NONE,
            last: None,
        })
    }

    /// The vector that is multiplied with.
    pub fn x(&self) -> HostMemoryId {
        self.vectors[self.present]
    }

    /// The vector that results are written to.
    pub fn y(&self) -> HostMemoryId {
        self.vectors[1 - self.present]
    }

    /// Which of the vectors is the result at the end.
    pub fn result(&self) -> HostMemoryId {
        match self.spmv.iterates() {
            true => self.x(),
            false => self.y(),
        }
    }

    /// Where host devices compute.
    pub fn placed(&self) -> Placed {
        let (matrix, memory) = (self.spmv.matrix(), Memory::Host);
        Placed {
            x: memory(self.x()),
            y: memory(self.y()),
            columns: memory(self.columns),
            values: memory(self.values),
            ends: memory(self.ends),
            unit_entries: memory(self.unit_entries),
            unit_rows: memory(self.unit_rows),
            sums: memory(self.sums),
            entries: matrix.nonzeros().max(1),
            rows: matrix.rows().max(1),
        }
    }

    /// A launch's arguments for units that lie there.
    pub fn args(&self, units: &Range<u64>, placed: &Placed) -> Vec<Value> {
        self.spmv.args(units, placed, self.factors)
    }

    /// The rows of `units` that whoever computes them has whole.
    pub fn own_rows(&self, units: &Range<u64>) -> Range<u64> {
        let rows = self.spmv.arrangement().rows(units);
        let start = u64::from(rows.start).max(self.long_rows);
        start..u64::from(rows.end).max(start)
    }

    /// Writes of units' entries and rows into a device's slots.
    pub fn write_units(&self, units: &Range<u64>, slots: &Slots) -> Vec<Command> {
        let (arrangement, number) = (self.spmv.arrangement(), self.spmv.number());
        let entries = runs(units, slots.entries, |unit| {
            arrangement.unit_entries()[unit as usize]
        });
        let rows = runs(units, slots.rows, |unit| {
            arrangement.unit_rows()[unit as usize].into()
        });
        let mut commands = Vec::new();
        for (runs, from, to, each) in [
            (&entries, self.columns, slots.columns, 4),
            (&entries, self.values, slots.values, number),
            (&rows, self.ends, slots.ends, ENDS),
        ] {
            for (run, at) in runs {
                let bytes = run.start * each..run.end * each;
                commands.push(Command::write(from, bytes, to, at * each));
            }
        }
        commands
    }

    /// The read of part of a device's vector into the same places of one here.
    pub fn read_numbers(&self, part: &Range<u64>, from: BufferId, to: HostMemoryId) -> Command {
        let number = self.spmv.number();
        let bytes = part.start * number..part.end * number;
        Command::read(from, bytes.start, to, bytes)
    }

    /// The write of part of the present vector into the same places of a
    /// device's.
    pub fn write_numbers(&self, part: &Range<u64>, to: BufferId) -> Command {
        let number = self.spmv.number();
        let bytes = part.start * number..part.end * number;
        Command::write(self.x(), bytes.clone(), to, bytes.start)
    }

    /// The read of what units add up to.
    pub fn read_sums(&self, units: &Range<u64>, from: BufferId) -> Command {
        let each = self.spmv.unit_sums().numbers();
        self.read_numbers(&(each * units.start..each * units.end), from, self.sums)
    }

    /// Writes the first vector, or a later one, and, the first time, the matrix. A simulation
    /// without data has nothing to fill.
    pub fn fill(
        &mut self,
        runtime: &mut dyn Runtime,
        later: Option<&Later>,
    ) -> Result<(), CorunError> {
        let (spmv, number) = (self.spmv, self.spmv.number());
        self.present = 0;
        let Some(x) = data(runtime, self.x())? else {
            return Ok(());
        };
        let columns = u64::from(spmv.matrix().columns());
        let x = &mut x[..(columns * number) as usize];
        pieces(x, PIECE as usize, &|i, piece| {
            let first = i as u64 * PIECE / number;
            spmv.write_first(first..first + piece.len() as u64 / number, piece);
        });
        self.last = None;
        self.factors = spmv.factors(match spmv.options().form {
            Form::Product => 0.0,
            Form::Iteration => squares(spmv, x),
            Form::Ranks => spmv.links().map_or(0.0, Links::first_dangling),
        });
        if let Some(later) = later {
            later.write(0, x);
            self.last = later.sums;
            self.factors = later
                .sums
                .map_or(self.factors, |sums| spmv.factors(sums[0]));
        }
        for memory in [self.y(), self.sums] {
            poison(runtime, memory)?;
        }
        if std::mem::replace(&mut self.filled, true) {
            return Ok(());
        }
        let arrangement = spmv.arrangement();
        let entries: &[u8] = bytemuck::cast_slice(arrangement.unit_entries());
        let rows: &[u8] = bytemuck::cast_slice(arrangement.unit_rows());
        for (memory, table) in [(self.unit_entries, entries), (self.unit_rows, rows)] {
            runtime.host_bytes(memory)?[..table.len()].copy_from_slice(table);
        }
        let row = |unit: u64| u64::from(arrangement.unit_rows()[unit as usize]);
        if !self.is_adopted {
            self.fill_entries(runtime)?;
        }
        by_units(
            runtime.host_bytes(self.ends)?,
            &self.all,
            &|u| ENDS * row(u),
            &|units, bytes| {
                spmv.write_ends(units, bytemuck::cast_slice_mut(bytes));
            },
        );
        Ok(())
    }

    /// Writes the columns and values of all entries of the units here.
    fn fill_entries(&self, runtime: &mut dyn Runtime) -> Result<(), CorunError> {
        let (spmv, number) = (self.spmv, self.spmv.number());
        let entry = |unit: u64| spmv.arrangement().unit_entries()[unit as usize];
        by_units(
            runtime.host_bytes(self.columns)?,
            &self.all,
            &|u| 4 * entry(u),
            &|units, bytes| spmv.write_columns(units, bytemuck::cast_slice_mut(bytes)),
        );
        by_units(
            runtime.host_bytes(self.values)?,
            &self.all,
            &|unit| number * entry(unit),
            &|units, bytes| spmv.write_values(units, bytes),
        );
        Ok(())
    }

    /// Writes another vector to multiply with, a number a column of the matrix.
    pub fn set_vector(&self, runtime: &mut dyn Runtime, numbers: &[f64]) -> Result<(), CorunError> {
        let (spmv, number) = (self.spmv, self.spmv.number());
        let Some(x) = data(runtime, self.x())? else {
            return Ok(());
        };
        let x = &mut x[..numbers.len() * number as usize];
        if spmv.has_own_arrays() {
            parallel::copy(x, bytemuck::cast_slice(numbers));
            return Ok(());
        }
        pieces(x, PIECE as usize, &|i, piece| {
            let first = i as u64 * PIECE / number;
            let places = first..first + piece.len() as u64 / number;
            spmv.write_vector(numbers, places, piece);
        });
        Ok(())
    }

    /// Writes what a device needs to compute any unit: the tables of units, and the
    /// present vector.
    pub fn write_tables(
        &self,
        context: &mut Context,
        store: &Store,
        device: usize,
    ) -> Result<(), CorunError> {
        let units = self.spmv.units();
        let columns = u64::from(self.spmv.matrix().columns());
        let purpose = Purpose::new(device, MAIN, 0, VECTOR);
        for (from, to, bytes) in [
            (self.unit_entries, store.unit_entries, 8 * (units + 1)),
            (self.unit_rows, store.unit_rows, 4 * (units + 1)),
            (self.x(), store.x(), columns * self.spmv.number()),
        ] {
            if bytes > 0 {
                let command = Command::write(from, 0..bytes, to, 0);
                context.submit(purpose, command, 0..units, &[])?;
            }
        }
        Ok(())
    }

    /// The sums of the units here, if all nodes need them then: those of pieces of long rows,
    /// and what the others sum together.
    pub fn own_sums(
        &self,
        runtime: &mut dyn Runtime,
        when: When,
    ) -> Result<Option<Vec<u8>>, CorunError> {
        if !self.is_added_up(when) {
            return Ok(None);
        }
        let pieces = self.sum_bytes(&self.all_pieces());
        let mut own = vec![0; (pieces.end - pieces.start) as usize];
        if let Some(sums) = data(runtime, self.sums)? {
            own.copy_from_slice(&sums[pieces.start as usize..pieces.end as usize]);
            let total = self.own_total(sums);
            own.extend_from_slice(bytemuck::bytes_of(&total));
        }
        Ok(Some(own))
    }

    /// After a step of an iteration, or at the end of products: the long rows of the result,
    /// and what all units sum; without meaning where they sum nothing.
    pub fn add_up(
        &mut self,
        runtime: &mut dyn Runtime,
        when: When,
        others: &[(Range<u64>, Vec<u8>)],
    ) -> Result<(), CorunError> {
        if !self.is_added_up(when) {
            return Ok(());
        }
        let Some(sums) = data(runtime, self.sums)? else {
            return Ok(());
        };
        let mut totals = vec![(self.all.start, self.own_total(sums))];
        for (units, bytes) in others {
            let pieces = self.sum_bytes(&self.pieces_of(units));
            let (own, total) = bytes.split_at((pieces.end - pieces.start) as usize);
            sums[pieces.start as usize..pieces.end as usize].copy_from_slice(own);
            totals.push((units.start, bytemuck::pod_read_unaligned(total)));
        }
        // All nodes add in the same order, and have the same sums.
        totals.sort_unstable_by_key(|(first, _)| *first);
        let [first, second] = [0, 1].map(|which| totals.iter().map(|(_, sums)| sums[which]).sum());
        let sums = self.add_pieces(runtime, [first, second])?;
        if self.spmv.iterates() {
            self.factors = self.spmv.factors(sums[0]);
            self.last = Some(sums);
        }
        Ok(())
    }

    fn is_added_up(&self, when: When) -> bool {
        self.spmv.iterates() == (when == When::Step)
    }

    /// The pieces of long rows among units.
    fn pieces_of(&self, units: &Range<u64>) -> Range<u64> {
        let pieces = u64::from(self.spmv.arrangement().pieces());
        units.start.min(pieces)..units.end.min(pieces)
    }

    fn all_pieces(&self) -> Range<u64> {
        self.pieces_of(&self.all)
    }

    /// The bytes of the sums of units.
    fn sum_bytes(&self, units: &Range<u64>) -> Range<u64> {
        let each = self.spmv.unit_sums().numbers() * self.spmv.number();
        units.start * each..units.end * each
    }

    /// What the units here sum that are no pieces of rows.
    fn own_total(&self, sums: &[u8]) -> [f64; 2] {
        let whole = self.sum_bytes(&(self.all_pieces().end.max(self.all.start)..self.all.end));
        let each = self.spmv.unit_sums().numbers() as usize;
        total(
            self.spmv,
            &sums[whole.start as usize..whole.end as usize],
            each,
        )
    }

    /// Adds the pieces of long rows, and writes them into the result. Returns what all units
    /// sum, of which `whole` is that of the others.
    fn add_pieces(
        &self,
        runtime: &mut dyn Runtime,
        mut whole: [f64; 2],
    ) -> Result<[f64; 2], CorunError> {
        let (spmv, number) = (self.spmv, self.spmv.number() as usize);
        let arrangement = spmv.arrangement();
        let each = spmv.unit_sums().numbers() as usize;
        let sums = runtime.host_bytes(self.sums)?;
        let mut long: Vec<f64> = Vec::new();
        for (_, own) in arrangement.long_rows() {
            let own = own.start as usize * each * number..own.end as usize * each * number;
            let [sum, _] = total(spmv, &sums[own], each);
            long.push(sum + self.factors.shift);
        }
        let long_bytes = long.len() * number;
        let to = &mut runtime.host_bytes(self.result())?[..long_bytes];
        match spmv.options().precision {
            Precision::F64 => to.copy_from_slice(bytemuck::cast_slice(&long)),
            Precision::F32 => {
                let long: Vec<f32> = long.iter().map(|sum| *sum as f32).collect();
                to.copy_from_slice(bytemuck::cast_slice(&long));
            }
        }
        let new: Vec<f64> = spmv.read(to).collect();
        match spmv.unit_sums() {
            UnitSums::None => {}
            UnitSums::Squares => whole[0] += new.iter().map(|new| new * new).sum::<f64>(),
            UnitSums::Ranks => {
                // What was multiplied with.
                let old = runtime.host_bytes(self.y())?;
                for ((place, new), old) in (0..).zip(new).zip(spmv.read(&old[..long_bytes])) {
                    if spmv.is_dangling(spmv.row_at(place)) {
                        whole[0] += new;
                    }
                    whole[1] += (new - old).abs();
                }
            }
        }
        Ok(whole)
    }
}
