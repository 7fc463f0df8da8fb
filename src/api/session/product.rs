//! Products of a sparse matrix and a vector.
//!
//! The matrix stays open from one product to the next: on each device what it holds of it, the
//! vectors in host memory, and the balancer with what it has learned.

use std::sync::Arc;

use super::divided::{Divided, MakeBalancer, Work};
use super::{Error, Session};
use crate::engine::StepRecord;
use crate::engine::corun::session::{self, Stepped};
use crate::engine::corun::{CorunError, Options};
use crate::matrix::{Csr, CsrError, Shared};
use crate::parallel;
use crate::runtime::Runtime;
use crate::workload::spmv::{self, Spmv, SpmvError};
use crate::workload::{Divisible, Supersteps};

/// A sparse matrix in compressed rows. Clones are the same matrix.
#[derive(Clone, Debug)]
pub struct SparseMatrix(Arc<Csr>);

impl SparseMatrix {
    /// A matrix of `rows` x `columns`. The entries of row `r` are those from `row_starts[r]` on,
    /// up to `row_starts[r + 1]`: their columns, which ascend within a row, and their values.
    /// Arrays that are [`Shared`] stay where they are: devices on host memory read them there,
    /// unless a row has more entries than one device is to have of it.
    ///
    /// # Errors
    /// When the arrays contradict each other, with the first wrong row.
    pub fn new(
        rows: u32,
        columns: u32,
        row_starts: Vec<u64>,
        column_of: impl Into<Shared<u32>>,
        values: impl Into<Shared<f64>>,
    ) -> Result<Self, Error> {
        if rows == 0 || columns == 0 {
            return Err(SpmvError::Empty { rows, columns }.into());
        }
        let matrix: Result<_, CsrError> = Csr::new(rows, columns, row_starts, column_of, values);
        Ok(Self(Arc::new(matrix?)))
    }

    /// Numbers of a product.
    pub fn rows(&self) -> usize {
        self.0.rows() as usize
    }

    /// Numbers of a vector that it is multiplied with.
    pub fn columns(&self) -> usize {
        self.0.columns() as usize
    }

    /// Stored entries.
    pub fn nonzeros(&self) -> u64 {
        self.0.nonzeros()
    }

    /// Where each row starts, the column of each entry, and its value.
    pub fn arrays(&self) -> (&[u64], &[u32], &[f64]) {
        (self.0.row_starts(), self.0.column_of(), self.0.values())
    }
}

impl From<Csr> for SparseMatrix {
    fn from(matrix: Csr) -> Self {
        Self(Arc::new(matrix))
    }
}

/// A matrix that is open on the devices.
pub struct OpenProduct {
    /// `None` only while it is with the engine. It borrows from `spmv`, and is closed before.
    engine: Option<session::Session<'static>>,
    spmv: Arc<Spmv>,
    /// The fraction of the rows' work of each device, in the last product.
    shares: Vec<f64>,
}

impl OpenProduct {
    fn open(
        runtime: &mut dyn Runtime,
        spmv: Arc<Spmv>,
        lost: &[bool],
        (make, options): (&MakeBalancer, &Options),
    ) -> Result<Self, Error> {
        // SAFETY: what `spmv` points to neither moves nor changes while this product has the
        // `Arc`, and `close` or `drop` end the engine's borrow before that is dropped.
        let workload: &'static Spmv = unsafe { &*Arc::as_ptr(&spmv) };
        let engine = session::Session::open(
            runtime,
            (workload, 0..workload.units(), Vec::new()),
            (options, lost),
            &|setup| make(setup),
            None,
        )?;
        Ok(Self {
            engine: Some(engine),
            spmv,
            shares: Vec::new(),
        })
    }

    fn is_of(&self, matrix: &SparseMatrix) -> bool {
        Arc::ptr_eq(self.spmv.matrix(), &matrix.0)
    }

    /// Calls the engine, which has the runtime meanwhile.
    fn on<R>(
        &mut self,
        call: impl FnOnce(session::Session<'static>) -> (session::Session<'static>, R),
    ) -> Option<R> {
        let (engine, result) = call(self.engine.take()?);
        self.engine = Some(engine);
        Some(result)
    }

    /// Multiplies. False when a device was lost with what it held.
    fn multiply(
        &mut self,
        runtime: &mut dyn Runtime,
        x: &[f64],
        y: &mut [f64],
    ) -> Result<bool, CorunError> {
        let nothing = || Ok(false);
        self.on(|engine| engine.set_input(runtime, x))
            .unwrap_or(Ok(()))?;
        let stepped = self.on(|engine| engine.step(runtime));
        let stepped = stepped.unwrap_or(Ok(Stepped::Spoiled))?;
        if stepped == Stepped::Spoiled
            || !(self.on(|engine| engine.gather(runtime))).unwrap_or_else(nothing)?
        {
            return Ok(false);
        }
        let Some(engine) = &mut self.engine else {
            return Ok(false);
        };
        if let Some(last) = engine.take_steps().last() {
            self.shares = shares(last);
        }
        let bytes = 0..8 * y.len() as u64;
        let spmv = &self.spmv;
        engine.present(runtime, &[bytes], |result| {
            let y: &mut [u8] = bytemuck::cast_slice_mut(y);
            match spmv.has_own_arrays() {
                true => parallel::copy(y, result),
                false => y.copy_from_slice(&spmv.in_rows(result)),
            }
        })?;
        Ok(true)
    }

    /// Gives memory and queues back. Returns which devices were lost.
    fn close(mut self, runtime: &mut dyn Runtime) -> Vec<usize> {
        let Some(engine) = self.engine.take() else {
            return Vec::new();
        };
        let lost = engine.losses().iter().map(|loss| loss.device).collect();
        engine.close(runtime);
        lost
    }
}

fn shares(step: &StepRecord) -> Vec<f64> {
    let all: u64 = step.devices.iter().map(|device| device.units).sum();
    let share = |units: u64| units as f64 / all.max(1) as f64;
    step.devices
        .iter()
        .map(|device| share(device.units))
        .collect()
}

impl Session {
    /// The product `y = A x` on all devices. The next product with the same matrix finds it on
    /// the devices, with the shares that were learned.
    ///
    /// # Errors
    /// When the vector has not as many numbers as the matrix has columns, when a device has too
    /// little memory, and when all devices are lost.
    pub fn spmv(&mut self, matrix: &SparseMatrix, x: &[f64]) -> Result<Vec<f64>, Error> {
        let mut y = vec![0.0; matrix.rows()];
        self.spmv_into(matrix, x, &mut y)?;
        Ok(y)
    }

    /// The same product, written to `y`, which has a number a row. After an error `y` has
    /// numbers without meaning.
    ///
    /// # Errors
    /// As [`Self::spmv`].
    pub fn spmv_into(
        &mut self,
        matrix: &SparseMatrix,
        x: &[f64],
        y: &mut [f64],
    ) -> Result<(), Error> {
        for (name, numbers, what, wanted) in [
            ("x", x.len(), "columns", matrix.columns()),
            ("y", y.len(), "rows", matrix.rows()),
        ] {
            if numbers != wanted {
                return Err(Error::Arguments(format!(
                    "{name} has {numbers} numbers, and the matrix {wanted} {what}; a vector has \
                     as many"
                )));
            }
        }
        let _running = self.running()?;
        let is_open = (self.product.as_ref()).is_some_and(|product| product.is_of(matrix));
        let mut lost = vec![false; self.devices().len()];
        if !is_open {
            self.open_product(matrix, &lost)?;
        }
        loop {
            let runtime = self.devices.runtime();
            let Some(product) = &mut self.product else {
                return Err(Error::Stopped);
            };
            match product.multiply(runtime, x, y) {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(error) => {
                    self.close_product();
                    return Err(error.into());
                }
            }
            // A device was lost: the others begin anew without it.
            let before = lost.clone();
            for device in self.close_product() {
                lost[device] = true;
            }
            if lost == before {
                return Err(CorunError::Interrupted.into());
            }
            self.open_product(matrix, &lost)?;
        }
    }

    /// The fraction of the last product of [`Self::spmv`] that each device computed; empty
    /// if the matrix is not on the devices any more.
    pub fn spmv_shares(&self) -> &[f64] {
        (self.product.as_ref()).map_or(&[], |product| &product.shares)
    }

    fn open_product(&mut self, matrix: &SparseMatrix, lost: &[bool]) -> Result<(), Error> {
        let of_matrix = spmv::Options {
            // In the matrix's order, so that nothing is copied.
            irregular: 0.0,
            ..spmv::Options::default()
        };
        let spmv = Arc::new(Spmv::new("matrix", Arc::clone(&matrix.0), of_matrix)?);
        let work = Work::Product(Arc::clone(&spmv));
        let mut divided = Divided {
            model: self.model(),
            gpu_memory: self.gpu_memory,
            ..Divided::new(work, Supersteps::new(u32::MAX, 1), self.sharing.clone())
        };
        let (make, stream) = self.division(&mut divided)?;
        let options = Options {
            gpu_memory: self.gpu_memory,
            stream,
            ..Options::of_steps(u32::MAX)
        };
        let runtime = self.runtime()?;
        self.product = Some(OpenProduct::open(runtime, spmv, lost, (&make, &options))?);
        Ok(())
    }

    /// Takes the matrix off the devices. Returns which of them were lost.
    pub(super) fn close_product(&mut self) -> Vec<usize> {
        let Some(product) = self.product.take() else {
            return Vec::new();
        };
        if self.check().is_err() {
            // The devices may still use it.
            std::mem::forget(product);
            return Vec::new();
        }
        product.close(self.devices.runtime())
    }
}
