//! Products and Cholesky factorisations, as tasks on tiles in host memory.

use std::sync::Arc;
use std::time::Instant;

use super::known::Tasks;
use super::matrix::check_product;
use super::run::{ArrayOptions, ArrayResult};
use super::{ArrayRun, DenseMatrix};
use crate::codelet::ProductPrecision;
use crate::engine::graph::Control;
use crate::experiment::dense::Finished;
use crate::experiment::tasks::{
    KernelSeconds, OpenTasks, PolicyChoice, TaskExperiment, TaskRun, sample,
};
use crate::graph::GraphError;
use crate::report::Workload;
use crate::report::run::dense::{Measured, report};
use crate::report::run::graph::lost;
use crate::session::{Error, Factor, Number, Run, Session};
use crate::verify::product::Verification;
use crate::workload::dense::{DenseTask, Inputs, Operation, tile_size};
use crate::workload::task_set::{Order, TaskSetError, TiledGraph};

impl Session {
    /// The product `C = A B` of dense matrices on all devices, of which none needs to hold a
    /// whole matrix. The product of matrices of `f16` or `bf16` is one of `f32`.
    ///
    /// ```
    /// use pdawl::session::{DenseMatrix, Session};
    ///
    /// # fn main() -> Result<(), pdawl::session::Error> {
    /// let mut session = Session::simulate("k40")?;
    /// let a = DenseMatrix::new(2, 3, vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?;
    /// let b = DenseMatrix::new(3, 1, vec![1.0, 0.0, -1.0])?;
    /// let c = session.matmul(&a, &b).run()?.result;
    /// assert_eq!(c.elements(), [-2.0, -2.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn matmul<'a, T: Factor>(
        &'a mut self,
        a: &'a DenseMatrix<T>,
        b: &'a DenseMatrix<T>,
    ) -> ArrayRun<'a, DenseMatrix<T::Sum>> {
        ArrayRun::new(self, move |session, options| {
            check_product(a, b)?;
            let operation = Operation::Product {
                rows: a.rows(),
                columns: b.columns(),
                depth: a.columns(),
            };
            let inputs = Inputs::given(operation, a.fill(), Some(b.fill()));
            session.tiled(operation, T::FACTORS, inputs, options)
        })
    }

    /// The factor `L` of a symmetric positive definite matrix `A = L L^T` on all devices, of
    /// which none needs to hold a whole matrix. Only the lower triangle of A is read; L has
    /// zeros above its diagonal.
    ///
    /// ```
    /// use pdawl::session::{DenseMatrix, Session};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut session = Session::simulate("k40")?;
    /// let a = DenseMatrix::new(2, 2, vec![4.0, 0.0, 2.0, 2.0])?;
    /// let l = session.cholesky(&a).run()?.result;
    /// assert_eq!(l.elements(), [2.0, 0.0, 1.0, 1.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn cholesky<'a, T: Number>(
        &'a mut self,
        a: &'a DenseMatrix<T>,
    ) -> ArrayRun<'a, DenseMatrix<T>> {
        ArrayRun::new(self, move |session, options| {
            let operation = Operation::Factorisation { rows: a.square()? };
            let inputs = Inputs::given(operation, a.fill(), None);
            session.tiled(operation, T::FACTORS, inputs, options)
        })
    }

    fn tiled<T: Number>(
        &mut self,
        operation: Operation,
        precision: ProductPrecision,
        inputs: Inputs,
        options: &ArrayOptions,
    ) -> Result<ArrayResult<DenseMatrix<T>>, Error> {
        let began = Instant::now();
        let task = DenseTask {
            operation,
            tile: self.tile(&operation, precision, options),
            precision,
            order: Order::Natural,
            seed: 0,
        };
        let tile = task.tile;
        self.check_memory(
            operation.matrix_bytes(tile, precision),
            "the tiles of the matrices",
        )?;
        let tiled = task.tiled(&Arc::new(inputs), &self.stop.0);
        let tiled = tiled.map_err(|error| match error {
            TaskSetError::Graph(GraphError::Stopped) => Error::Stopped,
            error => error.into(),
        })?;
        let known = Tasks::Tiled(task);
        let seconds = self.seconds(&known, |runtime, stop| {
            let few = Arc::new(sample(&task.set()).graph()?);
            Ok(KernelSeconds::measure(runtime, &few, stop)?)
        })?;
        let experiment = TaskExperiment::new(Arc::new(tiled.graph.clone()));
        let runtime = self.devices.runtime();
        let mut open = experiment.open(runtime, &seconds, options.gpu_memory)?;
        let setup_seconds = began.elapsed().as_secs_f64();
        let ran = self.run_tasks(&task, &tiled, &mut open, options);
        open.release(self.devices.runtime());
        let (last, verification, elements) = ran?;
        self.keep_seconds(known, seconds);
        self.devices.end();
        let mut context = self.context(Workload::of_dense(&task, experiment.tasks(), Vec::new()));
        context.policy = options.policy.to_string();
        let outcome = &last.outcome;
        let measured = Measured {
            window: None,
            gpu_memory_bytes: options.gpu_memory,
            least_seconds: None,
            setup_seconds,
            runs: vec![outcome.seconds],
            lost: outcome.losses.iter().map(|of| lost(outcome, of)).collect(),
        };
        let verification = verification.as_ref();
        let report = report(&last, &tiled.graph, context, measured, verification);
        let (rows, columns) = operation.result_size();
        Ok(ArrayResult {
            result: DenseMatrix::new(rows, columns, elements)?,
            run: Run::new(report, last.outcome.trace),
        })
    }

    /// The length of tiles: as asked, or one that suits the devices.
    fn tile(
        &self,
        operation: &Operation,
        precision: ProductPrecision,
        options: &ArrayOptions,
    ) -> u32 {
        let most = options.gpu_memory.unwrap_or(u64::MAX);
        let own = self.devices().iter();
        let own = own.filter(|device| !device.shares_host_memory);
        let own = own.map(|device| device.memory.min(most)).min();
        let suits = || tile_size::choose(operation, precision, self.devices().len(), own);
        let tile = options.tile.unwrap_or_else(suits);
        tile.min(operation.longest())
    }

    /// Runs the tasks, and takes the result.
    fn run_tasks<T: Number>(
        &mut self,
        task: &DenseTask,
        tiled: &TiledGraph,
        open: &mut OpenTasks,
        options: &ArrayOptions,
    ) -> Result<(TaskRun, Option<Verification>, Vec<T>), Error> {
        let stop = self.stop.clone();
        let runtime = self.devices.runtime();
        let choice = PolicyChoice {
            policy: options.policy,
            window: None,
            seed: 0,
        };
        let mut control = Control {
            stop: &stop.0,
            progress: &mut |_, _| {},
        };
        let run = open.run(runtime, &choice, options.traced, &mut control)?;
        if run.outcome.interrupted {
            return Err(Error::Stopped);
        }
        let mut finished = Finished {
            task,
            tiled,
            prepared: open.prepared(),
            runtime,
        };
        if let Some(why) = finished.no_factor()? {
            return Err(Error::Arguments(why.to_string()));
        }
        let verification = match options.verify {
            true => Some(finished.verify(&stop.0)?.ok_or(Error::Stopped)?),
            false => None,
        };
        let (rows, columns) = task.operation.result_size();
        let mut elements = vec![T::zeroed(); rows as usize * columns as usize];
        finished.copy_rows(bytemuck::cast_slice_mut(&mut elements))?;
        Ok((run, verification, elements))
    }
}
