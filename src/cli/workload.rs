//! The workload of a run: what the user requests, and what is prepared from it once
//! the machine's memory is known.

use std::collections::BTreeMap;
use std::sync::Arc;

use pdawl_api::session::divided::{Divided, Sharing, Work};
use pdawl_api::workload::Supersteps;

use super::failure::Failure;
use super::grid::{Grid, MemoryBudget};
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
pub struct PreparedWorkload {
    pub divided: Divided,
    /// Whether a simulation needs numbers, though nothing is compared.
    pub needs_numbers: bool,
    /// Takes the results of the last run that the user wants to save, by position.
    pub results: Box<dyn FnOnce() -> BTreeMap<usize, SavedResult>>,
    /// Notes for the report.
    pub notes: Vec<String>,
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
                let precision = stencil.precision();
                let file = grid.input.as_ref().map(|path| path.display().to_string());
                let divided = Divided {
                    plans_supersteps: grid.plans_supersteps(),
                    tolerance: grid.tolerance(),
                    origin: (file, grid.seed),
                    ..Divided::new(Work::Stencil(stencil), grid.supersteps(), Sharing::Adaptive)
                };
                let (kept, result) = (grid.result, divided.result());
                let shape = result.map(|(shape, _)| shape).unwrap_or_default();
                Ok(PreparedWorkload {
                    needs_numbers: kept.is_some() || divided.tolerance.is_some(),
                    divided,
                    results: Box::new(move || {
                        let taken = kept.map(|of| (0, of.take(|_| shape, precision)));
                        taken.into_iter().collect()
                    }),
                    notes: Vec::new(),
                })
            }
            Self::Spmv(product, mut matrix) => {
                let notes = std::mem::take(&mut matrix.notes);
                let spmv = Arc::new(product.spmv(matrix, budget)?);
                let supersteps = Supersteps::new(product.steps, 1);
                let divided = Divided {
                    plans_irregular: product.irregular.is_none(),
                    tolerance: product.ranks().and_then(|ranks| ranks.tolerance),
                    origin: (None, product.seed),
                    ..Divided::new(Work::Product(spmv), supersteps, Sharing::Adaptive)
                };
                let (kept, precision) = (product.result.clone(), product.precision());
                Ok(PreparedWorkload {
                    needs_numbers: kept.is_some() || divided.tolerance.is_some(),
                    divided,
                    results: Box::new(move || {
                        let taken = kept.map(|of| (0, of.take(|numbers| vec![numbers], precision)));
                        taken.into_iter().collect()
                    }),
                    notes,
                })
            }
            Self::Kernel(kernel) => {
                kernel.fits(budget)?;
                Ok(kernel.prepared())
            }
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
