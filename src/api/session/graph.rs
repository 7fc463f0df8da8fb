//! Graphs of tasks.

mod tasks;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytemuck::Pod;

use super::{Error, Run, Session};
use crate::engine::graph::Division;
use crate::engine::graph::problem::KernelTimes;
use crate::engine::graph::{Control, GraphOutcome, Options, times};
use crate::graph::{Components, DatumId, KernelId, TaskGraph};
use crate::policy::{NamedPolicy, Policy, PolicyOptions, Problem};
use crate::report::run::graph::{Measured, report};
use crate::report::run::workload::DagParameters;
use crate::report::{Context, Parameters, Workload};
use crate::workload::task_set::{Body, TaskSet};

pub use tasks::{AnyData, Data, Task, TaskData, TaskGraphBuilder};

/// Makes a policy for a problem.
type MakePolicy = Box<dyn FnOnce(Problem) -> Box<dyn Policy>>;

/// A graph that is about to run.
pub struct GraphRun<'a> {
    session: &'a mut Session,
    graph: Result<TaskGraph, Error>,
    policy: Result<NamedOrOwn, Error>,
    gpu_memory: Option<u64>,
    /// Whether its tasks compute anything.
    has_bodies: bool,
    /// The number of its builder.
    number: Option<u64>,
    /// Tasks with kernels of the user's that are examined.
    examined: Vec<KernelId>,
}

enum NamedOrOwn {
    Named(NamedPolicy),
    Own(MakePolicy),
}

impl Session {
    /// A graph of tasks, which `build` adds.
    ///
    /// ```
    /// use pdawl::session::{Session, Task};
    ///
    /// # fn main() -> Result<(), pdawl::session::Error> {
    /// let mut session = Session::simulate("k40")?;
    /// let mut sum = None;
    /// let run = session.graph(|graph| {
    ///     let numbers = graph.given("numbers", &[1.0, 2.0, 3.0]);
    ///     let made = graph.result::<f64>("sum", 1);
    ///     let add = Task::new("add", |data| {
    ///         let sum: f64 = data.read::<f64>(0).iter().sum();
    ///         data.write(0)[0] = sum;
    ///     });
    ///     graph.task(add.reads(numbers).writes(made).cost(3.0, 32.0));
    ///     sum = Some(made);
    /// });
    /// let results = run.policy("heft").run()?;
    /// assert_eq!(results.of(sum.expect("it was made")), [6.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn graph(&mut self, build: impl FnOnce(&mut TaskGraphBuilder)) -> GraphRun<'_> {
        let mut builder = TaskGraphBuilder::new();
        build(&mut builder);
        let (number, examined) = (builder.number, std::mem::take(&mut builder.examined));
        GraphRun {
            number: Some(number),
            examined,
            ..self.run_of(builder.build(self.is_simulated()), true)
        }
    }

    /// A set of tasks that share data ([`crate::workload::task_set`]), such as those of
    /// `pdawl run tasks`, for comparing policies. Tasks that compute nothing run on simulated
    /// machines only.
    ///
    /// ```
    /// use pdawl::session::Session;
    /// use pdawl::workload::task_set::{Matmul2d, TaskSet, Tasks};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut session = Session::simulate("v100x2")?;
    /// let product = TaskSet::paper(Tasks::Matmul2d(Matmul2d::paper(10)));
    /// let seconds = |run: pdawl::session::Results| run.run().seconds;
    /// let eager = seconds(session.task_set(&product).policy("eager").run()?);
    /// let local = seconds(session.task_set(&product).policy("locality").run()?);
    /// assert!(local <= eager);
    /// # Ok(())
    /// # }
    /// ```
    pub fn task_set(&mut self, set: &TaskSet) -> GraphRun<'_> {
        let has_bodies = !matches!(set.body, Body::Model);
        let graph = match self.is_simulated() || has_bodies {
            true => set.graph().map_err(Error::from),
            false => Err(Error::Arguments(
                "tasks that compute nothing run on simulated machines only; \
                 Session::simulate opens one"
                    .to_owned(),
            )),
        };
        self.run_of(graph, has_bodies)
    }

    fn run_of(&mut self, graph: Result<TaskGraph, Error>, has_bodies: bool) -> GraphRun<'_> {
        GraphRun {
            number: None,
            has_bodies,
            gpu_memory: self.gpu_memory,
            session: self,
            graph,
            policy: Ok(NamedOrOwn::Named(NamedPolicy::LOCALITY)),
            examined: Vec::new(),
        }
    }
}

impl GraphRun<'_> {
    /// The policy of this name, as in `pdawl run dag --policy`; `locality` unless it is said.
    pub fn policy(self, name: &str) -> Self {
        let named = name.parse().map(NamedOrOwn::Named);
        Self {
            policy: named.map_err(Error::from),
            ..self
        }
    }

    /// A policy of the user's, made for the tasks and devices of the graph; see
    /// `examples/policy.rs`.
    pub fn policy_of(self, make: impl FnOnce(Problem) -> Box<dyn Policy> + 'static) -> Self {
        Self {
            policy: Ok(NamedOrOwn::Own(Box::new(make))),
            ..self
        }
    }

    /// At most so many bytes of each GPU's memory.
    pub fn gpu_memory(self, bytes: u64) -> Self {
        Self {
            gpu_memory: Some(bytes),
            ..self
        }
    }

    /// Runs it, traced.
    ///
    /// # Errors
    /// A datum that no task makes or two make, tasks that wait for one another, a policy that
    /// does not exist or gives a task to a device that cannot run it, too little memory, and
    /// [`Error::Stopped`].
    pub fn run(self) -> Result<Results, Error> {
        let Self {
            session,
            graph,
            policy,
            gpu_memory,
            has_bodies,
            number,
            examined,
        } = self;
        let (policy, graph) = (policy?, Arc::new(graph?));
        let _running = session.running()?;
        session.examine_tasks(&graph, &examined)?;
        let components = Arc::new(Components::single_kernels(&graph));
        let (stop, context) = (session.stop.clone(), session.context(described()));
        let runtime = session.runtime_with(has_bodies)?;
        let needs_times = match &policy {
            NamedOrOwn::Named(named) => named.needs_times(),
            NamedOrOwn::Own(_) => true,
        };
        let times = match needs_times {
            true => times::measure(runtime, &graph, gpu_memory, 1, &stop.0)?,
            false => KernelTimes::new(),
        };
        let mut division = Division::new(runtime, &graph, Arc::clone(&components), &times)?;
        if let Some(bytes) = gpu_memory {
            division.limit_memory(bytes);
        }
        let Division {
            problem,
            mut prepared,
        } = division;
        let options = Options {
            trace: true,
            ..Options::of_tasks(&graph, runtime.devices())
        };
        let run = || -> Result<(GraphOutcome, BTreeMap<DatumId, Vec<u8>>), Error> {
            let mut policy = match policy {
                NamedOrOwn::Named(named) => named.policy(problem, &PolicyOptions::default())?,
                NamedOrOwn::Own(make) => make(problem),
            };
            let mut control = Control {
                stop: &stop.0,
                progress: &mut |_, _| {},
            };
            let outcome = prepared.run(runtime, policy.as_mut(), &options, &mut control)?;
            if outcome.interrupted {
                return Err(Error::Stopped);
            }
            let mut wanted = BTreeMap::new();
            for (index, datum) in graph.data().iter().enumerate() {
                if datum.wanted && has_bodies {
                    let bytes = prepared.bytes(runtime, DatumId(index))?;
                    wanted.insert(DatumId(index), bytes.to_vec());
                }
            }
            Ok((outcome, wanted))
        };
        let ran = run();
        prepared.release(runtime);
        let (outcome, wanted) = ran?;
        Ok(Results::new(
            number,
            &outcome,
            (&graph, &components),
            context,
            wanted,
        ))
    }
}

fn described() -> Workload {
    let file = "tasks".to_owned();
    Workload::new("graph", Parameters::Dag(DagParameters { file, seed: 0 }))
}

/// A graph's run with its results.
pub struct Results {
    run: Run,
    /// Of the graph that has run.
    number: Option<u64>,
    wanted: BTreeMap<DatumId, Vec<u8>>,
}

impl Results {
    fn new(
        number: Option<u64>,
        outcome: &GraphOutcome,
        graph: (&TaskGraph, &Components),
        context: Context,
        wanted: BTreeMap<DatumId, Vec<u8>>,
    ) -> Self {
        let context = Context {
            policy: outcome.policy.to_owned(),
            ..context
        };
        let timed = std::slice::from_ref(outcome);
        let report = report(timed, outcome, graph, context, Measured::default());
        Self {
            run: Run::new(report, outcome.trace.clone()),
            number,
            wanted,
        }
    }

    /// The report and the trace.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// The elements of a [result](TaskGraphBuilder::result).
    ///
    /// # Panics
    /// When the datum is of another graph.
    pub fn of<T: Pod>(&self, data: Data<T>) -> Vec<T> {
        assert_eq!(Some(data.graph), self.number, "a datum of this graph");
        let bytes = self.wanted.get(&data.id).map_or(&[][..], Vec::as_slice);
        bytemuck::pod_collect_to_vec(bytes)
    }
}
