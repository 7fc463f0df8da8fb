//! Grids, and stencils on them.

use std::ptr::NonNull;
use std::sync::Arc;

use super::divided::{Divided, ModelChoice, PlansSupersteps, Work};
use super::{Error, Number, Run, Session};
use crate::codelet::Precision;
use crate::matrix::Shared;
use crate::parallel;
use crate::workload::Supersteps;
use crate::workload::kernel::Sink;
use crate::workload::stencil::Stencil;

/// A grid of points, row after row.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid<T> {
    shape: Vec<u64>,
    numbers: Vec<T>,
}

impl<T: Number> Grid<T> {
    /// A grid of rows and columns, or of planes, rows and columns; at least 3 of each. The
    /// numbers are those of the first row, then those of the second, and so on.
    ///
    /// # Errors
    /// When there are not 2 or 3 axes, and when there are more or fewer numbers than points.
    pub fn new(shape: &[u64], numbers: Vec<T>) -> Result<Self, Error> {
        let points = shape
            .iter()
            .try_fold(1u64, |all, axis| all.checked_mul(*axis));
        if !matches!(shape.len(), 2 | 3) {
            return Err(axes(shape.len()));
        }
        match points == Some(numbers.len() as u64) {
            true => Ok(Self {
                shape: shape.to_vec(),
                numbers,
            }),
            false => Err(Error::Arguments(format!(
                "a grid of {shape:?} has {} points, and {} numbers are given",
                points.map_or("too many".to_owned(), |points| points.to_string()),
                numbers.len()
            ))),
        }
    }

    /// Rows and columns, or planes, rows and columns.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Row after row.
    pub fn numbers(&self) -> &[T] {
        &self.numbers
    }

    /// Row after row, without a copy.
    pub fn into_numbers(self) -> Vec<T> {
        self.numbers
    }
}

fn axes(given: usize) -> Error {
    Error::Arguments(format!(
        "a grid has 2 axes, rows and columns, or 3, planes, rows and columns; {given} are given"
    ))
}

/// The numbers of a grid that somebody else owns.
#[derive(Debug)]
pub enum GridNumbers<'a> {
    F32(&'a mut [f32]),
    F64(&'a mut [f64]),
}

/// A grid that somebody else owns: its shape as that of [`Grid::new`], and its numbers.
#[derive(Debug)]
pub struct GridMut<'a> {
    pub shape: Vec<u64>,
    pub numbers: GridNumbers<'a>,
}

impl<'a, T: Number> From<&'a mut Grid<T>> for GridMut<'a> {
    fn from(grid: &'a mut Grid<T>) -> Self {
        Self {
            shape: grid.shape.clone(),
            numbers: T::numbers(&mut grid.numbers),
        }
    }
}

impl GridMut<'_> {
    fn precision(&self) -> Precision {
        match self.numbers {
            GridNumbers::F32(_) => Precision::F32,
            GridNumbers::F64(_) => Precision::F64,
        }
    }

    fn bytes(&mut self) -> &mut [u8] {
        match &mut self.numbers {
            GridNumbers::F32(numbers) => bytemuck::cast_slice_mut(numbers),
            GridNumbers::F64(numbers) => bytemuck::cast_slice_mut(numbers),
        }
    }
}

/// A stencil that is about to run.
pub struct StencilRun<'a> {
    session: &'a mut Session,
    grid: GridMut<'a>,
    steps: u32,
    /// Steps between two barriers, and whether others are chosen.
    superstep: u32,
    plans_supersteps: PlansSupersteps,
    coefficients: Option<Vec<f64>>,
    until: Option<(f64, u32)>,
    gpu_memory: Option<u64>,
    verify: bool,
    traced: bool,
    progress: Box<dyn FnMut(u32, u32) + 'a>,
}

impl Session {
    /// A Jacobi stencil on a grid, which has its last version after the run. A step makes each
    /// inner point the mean of itself and its 4 (in 3-D 6) neighbours; the outermost points
    /// stay.
    ///
    /// ```
    /// use pdawl::session::{Grid, Session};
    ///
    /// # fn main() -> Result<(), pdawl::session::Error> {
    /// let mut session = Session::simulate("k40")?;
    /// let mut numbers = vec![0.0; 60 * 40];
    /// numbers[..40].fill(100.0);
    /// let mut plate = Grid::new(&[60, 40], numbers)?;
    /// let run = session.stencil(&mut plate).steps(30).verify().run()?;
    /// assert!(!run.is_wrong() && plate.numbers()[40 + 20] > 50.0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn stencil<'a>(&'a mut self, grid: impl Into<GridMut<'a>>) -> StencilRun<'a> {
        StencilRun {
            gpu_memory: self.gpu_memory,
            session: self,
            grid: grid.into(),
            steps: 1,
            superstep: 1,
            plans_supersteps: PlansSupersteps::IfUsual,
            coefficients: None,
            until: None,
            verify: false,
            traced: false,
            progress: Box::new(|_, _| {}),
        }
    }
}

impl<'a> StencilRun<'a> {
    /// So many steps, at least 1; 1 unless it is said.
    pub fn steps(self, steps: u32) -> Self {
        Self { steps, ..self }
    }

    /// So many steps between two barriers, instead of one, or of as many as are predicted to be
    /// fastest where the GPUs' memory does not hold the grid; see docs/supersteps.md.
    ///
    /// ```
    /// use pdawl::session::{Grid, Session};
    ///
    /// # fn main() -> Result<(), pdawl::session::Error> {
    /// let mut session = Session::simulate("k40")?;
    /// let mut grid = Grid::new(&[2000, 2000], vec![1.0; 4_000_000])?;
    /// let run = session.stencil(&mut grid).steps(60).gpu_memory(16 << 20).run()?;
    /// assert!(run.workload.superstep() > 1);
    /// let run = session.stencil(&mut grid).steps(60).superstep(4).run()?;
    /// assert_eq!(run.workload.superstep(), 4);
    /// # Ok(())
    /// # }
    /// ```
    pub fn superstep(self, superstep: u32) -> Self {
        Self {
            superstep,
            plans_supersteps: PlansSupersteps::Never,
            ..self
        }
    }

    /// As many steps between two barriers as were fastest in earlier runs, or are predicted to be,
    /// wherever the grid is, as `--superstep auto` does.
    pub fn superstep_auto(self) -> Self {
        Self {
            superstep: 1,
            plans_supersteps: PlansSupersteps::Always,
            ..self
        }
    }

    /// A coefficient of each point of the neighbourhood instead of the mean: of the point
    /// itself, of those in the rows before and after it, in the columns before and after it, and
    /// in 3-D in the planes before and after it.
    pub fn coefficients(self, coefficients: &[f64]) -> Self {
        Self {
            coefficients: Some(coefficients.to_vec()),
            ..self
        }
    }

    /// Ends once no point changes more than `change` in a step; looked at after each multiple
    /// of `every` steps.
    pub fn until(self, change: f64, every: u32) -> Self {
        Self {
            until: Some((change, every)),
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

    /// Compares the result with the sequential reference.
    pub fn verify(self) -> Self {
        Self {
            verify: true,
            ..self
        }
    }

    /// Keeps the times of every command.
    pub fn traced(self) -> Self {
        Self {
            traced: true,
            ..self
        }
    }

    /// Calls `progress` with the steps that are done, and all.
    pub fn progress(self, progress: impl FnMut(u32, u32) + 'a) -> Self {
        Self {
            progress: Box::new(progress),
            ..self
        }
    }

    /// Runs it. A run that the session's [`Stop`](super::Stop) ends leaves the version of its
    /// last barrier in the grid, and says so in its report.
    ///
    /// # Errors
    /// What is wrong with the arguments, when memory does not suffice, and when all devices are
    /// lost. The grid then has its first version.
    pub fn run(mut self) -> Result<Run, Error> {
        let shape = match self.grid.shape[..] {
            [rows, columns] => (columns, rows, None),
            [planes, rows, columns] => (columns, rows, Some(planes)),
            _ => return Err(axes(self.grid.shape.len())),
        };
        let supersteps = self.supersteps()?;
        let precision = self.grid.precision();
        let bytes = self.grid.bytes();
        let first = match self.verify {
            // The reference begins with the first version when the grid has the last one.
            true => Shared::from(bytes.to_vec()),
            // SAFETY: the run reads it only before it delivers the last version, and nothing
            // of the run is left when this function returns.
            false => unsafe { Shared::new(NonNull::from(&*bytes), Arc::new(())) },
        };
        let target = Target(NonNull::from(bytes));
        let mut stencil = Stencil::of_numbers(shape, precision, first)?;
        if let Some(coefficients) = &self.coefficients {
            stencil = stencil.with_coefficients(coefficients)?;
        }
        let stencil = stencil.with_sink(Sink::new(move |_, result| target.write(result)));
        let session = self.session;
        let (sharing, model) = match supersteps.size() {
            1 => (session.sharing.clone(), session.model()),
            _ => (session.learned(), ModelChoice::None),
        };
        let divided = Divided {
            tolerance: self.until.map(|(change, _)| change),
            plans_supersteps: self.plans_supersteps,
            model,
            gpu_memory: self.gpu_memory,
            verify: self.verify,
            traced: self.traced,
            ..Divided::new(Work::Stencil(stencil), supersteps, sharing)
        };
        let stop = session.stop();
        session
            .divide(divided, &stop.0)?
            .run(&stop.0, &mut self.progress)
    }

    fn supersteps(&self) -> Result<Supersteps, Error> {
        let superstep = self.superstep;
        let wrong = |what: &str| Err(Error::Arguments(what.to_owned()));
        match self.until {
            _ if self.steps == 0 => wrong("a stencil runs at least 1 step, and 0 are asked for"),
            _ if superstep == 0 => wrong("a superstep has at least 1 step, and 0 are asked for"),
            Some((change, _)) if !(change.is_finite() && change > 0.0) => {
                wrong("`until` takes a change above 0, such as 1e-6")
            }
            Some((_, 0)) => wrong("changes are looked at after each multiple of at least 1 step"),
            Some((_, every)) => {
                Ok(Supersteps::new(self.steps, superstep.min(every)).with_period(every))
            }
            None => Ok(Supersteps::new(self.steps, superstep)),
        }
    }
}

/// Where the last version of a grid goes.
struct Target(NonNull<[u8]>);

// SAFETY: it is used by one thread at a time, the one that runs the stencil.
unsafe impl Send for Target {}
// SAFETY: as above.
unsafe impl Sync for Target {}

impl Target {
    fn write(&self, result: &[u8]) {
        // SAFETY: the grid is borrowed exclusively while its stencil runs, and its first
        // version is not read any more.
        let target = unsafe { &mut *self.0.as_ptr() };
        let bytes = target.len();
        parallel::copy(target, &result[..bytes]);
    }
}
