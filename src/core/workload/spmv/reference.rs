//! The sequential reference of a matrix-vector product, and the allowed difference of
//! a result. It computes in double precision and in the matrix's order, and shares no
//! code with the codelets.

use crate::codelet::Precision;
use crate::matrix::Csr;
use crate::verify::{Compared, Rounding, compensated};

/// The allowed error of a row of `length` products, relative to the sum of the
/// products' magnitudes.
///
/// Double precision has the project's own bound. Single precision has the bound for
/// any order of summation (Higham, "Accuracy and Stability of Numerical Algorithms",
/// section 3.1), plus the roundings of the products and of the result.
fn allowed(precision: Precision, length: u64) -> f64 {
    precision.choose((length + 3) as f64 * f64::from(f32::EPSILON), 1e-12)
}

/// A value, rounded to the precision.
fn rounded(precision: Precision, value: f64) -> f64 {
    precision.choose(f64::from(value as f32), value)
}

/// The allowed error of a row: of its products, whose magnitudes sum to `magnitude`, what each
/// of them and the result may lose near zero, and `error` of the vector. Where a sum of finite
/// numbers may overflow, any result is allowed. A sum that is not finite must be the same.
fn of_sum(precision: Precision, length: u64, magnitude: f64, error: f64) -> f64 {
    let Rounding { least, most, .. } = precision.into();
    if !magnitude.is_finite() {
        return 0.0;
    }
    let error = error + allowed(precision, length) * magnitude + (length + 1) as f64 * least;
    match magnitude + error > most {
        true => f64::INFINITY,
        false => error,
    }
}

/// A vector, and the allowed error of each of its numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Expected {
    pub values: Vec<f64>,
    pub errors: Vec<f64>,
}

/// `y = A x`.
pub fn product(matrix: &Csr, x: &[f64], precision: Precision) -> Expected {
    let exact = Expected {
        values: x.to_vec(),
        errors: vec![0.0; x.len()],
    };
    times(matrix, &exact, 1.0, precision)
}

/// `steps` times `x = A x / |A x|`, and the last `|A x|`; `None` if that is 0 or not
/// finite, since such an `x` has no direction.
pub fn iterate(
    matrix: &Csr,
    x: &[f64],
    steps: u32,
    precision: Precision,
) -> (Expected, Option<f64>) {
    let mut present = Expected {
        values: x.to_vec(),
        errors: vec![0.0; x.len()],
    };
    let mut scale = scale_of(norm(&present.values));
    for _ in 0..steps {
        present = times(matrix, &present, scale, precision);
        scale = scale_of(norm(&present.values));
    }
    let estimate = norm(&present.values);
    let drift = norm(&present.errors) * scale;
    for (value, error) in present.values.iter_mut().zip(&mut present.errors) {
        *value *= scale;
        *error = *error * scale + value.abs() * (drift + allowed(precision, 0));
    }
    (
        present,
        (estimate > 0.0 && estimate.is_finite()).then_some(estimate),
    )
}

/// The factor that gives a vector of this norm the length 1; 1 if there is no such
/// factor.
pub fn scale_of(norm: f64) -> f64 {
    match norm > 0.0 && norm.is_finite() {
        true => 1.0 / norm,
        false => 1.0,
    }
}

/// Gives a vector the length 1, if it has a direction.
pub fn normalise(values: &mut [f64]) {
    let scale = scale_of(norm(values));
    values.iter_mut().for_each(|value| *value *= scale);
}

fn norm(values: &[f64]) -> f64 {
    values.iter().map(|v| v * v).sum::<f64>().sqrt()
}

/// `scale * A x`. The scale counts as exact: its error changes only the length of the
/// following vectors, and the last division removes that.
fn times(matrix: &Csr, x: &Expected, scale: f64, precision: Precision) -> Expected {
    let mut result = Expected {
        values: Vec::with_capacity(matrix.rows() as usize),
        errors: Vec::with_capacity(matrix.rows() as usize),
    };
    for row in 0..matrix.rows() {
        let (columns, values) = matrix.row(row);
        let (mut sum, mut magnitude, mut error) = (0.0, 0.0, 0.0);
        for (column, value) in columns.iter().zip(values) {
            let (value, column) = (rounded(precision, *value), *column as usize);
            sum += value * x.values[column];
            magnitude += (value * x.values[column]).abs();
            error += value.abs() * x.errors[column];
        }
        let least = Rounding::from(precision).least;
        let allowed = of_sum(precision, columns.len() as u64, magnitude, error);
        result.values.push(scale * sum);
        result.errors.push(scale * allowed + least);
    }
    result
}

/// Compares a result with the expected vector. NaN and infinite values must be equal, unless
/// any are allowed, which are not compared.
pub fn compare(result: impl Iterator<Item = f64>, expected: &Expected) -> Compared {
    let (mut largest, mut right, mut count) = (0.0f64, true, 0);
    let (mut numbers, mut not_finite) = (0, 0);
    let pairs = expected.values.iter().zip(&expected.errors);
    for (found, (value, error)) in result.zip(pairs) {
        count += 1;
        not_finite += u64::from(!found.is_finite());
        if !error.is_finite() {
            continue;
        }
        numbers += 1;
        if !value.is_finite() || !found.is_finite() {
            let same = (value.is_nan() && found.is_nan()) || *value == found;
            if !same {
                (largest, right) = (f64::NAN, false);
            }
            continue;
        }
        let difference = (found - value).abs();
        right &= difference <= *error;
        // `f64::max` would discard an earlier NaN.
        if difference > largest {
            largest = difference;
        }
    }
    Compared {
        error: largest,
        right: right && count == expected.values.len(),
        numbers,
        not_finite,
    }
}

/// `steps` steps from equal ranks. `links` has a row for each vertex, with the vertices that
/// link to it and the part of their ranks that they give; `is_dangling` tells vertices
/// without links. Sums over all vertices take at most `additions` one after the other.
pub(crate) fn ranks(
    links: &Csr,
    is_dangling: &[bool],
    (damping, steps): (f64, u64),
    (precision, additions): (Precision, f64),
) -> Expected {
    let count = is_dangling.len() as f64;
    // Twice the unit roundoff, so that the reference's own rounding counts, too.
    let rounding = precision.choose(f64::from(f32::EPSILON), 2.0 * f64::EPSILON);
    let least = Rounding::from(precision).least;
    let mut ranks = Expected {
        values: vec![1.0 / count; is_dangling.len()],
        errors: vec![rounding / count; is_dangling.len()],
    };
    for _ in 0..steps {
        let dangling = |of: &[f64]| {
            let of = of.iter().zip(is_dangling);
            compensated(of.map(|(number, is)| if *is { *number } else { 0.0 }))
        };
        let (loose, loose_error) = (dangling(&ranks.values), dangling(&ranks.errors));
        // Higham, Accuracy and Stability of Numerical Algorithms, section 4.2.
        let loose_error = loose_error + rounding * additions * loose;
        let mut next = Expected {
            values: Vec::with_capacity(is_dangling.len()),
            errors: Vec::with_capacity(is_dangling.len()),
        };
        for vertex in 0..links.rows() {
            let (from, parts) = links.row(vertex);
            let (mut sum, mut error) = (0.0, 0.0);
            for (from, part) in from.iter().zip(parts) {
                sum += part * ranks.values[*from as usize];
                error += part * ranks.errors[*from as usize];
            }
            let value = damping * sum + (1.0 - damping + damping * loose) / count;
            // The products, the parts themselves, and the few operations after the sum.
            let terms = from.len() as f64 + 8.0;
            next.values.push(value);
            next.errors.push(
                damping * (error + loose_error / count) + rounding * terms * value + terms * least,
            );
        }
        ranks = next;
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(rows: u32, columns: u32, entries: &[&[(u32, f64)]]) -> Csr {
        let mut starts = vec![0];
        let (mut of, mut values) = (Vec::new(), Vec::new());
        for row in entries {
            of.extend(row.iter().map(|(column, _)| *column));
            values.extend(row.iter().map(|(_, value)| *value));
            starts.push(of.len() as u64);
        }
        Csr::new(rows, columns, starts, of, values).unwrap()
    }

    #[test]
    fn a_product_equals_a_manual_computation() {
        let a = matrix(3, 2, &[&[(0, 2.0), (1, -1.0)], &[], &[(1, 0.5)]]);
        let y = product(&a, &[3.0, 4.0], Precision::F64);
        assert_eq!(y.values, [2.0, 0.0, 2.0]);
        let least = f64::MIN_POSITIVE;
        assert_eq!(y.errors, [1e-11, 2.0 * least, 2e-12]);
        let same = compare([2.0, 0.0, 2.0].into_iter(), &y);
        assert_eq!((same.error, same.right, same.numbers), (0.0, true, 3));
        assert!(compare([2.0 + 9e-12, 0.0, 2.0].into_iter(), &y).right);
        assert!(!compare([2.0 + 2e-11, 0.0, 2.0].into_iter(), &y).right);
        assert!(!compare([2.0, 1e-300, 2.0].into_iter(), &y).right);
        assert!(!compare([2.0, 0.0].into_iter(), &y).right);
        let none = compare([2.0, f64::NAN, 2.0].into_iter(), &y);
        assert!(none.error.is_nan() && none.not_finite == 1);
        assert!(compare([2.0, f64::NAN, 9.0].into_iter(), &y).error.is_nan());
    }

    #[test]
    fn nan_and_infinite_values_must_be_in_the_same_rows() {
        let inf = f64::INFINITY;
        let a = matrix(3, 2, &[&[(0, inf)], &[(0, 0.0)], &[(1, f64::NAN)]]);
        let y = product(&a, &[1.0, 1.0], Precision::F64);
        let right = |found: [f64; 3]| compare(found.into_iter(), &y).right;
        assert!(right([inf, 0.0, f64::NAN]));
        assert!(!right([-inf, 0.0, f64::NAN]));
        assert!(!right([inf, f64::NAN, f64::NAN]));
        assert!(!right([inf, 0.0, inf]));
    }

    #[test]
    fn the_iteration_finds_the_largest_eigenvalue() {
        let a = matrix(2, 2, &[&[(0, 2.0), (1, 1.0)], &[(0, 1.0), (1, 2.0)]]);
        let (x, estimate) = iterate(&a, &[1.0, 0.0], 40, Precision::F64);
        assert!((estimate.unwrap() - 3.0).abs() < 1e-12);
        assert!((x.values[0] - 0.5f64.sqrt()).abs() < 1e-12);
        assert!(x.errors.iter().all(|error| *error < 1e-9));
        let (_, none) = iterate(&matrix(1, 1, &[&[]]), &[1.0], 3, Precision::F64);
        assert_eq!(none, None);
    }

    /// A vertex that all others link to, and that links to none.
    #[test]
    fn a_star_has_the_ranks_of_a_manual_computation() {
        let links = Csr::new(3, 3, vec![0, 0, 0, 2], vec![0, 1], vec![1.0, 1.0]).expect("a matrix");
        let found = ranks(
            &links,
            &[false, false, true],
            (0.5, 200),
            (Precision::F64, 3.0),
        );
        // a = 1/6 + c/6, c = 1/6 + c/6 + (a + a)/2.
        let (a, c) = (1.0 / 4.0, 1.0 / 2.0);
        for (value, right) in found.values.iter().zip([a, a, c]) {
            assert!((value - right).abs() < 1e-14, "{value} {right}");
        }
        assert!(
            found
                .errors
                .iter()
                .all(|error| *error > 0.0 && *error < 1e-12)
        );
    }
}
