//! The thread that drives a node of a [`Cluster`](super::Cluster). It owns the wire, the
//! devices and the node, and gets workloads one after the other.

use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use crossbeam_channel::{Receiver, Sender, unbounded};

use super::abandon::abandon;
use super::error::ClusterError;
use super::handle::ClusterOptions;
use super::node::{Node, Options};
use super::run::{Control, Sink};
use crate::cluster::NodeId;
use crate::cluster::protocol::Settings;
use crate::cluster::record::ClusterOutcome;
use crate::cluster::space::Extent;
use crate::cluster::wire::Wire;
use crate::machine::{Device, Host};
use crate::quantity::Bytes;
use crate::runtime::{Runtime, select};
use crate::workload::cluster::{ClusterWorkload, Fit, PlacedWorkload};

/// A workload of all nodes.
#[derive(Clone)]
pub struct Job {
    /// Makes it for the nodes.
    pub make: Arc<dyn Fn(Fit) -> Result<PlacedWorkload, ClusterError> + Send + Sync>,
    /// The spaces that the first node gets.
    pub outputs: Vec<usize>,
    /// Compare the result with a reference.
    pub verify: bool,
    /// What it is called in errors.
    pub name: String,
}

/// What came of a job: at the first node its outcome, and the bytes of its outputs.
pub type Brought = (Option<ClusterOutcome>, Vec<(usize, Vec<u8>)>);

/// What a node is to do.
enum Order {
    Run(Job),
    /// Ends the cluster, as this process does not go on.
    Abandon,
}

/// A node that a thread drives.
pub(super) struct Driver {
    orders: Option<Sender<Order>>,
    opened: Receiver<Result<Vec<Device>, ClusterError>>,
    ran: Receiver<Result<Brought, ClusterError>>,
    thread: Option<JoinHandle<Result<(), ClusterError>>>,
}

/// The thread has ended, and has reported why before.
fn ended() -> ClusterError {
    let why = "the node has ended with an error before; a new process joins again";
    ClusterError::Stopped(why.to_owned())
}

impl Driver {
    /// Starts the thread, which opens the devices. `here` nodes are in this process.
    ///
    /// # Errors
    /// When the system starts no thread.
    pub fn start(
        mut wire: Box<dyn Wire>,
        options: ClusterOptions,
        here: usize,
    ) -> Result<Self, ClusterError> {
        let (orders, received) = unbounded();
        let (opened, is_opened) = unbounded();
        let (answers, ran) = unbounded();
        let name = format!("pdawl node {}", wire.rank());
        let drive = move || {
            let me = NodeId(wire.rank() as u32);
            let mut runtime = match select::open(options.devices.as_ref(), false) {
                Ok((runtime, _)) => runtime,
                Err(error) => {
                    abandon(&mut *wire, &format!("{me}: {error}"));
                    let _ = opened.send(Err(error.into()));
                    return Ok(());
                }
            };
            let devices = runtime.devices().to_vec();
            let node = match join(wire, &mut *runtime, &options) {
                Ok(node) => node,
                Err(error) => {
                    let _ = opened.send(Err(error));
                    return Ok(());
                }
            };
            // Whoever does not wait for these does not go on either.
            let _ = opened.send(Ok(devices));
            drive(node, here, &received, &answers)
        };
        let thread = Builder::new()
            .name(name)
            .spawn(drive)
            .map_err(ClusterError::Thread)?;
        Ok(Self {
            orders: Some(orders),
            opened: is_opened,
            ran,
            thread: Some(thread),
        })
    }

    /// Waits until all nodes have opened their devices. Returns those of this node.
    pub fn opened(&mut self) -> Result<Vec<Device>, ClusterError> {
        self.opened.recv().unwrap_or_else(|_| Err(ended()))
    }

    /// Begins a workload.
    pub fn run(&self, job: &Job) {
        if let Some(orders) = &self.orders {
            // A thread that has ended gives no answer, which tells it.
            let _ = orders.send(Order::Run(job.clone()));
        }
    }

    /// Waits for the end of the workload.
    pub fn ran(&self) -> Result<Brought, ClusterError> {
        self.ran.recv().unwrap_or_else(|_| Err(ended()))
    }

    /// No workload follows.
    pub fn end(&mut self) {
        self.orders = None;
    }

    /// This process does not go on.
    pub fn abandon(&mut self) {
        if let Some(orders) = self.orders.take() {
            let _ = orders.send(Order::Abandon);
        }
    }

    /// Waits until the node has left.
    pub fn leave(&mut self) -> Result<(), ClusterError> {
        self.end();
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(left)) => left,
            Some(Err(_)) => Err(ended()),
            None => Ok(()),
        }
    }
}

fn join<'a>(
    wire: Box<dyn Wire>,
    runtime: &'a mut dyn Runtime,
    options: &'a ClusterOptions,
) -> Result<Node<'a>, ClusterError> {
    let spread = (wire.rank() == 0).then(|| options.spread.spread(options.seed));
    let of_node = Options::on(runtime, "a program of a user".to_owned());
    Node::join(wire, runtime, of_node, spread, &options.stop)
}

fn drive(
    mut node: Node,
    here: usize,
    orders: &Receiver<Order>,
    answers: &Sender<Result<Brought, ClusterError>>,
) -> Result<(), ClusterError> {
    for order in orders {
        let ran = match order {
            Order::Run(job) => run(&mut node, &job, here),
            Order::Abandon => {
                let why = format!("the program has panicked at {}", node.me());
                node.fail(ClusterError::Refused(why));
                return Ok(());
            }
        };
        let is_over = ran.is_err();
        // Nobody waits for the answer if the process ends.
        let _ = answers.send(ran);
        if is_over {
            return Ok(());
        }
    }
    Ok(node.settle()?.finish()?)
}

/// Runs a workload, and takes its results.
fn run(node: &mut Node, job: &Job, here: usize) -> Result<Brought, ClusterError> {
    let made = (job.make)(Fit::new(node.nodes(), Settings::default().network));
    let made = made.and_then(|made| check(node, job, &*made.0, here).map(|()| made));
    let (workload, tile) = match made {
        Ok(made) => made,
        Err(error) => return Err(node.fail(error)),
    };
    let is_first = node.me() == NodeId::FIRST;
    let outputs = job.outputs.iter();
    let mut brought: Vec<(usize, Vec<u8>)> = outputs.map(|space| (*space, Vec::new())).collect();
    let outputs = brought.iter_mut().filter(|_| is_first);
    let mut control = Control {
        tile,
        verify: job.verify.then_some(0),
        outputs: outputs
            .map(|(space, bytes)| (*space, bytes as &mut dyn Sink))
            .collect(),
        progress: &mut |_| {},
    };
    let outcome = node.run_next(&*workload, &mut control)?;
    Ok((outcome, brought))
}

/// Checks that a workload fits in the memory of nodes of which so many are in this process.
fn check(
    node: &Node,
    job: &Job,
    workload: &dyn ClusterWorkload,
    here: usize,
) -> Result<(), ClusterError> {
    let bytes = |extent: Extent| {
        let Extent {
            rows,
            columns,
            element,
        } = extent;
        u128::from(rows) * u128::from(columns) * u128::from(element)
    };
    let spaces = workload.spaces();
    let all: u128 = spaces.iter().map(|space| bytes(space.extent)).sum();
    let brought: u128 = match node.me() {
        NodeId::FIRST => (job.outputs.iter())
            .map(|space| bytes(spaces[*space].extent))
            .sum(),
        _ => 0,
    };
    let needed = all * here as u128 / u128::from(node.size()) + brought;
    let has = Host::detect().memory.obtainable(0);
    match needed > u128::from(has) {
        true => Err(ClusterError::Memory {
            program: job.name.clone(),
            needed: Bytes(u64::try_from(needed).unwrap_or(u64::MAX)).to_string(),
            has: Bytes(has).to_string(),
        }),
        false => Ok(()),
    }
}
