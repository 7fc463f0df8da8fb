//! The stencil kernels compared with plain loops, bit for bit.

use std::fmt::Debug;
use std::ops::{Add, Mul};
use std::sync::Arc;

use pdawl_api::codelet::stencil::{self, Dimensions, Precision, Rule};
use pdawl_api::codelet::{Memory, Value};

use super::harness::{Bench, contents, launch, read, write};

trait Real: bytemuck::Pod + Add<Output = Self> + Mul<Output = Self> + PartialEq + Debug + Copy {
    const PRECISION: Precision;
    const POISON: Self;
    fn value(bits: u64) -> Self;
    fn weight(points: u32) -> Self;
    fn from_double(double: f64) -> Self;
    fn arg(self) -> Value;
}

impl Real for f64 {
    const PRECISION: Precision = Precision::F64;
    const POISON: Self = -7.25e300;
    fn value(bits: u64) -> Self {
        (bits >> 11) as f64 / (1u64 << 53) as f64
    }
    fn weight(points: u32) -> Self {
        1.0 / f64::from(points)
    }
    fn from_double(double: f64) -> Self {
        double
    }
    fn arg(self) -> Value {
        Value::F64(self)
    }
}

impl Real for f32 {
    const PRECISION: Precision = Precision::F32;
    const POISON: Self = -7.25e30;
    fn value(bits: u64) -> Self {
        (bits >> 40) as f32 / (1u32 << 24) as f32
    }
    fn weight(points: u32) -> Self {
        1.0 / points as f32
    }
    fn from_double(double: f64) -> Self {
        double as f32
    }
    fn arg(self) -> Value {
        Value::F32(self)
    }
}

/// A launch to check, on a part of a grid in rings.
#[derive(Clone, Copy, Debug)]
struct Case {
    nx: usize,
    /// Rows of a plane in 3-D.
    ny: Option<usize>,
    /// Rows or planes of the grid.
    units: usize,
    first: usize,
    count: usize,
    from: (usize, usize),
    to: (usize, usize),
    /// Whether both rings are in one memory.
    in_place: bool,
    /// Whether the kernel uses host memory instead of buffers.
    on_host: bool,
}

impl Case {
    /// A whole grid, in rings of its size.
    fn whole(nx: usize, ny: Option<usize>, units: usize) -> Self {
        Self {
            nx,
            ny,
            units,
            first: 0,
            count: units,
            from: (0, units),
            to: (0, units),
            in_place: false,
            on_host: false,
        }
    }

    fn unit_points(&self) -> usize {
        self.nx * self.ny.unwrap_or(1)
    }
}

/// Coefficients in the order of the arguments, of which no two are alike.
const COEFFICIENTS: [f64; 7] = [0.31, -0.17, 0.23, 0.11, 0.05, -0.07, 0.13];

fn noise<T: Real>(points: usize) -> Vec<T> {
    (0..points as u64)
        .map(|i| T::value((i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)))
        .collect()
}

/// The reference: the next version of a whole grid.
fn reference<T: Real>(grid: &[T], case: &Case, rule: Rule) -> Vec<T> {
    let [cc, cn, cs, cw, ce, cb, ca] = COEFFICIENTS.map(T::from_double);
    let (nx, plane) = (case.nx, case.unit_points());
    let mut next = grid.to_vec();
    for i in 0..grid.len() {
        let (x, y, z) = (i % nx, i % plane / nx, i / plane);
        let edge = x == 0 || x + 1 == nx || z == 0 || z + 1 == case.units;
        let sides = |step: usize| (grid[i - step], grid[i + step]);
        match case.ny {
            None if !edge => {
                let ((north, south), (west, east)) = (sides(nx), sides(1));
                next[i] = match rule {
                    Rule::Mean => (((north + south) + (west + east)) + grid[i]) * T::weight(5),
                    Rule::Weighted => {
                        ((north * cn + south * cs) + (west * cw + east * ce)) + grid[i] * cc
                    }
                };
            }
            Some(ny) if !edge && y > 0 && y + 1 < ny => {
                let ((north, south), (west, east)) = (sides(nx), sides(1));
                let (below, above) = sides(plane);
                next[i] = match rule {
                    Rule::Mean => {
                        (((north + south) + (west + east)) + ((below + above) + grid[i]))
                            * T::weight(7)
                    }
                    Rule::Weighted => {
                        (((north * cn + south * cs) + (west * cw + east * ce))
                            + (below * cb + above * ca))
                            + grid[i] * cc
                    }
                };
            }
            _ => {}
        }
    }
    next
}

/// Runs a case on the device by both rules.
fn check<T: Real>(bench: &mut Bench, case: Case) {
    for rule in [Rule::Mean, Rule::Weighted] {
        check_rule::<T>(bench, case, rule);
    }
}

/// Runs a case on the device and compares all of the output ring.
fn check_rule<T: Real>(bench: &mut Bench, case: Case, rule: Rule) {
    let points = case.unit_points();
    let grid = noise::<T>(points * case.units);
    let expected = reference(&grid, &case, rule);
    let unit = |grid: &[T], u: usize| grid[u * points..][..points].to_vec();

    // Elements that the launch must not read or write hold the poison value.
    let mut from = vec![T::POISON; case.from.1 * points];
    let read_first = case.first.saturating_sub(1);
    for u in read_first..(case.first + case.count + 1).min(case.units) {
        let slot = (case.from.0 + case.from.1 + u - case.first) % case.from.1;
        from[slot * points..][..points].copy_from_slice(&unit(&grid, u));
    }
    let mut after = if case.in_place {
        from.clone()
    } else {
        vec![T::POISON; case.to.1 * points]
    };
    for i in 0..case.count {
        let slot = (case.to.0 + i) % case.to.1;
        after[slot * points..][..points].copy_from_slice(&unit(&expected, case.first + i));
    }

    let queue = bench.queue();
    let source = bench.host(&from);
    let target = bench.host(&vec![T::POISON; case.to.1 * points]);
    let (a, b) = (bench.buffer(source.bytes), bench.buffer(target.bytes));
    let (from_memory, to_memory) = if case.on_host {
        (Memory::Host(source.id), Memory::Host(target.id))
    } else {
        bench.submit(queue, write(&source, a), &[]);
        bench.submit(queue, write(&target, b), &[]);
        (Memory::Device(a), Memory::Device(b))
    };
    let to_memory = if case.in_place {
        from_memory
    } else {
        to_memory
    };
    let dimensions = match case.ny {
        None => Dimensions::Two,
        Some(_) => Dimensions::Three,
    };
    let number = |n: usize| Value::U32(n as u32);
    let mut args = vec![
        Value::Memory(from_memory),
        Value::Memory(to_memory),
        number(case.from.0),
        number(case.from.1),
        number(case.to.0),
        number(case.to.1),
        number(case.first),
        number(case.count),
        number(case.units),
        number(case.nx),
        number(case.ny.unwrap_or(1)),
    ];
    let terms = dimensions.neighbourhood().len();
    match rule {
        Rule::Mean => args.push(T::weight(terms as u32).arg()),
        Rule::Weighted => {
            let coefficients = COEFFICIENTS[..terms].iter();
            args.extend(coefficients.map(|of| T::from_double(*of).arg()));
        }
    }
    let codelet = Arc::new(stencil::codelet(dimensions, T::PRECISION, rule));
    let mut event = bench.submit(queue, launch(&codelet, case.count as u64, args), &[]);
    let result = if case.in_place { &source } else { &target };
    if !case.on_host {
        let buffer = if case.in_place { a } else { b };
        event = bench.submit(queue, read(buffer, result), &[event]);
    }
    bench.done(event);
    let got = contents::<T>(result);
    let wrong = got.iter().zip(&after).position(|(a, b)| a != b);
    if let Some(i) = wrong {
        panic!(
            "{case:?} {rule:?}: slot {}, point {}: {:?} instead of {:?}",
            i / points,
            i % points,
            got[i],
            after[i]
        );
    }
    // Queues that exist at the same time each compile a program.
    bench.backend.free_queue(queue);
    bench.backend.free(a);
    bench.backend.free(b);
    bench.backend.forget_host(source.id);
    bench.backend.forget_host(target.id);
}

#[test]
fn whole_grids_of_odd_sizes_agree_bit_for_bit() {
    let mut bench = Bench::cpu();
    for (nx, units) in [
        (3, 3),
        (4099, 17),
        (17, 4099),
        (97, 101),
        (101, 97),
        (256, 8),
    ] {
        check::<f64>(&mut bench, Case::whole(nx, None, units));
        check::<f32>(&mut bench, Case::whole(nx, None, units));
    }
}

#[test]
fn parts_of_a_grid_read_and_write_nothing_else() {
    let mut bench = Bench::cpu();
    for (first, count) in [(0, 1), (1, 1), (22, 1), (0, 9), (5, 8), (7, 16), (16, 7)] {
        let case = Case {
            first,
            count,
            from: (1, count + 2),
            to: (2, count + 3),
            ..Case::whole(131, None, 23)
        };
        check::<f64>(&mut bench, case);
        check::<f64>(
            &mut bench,
            Case {
                on_host: true,
                ..case
            },
        );
    }
}

#[test]
fn rings_wrap_wherever_they_begin() {
    let mut bench = Bench::cpu();
    for from_slot in 0..13 {
        let case = Case {
            first: 3,
            count: 10,
            from: (from_slot, 13),
            to: (12 - from_slot, 14),
            ..Case::whole(37, None, 19)
        };
        check::<f64>(&mut bench, case);
    }
}

#[test]
fn one_ring_holds_both_versions() {
    // A grid moves through its ring: the next version begins before the present
    // one, and the slots that it is written to are free.
    let mut bench = Bench::cpu();
    for from_slot in 0..21 {
        let case = Case {
            first: 4,
            count: 9,
            from: (from_slot, 21),
            to: ((from_slot + 10) % 21, 21),
            in_place: true,
            ..Case::whole(65, None, 30)
        };
        check::<f64>(&mut bench, case);
        check::<f32>(
            &mut bench,
            Case {
                on_host: true,
                ..case
            },
        );
    }
}

#[test]
fn solid_grids_agree_bit_for_bit() {
    let mut bench = Bench::cpu();
    for (nx, ny, units) in [(3, 3, 3), (67, 5, 9), (65, 33, 11)] {
        check::<f64>(&mut bench, Case::whole(nx, Some(ny), units));
        check::<f32>(&mut bench, Case::whole(nx, Some(ny), units));
    }
    for from_slot in 0..9 {
        let case = Case {
            first: 2,
            count: 6,
            from: (from_slot, 9),
            to: (8 - from_slot, 9),
            on_host: from_slot % 2 == 0,
            ..Case::whole(19, Some(7), 11)
        };
        check::<f64>(&mut bench, case);
    }
}
