//! The nodes that a program has joined: they run programs and operations, one after the other, and
//! the first one gets the results as values.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

use bytemuck::Pod;
use thiserror::Error as ThisError;

use super::build_agreement;
use super::driver::{Brought, Driver, Job};
use crate::cluster::record::ClusterOutcome;
use crate::cluster::wire::agreement::Agreement;
use crate::cluster::wire::heartbeat::Pulse;
use crate::cluster::wire::{LocalWire, Wire, agree, join};
use crate::engine::cluster::ClusterError;
use crate::executable;
use crate::machine::Device;
use crate::session::arrays::stopped;
use crate::session::{Error, Stop};
use crate::spread::NamedSpread;
use crate::workload::cluster::program::{Program, Space};

/// The processes that a launcher such as `mpirun` has started together, which run operations and
/// programs.
///
/// Every process calls the same functions with the same arrays and programs in the same order
/// (SPMD, as with mpi4py). The first node gets the results; at the others they are none.
///
/// ```
/// use pdawl::program::Block;
/// use pdawl::session::{ClusterOptions, Nodes};
/// use pdawl::program::{Program, ProgramTask};
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
/// // `Nodes::join` joins the processes that `mpirun` has started, on all of their devices.
/// let options = ClusterOptions { devices: Some("host:1".into()), ..ClusterOptions::default() };
/// let result = Nodes::in_threads(2, options)?.run(program)?.to_vec::<f32>()?;
/// if let Some(squares) = result {
///     assert_eq!(squares[7 * 100 + 5], 144.0);
/// }
/// # Ok(())
/// # }
/// ```
pub struct Nodes {
    rank: usize,
    size: usize,
    /// This node, or all nodes of a cluster in threads, by rank.
    drivers: Vec<Driver>,
    devices: Vec<Device>,
    spread: NamedSpread,
    stop: Stop,
}

/// How nodes join, and what they use.
#[derive(Clone, Debug, Default)]
pub struct ClusterOptions {
    /// The library that carries messages; by default the one that `$PDAWL_WIRE` names, and
    /// otherwise that of MPI near the executable, where a launcher has started several
    /// processes.
    pub wire: Option<PathBuf>,
    /// The devices of this node, as `--devices` names them; by default the host and all GPUs.
    pub devices: Option<String>,
    /// How subtasks are spread over nodes.
    pub spread: NamedSpread,
    /// Of the policy's random choices.
    pub seed: u64,
    /// Ends the present run on all nodes when somebody sets it, such as a handler of Ctrl-C.
    pub stop: Arc<AtomicBool>,
}

impl Nodes {
    /// Joins the other processes. A process that was started by itself is the only node. All
    /// nodes have the same policy and seed.
    ///
    /// # Errors
    /// A wire that does not join, processes of other programs, lost nodes, and devices that
    /// cannot be opened. All nodes end then.
    pub fn join(options: ClusterOptions) -> Result<Self, Error> {
        let named = options.wire.clone();
        let named = named.or_else(|| std::env::var_os("PDAWL_WIRE").map(PathBuf::from));
        let wire: Box<dyn Wire> =
            match join(named.as_deref(), Pulse::default()).map_err(ClusterError::from)? {
                Some(mut wire) => {
                    let asked = asked(&options)?;
                    agree(&mut wire, &asked, &options.stop).map_err(ClusterError::from)?;
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
    pub fn in_threads(nodes: usize, options: ClusterOptions) -> Result<Self, Error> {
        if nodes == 0 {
            let why = "a cluster of 0 nodes computes nothing; 1 or more are needed";
            return Err(Error::Arguments(why.to_owned()));
        }
        let wires = LocalWire::cluster(nodes).into_iter();
        Self::of(wires.map(|wire| Box::new(wire) as _).collect(), &options)
    }

    fn of(wires: Vec<Box<dyn Wire>>, options: &ClusterOptions) -> Result<Self, Error> {
        let (rank, size, here) = (wires[0].rank(), wires[0].size(), wires.len());
        let drivers: Result<Vec<Driver>, Error> = (wires.into_iter())
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
            spread: options.spread,
            stop: Stop::of(Arc::clone(&options.stop)),
        })
    }

    /// Ends the present run on all nodes when it is set; they can run nothing more then.
    pub fn stop(&self) -> Stop {
        self.stop.clone()
    }

    /// How subtasks are spread over nodes.
    pub(in crate::session) fn spread(&self) -> NamedSpread {
        self.spread
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
    pub fn run(&mut self, program: Program) -> Result<Results, Error> {
        let program = Arc::new(program);
        let (outcome, brought) = self.run_job(&Job::of_program(Arc::clone(&program)))?;
        Ok(Results::new(&program, outcome, brought))
    }

    /// Runs a workload, as [`Self::run`] does a program.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub(in crate::session) fn run_job(&mut self, job: &Job) -> Result<Brought, Error> {
        for driver in &self.drivers {
            driver.run(job);
        }
        let ran: Vec<_> = self.drivers.iter().map(Driver::ran).collect();
        // The first node has been told why others ended.
        let mut results = (ran.into_iter().collect::<Result<Vec<_>, _>>())
            .map_err(stopped)?
            .into_iter();
        match results.next() {
            Some(first) => Ok(first),
            None => Err(Error::Stopped),
        }
    }

    /// Waits until all nodes have come to this point, and leaves the cluster. What drops the
    /// cluster does the same, and does not tell what goes wrong.
    ///
    /// # Errors
    /// The loss of the first node.
    pub fn leave(mut self) -> Result<(), Error> {
        // A node leaves when all others do.
        self.drivers.iter_mut().for_each(Driver::end);
        let left: Vec<_> = self.drivers.iter_mut().map(Driver::leave).collect();
        Ok(left.into_iter().collect::<Result<(), _>>()?)
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        for driver in &mut self.drivers {
            match thread::panicking() {
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

/// What all nodes must have alike. Functions do not travel, so the executables are equal.
fn asked(options: &ClusterOptions) -> Result<Agreement, ClusterError> {
    let mut agreement = build_agreement();
    let program = executable::file().and_then(std::fs::read);
    let sum = twox_hash::xxhash3_128::Hasher::oneshot(&program.map_err(ClusterError::Executable)?);
    agreement.add("the executable", format!("{sum:032x}"));
    agreement.add("the policy", options.spread.to_string());
    agreement.add("the seed", options.seed.to_string());
    Ok(agreement)
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
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
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
    fn new(
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
