//! LU factorisations, Fourier transforms and sorts, as tasks over spaces: on one machine and
//! over nodes.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use bytemuck::Pod;

use super::known::Tasks;
use super::matrix::precision;
use super::run::{ArrayOptions, ArrayResult};
use super::{ArrayRun, Complex, DenseMatrix};
use crate::engine::cluster::{Alone, AloneOptions, ClusterError, Control, Sink};
use crate::machine::{Device, is_pool};
use crate::matrix::Shared;
use crate::parallel;
use crate::report::Workload;
use crate::report::run::nodes::{Asked, report_alone};
use crate::session::{Error, Number, Run, Session};
use crate::workload::cluster::{
    FftWorkload, Fit, LuWorkload, PlacedWorkload, Placement, SortAlone, SortSamples, of_memory,
    panel_width,
};

/// Most rows and columns.
const MOST: u32 = 1 << 20;

/// What computes a workload.
pub enum Place<'a> {
    /// One machine, on these devices.
    Alone(&'a [Device]),
    /// The nodes of a cluster.
    Nodes(Fit),
}

/// An operation over spaces, in tiles of so many rows if the user says so.
pub struct SpacesJob {
    /// Its sizes, in words.
    pub size: String,
    /// The spaces that it returns.
    pub outputs: Vec<usize>,
    make: Box<Make>,
}

/// Makes the workload for a place, in tiles of so many rows if the user says so.
type Make = dyn Fn(Place, Option<u64>) -> Result<PlacedWorkload, Error> + Send + Sync;

/// An LU factorisation with partial pivoting, `P A = L U`: L below the diagonal, whose own is
/// 1, and U from the diagonal on.
#[derive(Clone, Debug, PartialEq)]
pub struct Factors<T> {
    pub lu: DenseMatrix<T>,
    /// Row `i` was exchanged with row `pivots[i]`, for ascending `i`, as in LAPACK's `getrf`
    /// but counted from 0.
    pub pivots: Vec<i32>,
}

impl SpacesJob {
    /// The workload for a place.
    pub fn make(&self, place: Place, tile: Option<u32>) -> Result<PlacedWorkload, Error> {
        (self.make)(place, tile.map(u64::from))
    }

    /// The factors of a square matrix.
    pub fn lu<T: Number>(matrix: &DenseMatrix<T>) -> Result<Self, Error> {
        let size = u64::from(within(matrix.square()?)?);
        let (precision, fill) = (precision(matrix), matrix.fill());
        let make = move |place: Place, given: Option<u64>| {
            let (fitted, by_columns) = match place {
                Place::Alone(devices) => (panel_width(size, is_pool(devices)), true),
                Place::Nodes(fit) => (fit.factors(size), false),
            };
            let tile = given.unwrap_or(fitted).min(size);
            let workload = LuWorkload {
                size,
                tile,
                precision,
                placement: Placement::ColumnCyclic,
                by_columns,
                matrix: Arc::clone(&fill),
            };
            Ok((Arc::new(workload) as _, tile))
        };
        Ok(Self {
            size: format!("{size} x {size} {}", precision.name()),
            outputs: vec![0, LuWorkload::PIVOTS],
            make: Box::new(make),
        })
    }

    /// The transform of a matrix.
    pub fn fft2(matrix: &DenseMatrix<Complex>) -> Result<Self, Error> {
        let [rows, columns] = [within(matrix.rows())?, within(matrix.columns())?].map(u64::from);
        let fill = matrix.fill();
        let make = move |place: Place, given: Option<u64>| {
            let longest = rows.max(columns);
            let fitted = match place {
                Place::Alone(_) => FftWorkload::lines_alone(rows, columns),
                Place::Nodes(fit) => fit.lines(longest, 8 * rows.min(columns)),
            };
            let tile = given.unwrap_or(fitted).min(longest);
            let workload = FftWorkload {
                rows,
                columns,
                tile,
                placement: Placement::Rows,
                matrix: Arc::clone(&fill),
            };
            Ok((Arc::new(workload) as _, tile))
        };
        Ok(Self {
            size: format!("{rows} x {columns} complex64"),
            outputs: vec![1],
            make: Box::new(make),
        })
    }

    /// Numbers in ascending order.
    pub fn sort(numbers: Shared<f32>) -> Result<Self, Error> {
        let count = numbers.len() as u64;
        if count == 0 {
            return Err(Error::Arguments(
                "there are no numbers to sort; give at least one".to_owned(),
            ));
        }
        let keys = of_memory(numbers, count);
        let make = move |place: Place, given: Option<u64>| {
            let keys = Arc::clone(&keys);
            let Place::Nodes(fit) = place else {
                let alone = SortAlone {
                    numbers: count,
                    keys,
                };
                return Ok((Arc::new(alone) as _, count));
            };
            let least = SortSamples::least_tile(count);
            let tile = given.map_or_else(|| SortSamples::tile(count, &fit), |tile| tile.max(least));
            let samples = SortSamples::of(count, SortSamples::MOST_BANDS, keys);
            let samples = samples.map_err(ClusterError::from)?;
            Ok((Arc::new(samples.workload(tile.min(count))) as _, tile))
        };
        Ok(Self {
            size: format!("{count} numbers"),
            outputs: vec![1],
            make: Box::new(make),
        })
    }
}

fn within(length: u32) -> Result<u32, Error> {
    match length <= MOST {
        true => Ok(length),
        false => Err(Error::Arguments(format!(
            "the matrix has {length} rows or columns; at most {MOST} are allowed"
        ))),
    }
}

/// Elements that come as bytes.
pub struct Elements<T> {
    elements: Vec<T>,
    filled: usize,
}

impl<T: Pod> Elements<T> {
    /// Room for so many.
    pub fn new(count: usize) -> Self {
        Self {
            elements: vec![T::zeroed(); count],
            filled: 0,
        }
    }

    /// What has come.
    pub fn take(self) -> Vec<T> {
        self.elements
    }
}

impl<T: Pod> Sink for Elements<T> {
    fn begin(&mut self) -> io::Result<()> {
        self.filled = 0;
        Ok(())
    }

    fn next(&mut self, bytes: &[u8]) -> io::Result<()> {
        let rest = bytemuck::cast_slice_mut::<T, u8>(&mut self.elements).get_mut(self.filled..);
        let to = rest.and_then(|rest| rest.get_mut(..bytes.len()));
        let to = to.ok_or(io::ErrorKind::WriteZero)?;
        parallel::copy(to, bytes);
        self.filled += bytes.len();
        Ok(())
    }
}

impl Session {
    /// The factors of a square matrix on all devices, with partial pivoting.
    ///
    /// ```
    /// use pdawl::session::{DenseMatrix, Session};
    ///
    /// # fn main() -> Result<(), pdawl::session::Error> {
    /// let mut session = Session::simulate("k40")?;
    /// let a = DenseMatrix::new(2, 2, vec![1.0, 2.0, 4.0, 6.0])?;
    /// let factors = session.lu(&a).run()?.result;
    /// // The rows were exchanged; the second is 1/4 of the first and half a unit.
    /// assert_eq!(factors.pivots, [1, 1]);
    /// assert_eq!(factors.lu.elements(), [4.0, 6.0, 0.25, 0.5]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn lu<'a, T: Number>(&'a mut self, matrix: &'a DenseMatrix<T>) -> ArrayRun<'a, Factors<T>> {
        ArrayRun::new(self, move |session, options| {
            let job = SpacesJob::lu(matrix)?;
            let rows = matrix.rows() as usize;
            let mut lu = Elements::<T>::new(rows * rows);
            let mut pivots = Elements::<i32>::new(rows);
            let run = session.spaces(&job, [&mut lu, &mut pivots], options)?;
            let result = Factors {
                lu: DenseMatrix::new(matrix.rows(), matrix.rows(), lu.take())?,
                pivots: pivots.take(),
            };
            Ok(ArrayResult { result, run })
        })
    }

    /// The Fourier transform of a matrix along its rows and columns on all devices, without a
    /// factor, as NumPy's `fft2`.
    ///
    /// ```
    /// use pdawl::session::{DenseMatrix, Session};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut session = Session::simulate("k40")?;
    /// let ones = DenseMatrix::new(2, 2, vec![[1.0, 0.0]; 4])?;
    /// let spectrum = session.fft2(&ones).run()?.result;
    /// assert_eq!(spectrum.elements(), [[4.0, 0.0], [0.0; 2], [0.0; 2], [0.0; 2]]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn fft2<'a>(
        &'a mut self,
        matrix: &'a DenseMatrix<Complex>,
    ) -> ArrayRun<'a, DenseMatrix<Complex>> {
        ArrayRun::new(self, move |session, options| {
            let job = SpacesJob::fft2(matrix)?;
            let mut found = Elements::<Complex>::new(matrix.elements().len());
            let run = session.spaces(&job, [&mut found], options)?;
            let result = DenseMatrix::new(matrix.rows(), matrix.columns(), found.take())?;
            Ok(ArrayResult { result, run })
        })
    }

    /// The numbers in ascending order, sorted by the host's cores; -0 comes before 0, and what
    /// is no number last. One machine sorts in one subtask, whatever the tile.
    ///
    /// ```
    /// use pdawl::session::Session;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let sorted = Session::open_devices("host")?.sort(vec![3.0, -1.0, 2.0]).run()?.result;
    /// assert_eq!(sorted, [-1.0, 2.0, 3.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn sort(&mut self, numbers: impl Into<Shared<f32>>) -> ArrayRun<'_, Vec<f32>> {
        let numbers = numbers.into();
        ArrayRun::new(self, move |session, options| {
            let mut found = Elements::<f32>::new(numbers.len());
            let job = SpacesJob::sort(numbers)?;
            let run = session.spaces(&job, [&mut found], options)?;
            Ok(ArrayResult {
                result: found.take(),
                run,
            })
        })
    }

    /// Runs a workload over spaces, of which `sinks` take the outputs.
    fn spaces<const OUTPUTS: usize>(
        &mut self,
        job: &SpacesJob,
        sinks: [&mut dyn Sink; OUTPUTS],
        options: &ArrayOptions,
    ) -> Result<Run, Error> {
        let began = Instant::now();
        let (workload, tile) = job.make(Place::Alone(self.devices()), options.tile)?;
        let alone = Alone::new(&*workload, job.outputs.iter().copied(), &self.stop.0);
        let alone = alone.map_err(|error| match error.is_stopped() {
            true => Error::Stopped,
            false => error.into(),
        })?;
        self.check_memory(alone.host_bytes(self.devices()), "the blocks of the data")?;
        let known = Tasks::Spaces {
            workload: workload.name(),
            size: job.size.clone(),
            tile,
        };
        let seconds = self.seconds(&known, |runtime, stop| Ok(alone.measure(runtime, stop)?))?;
        let stop = self.stop.clone();
        let name = self.devices.machine.name.clone();
        let of_run = AloneOptions {
            policy: options.policy,
            seed: 0,
            window: None,
            memory: options.gpu_memory,
            name: &name,
            traces: options.traced,
            has_data: true,
        };
        let mut control = Control {
            tile,
            verify: options.verify.then_some(0),
            outputs: (job.outputs.iter().copied().zip(sinks))
                .map(|(space, sink)| (space, sink as &mut dyn Sink))
                .collect(),
            progress: &mut |_| {},
        };
        let setup_seconds = began.elapsed().as_secs_f64();
        let runtime = self.devices.runtime();
        let ran = alone.run(runtime, &seconds, &of_run, &mut control, &stop.0);
        let (outcome, ran) = ran.map_err(stopped)?;
        self.keep_seconds(known, seconds);
        self.devices.end();
        let size = format!("{}, tiles of {tile}", job.size);
        let mut context = self.context(Workload::of_tasks(&*workload, size, outcome.tasks));
        context.policy = options.policy.to_string();
        let graph = (&ran, alone.graph());
        let report = report_alone(&outcome, graph, setup_seconds, context, Asked::default());
        Ok(Run::new(report, ran.trace))
    }
}

/// A run that was stopped has no result.
pub fn stopped(error: ClusterError) -> Error {
    match error {
        ClusterError::Interrupted => Error::Stopped,
        error => error.into(),
    }
}
