//! The nodes that a launcher has started.

use numpy::PyArrayDyn;
use pdawl::session::{ArrayResult, ClusterOptions, DenseMatrix, Error, NodeRun, Nodes, Sorted};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arrays::{self, Answer, AnyMatrix, LuAnswer, answer, complex_answer, lu_answer, of_any};
use crate::errors::exception;
use crate::worker::Worker;

/// This process as a node, on a thread of its own.
#[pyclass(frozen)]
pub struct Cluster {
    worker: Worker<Nodes>,
    rank: usize,
    size: usize,
}

#[pymethods]
impl Cluster {
    #[new]
    #[pyo3(signature = (devices, wire, spread, threads))]
    fn new(
        py: Python<'_>,
        devices: Option<&str>,
        wire: Option<std::path::PathBuf>,
        spread: Option<&str>,
        threads: Option<usize>,
    ) -> PyResult<Self> {
        let wrong = |error: &dyn std::fmt::Display| PyValueError::new_err(error.to_string());
        let spread = spread.map(str::parse).transpose();
        let options = ClusterOptions {
            devices: devices.map(str::to_owned),
            spread: spread
                .map_err(|error: pdawl::program::SpreadNameError| wrong(&error))?
                .unwrap_or_default(),
            wire,
            ..ClusterOptions::default()
        };
        let worker = Worker::open(py, "pdawl.Cluster", move || {
            let nodes = match threads {
                Some(threads) => Nodes::in_threads(threads, options)?,
                None => Nodes::join(options)?,
            };
            let stop = nodes.stop();
            Ok((nodes, stop))
        })?;
        let (rank, size) = worker.call(py, |nodes| (nodes.rank(), nodes.size()))?;
        Ok(Self { worker, rank, size })
    }

    #[getter]
    fn rank(&self) -> usize {
        self.rank
    }

    #[getter]
    fn size(&self) -> usize {
        self.size
    }

    fn matmul(
        &self,
        py: Python<'_>,
        a: &Bound<'_, PyAny>,
        b: &Bound<'_, PyAny>,
        tile: Option<u32>,
        verify: bool,
    ) -> PyResult<Option<Answer>> {
        let (AnyMatrix::F32(a), AnyMatrix::F32(b)) =
            (AnyMatrix::of("a", a)?, AnyMatrix::of("b", b)?)
        else {
            return Err(PyValueError::new_err(
                "products over nodes are of float32: astype(numpy.float32) makes it",
            ));
        };
        let computed = self.run(py, |nodes| run(nodes.matmul(&a.0, &b.0), tile, verify))?;
        let answer = |found: ArrayResult<DenseMatrix<f32>>| {
            answer(py, found.result.into_shared(), found.run)
        };
        computed.map(answer).transpose()
    }

    /// The factors and the exchanges of rows.
    fn lu(
        &self,
        py: Python<'_>,
        a: &Bound<'_, PyAny>,
        tile: Option<u32>,
        verify: bool,
    ) -> PyResult<Option<LuAnswer>> {
        of_any!(AnyMatrix::of("a", a)?, a => {
            let computed = self.run(py, |nodes| run(nodes.lu(&a.0), tile, verify))?;
            computed.map(|found| lu_answer(py, found)).transpose()
        })
    }

    fn fft2(
        &self,
        py: Python<'_>,
        a: &Bound<'_, PyAny>,
        tile: Option<u32>,
        verify: bool,
    ) -> PyResult<Option<Answer>> {
        of_any!(arrays::any_complex(a)?, a => {
            let computed = self.run(py, |nodes| run(nodes.fft2(&a.0), tile, verify))?;
            computed.map(|found| complex_answer(py, found)).transpose()
        })
    }

    fn sort(
        &self,
        py: Python<'_>,
        numbers: &Bound<'_, PyAny>,
        tile: Option<u32>,
        verify: bool,
    ) -> PyResult<Option<Answer>> {
        match numbers.cast::<PyArrayDyn<f64>>() {
            Ok(numbers) => self.sort_numbers(py, numbers, tile, verify),
            Err(_) => self.sort_numbers(py, numbers.cast::<PyArrayDyn<f32>>()?, tile, verify),
        }
    }
}

/// Runs an operation as asked.
fn run<R>(
    mut run: NodeRun<'_, R>,
    tile: Option<u32>,
    verify: bool,
) -> Result<Option<ArrayResult<R>>, Error> {
    if let Some(tile) = tile {
        run = run.tile(tile);
    }
    match verify {
        true => run.verify().run(),
        false => run.run(),
    }
}

impl Cluster {
    fn sort_numbers<T: Sorted + numpy::Element>(
        &self,
        py: Python<'_>,
        numbers: &Bound<'_, PyArrayDyn<T>>,
        tile: Option<u32>,
        verify: bool,
    ) -> PyResult<Option<Answer>> {
        let (_, numbers) = arrays::rows(numbers)?;
        let computed = self.run(py, |nodes| run(nodes.sort(numbers.0), tile, verify))?;
        let answer = |found: ArrayResult<_>| answer(py, found.result, found.run);
        computed.map(answer).transpose()
    }

    fn run<'a, R: Send + 'a>(
        &self,
        py: Python<'_>,
        job: impl FnOnce(&mut Nodes) -> Result<R, Error> + Send + 'a,
    ) -> PyResult<R> {
        self.worker
            .call(py, job)?
            .map_err(|error| exception(&error))
    }
}
