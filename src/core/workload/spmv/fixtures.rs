//! Test fixtures: products of a matrix and a vector whose data are in ordinary memory.

use std::sync::Arc;

use super::factors::Factors;
use super::{Options, Spmv};
use crate::codelet::{HostValue, Precision};
use crate::matrix::Csr;
use crate::workload::Compared;

/// The byte in memory that is not written yet.
pub const POISON: u8 = 0xff;

/// The data of all units of a product in ordinary memory, in the form of a host
/// kernel's arguments.
pub struct Plain {
    pub spmv: Spmv,
    pub x: Vec<u64>,
    pub y: Vec<u64>,
    pub columns: Vec<u32>,
    pub values: Vec<u64>,
    pub ends: Vec<u16>,
    pub sums: Vec<u64>,
}

fn words(numbers: u64, number: u64) -> Vec<u64> {
    vec![u64::from_ne_bytes([POISON; 8]); (numbers * number).div_ceil(8) as usize]
}

impl Plain {
    pub fn new(matrix: Csr, options: Options) -> Self {
        let spmv = Spmv::new("test", Arc::new(matrix), options).unwrap();
        let (matrix, all) = (spmv.matrix(), 0..spmv.arrangement().units());
        let number = spmv.number();
        let mut plain = Self {
            x: words(matrix.columns().into(), number),
            y: words(matrix.rows().into(), number),
            columns: vec![0; matrix.nonzeros() as usize],
            values: words(matrix.nonzeros(), number),
            ends: vec![0; matrix.rows() as usize],
            sums: words(2 * all.end, number),
            spmv: spmv.clone(),
        };
        let columns = 0..u64::from(matrix.columns());
        let x = bytemuck::cast_slice_mut(&mut plain.x);
        spmv.write_first(columns.clone(), &mut x[..(columns.end * number) as usize]);
        let values = bytemuck::cast_slice_mut(&mut plain.values);
        let bytes = (matrix.nonzeros() * number) as usize;
        spmv.write_columns(all.clone(), &mut plain.columns);
        spmv.write_values(all.clone(), &mut values[..bytes]);
        spmv.write_ends(all, &mut plain.ends);
        plain
    }

    /// A host kernel's arguments.
    pub fn args(&mut self, factors: Factors) -> Vec<HostValue> {
        fn memory<T>(of: &mut [T]) -> HostValue {
            HostValue::Memory {
                address: of.as_mut_ptr().cast(),
                bytes: size_of_val(of) as u64,
            }
        }
        // Kernels only read the tables of units.
        let table = |address: *const u8, bytes| HostValue::Memory {
            address: address.cast_mut(),
            bytes,
        };
        let precision = self.spmv.options().precision;
        let real =
            |value: f64| precision.choose(HostValue::F32(value as f32), HostValue::F64(value));
        let arrangement = self.spmv.arrangement();
        let (entries, rows) = (arrangement.unit_entries(), arrangement.unit_rows());
        vec![
            memory(&mut self.x),
            memory(&mut self.y),
            memory(&mut self.columns),
            memory(&mut self.values),
            memory(&mut self.ends),
            table(entries.as_ptr().cast(), size_of_val(entries) as u64),
            table(rows.as_ptr().cast(), size_of_val(rows) as u64),
            memory(&mut self.sums),
            HostValue::U64(self.spmv.matrix().nonzeros().max(1)),
            HostValue::U32(self.spmv.matrix().rows().max(1)),
            HostValue::U32(arrangement.pieces()),
            HostValue::U32(0),
            real(factors.scale),
            real(factors.shift),
            HostValue::U32(self.spmv.unit_sums() as u32),
        ]
    }

    fn numbers(&self, of: &[u64], count: u64) -> Vec<f64> {
        let bytes = &bytemuck::cast_slice(of)[..(count * self.spmv.number()) as usize];
        self.spmv.read(bytes).collect()
    }

    /// Adds the pieces of the long rows.
    pub fn add_pieces(&mut self) {
        let sums = self.numbers(&self.sums, self.spmv.arrangement().units());
        let long: Vec<_> = self.spmv.arrangement().long_rows().collect();
        for (row, pieces) in long {
            let sum: f64 = sums[pieces.start as usize..pieces.end as usize]
                .iter()
                .sum();
            let y: &mut [u8] = bytemuck::cast_slice_mut(&mut self.y);
            match self.spmv.options().precision {
                Precision::F64 => bytemuck::cast_slice_mut(y)[row as usize] = sum,
                Precision::F32 => bytemuck::cast_slice_mut(y)[row as usize] = sum as f32,
            }
        }
    }

    /// Compares `y` with the reference.
    pub fn verify(&self) -> Compared {
        let bytes = self.spmv.number() as usize * self.spmv.matrix().rows() as usize;
        self.spmv.verify(1, &bytemuck::cast_slice(&self.y)[..bytes])
    }

    /// The sums of each unit, and those of its results, which they must equal: squares, or
    /// marked results and changes.
    pub fn unit_sums(&self) -> Vec<([f64; 2], [f64; 2])> {
        let each = self.spmv.unit_sums().numbers();
        let sums = self.numbers(&self.sums, each * self.spmv.arrangement().units());
        let x = self.numbers(&self.x, self.spmv.matrix().columns().into());
        let y = self.numbers(&self.y, self.spmv.matrix().rows().into());
        let arrangement = self.spmv.arrangement();
        (u64::from(arrangement.pieces())..arrangement.units())
            .map(|unit| {
                let rows = arrangement.rows(&(unit..unit + 1));
                let own = || rows.clone().map(|row| (row, y[row as usize]));
                let found = &sums[(each * unit) as usize..(each * (unit + 1)) as usize];
                if each == 1 {
                    let squares = own().map(|(_, y)| y * y).sum();
                    return ([found[0], 0.0], [squares, 0.0]);
                }
                let marked = own().filter(|(row, _)| {
                    let row = self.spmv.row_at(*row);
                    self.spmv.is_dangling(row)
                });
                let changes = own().map(|(row, y)| (y - x[row as usize]).abs()).sum();
                (
                    [found[0], found[1]],
                    [marked.map(|(_, y)| y).sum(), changes],
                )
            })
            .collect()
    }
}
