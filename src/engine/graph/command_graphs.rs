//! Components as command graphs: a driver gets all launches of a component with one call,
//! from the second run on in which they are the same.
//!
//! A graph has one end. So a component is a graph only if nothing outside would learn later
//! of what it waits for: see [`GraphPlan::new`].

use std::sync::Arc;

use super::command_plan::CommandPlan;
use super::dispatch::{Destination, End};
use super::interleaving::Dispatch;
use super::prepared_graph::PreparedGraph;
use super::run::GraphRun;
use super::timeline::Purpose;
use crate::runtime::{Command, CommandGraph, DeviceId, GraphLaunch, RuntimeError};
use pdawl_core::graph::{
    CommandQueues, Components, DatumId, KernelId, QueueCommand, QueueSlot, TaskGraph,
};

/// What a component needs to be a command graph.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct GraphPlan {
    /// The kernels in the order of [`CommandQueues::order`], and by kernel the places there
    /// of those that it comes after.
    kernels: Vec<(KernelId, Vec<usize>)>,
    /// What is copied to the host of what the last kernel makes.
    reads: Vec<(KernelId, DatumId)>,
    /// Whether another component waits for the last kernel.
    is_waited_for: bool,
    /// What its kernels read and do not make.
    inputs: Vec<DatumId>,
    /// What its kernels make of other versions, or others make versions of.
    versions: Vec<DatumId>,
}

impl GraphPlan {
    /// The graph of a component with these queues and what each of their commands waits for;
    /// `None` if it is to be enqueued one by one:
    ///
    /// * It is one launch alone, with which a driver is done no sooner.
    /// * Data are copied to the device: kernels that need none of them begin meanwhile.
    /// * Something outside waits for a kernel and not for the one that is the last to end.
    ///   Enqueued one by one, the kernel tells of its end before the component has ended.
    ///   So every component that reads from this one must read what the last kernel makes,
    ///   and the host may want nothing else.
    pub fn new(
        graph: &TaskGraph,
        components: &Components,
        component: usize,
        queues: &CommandQueues,
        waits: &[Vec<QueueSlot>],
    ) -> Option<Self> {
        let mut kernels: Vec<(KernelId, Vec<usize>)> = Vec::with_capacity(queues.order.len());
        let mut places: Vec<Vec<usize>> = vec![Vec::new(); queues.queues.len()];
        let mut reads = Vec::new();
        for (slot, waits) in queues.order.iter().zip(waits) {
            let kernel = match queues.at(*slot) {
                QueueCommand::NdRange(kernel) if reads.is_empty() => kernel,
                QueueCommand::Read(kernel, datum) => {
                    reads.push((kernel, datum));
                    continue;
                }
                QueueCommand::NdRange(_) | QueueCommand::Write(..) => return None,
            };
            let before = waits.iter().map(|slot| places[slot.queue][slot.position]);
            let after = places[slot.queue].last().copied().into_iter();
            let after = after.chain(before).collect();
            places[slot.queue].push(kernels.len());
            kernels.push((kernel, after));
        }
        let zeros = |(kernel, _): &(KernelId, _)| graph.kernel(*kernel).partial_outputs().count();
        if kernels.len() + kernels.iter().map(zeros).sum::<usize>() < 2 {
            return None;
        }
        let last = last_to_end(&kernels);
        let own = || kernels.iter().map(|(kernel, _)| *kernel);
        let outside = |kernel: KernelId| {
            let after = graph.successors(kernel).iter();
            let after = after.map(|next| components.of(*next));
            after.filter(move |other| *other != component)
        };
        let is_wanted = |kernel: KernelId| {
            let mut outputs = graph.kernel(kernel).outputs();
            outputs.any(|datum| graph.datum(datum).wanted)
        };
        let wait_for_last: Vec<usize> = last.into_iter().flat_map(outside).collect();
        let mut others = own().filter(|kernel| Some(*kernel) != last);
        if others.any(|kernel| {
            is_wanted(kernel) || outside(kernel).any(|other| !wait_for_last.contains(&other))
        }) || reads.iter().any(|(kernel, _)| Some(*kernel) != last)
        {
            return None;
        }
        let is_made_here = |datum: DatumId| {
            let maker = graph.producer(datum).map(|kernel| components.of(kernel));
            maker == Some(component)
        };
        let has_versions = |datum: DatumId| {
            graph.first_version(datum) != datum || graph.overwriter(datum).is_some()
        };
        let inputs = own().flat_map(|kernel| graph.kernel(kernel).inputs());
        let mut inputs: Vec<DatumId> = inputs.filter(|datum| !is_made_here(*datum)).collect();
        inputs.sort_unstable();
        inputs.dedup();
        let outputs = own().flat_map(|kernel| graph.kernel(kernel).outputs());
        let versions = outputs.filter(|datum| has_versions(*datum)).collect();
        Some(Self {
            kernels,
            reads,
            is_waited_for: !wait_for_last.is_empty(),
            inputs,
            versions,
        })
    }
}

/// The kernel that ends after all others, if there is one: it is the last in the order, and
/// all others come before it.
fn last_to_end(kernels: &[(KernelId, Vec<usize>)]) -> Option<KernelId> {
    let mut is_before: Vec<bool> = vec![false; kernels.len()];
    *is_before.last_mut()? = true;
    for place in (0..kernels.len()).rev() {
        if !is_before[place] {
            return None;
        }
        for before in &kernels[place].1 {
            is_before[*before] = true;
        }
    }
    kernels.last().map(|(kernel, _)| *kernel)
}

/// The launches of a component, as they were when a device ran it last.
pub(super) struct KnownGraph {
    plan: Arc<CommandPlan>,
    graph: Arc<CommandGraph>,
    /// Of the device's memory; as long as that is the same, so are the launches.
    generation: u64,
}

impl PreparedGraph {
    /// The launches of a component on a device, with their precedences.
    fn graph_launches(
        &mut self,
        device: usize,
        plan: &GraphPlan,
    ) -> Result<Vec<GraphLaunch>, RuntimeError> {
        let mut launches: Vec<GraphLaunch> = Vec::with_capacity(plan.kernels.len());
        // By kernel: its place among the launches.
        let mut places = Vec::with_capacity(plan.kernels.len());
        for (kernel, after) in &plan.kernels {
            let known = self.launch(*kernel, device)?;
            let mut after: Vec<usize> = after.iter().map(|before| places[*before]).collect();
            let zeros = known.zeros.iter().flat_map(|zeros| zeros.iter());
            for launch in zeros.chain([&known.kernel]) {
                let launch = Arc::clone(launch);
                launches.push(GraphLaunch { launch, after });
                after = vec![launches.len() - 1];
            }
            places.push(launches.len() - 1);
        }
        Ok(launches)
    }
}

impl GraphRun<'_> {
    /// The command graph that a component is on a device, if it ran there before with the
    /// same plan and the same launches.
    pub(super) fn known_graph(
        &mut self,
        component: usize,
        device: usize,
        plan: &Arc<CommandPlan>,
    ) -> Option<Arc<CommandGraph>> {
        let of_graph = plan.as_graph.as_ref()?;
        let prepared = &mut *self.prepared;
        let known = prepared.known_graphs[device].get(component)?.as_ref()?;
        if !Arc::ptr_eq(&known.plan, plan) {
            return None;
        }
        let graph = Arc::clone(&known.graph);
        let generation = prepared.storage.residency.space(device)?.generation();
        if known.generation != generation {
            // Data have moved, perhaps others.
            let launches = prepared.graph_launches(device, of_graph).ok()?;
            let mut both = launches.iter().zip(graph.launches());
            let is_same = |(one, other): (&GraphLaunch, &GraphLaunch)| {
                Arc::ptr_eq(&one.launch, &other.launch)
            };
            if !both.all(is_same) {
                return None;
            }
            prepared.known_graphs[device][component]
                .as_mut()?
                .generation = generation;
        }
        Some(graph)
    }

    /// Notes the launches of a component that was enqueued one by one.
    pub(super) fn note_launches(&mut self, dispatch: &Dispatch) -> Result<(), RuntimeError> {
        let (component, device) = (dispatch.component, dispatch.device);
        let Some(of_graph) = &dispatch.plan.as_graph else {
            return Ok(());
        };
        // In a graph that grows, no kernel runs twice. A trace ran what is known.
        if self.prepared.grows
            || !self.runtime.runs_graphs(DeviceId(device))
            || self
                .known_graph(component, device, &dispatch.plan)
                .is_some()
        {
            return Ok(());
        }
        let prepared = &mut *self.prepared;
        let space = prepared.storage.residency.space(device);
        let generation = space.map_or(0, |space| space.generation());
        let launches = prepared.graph_launches(device, of_graph)?;
        prepared.known_graphs[device][component] = Some(KnownGraph {
            plan: Arc::clone(&dispatch.plan),
            graph: Arc::new(CommandGraph::new(launches)?),
            generation,
        });
        Ok(())
    }

    /// Enqueues all launches of a component as one command, on its first queue. It waits for
    /// what its kernels wait for, none of which waits for one of them: a component begins
    /// when all that it reads has been made.
    pub(super) fn enqueue_graph(
        &mut self,
        dispatch: &mut Dispatch,
        graph: Arc<CommandGraph>,
    ) -> Result<(), RuntimeError> {
        let plan = Arc::clone(&dispatch.plan);
        let to = Destination {
            component: dispatch.component,
            device: dispatch.device,
            queue: dispatch.queue(0),
        };
        let Some(of_graph) = &plan.as_graph else {
            return Ok(());
        };
        let mut wait = Vec::new();
        for datum in &of_graph.inputs {
            wait.extend(self.arrival(to, *datum));
        }
        for datum in &of_graph.versions {
            self.replace_versions(to, *datum, &mut wait)?;
        }
        let end = match of_graph.reads.is_empty() || of_graph.is_waited_for {
            true => End::Notified,
            false => End::Covered,
        };
        self.submit_with(to, Purpose::Graph, Command::Graph(graph), &wait, end)?;
        for (kernel, datum) in &of_graph.reads {
            self.read(to, *kernel, *datum, Vec::new())?;
        }
        dispatch.enqueued = plan.queues.order.len();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graphs::{figure_6, given, kernel, step};
    use pdawl_core::graph::{Argument, Datum, GraphBuilder, Transfers};

    /// These data are written to the device, and read from it, and no other.
    #[derive(Default)]
    struct Copied {
        written: Vec<DatumId>,
        read: Vec<DatumId>,
    }

    impl Transfers for Copied {
        fn write(&self, datum: DatumId) -> bool {
            self.written.contains(&datum)
        }

        fn read(&self, datum: DatumId) -> bool {
            self.read.contains(&datum)
        }
    }

    /// The plan of the component that a kernel is in, where these kernels are one and each
    /// other kernel is one of its own.
    fn plan(graph: &TaskGraph, one: &[usize], queues: usize, copied: &Copied) -> Option<GraphPlan> {
        let key = |kernel: KernelId| match one.contains(&kernel.0) {
            true => usize::MAX,
            false => kernel.0,
        };
        let components = Components::by(graph, key).expect("components");
        let component = components.of(KernelId(one[0]));
        let queues = CommandQueues::new(graph, &components, component, queues, &[], copied);
        GraphPlan::new(graph, &components, component, &queues, &queues.waits())
    }

    fn none() -> Copied {
        Copied::default()
    }

    /// A given datum, and what the three kernels of a chain make of it.
    fn chain(graph: &mut GraphBuilder) -> [DatumId; 4] {
        let first = given(graph, "given");
        let (_, a) = step(graph, "a", &[first]);
        let (_, b) = step(graph, "b", &[a, first]);
        let (_, c) = step(graph, "c", &[b, first]);
        [first, a, b, c]
    }

    #[test]
    fn a_chain_is_a_graph_of_its_order() {
        let mut graph = GraphBuilder::default();
        let [first, ..] = chain(&mut graph);
        let graph = graph.build().expect("a graph");
        for queues in [1, 2, 5] {
            let plan = plan(&graph, &[0, 1, 2], queues, &none()).expect("a graph");
            let expected = [vec![], vec![0], vec![1]];
            let after = plan.kernels.iter().map(|(_, after)| after.clone());
            // On two queues the third kernel is behind the first one, too.
            let after: Vec<Vec<usize>> = after
                .map(|after| after.into_iter().max().into_iter().collect())
                .collect();
            assert_eq!(after, expected, "{queues} queues");
            assert_eq!((plan.inputs, plan.versions), (vec![first], vec![]));
        }
    }

    #[test]
    fn copies_to_the_device_and_single_launches_are_no_graphs() {
        let mut graph = GraphBuilder::default();
        let [first, ..] = chain(&mut graph);
        let graph = graph.build().expect("a graph");
        let copied = Copied {
            written: vec![first],
            ..none()
        };
        assert_eq!(plan(&graph, &[0, 1, 2], 1, &copied), None);
        assert_eq!(plan(&graph, &[0], 1, &none()), None);
        assert!(plan(&graph, &[0, 1], 1, &none()).is_some());
        // With the zeros of its output a kernel is two launches.
        let mut graph = GraphBuilder::default();
        let to = graph.datum(Datum::new("to", 8));
        graph.kernel(kernel("partial", vec![Argument::Output(to)]));
        let graph = graph.build().expect("a graph");
        assert!(plan(&graph, &[0], 1, &none()).is_some());
    }

    #[test]
    fn who_waits_for_a_kernel_waits_for_the_last_one_too() {
        // By the data that others read: whether the chain may be a graph.
        for (read, expected) in [
            (&[&[3][..]][..], true),
            (&[&[2, 3]], true),
            (&[&[1, 2, 3], &[3, 1]], true),
            (&[&[2]], false),
            (&[&[3], &[1]], false),
            (&[&[0]], true),
        ] {
            let mut graph = GraphBuilder::default();
            let all = chain(&mut graph);
            for (number, data) in read.iter().enumerate() {
                let inputs: Vec<DatumId> = data.iter().map(|datum| all[*datum]).collect();
                step(&mut graph, &format!("reader {number}"), &inputs);
            }
            let graph = graph.build().expect("a graph");
            for queues in 1..4 {
                let plan = plan(&graph, &[0, 1, 2], queues, &none());
                assert_eq!(plan.is_some(), expected, "{read:?}, {queues} queues");
            }
        }
    }

    #[test]
    fn the_host_wants_what_the_last_kernel_makes() {
        for (wanted, expected) in [(0, false), (1, false), (2, true)] {
            let mut graph = GraphBuilder::default();
            let mut last = given(&mut graph, "given");
            for number in 0..3 {
                let mut datum = Datum::new(format!("{number}"), 8);
                datum.wanted = number == wanted;
                let to = graph.datum(datum);
                let arguments = vec![Argument::Input(last), Argument::FullOutput(to)];
                graph.kernel(kernel(format!("{number}"), arguments));
                last = to;
            }
            let graph = graph.build().expect("a graph");
            assert_eq!(plan(&graph, &[0, 1, 2], 1, &none()).is_some(), expected);
        }
    }

    #[test]
    fn what_the_last_kernel_makes_is_read_behind_the_graph() {
        let mut graph = GraphBuilder::default();
        let [_, a, b, c] = chain(&mut graph);
        let graph = graph.build().expect("a graph");
        for queues in 1..4 {
            let plan = |read: &[DatumId]| {
                let copied = Copied {
                    read: read.to_vec(),
                    ..none()
                };
                plan(&graph, &[0, 1, 2], queues, &copied)
            };
            let found = plan(&[c]).expect("a graph");
            assert_eq!(found.reads, [(KernelId(2), c)]);
            assert_eq!(found.kernels.len(), 3);
            for read in [[a, c], [b, c], [a, b]] {
                assert_eq!(plan(&read), None);
            }
        }
    }

    #[test]
    fn of_two_kernels_that_end_a_component_the_later_one_counts() {
        // Another component reads what k3 and k4 make, the last kernels of figure 6.
        let graph = figure_6();
        let all = [1, 2, 3, 4, 5];
        // In one queue one of them is the last, and the other component reads both.
        let one = plan(&graph, &all, 1, &none()).expect("a graph");
        assert_eq!(one.kernels.len(), 5);
        assert_eq!(one.inputs, [0, 1, 3, 5].map(DatumId));
        // Over several queues either may be the last to end.
        assert_eq!(plan(&graph, &all, 2, &none()), None);
        assert_eq!(plan(&graph, &all, 3, &none()), None);
    }

    #[test]
    fn what_is_made_in_place_replaces_other_versions() {
        let mut graph = GraphBuilder::default();
        let first = given(&mut graph, "given");
        let [one, two] = ["one", "two"].map(|name| graph.datum(Datum::new(name, 8)));
        for (from, to) in [(first, one), (one, two)] {
            let arguments = vec![Argument::InOut { from, to }];
            graph.kernel(kernel("in place", arguments));
        }
        let graph = graph.build().expect("a graph");
        let plan = plan(&graph, &[0, 1], 2, &none()).expect("a graph");
        assert_eq!((plan.inputs, plan.versions), (vec![first], vec![one, two]));
    }
}
