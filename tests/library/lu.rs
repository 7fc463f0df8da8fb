//! LU factors over nodes: of matrices that need exchanges between all rows, by the residual
//! that LAPACK's tests compute; and matrices without factors.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

use pdawl_api::cluster::protocol::Settings;
use pdawl_api::cluster::record::ClusterOutcome;
use pdawl_api::cluster::space::Block;
use pdawl_api::cluster::wire::{LocalWire, Wire};
use pdawl_api::codelet::Precision;
use pdawl_api::engine::cluster::{ClusterError, Control, Node, Options, Sink, expected};
use pdawl_api::machine::MachineStore;
use pdawl_api::runtime::sim::{Sim, SimOptions};
use pdawl_api::runtime::{Devices, Runtime};
use pdawl_api::spread::NamedSpread;
use pdawl_api::workload::cluster::{Fill, LuWorkload, Placement};

use crate::pocl;

/// Numbers of a matrix, by row and column.
type EntryFunction = fn(usize, usize, usize) -> f64;

fn noise(i: usize, j: usize) -> f64 {
    let place = (i as u64) << 32 | j as u64;
    2.0 * fastrand::Rng::with_seed(place).f64() - 1.0
}

const RANDOM: EntryFunction = |_, i, j| noise(i, j);

/// Matrices that need exchanges of rows, or are nearly singular.
const MATRICES: [(&str, EntryFunction); 8] = [
    ("random", RANDOM),
    ("graded", |n, i, j| {
        noise(i, j) * 10f64.powf(-12.0 * (i as f64 / n as f64))
    }),
    ("graded the other way", |n, i, j| {
        noise(i, j) * 10f64.powf(-12.0 * ((n - i + j) as f64 / n as f64))
    }),
    ("exchange", |n, i, j| f64::from(u8::from(i + j == n - 1))),
    ("shift", |n, i, j| f64::from(u8::from((i + 7) % n == j))),
    ("Hilbert", |_, i, j| 1.0 / (i + j + 1) as f64),
    // Its last column grows to 2^(n - 1).
    ("Wilkinson, growth", |n, i, j| match () {
        () if j == n - 1 || i == j => 1.0,
        () if i > j => -1.0,
        () => 0.0,
    }),
    ("Wilkinson, eigenvalues", |n, i, j| match i.abs_diff(j) {
        0 => (i as f64 - (n - 1) as f64 / 2.0).abs() + 1e-3,
        1 => 1.0,
        _ => 0.0,
    }),
];

fn workload(n: usize, precision: Precision, entry: EntryFunction) -> LuWorkload {
    let matrix: Fill = Arc::new(move |block: &Block, bytes: &mut [u8]| {
        let columns = block.columns.clone();
        let places = block
            .rows
            .clone()
            .flat_map(|i| columns.clone().map(move |j| (i, j)));
        for (to, (i, j)) in bytes
            .chunks_exact_mut(precision.bytes() as usize)
            .zip(places)
        {
            let number = entry(n, i as usize, j as usize);
            match precision {
                Precision::F32 => to.copy_from_slice(&(number as f32).to_ne_bytes()),
                Precision::F64 => to.copy_from_slice(&number.to_ne_bytes()),
            }
        }
        Ok(())
    });
    LuWorkload {
        size: n as u64,
        tile: 16,
        precision,
        by_columns: false,
        placement: Placement::RowCyclic,
        matrix,
    }
}

/// The factors, the pivots and what is reported of the run.
type Factored = (Vec<u8>, Vec<u8>, ClusterOutcome);

/// What a rank of a run has at its end.
fn rank(
    workload: &LuWorkload,
    runtime: &mut dyn Runtime,
    wire: LocalWire,
) -> Result<Option<Factored>, ClusterError> {
    let stop = AtomicBool::new(false);
    let is_first = wire.rank() == 0;
    let options = Options {
        program: "the test".to_owned(),
        devices: runtime.devices().iter().map(expected).collect(),
        settings: Settings::default(),
        leaves_out: None,
        input_bytes: 1 << 20,
        traces: false,
    };
    let spread = is_first.then(|| NamedSpread::default().spread(1));
    let node = Node::join(Box::new(wire), runtime, options, spread, &stop)?;
    let (mut factors, mut pivots) = (Vec::new(), Vec::new());
    let outputs: Vec<(usize, &mut dyn Sink)> =
        vec![(0, &mut factors), (LuWorkload::PIVOTS, &mut pivots)];
    let control = Control {
        tile: workload.tile,
        verify: Some(3),
        outputs,
        progress: &mut |_| {},
    };
    let (outcome, wire) = node.run_until_settled(&workload.program(), control)?;
    wire.finish()?;
    Ok(outcome.map(|outcome| (factors, pivots, outcome)))
}

/// Runs it over nodes with a host and a GPU each.
fn factored(workload: &LuWorkload, nodes: usize) -> Result<Factored, ClusterError> {
    let machine = MachineStore::of_user().find("k40").expect("it ships");
    let on_sim = |wire| {
        let options = SimOptions {
            data: true,
            ..SimOptions::default()
        };
        let mut runtime = Sim::new(&machine, options).expect("the machine is right");
        rank(workload, &mut runtime, wire)
    };
    let mut ran: Vec<_> = thread::scope(|scope| {
        let ranks: Vec<_> = LocalWire::cluster(nodes)
            .into_iter()
            .map(|wire| scope.spawn(|| on_sim(wire)))
            .collect();
        let joined = ranks.into_iter().map(|rank| rank.join().expect("no panic"));
        joined.collect()
    });
    let first = ran.remove(0)?;
    Ok(first.expect("the first rank has the outcome"))
}

fn numbers(bytes: &[u8], precision: Precision) -> Vec<f64> {
    match precision {
        Precision::F32 => bytes
            .as_chunks()
            .0
            .iter()
            .map(|four| f32::from_ne_bytes(*four).into())
            .collect(),
        Precision::F64 => bytemuck::pod_collect_to_vec(bytes),
    }
}

/// `|P A - L U| / (n |A| u)` in the 1-norm, as LAPACK's dget01; and checks that no number of
/// L is greater than 1.
fn ratio(workload: &LuWorkload, entry: EntryFunction, (lu, pivots, _): &Factored) -> f64 {
    let n = workload.size as usize;
    let precision = workload.precision;
    let (lu, pivots) = (
        numbers(lu, precision),
        bytemuck::pod_collect_to_vec::<u8, i32>(pivots),
    );
    let mut rows: Vec<usize> = (0..n).collect();
    for (row, pivot) in pivots.iter().enumerate() {
        assert!(*pivot as usize >= row, "{pivots:?}");
        rows.swap(row, *pivot as usize);
    }
    let (mut greatest, mut norm) = (0.0f64, 0.0f64);
    for j in 0..n {
        let (mut of_residual, mut of_a) = (0.0, 0.0);
        for i in 0..n {
            let given = entry(n, rows[i], j);
            let given = match precision {
                Precision::F32 => f64::from(given as f32),
                Precision::F64 => given,
            };
            let l = |k| if k == i { 1.0 } else { lu[i * n + k] };
            assert!((0..i).all(|k| l(k).abs() <= 1.0), "row {i}");
            let product: f64 = (0..=i.min(j)).map(|k| l(k) * lu[k * n + j]).sum();
            of_residual += (product - given).abs();
            of_a += given.abs();
        }
        greatest = greatest.max(of_residual);
        norm = norm.max(of_a);
    }
    let unit = match precision {
        Precision::F32 => f64::from(f32::EPSILON) / 2.0,
        Precision::F64 => f64::EPSILON / 2.0,
    };
    greatest / (n as f64 * norm * unit)
}

/// Whether sums of a matrix whose factors grow have more bits than a number has. No partial
/// pivoting has a small residual then.
fn is_rounded(name: &str, n: usize, precision: Precision) -> bool {
    let bits = match precision {
        Precision::F32 => 24,
        Precision::F64 => 53,
    };
    name == "Wilkinson, growth" && n > bits
}

#[test]
fn factors_of_awkward_matrices_have_small_residuals() {
    for (name, entry) in MATRICES {
        for (n, nodes) in [(1, 2), (2, 1), (16, 1), (17, 3), (65, 1), (65, 4), (100, 2)] {
            for precision in [Precision::F32, Precision::F64] {
                if is_rounded(name, n, precision) {
                    continue;
                }
                let workload = workload(n, precision, entry);
                let found = factored(&workload, nodes).expect("it has factors");
                let case = format!("{name} of {n} on {nodes} nodes, {precision:?}");
                let ratio = ratio(&workload, entry, &found);
                assert!(ratio < 10.0, "{case}: {ratio}");
                let checked = found.2.checked().expect("it was verified");
                assert_eq!(checked.wrong, 0, "{case}: {checked:?}");
                let figures = checked.factors.expect("they are factors");
                assert!(figures.residual < 10.0, "{case}: {figures:?}");
                if name == "Wilkinson, growth" {
                    assert_eq!(figures.growth, 2f64.powi(n as i32 - 1), "{case}");
                }
            }
        }
    }
}

#[test]
fn a_matrix_without_factors_is_refused_with_its_column() {
    let cases: [(&str, EntryFunction, usize, &str); 6] = [
        ("zeros", |_, _, _| 0.0, 65, "singular: column 0 "),
        ("ones", |_, _, _| 1.0, 65, "singular: column 1 "),
        (
            "a column of zeros",
            |_, i, j| if j == 20 { 0.0 } else { noise(i, j) },
            33,
            "singular: column 20 ",
        ),
        (
            "NaN",
            |_, i, j| {
                if (i, j) == (30, 5) {
                    f64::NAN
                } else {
                    noise(i, j)
                }
            },
            40,
            "column 5 ",
        ),
        (
            "infinite",
            |_, i, j| {
                if (i, j) == (3, 38) {
                    f64::NEG_INFINITY
                } else {
                    noise(i, j)
                }
            },
            40,
            "column 38 ",
        ),
        // It grows to 2^199.
        ("overflow", MATRICES[6].1, 200, "column 199 "),
    ];
    for (name, entry, n, part) in cases {
        for nodes in [1, 3] {
            let refused = factored(&workload(n, Precision::F32, entry), nodes);
            let Err(ClusterError::Refused(why)) = refused else {
                panic!("{name}: {:?}", refused.map(|_| ()));
            };
            assert!(why.contains(part), "{name}: {why}");
        }
    }
}

/// The OpenCL kernels, on a device with memory of its own: panels of less than a strip of
/// columns, and of several.
#[test]
fn an_opencl_device_finds_the_same_pivots() {
    let double = pocl::open("cpu:1=own").devices()[0].fp64;
    for (name, entry) in MATRICES {
        for precision in [Precision::F32, Precision::F64] {
            for (n, tile) in [(65, 16), (200, 70)] {
                if precision == Precision::F64 && !double || is_rounded(name, n, precision) {
                    continue;
                }
                let workload = LuWorkload {
                    tile,
                    ..workload(n, precision, entry)
                };
                let mut runtime = pocl::open("cpu:1=own");
                let wire = LocalWire::cluster(1).remove(0);
                let found = rank(&workload, &mut runtime, wire).expect("it has factors");
                let found = found.expect("the first rank has the outcome");
                let ratio = ratio(&workload, entry, &found);
                assert!(ratio < 10.0, "{name} of {n}, {precision:?}: {ratio}");
            }
        }
    }
    let singular = workload(40, Precision::F32, |_, _, _| 1.0);
    let mut runtime = pocl::open("cpu:1=own");
    let refused = rank(&singular, &mut runtime, LocalWire::cluster(1).remove(0));
    assert!(
        matches!(&refused, Err(ClusterError::Refused(why)) if why.contains("column 1 ")),
        "{:?}",
        refused.map(|_| ())
    );
}
