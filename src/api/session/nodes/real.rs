//! A node's part of a run that it has joined.

use std::sync::atomic::AtomicBool;

use super::{NodesOptions, NodesWork, opened_here};
use crate::cluster::protocol::Settings;
use crate::cluster::wire::Wire;
use crate::engine::cluster::{ClusterError, Control, Node, Options, Sink};
use crate::machine::Host;
use crate::machine::host::Memory;
use crate::report::Machine;
use crate::session::{Error, OpenDevices, Run};
use crate::trace::nodes;
use crate::workload::cluster::Check;

/// A node's devices, and what it computes with the others.
pub struct Part {
    work: NodesWork,
    devices: OpenDevices,
}

/// The end of a node's part.
pub struct PartEnd {
    /// At the first node.
    pub run: Option<Run>,
    /// All nodes have done their part.
    pub wire: Box<dyn Wire>,
    /// What no report has.
    pub notes: Vec<String>,
}

impl Part {
    /// Opens the devices of a list, or all, for a run of so many nodes.
    ///
    /// # Errors
    /// When a node's part does not fit in memory, and devices that cannot be opened.
    pub fn open(
        work: NodesWork,
        list: Option<String>,
        nodes: usize,
        verify: bool,
    ) -> Result<Self, Error> {
        let (all, size) = (work.bytes(), &work.size);
        let (needed, what) = match work.workload.check() {
            // The first node gets all blocks, and puts them together.
            Check::Whole(..) if verify => (2 * all, format!("the comparison of {size}")),
            _ => (
                all.div_ceil(nodes as u128),
                format!("a node's part of {size}"),
            ),
        };
        let here = Memory::obtainable_now();
        Error::unless_free(what, u64::try_from(needed).unwrap_or(u64::MAX), here)?;
        Ok(Self {
            work,
            devices: opened_here(list)?,
        })
    }

    /// Computes it with the others, who have the same `inputs`, in words. The first node gets the
    /// run, and `outputs` take its results. `progress` gets the tasks done, and all.
    ///
    /// # Errors
    /// What the runtime and the wire refuse, the loss of the first node or of all devices, and
    /// `stop` on any node. All nodes end then.
    pub fn run(
        mut self,
        (wire, inputs): (Box<dyn Wire>, &str),
        options: &NodesOptions,
        outputs: Vec<(usize, &mut dyn Sink)>,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<PartEnd, Error> {
        let is_first = wire.rank() == 0;
        let notes = std::mem::take(&mut self.devices.notes);
        let runtime = self.devices.runtime();
        let (name, version) = (self.work.workload.name(), env!("CARGO_PKG_VERSION"));
        let program = format!("pdawl {version} run {name} {}{inputs}", self.work.size);
        let settings = Settings {
            prefetch: options.prefetch,
            ..Settings::default()
        };
        let of_node = Options {
            settings,
            leaves_out: Some(settings.network),
            traces: options.traced,
            ..Options::on(runtime, program)
        };
        let spread = is_first.then(|| options.spread.spread(options.seed));
        let devices = runtime.devices().to_vec();
        let mut node = Node::join(wire, runtime, of_node, spread, stop)?;
        // All nodes know what all of them are, and make the same workload.
        let fitted = (self.work).fit(node.nodes(), settings.network, options.spread);
        node.take_part(fitted.map_err(|error| ClusterError::Refused(error.to_string()))?);
        let tasks = self.work.workload.tasks();
        let control = Control {
            tile: self.work.tile,
            verify: options.verify.then_some(options.seed),
            outputs: (outputs.into_iter())
                .map(|(space, sink)| (space, sink as &mut dyn Sink))
                .collect(),
            progress: &mut |done| progress(done, tasks),
        };
        let (outcome, wire) = node.run_until_settled(&*self.work.workload, control)?;
        self.devices.end();
        let run = outcome.map(|outcome| {
            let first = outcome.nodes.first().map(|node| node.name.clone());
            let mut machine = Machine::real(first.unwrap_or_default(), Host::detect(), devices);
            (machine.implementations).clone_from(&self.devices.machine.implementations);
            let of_nodes = outcome.nodes.iter().flat_map(|node| {
                let notes = node.notes.iter();
                notes.map(|note| format!("{}: {note}", node.name))
            });
            let notes = notes.into_iter().chain(of_nodes).collect();
            let report = self.work.report(&outcome, machine, notes, options);
            let trace = options.traced.then(|| nodes::of(&outcome));
            Run::new(report, trace.unwrap_or_default())
        });
        Ok(PartEnd {
            run,
            wire,
            notes: self.devices.notes,
        })
    }
}
