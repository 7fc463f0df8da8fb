//! Command graphs as CUDA's graphs: built of kernels and their precedences, instantiated
//! once, and launched with one call from then on.

use std::sync::Arc;

use cudarc::driver::sys::CUgraphNode;

use super::backend::CudaBackend;
use super::error::Failure;
use super::handle::{Graph, GraphExec, Stream};
use super::launch::{LaunchEnv, Prepared, prepare};
use super::memory::KeepAlive;
use crate::codelet::Memory;
use crate::runtime::{CommandGraph, IdMap, QueueId, RuntimeError};

/// The first driver that has all calls that make graphs, as CUDA counts versions.
pub(super) const FIRST_WITH_GRAPHS: i32 = 12000;

/// Prepared graphs, by device and address of the graph, which is held so that its address
/// stays unique.
#[derive(Default)]
pub(super) struct Graphs(IdMap<(usize, usize), (Arc<CommandGraph>, Arc<PreparedGraph>)>);

impl Graphs {
    /// Drops the graphs that use memory about to be freed, and those that nobody else holds
    /// any more.
    pub(super) fn forget(&mut self, memory: Memory) {
        let uses = |graph: &CommandGraph| {
            let mut launches = graph.launches().iter();
            launches.any(|of| of.launch.memories().any(|own| own == memory))
        };
        self.0
            .retain(|_, (graph, _)| Arc::strong_count(graph) > 1 && !uses(graph));
    }

    /// The prepared graph, prepared now if it was not before.
    pub(super) fn prepared(
        &mut self,
        graph: &Arc<CommandGraph>,
        env: &mut LaunchEnv<'_>,
    ) -> Result<Arc<PreparedGraph>, RuntimeError> {
        let key = (env.index, Arc::as_ptr(graph).addr());
        if let Some((_, prepared)) = self.0.get(&key) {
            return Ok(Arc::clone(prepared));
        }
        let prepared = Arc::new(PreparedGraph::new(graph, env)?);
        self.0
            .insert(key, (Arc::clone(graph), Arc::clone(&prepared)));
        Ok(prepared)
    }
}

/// A command graph that can be launched as often as one likes. It must outlive its commands.
pub(super) struct PreparedGraph {
    way: Way,
    _keep_alive: Vec<KeepAlive>,
}

enum Way {
    Whole(GraphExec),
    /// Its launches in order, where the driver does not make the graph.
    OneByOne(Vec<Prepared>),
}

impl PreparedGraph {
    fn new(graph: &CommandGraph, env: &mut LaunchEnv<'_>) -> Result<Self, RuntimeError> {
        if !env.device.runs_graphs {
            return Err(RuntimeError::Call {
                device: env.device.info.name.clone(),
                call: "cuGraphLaunch",
                why: "the driver is older than CUDA 12, which graphs need; enqueue the \
                      launches one by one"
                    .to_owned(),
            });
        }
        // The launches of a graph share memory for series of kernels, as those of a queue do.
        let mut scratch = None;
        let mut prepared = Vec::with_capacity(graph.launches().len());
        for of in graph.launches() {
            prepared.push(prepare(&of.launch, &mut scratch, env)?);
        }
        let keep_alive = prepared.iter().map(|of| Arc::clone(&of.keep_alive));
        let keep_alive: Vec<KeepAlive> = keep_alive.collect();
        let way = match whole(graph, &prepared, env) {
            Ok(whole) => Way::Whole(whole),
            Err(failure) if failure.is_loss() => return Err(env.device.failed(failure)),
            Err(_) => Way::OneByOne(prepared),
        };
        Ok(Self {
            way,
            _keep_alive: keep_alive,
        })
    }

    /// Enqueues all launches.
    pub(super) fn enqueue(&self, stream: &Stream) -> Result<(), Failure> {
        match &self.way {
            Way::Whole(graph) => graph.launch(stream),
            Way::OneByOne(launches) => {
                let mut kernels = launches.iter().flat_map(Prepared::kernels);
                kernels.try_for_each(|kernel| kernel.enqueue(stream))
            }
        }
    }
}

impl CudaBackend {
    /// Enqueues a command graph, all of whose launches our kernels compute; returns what must
    /// outlive it.
    pub(super) fn launch_graph(
        &mut self,
        id: QueueId,
        graph: &Arc<CommandGraph>,
    ) -> Result<Vec<KeepAlive>, RuntimeError> {
        let unknown = RuntimeError::Unknown { what: "queue" };
        let queue = self.queues.get(&id).ok_or(unknown)?;
        let mut env = LaunchEnv {
            index: queue.device,
            device: &mut self.devices[queue.device],
            programs: &mut self.programs,
            libraries: self.libraries.as_mut(),
            memories: &self.memories,
        };
        let prepared = self.graphs.prepared(graph, &mut env)?;
        let enqueued = prepared.enqueue(&queue.stream);
        enqueued.map_err(|failure| env.device.failed(failure))?;
        Ok(vec![prepared as KeepAlive])
    }
}

/// Makes the graph of prepared launches. A launch may be several kernels, which follow one
/// another.
fn whole(
    graph: &CommandGraph,
    prepared: &[Prepared],
    env: &LaunchEnv<'_>,
) -> Result<GraphExec, Failure> {
    let made = Graph::new(&env.device.context)?;
    // By launch: the nodes with which it has ended.
    let mut ends: Vec<Vec<CUgraphNode>> = Vec::with_capacity(prepared.len());
    let mut scratch_user: Option<usize> = None;
    for (index, (of, prepared)) in graph.launches().iter().zip(prepared).enumerate() {
        let kernel = of.launch.codelet.opencl.as_ref();
        let uses_scratch = kernel.is_some_and(|kernel| kernel.is_series());
        let before = match uses_scratch {
            true => scratch_user.replace(index),
            false => None,
        };
        let before = of.after.iter().copied().chain(before);
        let mut after: Vec<CUgraphNode> = before.flat_map(|index| ends[index].clone()).collect();
        // The driver refuses a precedence that is told twice.
        after.sort_unstable();
        after.dedup();
        for kernel in prepared.kernels() {
            after = vec![kernel.add_to(&made, &after)?];
        }
        ends.push(after);
    }
    GraphExec::new(&made)
}
