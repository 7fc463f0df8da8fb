//! The thread that drives a node of a [`Cluster`](super::Cluster). It owns the wire, the
//! devices and the node, and gets programs one after the other.

use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use crossbeam_channel::{Receiver, Sender, unbounded};

use super::abandon::abandon;
use super::error::ClusterError;
use super::handle::ClusterOptions;
use super::node::{Node, Options};
use super::results::Results;
use super::run::{Control, Sink};
use crate::cluster::NodeId;
use crate::cluster::space::Extent;
use crate::cluster::wire::Wire;
use crate::machine::host::Host;
use crate::quantity::Bytes;
use crate::runtime::{Runtime, select};
use crate::workload::cluster::ClusterWorkload;
use crate::workload::cluster::program::Program;

/// What a node is to do.
enum Order {
    Run(Arc<Program>),
    /// Ends the cluster, as this process does not go on.
    Abandon,
}

/// A node that a thread drives.
pub(super) struct Driver {
    orders: Option<Sender<Order>>,
    opened: Receiver<Result<(), ClusterError>>,
    ran: Receiver<Result<Results, ClusterError>>,
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
            let node = match join(wire, &mut *runtime, &options) {
                Ok(node) => node,
                Err(error) => {
                    let _ = opened.send(Err(error));
                    return Ok(());
                }
            };
            // Whoever does not wait for these does not go on either.
            let _ = opened.send(Ok(()));
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

    /// Waits until all nodes have opened their devices.
    pub fn opened(&mut self) -> Result<(), ClusterError> {
        self.opened.recv().unwrap_or_else(|_| Err(ended()))
    }

    /// Begins a program.
    pub fn run(&self, program: &Arc<Program>) {
        if let Some(orders) = &self.orders {
            // A thread that has ended gives no answer, which tells it.
            let _ = orders.send(Order::Run(Arc::clone(program)));
        }
    }

    /// Waits for the end of the program.
    pub fn ran(&self) -> Result<Results, ClusterError> {
        self.ran.recv().unwrap_or_else(|_| Err(ended()))
    }

    /// No program follows.
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
    answers: &Sender<Result<Results, ClusterError>>,
) -> Result<(), ClusterError> {
    for order in orders {
        let ran = match order {
            Order::Run(program) => run(&mut node, &program, here),
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

/// Runs a program, and takes its results.
fn run(node: &mut Node, program: &Program, here: usize) -> Result<Results, ClusterError> {
    if let Err(error) = check(node, program, here) {
        return Err(node.fail(error));
    }
    let is_first = node.me() == NodeId::FIRST;
    let mut brought: Vec<(usize, Vec<u8>)> =
        program.results().map(|space| (space, Vec::new())).collect();
    let outputs = brought.iter_mut().filter(|_| is_first);
    let mut control = Control {
        tile: 1,
        verify: None,
        outputs: outputs
            .map(|(space, bytes)| (*space, bytes as &mut dyn Sink))
            .collect(),
        progress: &mut |_| {},
    };
    let outcome = node.run_next(program, &mut control)?;
    Ok(Results::new(program, outcome, brought))
}

/// Checks that a program can run on nodes of which so many are in this process.
fn check(node: &Node, program: &Program, here: usize) -> Result<(), ClusterError> {
    program.check()?;
    let bytes = |extent: Extent| {
        let Extent {
            rows,
            columns,
            element,
        } = extent;
        u128::from(rows) * u128::from(columns) * u128::from(element)
    };
    let spaces = program.spaces();
    let all: u128 = spaces.iter().map(|space| bytes(space.extent)).sum();
    let brought: u128 = match node.me() {
        NodeId::FIRST => program
            .results()
            .map(|space| bytes(spaces[space].extent))
            .sum(),
        _ => 0,
    };
    let needed = all * here as u128 / u128::from(node.size()) + brought;
    let has = Host::detect().memory.obtainable(0);
    match needed > u128::from(has) {
        true => Err(ClusterError::Memory {
            program: program.name().to_owned(),
            needed: Bytes(u64::try_from(needed).unwrap_or(u64::MAX)).to_string(),
            has: Bytes(has).to_string(),
        }),
        false => Ok(()),
    }
}
