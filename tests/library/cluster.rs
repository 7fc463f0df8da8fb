//! Workloads over nodes that are threads of this process: every workload, policy and
//! placement, on simulated devices that carry data, with messages in an order of chance.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use pdawl_api::cluster::info::DeviceInfo;
use pdawl_api::cluster::protocol::Settings;
use pdawl_api::cluster::record::ClusterOutcome;
use pdawl_api::cluster::space::{Block, Extent};
use pdawl_api::cluster::wire::local::{Faults, Options as WireOptions};
use pdawl_api::cluster::wire::{LocalWire, Wire};
use pdawl_api::codelet::Precision;
use pdawl_api::engine::cluster::{ClusterError, Control, Node, Options, Sink, expected};
use pdawl_api::machine::MachineStore;
use pdawl_api::matrix::{Csr, MatrixSource, control};
use pdawl_api::runtime::sim::{Sim, SimOptions};
use pdawl_api::runtime::{CommandKind, Runtime};
use pdawl_api::spread::NamedSpread;
use pdawl_api::trace::{Span, nodes};
use pdawl_api::workload::Supersteps;
use pdawl_api::workload::cluster::{
    BandsWorkload, Check, ClusterWorkload, ConvolutionWorkload, FftWorkload, Fill, FillError,
    LuWorkload, Placement, Product, generated,
};
use pdawl_api::workload::spmv::{self, Form, Spmv};
use pdawl_api::workload::stencil::Stencil;

use crate::{cluster_functions, pocl};

pub struct Case {
    pub workload: Arc<dyn ClusterWorkload>,
    pub tile: u64,
    pub spread: NamedSpread,
    pub prefetch: u32,
    pub nodes: usize,
    pub seed: u64,
}

pub type Ran = Result<Option<ClusterOutcome>, ClusterError>;

impl Case {
    /// One rank: a host pool and a GPU with memory of its own.
    fn rank(&self, wire: LocalWire, stop: &AtomicBool) -> Ran {
        let machine = MachineStore::of_user().find("k40").expect("it ships");
        let options = SimOptions {
            data: true,
            ..SimOptions::default()
        };
        let mut runtime = Sim::new(&machine, options).expect("the machine is right");
        self.on(&mut runtime, wire, stop)
    }

    /// A rank with these devices.
    pub fn on(&self, runtime: &mut dyn Runtime, wire: LocalWire, stop: &AtomicBool) -> Ran {
        let devices = runtime.devices().iter().map(expected).collect();
        self.with(runtime, devices, wire, stop)
    }

    /// A rank with these devices, of which this is expected.
    pub fn with(
        &self,
        runtime: &mut dyn Runtime,
        devices: Vec<DeviceInfo>,
        wire: LocalWire,
        stop: &AtomicBool,
    ) -> Ran {
        self.in_part(self.nodes, (runtime, devices), wire, stop)
    }

    /// The same where only the first nodes, so many, take part.
    pub fn in_part(
        &self,
        part: usize,
        (runtime, devices): (&mut dyn Runtime, Vec<DeviceInfo>),
        wire: LocalWire,
        stop: &AtomicBool,
    ) -> Ran {
        let is_first = wire.rank() == 0;
        let options = Options {
            program: "the test".to_owned(),
            devices,
            settings: Settings {
                prefetch: self.prefetch,
                ..Settings::default()
            },
            leaves_out: None,
            // Little, so that parts are forgotten and assembled again.
            input_bytes: 100_000,
            traces: true,
        };
        let spread = is_first.then(|| self.spread.spread(self.seed));
        let mut node = Node::join(Box::new(wire), runtime, options, spread, stop)?;
        if part < self.nodes && !is_first {
            // What happens at the first node may be heard of before the tasks begin here.
            thread::sleep(Duration::from_micros(fastrand::u64(..2000)));
        }
        node.take_part(part);
        let mut gathered = Vec::new();
        let sink: &mut dyn Sink = &mut gathered;
        let control = Control {
            tile: self.tile,
            verify: Some(self.seed),
            outputs: vec![(self.workload.result(), sink)],
            progress: &mut |_| {},
        };
        let (ran, wire) = node.run_until_settled(&*self.workload, control)?;
        wire.finish()?;
        if let Some(outcome) = &ran {
            self.check(outcome.tasks, gathered);
            check_trace(outcome, &*self.workload);
        }
        Ok(ran)
    }

    /// Checks a result that was brought to the first node after so many tasks.
    fn check(&self, tasks: u64, bytes: Vec<u8>) {
        let shortened = self.workload.shortened(tasks);
        let workload = shortened.as_deref().unwrap_or(&*self.workload);
        let result = workload.result();
        let extent = workload.spaces()[result].extent;
        assert_eq!(bytes.len() as u64, extent.bytes(&extent.whole()));
        let checked = match workload.check() {
            Check::Blocks(check) => check(&extent.whole(), &bytes, self.seed),
            Check::Whole(spaces, check) if spaces == [result] => check(&[&bytes], self.seed),
            Check::Whole(..) => return,
        };
        assert_eq!(checked.wrong, 0, "{}: {checked:?}", workload.name());
    }

    /// All ranks. `disturb` runs beside them.
    pub fn run(&self, disturb: impl FnOnce(Faults) + Send) -> Vec<Ran> {
        self.run_as(|wire, stop| self.rank(wire, stop), disturb)
    }

    /// All ranks, each of which does `rank`. `disturb` runs beside them.
    pub fn run_as(
        &self,
        rank: impl Fn(LocalWire, &AtomicBool) -> Ran + Sync,
        disturb: impl FnOnce(Faults) + Send,
    ) -> Vec<Ran> {
        let options = WireOptions {
            shuffle: Some(self.seed),
            pulse: None,
        };
        let wires = LocalWire::cluster_with(self.nodes, options);
        let stop = AtomicBool::new(false);
        let faults = wires[0].faults();
        thread::scope(|scope| {
            let start = |wire| scope.spawn(|| rank(wire, &stop));
            let ranks: Vec<_> = wires.into_iter().map(start).collect();
            scope.spawn(move || disturb(faults));
            let joined = ranks
                .into_iter()
                .map(|rank| rank.join().expect("no rank panics"));
            joined.collect()
        })
    }

    /// The outcome of the first rank, when all ranks end well.
    pub fn outcome(&self) -> ClusterOutcome {
        let mut ran = self.run(|_| {});
        let first = ran.remove(0).expect("the first rank ends well");
        for other in ran {
            assert_eq!(other.expect("all ranks end well"), None);
        }
        first.expect("the first rank has the outcome")
    }
}

/// Checks that a trace has all that the nodes computed, in a queue one after the other.
fn check_trace(outcome: &ClusterOutcome, workload: &dyn ClusterWorkload) {
    let trace = nodes::of(outcome);
    // The steps of a superstep are one in a trace.
    let supersteps = workload.bands().map(|bands| {
        let done = bands.supersteps.at_most(outcome.tasks as u32);
        u64::from(done.count())
    });
    assert_eq!(
        trace.steps.len() as u64,
        supersteps.unwrap_or(outcome.tasks)
    );
    assert!(trace.steps.is_sorted_by(|a, b| a.1 <= b.0));
    let nodes = outcome.nodes.iter();
    let devices = nodes.flat_map(|node| node.devices.iter().map(move |device| (node, device)));
    for (index, (node, device)) in devices.enumerate() {
        let own = trace.spans.iter().filter(|span| span.device == index);
        let kernels = own.filter(|span| span.kind == CommandKind::Launch);
        let mut kernels: Vec<&Span> = kernels.collect();
        assert!(
            kernels
                .iter()
                .all(|span| u64::from(span.step) < outcome.tasks)
        );
        // Counts are of all attempts, and commands of the last one.
        if outcome.restarts == 0 && node.notes.is_empty() {
            assert!(kernels.len() as u64 >= device.subtasks, "{}", device.name);
        }
        kernels.sort_by_key(|span| (span.queue, span.started));
        for two in kernels
            .windows(2)
            .filter(|two| two[0].queue == two[1].queue)
        {
            assert!(two[0].ended <= two[1].started, "{}: {two:?}", device.name);
        }
    }
}

fn singles(rows: u64, columns: u64, element: u64, seed: u64) -> Fill {
    generated(
        Extent {
            rows,
            columns,
            element,
        },
        seed,
    )
}

/// Small workloads with blocks that are smaller at the edges.
pub fn workloads(placement: Placement, seed: u64) -> Vec<(Arc<dyn ClusterWorkload>, u64)> {
    let with_kernels = with_kernels(placement, seed).into_iter();
    with_kernels
        .chain(cluster_functions::workloads(seed))
        .collect()
}

/// Those that every device computes.
fn with_kernels(placement: Placement, seed: u64) -> Vec<(Arc<dyn ClusterWorkload>, u64)> {
    let stencil = Stencil::new(17, 31, None, Precision::F64, seed).expect("a grid");
    let deep = Stencil::new(5, 6, Some(13), Precision::F32, seed).expect("a grid");
    let by = [0.3, -0.2, 0.1, 0.25, 0.05, 0.15, 0.35];
    let deep = deep.with_coefficients(&by).expect("seven of them");
    let dense: Vec<(Arc<dyn ClusterWorkload>, u64)> = vec![
        (
            Arc::new(
                ConvolutionWorkload {
                    rows: 37,
                    columns: 41,
                    channels: 3,
                    size: 5,
                    placement,
                    image: singles(37, 41, 12, seed),
                    filter: singles(5, 5, 4, seed + 1),
                }
                .program(10),
            ),
            10,
        ),
        (
            Arc::new(
                Product {
                    rows: 50,
                    columns: 33,
                    depth: 29,
                    precision: Precision::F32.into(),
                    a: singles(50, 29, 4, seed),
                    b: singles(29, 33, 4, seed + 1),
                }
                .in_blocks(16, placement),
            ),
            16,
        ),
        (
            Arc::new(
                LuWorkload {
                    size: 45,
                    tile: 12,
                    precision: Precision::F32,
                    by_columns: false,
                    placement,
                    matrix: singles(45, 45, 4, seed),
                }
                .program(),
            ),
            12,
        ),
        (
            Arc::new(
                FftWorkload {
                    rows: 16,
                    columns: 32,
                    precision: Precision::F32,
                    placement,
                    matrix: singles(16, 32, 8, seed),
                }
                .program(5),
            ),
            5,
        ),
        (
            Arc::new(BandsWorkload::stencil(stencil, Supersteps::new(5, 1))),
            1,
        ),
        (
            Arc::new(BandsWorkload::stencil(deep, Supersteps::new(9, 4))),
            1,
        ),
    ];
    dense.into_iter().chain(sparse(seed)).collect()
}

/// A generated matrix.
pub fn load(source: &str, seed: u64) -> Csr {
    let source: MatrixSource = source.parse().expect("a source");
    let source = MatrixSource { seed, ..source };
    let loaded = control::quietly(|control| source.load(control));
    loaded.expect("it is small").csr
}

/// So many steps with a matrix, whose units are small: every node has some.
pub fn product(
    matrix: Csr,
    form: Form,
    precision: Precision,
    (steps, tolerance): (u32, Option<f64>),
    seed: u64,
) -> BandsWorkload {
    let options = spmv::Options {
        form,
        precision,
        seed,
        unit_weight: Some(64),
        ..spmv::Options::default()
    };
    let spmv = Spmv::new("test", Arc::new(matrix), options).expect("it suits");
    BandsWorkload::product(spmv, steps, tolerance)
}

/// Products and page ranks, whose tiles do not count.
pub fn sparse(seed: u64) -> Vec<(Arc<dyn ClusterWorkload>, u64)> {
    let of = |source: &str, form, precision, steps| -> Arc<dyn ClusterWorkload> {
        Arc::new(product(
            load(source, seed),
            form,
            precision,
            (steps, None),
            seed,
        ))
    };
    let all = [
        of("uniform:300,4", Form::Product, Precision::F64, 2),
        of("rmat:11,9", Form::Iteration, Precision::F32, 3),
        of("banded:3000,3", Form::Iteration, Precision::F64, 4),
        of("rmat:11,6", Form::Ranks, Precision::F64, 5),
        of("web:2000", Form::Ranks, Precision::F32, 9),
    ];
    all.into_iter().map(|workload| (workload, 1)).collect()
}

const PLACEMENTS: [Placement; 6] = [
    Placement::Rows,
    Placement::Grid,
    Placement::Central,
    Placement::RowCyclic,
    Placement::ColumnCyclic,
    Placement::Random { seed: 7 },
];

/// Subtasks of a workload, or the least pieces of work of a co-run.
fn subtasks(workload: &dyn ClusterWorkload) -> u64 {
    if let Some(bands) = workload.bands() {
        return bands.supersteps.count().into();
    }
    let ids: Vec<_> = (0..8).map(pdawl_api::cluster::space::SpaceId).collect();
    let tasks = (0..workload.tasks()).map(|number| workload.task(number, &ids).count());
    tasks.sum()
}

#[test]
fn every_workload_is_right_on_any_nodes() {
    let seed = fastrand::u64(..1 << 40);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let policies: Vec<NamedSpread> = NamedSpread::all().collect();
    for nodes in 1..=8 {
        let placement = PLACEMENTS[random.usize(..PLACEMENTS.len())];
        for (workload, tile) in workloads(placement, random.u64(..1 << 40)) {
            let case = Case {
                workload,
                tile,
                spread: policies[random.usize(..policies.len())],
                prefetch: random.u32(..4),
                nodes,
                seed: random.u64(..),
            };
            let outcome = case.outcome();
            let name = case.workload.name();
            let checked = outcome.checked().expect("the result was compared");
            assert!(checked.numbers > 0, "{name}");
            assert_eq!(checked.wrong, 0, "{name} on {nodes} nodes: {checked:?}");
            let counted: u64 = outcome.nodes.iter().map(|node| node.subtasks).sum();
            let all = subtasks(&*case.workload);
            let is_right = match case.workload.bands() {
                Some(_) => counted >= all,
                None => counted == all,
            };
            assert!(is_right, "{name} on {nodes} nodes: {counted} of {all}");
        }
    }
}

/// Results with wrong numbers are not taken for right ones.
#[test]
fn wrong_results_are_seen() {
    for (workload, _) in workloads(Placement::Rows, 3) {
        let extents: Vec<Extent> = (workload.spaces().iter())
            .map(|space| space.extent)
            .collect();
        let of_bytes = |extent: &Extent, byte: u8| {
            let bytes = extent.bytes(&extent.whole()) as usize;
            vec![byte; bytes]
        };
        // Zeros, a huge number, and one that is none.
        for byte in [0, 0x7b, 0xff] {
            let name = workload.name();
            let checked = match workload.check() {
                Check::Blocks(check) => {
                    let extent = &extents[workload.result()];
                    check(&extent.whole(), &of_bytes(extent, byte), 5)
                }
                Check::Whole(which, check) => {
                    let spaces = which.iter().map(|space| of_bytes(&extents[*space], byte));
                    let spaces: Vec<Vec<u8>> = spaces.collect();
                    check(&spaces.iter().map(Vec::as_slice).collect::<Vec<_>>(), 5)
                }
            };
            assert!(checked.numbers > 0, "{name}");
            assert!(2 * checked.wrong >= checked.numbers, "{name}: {checked:?}");
            assert!(
                checked.worst.is_finite(),
                "{name}: messages cannot say {checked:?}"
            );
        }
    }
}

/// The codelets' OpenCL kernels, on a device with memory of its own.
#[test]
fn every_workload_is_right_on_an_opencl_device() {
    for (workload, tile) in with_kernels(Placement::Rows, 9) {
        let case = Case {
            workload,
            tile,
            spread: NamedSpread::default(),
            prefetch: 2,
            nodes: 1,
            seed: 4,
        };
        let mut runtime = pocl::open("cpu:1=own");
        let wire = LocalWire::cluster(1).remove(0);
        let ran = case.on(&mut runtime, wire, &AtomicBool::new(false));
        let name = case.workload.name();
        let outcome = ran.unwrap_or_else(|error| panic!("{name}: {error}"));
        let outcome = outcome.expect("the first rank has the outcome");
        let checked = outcome.checked().expect("the result was compared");
        assert_eq!(checked.wrong, 0, "{name}: {checked:?}");
        let (counted, all) = (
            outcome.nodes[0].devices[0].subtasks,
            subtasks(&*case.workload),
        );
        let is_right = match case.workload.bands() {
            Some(_) => counted >= all,
            None => counted == all,
        };
        assert!(is_right, "{name}: {counted} of {all}");
    }
}

/// A node that cannot read an input ends the run, and all others learn which one and why.
#[test]
fn an_input_that_cannot_be_read_ends_the_run() {
    let whole = singles(40, 9, 4, 1);
    let a: Fill = Arc::new(
        move |block: &Block, bytes: &mut [u8]| match block.rows.end {
            // The rows of the last of four nodes.
            40 => Err(FillError("a.npy: cannot be read".to_owned())),
            _ => whole(block, bytes),
        },
    );
    let case = Case {
        workload: Arc::new(
            Product {
                rows: 40,
                columns: 30,
                depth: 9,
                precision: Precision::F32.into(),
                a,
                b: singles(9, 30, 4, 2),
            }
            .in_blocks(8, Placement::Rows),
        ),
        tile: 8,
        spread: NamedSpread::default(),
        prefetch: 2,
        nodes: 4,
        seed: 6,
    };
    let errors = case
        .run(|_| {})
        .into_iter()
        .map(|ran| ran.expect_err("it cannot go on"));
    let errors: Vec<String> = errors.map(|error| error.to_string()).collect();
    assert_eq!(errors[3], "a.npy: cannot be read");
    for other in &errors[..3] {
        assert_eq!(other, "node 3: a.npy: cannot be read");
    }
}
