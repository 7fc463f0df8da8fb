//! A cluster as one object, which owns its wire and its devices: it joins, runs programs one
//! after the other, and gives their results as values.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use super::ClusterError;
use super::driver::{Brought, Driver, Job};
use super::encode::{decode, encode};
use super::turn::PAUSE;
use crate::machine::Device;
use crate::runtime::select::Selection;
use crate::spread::NamedSpread;
use crate::workload::cluster::program::{Program, Space};
use bytemuck::Pod;
use pdawl_core::cluster::protocol::Message;
use pdawl_core::cluster::record::ClusterOutcome;
use pdawl_core::cluster::wire::agreement::Agreement;
use pdawl_core::cluster::wire::heartbeat::Pulse;
use pdawl_core::cluster::wire::{Arrived, LocalWire, Wire, WireError, agree, join};
use pdawl_core::cluster::{NodeId, protocol};
use thiserror::Error;

/// The nodes that run programs together.
///
/// Every process calls the same functions with the same programs in the same order (SPMD, as
/// with mpi4py). The first node gets the results; at the others they are none.
///
/// ```
/// use pdawl::cluster::space::Block;
/// use pdawl::engine::cluster::{Cluster, ClusterOptions};
/// use pdawl::workload::cluster::program::{Program, ProgramTask};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut program = Program::new("squares");
/// let numbers = program.given(8, 100, |row, column| (row + column) as f32);
/// let squares = program.space::<f32>(8, 100);
/// let row = |subtask: u64| Block::new(subtask..subtask + 1, 0..100);
/// let accesses = (numbers.read(row), squares.write(row));
/// program.add_task(ProgramTask::new("square", 8, accesses, |_, (numbers, mut squares)| {
///     let row = squares.block().rows.start;
///     for column in squares.block().columns.clone() {
///         squares[(row, column)] = numbers[(row, column)] * numbers[(row, column)];
///     }
/// }));
/// program.set_result(squares);
///
/// // `Cluster::join()` joins the processes that `mpirun` has started, on all of their devices.
/// let options = ClusterOptions { devices: Some("host:1".parse()?), ..ClusterOptions::default() };
/// let result = Cluster::join_with(options)?.run(program)?.to_vec::<f32>()?;
/// if let Some(squares) = result {
///     assert_eq!(squares[7 * 100 + 5], 144.0);
/// }
/// # Ok(())
/// # }
/// ```
pub struct Cluster {
    rank: usize,
    size: usize,
    /// This node, or all nodes of a cluster in threads, by rank.
    drivers: Vec<Driver>,
    devices: Vec<Device>,
}

/// How nodes join, and what they use.
#[derive(Clone, Debug, Default)]
pub struct ClusterOptions {
    /// The library that carries messages; by default the one that `$PDAWL_WIRE` names, and
    /// otherwise that of MPI near the executable, where a launcher has started several
    /// processes.
    pub wire: Option<PathBuf>,
    /// The devices of this node; by default the host and all OpenCL devices that are no CPUs.
    pub devices: Option<Selection>,
    /// How subtasks are spread over nodes.
    pub spread: NamedSpread,
    /// Of the policy's random choices.
    pub seed: u64,
    /// Ends the present run on all nodes when somebody sets it, such as a handler of Ctrl-C.
    pub stop: Arc<AtomicBool>,
}

impl Cluster {
    /// Joins the other processes that a launcher such as `mpirun` has started. A process that
    /// was started by itself is the only node.
    ///
    /// # Errors
    /// A wire that does not join, processes of other programs, lost nodes, and devices that
    /// cannot be opened. All nodes end then.
    pub fn join() -> Result<Self, ClusterError> {
        Self::join_with(ClusterOptions::default())
    }

    /// As [`Self::join`], with options. All nodes have the same policy and seed.
    ///
    /// # Errors
    /// As [`Self::join`].
    pub fn join_with(options: ClusterOptions) -> Result<Self, ClusterError> {
        let named = options.wire.clone();
        let named = named.or_else(|| std::env::var_os("PDAWL_WIRE").map(PathBuf::from));
        let wire: Box<dyn Wire> = match join(named.as_deref(), Pulse::default())? {
            Some(mut wire) => {
                agree(&mut wire, &asked(&options)?, &options.stop)?;
                Box::new(wire)
            }
            None => Box::new(LocalWire::alone()),
        };
        Self::of(vec![wire], &options)
    }

    /// A cluster of so many nodes that are threads of this process, for trying a program. The
    /// nodes share the machine's devices.
    ///
    /// # Errors
    /// No nodes, and devices that cannot be opened.
    pub fn in_threads(nodes: usize, options: ClusterOptions) -> Result<Self, ClusterError> {
        if nodes == 0 {
            let why = "a cluster of 0 nodes computes nothing; 1 or more are needed";
            return Err(ClusterError::Refused(why.to_owned()));
        }
        let wires = LocalWire::cluster(nodes).into_iter();
        Self::of(wires.map(|wire| Box::new(wire) as _).collect(), &options)
    }

    fn of(wires: Vec<Box<dyn Wire>>, options: &ClusterOptions) -> Result<Self, ClusterError> {
        let (rank, size, here) = (wires[0].rank(), wires[0].size(), wires.len());
        let drivers: Result<Vec<Driver>, ClusterError> = (wires.into_iter())
            .map(|wire| Driver::start(wire, options.clone(), here))
            .collect();
        let mut drivers = drivers?;
        let opened: Vec<_> = drivers.iter_mut().map(Driver::opened).collect();
        let opened: Vec<Vec<Device>> = opened.into_iter().collect::<Result<_, _>>()?;
        Ok(Self {
            rank,
            size,
            drivers,
            devices: opened.into_iter().next().unwrap_or_default(),
        })
    }

    /// The number of this node, from 0; 0 for nodes in threads.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The devices of this node; those of the first node in threads.
    pub fn devices(&self) -> &[Device] {
        &self.devices
    }

    /// How many nodes there are.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Runs a program, and brings its results to the first node. Every node calls it.
    ///
    /// # Errors
    /// A program that cannot run, or has no result; what devices and wires refuse; lost nodes,
    /// and [`ClusterOptions::stop`]. All nodes end then, and run no further program.
    pub fn run(&mut self, program: Program) -> Result<Results, ClusterError> {
        let program = Arc::new(program);
        let (outcome, brought) = self.run_job(&Job::of_program(Arc::clone(&program)))?;
        Ok(Results::new(&program, outcome, brought))
    }

    /// Runs a workload, as [`Self::run`] does a program.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn run_job(&mut self, job: &Job) -> Result<Brought, ClusterError> {
        for driver in &self.drivers {
            driver.run(job);
        }
        let ran: Vec<_> = self.drivers.iter().map(Driver::ran).collect();
        // The first node has been told why others ended.
        let mut results = ran.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter();
        match results.next() {
            Some(first) => Ok(first),
            None => Err(ClusterError::Interrupted),
        }
    }

    /// Waits until all nodes have come to this point, and leaves the cluster. What drops the
    /// cluster does the same, and does not tell what goes wrong.
    ///
    /// # Errors
    /// The loss of the first node.
    pub fn leave(mut self) -> Result<(), ClusterError> {
        // A node leaves when all others do.
        self.drivers.iter_mut().for_each(Driver::end);
        let left: Vec<_> = self.drivers.iter_mut().map(Driver::leave).collect();
        left.into_iter().collect()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for driver in &mut self.drivers {
            match std::thread::panicking() {
                true => driver.abandon(),
                false => driver.end(),
            }
        }
        for driver in &mut self.drivers {
            // Who wants to know it calls `leave`.
            let _ = driver.leave();
        }
    }
}

/// What a process is, as far as the library knows it. The program adds its sources.
pub fn build_agreement() -> Agreement {
    let mut agreement = Agreement::default();
    agreement.add("the version", env!("CARGO_PKG_VERSION"));
    agreement.add("the protocol", protocol::VERSION.to_string());
    agreement
}

/// What all nodes must have alike. Functions do not travel, so the executables are equal.
fn asked(options: &ClusterOptions) -> Result<Agreement, ClusterError> {
    let mut agreement = build_agreement();
    let program = std::env::current_exe().and_then(std::fs::read);
    let sum = twox_hash::xxhash3_128::Hasher::oneshot(&program.map_err(ClusterError::Executable)?);
    agreement.add("the executable", format!("{sum:032x}"));
    agreement.add("the policy", options.spread.to_string());
    agreement.add("the seed", options.seed.to_string());
    Ok(agreement)
}

/// How long a node waits for the first one to answer, which may still open its files.
const ANSWER: Duration = Duration::from_secs(3);

/// Time for the last messages to leave.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Tells the others why this node does not take part, so that all end. Returns whether the
/// first node has answered, and so tells it to its user; false at the first node itself.
pub fn abandon(wire: &mut dyn Wire, why: &str) -> bool {
    let (me, why) = (wire.rank(), why.to_owned());
    // The first node passes on what it receives.
    let to = match me {
        0 => 1..wire.size(),
        _ => 0..1,
    };
    let Ok(message) = encode(&Message::Stop { why }) else {
        return false;
    };
    for rank in to {
        if wire.send(rank, message.clone()).is_err() {
            return false;
        }
    }
    if wire.flush(LAST_WORDS).is_err() || me == 0 {
        return false;
    }
    let begin = Instant::now();
    while begin.elapsed() < ANSWER {
        match wire.poll() {
            Ok(Some(Arrived::Message { from: 0, bytes })) => {
                if let Some((Message::Stop { .. }, _)) = decode(&bytes) {
                    return true;
                }
            }
            Ok(Some(Arrived::Lost { rank: 0, .. } | Arrived::Excluded { by: 0 })) | Err(_) => {
                return false;
            }
            Ok(Some(_)) => {}
            Ok(None) => thread::sleep(PAUSE),
        }
    }
    false
}

/// Why a run has ended before it began, as this node has heard while it prepared its part.
pub fn heard(wire: &mut dyn Wire) -> ClusterError {
    let me = NodeId(wire.rank() as u32);
    loop {
        let (rank, why) = match wire.poll() {
            Ok(Some(Arrived::Message { bytes, .. })) => match decode(&bytes) {
                Some((Message::Stop { why }, _)) => return ClusterError::Stopped(why),
                _ => continue,
            },
            Ok(Some(Arrived::Excluded { by })) => {
                let by = NodeId(by as u32);
                return ClusterError::Excluded { me, by };
            }
            Ok(Some(Arrived::Lost { rank: 0, .. })) => return ClusterError::FirstLost,
            Ok(Some(Arrived::Lost { rank, why })) => (rank, why),
            Ok(None) => return ClusterError::Interrupted,
            Err(error) => return error.into(),
        };
        return WireError::LostAtStart { rank, why }.into();
    }
}

/// The results of a program, at the first node; at the others there are none.
#[derive(Clone, Debug)]
pub struct Results {
    outcome: Option<ClusterOutcome>,
    /// The spaces that the program brings, the result first: the name of their elements' type,
    /// and their bytes.
    spaces: Vec<(usize, &'static str, Vec<u8>)>,
}

/// Why a result has no such elements.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ResultError {
    #[error("the result has elements of type {has}, and not {asked}; ask for Vec<{has}>")]
    Type {
        has: &'static str,
        asked: &'static str,
    },
    #[error("{space} is no result of the program; add it with Program::add_result")]
    NoResult { space: String },
}

impl Results {
    pub(super) fn new(
        program: &Program,
        outcome: Option<ClusterOutcome>,
        brought: Vec<(usize, Vec<u8>)>,
    ) -> Self {
        let spaces = (brought.into_iter())
            .map(|(space, bytes)| (space, program.element_type(space), bytes))
            .collect();
        Self { outcome, spaces }
    }

    /// The elements of the program's result, by rows; `None` if this is not the first node.
    ///
    /// # Errors
    /// Elements of another type.
    pub fn to_vec<T: Pod>(&self) -> Result<Option<Vec<T>>, ResultError> {
        match self.spaces.first() {
            Some((_, has, bytes)) => self.elements(has, bytes),
            None => Ok(None),
        }
    }

    /// The elements of a space that the program [brings](Program::add_result), by rows; `None`
    /// if this is not the first node.
    ///
    /// # Errors
    /// A space that it does not bring.
    pub fn of<T: Pod>(&self, space: Space<T>) -> Result<Option<Vec<T>>, ResultError> {
        let mut spaces = self.spaces.iter();
        match spaces.find(|(number, ..)| *number == space.number()) {
            Some((_, has, bytes)) => self.elements(has, bytes),
            None => Err(ResultError::NoResult {
                space: format!("{space:?}"),
            }),
        }
    }

    /// What the nodes did; `None` if this is not the first node.
    pub fn outcome(&self) -> Option<&ClusterOutcome> {
        self.outcome.as_ref()
    }

    fn elements<T: Pod>(
        &self,
        has: &'static str,
        bytes: &[u8],
    ) -> Result<Option<Vec<T>>, ResultError> {
        let asked = std::any::type_name::<T>();
        if has != asked {
            return Err(ResultError::Type { has, asked });
        }
        Ok((self.outcome.as_ref()).map(|_| bytemuck::pod_collect_to_vec(bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pdawl_core::cluster::wire::LocalWire;

    fn received(wire: &mut LocalWire) -> Option<String> {
        match wire.poll() {
            Ok(Some(Arrived::Message { bytes, .. })) => match decode(&bytes) {
                Some((Message::Stop { why }, _)) => Some(why),
                other => panic!("{other:?}"),
            },
            _ => None,
        }
    }

    #[test]
    fn the_first_node_tells_all_others() {
        let mut wires = LocalWire::cluster(3);
        assert!(!abandon(&mut wires[0], "no file"));
        for wire in &mut wires[1..] {
            assert_eq!(received(wire).as_deref(), Some("no file"));
        }
    }

    #[test]
    fn another_node_tells_the_first_one_and_waits_for_its_answer() {
        let mut wires = LocalWire::cluster(2);
        let (mut second, mut first) = (wires.remove(1), wires.remove(0));
        let answered = thread::spawn(move || abandon(&mut second, "no file"));
        let why = loop {
            if let Some(why) = received(&mut first) {
                break why;
            }
            thread::yield_now();
        };
        assert_eq!(why, "no file");
        let message = encode(&Message::Stop { why }).unwrap();
        first.send(1, message).unwrap();
        assert!(answered.join().unwrap());
    }

    #[test]
    fn what_ended_a_run_is_heard_after_what_did_not() {
        let mut wires = LocalWire::cluster(3);
        let mut third = wires.remove(2);
        wires[0].send(2, vec![1]).unwrap();
        abandon(&mut wires[0], "no file");
        let heard_of = |wire: &mut LocalWire| heard(wire).to_string();
        assert_eq!(heard_of(&mut third), "no file");
        drop(wires.remove(1));
        assert!(heard_of(&mut third).contains("rank 1 was lost before the run began"));
        drop(wires);
        assert!(heard_of(&mut third).starts_with("node 0 was lost"));
    }

    #[test]
    fn a_first_node_that_is_lost_does_not_answer() {
        let mut wires = LocalWire::cluster(2);
        let mut second = wires.remove(1);
        drop(wires);
        assert!(!abandon(&mut second, "no file"));
    }
}
