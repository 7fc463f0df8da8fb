//! The sequential page rank in double precision, with the errors that rounding may cause.

use super::reference::Expected;
use crate::codelet::Precision;
use crate::matrix::Csr;
use crate::verify::Rounding;
use crate::verify::sum::compensated;

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
    let rounding = match precision {
        Precision::F64 => 2.0 * f64::EPSILON,
        Precision::F32 => f64::from(f32::EPSILON),
    };
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
