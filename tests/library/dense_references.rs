//! Products and factorisations of odd sizes in tiles, against plain loops, and checks that find
//! broken results.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pdawl_api::cluster::space::{Block, Extent};
use pdawl_api::codelet::{Element, NumberFormat, Precision, ProductPrecision};
use pdawl_api::engine::cluster::{Alone, Control};
use pdawl_api::engine::graph::kernel_seconds::KernelSeconds;
use pdawl_api::machine::MachineStore;
use pdawl_api::policy::WINDOW;
use pdawl_api::runtime::Devices;
use pdawl_api::runtime::sim::{Sim, SimDevice, SimOptions};
use pdawl_api::verify::{Checked, Rounding, numbers};
use pdawl_api::workload::cluster::{
    Check, Cholesky, Fill, Fit, Lone, Operation, Place, Placed, Placement, Product, definite,
    generated_as,
};

use crate::run_alone::run_alone;

const PRODUCTS: [ProductPrecision; 5] = [
    ProductPrecision::Single(NumberFormat::F16),
    ProductPrecision::Single(NumberFormat::Bf16),
    ProductPrecision::Single(NumberFormat::Tf32),
    ProductPrecision::Single(NumberFormat::F32),
    ProductPrecision::Double,
];

const PRECISIONS: [(Precision, f64); 2] = [
    (Precision::F32, f32::EPSILON as f64),
    (Precision::F64, f64::EPSILON),
];

fn uniform(element: Element, [rows, columns]: [u64; 2], seed: u64) -> Fill {
    let extent = Extent {
        rows,
        columns,
        element: element.bytes(),
    };
    generated_as(element, extent, seed)
}

fn product([rows, columns, depth]: [u64; 3], precision: impl Into<ProductPrecision>) -> Product {
    let precision = precision.into();
    Product {
        rows,
        columns,
        depth,
        precision,
        a: uniform(precision.factors(), [rows, depth], 7),
        b: uniform(precision.factors(), [depth, columns], 8),
    }
}

fn factorisation(size: u64, precision: Precision) -> Cholesky {
    Cholesky {
        size,
        precision,
        matrix: definite(precision, size, 7),
    }
}

/// The rows of a matrix.
fn whole(fill: &Fill, [rows, columns]: [u64; 2], element: Element) -> Vec<Vec<f64>> {
    let mut bytes = vec![0; (rows * columns * element.bytes()) as usize];
    fill(&Block::new(0..rows, 0..columns), &mut bytes).expect("contents");
    rows_of(&bytes, columns, element)
}

fn rows_of(bytes: &[u8], columns: u64, element: Element) -> Vec<Vec<f64>> {
    let all = numbers(bytes, element);
    all.chunks(columns as usize).map(<[f64]>::to_vec).collect()
}

/// A simulated device with data.
fn sim(device: SimDevice) -> Sim {
    let machine = MachineStore::at("/nonexistent").find("k40");
    let options = SimOptions {
        data: true,
        devices: Some(vec![device]),
        ..SimOptions::default()
    };
    Sim::new(&machine.expect("a machine"), options).expect("a simulator")
}

/// The operation in tiles of 16 on a host.
fn placed(operation: &Operation) -> Placed {
    let place = Place::Alone(Lone::on(sim(devices()[0].clone()).devices(), None));
    operation.at(place, Some(16)).expect("a workload")
}

/// The result in tiles of 16, which the workload's own check finds right.
fn computed(operation: &Operation, device: SimDevice) -> Vec<u8> {
    let mut runtime = sim(device);
    let place = Place::Alone(Lone::on(runtime.devices(), None));
    let placed = operation.at(place, Some(16)).expect("a workload");
    let stop = AtomicBool::new(false);
    let shuffled = Some(5);
    let alone = Alone::new(&*placed.workload, [operation.outputs[0]], shuffled, &stop);
    let alone = alone.expect("a graph");
    let taken = u128::from(alone.host_bytes(runtime.devices()));
    assert_eq!(taken, operation.bytes, "{}", operation.title);
    let mut result = Vec::new();
    let mut control = Control {
        tile: 16,
        verify: Some(3),
        outputs: vec![(operation.outputs[0], &mut result)],
        progress: &mut |_| {},
    };
    let seconds = KernelSeconds::default();
    let by = ("eager", WINDOW, None);
    let ran = run_alone(&alone, &mut runtime, &seconds, by, &mut control);
    let checked = ran.expect("a run").0.checked().expect("a check");
    assert!(checked.numbers > 0 && checked.wrong == 0, "{checked:?}");
    result
}

fn devices() -> [SimDevice; 2] {
    [
        SimDevice::Host { cores: None },
        SimDevice::Named("gpu0".into()),
    ]
}

#[test]
fn products_of_odd_sizes_equal_the_reference() {
    for size in [
        [1, 1, 1],
        [33, 17, 40],
        [16, 32, 48],
        [5, 70, 3],
        [50, 1, 31],
    ] {
        for precision in PRODUCTS {
            let rounding = Rounding::from(precision);
            let [rows, columns, depth] = size;
            let of = product(size, precision);
            let a = whole(&of.a, [rows, depth], precision.factors());
            let b = whole(&of.b, [depth, columns], precision.factors());
            let operation = of.operation(Placement::Rows);
            for device in devices() {
                let c = computed(&operation, device);
                let c = rows_of(&c, columns, precision.sums().into());
                for (a, c) in a.iter().zip(&c) {
                    for (column, found) in c.iter().enumerate() {
                        let right: f64 = a.iter().zip(&b).map(|(a, b)| a * b[column]).sum();
                        // Numbers are at most 1.
                        let of_term = 4.0 * rounding.unit + rounding.product;
                        assert!(
                            (found - right).abs() <= of_term * depth as f64,
                            "{size:?}: {found} {right}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn factors_of_odd_sizes_equal_the_matrix() {
    for size in [1, 16, 45, 70] {
        for (precision, epsilon) in PRECISIONS {
            let of = factorisation(size, precision);
            let a = whole(&of.matrix, [size, size], precision.into());
            let operation = of.operation();
            for device in devices() {
                let l = computed(&operation, device);
                let l = rows_of(&l, size, precision.into());
                for i in 0..size as usize {
                    for j in 0..=i {
                        let found: f64 = (0..=j).map(|k| l[i][k] * l[j][k]).sum();
                        let allowed = 8.0 * epsilon * size as f64;
                        assert!(
                            (found - a[i][j]).abs() <= allowed,
                            "{size}: {i}, {j}: {found}"
                        );
                    }
                    assert!(l[i][i + 1..].iter().all(|number| *number == 0.0));
                }
            }
        }
    }
}

#[test]
fn a_definite_matrix_is_symmetric_and_does_not_depend_on_blocks() {
    let fill = definite(Precision::F64, 40, 3);
    let all = whole(&fill, [40, 40], Element::F64);
    let mut part = vec![0; 8 * 3 * 5];
    fill(&Block::new(7..10, 20..25), &mut part).expect("contents");
    for (row, part) in (7..).zip(rows_of(&part, 5, Element::F64)) {
        assert_eq!(part, all[row][20..25]);
        assert!((20..25).all(|column| all[row][column] == all[column][row]));
    }
}

/// A product of 60 x 70 x 50, and its numbers.
fn right(precision: impl Into<ProductPrecision>) -> (Product, Vec<f64>) {
    let of = product([60, 50, 70], precision);
    let c = computed(&of.clone().operation(Placement::Rows), devices()[0].clone());
    let c = numbers(&c, of.precision.sums());
    (of, c)
}

fn compare(of: &Product, c: &[f64]) -> Checked {
    let element = Element::from(of.precision.sums());
    let mut bytes = vec![0; c.len() * element.bytes() as usize];
    element.store(c.iter().copied(), &mut bytes);
    let placed = placed(&of.clone().operation(Placement::Rows));
    let Check::Whole(spaces, check) = placed.workload.check() else {
        panic!("a product in tiles is compared as a whole");
    };
    assert_eq!(spaces, [Product::RESULT]);
    check(&[&bytes], 3)
}

#[test]
fn a_broken_product_is_found() {
    let (of, right) = right(Precision::F32);
    assert_eq!(compare(&of, &right).wrong, 0);

    // One number that is a little wrong.
    let mut c = right.clone();
    c[35 * 50 + 16] += 0.01;
    let wrong = compare(&of, &c);
    assert!(wrong.wrong > 0);
    assert_eq!(wrong.at, Some([35, 14, 21]));

    // A number that is none.
    let mut c = right.clone();
    c[0] = f64::NAN;
    assert_eq!(compare(&of, &c).worst, f64::MAX);

    // Without what the last of the depth contributes.
    let (a, b) = (
        whole(&of.a, [60, 70], Element::F32),
        whole(&of.b, [70, 50], Element::F32),
    );
    let mut c = right;
    for row in 32..48 {
        for column in 16..32 {
            let last = (64..70).map(|k| a[row][k] * b[k][column]);
            c[row * 50 + column] -= last.sum::<f64>();
        }
    }
    assert!(compare(&of, &c).wrong > 0);
}

#[test]
fn one_number_that_is_wrong_by_a_percent_is_found() {
    for format in [NumberFormat::F16, NumberFormat::Bf16, NumberFormat::F32] {
        let (of, mut c) = right(format);
        let typical = c.iter().position(|number| number.abs() > 1.0);
        c[typical.expect("a number near the root mean square, 2.8")] *= 1.01;
        assert!(compare(&of, &c).wrong > 0, "{format:?}");
    }
}

#[test]
fn a_wrong_number_is_found_in_every_precision() {
    for precision in PRODUCTS {
        let (of, mut c) = right(precision);
        c[16 * 50 + 37] += 2.0;
        assert!(compare(&of, &c).wrong > 0, "{precision:?}");
    }
}

/// The program of a factorisation of 70 rows, and the bytes of its factor.
fn factored() -> (Placed, Vec<u8>) {
    let operation = factorisation(70, Precision::F32).operation();
    (
        placed(&operation),
        computed(&operation, devices()[0].clone()),
    )
}

fn with(l: &[u8], [row, column]: [usize; 2], change: impl Fn(f32) -> f32) -> Vec<u8> {
    let mut numbers: Vec<f32> = bytemuck::pod_collect_to_vec(l);
    let number = &mut numbers[row * 70 + column];
    *number = change(*number);
    bytemuck::cast_slice(&numbers).to_vec()
}

#[test]
fn a_broken_factor_is_found() {
    let (placed, l) = factored();
    let Check::Whole(spaces, check) = placed.workload.check() else {
        panic!("a factor is compared as a whole");
    };
    assert_eq!(spaces, [0]);
    for place in [[0, 0], [64, 64], [48, 16]] {
        let wrong = with(&l, place, |number| number * 1.003);
        assert!(check(&[&wrong], 3).wrong > 0, "{place:?}");
    }
    // What is above the diagonal has no meaning.
    let other = with(&l, [16, 21], |_| f32::NAN);
    assert_eq!(check(&[&other], 3).wrong, 0);
}

#[test]
fn the_first_pivot_that_is_not_positive_is_named() {
    let (placed, l) = factored();
    let refusal = placed.workload.refusal().expect("one");
    assert_eq!((refusal.of)(&l), None);
    for (row, number) in [(18, f32::NAN), (69, 0.0), (0, f32::INFINITY)] {
        let why = (refusal.of)(&with(&l, [row, row], |_| number)).expect("a reason");
        assert!(why.contains(&format!("the pivot of row {row} ")), "{why}");
    }
}

#[test]
fn what_a_place_cannot_compute_is_refused() {
    let nodes = Place::Nodes(Fit::new(&[], pdawl_api::spread::Network::default()));
    let operation = product([4, 4, 4], Precision::F64).operation(Placement::Rows);
    let why = operation
        .at(nodes, None)
        .err()
        .expect("an error")
        .to_string();
    assert!(
        why.contains("f64, and products over nodes are of f32"),
        "{why}"
    );
    let unused: Fill = Arc::new(|_, _| panic!("nothing is made"));
    let many = Cholesky {
        size: 4_000_000,
        precision: Precision::F32,
        matrix: unused,
    };
    let lone = Lone {
        devices: 1,
        is_pool: true,
        memory: None,
    };
    let why = many.operation().at(Place::Alone(lone), None);
    let why = why.err().expect("an error").to_string();
    assert!(
        why.contains("with tiles of 1024") && why.contains("too many"),
        "{why}"
    );
}
