//! The data and tasks of a graph.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytemuck::Pod;

use crate::codelet::function::{self, FunctionArgument, FunctionMemory, UnitMemory};
use crate::codelet::{Codelet, Cost, KernelSource, NdRange, OpenClKernel, Shape};
use crate::graph::{Argument, Contents, Datum, DatumId, GraphBuilder, Kernel, KernelId, TaskGraph};
use crate::matrix::Shared;
use crate::parallel;
use crate::session::Error;

/// A datum of a graph: elements of type `T`, written once.
pub struct Data<T> {
    /// The number of its graph.
    pub(super) graph: u64,
    pub(super) id: DatumId,
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
    pub(super) number: u64,
    /// What is wrong with the first wrong task.
    wrong: Option<String>,
    /// The first task without a function.
    without_function: Option<String>,
    /// Tasks with kernels of the user's that are examined.
    pub(super) examined: Vec<KernelId>,
}

impl TaskGraphBuilder {
    pub(super) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self {
            graph: GraphBuilder::default(),
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            wrong: None,
            without_function: None,
            examined: Vec::new(),
        }
    }

    /// The graph, for a simulation or for devices.
    pub(super) fn build(self, simulated: bool) -> Result<TaskGraph, Error> {
        let no_function = self.without_function.filter(|_| simulated).map(|task| {
            format!(
                "task {task} has no function, with which a simulation computes its data; give one"
            )
        });
        match self.wrong.or(no_function) {
            Some(wrong) => Err(Error::Arguments(wrong)),
            None => Ok(self.graph.build()?),
        }
    }

    /// A datum with these elements.
    pub fn given<T: Pod>(&mut self, name: &str, elements: &[T]) -> Data<T> {
        let bytes: Vec<u8> = bytemuck::cast_slice(elements).to_vec();
        let datum = Datum::new(name.to_owned(), bytes.len() as u64);
        self.datum(datum.with(Contents::bytes(bytes)), elements.len())
    }

    /// The same of bytes that stay where they are.
    pub fn given_bytes(&mut self, name: &str, bytes: Shared<u8>) -> Data<u8> {
        let length = bytes.len();
        let contents = Contents::filled(move |to| {
            let count = to.len().min(length);
            parallel::copy(&mut to[..count], &bytes[..count]);
        });
        let datum = Datum::new(name.to_owned(), length as u64);
        self.datum(datum.with(contents), length)
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
            self.wrong.get_or_insert_with(|| {
                format!(
                    "task {name}: a datum is of another graph; give that graph's contents to a \
                     datum of this one"
                )
            });
        }
        if function.is_none() {
            self.without_function.get_or_insert_with(|| name.clone());
            if kernel.is_none() {
                self.wrong.get_or_insert_with(|| {
                    format!(
                        "task {name} has neither a function nor a kernel, so nothing makes its \
                         data; give one"
                    )
                });
            }
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
        let host = function.and_then(|function| {
            let function = Arc::new(move |memory: UnitMemory| function(&mut TaskData(memory)));
            function::codelet(name.clone(), memory, function).host
        });
        let codelet = Codelet {
            name: name.clone().into(),
            host,
            opencl: kernel,
            library: None,
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

/// A task: a function of what it reads, which writes all of its results, or a kernel for GPUs.
pub struct Task {
    name: String,
    reads: Vec<AnyData>,
    writes: Vec<AnyData>,
    function: Option<Function>,
    kernel: Option<OpenClKernel>,
    /// Whether the caller answers for what the kernel touches.
    unchecked: bool,
    cost: Cost,
}

impl Task {
    /// A task that reads and writes nothing yet. `function` runs on a core of the host.
    pub fn new(name: &str, function: impl Fn(&mut TaskData) + Send + Sync + 'static) -> Self {
        Self {
            function: Some(Box::new(function)),
            ..Self::without_function(name)
        }
    }

    /// The same without a function: only devices that run its [kernel](Self::kernel) can have
    /// it, and no simulation.
    pub fn without_function(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            reads: Vec::new(),
            writes: Vec::new(),
            function: None,
            kernel: None,
            unchecked: false,
            cost: Cost::default(),
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
    /// It is examined first, as in [`Session::launch`](crate::session::Session::launch); a kernel whose data decide which
    /// memory it touches is refused where it would run in this process.
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
