//! Workloads over spaces on one machine by itself: right in any order of commands, on
//! devices with and without memory of their own, in little memory, under every policy, and
//! when a device is lost.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pdawl_api::cluster::space::Extent;
use pdawl_api::codelet::Precision;
use pdawl_api::engine::cluster::{Alone, ClusterError, Control};
use pdawl_api::engine::graph::kernel_seconds::KernelSeconds;
use pdawl_api::graph::TaskGraph;
use pdawl_api::machine::MachineStore;
use pdawl_api::runtime::Runtime;
use pdawl_api::runtime::sim::{Sim, SimOptions};
use pdawl_api::verify::Checked;
use pdawl_api::workload::cluster::graph::WorkloadGraph;
use pdawl_api::workload::cluster::program::Program;
use pdawl_api::workload::cluster::{
    ClusterWorkload, ConvolutionWorkload, FftWorkload, LuWorkload, Placement, generated,
    generated_as, sort_alone,
};
use proptest::prelude::*;

use crate::pocl;
use crate::run_alone::run_alone;
use crate::shuffled_runtime::{Fault, ShuffledRuntime, device};

const POLICIES: [&str; 6] = [
    "locality",
    "eager",
    "dmdar",
    "darts+luf",
    "round-robin",
    "auto-fit",
];

fn lu(size: u64, tile: u64, precision: Precision) -> Program {
    let extent = Extent {
        rows: size,
        columns: size,
        element: precision.bytes(),
    };
    let lu = LuWorkload {
        size,
        tile,
        precision,
        placement: Placement::Rows,
        by_columns: true,
        matrix: generated_as(precision, extent, size),
    };
    lu.program()
}

fn fft(rows: u64, columns: u64, tile: u64) -> Program {
    let extent = Extent {
        rows,
        columns,
        element: 8,
    };
    let fft = FftWorkload {
        rows,
        columns,
        precision: Precision::F32,
        placement: Placement::Rows,
        matrix: generated(extent, rows),
    };
    fft.program(tile)
}

fn convolution(rows: u64, columns: u64, channels: u32, tile: u64) -> Program {
    let size = (2 * tile.min(3) + 1) as u32;
    let extent = |rows, columns, element| Extent {
        rows,
        columns,
        element,
    };
    let convolution = ConvolutionWorkload {
        rows,
        columns,
        channels,
        size,
        placement: Placement::Rows,
        image: generated(extent(rows, columns, 4 * u64::from(channels)), rows),
        filter: generated(extent(size.into(), size.into(), 4), columns),
    };
    convolution.program(tile)
}

/// Bytes that the largest kernel of a graph needs at once.
fn largest(graph: &TaskGraph) -> u64 {
    let bytes = graph.kernels().iter().map(|kernel| {
        let data = kernel.inputs().chain(kernel.outputs());
        let slots: HashSet<_> = data.map(|datum| graph.first_version(datum)).collect();
        slots.iter().map(|slot| graph.datum(*slot).bytes).sum()
    });
    bytes.max().unwrap_or(0)
}

/// Runs a workload and compares its result. `memory` is how many of the largest kernels the
/// memory of a device has room for.
fn run(
    runtime: &mut dyn Runtime,
    workload: &dyn ClusterWorkload,
    (policy, memory): (&str, Option<u64>),
) -> Result<Checked, ClusterError> {
    let alone = Alone::new(workload, [], None, &AtomicBool::new(false))?;
    let graph = WorkloadGraph::new(workload, &[], None, &AtomicBool::new(false))?.graph;
    let mut control = Control {
        tile: 1,
        verify: Some(7),
        outputs: Vec::new(),
        progress: &mut |_| {},
    };
    let seconds = KernelSeconds::default();
    let memory = memory.map(|kernels| kernels * largest(&graph));
    let by = (policy, 3, memory);
    let (outcome, _) = run_alone(&alone, runtime, &seconds, by, &mut control)?;
    let subtasks: u64 = outcome.nodes[0].devices.iter().map(|d| d.subtasks).sum();
    assert_eq!(subtasks, alone.graph().kernels().len() as u64);
    Ok(outcome.checked().expect("a comparison"))
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Lu(u64, Precision),
    Fft(u64, u64),
    Convolution(u64, u64, u32),
}

fn workload(kind: Kind, tile: u64) -> Box<dyn ClusterWorkload> {
    match kind {
        Kind::Lu(size, precision) => Box::new(lu(size, tile, precision)),
        Kind::Fft(rows, columns) => Box::new(fft(rows, columns, tile)),
        Kind::Convolution(rows, columns, channels) => {
            Box::new(convolution(rows, columns, channels, tile))
        }
    }
}

fn kind() -> impl Strategy<Value = Kind> {
    let precision = prop_oneof![Just(Precision::F32), Just(Precision::F64)];
    prop_oneof![
        (1..40_u64, precision).prop_map(|(size, precision)| Kind::Lu(size, precision)),
        (1..40_u64, 1..40_u64).prop_map(|(rows, columns)| Kind::Fft(rows, columns)),
        (1..30_u64, 1..30_u64, 1..4_u32)
            .prop_map(|(r, c, channels)| Kind::Convolution(r, c, channels)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn any_order_and_any_loss_end_right(
        kind in kind(),
        tile in 1..13_u64,
        own in proptest::collection::vec(any::<bool>(), 0..3),
        policy in 0..POLICIES.len(),
        memory in prop_oneof![Just(None), (1..5_u64).prop_map(Some)],
        fault in prop_oneof![Just(None), (0..60_u64).prop_map(Some)],
        seed in any::<u64>(),
    ) {
        // Lines that are no power of two long are transformed in host memory only.
        let devices: Vec<_> = (0..).zip([false].iter().chain(&own))
            .map(|(number, own)| device(&format!("d{number}"), own.then_some(1 << 30)))
            .collect();
        let fault = fault.filter(|_| devices.len() > 1).map(|after| Fault { device: 1, after });
        let mut runtime = ShuffledRuntime::new(devices, seed, fault);
        let workload = workload(kind, tile);
        let checked = run(&mut runtime, &*workload, (POLICIES[policy], memory));
        let checked = checked.map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert!(checked.numbers > 0);
        prop_assert_eq!(checked.wrong, 0, "{:?}", checked);
        prop_assert!(runtime.is_bare());
    }
}

/// A device refuses a kernel after it took the copy before it, for which nobody waits.
#[test]
fn what_a_lost_device_was_given_is_given_back() {
    let devices = vec![device("d0", None), device("d1", Some(1 << 30))];
    let fault = Fault {
        device: 1,
        after: 12,
    };
    let mut runtime = ShuffledRuntime::new(devices, 4_011_303_921_116_803_985, Some(fault));
    let workload = workload(Kind::Lu(15, Precision::F32), 5);
    let checked = run(&mut runtime, &*workload, ("dmdar", None)).expect("a result");
    assert_eq!(checked.wrong, 0, "{checked:?}");
    assert!(runtime.is_bare());
}

/// With data, the simulator shows wrong orders of commands as wrong numbers.
#[test]
fn simulated_machines_compute_the_right_numbers() {
    let workloads: [Box<dyn ClusterWorkload>; 3] = [
        Box::new(lu(150, 16, Precision::F64)),
        Box::new(fft(96, 64, 10)),
        Box::new(convolution(57, 43, 2, 13)),
    ];
    for machine in ["k40", "v100x2"] {
        let file = MachineStore::of_user().find(machine).expect("a machine");
        for workload in &workloads {
            for policy in POLICIES {
                let options = SimOptions {
                    data: true,
                    ..SimOptions::default()
                };
                let mut sim = Sim::new(&file, options).expect("a simulator");
                let checked = run(&mut sim, &**workload, (policy, Some(3)));
                let checked = checked.unwrap_or_else(|error| panic!("{machine}: {error}"));
                let what = format!("{} on {machine} under {policy}", workload.name());
                assert!(
                    checked.numbers > 0 && checked.wrong == 0,
                    "{what}: {checked:?}"
                );
            }
        }
    }
}

/// OpenCL copies the rows of blocks, and computes on blocks where they are.
#[test]
fn opencl_devices_compute_the_right_numbers() {
    let mut runtime = pocl::open("host:1,cpu:1=own");
    for precision in [Precision::F32, Precision::F64] {
        let lu = lu(130, 32, precision);
        let checked = run(&mut runtime, &lu, ("round-robin", None)).expect("a result");
        assert!(checked.numbers > 0 && checked.wrong == 0, "{checked:?}");
    }
    let fft = fft(64, 128, 24);
    let checked = run(&mut runtime, &fft, ("round-robin", None)).expect("a result");
    assert!(checked.numbers > 0 && checked.wrong == 0, "{checked:?}");
    let mut shared = pocl::open("cpu:2");
    let lu = lu_of_odd_rows();
    let checked = run(&mut shared, &lu, ("eager", None)).expect("a result");
    assert!(checked.numbers > 0 && checked.wrong == 0, "{checked:?}");
}

#[test]
fn numbers_are_sorted_by_one_of_the_devices() {
    let numbers = 700_001;
    let extent = Extent {
        rows: 1,
        columns: numbers,
        element: 4,
    };
    let sort = sort_alone::<f32>(1, numbers, &generated(extent, 3));
    for devices in ["host:2", "host:1,cpu:1=own"] {
        let mut runtime = pocl::open(devices);
        let checked = run(&mut runtime, &sort, ("locality", None)).expect("a result");
        assert!(
            checked.numbers == numbers && checked.wrong == 0,
            "{checked:?}"
        );
    }
}

/// Rows that do not begin at multiples of 16 bytes in the whole matrix.
fn lu_of_odd_rows() -> Program {
    lu(131, 32, Precision::F32)
}

#[test]
fn what_takes_blocks_without_gaps_is_no_task_graph() {
    let keys = generated(
        Extent {
            rows: 1,
            columns: 100,
            element: 4,
        },
        1,
    );
    let sort = pdawl_api::workload::cluster::SortWorkload::<f32>::new(100, 10, Arc::clone(&keys));
    let sort = sort.expect("samples");
    let refused = WorkloadGraph::new(&sort, &[], None, &AtomicBool::new(false))
        .err()
        .expect("an error");
    assert!(
        refused
            .to_string()
            .contains("sort-runs takes blocks without gaps"),
        "{refused}"
    );
}
