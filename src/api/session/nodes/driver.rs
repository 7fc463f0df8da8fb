//! The thread that drives a node of [`Nodes`](super::Nodes). It owns the wire, the devices and the
//! node, and gets workloads one after the other.

use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use crossbeam_channel::{Receiver, Sender, unbounded};

use super::joined::ClusterOptions;
use super::{abandon, opened_here};
use crate::cluster::NodeId;
use crate::cluster::info::NodeInfo;
use crate::cluster::protocol::Settings;
use crate::cluster::record::ClusterOutcome;
use crate::cluster::wire::Wire;
use crate::cluster::wire::agreement::Agreement;
use crate::engine::cluster::{ClusterError, Control, Node, Options, Sink, the_end};
use crate::machine::Device;
use crate::machine::host::Memory;
use crate::quantity::Bytes;
use crate::runtime::Runtime;
use crate::session::Error;
use crate::spread::Network;
use crate::workload::cluster::program::Program;
use crate::workload::cluster::{ClusterWorkload, PlacedWorkload, demand};

type Make =
    dyn Fn(&[NodeInfo], Network) -> Result<(PlacedWorkload, usize), ClusterError> + Send + Sync;

/// A workload of all nodes.
#[derive(Clone)]
pub struct Job {
    /// Makes it for the nodes, and says how many of them take part.
    pub make: Arc<Make>,
    /// The spaces that the first node gets.
    pub outputs: Vec<usize>,
    /// Compare the result with a reference.
    pub verify: bool,
    /// What it is called in errors.
    pub name: String,
    /// What all nodes must run alike.
    pub alike: Agreement,
}

impl Job {
    /// A program, and its results.
    pub fn of_program(program: Arc<Program>) -> Self {
        Self {
            name: program.name().to_owned(),
            alike: program.agreement(),
            outputs: program.results().collect(),
            verify: false,
            make: Arc::new(move |nodes, _| {
                program.check()?;
                Ok(((Arc::clone(&program) as _, 1), nodes.len()))
            }),
        }
    }
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
    opened: Receiver<Result<Vec<Device>, Error>>,
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
    ) -> Result<Self, Error> {
        let (orders, received) = unbounded();
        let (opened, is_opened) = unbounded();
        let (answers, ran) = unbounded();
        let name = format!("pdawl node {}", wire.rank());
        let drive = move || {
            let me = NodeId(wire.rank() as u32);
            let mut devices = match opened_here(options.devices.clone()) {
                Ok(devices) => devices,
                Err(error) => {
                    abandon(&mut *wire, &format!("{me}: {error}"));
                    let _ = opened.send(Err(error));
                    return Ok(());
                }
            };
            let runtime = devices.runtime();
            let of_runtime = runtime.devices().to_vec();
            let node = match join(wire, runtime, &options) {
                Ok(node) => node,
                Err(error) => {
                    let _ = opened.send(Err(error.into()));
                    return Ok(());
                }
            };
            // Whoever does not wait for these does not go on either.
            let _ = opened.send(Ok(of_runtime));
            let left = drive(node, here, &received, &answers);
            devices.end();
            left
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
    pub fn opened(&mut self) -> Result<Vec<Device>, Error> {
        self.opened.recv().unwrap_or_else(|_| Err(ended().into()))
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
    node.agree(&the_end())?;
    Ok(node.settle()?.finish()?)
}

/// Runs a workload, and takes its results.
fn run(node: &mut Node, job: &Job, here: usize) -> Result<Brought, ClusterError> {
    node.agree(&job.alike)?;
    let made = (job.make)(node.nodes(), Settings::default().network);
    let made = made.and_then(|made| check(node, job, &*made.0.0, here).map(|()| made));
    let ((workload, tile), part) = match made {
        Ok(made) => made,
        Err(error) => return Err(node.fail(error)),
    };
    node.take_part(part);
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
    let spaces = workload.spaces();
    let all = demand::bytes(workload);
    let brought: u128 = match node.me() {
        NodeId::FIRST => (job.outputs.iter())
            .map(|space| spaces[*space].extent.all_bytes())
            .sum(),
        _ => 0,
    };
    let needed = all * here as u128 / u128::from(node.size()) + brought;
    let has = Memory::obtainable_now();
    match needed > u128::from(has) {
        true => Err(ClusterError::Memory {
            program: job.name.clone(),
            needed: Bytes(u64::try_from(needed).unwrap_or(u64::MAX)).to_string(),
            has: Bytes(has).to_string(),
        }),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use bytemuck::Pod;

    use super::*;
    use crate::cluster::space::Block;
    use crate::cluster::wire::LocalWire;
    use crate::workload::cluster::program::{Program, ProgramTask};

    /// Two nodes, which run these programs and end; none runs nothing.
    fn together(programs: [Option<Program>; 2]) -> [Result<(), String>; 2] {
        let options = ClusterOptions {
            devices: Some("host:1".into()),
            ..ClusterOptions::default()
        };
        let wires = LocalWire::cluster(2).into_iter();
        let mut drivers: Vec<Driver> = wires
            .map(|wire| Driver::start(Box::new(wire), options.clone(), 2).unwrap())
            .collect();
        for driver in &mut drivers {
            driver.opened().unwrap();
        }
        let runs = programs.each_ref().map(Option::is_some);
        for (driver, program) in drivers.iter_mut().zip(programs) {
            if let Some(program) = program {
                driver.run(&Job::of_program(Arc::new(program)));
            }
            driver.end();
        }
        let mut ends = drivers.into_iter().zip(runs).map(|(mut driver, runs)| {
            let ran = if runs { driver.ran().map(drop) } else { Ok(()) };
            let left = driver.leave();
            ran.and(left).map_err(|error| error.to_string())
        });
        [ends.next().unwrap(), ends.next().unwrap()]
    }

    /// Adds one to each number, in bands of a row each, so many times.
    fn program<T: Pod + Send + Sync + From<u8> + std::ops::Add<Output = T>>(
        rows: u64,
        columns: u64,
        tasks: u64,
    ) -> Option<Program> {
        let mut program = Program::new("sums");
        let mut from = program.given(rows, columns, |_, _| T::from(0));
        for _ in 0..tasks {
            let to = program.space::<T>(rows, columns);
            let row = move |subtask: u64| Block::new(subtask..subtask + 1, 0..columns);
            let accesses = (from.read(row), to.write(row));
            program.add_task(ProgramTask::new(
                "sum",
                rows,
                accesses,
                |_, (from, mut to)| {
                    let from = from.slice().iter();
                    let sums = to.slice().iter_mut().zip(from);
                    sums.for_each(|(to, from)| *to = *from + T::from(1));
                },
            ));
            from = to;
        }
        program.set_result(from);
        Some(program)
    }

    #[test]
    fn nodes_that_run_other_programs_all_end_and_say_what_differs() {
        for (programs, part) in [
            (
                [program::<f32>(4, 8, 1), program::<f32>(4, 9, 1)],
                "space 0 is 4 x 8 of f32, given at node 0, and is 4 x 9 of f32, given at node 1",
            ),
            (
                [program::<f32>(4, 8, 1), program::<f64>(4, 8, 1)],
                "of f32, given at node 0, and is 4 x 8 of f64",
            ),
            (
                [program::<f32>(4, 8, 2), program::<f32>(4, 8, 1)],
                "space 2 is 4 x 8 of f32 at node 0, and is not given at node 1",
            ),
            (
                [None, program::<f32>(4, 8, 1)],
                "the operation is none, the end at node 0, and is program sums at node 1",
            ),
            (
                [program::<f32>(4, 8, 1), None],
                "the operation is program sums at node 0, and is none, the end at node 1",
            ),
        ] {
            for (node, end) in together(programs).into_iter().enumerate() {
                let why = end.expect_err("they differ");
                assert!(why.starts_with("the programs differ: "), "{node}: {why}");
                assert!(why.contains(part), "{node}: {why}");
            }
        }
        let alike = [program::<f32>(4, 8, 3), program::<f32>(4, 8, 3)];
        assert_eq!(together(alike), [Ok(()), Ok(())]);
    }
}
