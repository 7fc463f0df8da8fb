//! Graphs of tasks.

mod job;
mod queues;
mod reference;
mod tasks;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytemuck::Pod;

use super::{Error, Run, Session};
use crate::graph::{DatumId, KernelId};
use crate::matrix::Shared;
use crate::policy::{NamedPolicy, Policy, PolicyNameError, Problem};
use crate::report::run::workload::DagParameters;
use crate::report::{Parameters, Workload};
use crate::workload::task_set::{Body, TaskSet};

pub(super) use job::{Executed, Progress};
pub use job::{GraphJob, GraphOptions, GraphPolicy, GraphRan, Placed, Sample, Stage};
pub use queues::Queues;
pub use reference::Reference;
pub use tasks::{AnyData, Data, Task, TaskData, TaskGraphBuilder};

/// A graph that is about to run.
pub struct GraphRun<'a> {
    session: &'a mut Session,
    job: Result<GraphJob, Error>,
    options: GraphOptions,
    /// The number of its builder.
    number: Option<u64>,
    /// Tasks with kernels of the user's that are examined.
    examined: Vec<KernelId>,
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
        let graph = builder.build(self.is_simulated());
        GraphRun {
            number: Some(number),
            examined,
            ..self.run_of(graph.map(|graph| {
                let file = "tasks".to_owned();
                let parameters = Parameters::Dag(DagParameters { file, seed: 0 });
                GraphJob {
                    workload: Workload::new("graph", parameters),
                    graph: Arc::new(graph),
                    placed: Placed::Kernels,
                    computes: true,
                    reference: None,
                }
            }))
        }
    }

    /// A set of tasks that share data ([`crate::workload::task_set`]), such as those of
    /// `pdawl run tasks`, for comparing policies. Tasks that compute nothing run on simulated
    /// machines only.
    ///
    /// ```
    /// use pdawl::session::Session;
    /// use pdawl::task_set::{Matmul2d, TaskSet, Tasks};
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
        let job = match self.is_simulated() || !matches!(set.body, Body::Model) {
            true => GraphJob::of_set(set),
            false => Err(Error::Arguments(
                "tasks that compute nothing run on simulated machines only; \
                 Session::simulate opens one"
                    .to_owned(),
            )),
        };
        self.run_of(job)
    }

    fn run_of(&mut self, job: Result<GraphJob, Error>) -> GraphRun<'_> {
        let results = job.as_ref().map_or_else(|_| Vec::new(), GraphJob::wanted);
        GraphRun {
            number: None,
            options: GraphOptions {
                gpu_memory: self.gpu_memory,
                traced: true,
                results,
                ..GraphOptions::of(NamedPolicy::LOCALITY)
            },
            session: self,
            job,
            examined: Vec::new(),
        }
    }
}

impl GraphRun<'_> {
    /// The policy of this name, as in `pdawl run dag --policy`; `locality` unless it is said.
    pub fn policy(mut self, name: &str) -> Self {
        match name.parse() {
            Ok(named) => self.options.policy = GraphPolicy::Named(named),
            Err(error) => self.job = Err(PolicyNameError::into(error)),
        }
        self
    }

    /// A policy of the user's, made for the tasks and devices of the graph; see
    /// `examples/policy.rs`.
    pub fn policy_of(mut self, make: impl FnOnce(Problem) -> Box<dyn Policy> + 'static) -> Self {
        self.options.policy = GraphPolicy::Own(Box::new(make));
        self
    }

    /// At most so many bytes of each GPU's memory.
    pub fn gpu_memory(mut self, bytes: u64) -> Self {
        self.options.gpu_memory = Some(bytes);
        self
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
            job,
            options,
            number,
            examined,
        } = self;
        let (job, stop) = (job?, session.stop.clone());
        let _running = session.running()?;
        session.examine_tasks(&job.graph, &examined)?;
        let ran = session.run_graph(&job, options, &stop.0, &mut |_, _, _| {})?;
        match ran.run.interrupted {
            true => Err(Error::Stopped),
            false => Ok(Results {
                run: ran.run,
                number,
                wanted: ran.contents,
            }),
        }
    }
}

/// A graph's run with its results.
pub struct Results {
    run: Run,
    /// Of the graph that has run.
    number: Option<u64>,
    wanted: BTreeMap<DatumId, Shared<u8>>,
}

impl Results {
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
        let bytes = self.wanted.get(&data.id).map_or(&[][..], |bytes| bytes);
        bytemuck::pod_collect_to_vec(bytes)
    }

    /// The bytes of a result, where they are. None of a datum that is no result of the graph.
    pub fn bytes<T>(&self, data: Data<T>) -> Option<Shared<u8>> {
        let wanted = self.wanted.get(&data.id)?;
        (Some(data.graph) == self.number).then(|| wanted.clone())
    }
}
