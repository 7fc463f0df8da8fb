//! The kernel of sparse matrix products compared with the sequential reference:
//! awkward matrices, whole and in rings that are smaller than the matrix.

use std::ops::Range;
use std::sync::Arc;

use pdawl_api::codelet::{Memory, Precision};
use pdawl_api::matrix::Csr;
use pdawl_api::runtime::{Command, Launch};
use pdawl_api::verify::Compared;
use pdawl_api::workload::Divisible;
use pdawl_api::workload::spmv::factors::Factors;
use pdawl_api::workload::spmv::{Form, Options, Placed, Spmv};

use super::harness::{Bench, contents, read, write};
use crate::matrices::{awkward, matrix};

const POISON: u8 = 0xff;

fn options(precision: Precision, form: Form, unit_weight: u64) -> Options {
    Options {
        precision,
        form,
        unit_weight: Some(unit_weight),
        ..Options::default()
    }
}

/// Poison values for this number of elements, at least one.
fn bytes(of: u64, each: u64) -> Vec<u8> {
    vec![POISON; (of.max(1) * each) as usize]
}

/// A product's buffers on the device.
struct DeviceBuffers<'a> {
    bench: &'a mut Bench,
    spmv: &'a Spmv,
    placed: Placed,
}

impl<'a> DeviceBuffers<'a> {
    /// Allocates rings of this number of entries and rows.
    fn new(bench: &'a mut Bench, spmv: &'a Spmv, entries: u64, rows: u32) -> Self {
        let number = spmv.number();
        let (matrix, arrangement) = (spmv.matrix(), spmv.arrangement());
        let mut x = bytes(matrix.columns().into(), number);
        let columns = u64::from(matrix.columns());
        spmv.write_first(0..columns, &mut x[..(columns * number) as usize]);
        let mut buffer = |contents: &[u8]| {
            let host = bench.host(contents);
            let buffer = bench.buffer(host.bytes);
            let queue = bench.queue();
            let event = bench.submit(queue, write(&host, buffer), &[]);
            bench.done(event);
            bench.backend.free_queue(queue);
            Memory::Device(buffer)
        };
        // The rings have room for one more unit behind their ends.
        let (entry_room, row_room) = (entries + 2048, u64::from(rows) + 2048);
        let placed = Placed {
            x: buffer(&x),
            y: buffer(&bytes(matrix.rows().into(), number)),
            columns: buffer(&bytes(entry_room, 4)),
            values: buffer(&bytes(entry_room, number)),
            ends: buffer(&bytes(row_room, 2)),
            unit_entries: buffer(bytemuck::cast_slice(arrangement.unit_entries())),
            unit_rows: buffer(bytemuck::cast_slice(arrangement.unit_rows())),
            sums: buffer(&bytes(arrangement.units(), number)),
            entries,
            rows,
        };
        Self {
            bench,
            spmv,
            placed,
        }
    }

    /// Writes these units to their places in the rings, and computes them.
    fn unit(&mut self, units: Range<u64>) {
        let (number, arrangement) = (self.spmv.number(), self.spmv.arrangement());
        let queue = self.bench.queue();
        for unit in units.clone() {
            let unit = unit..unit + 1;
            let (entries, rows) = (arrangement.entries(&unit), arrangement.rows(&unit));
            let count = (entries.end - entries.start) as usize;
            let mut columns = vec![0; count];
            let mut values = vec![0u64; (count * number as usize).div_ceil(8)];
            let values = &mut bytemuck::cast_slice_mut(&mut values)[..count * number as usize];
            let mut ends = vec![0; (rows.end - rows.start) as usize];
            self.spmv.write_columns(unit.clone(), &mut columns);
            self.spmv.write_values(unit.clone(), values);
            self.spmv.write_ends(unit, &mut ends);
            let entry = entries.start % self.placed.entries;
            let row = u64::from(rows.start % self.placed.rows);
            for (to, offset, contents) in [
                (
                    self.placed.columns,
                    entry * 4,
                    bytemuck::cast_slice(&columns),
                ),
                (self.placed.values, entry * number, &values[..]),
                (self.placed.ends, row * 2, bytemuck::cast_slice(&ends)),
            ] {
                let Memory::Device(buffer) = to else {
                    unreachable!()
                };
                if contents.is_empty() {
                    continue;
                }
                let host = self.bench.host(contents);
                let write = Command::write(host.id, 0..host.bytes, buffer, offset);
                let event = self.bench.submit(queue, write, &[]);
                self.bench.done(event);
            }
        }
        let launch = Command::Launch(Launch {
            codelet: self.spmv.codelet(),
            args: self.spmv.args(&units, &self.placed, Factors::NONE),
            cost: self.spmv.cost(&units),
            units,
        });
        let event = self.bench.submit(queue, launch, &[]);
        self.bench.done(event);
        // Queues that exist at the same time each compile a program.
        self.bench.backend.free_queue(queue);
    }

    fn numbers(&mut self, from: Memory, count: u64) -> Vec<u8> {
        let Memory::Device(buffer) = from else {
            unreachable!()
        };
        let host = self.bench.host(&bytes(count, self.spmv.number()));
        let queue = self.bench.queue();
        let event = self.bench.submit(queue, read(buffer, &host), &[]);
        self.bench.done(event);
        self.bench.backend.free_queue(queue);
        let mut all: Vec<u8> = contents(&host);
        all.truncate((count * self.spmv.number()) as usize);
        all
    }

    /// The result, with the sums of long rows, and the units' sums.
    fn result(&mut self) -> (Vec<u8>, Vec<f64>) {
        let spmv = self.spmv;
        let mut y = self.numbers(self.placed.y, spmv.matrix().rows().into());
        let sums = self.numbers(self.placed.sums, spmv.arrangement().units());
        let sums: Vec<f64> = spmv.read(&sums).collect();
        for (row, pieces) in spmv.arrangement().long_rows() {
            let sum: f64 = sums[pieces.start as usize..pieces.end as usize]
                .iter()
                .sum();
            match spmv.options().precision {
                Precision::F64 => bytemuck::cast_slice_mut(&mut y)[row as usize] = sum,
                Precision::F32 => bytemuck::cast_slice_mut(&mut y)[row as usize] = sum as f32,
            }
        }
        (y, sums)
    }
}

fn product(name: &str, matrix: Csr, options: Options) -> Spmv {
    Spmv::new(name, Arc::new(matrix), options).expect("a product")
}

#[test]
fn awkward_matrices_agree_with_the_reference() {
    let mut bench = Bench::of_buffers();
    for (name, matrix) in awkward() {
        for (precision, weight) in [
            (Precision::F64, 2048),
            (Precision::F64, 64),
            (Precision::F32, 512),
        ] {
            let options = options(precision, Form::Product, weight);
            let spmv = product(name, matrix.clone(), options);
            let (entries, rows) = (spmv.matrix().nonzeros().max(1), spmv.matrix().rows().max(1));
            let mut buffers = DeviceBuffers::new(&mut bench, &spmv, entries, rows);
            let units = spmv.arrangement().units();
            buffers.unit(units / 2..units);
            if units > 1 {
                buffers.unit(0..units / 2);
            }
            let Compared { error, right, .. } = spmv.verify(1, &buffers.result().0);
            assert!(right, "{name} {precision:?} {weight}: {error:e}");
        }
    }
}

#[test]
fn rings_hold_any_units() {
    let mut bench = Bench::of_buffers();
    let mut lengths = vec![3; 900];
    lengths[77] = 700;
    lengths.extend([0; 300]);
    let spmv = product(
        "",
        matrix(1200, &lengths, 3),
        options(Precision::F64, Form::Product, 64),
    );
    // Less than a third of the matrix; both are primes.
    let mut buffers = DeviceBuffers::new(&mut bench, &spmv, 1009, 211);
    for first in (0..spmv.arrangement().units()).step_by(3) {
        let units = first..(first + 3).min(spmv.arrangement().units());
        buffers.unit(units);
    }
    let Compared { error, right, .. } = spmv.verify(1, &buffers.result().0);
    assert!(right, "{error:e}");
}

#[test]
fn units_know_their_part_of_the_length() {
    let mut bench = Bench::of_buffers();
    let mut lengths: Vec<u32> = (0..1500).map(|row| row % 13).collect();
    lengths[3] = 1400;
    let spmv = product(
        "",
        matrix(1500, &lengths, 5),
        options(Precision::F64, Form::Iteration, 256),
    );
    let (entries, rows) = (spmv.matrix().nonzeros(), spmv.matrix().rows());
    let mut buffers = DeviceBuffers::new(&mut bench, &spmv, entries, rows);
    let arrangement = spmv.arrangement();
    buffers.unit(0..arrangement.units());
    let (y, sums) = buffers.result();
    let y: Vec<f64> = spmv.read(&y).collect();
    assert!(arrangement.pieces() > 1);
    for unit in u64::from(arrangement.pieces())..arrangement.units() {
        let rows = arrangement.rows(&(unit..unit + 1));
        let right: f64 = (y[rows.start as usize..rows.end as usize].iter())
            .map(|y| y * y)
            .sum();
        let sum = sums[unit as usize];
        assert!(
            (sum - right).abs() <= 1e-13 * right,
            "{unit}: {sum} {right}"
        );
    }
}
