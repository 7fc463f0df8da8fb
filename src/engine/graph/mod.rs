//! Running task graphs: a graph, its components, a policy, and the devices of a
//! runtime.
//!
//! * [`PreparedGraph`] (`prepared_graph`) keeps from run to run what runs share:
//!   memory (`storage`), queues, compiled kernels and command plans
//!   (`command_plan`).
//! * A run (`run`) asks the policy for components and dispatches them
//!   (`dispatch`): it enqueues each whole, as [`pdawl_core::graph::CommandQueues`]
//!   says, or several in turns (`interleaving`), or, from the second run on, as one
//!   command where a device takes graphs of commands (`command_graphs`). Some commands
//!   notify the host of their end (`command_plan`), and the run tells the policy. `state` is how far the
//!   run is, `regroup` handles losses and returns, `timeline` makes a trace.
//! * An [`OpenGraph`] (`open`) grows while it runs, in turns.
//! * A component waits in its device's `window` until all its data have room there.
//!   `eviction` makes the room, `loading` brings inputs while others compute.
//! * [`problem`] is what policies know of a graph, [`times`] measures its kernels,
//!   [`search`] looks for the best clustering, and [`mod@reference`] computes the
//!   results one kernel after the other.
//!
//! Nothing within a component waits for the host. Data that several components or
//! the host need are in host memory when the kernel that makes them has ended, so
//! any device can take a component, and another can repeat what a lost one did not
//! finish. Data that only one device needs stay there; if that device is lost, the
//! components that made them run again. A lost device that is back gets components
//! again, once what is in flight has ended. An output that its kernel may write only
//! in part begins with zeros in every run.
//!
//! # Example
//!
//! Two kernels, one after the other, on a simulated machine:
//!
//! ```
//! use std::sync::Arc;
//! use std::sync::atomic::AtomicBool;
//!
//! use pdawl_codelet::{Codelet, Cost, HostCode, HostValue, KernelSource, NdRange, OpenClKernel, Shape};
//! use pdawl_engine::graph::{Control, Options, PreparedGraph, abilities, problem::problem};
//! use pdawl_core::graph::{Argument, Components, Contents, Datum, GraphBuilder, Kernel};
//! use pdawl_hardware::machine::MachineStore;
//! use pdawl_core::policy::Adaptive;
//! use pdawl_hardware::runtime::Devices;
//! use pdawl_hardware::runtime::sim::{Sim, SimOptions};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let increment = Arc::new(Codelet {
//!     name: "increment".into(),
//!     host: Some(HostCode::Kernel(|args, _first, units| {
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
//!     })),
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
//!     library: None,
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
//!         arguments: vec![Argument::Input(from), Argument::FullOutput(to)],
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
//! let able = abilities(&graph, &components, runtime.devices());
//! let problem = problem(&graph, &components, &runtime, &able, &Vec::new());
//!
//! let mut prepared = PreparedGraph::new(&runtime, graph, components)?;
//! let mut policy = Adaptive::new(problem);
//! let stop = AtomicBool::new(false);
//! let mut control = Control { stop: &stop, progress: &mut |_done, _all| {} };
//! let options = Options::queues(vec![1, 3]);
//! let outcome = prepared.run(&mut runtime, &mut policy, &options, &mut control)?;
//! assert_eq!(outcome.kernels(), 2);
//! assert!(prepared.bytes(&mut runtime, result)?.iter().all(|byte| *byte == 9));
//! # Ok(())
//! # }
//! ```

mod bound;
mod command_graphs;
mod command_plan;
mod dispatch;
mod division;
mod eviction;
mod interleaving;
pub mod kernel_seconds;
mod loading;
mod open;
mod outcome;
mod prepared_graph;
pub mod probe;
pub mod problem;
pub mod reference;
mod regroup;
mod run;
pub mod search;
mod state;
mod storage;
mod timeline;
pub mod times;
mod views;
mod window;

use std::sync::atomic::AtomicBool;

use crate::codelet::Name;
use crate::machine::Device;
use crate::policy::SIDE_BY_SIDE;
use pdawl_core::graph::{DatumId, Kernel, KernelId, TaskGraph};

pub use bound::least_seconds;
pub use division::{Division, GraphRuns, Repetition, TimedRun};
pub use open::{Ended, OpenGraph, TimedCommand, Turned};
pub use outcome::{DeviceUse, GraphLoss, GraphOutcome, GraphRunError, Launched, Placement};
pub use prepared_graph::{PreparedGraph, abilities, abilities_of, able};
pub use storage::host_bytes;

/// How a graph is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Queues of each device; devices without an entry have one.
    pub queues: Vec<usize>,
    /// Queues of each device that one component is spread over; devices without an
    /// entry spread it over all. With fewer, components take turns on the queues.
    pub widths: Vec<usize>,
    /// Keep a trace of all commands, with the times of the devices. Without one,
    /// queues need no profiling, which is cheaper.
    pub trace: bool,
    /// Leave given data on the devices for the next run.
    pub keep: bool,
    /// The run prepares others or measures for them: its levels are no phases of the
    /// runtime, so faults that are scheduled by phases wait.
    pub trial: bool,
}

impl Options {
    /// So many queues of each device.
    pub fn queues(queues: Vec<usize>) -> Self {
        Self {
            queues,
            widths: Vec::new(),
            trace: false,
            keep: false,
            trial: false,
        }
    }

    /// Queues for single kernels of a graph as components. Kernels on which others wait, such
    /// as the panels of a factorisation, often occupy few of a GPU's multiprocessors, so that
    /// several kernels run there at the same time. Without precedences nothing waits for one
    /// kernel more than for another, and a device computes one after the other.
    pub fn of_tasks(graph: &TaskGraph, devices: &[Device]) -> Self {
        let mut kernels = (0..graph.kernels().len()).map(KernelId);
        let waits = kernels.any(|kernel| !graph.predecessors(kernel).is_empty());
        let queues = devices
            .iter()
            .map(|device| match waits && !device.shares_host_memory {
                true => SIDE_BY_SIDE,
                false => 1,
            });
        Self::queues(queues.collect())
    }

    /// The queues of a device, and how many of them one component gets.
    pub fn of(&self, device: usize) -> (usize, usize) {
        let queues = self.queues.get(device).copied().unwrap_or(1).max(1);
        let width = self.widths.get(device).copied().unwrap_or(queues);
        (queues, width.clamp(1, queues))
    }
}

/// How a run is observed and stopped.
pub struct Control<'a> {
    /// Set from outside: dispatch nothing more, and end.
    pub stop: &'a AtomicBool,
    /// Receives the number of components that are done, and of all.
    pub progress: &'a mut dyn FnMut(usize, usize),
}

/// The name of the kernel with the most bytes of data that a device can run, and these.
pub fn largest_kernel<'g>(graph: &'g TaskGraph, device: &Device) -> Option<(&'g Name, u64)> {
    let bytes = |kernel: &Kernel| {
        let data = kernel.inputs().chain(kernel.outputs());
        let mut memory: Vec<DatumId> = data.map(|datum| graph.first_version(datum)).collect();
        memory.sort_unstable();
        memory.dedup();
        memory.iter().map(|datum| graph.datum(*datum).bytes).sum()
    };
    let kernels = graph.kernels().iter();
    let own = kernels.filter(|kernel| able(device, &kernel.codelet));
    let sizes = own.map(|kernel| (&kernel.name, bytes(kernel)));
    // The first one of several.
    sizes.rev().max_by_key(|(_, bytes)| *bytes)
}
