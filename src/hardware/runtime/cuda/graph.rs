//! Command graphs as CUDA's graphs: built of kernels, of what calls of libraries enqueue, and of
//! their precedences, instantiated once, and launched with one call from then on.

use std::sync::Arc;

use cudarc::driver::sys::CUgraphNode;

use super::backend::{Cuda, Here};
use super::error::Failure;
use super::handle::{Graph, GraphExec, Stream};
use super::launch::{LaunchEnv, LaunchPart, Prepared, Stopped, prepare};
use super::library::{Room, prepare_library};
use super::memory::Allocation;
use super::serve::Served;
use crate::runtime::driven::KeepAlive;
use crate::runtime::{CommandGraph, RuntimeError};

/// The first driver that has all calls that make graphs, as CUDA counts versions.
pub(super) const FIRST_WITH_GRAPHS: i32 = 12000;

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
    /// A graph whose launches are served so.
    fn new(
        graph: &CommandGraph,
        served: &[Served<'_>],
        env: &mut LaunchEnv<'_>,
    ) -> Result<Self, RuntimeError> {
        if !env.device.runs_graphs {
            let why = "the driver is older than CUDA 12, which graphs need; enqueue the launches \
                       one by one";
            return Err(env.device.refused("cuGraphLaunch", why.to_owned()));
        }
        if served.iter().any(Option::is_some)
            && let Some(made) = Self::with_libraries(graph, served, env)?
        {
            return Ok(made);
        }
        // The launches of a graph share memory for series of kernels, as those of a queue do.
        let mut scratch = None;
        let mut prepared = Vec::with_capacity(graph.launches().len());
        for of in graph.launches() {
            prepared.push(prepare(&of.launch, &mut scratch, env)?);
        }
        let keep_alive = prepared.iter().map(|of| Arc::clone(&of.keep_alive));
        let keep_alive: Vec<KeepAlive> = keep_alive.collect();
        let way = match whole(graph, &prepared, &[], env) {
            Ok(whole) => Way::Whole(whole),
            Err(Stopped::Driver(failure)) if failure.is_loss() => {
                return Err(env.device.failed(failure));
            }
            Err(_) => Way::OneByOne(prepared),
        };
        Ok(Self {
            way,
            _keep_alive: keep_alive,
        })
    }

    /// A graph some of whose launches a library serves; `None` if it cannot be made.
    fn with_libraries(
        graph: &CommandGraph,
        served: &[Served<'_>],
        env: &mut LaunchEnv<'_>,
    ) -> Result<Option<Self>, RuntimeError> {
        let mut scratch = None;
        let mut prepared = Vec::with_capacity(graph.launches().len());
        for (of, served) in graph.launches().iter().zip(served) {
            let made = match served {
                None => prepare(&of.launch, &mut scratch, env)?,
                Some((kernel, described)) => {
                    match prepare_library(&of.launch, (kernel, described), &mut scratch, env)? {
                        Ok(made) => made,
                        Err(_) => return Ok(None),
                    }
                }
            };
            prepared.push(made);
        }
        let (of_launch, sizes) = rooms(graph, &prepared);
        let mut rooms: Vec<Arc<Allocation>> = Vec::with_capacity(sizes.len());
        for bytes in &sizes {
            match env.device.create(*bytes) {
                Ok(memory) => rooms.push(Arc::new(memory)),
                Err(error @ RuntimeError::DeviceLost { .. }) => return Err(error),
                Err(_) => return Ok(None),
            }
        }
        let lent: Vec<Room> = (of_launch.iter())
            .map(|room| room.map_or((0, 0), |room| (rooms[room].address(), sizes[room])))
            .collect();
        let keep_alive = prepared.iter().map(|of| Arc::clone(&of.keep_alive));
        let rooms = rooms.iter().map(|room| Arc::clone(room) as KeepAlive);
        let keep_alive: Vec<KeepAlive> = keep_alive.chain(rooms).collect();
        match whole(graph, &prepared, &lent, env) {
            Ok(whole) => Ok(Some(Self {
                way: Way::Whole(whole),
                _keep_alive: keep_alive,
            })),
            Err(Stopped::Driver(failure)) if failure.is_loss() => Err(env.device.failed(failure)),
            Err(_) => Ok(None),
        }
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

impl Cuda {
    /// Enqueues a command graph; returns what must outlive it. While libraries are tried for
    /// its launches, these are enqueued one by one.
    pub(super) fn launch_graph(
        &mut self,
        here: &mut Here<'_>,
        graph: &Arc<CommandGraph>,
    ) -> Result<Vec<KeepAlive>, RuntimeError> {
        let index = here.index;
        let prepared = match self.graphs.kept(index, graph, ()) {
            Some(prepared) => Arc::clone(prepared),
            None => {
                let launches = graph.launches().iter();
                let served = launches.map(|of| self.settled(index, &of.launch));
                let Some(served) = served.collect::<Option<Vec<Served<'_>>>>() else {
                    let mut keep_alive = Vec::new();
                    for of in graph.launches() {
                        keep_alive.extend(self.serve(here, &of.launch, None)?);
                    }
                    return Ok(keep_alive);
                };
                let (_, mut env) = self.launch_env(here);
                let prepared = Arc::new(PreparedGraph::new(graph, &served, &mut env)?);
                let launches = graph.launches().iter();
                let memories = launches.flat_map(|of| of.launch.memories());
                let of = (graph, memories);
                self.graphs.keep(index, of, (), Arc::clone(&prepared));
                prepared
            }
        };
        let enqueued = prepared.enqueue(&here.queue.own.stream);
        enqueued.map_err(|failure| here.device.failed(failure))?;
        Ok(vec![prepared as KeepAlive])
    }
}

/// Which memory for libraries each launch gets, and the bytes of these memories. Launches that
/// come after one another share one; others may run at the same time.
fn rooms(graph: &CommandGraph, prepared: &[Prepared]) -> (Vec<Option<usize>>, Vec<u64>) {
    let launches = graph.launches();
    // By launch, whether another one has ended when it starts.
    let mut before: Vec<Vec<bool>> = Vec::with_capacity(launches.len());
    let mut of_launch = vec![None; launches.len()];
    let mut sizes: Vec<u64> = Vec::new();
    // By memory: the launch that uses it last.
    let mut users: Vec<usize> = Vec::new();
    for (index, of) in launches.iter().enumerate() {
        let mut ended = vec![false; index];
        for earlier in &of.after {
            ended[*earlier] = true;
            for (ended, of_earlier) in ended.iter_mut().zip(&before[*earlier]) {
                *ended |= of_earlier;
            }
        }
        let bytes = prepared[index].least_room();
        if bytes > 0 {
            let free = users.iter().position(|user| ended[*user]);
            let room = free.unwrap_or(users.len());
            if room == users.len() {
                users.push(index);
                sizes.push(0);
            }
            users[room] = index;
            sizes[room] = sizes[room].max(bytes);
            of_launch[index] = Some(room);
        }
        before.push(ended);
    }
    (of_launch, sizes)
}

/// Makes the graph of prepared launches, to which this memory is lent for calls of libraries. A
/// launch may be several kernels and calls, which follow one another.
fn whole(
    graph: &CommandGraph,
    prepared: &[Prepared],
    rooms: &[Room],
    env: &LaunchEnv<'_>,
) -> Result<GraphExec, Stopped> {
    let context = &env.device.context;
    let made = Graph::new(context)?;
    // What the calls of libraries enqueue is found out on a stream of its own.
    let stream = match rooms.is_empty() {
        true => None,
        false => Some(Stream::new(context)?),
    };
    // By launch: the nodes with which it has ended.
    let mut ends: Vec<Vec<CUgraphNode>> = Vec::with_capacity(prepared.len());
    let mut scratch_user: Option<usize> = None;
    for (index, (of, prepared)) in graph.launches().iter().zip(prepared).enumerate() {
        let before = match prepared.is_of_queue {
            true => scratch_user.replace(index),
            false => None,
        };
        let before = of.after.iter().copied().chain(before);
        let mut after: Vec<CUgraphNode> = before.flat_map(|index| ends[index].clone()).collect();
        // The driver refuses a precedence that is given twice.
        after.sort_unstable();
        after.dedup();
        for part in &prepared.parts {
            let node = match (part, &stream) {
                (LaunchPart::Kernel(kernel), _) => kernel.add_to(&made, &after)?,
                (LaunchPart::Call(call), Some(stream)) => {
                    let captured = stream.captured(|stream| {
                        let done = call.enqueue(stream, rooms[index]);
                        done.map_err(|why| Stopped::Library {
                            why,
                            is_harmless: true,
                        })
                    })?;
                    // SAFETY: the call's memory and the room are kept as long as the graph.
                    unsafe { made.add_graph(&after, &captured) }?
                }
                // Without libraries there are no calls.
                (LaunchPart::Call(_), None) => continue,
            };
            after = vec![node];
        }
        ends.push(after);
    }
    Ok(GraphExec::new(&made)?)
}
