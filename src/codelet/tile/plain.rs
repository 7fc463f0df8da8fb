//! The product of matrices in three loops: what the host has without the crate's feature
//! `dense`. It needs no library, and uses neither blocks nor vectors.

use super::matrix::Number;

/// `C = beta C + alpha A B`, as [`Number::gemm`] describes it.
///
/// # Safety
/// That of [`Number::gemm`].
pub(super) unsafe fn product<T: Number>(
    (rows, depth, columns): (usize, usize, usize),
    alpha: T,
    a: (*const T, isize, isize),
    b: (*const T, isize, isize),
    beta: T,
    c: (*mut T, isize, isize),
) {
    let zero = T::default();
    for row in 0..rows {
        for column in 0..columns {
            // SAFETY: the caller's contract: C has this number.
            unsafe {
                let c = c.0.offset(at(c.1, row) + at(c.2, column));
                c.write(if beta == zero { zero } else { beta * c.read() });
            }
        }
        for inner in 0..depth {
            // SAFETY: the caller's contract: A has this number.
            let factor = alpha * unsafe { a.0.offset(at(a.1, row) + at(a.2, inner)).read() };
            for column in 0..columns {
                // SAFETY: the caller's contract: B and C have these numbers.
                unsafe {
                    let b = b.0.offset(at(b.1, inner) + at(b.2, column));
                    let c = c.0.offset(at(c.1, row) + at(c.2, column));
                    c.write(c.read() + factor * b.read());
                }
            }
        }
    }
}

/// Where a row or a column of this number begins.
fn at(stride: isize, number: usize) -> isize {
    stride * number as isize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Products of random sizes, of A and of its transpose, against sums of one number after
    /// the other; what lies between the rows of C stays.
    #[test]
    fn loops_agree_with_sums() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        for (rows, depth, columns) in [(1, 1, 1), (3, 0, 5), (7, 5, 3), (17, 31, 13), (0, 4, 4)] {
            let (width, gap) = (columns + 2, f64::NAN);
            let mut numbers =
                |count: usize| -> Vec<f64> { (0..count).map(|_| random.f64() - 0.5).collect() };
            let (a, b) = (numbers(rows * depth), numbers(depth * columns));
            let old = numbers(rows * columns);
            for (a_by_rows, b_by_rows) in
                [(true, true), (true, false), (false, true), (false, false)]
            {
                for (alpha, beta) in [(1.0, 0.0), (-1.0, 1.0), (0.5, -2.0)] {
                    let strides = |by_rows: bool, rows: usize, columns: usize| match by_rows {
                        true => (columns as isize, 1),
                        false => (1, rows as isize),
                    };
                    let (down, right) = strides(a_by_rows, rows, depth);
                    let (b_down, b_right) = strides(b_by_rows, depth, columns);
                    let mut c = vec![gap; rows * width];
                    // C is not read if beta is 0.
                    for (at, old) in old.iter().enumerate().filter(|_| beta != 0.0) {
                        c[at / columns * width + at % columns] = *old;
                    }
                    // SAFETY: the memories hold the matrices.
                    unsafe {
                        product(
                            (rows, depth, columns),
                            alpha,
                            (a.as_ptr(), down, right),
                            (b.as_ptr(), b_down, b_right),
                            beta,
                            (c.as_mut_ptr(), width as isize, 1),
                        );
                    }
                    for (at, found) in c.iter().enumerate() {
                        let (row, column) = (at / width, at % width);
                        if column >= columns {
                            assert!(found.is_nan());
                            continue;
                        }
                        let terms = (0..depth as isize).map(|inner| {
                            let a = a[(row as isize * down + inner * right) as usize];
                            a * b[(inner * b_down + column as isize * b_right) as usize]
                        });
                        let sum: f64 = terms.sum();
                        let expected = alpha * sum + beta * old[row * columns + column];
                        assert!((found - expected).abs() < 1e-12, "{found}, {expected}");
                    }
                }
            }
        }
    }
}
