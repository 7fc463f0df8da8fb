//! The interface for programs: a [`Session`] owns the devices of a machine, and computes on
//! all of them together.
//!
//! * [`Session::spmv`] multiplies a sparse matrix with a vector, and keeps the matrix on the
//!   devices for the next vector.
//! * [`Session::stencil`] runs a Jacobi stencil on a [`Grid`].
//! * [`Session::kernel`] divides an OpenCL kernel of the user's among the devices.
//! * [`Session::matmul`], [`Session::cholesky`], [`Session::lu`], [`Session::fft2`] and
//!   [`Session::sort`] compute with dense arrays; [`Nodes`] do so over the nodes of a cluster.
//! * [`Session::graph`] runs tasks that read and write data, as a [policy](crate::policy::Policy)
//!   places them.
//!
//! A run returns a [`Run`]: a report with shares, imbalance and losses, and a trace. The same
//! calls work on a simulated machine ([`Session::simulate`]), whose times are virtual and whose
//! results are computed.
//!
//! A user's own [`Balancer`] or policy takes the place of one of ours
//! by [`Session::set_balancer`] and [`GraphRun::policy_of`].

mod arrays;
mod devices;
pub mod divided;
mod elements;
mod error;
mod first_launch;
mod graph;
mod grid;
mod kernel;
pub mod nodes;
mod number;
mod parts;
mod product;
mod rows;
mod run;
pub mod specified;
pub mod this_machine;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::balance::{Balancer, Setup, Strategy, StrategyError};
use crate::machine::Device;
use crate::report::{Context, Workload};
use crate::runtime::Runtime;

pub use crate::engine::StepRecord;
pub use crate::runtime::cuda::GpuBytes;
pub use crate::runtime::select::{GpuRuntime, Libraries, choose_gpu_runtime, choose_libraries};
pub use crate::workload::cluster::Sorted;
pub use arrays::{ArrayResult, ArrayRun, Complex, DenseMatrix, Factors, NodeRun, OperationOptions};
pub use devices::{
    DeviceOptions, FaultError, FaultSpec, NamedMachine, UnfitFault, memories_in_host,
};
pub use error::Error;
pub use graph::{
    AnyData, Data, GraphJob, GraphOptions, GraphPolicy, GraphRan, GraphRun, Placed, Queues,
    Reference, Results, Sample, Stage, Task, TaskData, TaskGraphBuilder,
};
pub use grid::{Grid, GridMut, GridNumbers, StencilRun};
pub use half::{bf16, f16};
pub use kernel::{Kernel, KernelRun};
pub use nodes::{ClusterOptions, Nodes, ResultError, Results as ProgramResults};
pub use number::{Factor, Number};
pub use parts::{Chosen, Expected, TakingPart, part_lists};
pub use product::SparseMatrix;
pub use run::Run;

use devices::OpenDevices;
use divided::{ModelChoice, Sharing};
use product::OpenProduct;

/// The devices of a machine, opened once.
///
/// ```
/// use pdawl::session::{Session, SparseMatrix};
///
/// # fn main() -> Result<(), pdawl::session::Error> {
/// // Session::open() has the devices of this machine.
/// let mut session = Session::simulate("k40")?;
/// // | 1 0 2 |
/// // | 0 3 0 |
/// let matrix = SparseMatrix::new(2, 3, vec![0, 2, 3], vec![0, 2, 1], vec![1.0, 2.0, 3.0])?;
/// assert_eq!(session.spmv(&matrix, &[1.0, 10.0, 100.0])?, [201.0, 30.0]);
/// # Ok(())
/// # }
/// ```
pub struct Session {
    devices: OpenDevices,
    /// Whether a simulated machine computes results, unless a run has none.
    data: bool,
    /// How steps are divided.
    sharing: Sharing,
    stop: Stop,
    /// The most bytes of each GPU's memory.
    gpu_memory: Option<u64>,
    /// The matrix of the last product, which is still on the devices.
    product: Option<OpenProduct>,
    /// The devices for kernels in OpenCL C, if there are others.
    kernel_devices: Option<OpenDevices>,
    /// The GPU on which arrays are, by CUDA's number.
    arrays_on: Option<usize>,
    /// Whether a run has panicked: what the devices still do is not known.
    panicked: Arc<AtomicBool>,
}

/// A run. A session whose run panics runs nothing more.
struct Running(Arc<AtomicBool>);

impl Drop for Running {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

/// Ends the run of a session from another thread, at its next barrier. It stays set until
/// [`Stop::clear`].
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    fn of(flag: Arc<AtomicBool>) -> Self {
        Self(flag)
    }

    /// Ends the present run and all later ones.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Lets the session run again.
    pub fn clear(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// Whether runs end.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Session {
    /// Every core that the process may use, and every GPU.
    ///
    /// # Errors
    /// When the devices cannot be opened.
    pub fn open() -> Result<Self, Error> {
        Self::with(DeviceOptions::default())
    }

    /// These devices, as in `pdawl run --devices`: `host:8,cuda0`.
    ///
    /// # Errors
    /// When there is no such device, or it cannot be opened.
    pub fn open_devices(list: &str) -> Result<Self, Error> {
        Self::with(DeviceOptions {
            list: Some(list.to_owned()),
            ..DeviceOptions::default()
        })
    }

    /// A simulated machine: one that ships with pdawl, such as `k40`, one of
    /// `pdawl machine save`, or the path of a machine file. Results are computed on this
    /// machine; times are those of the simulated one.
    ///
    /// # Errors
    /// When there is no such machine, or its file is wrong.
    pub fn simulate(machine: &str) -> Result<Self, Error> {
        let why = format!("machine {machine}, as the session asks");
        let machine = NamedMachine::find(machine)?.simulated(why);
        Self::with(DeviceOptions {
            machine: Some(machine),
            data: true,
            ..DeviceOptions::default()
        })
    }

    /// The devices that these options say.
    ///
    /// # Errors
    /// When there is no such machine or device, or it cannot be opened.
    pub fn with(options: DeviceOptions) -> Result<Self, Error> {
        let (data, arrays_on) = (options.data, options.arrays_on);
        let devices = OpenDevices::open(options)?;
        Ok(Self {
            data,
            devices,
            sharing: Sharing::Adaptive,
            stop: Stop::default(),
            gpu_memory: None,
            product: None,
            kernel_devices: None,
            arrays_on,
            panicked: Arc::default(),
        })
    }

    /// The devices, in the order of shares.
    pub fn devices(&self) -> &[Device] {
        &self.devices.machine.devices
    }

    /// The machine's name.
    pub fn name(&self) -> &str {
        &self.devices.machine.name
    }

    /// What was left out when the devices were opened and why, and what was noted since.
    pub fn notes(&self) -> &[String] {
        &self.devices.notes
    }

    /// Whether times are virtual.
    pub fn is_simulated(&self) -> bool {
        self.devices.machine.simulated
    }

    /// Ends a run early when it is set, from any thread.
    ///
    /// ```
    /// use pdawl::session::{Grid, Session};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut session = Session::simulate("k40")?;
    /// session.stop().set();
    /// let mut grid = Grid::new(&[50, 50], vec![1.0; 2500])?;
    /// assert!(session.stencil(&mut grid).steps(1000).run()?.interrupted);
    /// session.stop().clear();
    /// # Ok(())
    /// # }
    /// ```
    pub fn stop(&self) -> Stop {
        self.stop.clone()
    }

    /// At most so many bytes of each GPU's memory from now on, unless a run says otherwise.
    ///
    /// ```
    /// use pdawl::session::{DenseMatrix, Session};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut session = Session::simulate("k40")?;
    /// session.limit_gpu_memory(Some(1 << 20));
    /// let (a, b) = (DenseMatrix::new(300, 300, vec![1.0; 90_000])?, DenseMatrix::new(300, 1, vec![1.0; 300])?);
    /// let c = session.matmul(&a, &b).run()?.result;
    /// assert!(c.elements().iter().all(|sum| *sum == 300.0));
    /// # Ok(())
    /// # }
    /// ```
    pub fn limit_gpu_memory(&mut self, bytes: Option<u64>) {
        self.close_product();
        self.gpu_memory = bytes;
    }

    /// How steps are divided from now on, as in `pdawl run --strategy`; at first `dawl`, which
    /// learns the shares while it runs. `pdawl` begins with the plan of the machine's cost model
    /// (`pdawl train`), and needs the feature `models`; kernels and supersteps, which models do
    /// not know, are divided by `dawl` then.
    ///
    /// ```
    /// use pdawl::session::{Grid, Session};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut session = Session::simulate("k40")?;
    /// session.set_strategy(&"pdawl".parse()?)?;
    /// let mut grid = Grid::new(&[500, 500], vec![1.0; 250_000])?;
    /// assert_eq!(session.stencil(&mut grid).steps(3).run()?.policy, "pdawl");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When it needs devices that are not there, for `oracle`, which is a sweep of many runs, and
    /// for `pdawl` without the feature.
    pub fn set_strategy(&mut self, strategy: &Strategy) -> Result<(), Error> {
        let kinds: Vec<_> = self.devices().iter().map(|device| device.kind).collect();
        strategy.suits(&kinds)?;
        match strategy {
            Strategy::Pdawl if cfg!(not(feature = "models")) => {
                return Err(StrategyError::NoModel.into());
            }
            Strategy::Oracle => return Err(StrategyError::Sweep.into()),
            _ => {}
        }
        self.close_product();
        self.sharing = Sharing::By(strategy.clone());
        Ok(())
    }

    /// Divides steps by a balancer of the user's from now on, called `name` in reports; see
    /// `examples/balancer.rs`.
    ///
    /// ```
    /// use pdawl::balance::Fixed;
    /// use pdawl::session::{Grid, Session};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut session = Session::simulate("k40")?;
    /// session.set_balancer("halves", |setup| Box::new(Fixed::new("halves", setup, &[0.5, 0.5])));
    /// let mut grid = Grid::new(&[500, 500], vec![1.0; 250_000])?;
    /// assert_eq!(session.stencil(&mut grid).run()?.shares(), [0.5, 0.5]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_balancer(
        &mut self,
        name: impl Into<String>,
        make: impl Fn(&Setup) -> Box<dyn Balancer> + Send + Sync + 'static,
    ) {
        self.close_product();
        self.sharing = Sharing::Own(name.into(), Arc::new(make));
    }

    /// A run begins, until what this returns is dropped.
    fn running(&self) -> Result<Running, Error> {
        self.check()?;
        Ok(Running(Arc::clone(&self.panicked)))
    }

    /// Refuses to use the devices after a panic, and in a process that was forked from their
    /// own.
    fn check(&self) -> Result<(), Error> {
        self.devices.check()?;
        match self.panicked.load(Ordering::Relaxed) {
            true => Err(Error::Panicked),
            false => Ok(()),
        }
    }

    /// The runtime of a run of its own, with nothing else in the devices' memory.
    fn runtime(&mut self) -> Result<&mut dyn Runtime, Error> {
        self.clear(true);
        self.devices.begin(None)?;
        Ok(self.devices.runtime())
    }

    /// Takes off the devices what an earlier run has left, and forgets what it was asked for.
    fn clear(&mut self, data: bool) {
        self.close_product();
        if let Some((_, options)) = self.devices.simulation() {
            options.data = data;
            options.faults.clear();
        }
    }

    /// How steps are divided that no cost model knows.
    fn learned(&self) -> Sharing {
        match &self.sharing {
            Sharing::By(Strategy::Pdawl) => Sharing::By(Strategy::Dawl),
            other => other.clone(),
        }
    }

    /// The cost model that the strategy needs.
    fn model(&self) -> ModelChoice {
        match self.sharing {
            #[cfg(feature = "models")]
            Sharing::By(Strategy::Pdawl) => ModelChoice::Fitting,
            _ => ModelChoice::None,
        }
    }

    /// Calls `run` with the devices that run kernels in OpenCL C.
    fn with_kernel_devices<R>(
        &mut self,
        run: impl FnOnce(&mut Self) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let _running = self.running()?;
        if self.devices.are_of_kernels() {
            return run(self);
        }
        self.close_product();
        let mut others = match self.kernel_devices.take() {
            Some(others) => others,
            None => self.devices.of_kernels()?,
        };
        std::mem::swap(&mut self.devices, &mut others);
        let ran = run(self);
        std::mem::swap(&mut self.devices, &mut others);
        self.kernel_devices = Some(others);
        ran
    }

    /// What reports have beside outcomes and policies.
    fn context(&self, workload: Workload) -> Context {
        Context {
            workload,
            machine: self.devices.machine.clone(),
            policy: String::new(),
            notes: self.devices.notes.clone(),
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.close_product();
    }
}
