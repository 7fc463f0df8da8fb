//! `y = A x`, the same in each step, or `x = A x / |A x|`, from one step to the next.

use std::sync::Arc;

use super::bands::Bands;
use super::{Iteration, Spaces, TOTALS, read};
use crate::cluster::space::{Block, SpaceId};
use crate::cluster::task::Computed;
use crate::codelet::Precision;
use crate::codelet::spmv::band::Affine;
use crate::codelet::sums::{Sums, totals};
use crate::matrix::Csr;
use crate::random::uniform;
use crate::verify::Checked;
use crate::verify::checked::error;
use crate::workload::cluster::samples::positions;
use crate::workload::cluster::{Check, ClusterWorkload, Figure, NewSpace};
use crate::workload::spmv::reference::{self, Expected};
use crate::workload::spmv::{Form, SpmvError};

/// A product over nodes. The numbers of the first vector are uniform in [0, 1), as on one
/// node.
#[derive(Clone)]
pub struct SpmvWorkload {
    iteration: Iteration,
    /// Whether a step's result is the next one's vector.
    iterates: bool,
    steps: u64,
    seed: u64,
    /// The squared length of the first vector.
    squares: f64,
}

impl SpmvWorkload {
    /// Cuts the matrix into bands.
    ///
    /// # Errors
    /// When the matrix has no rows or columns, or the iteration of one is asked for that is
    /// not square; and page ranks, which are
    /// [`PagerankWorkload`](super::PagerankWorkload).
    pub fn new(
        matrix: Arc<Csr>,
        form: Form,
        precision: Precision,
        steps: u64,
        seed: u64,
    ) -> Result<Self, SpmvError> {
        let (rows, columns) = (matrix.rows(), matrix.columns());
        if rows == 0 || columns == 0 {
            return Err(SpmvError::Empty { rows, columns });
        }
        let iterates = match form {
            Form::Product => false,
            Form::Iteration => true,
            Form::Ranks => return Err(SpmvError::Ranks),
        };
        if iterates && rows != columns {
            return Err(SpmvError::NotSquare { rows, columns });
        }
        let numbers = (0..columns.into()).map(|column| uniform(seed, column));
        Ok(Self {
            squares: numbers.map(|number| number * number).sum(),
            iteration: Iteration::new(Bands::of(matrix, precision), Sums::Squares),
            iterates,
            steps,
            seed,
        })
    }

    fn precision(&self) -> Precision {
        self.iteration.bands.precision()
    }

    fn matrix(&self) -> &Csr {
        self.iteration.bands.matrix()
    }

    fn compare(&self, block: &Block, bytes: &[u8], seed: u64) -> Checked {
        let found = read(bytes, self.precision());
        let x = |column| uniform(self.seed, u64::from(column));
        let mut checked = Checked::default();
        for [_, row] in positions(block, seed) {
            // Rows have 32 bits.
            let (value, error) = reference::of_row(self.matrix(), row as u32, x, self.precision());
            let place = (row - block.columns.start) as usize;
            checked.number(found[place], value, error);
        }
        checked
    }

    /// Compares the last vector with that of all steps in double precision, and with the
    /// product of the vector before it: the errors that rounding may cause grow with the
    /// steps, but those of the last step do not.
    fn compare_all(&self, last: &[u8], before: &[u8]) -> Checked {
        let precision = self.precision();
        let columns = 0..u64::from(self.matrix().columns());
        let x: Vec<f64> = columns.map(|column| uniform(self.seed, column)).collect();
        // Steps are counted in 32 bits on the command line.
        let steps = u32::try_from(self.steps).unwrap_or(u32::MAX);
        let (of_all, _) = reference::iterate(self.matrix(), &x, steps, precision);
        let before = read(before, precision);
        let (of_last, _) = reference::iterate(self.matrix(), &before, 1, precision);
        let mut found = read(last, precision);
        reference::normalise(&mut found);
        let mut checked = Checked::default();
        for (row, found) in found.into_iter().enumerate() {
            let error = |of: &Expected| error(found, of.values[row], of.errors[row]);
            checked.error(error(&of_all).max(error(&of_last)));
        }
        checked
    }
}

impl ClusterWorkload for SpmvWorkload {
    fn name(&self) -> &'static str {
        "spmv"
    }

    fn spaces(&self) -> Vec<NewSpace> {
        let seed = self.seed;
        (self.iteration).spaces(move |column| uniform(seed, column), self.squares)
    }

    /// An iteration's sums follow each product.
    fn tasks(&self) -> u64 {
        match self.iterates {
            false => self.steps,
            true => 2 * self.steps,
        }
    }

    fn task(&self, number: u64, spaces: &[SpaceId]) -> Arc<dyn Computed> {
        let spaces = Spaces::of(spaces);
        let [one, other] = spaces.vectors;
        if !self.iterates {
            return self
                .iteration
                .product(Affine::PRODUCT, spaces, [one, other]);
        }
        let vectors = match number / 2 % 2 {
            0 => [one, other],
            _ => [other, one],
        };
        let affine = Affine {
            normalises: true,
            ..Affine::PRODUCT
        };
        match number % 2 {
            0 => self.iteration.product(affine, spaces, vectors),
            _ => self.iteration.reduce(spaces, vec![vectors[1]]),
        }
    }

    fn result(&self) -> usize {
        match self.iterates {
            false => 1,
            true => (self.steps % 2) as usize,
        }
    }

    fn check(&self) -> Check<'_> {
        match self.iterates {
            false => Check::Blocks(Box::new(|block, bytes, seed| {
                self.compare(block, bytes, seed)
            })),
            true => Check::Whole(
                vec![self.result(), 1 - self.result()],
                Box::new(|spaces, _| self.compare_all(&spaces[0], &spaces[1])),
            ),
        }
    }

    fn figure(&self) -> Option<Figure> {
        let precision = self.precision();
        self.iterates.then(|| Figure {
            name: "eigenvalue",
            title: "Eigenvalue",
            space: TOTALS,
            of: Box::new(move |bytes| totals(bytes, precision)[0].sqrt()),
        })
    }
}
