//! pdawl divides data-parallel work among the CPU and the GPUs of a machine so that
//! all devices finish at the same time. It corrects the division while the work runs.
//!
//! A [`Session`] is the interface for programs: it owns the devices of this machine, or of a
//! simulated one, and runs sparse products, stencils, OpenCL kernels and graphs of tasks on
//! them. [`session`] describes it, with examples.
//!
//! Over several machines, [`engine::cluster::Cluster`] runs programs: tasks over shared
//! spaces, computed by functions and OpenCL kernels of the user's.
//!
//! What sessions are made of, for those who add to it:
//!
//! * A [`workload`] consists of units that can be divided, such as the rows of a grid
//!   or of a sparse matrix. A balancer from [`balance`] decides how many units each
//!   device computes, and [`engine::corun`] runs them.
//! * A task [`graph`] consists of kernels that depend on each other. A [`policy`]
//!   decides which device runs which kernels, and when. [`engine::graph`] runs them; its
//!   page has an example.
//! * Both run on a [`runtime`]: on OpenCL devices, NVIDIA's GPUs and the cores of the host, or
//!   in a simulator of a [`machine`]. A run returns an [`engine::Outcome`], from which
//!   [`report`] and [`trace`] make reports and charts. A cost [`model`], trained on the
//!   measured runs of a [`profile`], can predict the first division.
//!
//! ARCHITECTURE.md in the repository describes the parts and their dependencies.
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
//! | `csv` | traces as CSV ([`trace::csv`]) |
//! | `cuda` | NVIDIA GPUs through CUDA's driver ([`runtime::cuda`]) |
//! | `dense` | libraries for dense products and Fourier transforms on the host. Without them its products are plain loops, and it has no transform |
//! | `matrix-files` | NPY files ([`matrix::npy`]), and Matrix Market files that are compressed or in archives |
//! | `models` | profiles of machines ([`profile`]) and cost models ([`model`]) |
//! | `opencl` | OpenCL devices ([`runtime::opencl`]) |
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

pub use pdawl_api::*;
pub use session::Session;

/// The examples of README.md and of the tutorial, as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
#[doc = include_str!("../docs/tutorial/2-kernel.md")]
struct Examples;
