//! The residual of an LU factorisation with exchanged rows, and its growth.
//!
//! Two things are compared, both with random vectors ([`super::product`]): each row of
//! `P A - L U` with what rounding allows where L and U are what they are, which finds
//! numbers that are wrong; and LAPACK's ratio `|P A - L U| / (n |A| u)`, which finds a
//! factorisation that is not stable, since it compares with the given matrix. The norm of a
//! row of the residual is estimated as `sqrt(n)` times its Euclidean norm, which is at least
//! the sum of its magnitudes.
//!
//! Source: the test `dget01` of LAPACK (Anderson et al., "LAPACK Users' Guide", 1999), in the
//! maximum norm. Growth is as in Higham, "Accuracy and Stability of Numerical Algorithms",
//! section 9.3, of the final U.

use std::cell::RefCell;
use std::convert::Infallible;
use std::ops::Range;

use super::checked::{Checked, FactorFigures};
use super::product::{
    GROUPS, MEAN_SQUARE, Matrix, MatrixPart, Product, ProductSums, Source, VECTORS, greatest,
    weight,
};
use super::{PIECE, Rounding};

/// The greatest ratio of a stable factorisation.
const MOST: f64 = 10.0;

/// Gives some rows of a matrix.
pub type Rows<'a> = &'a mut dyn FnMut(Range<u64>) -> Vec<f64>;

/// Checks the factors of a matrix with `size` rows and columns. `lu` gives rows of the
/// factors, with U on the diagonal and L, whose diagonal is 1, below it; `given` gives rows
/// of the given matrix, in the order after the exchanges.
pub fn check(size: u64, rounding: Rounding, seed: u64, lu: Rows, given: Rows) -> Checked {
    let product = Product {
        rows: size,
        columns: size,
        depth: size,
        group: size.div_ceil(GROUPS as u64),
        rounding,
        seed,
    };
    let (of_a, of_u) = <(RefCell<Greatest>, RefCell<Greatest>)>::default();
    let mut source = |matrix, act: &mut dyn FnMut(MatrixPart)| {
        for rows in bands(size) {
            let mut numbers = match matrix {
                Matrix::C => given(rows.clone()),
                Matrix::A | Matrix::B => lu(rows.clone()),
            };
            for (row, numbers) in rows.clone().zip(numbers.chunks_exact_mut(size as usize)) {
                let diagonal = row as usize;
                match matrix {
                    Matrix::A => {
                        numbers[diagonal..].fill(0.0);
                        numbers[diagonal] = 1.0;
                    }
                    Matrix::B => {
                        numbers[..diagonal].fill(0.0);
                        of_u.borrow_mut().add(numbers);
                    }
                    Matrix::C => of_a.borrow_mut().add(numbers),
                }
            }
            let whole = MatrixPart {
                rows,
                columns: 0..size,
                numbers,
            };
            match matrix {
                Matrix::A => act(whole),
                Matrix::B | Matrix::C => in_groups(&whole, product.group, act),
            }
        }
        Ok::<bool, Infallible>(true)
    };
    let Ok(Some(sums)) = ProductSums::of(product, &mut source, None) else {
        unreachable!("the rows are in memory");
    };
    let n = size as f64;
    let of_row = |differences: [f64; GROUPS * VECTORS]| {
        let norm = differences
            .iter()
            .fold(0.0_f64, |norm, one| norm.hypot(*one));
        n.sqrt() * norm / (VECTORS as f64 * MEAN_SQUARE).sqrt()
    };
    let mut residual = sums.differences().map(of_row).fold(0.0, greatest);
    let allowed = n * (rounding.unit * of_a.borrow().row_sum + n * rounding.least);
    if residual / allowed > MOST {
        // The terms may be so much greater than their sums that double precision does not do.
        residual = (n / MEAN_SQUARE).sqrt() * twofold_residual(product, &mut source);
    }
    let residual = residual / allowed;
    let mut checked = sums.result(None).checked(size * size);
    let mut of_residual = Checked::default();
    of_residual.error(residual / MOST);
    if of_residual.wrong > 0 {
        // Not one of them is wrong, but all together.
        checked.wrong = size * size;
    }
    Checked {
        worst: checked.worst.max(of_residual.worst),
        factors: Some(FactorFigures {
            residual: if residual.is_nan() {
                f64::MAX
            } else {
                residual.min(f64::MAX)
            },
            growth: (of_u.borrow().number / of_a.borrow().number).clamp(0.0, f64::MAX),
        }),
        ..checked
    }
}

/// The greatest number of `P A x - L U x` for a vector x of random weights, in twice double
/// precision, less what that may lose.
fn twofold_residual(product: Product, source: &mut Source<'_, Infallible>) -> f64 {
    let size = product.rows as usize;
    let x: Vec<Twofold> = (0..product.rows)
        .map(|column| weight(product.seed, 0, column).into())
        .collect();
    // U x and the sums of the magnitudes of U's rows; then the residual and those of L U.
    let mut ux = vec![(Twofold::default(), 0.0); size];
    let mut residual = ux.clone();
    let mut each = |matrix, act: &mut dyn FnMut(usize, usize, f64)| {
        let Ok(_) = source(matrix, &mut |part: MatrixPart| {
            let columns = part.columns.start as usize..;
            let width = (part.columns.end - part.columns.start) as usize;
            let rows = (part.rows.start as usize..).zip(part.numbers.chunks_exact(width));
            for (row, numbers) in rows {
                let places = columns.clone().zip(numbers);
                places.for_each(|(column, number)| act(row, column, *number));
            }
        });
    };
    each(Matrix::B, &mut |row, column, number| {
        ux[row].0.add_product(number, x[column]);
        ux[row].1 += number.abs();
    });
    each(Matrix::C, &mut |row, column, number| {
        residual[row].0.add_product(number, x[column]);
    });
    each(Matrix::A, &mut |row, column, number| {
        residual[row].0.add_product(-number, ux[column].0);
        residual[row].1 += number.abs() * ux[column].1;
    });
    let lost = 4.0 * size as f64 * Twofold::UNIT;
    let of_rows = residual
        .iter()
        .map(|(sum, terms)| sum.value().abs() - lost * terms);
    of_rows.fold(0.0, greatest)
}

/// The greatest number of rows, and the greatest sum of a row's magnitudes.
#[derive(Default)]
struct Greatest {
    number: f64,
    row_sum: f64,
}

impl Greatest {
    fn add(&mut self, row: &[f64]) {
        let magnitudes = || row.iter().map(|number| number.abs());
        self.number = magnitudes().fold(self.number, f64::max);
        self.row_sum = self.row_sum.max(magnitudes().sum());
    }
}

/// Rows that are read at once.
fn bands(size: u64) -> impl Iterator<Item = Range<u64>> {
    let each = (16 * PIECE as u64).div_ceil(size.max(1));
    (0..size)
        .step_by(each as usize)
        .map(move |begin| begin..(begin + each).min(size))
}

/// The groups of a part's columns.
fn in_groups(whole: &MatrixPart, group: u64, act: &mut dyn FnMut(MatrixPart)) {
    let width = (whole.columns.end - whole.columns.start) as usize;
    for begin in (0..width).step_by(group as usize) {
        let end = (begin + group as usize).min(width);
        let rows = whole.numbers.chunks_exact(width);
        act(MatrixPart {
            rows: whole.rows.clone(),
            columns: begin as u64..end as u64,
            numbers: rows
                .flat_map(|row| row[begin..end].iter().copied())
                .collect(),
        });
    }
}

// Sums in twice double precision, for residuals whose terms are far greater than they.
//
// Source: T. Ogita, S. Rump and S. Oishi, "Accurate sum and dot product", SIAM J. Sci.
// Comput. 2005, algorithms 3.1 and 3.3.

/// A number as the sum of two doubles, the second of which is the rounding error of the
/// first.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Twofold {
    high: f64,
    low: f64,
}

impl Twofold {
    /// The relative error of an operation, at most.
    pub const UNIT: f64 = f64::EPSILON * f64::EPSILON;

    /// Adds `factor` times another number.
    pub fn add_product(&mut self, factor: f64, other: Self) {
        let product = factor * other.high;
        let error = factor.mul_add(other.high, -product) + factor * other.low;
        let sum = self.high + product;
        let part = sum - self.high;
        let lost = (self.high - (sum - part)) + (product - part);
        let low = self.low + lost + error;
        self.high = sum + low;
        self.low = low - (self.high - sum);
    }

    pub fn value(self) -> f64 {
        self.high
    }
}

impl From<f64> for Twofold {
    fn from(high: f64) -> Self {
        Self { high, low: 0.0 }
    }
}
