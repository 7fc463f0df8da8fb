//! The workload of a run: what the user requests, and what is prepared from it once
//! the machine's memory is known.

use std::collections::BTreeMap;

use pdawl::model::StepWork;
use pdawl::report::Workload;
use pdawl::workload::stencil::Stencil;
use pdawl::workload::{Divisible, Supersteps, spmv};

use super::failure::Failure;
use super::grid::{Grid, MemoryBudget, array_shape};
use super::product::{Matrix, Product};
use super::saves::SavedResult;
use super::spec::kernel::KernelTask;

/// A workload as the user describes it.
pub enum WorkloadRequest {
    Stencil(Grid),
    /// A product and its loaded matrix.
    Spmv(Box<Product>, Matrix),
    /// A user's kernel and its data, which were checked.
    Kernel(Box<KernelTask>),
}

/// A workload that fits the memory.
pub enum PreparedWorkload {
    Stencil(Grid, Stencil),
    Spmv(Product, Box<spmv::Spmv>),
    Kernel(Box<KernelTask>),
}

impl WorkloadRequest {
    /// The workload, within a budget of memory.
    ///
    /// # Errors
    /// When the arguments contradict each other, or the workload does not fit.
    pub fn prepare(self, budget: MemoryBudget) -> Result<PreparedWorkload, Failure> {
        match self {
            Self::Stencil(grid) => {
                let stencil = grid.stencil(budget)?;
                Ok(PreparedWorkload::Stencil(grid, stencil))
            }
            Self::Spmv(product, matrix) => {
                let spmv = product.spmv(matrix, budget)?;
                Ok(PreparedWorkload::Spmv(*product, Box::new(spmv)))
            }
            Self::Kernel(kernel) => {
                kernel.fits(budget)?;
                Ok(PreparedWorkload::Kernel(kernel))
            }
        }
    }

    /// Notes for the report.
    pub fn notes(&self) -> Vec<String> {
        match self {
            // A kernel's notes are complete only when it has been examined.
            Self::Stencil(_) | Self::Kernel(_) => Vec::new(),
            Self::Spmv(_, matrix) => matrix.notes.clone(),
        }
    }

    /// Whether the steps between two barriers are to be planned.
    pub fn plans_superstep(&self) -> bool {
        matches!(self, Self::Stencil(grid) if grid.is_auto())
    }

    pub fn seed(&self) -> u64 {
        match self {
            Self::Stencil(grid) => grid.seed,
            Self::Spmv(product, _) => product.seed,
            Self::Kernel(kernel) => kernel.seed(),
        }
    }
}

impl PreparedWorkload {
    pub fn divisible(&self) -> &dyn Divisible {
        match self {
            Self::Stencil(_, stencil) => stencil,
            Self::Spmv(_, spmv) => spmv.as_ref(),
            Self::Kernel(kernel) => &kernel.user,
        }
    }

    /// The change in a step that ends the run.
    pub fn tolerance(&self) -> Option<f64> {
        match self {
            Self::Spmv(product, _) => product.ranks()?.tolerance,
            Self::Stencil(grid, _) => grid.tolerance(),
            Self::Kernel(_) => None,
        }
    }

    /// Whether a simulation needs numbers, though nothing is compared.
    pub fn needs_numbers(&self) -> bool {
        match self {
            Self::Spmv(product, _) => product.result.is_some() || self.tolerance().is_some(),
            Self::Stencil(grid, _) => grid.result.is_some() || grid.tolerance().is_some(),
            Self::Kernel(_) => false,
        }
    }

    /// Takes the results of the last run that the user wants to save, by position.
    pub fn results(&self) -> BTreeMap<usize, SavedResult> {
        let only = |result: Option<SavedResult>| result.map(|result| (0, result));
        match self {
            Self::Stencil(grid, stencil) => {
                let taken = grid.result.as_ref();
                let taken = taken.map(|of| of.take(|_| array_shape(stencil), stencil.precision()));
                only(taken).into_iter().collect()
            }
            Self::Spmv(product, _) => {
                let taken = product.result.as_ref();
                let taken = taken.map(|of| of.take(|numbers| vec![numbers], product.precision()));
                only(taken).into_iter().collect()
            }
            Self::Kernel(kernel) => {
                let raw = |(position, bytes)| (position, SavedResult { array: None, bytes });
                kernel.results().into_iter().map(raw).collect()
            }
        }
    }

    /// A step of it, as cost models know it, or why they do not.
    pub fn work(&self) -> Result<StepWork, String> {
        match (self, self.supersteps().size()) {
            (Self::Stencil(_, stencil), 1) => Ok(StepWork::of(stencil)),
            (Self::Stencil(..), size) => Err(format!(
                "models predict steps with a barrier after each, not --superstep {size}"
            )),
            (Self::Spmv(_, spmv), _) => Ok(StepWork::of_product(spmv)),
            (Self::Kernel(kernel), _) => {
                let codelet = kernel.user.codelet();
                Err(format!("models do not support codelet {}", codelet.name))
            }
        }
    }

    /// The user's kernel, if the workload is one.
    pub fn kernel(&self) -> Option<&KernelTask> {
        match self {
            Self::Kernel(kernel) => Some(kernel),
            Self::Stencil(..) | Self::Spmv(..) => None,
        }
    }

    /// The product with another fraction of its rows irregular, unless the user gave
    /// the fraction.
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

    /// How its steps are divided into supersteps.
    pub fn supersteps(&self) -> Supersteps {
        match self {
            Self::Stencil(grid, _) => grid.supersteps(),
            Self::Spmv(..) | Self::Kernel(_) => Supersteps::new(self.steps(), 1),
        }
    }

    /// The workload, for reports.
    pub fn described(&self) -> Workload {
        match self {
            Self::Stencil(grid, stencil) => grid.workload(stencil),
            Self::Spmv(product, spmv) => product.workload(spmv),
            Self::Kernel(kernel) => kernel.described(),
        }
    }
}
