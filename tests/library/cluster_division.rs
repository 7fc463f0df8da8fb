//! Subtasks that several devices of a node compute together. Results are compared with those of
//! a sequential program.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pdawl_api::cluster::info::DeviceInfo;
use pdawl_api::cluster::space::Block;
use pdawl_api::cluster::wire::{LocalWire, Wire};
use pdawl_api::codelet::{Cost, NdRange, Value};
use pdawl_api::engine::cluster::expected;
use pdawl_api::machine::MachineStore;
use pdawl_api::runtime::Devices;
use pdawl_api::runtime::sim::{Sim, SimOptions};
use pdawl_api::spread::NamedSpread;
use pdawl_api::verify::Checked;
use pdawl_api::workload::cluster::program::{Program, ProgramTask, SubtaskKernel, View, ViewMut};

use crate::cluster::{Case, Ran};
use crate::pocl;
use crate::shuffled_runtime::{Fault, ShuffledRuntime, device};

/// Where the elements of the block are that has the row `first_row` and the column
/// `first_column` first and is so wide: by rows without gaps, or in the whole space.
const KERNELS: &str = "
    __kernel void compact(__global const long *a, __global const long *b, __global long *to,
                          ulong first_row, ulong first_column, ulong width,
                          ulong rows, ulong columns, long keeps) {
        size_t i = get_global_id(0);
        size_t row = first_row + i / width, column = first_column + i % width;
        to[i] = keeps * to[i] + 3 * a[i] + b[(row + 1) % rows * columns + column];
    }
    __kernel void natural(__global const long *a, __global const long *b, __global long *to,
                          ulong first_row, ulong first_column, ulong width,
                          ulong rows, ulong columns, long keeps) {
        size_t i = get_global_id(0);
        size_t row = first_row + i / width, column = first_column + i % width;
        size_t at = row * columns + column;
        to[at] = keeps * to[at] + 3 * a[at] + b[(row + 1) % rows * columns + column];
    }
";

/// Work of so many seconds on devices of which nothing is known.
const LONG: f64 = 1e14;

/// A task of some bands of rows.
#[derive(Clone, Copy, Debug)]
struct Bands {
    rows: u64,
    columns: u64,
    count: u64,
    is_natural: bool,
    /// Whether a part reads its own lines only.
    by_lines: bool,
    /// Whether what is written begins with its contents.
    keeps: bool,
    /// Whether the kernel says how it computes some lines.
    divides: bool,
    flops: f64,
}

impl Bands {
    fn random(random: &mut fastrand::Rng) -> Self {
        let rows = random.u64(1..20);
        let is_natural = random.bool();
        Self {
            rows,
            columns: random.u64(1..12),
            count: random.u64(1..=rows.min(3)),
            is_natural,
            by_lines: !is_natural || random.bool(),
            keeps: random.bool(),
            divides: true,
            flops: LONG,
        }
    }

    /// The band of a subtask, or some lines of it: columns if it has one row.
    fn block(self, subtask: u64, lines: Option<Range<u64>>) -> Block {
        let cut = |band: u64| self.rows * band / self.count;
        let (rows, columns) = (cut(subtask)..cut(subtask + 1), 0..self.columns);
        match lines {
            Some(lines) if rows.end - rows.start > 1 => Block::new(lines, columns),
            Some(lines) => Block::new(rows, lines),
            None => Block::new(rows, columns),
        }
    }

    fn launch(self, block: &Block) -> (NdRange, Vec<Value>) {
        let values = [
            block.rows.start,
            block.columns.start,
            block.width(),
            self.rows,
            self.columns,
            u64::from(self.keeps),
        ];
        let range = NdRange::new(vec![block.elements() as usize]);
        (range, values.map(Value::U64).to_vec())
    }

    fn kernel(self) -> SubtaskKernel {
        let entry = if self.is_natural {
            "natural"
        } else {
            "compact"
        };
        let range = move |subtask| self.launch(&self.block(subtask, None)).0;
        let kernel = SubtaskKernel::new(KERNELS, entry, range).expect("the source has it");
        let kernel = kernel.values(move |subtask| self.launch(&self.block(subtask, None)).1);
        let of_lines = move |subtask, lines| self.launch(&self.block(subtask, Some(lines)));
        match self.divides {
            true => kernel.by_lines(of_lines),
            false => kernel,
        }
    }

    fn element(self, row: u64, column: u64) -> i64 {
        (row * 1000 + column * 7) as i64
    }

    fn right(self, row: u64, column: u64) -> i64 {
        let old = if self.keeps { 5 - row as i64 } else { 0 };
        let b = self.element((row + 1) % self.rows, column) - 4;
        old + 3 * self.element(row, column) + b
    }

    fn program(self) -> Program {
        let mut program = Program::new("bands");
        let (rows, columns) = (self.rows, self.columns);
        let a = program.given(rows, columns, move |row, column| self.element(row, column));
        let b = program.given(rows, columns, move |row, column| {
            self.element(row, column) - 4
        });
        let to = match self.keeps {
            true => program.given(rows, columns, |row, _| 5 - row as i64),
            false => program.space(rows, columns),
        };
        let band = move |subtask| self.block(subtask, None);
        let read = a.read(band);
        let read = match self.by_lines {
            true => read.by_lines(move |subtask, lines| self.block(subtask, Some(lines))),
            false => read,
        };
        let write = match self.keeps {
            true => to.update(band),
            false => to.write(band).full(),
        };
        let (read, write) = match self.is_natural {
            true => (read.natural(), write.natural()),
            false => (read, write),
        };
        let accesses = (read, b.read(move |_| b.whole()), write);
        type Views<'a> = (View<'a, i64>, View<'a, i64>, ViewMut<'a, i64>);
        let function = move |_, (a, b, mut to): Views| {
            let block = to.block().clone();
            for (row, column) in places(&block) {
                let old = if self.keeps { to[(row, column)] } else { 0 };
                let other = b[((row + 1) % rows, column)];
                to[(row, column)] = old + 3 * a[(row, column)] + other;
            }
        };
        let task = ProgramTask::new("bands", self.count, accesses, function);
        let flops = self.flops;
        let task = task.cost(move |_| Cost { flops, bytes: 0.0 });
        program.add_task(task.with_kernel(self.kernel()));
        program.set_result(to);
        program.set_compare(move |block, bytes, _| {
            let mut checked = Checked::default();
            for (found, (row, column)) in bytes.as_chunks().0.iter().zip(places(block)) {
                checked.exactly(i64::from_ne_bytes(*found) == self.right(row, column));
            }
            checked
        });
        program
    }

    fn case(self, nodes: usize, random: &mut fastrand::Rng) -> Case {
        Case {
            workload: Arc::new(self.program()),
            tile: 1,
            spread: NamedSpread::default(),
            prefetch: random.u32(..4),
            nodes,
            seed: random.u64(..),
        }
    }
}

fn places(block: &Block) -> impl Iterator<Item = (u64, u64)> + use<> {
    let columns = block.columns.clone();
    let rows = block.rows.clone();
    rows.flat_map(move |row| columns.clone().map(move |column| (row, column)))
}

/// How many subtasks were divided, after a right result.
fn divided(ran: Vec<Ran>, bands: Bands) -> (u64, usize) {
    let mut ran = (ran.into_iter()).map(|ran| ran.unwrap_or_else(|why| panic!("{bands:?}: {why}")));
    let outcome = ran
        .next()
        .flatten()
        .expect("the first rank has the outcome");
    let checked = outcome.checked().expect("the result was compared");
    assert!(checked.numbers > 0);
    assert_eq!(checked.wrong, 0, "{bands:?}: {checked:?}");
    let losses = outcome.nodes.iter().filter(|node| !node.notes.is_empty());
    (
        outcome.nodes.iter().map(|node| node.divided).sum(),
        losses.count(),
    )
}

fn seed() -> u64 {
    let seed = fastrand::u64(..1 << 40);
    println!("seed {seed}");
    seed
}

/// Nodes with three devices like each other, one of which may fail at some moment.
fn on_three(case: &Case, fault: Option<Fault>, wire: LocalWire, stop: &AtomicBool) -> Ran {
    let own = Some(1 << 30);
    let devices = ["one", "two", "three"].map(|name| device(name, own));
    let fault = fault.filter(|_| wire.rank() + 1 == case.nodes);
    let mut runtime = ShuffledRuntime::new(devices.to_vec(), case.seed, fault);
    case.on(&mut runtime, wire, stop)
}

#[test]
fn parts_of_subtasks_make_the_result_of_the_whole() {
    let seed = seed();
    let mut random = fastrand::Rng::with_seed(seed);
    let mut all = 0;
    for _ in 0..40 {
        let bands = Bands::random(&mut random);
        let case = bands.case(random.usize(1..=2), &mut random);
        let ran = case.run_as(|wire, stop| on_three(&case, None, wire, stop), |_| {});
        all += divided(ran, bands).0;
    }
    assert!(all > 20, "{all} were divided");
}

/// The part of a device that fails is computed by others.
#[test]
fn a_device_that_is_lost_with_a_part_does_not_change_the_result() {
    let seed = seed();
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut all, mut losses) = (0, 0);
    for _ in 0..60 {
        let bands = Bands::random(&mut random);
        let case = bands.case(random.usize(1..=2), &mut random);
        let fault = Fault {
            device: random.usize(..3),
            after: random.u64(..6),
        };
        let ran = case.run_as(
            |wire, stop| on_three(&case, Some(fault), wire, stop),
            |_| {},
        );
        let (parts, lost) = divided(ran, bands);
        all += parts;
        losses += lost;
    }
    assert!(all > 5 && losses > 5, "{all} divided, {losses} losses");
}

/// More subtasks than devices, and subtasks that take less than a launch, are not divided.
#[test]
fn subtasks_are_not_divided_where_that_does_not_pay() {
    let mut random = fastrand::Rng::with_seed(7);
    let many = Bands {
        rows: 48,
        columns: 3,
        count: 24,
        is_natural: false,
        by_lines: true,
        keeps: false,
        divides: true,
        flops: LONG,
    };
    let short = Bands {
        count: 1,
        flops: 1000.0,
        ..many
    };
    for bands in [many, short] {
        let case = bands.case(1, &mut random);
        let ran = case.run_as(|wire, stop| on_three(&case, None, wire, stop), |_| {});
        assert_eq!(divided(ran, bands), (0, 0), "{bands:?}");
    }
}

/// How many subtasks two simulated GPUs and a host have divided, and the virtual seconds of the
/// device that has computed longest.
fn simulated(bands: Bands) -> (u64, f64) {
    let case = bands.case(1, &mut fastrand::Rng::with_seed(3));
    let ran = case.run_as(
        |wire, stop| {
            let machine = MachineStore::of_user().find("v100x2").expect("it ships");
            let options = SimOptions {
                data: true,
                noise: Some(0.0),
                ..SimOptions::default()
            };
            let mut runtime = Sim::new(&machine, options).expect("the machine is right");
            case.on(&mut runtime, wire, stop)
        },
        |_| {},
    );
    let first = ran.into_iter().next().expect("a rank").expect("it runs");
    let outcome = first.expect("the first rank has the outcome");
    let node = &outcome.nodes[0];
    let seconds = node.devices.iter().map(|device| device.seconds);
    (node.divided, seconds.fold(0.0, f64::max))
}

#[test]
fn two_gpus_take_half_of_the_time_of_one() {
    let undivided = Bands {
        rows: 16,
        columns: 8,
        count: 1,
        is_natural: false,
        by_lines: true,
        keeps: false,
        divides: false,
        flops: 1e12,
    };
    let (none, alone) = simulated(undivided);
    let divides = true;
    let (one, together) = simulated(Bands {
        divides,
        ..undivided
    });
    assert_eq!((none, one), (0, 1));
    println!("{together} s together, {alone} s alone");
    assert!(together < 0.6 * alone, "{together} s, and {alone} s alone");
}

/// A function on the host and a kernel on an OpenCL device with memory of its own.
#[test]
fn a_host_and_an_opencl_device_divide_a_subtask() {
    let seed = seed();
    let mut random = fastrand::Rng::with_seed(seed);
    for is_natural in [false, true] {
        for keeps in [false, true] {
            let bands = Bands {
                rows: 30,
                count: 1,
                is_natural,
                by_lines: true,
                keeps,
                ..Bands::random(&mut random)
            };
            let case = bands.case(1, &mut random);
            let ran = case.run_as(
                |wire, stop| {
                    let mut runtime = pocl::open("host:1,cpu:1=own");
                    let devices = runtime.devices().iter().map(expected);
                    // As fast as each other, whatever their clocks are.
                    let alike = devices.map(|device| DeviceInfo {
                        flops: 1e10,
                        memory_bandwidth: 1e10,
                        ..device
                    });
                    let alike = alike.collect();
                    case.with(&mut runtime, alike, wire, stop)
                },
                |_| {},
            );
            assert_eq!(divided(ran, bands), (1, 0), "{bands:?}");
        }
    }
}

#[test]
fn a_part_that_reads_what_its_subtask_does_not_is_refused() {
    let mut program = Program::new("more");
    let a = program.given(8, 4, |_, _| 1_i64);
    let to = program.space::<i64>(8, 4);
    let half = Block::new(0..4, 0..4);
    let read = a.read(move |_| half.clone());
    let read = read.by_lines(|_, lines| Block::new(lines.start..8, 0..4));
    let write = to.write(|_| Block::new(0..4, 0..4));
    let range = |_| NdRange::new(vec![1]);
    let source = "__kernel void more(__global const long *a, __global long *to) { to[0] = a[0]; }";
    let kernel = SubtaskKernel::new(source, "more", range).expect("the source has it");
    let kernel = kernel.by_lines(|_, _| (NdRange::new(vec![1]), Vec::new()));
    let task = ProgramTask::new("more", 1, (read, write), |_, _| {}).with_kernel(kernel);
    program.add_task(task.cost(|_| Cost {
        flops: LONG,
        bytes: 0.0,
    }));
    program.set_result(to);
    let case = Case {
        workload: Arc::new(program),
        tile: 1,
        spread: NamedSpread::default(),
        prefetch: 1,
        nodes: 1,
        seed: 3,
    };
    let mut ran = case.run_as(|wire, stop| on_three(&case, None, wire, stop), |_| {});
    let error = ran.remove(0).expect_err("it cannot run").to_string();
    assert!(
        error.contains("a part of subtask 0 of more") && error.contains("does not read"),
        "{error}"
    );
}
