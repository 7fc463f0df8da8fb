//! Operations over the nodes of a cluster.

use std::sync::{Arc, OnceLock};

use bytemuck::Pod;

use super::operations;
use super::{Complex, DenseMatrix, Factors};
use crate::cluster::wire::agreement::Agreement;
use crate::engine::cluster::ClusterError;
use crate::engine::cluster::simulate::taking_part;
use crate::machine::{Host, RuntimeKind};
use crate::matrix::Shared;
use crate::report::run::nodes::{Asked, report};
use crate::report::{Context, Machine, Workload};
use crate::session::nodes::{Job, Nodes};
use crate::session::{ArrayResult, Error, Number, Run};
use crate::workload::cluster::{Fit, Operation, OperationError, Place, Placed, Sorted};

/// An operation over nodes that is about to run.
///
/// ```
/// use pdawl::session::{ClusterOptions, DenseMatrix, Nodes};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let options = ClusterOptions { devices: Some("host:1".into()), ..ClusterOptions::default() };
/// let mut nodes = Nodes::in_threads(2, options)?;
/// let (a, b) = (DenseMatrix::new(1, 2, vec![1.0, 2.0])?, DenseMatrix::new(2, 1, vec![3.0, 4.0])?);
/// if let Some(computed) = nodes.matmul(&a, &b).run()? {
///     assert_eq!(computed.result.elements(), [11.0]);
/// }
/// nodes.leave()?;
/// # Ok(())
/// # }
/// ```
pub struct NodeRun<'a, R> {
    nodes: &'a mut Nodes,
    /// Its name.
    operation: &'static str,
    job: Result<Operation, Error>,
    tile: Option<u32>,
    verify: bool,
    take: Box<Take<'a, R>>,
}

/// Makes a result of the bytes of the spaces that it has.
type Take<'a, R> = dyn FnOnce(Vec<Vec<u8>>) -> Result<R, Error> + 'a;

impl Nodes {
    /// The product `C = A B` of matrices of singles.
    pub fn matmul<'a>(
        &'a mut self,
        a: &DenseMatrix<f32>,
        b: &DenseMatrix<f32>,
    ) -> NodeRun<'a, DenseMatrix<f32>> {
        let job = operations::product(a, b);
        let (rows, columns) = (a.rows(), b.columns());
        self.operation("matmul", job, move |spaces| {
            matrix(rows, columns, spaces.first())
        })
    }

    /// The factors of a square matrix, with partial pivoting.
    pub fn lu<'a, T: Number>(&'a mut self, matrix_of: &DenseMatrix<T>) -> NodeRun<'a, Factors<T>> {
        let job = operations::lu(matrix_of);
        let rows = matrix_of.rows();
        self.operation("lu", job, move |spaces| {
            let pivots = spaces
                .get(1)
                .map(|bytes| bytemuck::pod_collect_to_vec(bytes));
            Ok(Factors {
                lu: matrix(rows, rows, spaces.first())?,
                pivots: pivots.unwrap_or_default(),
            })
        })
    }

    /// The Fourier transform of a matrix along its rows and columns, without a factor.
    pub fn fft2<'a, T: Number>(
        &'a mut self,
        matrix_of: &DenseMatrix<Complex<T>>,
    ) -> NodeRun<'a, DenseMatrix<Complex<T>>> {
        let job = operations::fft2(matrix_of);
        let (rows, columns) = (matrix_of.rows(), matrix_of.columns());
        self.operation("fft2", job, move |spaces| {
            matrix(rows, columns, spaces.first())
        })
    }

    /// The numbers in ascending order, sorted by hosts, which are all that the nodes have
    /// ([`ClusterOptions::devices`](crate::session::ClusterOptions::devices)).
    pub fn sort<T: Sorted>(&mut self, numbers: impl Into<Shared<T>>) -> NodeRun<'_, Vec<T>> {
        let mut devices = self.devices().iter();
        let job = match devices.find(|device| device.runtime != RuntimeKind::Host) {
            Some(other) => Err(Error::Arguments(format!(
                "{} does not sort, only hosts do; join with `host` as the devices",
                other.name
            ))),
            None => operations::sort::<T>(1, numbers.into()),
        };
        self.operation("sort", job, |spaces| {
            let sorted = spaces
                .first()
                .map(|bytes| bytemuck::pod_collect_to_vec(bytes));
            Ok(sorted.unwrap_or_default())
        })
    }

    fn operation<'a, R>(
        &'a mut self,
        operation: &'static str,
        job: Result<Operation, Error>,
        take: impl FnOnce(Vec<Vec<u8>>) -> Result<R, Error> + 'a,
    ) -> NodeRun<'a, R> {
        NodeRun {
            nodes: self,
            operation,
            job,
            tile: None,
            verify: false,
            take: Box::new(take),
        }
    }
}

fn matrix<T: Pod + Send + Sync>(
    rows: u32,
    columns: u32,
    bytes: Option<&Vec<u8>>,
) -> Result<DenseMatrix<T>, Error> {
    let elements: Vec<T> = bytes.map_or_else(Vec::new, |bytes| bytemuck::pod_collect_to_vec(bytes));
    DenseMatrix::new(rows, columns, elements)
}

impl<R> NodeRun<'_, R> {
    /// Blocks of so many rows and columns; by default those that suit the nodes.
    pub fn tile(self, rows: u32) -> Self {
        Self {
            tile: Some(rows),
            ..self
        }
    }

    /// Compares the result with a reference; a wrong one is [`Error::Wrong`].
    pub fn verify(self) -> Self {
        Self {
            verify: true,
            ..self
        }
    }

    /// Runs it. The first node gets the result with a report, the others `None`.
    ///
    /// # Errors
    /// What is wrong with the arguments, a matrix that has no such factors, lost nodes, and
    /// [`ClusterOptions::stop`](crate::session::ClusterOptions::stop). The nodes can run nothing more then.
    pub fn run(self) -> Result<Option<ArrayResult<R>>, Error> {
        let Self {
            nodes,
            operation,
            job,
            tile,
            verify,
            take,
        } = self;
        let job = Arc::new(job?);
        if tile == Some(0) {
            let why = "a block has at least 1 row, and 0 are asked for";
            return Err(Error::Arguments(why.to_owned()));
        }
        let mut alike = Agreement::default();
        alike.add("the operation", operation);
        alike.add("the size", &job.title);
        let blocks = tile.map_or_else(|| "the usual one".to_owned(), |rows| rows.to_string());
        alike.add("the tile", blocks);
        alike.add("verify", verify.to_string());
        let made = Arc::clone(&job);
        let ran: Arc<OnceLock<(Placed, Option<String>)>> = Arc::default();
        let running = Arc::clone(&ran);
        let spread = nodes.spread();
        let (outcome, brought) = nodes.run_job(&Job {
            name: job.title.clone(),
            alike,
            outputs: job.outputs.clone(),
            verify,
            make: Arc::new(move |nodes, network| {
                let tile = tile.map(u64::from);
                let placed = taking_part(&made, tile, (nodes, network), spread).and_then(|part| {
                    let fit = Fit::new(&nodes[..part.count], network);
                    Ok((made.at(Place::Nodes(fit), tile)?, part))
                });
                match placed {
                    Ok((placed, part)) => {
                        // Nodes in threads make the same one.
                        let _ = running.set((placed.clone(), part.note));
                        Ok(((placed.workload, placed.tile), part.count))
                    }
                    Err(OperationError::Input(error)) => Err(error.into()),
                    Err(error) => Err(ClusterError::Refused(error.to_string())),
                }
            }),
        })?;
        let (Some(outcome), Some((placed, of_part))) = (outcome, ran.get()) else {
            return Ok(None);
        };
        let name = outcome.nodes.first().map(|node| node.name.clone());
        let devices = nodes.devices().to_vec();
        let notes = outcome.nodes.iter().flat_map(|node| node.notes.clone());
        let notes = of_part.iter().cloned().chain(notes);
        let context = Context {
            workload: Workload::of_tasks(&*placed.workload, job.size(placed), outcome.tasks),
            machine: Machine::real(name.unwrap_or_default(), Host::detect(), devices),
            policy: spread.to_string(),
            notes: notes.collect(),
        };
        let run = Run::new(
            report(&outcome, context, Asked::default()),
            Default::default(),
        );
        let spaces = brought.into_iter().map(|(_, bytes)| bytes).collect();
        let result = match run.is_wrong() {
            true => {
                return Err(Error::Wrong(
                    run.verification
                        .as_ref()
                        .and_then(|of| of.wrong)
                        .unwrap_or(1),
                ));
            }
            false => take(spaces)?,
        };
        Ok(Some(ArrayResult { result, run }))
    }
}
