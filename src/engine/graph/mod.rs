//! Running task graphs: a graph, its components, a policy, and the devices of a
//! runtime.
//!
//! A [`Plan`] is what outlives a run: memory, queues, compiled kernels, and what
//! is enqueued for a component (`storage`, `plan`, `score`). A run asks the policy for components, enqueues each
//! whole as [`crate::graph::CommandQueues`] has it (`dispatch`; several in turns,
//! `wave`), hears of those
//! ends that matter (`heard`) and tells the policy (`drive`); `books` knows what has been made and where it
//! lies. Nothing waits for the host within a component. [`numbers`] makes of a
//! graph what policies know of it, [`times`] measures kernels one by one, and
//! [`search`] tries configurations.
//! [`mod@reference`] runs the kernels one after the other, to compare with.
//!
//! Data that several components or the host need are in host memory when their
//! maker has ended, so a component can begin on any device, and what a lost
//! device had not finished can be done again elsewhere. What only one device
//! needs stays there; if that is lost, the components that made it run again.

//!
//! # Example
//!
//! Two kernels, one after the other, on a simulated machine:
//!
//! ```
//! use std::sync::Arc;
//! use std::sync::atomic::AtomicBool;
//!
//! use pdawl::codelet::{Codelet, Cost, HostValue, KernelSource, NdRange, OpenClKernel, Shape};
//! use pdawl::engine::graph::{Control, Options, Plan, abilities, numbers::problem};
//! use pdawl::graph::{Argument, Components, Contents, Datum, GraphBuilder, Kernel};
//! use pdawl::machine::MachineStore;
//! use pdawl::policy::Adaptive;
//! use pdawl::runtime::Runtime;
//! use pdawl::runtime::sim::{Sim, SimOptions};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let increment = Arc::new(Codelet {
//!     name: "increment".into(),
//!     host: Some(|args, _first, units| {
//!         let [HostValue::Memory { address: from, .. }, HostValue::Memory { address: to, .. }] =
//!             args
//!         else {
//!             return;
//!         };
//!         for unit in units {
//!             let unit = unit as usize;
//!             // SAFETY: both memories have a byte for each unit.
//!             unsafe { to.add(unit).write(from.add(unit).read() + 1) };
//!         }
//!     }),
//!     opencl: Some(OpenClKernel {
//!         source: KernelSource::new(
//!             "__kernel void increment(__global const uchar *from, __global uchar *to) {
//!                 to[get_global_id(0)] = from[get_global_id(0)] + 1;
//!             }",
//!             "increment.cl",
//!             "increment",
//!             "",
//!         ),
//!         fp64: false,
//!         shape: Shape::Of(|units, _| NdRange::new(vec![(units.end - units.start) as usize])),
//!     }),
//! });
//! let mut graph = GraphBuilder::default();
//! let given = graph.datum(Datum::new("given", 100).with(Contents::bytes(vec![7; 100])));
//! let between = graph.datum(Datum::new("between", 100));
//! let result = graph.datum(Datum::new("result", 100).wanted());
//! for (name, from, to) in [("first", given, between), ("second", between, result)] {
//!     graph.kernel(Kernel {
//!         name: name.into(),
//!         codelet: Arc::clone(&increment),
//!         units: 0..100,
//!         arguments: vec![Argument::Input(from), Argument::Output(to)],
//!         cost: Cost { flops: 100.0, bytes: 200.0 },
//!         prefers: None,
//!     });
//! }
//! let graph = Arc::new(graph.build()?);
//! // All kernels together on one device.
//! let components = Arc::new(Components::by(&graph, |_| ())?);
//!
//! let machine = MachineStore::of_user().find("k40")?;
//! let mut runtime = Sim::new(&machine, SimOptions { data: true, ..SimOptions::default() })?;
//! let devices = runtime.devices().to_vec();
//! let able = abilities(&graph, &components, &devices);
//! let problem = problem(&graph, &components, &devices, &able, &Vec::new());
//!
//! let mut plan = Plan::new(&runtime, graph, components)?;
//! let mut policy = Adaptive::new(problem);
//! let stop = AtomicBool::new(false);
//! let mut control = Control { stop: &stop, progress: &mut |_done, _all| {} };
//! let options = Options::queues(vec![1, 3]);
//! let outcome = plan.run(&mut runtime, &mut policy, &options, &mut control)?;
//! assert_eq!(outcome.kernels(), 2);
//! assert!(plan.bytes(&mut runtime, result)?.iter().all(|byte| *byte == 9));
//! # Ok(())
//! # }
//! ```

mod books;
mod dispatch;
mod drive;
mod error;
mod heard;
mod log;
pub mod numbers;
mod outcome;
mod plan;
mod recover;
pub mod reference;
mod score;
pub mod search;
mod storage;
pub mod times;
mod wave;

use std::sync::atomic::AtomicBool;

pub use error::GraphRunError;
pub use outcome::{DeviceUse, GraphLoss, GraphOutcome, Launched, Placement};
pub use plan::{Plan, abilities};

/// How a graph is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Queues of each device; devices without an entry have one.
    pub queues: Vec<usize>,
    /// Queues that one component is spread over, of each device; devices without
    /// an entry spread it over all. With fewer, components take turns.
    pub widths: Vec<usize>,
    /// Keep the spans of all commands, with the devices' own times. Without,
    /// queues need not stamp their commands, which is cheaper.
    pub trace: bool,
    /// Leave what came from the host on the devices for the next run.
    pub keep: bool,
}

impl Options {
    /// Every device with so many queues.
    pub fn queues(queues: Vec<usize>) -> Self {
        Self {
            queues,
            widths: Vec::new(),
            trace: false,
            keep: false,
        }
    }

    /// Queues of a device, and of these how many for one component.
    pub fn of(&self, device: usize) -> (usize, usize) {
        let queues = self.queues.get(device).copied().unwrap_or(1).max(1);
        let width = self.widths.get(device).copied().unwrap_or(queues);
        (queues, width.clamp(1, queues))
    }
}

/// How a run is watched and stopped.
pub struct Control<'a> {
    /// Set from outside: hand out nothing more, and end.
    pub stop: &'a AtomicBool,
    /// Told the components done and all that there are.
    pub progress: &'a mut dyn FnMut(usize, usize),
}
