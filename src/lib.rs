//! pdawl divides data-parallel work among the CPU and the GPUs of a machine so that
//! all devices finish at the same time. It corrects the division while the work runs.
//!
//! A [`Session`] is the interface for programs: it owns the devices of this machine, or of a
//! simulated one, and runs sparse products, stencils, OpenCL kernels and graphs of tasks on
//! them. [`session`] describes it, with examples.
//!
//! Over several machines, [`session::Nodes`] run operations and programs: tasks over shared
//! spaces, computed by functions and OpenCL kernels of the user's.
//!
//! What it is made of, for those who add to it, is in crates of its own: `pdawl-core` has
//! workloads, balancers and policies, `pdawl-engine` runs them on the devices of `pdawl-hardware`,
//! and `pdawl-modelling` profiles machines and predicts. ARCHITECTURE.md in the repository
//! describes them and their dependencies.
//!
//! # Features
//!
//! All are on unless asked otherwise. A library needs few of them:
//! `default-features = false, features = ["opencl", "cuda"]` has the balancers, the engines, the
//! host, the GPUs and the simulator, and builds 57 packages of others in place of 190.
//!
//! | feature | what it has |
//! |---|---|
//! | `cli` | the program, and reports as text; all below but `cuda` |
//! | `csv` | traces as CSV |
//! | `cuda` | NVIDIA GPUs through CUDA's driver |
//! | `dense` | libraries for dense products and Fourier transforms on the host. Without them its products are plain loops, and it has no transform |
//! | `matrix-files` | NPY files, and Matrix Market files that are compressed or in archives |
//! | `models` | profiles of machines and cost models |
//! | `opencl` | OpenCL devices |
//!
//! # Example
//!
//! ```
//! use pdawl::session::{Grid, Session};
//!
//! # fn main() -> Result<(), pdawl::session::Error> {
//! // Session::open() has the devices of this machine.
//! let mut session = Session::simulate("k40")?;
//! let mut grid = Grid::new(&[300, 200], vec![1.0; 300 * 200])?;
//! let run = session.stencil(&mut grid).steps(5).verify().run()?;
//! assert!(!run.is_wrong());
//! println!("{:?} of the rows, {} s", run.shares(), run.seconds);
//! # Ok(())
//! # }
//! ```

pub use session::Session;

/// How the units of a step are divided: the strategies, and what a [`Balancer`](balance::Balancer)
/// of a user's is told and answers.
pub mod balance {
    pub use pdawl_api::balance::{
        Account, Balancer, ChunkDone, Dawl, DeviceStep, DeviceView, Fixed, Guided, Next, Overhead,
        Planned, Probe, ProbeKind, Setup, Shares, StepPlan, StepReport, StepState, Strategy,
        StrategyError, Sweep, Trusted, largest_remainder,
    };
}

/// The division of loops of one's own: which units each part computes, from what the steps before
/// took.
pub mod divider {
    pub use pdawl_api::balance::divider::{Divider, DividerError, Options};
}

/// Sparse matrices, and where they come from.
pub mod matrix {
    pub use pdawl_api::matrix::{
        Control, Csr, CsrError, FileError, Loaded, MatrixError, MatrixSource, Origin, Progress,
        Shared, Stats,
    };
}

/// Where and when tasks run: the policies, and what a [`Policy`](policy::Policy) of a user's is
/// told and answers.
pub mod policy {
    pub use pdawl_api::policy::{
        Adaptive, Clustering, Darts, Datum, DeviceModel, Dmdar, Eager, Eviction, Finished, Growing,
        Heft, Links, Locality, MapError, NamedPolicy, Policy, PolicyNameError, PolicyOptions,
        Prefetch, Problem, RoundRobin, Task, WINDOW,
    };
}

/// Programs of tasks over shared spaces, which [`Nodes`](session::Nodes) run.
pub mod program {
    pub use pdawl_api::cluster::record::ClusterOutcome;
    pub use pdawl_api::cluster::space::{Block, Extent, SpaceId};
    pub use pdawl_api::codelet::{Cost, NdRange, NumberFormat, Precision, Value};
    pub use pdawl_api::spread::{NamedSpread, SpreadNameError};
    pub use pdawl_api::workload::cluster::program::{
        Access, Bytes, CodeletTask, Collected, Gather, Gathered, Program, ProgramError,
        ProgramTask, Read, Space, SpaceTask, Subscription, SubtaskKernel, Touch, Touched, Unit,
        Uses, View, ViewMut, Write, Yielded,
    };
}

/// What a run was, as its report has it.
pub mod report {
    pub use pdawl_api::report::run::corun::{CoRun, Model, Single, Step, Trust};
    pub use pdawl_api::report::run::graph::{
        Dense, Graph, Measured, MeasuredTasks, PlacedComponent,
    };
    pub use pdawl_api::report::run::nodes::{BusiestPart, Figure, Node, Requests, Steps, Tasks};
    pub use pdawl_api::report::run::{Bounds, Details, DevicePart, Lost, Verification};
    pub use pdawl_api::report::{
        Context, HostInfo, Machine, Parameters, Printed, Report, Throughput, Workload,
    };
}

/// Sessions: the devices of a machine, and runs on them.
pub mod session {
    pub use pdawl_api::machine::{Device, DeviceKind, Host, MachineError, RuntimeKind};
    pub use pdawl_api::runtime::RuntimeError;
    pub use pdawl_api::session::{
        AnyData, ArrayResult, ArrayRun, ClusterOptions, Complex, Data, DenseMatrix, DeviceOptions,
        Error, Factor, Factors, FaultError, FaultSpec, GpuBytes, GraphRun, Grid, GridMut,
        GridNumbers, Kernel, KernelRun, NamedMachine, NodeRun, Nodes, Number, Placed,
        ProgramResults, ResultError, Results, Run, Sample, Session, Sorted, SparseMatrix, Stage,
        StencilRun, Stop, Task, TaskData, TaskGraphBuilder, UnfitFault, bf16, f16,
    };
    pub use pdawl_api::trace::gantt::Chart;
    pub use pdawl_api::trace::{Span, Trace};
}

/// Sets of tasks that share data, which [`Session::task_set`] runs.
pub mod task_set {
    pub use pdawl_api::workload::task_set::{
        Body, Cholesky, Matmul2d, Matmul3d, Order, RandomTasks, SETS, TILE, TaskSet, TaskSetError,
        Tasks,
    };
}

/// The examples of README.md and of the tutorial, as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
#[doc = include_str!("../docs/tutorial/2-kernel.md")]
struct Examples;
