//! The kernels between a library's calls, compared with loops. What a library would have made is
//! given to them.

use std::sync::Arc;

use pdawl_api::codelet::library::LibraryStep;
use pdawl_api::codelet::lu::{LuPanel, LuRow, NO_PIVOT, NOT_FINITE};
use pdawl_api::codelet::tile::PotrfTile;
use pdawl_api::codelet::{Codelet, KernelSource, NdRange, OpenClKernel, Precision, Shape, Value};
use pdawl_api::runtime::{BufferId, HostRegion, Memory};

use super::harness::{Bench, contents, launch, read, write};
use crate::tile_cases::Real;

/// The kernels of a launch by a library, in order.
fn kernels(codelet: &Codelet, args: &[Value]) -> Vec<(KernelSource, NdRange)> {
    let library = codelet.library.as_ref().expect("a library");
    let described = (library.launch)(&(0..1), args).expect("the library can");
    let steps = described.steps.into_iter();
    let kernels = steps.filter_map(|step| match step {
        LibraryStep::Kernel { kernel, sizes, .. } => Some((library.kernels[kernel].clone(), sizes)),
        LibraryStep::Call(_) => None,
    });
    kernels.collect()
}

/// Buffers with contents, and launches of kernels on them.
struct Memories {
    bench: Bench,
    hosts: Vec<HostRegion>,
    buffers: Vec<BufferId>,
}

impl Memories {
    fn new() -> Self {
        Self {
            bench: Bench::cpu(),
            hosts: Vec::new(),
            buffers: Vec::new(),
        }
    }

    /// Adds a buffer, and returns the argument.
    fn add<T: bytemuck::Pod>(&mut self, numbers: &[T]) -> Value {
        let host = self.bench.host(numbers);
        let buffer = self.bench.buffer(host.bytes);
        let queue = self.bench.queue();
        let event = self.bench.submit(queue, write(&host, buffer), &[]);
        self.bench.done(event);
        self.hosts.push(host);
        self.buffers.push(buffer);
        Value::Memory(Memory::Device(buffer))
    }

    fn run(&mut self, (source, sizes): &(KernelSource, NdRange), args: &[Value]) {
        let sizes = sizes.clone();
        let codelet = Arc::new(Codelet {
            name: source.entry().to_owned().into(),
            host: None,
            opencl: Some(OpenClKernel {
                source: source.clone(),
                fp64: true,
                shape: Shape::with(move |_, _| sizes.clone()),
            }),
            library: None,
        });
        let queue = self.bench.queue();
        let event = self
            .bench
            .submit(queue, launch(&codelet, 1, args.to_vec()), &[]);
        self.bench.done(event);
    }

    /// What a buffer has.
    fn get<T: bytemuck::Pod>(&mut self, index: usize) -> Vec<T> {
        let queue = self.bench.queue();
        let command = read(self.buffers[index], &self.hosts[index]);
        let event = self.bench.submit(queue, command, &[]);
        self.bench.done(event);
        contents(&self.hosts[index])
    }
}

fn words<const N: usize>(numbers: [usize; N]) -> [Value; N] {
    numbers.map(|number| Value::U32(number as u32))
}

/// Different numbers.
fn counted<T: Real>(count: usize) -> Vec<T> {
    (0..count)
        .map(|number| T::of(number as f64 + 1.0))
        .collect()
}

fn unfinished<T: Real + PartialEq + std::fmt::Debug>() {
    let (n, stride, first) = (300, 303, 5);
    for info in [0i32, 1, 120, 300] {
        let mut memories = Memories::new();
        let given = counted::<T>(first + n * stride);
        let tile = PotrfTile {
            precision: T::PRECISION,
            rows: n as u32,
        };
        let a = memories.add(&given);
        let mut args = [&[a][..], &words([n, stride]), &[Value::U64(first as u64)]].concat();
        let kernels = kernels(&tile.codelet(), &args);
        args.push(memories.add(&[info]));
        memories.run(&kernels[0], &args);
        let got = memories.get::<T>(0);
        for (index, (got, given)) in got.iter().zip(&given).enumerate() {
            let inside = index
                .checked_sub(first)
                .map(|at| (at / stride, at % stride));
            let is_out = inside.is_some_and(|(row, column)| {
                info > 0 && column + 1 >= info as usize && column <= row
            });
            match is_out {
                true => assert!(!got.double().is_finite(), "{index} of {info}"),
                false => assert_eq!(got, given, "{index} of {info}"),
            }
        }
    }
}

#[test]
fn what_a_factorisation_left_out_is_no_number() {
    unfinished::<f32>();
    unfinished::<f64>();
}

fn panel<T: Real + PartialEq + std::fmt::Debug>(m: usize, n: usize) {
    let (stride, a_first, first, pivots_first) = (n + 3, 7, 40, 2);
    let mut memories = Memories::new();
    let given = counted::<T>(a_first + m * stride);
    let a = memories.add(&given);
    let pivots = memories.add(&vec![9u32; pivots_first + n]);
    let mut args = [
        &[a, pivots][..],
        &words([m, n, first]),
        &[Value::U64(a_first as u64)],
        &words([stride]),
        &[Value::U64(pivots_first as u64)],
    ]
    .concat();
    let kernels = kernels(&LuPanel::codelet(T::PRECISION), &args);
    let word = T::PRECISION.bytes() as usize;
    let behind = m * n * word;
    let scratch = memories.add(&vec![0xabu8; behind + 4 * (2 * n + 1)]);
    args.push(scratch);
    memories.run(&kernels[0], &args);
    let mut made = memories.get::<u8>(2);
    for row in 0..m {
        for column in 0..n {
            let at = (column * m + row) * word;
            let expected = bytemuck::bytes_of(&given[a_first + row * stride + column]);
            assert_eq!(&made[at..at + word], expected, "({row}, {column})");
        }
    }
    let flags = behind + 4 * n..behind + 8 * n;
    assert!(
        made[flags].iter().all(|byte| *byte == 0),
        "no column is infinite yet"
    );

    // What a library makes: other numbers, exchanges, and one pivot of each bad kind.
    let mut lu: Vec<f64> = (0..m * n).map(|number| 0.5 + number as f64).collect();
    let exchanged = |column: usize| (column + m).div_ceil(2).min(m) as i32;
    let mut expected: Vec<u32> = (0..n)
        .map(|c| (first as i32 + exchanged(c) - 1) as u32)
        .collect();
    if n > 3 {
        lu[2 * m + m - 1] = f64::INFINITY;
        expected[2] = NOT_FINITE;
        // Above the diagonal it is nobody's concern.
        lu[3 * m] = f64::NAN;
        lu[m + 1] = 0.0;
        expected[1] = NO_PIVOT;
        expected[n - 1] = NO_PIVOT;
    }
    let lu: Vec<T> = lu.into_iter().map(T::of).collect();
    made[..behind].copy_from_slice(bytemuck::cast_slice(&lu));
    for column in 0..n {
        let at = behind + 4 * column;
        made[at..at + 4].copy_from_slice(&exchanged(column).to_ne_bytes());
    }
    let info = if n > 3 { n as i32 } else { 0 };
    made[behind + 8 * n..].copy_from_slice(&info.to_ne_bytes());
    *args.last_mut().expect("scratch") = memories.add(&made);
    memories.run(&kernels[1], &args);
    memories.run(&kernels[2], &args);
    let (got, pivots) = (memories.get::<T>(0), memories.get::<u32>(1));
    for (index, got) in got.iter().enumerate() {
        let inside = index
            .checked_sub(a_first)
            .map(|at| (at / stride, at % stride));
        let expected = match inside.filter(|(_, column)| *column < n) {
            Some((row, column)) => lu[column * m + row],
            None => given[index],
        };
        let same = got == &expected || got.double().is_nan() && expected.double().is_nan();
        assert!(same, "{index}: {got:?} for {expected:?}");
    }
    assert_eq!(pivots, [&[9; 2][..], &expected].concat());
}

#[test]
fn a_panel_goes_to_columns_and_back_with_its_pivots() {
    for (m, n) in [(1, 1), (70, 33), (40, 40), (300, 65)] {
        panel::<f32>(m, n);
        panel::<f64>(m, n);
    }
}

#[test]
fn the_rows_beside_a_panel_are_exchanged() {
    let (m, w, n, first, stride, b_first) = (50, 21, 12, 100, 24, 3);
    for precision in [Precision::F32, Precision::F64] {
        let word = precision.bytes() as usize;
        let given: Vec<u8> = (0..(b_first + m * stride) * word)
            .map(|i| (i % 251) as u8)
            .collect();
        let pivots: Vec<u32> = (0..n)
            .map(|row| (first + (row * 37 + 5) % (m - row) + row) as u32)
            .collect();
        let mut memories = Memories::new();
        let factors = memories.add(&[0u8; 8]);
        let pivots_memory = memories.add(&[&[77], &pivots[..]].concat());
        let b = memories.add(&given);
        let args = [
            &[factors, pivots_memory, b][..],
            &words([m, w, n, first]),
            &[Value::U64(0)],
            &words([n]),
            &[Value::U64(1), Value::U64(b_first as u64)],
            &words([stride]),
        ]
        .concat();
        let kernels = kernels(&LuRow::codelet(precision), &args);
        memories.run(&kernels[0], &args);
        let mut right = given.clone();
        for (row, pivot) in pivots.iter().enumerate() {
            let other = *pivot as usize - first;
            for byte in 0..w * word {
                let at = |row: usize| (b_first + row * stride) * word + byte;
                right.swap(at(row), at(other));
            }
        }
        assert!(memories.get::<u8>(2) == right);
    }
}
