//! A workload as users describe it, and as it is run.

use pdawl::model::StepWork;
use pdawl::report::schema::Workload;
use pdawl::workload::stencil::Stencil;
use pdawl::workload::{Divisible, spmv};

use super::failure::Failure;
use super::grid::{Budget, Grid};
use super::product::{Matrix, Product};
use super::spec::kernel::KernelTask;

/// A workload to be run.
pub enum Wanted<'a> {
    Stencil(&'a Grid),
    /// With its matrix, which was loaded.
    Spmv(&'a Product, Matrix),
    /// With its data, checked.
    Kernel(Box<KernelTask>),
}

/// A workload that fits the memory.
pub enum Task {
    Stencil(Grid, Stencil),
    Spmv(Product, Box<spmv::Spmv>),
    Kernel(Box<KernelTask>),
}

impl Wanted<'_> {
    /// The workload, if it fits.
    ///
    /// # Errors
    /// When it cannot be, or does not fit.
    pub fn task(self, budget: Budget) -> Result<Task, Failure> {
        match self {
            Self::Stencil(grid) => Ok(Task::Stencil(grid.clone(), grid.stencil(budget)?)),
            Self::Spmv(product, matrix) => {
                let spmv = product.spmv(matrix, budget)?;
                Ok(Task::Spmv(product.clone(), Box::new(spmv)))
            }
            Self::Kernel(kernel) => {
                kernel.fits(budget)?;
                Ok(Task::Kernel(kernel))
            }
        }
    }

    /// What the user should know of it.
    pub fn notes(&self) -> Vec<String> {
        match self {
            // A kernel's grow while it is looked at.
            Self::Stencil(_) | Self::Kernel(_) => Vec::new(),
            Self::Spmv(_, matrix) => matrix.notes.clone(),
        }
    }

    pub fn seed(&self) -> u64 {
        match self {
            Self::Stencil(grid) => grid.seed,
            Self::Spmv(product, _) => product.seed,
            Self::Kernel(kernel) => kernel.seed(),
        }
    }
}

impl Task {
    pub fn workload(&self) -> &dyn Divisible {
        match self {
            Self::Stencil(_, stencil) => stencil,
            Self::Spmv(_, spmv) => spmv.as_ref(),
            Self::Kernel(kernel) => &kernel.user,
        }
    }

    /// A step of it, as cost models know it.
    pub fn work(&self) -> Option<StepWork> {
        match self {
            Self::Stencil(_, stencil) => Some(StepWork::of(stencil)),
            Self::Spmv(_, spmv) => Some(StepWork::of_product(spmv)),
            Self::Kernel(_) => None,
        }
    }

    /// The kernel, if it is one.
    pub fn kernel(&self) -> Option<&KernelTask> {
        match self {
            Self::Kernel(kernel) => Some(kernel),
            Self::Stencil(..) | Self::Spmv(..) => None,
        }
    }

    /// A product with another part of its rows irregular, if the user has not
    /// said which.
    pub fn with_irregular(&self, part: f64) -> Option<Self> {
        match self {
            Self::Spmv(product, spmv) if product.irregular.is_none() => Some(Self::Spmv(
                product.clone(),
                Box::new(spmv.with_irregular(part)),
            )),
            _ => None,
        }
    }

    pub fn steps(&self) -> u32 {
        match self {
            Self::Stencil(grid, _) => grid.steps,
            Self::Spmv(product, _) => product.steps,
            Self::Kernel(kernel) => kernel.steps(),
        }
    }

    /// The workload as reports tell it.
    pub fn described(&self) -> Workload {
        match self {
            Self::Stencil(grid, stencil) => grid.workload(stencil),
            Self::Spmv(product, spmv) => product.workload(spmv),
            Self::Kernel(kernel) => kernel.described(),
        }
    }
}
