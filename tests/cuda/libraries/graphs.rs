//! Command graphs with calls of libraries among their launches.

use std::sync::Arc;

use pdawl_api::codelet::Precision;
use pdawl_api::runtime::union::Union;
use pdawl_api::runtime::{Command, CommandGraph, Devices, GraphLaunch, Implementation, QueueId};

use super::choice::product;
use super::{Memories, bytes, launch, numbers, random};
use crate::library::{Fake, fake};
use crate::machine::{ONE, enqueue, machine};

const SIZE: usize = 6;

/// `C = A B` and `D = B A`, which may run at the same time, and then `E = C D`.
struct Products {
    machine: Union,
    queue: QueueId,
    memories: Memories,
    graph: Arc<CommandGraph>,
    expected: [Vec<f64>; 3],
}

fn times(a: &[f64], b: &[f64]) -> Vec<f64> {
    let number = |row: usize, column: usize| {
        let terms = (0..SIZE).map(|k| a[row * SIZE + k] * b[k * SIZE + column]);
        terms.sum()
    };
    let rows = 0..SIZE;
    rows.flat_map(|row| (0..SIZE).map(move |column| number(row, column)))
        .collect()
}

impl Products {
    fn new() -> Self {
        let mut machine = machine("cuda0");
        let queue = machine.queue(ONE).expect("a queue");
        let (a, b) = (random(1, SIZE * SIZE), random(2, SIZE * SIZE));
        let nothing = vec![f64::NAN; SIZE * SIZE];
        let contents = [&a, &b, &nothing, &nothing, &nothing];
        let contents = contents.map(|numbers| bytes(Precision::F32, numbers));
        let memories = Memories::new(&mut machine, queue, &contents);
        let (codelet, values) = product();
        let of = |places: [usize; 3], after: &[usize]| {
            let memories = places.map(|place| memories.args[place]);
            let args = [&memories[..], &values].concat();
            GraphLaunch {
                launch: Arc::new(launch(&codelet, 0..1, args)),
                after: after.to_vec(),
            }
        };
        let launches = vec![
            of([0, 1, 2], &[]),
            of([1, 0, 3], &[]),
            of([2, 3, 4], &[0, 1]),
        ];
        let graph = Arc::new(CommandGraph::new(launches).expect("a graph"));
        let (c, d) = (times(&a, &b), times(&b, &a));
        let expected = [c.clone(), d.clone(), times(&c, &d)];
        Self {
            machine,
            queue,
            memories,
            graph,
            expected,
        }
    }

    /// Poisons the results, launches the graph, and checks them.
    fn launch(&mut self) {
        let nothing = bytes(Precision::F32, &[f64::NAN; SIZE * SIZE]);
        for place in 2..5 {
            self.memories
                .write(&mut self.machine, self.queue, place, &nothing);
        }
        let command = Command::Graph(Arc::clone(&self.graph));
        enqueue(&mut self.machine, self.queue, command, &[]);
        let got = self.memories.read(&mut self.machine, self.queue);
        for (got, expected) in got[2..].iter().zip(&self.expected) {
            let got = numbers(Precision::F32, got);
            let mut pairs = got.iter().zip(expected);
            assert!(pairs.all(|(got, expected)| (got - expected).abs() < 1e-4));
        }
    }

    fn serves(&mut self) -> Option<Implementation> {
        self.machine.implementations()[0].serves
    }
}

/// A graph whose launches were tried, and which the library serves.
fn settled(fake: &Fake) -> Products {
    let mut products = Products::new();
    for _ in 0..3 {
        assert_eq!(fake.live()[4], 0, "launches are tried one by one");
        products.launch();
    }
    assert_eq!(products.serves(), Some(Implementation::Library));
    products
}

#[test]
fn calls_of_libraries_are_parts_of_a_graph_once_they_have_won() {
    let fake = fake();
    let mut products = settled(&fake);
    products.launch();
    assert_eq!(fake.live()[4], 1);
    // The library is called no more.
    fake.fail("cublasGemm", 13, 1);
    products.launch();
    assert_eq!(products.serves(), Some(Implementation::Library));
    fake.fail("", 0, 0);
    drop(products);
    assert_eq!(fake.live()[4], 0, "graphs are given back");
    assert_eq!(fake.handles(), 0, "handles are given back");
    assert_eq!(fake.allocated(0), 0, "memory is given back");
}

#[test]
fn ours_serves_where_a_call_cannot_be_captured() {
    let fake = fake();
    for call in [
        "cuStreamBeginCapture",
        "cublasGemm",
        "cuStreamEndCapture",
        "cuGraphAddChildGraphNode",
    ] {
        let mut products = settled(&fake);
        fake.fail(call, 801, 1);
        products.launch();
        fake.fail("", 0, 0);
        products.launch();
        assert_eq!(fake.live()[4], 1, "{call}");
    }
}
