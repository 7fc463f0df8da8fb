//! Task graphs on the fake driver's GPUs: components that repeat become command graphs, and
//! results stay what launches one by one make.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use pdawl_api::codelet::{Cost, NdRange, Value};
use pdawl_api::engine::graph::{
    Control, GraphOutcome, Options, PreparedGraph, abilities, problem::problem,
};
use pdawl_api::graph::{
    Argument, Components, Contents, Datum, DatumId, GraphBuilder, Kernel, TaskGraph,
};
use pdawl_api::policy::{Clustering, Eager, Policy, Problem};
use pdawl_api::runtime::Devices;
use pdawl_api::runtime::union::Union;

use crate::library::fake;
use crate::machine::{PTX, codelet, machine, mixed};

/// Kernels of a head, and of a head and its tail.
const OF_HEAD: usize = 6;
const OF_BOTH: usize = OF_HEAD + 1;

/// Heads, whose results stay on their device, and for each a tail, whose result the host
/// wants.
struct Heads {
    graph: Arc<TaskGraph>,
    components: Arc<Components>,
    results: Vec<DatumId>,
}

/// Builds heads.
#[derive(Default)]
struct Builder {
    graph: GraphBuilder,
    head: u32,
}

impl Builder {
    fn datum(&mut self, name: &str) -> Datum {
        Datum::new(format!("{}.{name}", self.head), 256)
    }

    fn given(&mut self, which: u32) -> DatumId {
        let numbers = given(self.head, which).into_iter();
        let bytes: Vec<u8> = numbers.flat_map(u32::to_ne_bytes).collect();
        let datum = self.datum("given").with(Contents::bytes(bytes));
        self.graph.datum(datum)
    }

    fn kernel(&mut self, entry: &'static str, items: usize, arguments: Vec<Argument>) {
        self.graph.kernel(Kernel {
            name: format!("{}.{entry}", self.head).into(),
            codelet: codelet(PTX, entry, NdRange::new(vec![items])),
            units: 0..1,
            arguments,
            cost: Cost {
                flops: 1.0,
                bytes: 1.0,
            },
            prefers: None,
        });
    }

    fn mix(&mut self, [one, other]: [DatumId; 2], to: Datum, value: u32) -> DatumId {
        let to = self.graph.datum(to);
        let arguments = vec![
            Argument::Input(one),
            Argument::Input(other),
            Argument::FullOutput(to),
            Argument::Value(Value::U32(value)),
        ];
        self.kernel("mix", 64, arguments);
        to
    }
}

impl Heads {
    fn new(heads: u32) -> Self {
        let mut builder = Builder::default();
        let mut results = Vec::new();
        for head in 0..heads {
            builder.head = head;
            let [g, h] = [0, 1].map(|which| builder.given(which));
            let [b, c, d, e] = ["b", "c", "d", "e"].map(|name| builder.datum(name));
            let b = builder.mix([g, h], b, 1);
            let c = builder.mix([b, g], c, 2);
            let d = builder.mix([b, h], d, 3);
            let later = builder.datum("b, counted up");
            let to = builder.graph.datum(later);
            let counts = vec![
                Argument::InOut { from: b, to },
                Argument::Value(Value::U32(64)),
            ];
            builder.kernel("slow", 1, counts);
            let e = builder.mix([c, d], e, 4);
            let last = builder.datum("last");
            let last = builder.mix([e, to], last, 5);
            let result = builder.datum("result").wanted();
            results.push(builder.mix([last, g], result, 6));
        }
        let graph = Arc::new(builder.graph.build().expect("a graph"));
        let part = |kernel: usize| (kernel / OF_BOTH, kernel % OF_BOTH == OF_HEAD);
        let components = Components::by(&graph, |kernel| part(kernel.0)).expect("components");
        Self {
            graph,
            components: Arc::new(components),
            results,
        }
    }

    fn problem(&self, machine: &Union) -> Problem {
        let able = abilities(&self.graph, &self.components, machine.devices());
        problem(&self.graph, &self.components, machine, &able, &Vec::new())
    }

    fn prepared(&self, machine: &Union) -> PreparedGraph {
        let (graph, components) = (Arc::clone(&self.graph), Arc::clone(&self.components));
        PreparedGraph::new(machine, graph, components).expect("it is prepared")
    }

    /// Asserts that the results are those of the kernels one after the other.
    fn check(&self, prepared: &PreparedGraph, machine: &mut Union, what: &str) {
        for (head, result) in (0..).zip(&self.results) {
            let [g, h] = [0, 1].map(|which| given(head, which));
            let b = mixed([&g, &h], 1);
            let (c, d) = (mixed([&b, &g], 2), mixed([&b, &h], 3));
            let later: Vec<u32> = b.iter().map(|n| n.wrapping_add(1)).collect();
            let e = mixed([&c, &d], 4);
            let expected = mixed([&mixed([&e, &later], 5), &g], 6);
            let bytes = prepared.bytes(machine, *result).expect("its bytes");
            let found: &[u32] = bytemuck::cast_slice(bytes);
            assert_eq!(found, expected, "head {head}, {what}");
        }
    }
}

fn given(head: u32, which: u32) -> Vec<u32> {
    (0..64).map(|i| i * i + head + 1000 * which).collect()
}

fn run(
    prepared: &mut PreparedGraph,
    machine: &mut Union,
    policy: &mut dyn Policy,
    options: &Options,
) -> GraphOutcome {
    let stop = AtomicBool::new(false);
    let mut control = Control {
        stop: &stop,
        progress: &mut |_, _| {},
    };
    let outcome = prepared.run(machine, policy, options, &mut control);
    outcome.expect("it runs")
}

/// Options that keep what is given on its device.
fn options(queues: usize, width: usize) -> Options {
    Options {
        widths: vec![width; 2],
        keep: true,
        ..Options::queues(vec![queues; 2])
    }
}

/// Components that ran as command graphs.
fn graphs(outcome: &GraphOutcome) -> usize {
    outcome.uses.iter().map(|used| used.graphs).sum()
}

#[test]
fn components_that_repeat_are_launched_as_graphs() {
    const HEADS: usize = 5;
    let fake = fake();
    let before = fake.live();
    let mut machine = machine("cuda0");
    let heads = Heads::new(HEADS as u32);
    let mut prepared = heads.prepared(&machine);
    let map = vec![0; heads.components.len()];
    let mut policy = Clustering::new(heads.problem(&machine), map).expect("a map");
    let mut instantiated = 0;
    for (queues, width) in [(1, 1), (3, 1), (3, 3), (2, 2)] {
        let what = |run: usize| format!("{queues} queues, width {width}, run {run}");
        let mut first = None;
        for number in 0..5 {
            let options = options(queues, width);
            let launched = fake.calls("cuGraphLaunch");
            let outcome = run(&mut prepared, &mut machine, &mut policy, &options);
            heads.check(&prepared, &mut machine, &what(number));
            let launched = fake.calls("cuGraphLaunch") - launched;
            assert_eq!(graphs(&outcome), launched as usize, "{}", what(number));
            assert_eq!(outcome.kernels() as usize, HEADS * OF_BOTH);
            assert!(launched == 0 || launched as usize == HEADS);
            if launched > 0 {
                first.get_or_insert(number);
            } else {
                assert!(first.is_none(), "{}: one by one again", what(number));
            }
        }
        // The first run of all writes what is given, and another width is another plan.
        let expected = if instantiated == 0 { 2 } else { 1 };
        let is_known = width == 1 && instantiated > 0;
        assert_eq!(first, Some(if is_known { 0 } else { expected }));
        instantiated += if is_known { 0 } else { HEADS as i32 };
        assert_eq!(fake.calls("cuGraphInstantiateWithFlags"), instantiated);
    }
    // A trace has the times of each kernel.
    let traced = Options {
        trace: true,
        ..options(2, 2)
    };
    let outcome = run(&mut prepared, &mut machine, &mut policy, &traced);
    heads.check(&prepared, &mut machine, "traced");
    assert_eq!(graphs(&outcome), 0);
    assert_eq!(outcome.launches.len(), HEADS * OF_BOTH);
    let outcome = run(&mut prepared, &mut machine, &mut policy, &options(2, 2));
    heads.check(&prepared, &mut machine, "after a trace");
    assert_eq!(graphs(&outcome), HEADS);
    assert_eq!(fake.calls("cuGraphInstantiateWithFlags"), instantiated);
    prepared.release(&mut machine);
    drop(machine);
    assert_eq!(fake.live(), before);
}

#[test]
fn a_device_that_is_lost_in_graphs_leaves_them_to_another_one() {
    let fake = fake();
    let mut machine = machine("cuda0,cuda1");
    let heads = Heads::new(12);
    let mut prepared = heads.prepared(&machine);
    let mut policy = Eager::new(heads.problem(&machine));
    let mut as_graphs = 0;
    for number in 0..8 {
        let outcome = run(&mut prepared, &mut machine, &mut policy, &options(1, 1));
        heads.check(&prepared, &mut machine, &format!("run {number}"));
        assert!(outcome.losses.is_empty());
        as_graphs += graphs(&outcome);
    }
    // What a head makes is read behind its graph: the tail may be elsewhere.
    assert!(as_graphs > 12, "{as_graphs}");
    // Each head takes 20 ms, and each device has several, one after the other.
    let before = fake.calls("cuGraphLaunch");
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| {
            let has_begun = |_: &u32| fake.calls("cuGraphLaunch") > before;
            let wait = |_: &u32| std::thread::sleep(Duration::from_millis(1));
            (0..60_000).inspect(wait).find(has_begun);
            fake.lose(0, 700);
        });
        run(&mut prepared, &mut machine, &mut policy, &options(1, 1))
    });
    heads.check(&prepared, &mut machine, "with a loss");
    assert_eq!(outcome.losses.len(), 1, "{:?}", outcome.losses);
    assert_eq!(outcome.losses[0].device, 0);
    for number in 0..3 {
        let outcome = run(&mut prepared, &mut machine, &mut policy, &options(1, 1));
        heads.check(&prepared, &mut machine, &format!("alone, run {number}"));
        assert_eq!(outcome.uses[0].components, 0);
    }
}
