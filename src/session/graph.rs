//! Graphs of tasks.

use std::collections::{BTreeMap, BTreeSet};
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytemuck::Pod;

use super::{Error, Run, Session};
use crate::codelet::function::{self, FunctionArgument, FunctionMemory, UnitMemory};
use crate::codelet::{Codelet, Cost, KernelSource, NdRange, OpenClKernel, Shape};
use crate::engine::first_launch::{Words, runs_here};
use crate::engine::graph::problem::KernelTimes;
use crate::engine::graph::{Control, GraphOutcome, Options, times};
use crate::experiment::Division;
use crate::graph::spec::source::touches_by_data;
use crate::graph::{
    Argument, Components, Contents, Datum, DatumId, GraphBuilder, Kernel, KernelId, TaskGraph,
};
use crate::policy::{NamedPolicy, Policy, PolicyOptions, Problem};
use crate::report::run::graph::{Measured, report};
use crate::report::run::workload::DagParameters;
use crate::report::{Context, Parameters, Workload};
use crate::workload::task_set::{Body, TaskSet};

/// A datum of a graph: elements of type `T`, written once.
pub struct Data<T> {
    /// The number of its graph.
    graph: u64,
    id: DatumId,
    length: usize,
    element: PhantomData<fn() -> T>,
}

impl<T> Clone for Data<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Data<T> {}

/// A datum of any type.
#[derive(Clone, Copy, Debug)]
pub struct AnyData {
    graph: u64,
    id: DatumId,
    bytes: u64,
}

impl<T> From<Data<T>> for AnyData {
    fn from(data: Data<T>) -> Self {
        Self {
            graph: data.graph,
            id: data.id,
            bytes: (data.length * size_of::<T>()) as u64,
        }
    }
}

/// The data and tasks of a graph, as they are added.
pub struct TaskGraphBuilder {
    graph: GraphBuilder,
    /// No other graph of the process has it.
    number: u64,
    /// The first task with a datum of another graph.
    foreign: Option<String>,
    /// Tasks with kernels of the user's that are examined.
    examined: Vec<KernelId>,
}

impl TaskGraphBuilder {
    fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self {
            graph: GraphBuilder::default(),
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            foreign: None,
            examined: Vec::new(),
        }
    }

    fn build(self) -> Result<TaskGraph, Error> {
        match self.foreign {
            Some(task) => Err(Error::Arguments(format!(
                "task {task}: a datum is of another graph; give that graph's contents to a datum \
                 of this one"
            ))),
            None => Ok(self.graph.build()?),
        }
    }

    /// A datum with these elements.
    pub fn given<T: Pod>(&mut self, name: &str, elements: &[T]) -> Data<T> {
        let bytes: Vec<u8> = bytemuck::cast_slice(elements).to_vec();
        let datum = Datum::new(name.to_owned(), bytes.len() as u64);
        self.datum(datum.with(Contents::bytes(bytes)), elements.len())
    }

    /// A datum of so many elements that a task makes. Its elements can be read when the graph
    /// has run.
    pub fn result<T: Pod>(&mut self, name: &str, length: usize) -> Data<T> {
        let bytes = (length * size_of::<T>()) as u64;
        self.datum(Datum::new(name.to_owned(), bytes).wanted(), length)
    }

    /// A datum of so many elements that a task makes for other tasks.
    pub fn between<T: Pod>(&mut self, name: &str, length: usize) -> Data<T> {
        let bytes = (length * size_of::<T>()) as u64;
        self.datum(Datum::new(name.to_owned(), bytes), length)
    }

    fn datum<T>(&mut self, datum: Datum, length: usize) -> Data<T> {
        Data {
            graph: self.number,
            id: self.graph.datum(datum),
            length,
            element: PhantomData,
        }
    }

    /// Adds a task, which waits for whoever makes what it reads.
    pub fn task(&mut self, task: Task) {
        let Task {
            name,
            reads,
            writes,
            function,
            kernel,
            unchecked,
            cost,
        } = task;
        let is_examined = kernel.is_some() && !unchecked;
        let mut data = reads.iter().chain(&writes);
        if data.any(|data| data.graph != self.number) {
            self.foreign.get_or_insert_with(|| name.clone());
        }
        let memory = reads
            .iter()
            .map(|data| FunctionArgument::Read {
                first: 0,
                bytes: data.bytes,
            })
            .chain(
                writes
                    .iter()
                    .map(|data| FunctionArgument::Written(vec![0, data.bytes])),
            );
        let memory = FunctionMemory(memory.collect());
        let of_host = function::codelet(
            name.clone(),
            memory,
            Arc::new(move |memory| function(&mut TaskData(memory))),
        );
        let codelet = Codelet {
            opencl: kernel,
            ..of_host
        };
        let reads = reads.iter().map(|data| Argument::Input(data.id));
        let writes = writes.iter().map(|data| Argument::FullOutput(data.id));
        let id = self.graph.kernel(Kernel {
            name: name.into(),
            codelet: Arc::new(codelet),
            units: 0..1,
            arguments: reads.chain(writes).collect(),
            cost,
            prefers: None,
        });
        self.examined.extend(is_examined.then_some(id));
    }
}

/// The function of a task.
type Function = Box<dyn Fn(&mut TaskData) + Send + Sync>;

/// A task: a function of what it reads, which writes all of its results.
pub struct Task {
    name: String,
    reads: Vec<AnyData>,
    writes: Vec<AnyData>,
    function: Function,
    kernel: Option<OpenClKernel>,
    /// Whether the caller answers for what the kernel touches.
    unchecked: bool,
    cost: Cost,
}

impl Task {
    /// A task that reads and writes nothing yet. `function` runs on a core of the host.
    pub fn new(name: &str, function: impl Fn(&mut TaskData) + Send + Sync + 'static) -> Self {
        Self {
            name: name.to_owned(),
            reads: Vec::new(),
            writes: Vec::new(),
            function: Box::new(function),
            kernel: None,
            unchecked: false,
            cost: Cost {
                flops: 0.0,
                bytes: 0.0,
            },
        }
    }

    /// It reads this datum, after those that it reads so far.
    pub fn reads(mut self, data: impl Into<AnyData>) -> Self {
        self.reads.push(data.into());
        self
    }

    /// It makes this datum, after those that it makes so far.
    pub fn writes(mut self, data: impl Into<AnyData>) -> Self {
        self.writes.push(data.into());
        self
    }

    /// What it costs: operations, and bytes of memory that are read and written. Simulations
    /// take their times from it.
    pub fn cost(self, flops: f64, bytes: f64) -> Self {
        Self {
            cost: Cost { flops, bytes },
            ..self
        }
    }

    /// The same on GPUs: a kernel of a source in OpenCL C, which gets the data in the order of
    /// [`Self::reads`], then those of [`Self::writes`], and runs over so many work-items.
    ///
    /// It is examined first, as in [`Session::launch`]; a kernel whose data decide which memory
    /// it touches is refused where it would run in this process.
    pub fn kernel(self, source: &str, kernel: &str, items: &[usize]) -> Self {
        let range = NdRange::new(items.to_vec());
        Self {
            kernel: Some(OpenClKernel {
                source: KernelSource::new(source.to_owned(), "task.cl", kernel.to_owned(), ""),
                fp64: source.contains("double"),
                shape: Shape::With(Arc::new(move |_, _| range.clone())),
            }),
            ..self
        }
    }

    /// As [`Self::kernel`], for a kernel that need not be examined.
    ///
    /// # Safety
    /// With the data of the task, no work-item reads or writes outside of them.
    pub unsafe fn kernel_unchecked(self, source: &str, kernel: &str, items: &[usize]) -> Self {
        Self {
            unchecked: true,
            ..self.kernel(source, kernel, items)
        }
    }
}

/// The data of a task in its function.
pub struct TaskData<'a>(UnitMemory<'a>);

impl TaskData<'_> {
    /// The elements of the datum that it reads at a place, counted from 0.
    ///
    /// # Panics
    /// When it reads no such datum, or the datum's bytes are no whole number of `T`.
    pub fn read<T: Pod>(&self, place: usize) -> &[T] {
        bytemuck::cast_slice(self.0.reads[place])
    }

    /// The elements of the datum that it writes at a place, counted from 0. Their values are
    /// unspecified at first.
    ///
    /// # Panics
    /// As [`Self::read`].
    pub fn write<T: Pod>(&mut self, place: usize) -> &mut [T] {
        bytemuck::cast_slice_mut(self.0.writes[place])
    }
}

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
            ..self.run_of(builder.build(), true)
        }
    }

    /// A set of tasks that share data ([`crate::workload::task_set`]), such as those of
    /// `pdawl bench tasks`, for comparing policies. Tasks that compute nothing run on simulated
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

impl Session {
    /// Examines the kernels of tasks, each with its sizes once.
    fn examine_tasks(&self, graph: &TaskGraph, tasks: &[KernelId]) -> Result<(), Error> {
        if self.is_simulated() || !self.devices().iter().any(runs_here) {
            return Ok(());
        }
        let mut builder = GraphBuilder::default();
        let (mut words, mut known) = (Vec::new(), BTreeSet::new());
        for task in tasks.iter().map(|id| graph.kernel(*id)) {
            let Some(of_user) = &task.codelet.opencl else {
                continue;
            };
            let ((source, range), data) = match of_user.steps(&task.units, &[]).pop() {
                Some(step) => (step, task.memories().map(|id| &graph.data()[id.0])),
                None => continue,
            };
            let data: Vec<&Datum> = data.collect();
            let bytes: Vec<u64> = data.iter().map(|datum| datum.bytes).collect();
            let key = (
                source.text().to_owned(),
                source.entry().to_owned(),
                range.global,
                bytes,
            );
            if !known.insert(key) {
                continue;
            }
            if touches_by_data(source.text(), &BTreeMap::new(), source.entry()) {
                return Err(Error::Unexamined(format!(
                    "task {}: its data decide which memory the kernel `{}` touches, or its text \
                     does not tell",
                    task.name,
                    source.entry()
                )));
            }
            let arguments = task.arguments.iter().zip(&data).map(|(argument, datum)| {
                let own = Datum::new(datum.name.clone(), datum.bytes);
                match argument.reads() {
                    Some(_) => {
                        let zeros = Contents::Filled(Arc::new(|bytes| bytes.fill(0)));
                        Argument::Input(builder.datum(own.with(zeros)))
                    }
                    None => Argument::Output(builder.datum(own)),
                }
            });
            let arguments = arguments.collect();
            builder.kernel(Kernel {
                arguments,
                ..task.clone()
            });
            let named = data
                .iter()
                .map(|datum| format!("datum {} ({} bytes)", datum.name, datum.bytes));
            words.push(Words {
                kernel: source.entry().to_owned(),
                buffers: named.collect(),
            });
        }
        match words.is_empty() {
            true => Ok(()),
            false => self.examine_first(&builder.build()?, &words, false),
        }
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
