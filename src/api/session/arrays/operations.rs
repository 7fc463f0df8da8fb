//! The operations, on one machine.

use bytemuck::Pod;

use super::alone::OperationOptions;
use super::matrix::{check_product, precision};
use super::run::ArrayResult;
use super::{ArrayRun, Complex, DenseMatrix};
use crate::engine::cluster::{ClusterError, Sink};
use crate::matrix::Shared;
use crate::session::elements::Elements;
use crate::session::{Error, Factor, Number, Run, Session};
use crate::workload::cluster::{
    self, Cholesky, FftWorkload, LuWorkload, Operation, OperationError, Placement, Product, Sorted,
    of_memory,
};

/// Most rows and columns of what is factored with exchanges, or transformed.
const MOST: u32 = 1 << 20;

/// An LU factorisation with partial pivoting, `P A = L U`: L below the diagonal, whose own is
/// 1, and U from the diagonal on.
#[derive(Clone, Debug, PartialEq)]
pub struct Factors<T> {
    pub lu: DenseMatrix<T>,
    /// Row `i` was exchanged with row `pivots[i]`, for ascending `i`, as in LAPACK's `getrf`
    /// but counted from 0.
    pub pivots: Vec<i32>,
}

/// The product of matrices.
pub fn product<T: Factor>(a: &DenseMatrix<T>, b: &DenseMatrix<T>) -> Result<Operation, Error> {
    check_product(a, b)?;
    let product = Product {
        rows: a.rows().into(),
        columns: b.columns().into(),
        depth: a.columns().into(),
        precision: T::FACTORS,
        a: a.fill(),
        b: b.fill(),
    };
    Ok(product.operation(Placement::Grid))
}

/// The factors of a square matrix.
pub fn lu<T: Number>(matrix: &DenseMatrix<T>) -> Result<Operation, Error> {
    let size = within(matrix.square()?)?.into();
    let placement = Placement::ColumnCyclic;
    Ok(LuWorkload::operation(
        size,
        precision(matrix),
        placement,
        matrix.fill(),
    ))
}

/// The transform of a matrix.
pub fn fft2<T: Number>(matrix: &DenseMatrix<Complex<T>>) -> Result<Operation, Error> {
    let transform = FftWorkload {
        rows: within(matrix.rows())?.into(),
        columns: within(matrix.columns())?.into(),
        precision: T::PRECISION,
        placement: Placement::Rows,
        matrix: matrix.fill(),
    };
    Ok(transform.operation())
}

/// The numbers of each row in ascending order.
pub fn sort<T: Sorted>(rows: u64, numbers: Shared<T>) -> Result<Operation, Error> {
    let count = numbers.len() as u64;
    if count == 0 {
        let why = "there are no numbers to sort; give at least one";
        return Err(Error::Arguments(why.to_owned()));
    }
    if rows == 0 || !count.is_multiple_of(rows) {
        let why = format!("{count} numbers are not {rows} rows of as many each");
        return Err(Error::Arguments(why));
    }
    let columns = count / rows;
    Ok(cluster::sort::<T>(
        rows,
        columns,
        of_memory(numbers, columns),
    ))
}

fn within(length: u32) -> Result<u32, Error> {
    match length <= MOST {
        true => Ok(length),
        false => Err(Error::Arguments(format!(
            "the matrix has {length} rows or columns; at most {MOST} are allowed"
        ))),
    }
}

impl From<OperationError> for Error {
    fn from(error: OperationError) -> Self {
        match error {
            OperationError::Input(error) => ClusterError::from(error).into(),
            OperationError::Tasks { tile, error } => Self::Tiles { tile, error },
            error @ OperationError::Singles(_) => Self::Arguments(error.to_string()),
        }
    }
}

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
            let (rows, columns) = (a.rows(), b.columns());
            session.matrix((rows, columns), &product(a, b)?, options)
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
            let rows = a.square()?;
            let operation = Cholesky {
                size: rows.into(),
                precision: precision(a),
                matrix: a.fill(),
            };
            session.matrix((rows, rows), &operation.operation(), options)
        })
    }

    pub fn lu<'a, T: Number>(&'a mut self, matrix: &'a DenseMatrix<T>) -> ArrayRun<'a, Factors<T>> {
        ArrayRun::new(self, move |session, options| {
            let operation = lu(matrix)?;
            let rows = matrix.rows() as usize;
            let mut lu = Elements::<T>::new(session.arrays_on, rows * rows)?;
            let mut pivots = Elements::<i32>::new(session.arrays_on, rows)?;
            let run = session.compute(&operation, [&mut lu, &mut pivots], options)?;
            let result = Factors {
                lu: DenseMatrix::new(matrix.rows(), matrix.rows(), lu.take())?,
                pivots: pivots.take().into_vec(),
            };
            Ok(ArrayResult { result, run })
        })
    }

    /// The Fourier transform of a matrix along its rows and columns on all devices, without a
    /// factor, as NumPy's `fft2`.
    ///
    /// ```
    /// use pdawl::session::{DenseMatrix, Session};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut session = Session::simulate("k40")?;
    /// let ones = DenseMatrix::new(2, 2, vec![[1.0f64, 0.0]; 4])?;
    /// let spectrum = session.fft2(&ones).run()?.result;
    /// assert_eq!(spectrum.elements(), [[4.0, 0.0], [0.0; 2], [0.0; 2], [0.0; 2]]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn fft2<'a, T: Number>(
        &'a mut self,
        matrix: &'a DenseMatrix<Complex<T>>,
    ) -> ArrayRun<'a, DenseMatrix<Complex<T>>> {
        ArrayRun::new(self, move |session, options| {
            let size = (matrix.rows(), matrix.columns());
            session.matrix(size, &fft2(matrix)?, options)
        })
    }

    /// The numbers in ascending order, sorted by the host's cores; -0 comes before 0, and what
    /// is no number last. One machine sorts in one subtask, whatever the tile.
    ///
    /// ```
    /// use pdawl::session::Session;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let sorted = Session::open_devices("host")?.sort(vec![3.0, -1.0, 2.0]).run()?.result;
    /// assert_eq!(sorted, [-1.0, 2.0, 3.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn sort<T: Sorted>(&mut self, numbers: impl Into<Shared<T>>) -> ArrayRun<'_, Vec<T>> {
        self.sort_rows(1, numbers)
    }

    /// The same of each of so many rows of numbers, which lie one after the other.
    pub fn sort_rows<T: Sorted>(
        &mut self,
        rows: u64,
        numbers: impl Into<Shared<T>>,
    ) -> ArrayRun<'_, Vec<T>> {
        let numbers = numbers.into();
        ArrayRun::new(self, move |session, options| {
            let mut found = Elements::<T>::new(session.arrays_on, numbers.len())?;
            let run = session.compute(&sort(rows, numbers)?, [&mut found], options)?;
            Ok(ArrayResult {
                result: found.take().into_vec(),
                run,
            })
        })
    }

    /// Runs an operation whose result is a matrix of this size.
    fn matrix<T: Pod + Send + Sync>(
        &mut self,
        (rows, columns): (u32, u32),
        operation: &Operation,
        options: OperationOptions,
    ) -> Result<ArrayResult<DenseMatrix<T>>, Error> {
        let mut found = Elements::<T>::new(self.arrays_on, rows as usize * columns as usize)?;
        let run = self.compute(operation, [&mut found], options)?;
        let result = DenseMatrix::new(rows, columns, found.take())?;
        Ok(ArrayResult { result, run })
    }

    /// Runs an operation, of which `sinks` take the outputs.
    fn compute<const OUTPUTS: usize>(
        &mut self,
        operation: &Operation,
        sinks: [&mut dyn Sink; OUTPUTS],
        options: OperationOptions,
    ) -> Result<Run, Error> {
        let outputs = operation.outputs.iter().copied().zip(sinks);
        let outputs = outputs.map(|(space, sink)| (space, sink as &mut dyn Sink));
        let stop = self.stop.clone();
        let outputs = outputs.collect();
        let run = self.operate(operation, outputs, options, &stop.0, &mut |_, _, _| {})?;
        match run.interrupted {
            true => Err(Error::Stopped),
            false => Ok(run),
        }
    }
}

/// A run that was stopped has no result, nor has one of a matrix without factors.
pub fn stopped(error: ClusterError) -> Error {
    match error {
        ClusterError::Interrupted => Error::Stopped,
        ClusterError::Refused(why) => Error::NoResult(why),
        error => error.into(),
    }
}
