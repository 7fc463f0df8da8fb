//! Sessions.

use std::collections::BTreeMap;

use numpy::{PyArray1, PyArrayDyn, PyUntypedArrayMethods};
use pdawl::balance::Strategy;
use pdawl::session::{
    ArrayResult, ArrayRun, DenseMatrix, DeviceOptions, Error, Factor, GpuBytes, GridMut,
    GridNumbers, Session as Inner, Sorted, StencilRun, bf16, f16,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyAny;

use crate::arrays::{self, Answer, AnyMatrix, Lent, answer, of_any};
use crate::balancer::PyBalancer;
use crate::caller::Caller;
use crate::errors::exception;
use crate::graph::{self, DataSpec, TaskSpec};
use crate::kernel::{Kernel, LaunchArgument};
use crate::matrix::Matrix;
use crate::run::Run;
use crate::worker::Worker;

/// The devices of a machine, on a thread of their own.
#[pyclass(frozen)]
pub struct Session {
    worker: Worker<Inner>,
    /// The devices as JSON.
    devices: String,
    notes: Vec<String>,
    is_simulated: bool,
}

/// What a stencil is asked for.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct StencilOptions {
    steps: u32,
    /// `None`: as `planned` says.
    superstep: Option<u32>,
    planned: bool,
    coefficients: Option<Vec<f64>>,
    until: Option<f64>,
    every: u32,
    gpu_memory: Option<u64>,
    verify: bool,
    traced: bool,
}

impl StencilOptions {
    fn apply<'a>(&self, mut run: StencilRun<'a>) -> StencilRun<'a> {
        run = run.steps(self.steps);
        run = match self.superstep {
            Some(superstep) => run.superstep(superstep),
            None if self.planned => run.superstep_auto(),
            None => run,
        };
        if let Some(coefficients) = &self.coefficients {
            run = run.coefficients(coefficients);
        }
        if let Some(change) = self.until {
            run = run.until(change, self.every);
        }
        if let Some(bytes) = self.gpu_memory {
            run = run.gpu_memory(bytes);
        }
        if self.verify {
            run = run.verify();
        }
        match self.traced {
            true => run.traced(),
            false => run,
        }
    }
}

/// What an operation on arrays is asked for.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct OperationOptions {
    policy: Option<String>,
    tile: Option<u32>,
    gpu_memory: Option<u64>,
    verify: bool,
    traced: bool,
}

impl OperationOptions {
    fn run<R>(&self, mut run: ArrayRun<'_, R>) -> Result<ArrayResult<R>, Error> {
        if let Some(policy) = &self.policy {
            run = run.policy(policy);
        }
        if let Some(tile) = self.tile {
            run = run.tile(tile);
        }
        if let Some(bytes) = self.gpu_memory {
            run = run.gpu_memory(bytes);
        }
        if self.verify {
            run = run.verify();
        }
        match self.traced {
            true => run.traced().run(),
            false => run.run(),
        }
    }
}

#[pymethods]
impl Session {
    /// The devices of a list or all of this machine, or those of a simulated machine.
    #[new]
    #[pyo3(signature = (devices, machine, gpu_memory, arrays_on))]
    fn new(
        py: Python<'_>,
        devices: Option<String>,
        machine: Option<String>,
        gpu_memory: Option<u64>,
        arrays_on: Option<usize>,
    ) -> PyResult<Self> {
        let open = move || {
            let mut session = match machine {
                Some(machine) => Inner::simulate(&machine),
                None => Inner::with(DeviceOptions {
                    list: devices,
                    arrays_on,
                    ..DeviceOptions::default()
                }),
            }?;
            session.limit_gpu_memory(gpu_memory);
            let stop = session.stop();
            Ok((session, stop))
        };
        let worker = Worker::open(py, "pdawl.Session", open)?;
        let about = |session: &mut Inner| {
            let devices = serde_json::to_string(session.devices());
            (devices, session.notes().to_vec(), session.is_simulated())
        };
        let (devices, notes, is_simulated) = worker.call(py, about)?;
        Ok(Self {
            worker,
            devices: devices.map_err(|error| PyValueError::new_err(error.to_string()))?,
            notes,
            is_simulated,
        })
    }

    /// Whether it can run anything: it is of this process, and no run has panicked.
    fn works(&self) -> bool {
        self.worker.works()
    }

    /// The devices as JSON.
    fn devices_json(&self) -> &str {
        &self.devices
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    fn is_simulated(&self) -> bool {
        self.is_simulated
    }

    fn set_strategy(&self, py: Python<'_>, strategy: &str) -> PyResult<()> {
        let strategy = strategy.parse::<Strategy>();
        let strategy = strategy.map_err(|error| PyValueError::new_err(error.to_string()))?;
        let set = self
            .worker
            .call(py, |session| session.set_strategy(&strategy))?;
        set.map_err(|error| exception(&error))
    }

    /// Divides steps by what `make` makes of a dictionary of the units and the devices.
    fn set_balancer(&self, py: Python<'_>, name: String, make: Py<PyAny>) -> PyResult<()> {
        let caller = self.worker.caller().clone();
        self.worker.call(py, move |session| {
            session.set_balancer(name, move |setup| {
                Box::new(PyBalancer::new(&make, setup, caller.clone()))
            });
        })
    }

    /// So many bytes on the GPU on which arrays are; the host's memory without one.
    fn memory<'py>(&self, py: Python<'py>, bytes: usize) -> PyResult<Bound<'py, PyAny>> {
        arrays::kept(py, self.run(py, |session| session.memory(bytes))?)
    }

    /// A copy of bytes that are on the GPU, from an address on.
    fn load<'py>(
        &self,
        py: Python<'py>,
        address: u64,
        bytes: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        // SAFETY: the package's Python code has the array whose bytes they are. That nobody writes
        // it meanwhile is what the package asks of its users; only numbers depend on it.
        let memory = self.run(py, |session| unsafe {
            session.load(GpuBytes::at(address, bytes)?)
        })?;
        arrays::kept(py, memory)
    }

    /// Replaces bytes that are on the GPU, from an address on.
    fn store(&self, py: Python<'_>, address: u64, bytes: &Bound<'_, PyArray1<u8>>) -> PyResult<()> {
        let bytes = arrays::read("an array on a GPU", bytes)?;
        let bytes = bytes.as_slice()?;
        // SAFETY: as above.
        self.run(py, |_| unsafe {
            Ok(GpuBytes::at(address, bytes.len())?.store(bytes)?)
        })
    }

    fn spmv(
        &self,
        py: Python<'_>,
        matrix: &Matrix,
        x: &Bound<'_, PyArray1<f64>>,
        y: &Bound<'_, PyArray1<f64>>,
    ) -> PyResult<()> {
        let _pins = (arrays::pins(x)?, arrays::pins(y)?);
        let (x, mut y) = (arrays::read("x", x)?, arrays::written("out", y)?);
        let (x, y) = (x.as_slice()?, y.as_slice_mut()?);
        self.run(py, |session| session.spmv_into(&matrix.0, x, y))
    }

    fn spmv_shares(&self, py: Python<'_>) -> PyResult<Vec<f64>> {
        self.worker
            .call(py, |session| session.spmv_shares().to_vec())
    }

    /// A stencil on a grid of floats or doubles, in place.
    fn stencil(
        &self,
        py: Python<'_>,
        grid: &Bound<'_, PyAny>,
        options: StencilOptions,
    ) -> PyResult<Run> {
        let _pins = arrays::pins(grid)?;
        if let Ok(grid) = grid.cast::<PyArrayDyn<f64>>() {
            let shape = shape(grid.shape());
            let mut grid = arrays::written("grid", grid)?;
            return self.run_stencil(py, shape, GridNumbers::F64(grid.as_slice_mut()?), &options);
        }
        let grid = grid.cast::<PyArrayDyn<f32>>()?;
        let shape = shape(grid.shape());
        let mut grid = arrays::written("grid", grid)?;
        self.run_stencil(py, shape, GridNumbers::F32(grid.as_slice_mut()?), &options)
    }

    /// `bits` names the format of numbers of 16 bits.
    #[pyo3(signature = (a, b, bits, options))]
    fn matmul(
        &self,
        py: Python<'_>,
        a: &Bound<'_, PyAny>,
        b: &Bound<'_, PyAny>,
        bits: Option<&str>,
        options: OperationOptions,
    ) -> PyResult<Answer> {
        match bits {
            Some("f16") => {
                let (a, b) = (half::<f16>("a", a)?, half("b", b)?);
                self.product(py, &a.0, &b.0, &options)
            }
            Some(_) => {
                let (a, b) = (half::<bf16>("a", a)?, half("b", b)?);
                self.product(py, &a.0, &b.0, &options)
            }
            None => match (AnyMatrix::of("a", a)?, AnyMatrix::of("b", b)?) {
                (AnyMatrix::F32(a), AnyMatrix::F32(b)) => self.product(py, &a.0, &b.0, &options),
                (AnyMatrix::F64(a), AnyMatrix::F64(b)) => self.product(py, &a.0, &b.0, &options),
                _ => Err(arrays::unlike()),
            },
        }
    }

    fn cholesky(
        &self,
        py: Python<'_>,
        a: &Bound<'_, PyAny>,
        options: OperationOptions,
    ) -> PyResult<Answer> {
        of_any!(AnyMatrix::of("a", a)?, a => {
            let ran = self.run(py, |session| options.run(session.cholesky(&a.0)))?;
            answer(py, ran.result.into_shared(), ran.run)
        })
    }

    /// The factors and the exchanges of rows.
    fn lu(
        &self,
        py: Python<'_>,
        a: &Bound<'_, PyAny>,
        options: OperationOptions,
    ) -> PyResult<arrays::LuAnswer> {
        of_any!(AnyMatrix::of("a", a)?, a => {
            let ran = self.run(py, |session| options.run(session.lu(&a.0)))?;
            arrays::lu_answer(py, ran)
        })
    }

    /// Complex numbers come and go as pairs.
    fn fft2(
        &self,
        py: Python<'_>,
        a: &Bound<'_, PyAny>,
        options: OperationOptions,
    ) -> PyResult<Answer> {
        of_any!(arrays::any_complex(a)?, a => {
            let ran = self.run(py, |session| options.run(session.fft2(&a.0)))?;
            arrays::complex_answer(py, ran)
        })
    }

    fn sort(
        &self,
        py: Python<'_>,
        numbers: &Bound<'_, PyAny>,
        options: OperationOptions,
    ) -> PyResult<Answer> {
        if let Ok(numbers) = numbers.cast::<PyArrayDyn<f64>>() {
            return self.sort_rows(py, numbers, &options);
        }
        self.sort_rows(py, numbers.cast::<PyArrayDyn<f32>>()?, &options)
    }

    fn kernel(&self, py: Python<'_>, source: &str, name: Option<&str>) -> PyResult<Kernel> {
        let kernel = self.worker.call(py, |session| match name {
            Some(name) => session.kernel_named(source, name),
            None => session.kernel(source),
        })?;
        Ok(Kernel::of(kernel.map_err(|error| exception(&error))?))
    }

    /// Launches a kernel; arguments are arrays of bytes, or bytes of values.
    #[pyo3(signature = (kernel, items, groups, arguments, steps, gpu_memory, traced, unchecked))]
    #[allow(clippy::too_many_arguments, reason = "Python's call has them by name")]
    fn launch(
        &self,
        py: Python<'_>,
        kernel: &Kernel,
        items: Vec<u64>,
        groups: Option<Vec<u64>>,
        arguments: Vec<LaunchArgument<'_>>,
        steps: u32,
        gpu_memory: Option<u64>,
        traced: bool,
        unchecked: bool,
    ) -> PyResult<Run> {
        let arrays = arguments.iter().filter_map(|argument| match argument {
            LaunchArgument::Buffer(_, array) => Some(array.as_any()),
            LaunchArgument::Value(_) => None,
        });
        let _pins = arrays.map(arrays::pins).collect::<PyResult<Vec<_>>>()?;
        let borrowed = arguments.iter().map(LaunchArgument::borrow);
        let mut borrowed = borrowed.collect::<PyResult<Vec<_>>>()?;
        let bytes = borrowed.iter_mut().map(|argument| argument.bytes());
        let arguments = bytes.collect::<PyResult<Vec<_>>>()?;
        let mut kernel = kernel.lock()?;
        let kernel = &mut *kernel;
        let run = self.run(py, move |session| {
            let launch = match unchecked {
                // SAFETY: whoever asks for it in Python answers for what the kernel touches.
                true => unsafe { session.launch_unchecked(kernel, &items) },
                false => session.launch(kernel, &items),
            };
            let mut launch = launch.steps(steps);
            for argument in arguments {
                launch = argument.add_to(launch);
            }
            if let Some(groups) = groups {
                launch = launch.groups(&groups);
            }
            if let Some(bytes) = gpu_memory {
                launch = launch.gpu_memory(bytes);
            }
            match traced {
                true => launch.traced().run(),
                false => launch.run(),
            }
        })?;
        Ok(Run(run))
    }

    /// Runs a set of tasks that share data, of `pdawl run tasks`.
    #[pyo3(signature = (name, n, tile, policy, gpu_memory))]
    fn task_set(
        &self,
        py: Python<'_>,
        name: &str,
        n: u32,
        tile: Option<u32>,
        policy: &Bound<'_, PyAny>,
        gpu_memory: Option<u64>,
    ) -> PyResult<Ran> {
        let graph = graph::Work::Set(graph::task_set(name, n, tile)?);
        let policy = (graph::Choice::of(policy), self.worker.caller().clone());
        self.ran(py, graph, policy, gpu_memory)
    }

    /// Runs a graph of tasks. Returns the run and the bytes of its results, by datum.
    fn graph(
        &self,
        py: Python<'_>,
        data: Vec<DataSpec<'_>>,
        tasks: Vec<TaskSpec>,
        policy: &Bound<'_, PyAny>,
        gpu_memory: Option<u64>,
    ) -> PyResult<Ran> {
        let shared = |(name, bytes, given, is_result): DataSpec<'_>| {
            let given = given.map(|given| arrays::bytes(&given)).transpose()?;
            Ok((name, bytes, given, is_result))
        };
        let data = data.into_iter().map(shared).collect::<PyResult<_>>()?;
        let graph = graph::Work::Tasks(graph::Spec { data, tasks });
        let policy = (graph::Choice::of(policy), self.worker.caller().clone());
        self.ran(py, graph, policy, gpu_memory)
    }
}

/// A graph's run, its results by datum, and the seconds that a policy of the user's took.
type Ran = (Run, BTreeMap<usize, Py<PyAny>>, Option<f64>);

impl Session {
    fn ran(
        &self,
        py: Python<'_>,
        graph: graph::Work,
        policy: (graph::Choice, Caller),
        gpu_memory: Option<u64>,
    ) -> PyResult<Ran> {
        let ran = self.run(py, move |session| graph.run(session, policy, gpu_memory))?;
        let kept = |(datum, bytes)| Ok((datum, arrays::kept(py, bytes)?.unbind()));
        let results = ran.1.into_iter().map(kept).collect::<PyResult<_>>()?;
        Ok((ran.0, results, ran.2))
    }

    fn product<T>(
        &self,
        py: Python<'_>,
        a: &DenseMatrix<T>,
        b: &DenseMatrix<T>,
        options: &OperationOptions,
    ) -> PyResult<Answer>
    where
        T: Factor,
        T::Sum: numpy::Element,
    {
        let ran = self.run(py, |session| options.run(session.matmul(a, b)))?;
        answer(py, ran.result.into_shared(), ran.run)
    }

    fn sort_rows<T: Sorted + numpy::Element>(
        &self,
        py: Python<'_>,
        numbers: &Bound<'_, PyArrayDyn<T>>,
        options: &OperationOptions,
    ) -> PyResult<Answer> {
        let (rows, numbers) = arrays::rows(numbers)?;
        let ran = self.run(py, |session| {
            options.run(session.sort_rows(rows, numbers.0))
        })?;
        answer(py, ran.result, ran.run)
    }

    fn run_stencil(
        &self,
        py: Python<'_>,
        shape: Vec<u64>,
        numbers: GridNumbers<'_>,
        options: &StencilOptions,
    ) -> PyResult<Run> {
        let run = self.run(py, move |session| {
            let grid = GridMut { shape, numbers };
            options.apply(session.stencil(grid)).run()
        })?;
        Ok(Run(run))
    }

    /// Runs a job.
    fn run<'a, R: Send + 'a>(
        &self,
        py: Python<'_>,
        job: impl FnOnce(&mut Inner) -> Result<R, Error> + Send + 'a,
    ) -> PyResult<R> {
        let result = self.worker.call(py, job)?;
        result.map_err(|error| exception(&error))
    }
}

/// The GPU on which so many bytes are, from an address on, by CUDA's number.
#[pyfunction]
pub fn gpu_of(address: u64, bytes: usize) -> PyResult<usize> {
    let found = GpuBytes::at(address, bytes);
    Ok(found.map_err(|error| exception(&error.into()))?.gpu())
}

/// A matrix of numbers of 16 bits.
fn half<'py, T: Factor>(
    name: &str,
    array: &Bound<'py, PyAny>,
) -> PyResult<Lent<'py, DenseMatrix<T>, u16>> {
    arrays::matrix(name, array)
}

fn shape(axes: &[usize]) -> Vec<u64> {
    axes.iter().map(|axis| *axis as u64).collect()
}
