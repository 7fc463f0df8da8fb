//! Products and factorisations of odd sizes against sequential references, and checks that
//! find broken results.

use std::convert::Infallible;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pdawl::codelet::{NumberFormat, Precision, ProductPrecision};
use pdawl::engine::graph::host_bytes;
use pdawl::engine::graph::reference::reference;
use pdawl::graph::{Components, DatumId};
use pdawl::machine::{Device, MachineStore};
use pdawl::runtime::Devices;
use pdawl::runtime::sim::{Sim, SimDevice, SimOptions};
use pdawl::verify::product::Verification;
use pdawl::verify::{Rounding, numbers};
use pdawl::workload::dense::*;
use pdawl::workload::task_set::{Matrix, Order, Tile, TiledGraph};

/// A task on tiles of 16.
fn task(operation: Operation, precision: impl Into<ProductPrecision>) -> DenseTask {
    DenseTask {
        operation,
        tile: 16,
        precision: precision.into(),
        order: Order::Random,
        seed: 7,
    }
}

fn product((rows, columns, depth): (u32, u32, u32)) -> Operation {
    Operation::Product {
        rows,
        columns,
        depth,
    }
}

/// A graph, and the numbers of each datum after its tasks ran one by one.
struct Computed {
    task: DenseTask,
    tiled: TiledGraph,
    data: Vec<Vec<f64>>,
}

impl Computed {
    fn new(task: DenseTask) -> Self {
        let inputs = Arc::new(Inputs::generated(task.operation, task.seed));
        let tiled = task
            .tiled(&inputs, &AtomicBool::new(false))
            .expect("a graph");
        let machine = MachineStore::at("/nonexistent").find("k40");
        let options = SimOptions {
            data: true,
            ..SimOptions::default()
        };
        let mut sim = Sim::new(&machine.expect("a machine"), options).expect("a simulator");
        let stop = AtomicBool::new(false);
        let data = reference(&mut sim, &tiled.graph, 0, &stop);
        let data = data.expect("results").expect("all of them");
        let element = |datum: usize| {
            let mut tiles = tiled.tiles.iter();
            // Versions of a result are no tiles.
            let tile = tiles.find(|(_, of)| of.0 == datum);
            let matrix = tile.map_or(Matrix::C, |(tile, _)| tile.matrix);
            matrix.element(task.precision)
        };
        let data = data.iter().enumerate();
        let data = data.map(|(datum, bytes)| numbers(bytes, element(datum)));
        Self {
            data: data.collect(),
            task,
            tiled,
        }
    }

    /// The rows of a matrix; zeros where it has no tiles.
    fn whole(&self, matrix: Matrix, (rows, columns): (u32, u32)) -> Vec<Vec<f64>> {
        let mut whole = vec![vec![0.0; columns as usize]; rows as usize];
        for (tile, datum) in self.tiled.of(matrix) {
            let width = (tile.columns.end - tile.columns.start) as usize;
            let rows = tile.rows.clone().zip(self.data[datum.0].chunks(width));
            for (row, numbers) in rows {
                whole[row as usize][tile.columns.start as usize..][..width]
                    .copy_from_slice(numbers);
            }
        }
        whole
    }

    fn verify(&self) -> Verification {
        let stop = AtomicBool::new(false);
        let read = |datum: DatumId, _| Ok::<_, Infallible>(self.data[datum.0].clone());
        let verified = self.task.verify(&self.tiled, read, &stop);
        verified.expect("numbers").expect("a verification")
    }

    /// The datum of a tile.
    fn datum(&self, matrix: Matrix, place: (u32, u32)) -> usize {
        let mut tiles = self.tiled.of(matrix);
        let (_, datum) = tiles.find(|(tile, _)| tile.place == place).expect("a tile");
        datum.0
    }
}

const PRECISIONS: [(Precision, f64); 2] = [
    (Precision::F32, f32::EPSILON as f64),
    (Precision::F64, f64::EPSILON),
];

const PRODUCTS: [ProductPrecision; 5] = [
    ProductPrecision::Single(NumberFormat::F16),
    ProductPrecision::Single(NumberFormat::Bf16),
    ProductPrecision::Single(NumberFormat::Tf32),
    ProductPrecision::Single(NumberFormat::F32),
    ProductPrecision::Double,
];

#[test]
fn products_of_odd_sizes_equal_the_reference() {
    for size in [
        (1, 1, 1),
        (33, 17, 40),
        (16, 32, 48),
        (5, 70, 3),
        (50, 1, 31),
    ] {
        for precision in PRODUCTS {
            let rounding = Rounding::from(precision);
            let (rows, columns, depth) = size;
            let computed = Computed::new(task(product(size), precision));
            let a = computed.whole(Matrix::A, (rows, depth));
            let b = computed.whole(Matrix::B, (depth, columns));
            let c = computed.whole(Matrix::C, (rows, columns));
            for (a, c) in a.iter().zip(&c) {
                for (column, found) in c.iter().enumerate() {
                    let right: f64 = a.iter().zip(&b).map(|(a, b)| a * b[column]).sum();
                    // Numbers are at most 1.
                    let of_term = 4.0 * rounding.unit + rounding.product;
                    assert!(
                        (found - right).abs() <= of_term * f64::from(depth),
                        "{size:?}: {found} {right}"
                    );
                }
            }
            let verification = computed.verify();
            assert!(verification.right(), "{size:?} {verification:?}");
        }
    }
}

#[test]
fn factors_of_odd_sizes_equal_the_matrix() {
    for rows in [1, 16, 45, 70] {
        for (precision, epsilon) in PRECISIONS {
            let operation = Operation::Factorisation { rows };
            let computed = Computed::new(task(operation, precision));
            let a = computed.whole(Matrix::A, (rows, rows));
            let l = computed.whole(Matrix::L, (rows, rows));
            for i in 0..rows as usize {
                for j in 0..=i {
                    let found: f64 = (0..=j).map(|k| l[i][k] * l[j][k]).sum();
                    let allowed = 8.0 * epsilon * f64::from(rows);
                    assert!(
                        (found - a[i][j]).abs() <= allowed,
                        "{rows}: {i}, {j}: {found}"
                    );
                }
            }
            let verification = computed.verify();
            assert!(verification.right(), "{rows} {verification:?}");
            let read = |datum: DatumId| {
                let bytes = computed.data[datum.0].iter();
                let bytes = bytes.flat_map(|number| match precision {
                    Precision::F32 => (*number as f32).to_ne_bytes().to_vec(),
                    Precision::F64 => number.to_ne_bytes().to_vec(),
                });
                Ok::<Vec<u8>, Infallible>(bytes.collect())
            };
            let bad = pivot::first_bad(&computed.tiled, precision, read);
            assert_eq!(bad, Ok(None));
        }
    }
}

/// A device of a simulated machine.
fn devices(name: &str) -> Vec<Device> {
    let machine = MachineStore::at("/nonexistent").find("k40");
    let device = match name {
        "host" => SimDevice::Host { cores: None },
        name => SimDevice::Named(name.into()),
    };
    let options = SimOptions {
        devices: Some(vec![device]),
        ..SimOptions::default()
    };
    let sim = Sim::new(&machine.expect("a machine"), options).expect("a simulator");
    sim.devices().to_vec()
}

#[test]
fn host_memory_is_that_of_the_tiles() {
    for (operation, precision) in [
        (product((33, 17, 40)), ProductPrecision::Double),
        (product((33, 17, 40)), NumberFormat::F16.into()),
        (
            Operation::Factorisation { rows: 70 },
            ProductPrecision::Double,
        ),
        (
            Operation::Factorisation { rows: 48 },
            ProductPrecision::Double,
        ),
        (
            Operation::Factorisation { rows: 9 },
            ProductPrecision::Double,
        ),
    ] {
        let task = task(operation, precision);
        let inputs = Arc::new(Inputs::generated(operation, 1));
        let tiled = task
            .tiled(&inputs, &AtomicBool::new(false))
            .expect("a graph");
        let tiles = tiled.tiles.iter();
        let bytes: u64 = tiles
            .map(|(_, datum)| tiled.graph.datum(*datum).bytes)
            .sum();
        assert_eq!(
            operation.matrix_bytes(16, task.precision),
            bytes,
            "{operation:?}"
        );
        // Updates in place share the memory of a tile. What is copied there fills pages.
        let components = Components::single_kernels(&tiled.graph);
        for device in ["host", "gpu0"] {
            let devices = devices(device);
            let taken = host_bytes(&tiled.graph, &components, &devices);
            let pages = 4096 * tiled.tiles.len() as u64;
            assert!(
                (bytes..=bytes.max(pages)).contains(&taken),
                "{operation:?} on {device}: {taken}, {bytes}"
            );
            if let Operation::Product { .. } = operation {
                assert_eq!(taken, bytes, "{operation:?} on {device}");
            }
        }
    }
    let huge = Operation::Factorisation { rows: u32::MAX };
    assert_eq!(
        product((2, 3, 4)).matrix_bytes(1, NumberFormat::Bf16.into()),
        2 * 20 + 4 * 6
    );
    assert_eq!(huge.matrix_bytes(1, ProductPrecision::Double), u64::MAX);
}

#[test]
fn generated_matrices_do_not_depend_on_tiles() {
    let factorisation = Operation::Factorisation { rows: 40 };
    for operation in [product((40, 40, 40)), factorisation] {
        let numbers = |tile| {
            let task = DenseTask {
                tile,
                ..task(operation, Precision::F64)
            };
            let mut whole = Computed::new(task).whole(Matrix::A, (40, 40));
            if operation == factorisation {
                let rows = whole.iter_mut().enumerate();
                rows.for_each(|(row, numbers)| numbers[row + 1..].fill(0.0));
            }
            whole
        };
        assert_eq!(numbers(16), numbers(40));
        assert_eq!(numbers(16), numbers(7));
    }
}

#[test]
fn a_broken_product_is_found() {
    let mut computed = Computed::new(task(product((60, 50, 70)), Precision::F32));
    let tolerance = computed.verify().tolerance;
    let c = computed.datum(Matrix::C, (2, 1));
    let right = computed.data[c].clone();

    // One number that is a little wrong.
    computed.data[c][16 * 3 + 5] += 0.01;
    let wrong = computed.verify();
    assert!(!wrong.right() && wrong.tolerance == tolerance, "{wrong:?}");
    assert_eq!((wrong.row, wrong.columns), (35, 16..32));

    // A number that is none.
    computed.data[c] = right.clone();
    computed.data[c][0] = f64::NAN;
    assert_eq!(computed.verify().error, f64::INFINITY);

    // Without what the last tiles of A and B contribute.
    let (a, b) = (
        computed.datum(Matrix::A, (2, 4)),
        computed.datum(Matrix::B, (4, 1)),
    );
    computed.data[c] = right;
    let depth = computed.data[a].len() / 16;
    for row in 0..16 {
        for column in 0..16 {
            for k in 0..depth {
                let part = computed.data[a][row * depth + k] * computed.data[b][k * 16 + column];
                computed.data[c][row * 16 + column] -= part;
            }
        }
    }
    assert!(!computed.verify().right());
}

#[test]
fn one_number_that_is_wrong_by_a_percent_is_found() {
    for format in [NumberFormat::F16, NumberFormat::Bf16, NumberFormat::F32] {
        let mut computed = Computed::new(task(product((60, 50, 70)), format));
        assert!(computed.verify().right());
        let c = computed.datum(Matrix::C, (1, 2));
        let numbers = &mut computed.data[c];
        let typical = numbers.iter().position(|number| number.abs() > 1.0);
        numbers[typical.expect("a number near the root mean square, 2.8")] *= 1.01;
        let wrong = computed.verify();
        assert!(!wrong.right(), "{format:?}: {wrong:?}");
    }
}

#[test]
fn a_wrong_number_is_found_in_every_precision() {
    for precision in PRODUCTS {
        let mut computed = Computed::new(task(product((60, 50, 70)), precision));
        let c = computed.datum(Matrix::C, (1, 2));
        computed.data[c][5] += 2.0;
        assert!(!computed.verify().right(), "{precision:?}");
    }
}

#[test]
fn factorisations_refuse_other_formats() {
    let operation = Operation::Factorisation { rows: 40 };
    for format in [NumberFormat::F16, NumberFormat::Bf16, NumberFormat::Tf32] {
        let task = task(operation, format);
        let refused = task.tiled(
            &Arc::new(Inputs::generated(operation, 1)),
            &AtomicBool::new(false),
        );
        let message = refused.unwrap_err().to_string();
        let name = format.name();
        assert_eq!(
            message,
            format!("factorisations have no precision {name}; take f32 or f64")
        );
    }
}

#[test]
fn a_broken_factor_is_found() {
    let operation = Operation::Factorisation { rows: 70 };
    for place in [(0, 0), (4, 4), (3, 1)] {
        let mut computed = Computed::new(task(operation, Precision::F32));
        let tile = computed.datum(Matrix::L, place);
        computed.data[tile][0] *= 1.003;
        let wrong = computed.verify();
        assert!(!wrong.right(), "{place:?} {wrong:?}");
    }
    // What is above the diagonal has no meaning.
    let mut computed = Computed::new(task(operation, Precision::F32));
    let tile = computed.datum(Matrix::L, (1, 1));
    computed.data[tile][5] = f64::NAN;
    assert!(computed.verify().right());
}

#[test]
fn the_first_pivot_that_is_not_positive_is_named() {
    let operation = Operation::Factorisation { rows: 40 };
    let task = task(operation, Precision::F64);
    let inputs = Arc::new(Inputs::generated(operation, 1));
    let tiled = task
        .tiled(&inputs, &AtomicBool::new(false))
        .expect("a graph");
    let find = |wrong: Range<u64>, number: f64| {
        let read = |datum: DatumId| {
            let tiles: Vec<&(Tile, DatumId)> = tiled.of(Matrix::L).collect();
            let (tile, _) = tiles.iter().find(|(_, of)| *of == datum).expect("a tile");
            let mut bytes = Vec::new();
            for row in tile.rows.clone() {
                for column in tile.columns.clone() {
                    let is_wrong = row == column && wrong.contains(&row);
                    let number = if is_wrong { number } else { 1.0 };
                    bytes.extend(number.to_ne_bytes());
                }
            }
            Ok::<_, Infallible>(bytes)
        };
        pivot::first_bad(&tiled, Precision::F64, read).expect("numbers")
    };
    assert_eq!(find(0..0, 0.0), None);
    assert_eq!(find(18..40, f64::NAN), Some(18));
    assert_eq!(find(39..40, 0.0), Some(39));
    assert_eq!(find(0..1, f64::INFINITY), Some(0));
}

#[test]
fn a_check_ends_on_request() {
    let computed = Computed::new(task(product((5, 5, 5)), Precision::F32));
    let stop = AtomicBool::new(true);
    let read = |datum: DatumId, _| Ok::<_, Infallible>(computed.data[datum.0].clone());
    let verified = computed.task.verify(&computed.tiled, read, &stop);
    assert_eq!(verified, Ok(None));
}
