//! Fourier transforms of any length in double precision, of single vectors.
//!
//! Lengths that are powers of two have the usual algorithm of radix 2; others become a
//! convolution with a chirp (L. Bluestein, "A linear filtering approach to the computation of
//! discrete Fourier transform", IEEE Trans. Audio Electroacoust. 1970).

use std::f64::consts::PI;

use super::transform::Complex;

/// The product of two numbers.
pub(super) fn times([a, b]: Complex, [c, d]: Complex) -> Complex {
    [a * c - b * d, a * d + b * c]
}

fn conjugate([re, im]: Complex) -> Complex {
    [re, -im]
}

/// `exp(-i pi part / whole)`.
fn turn(part: u64, whole: u64) -> Complex {
    let angle = -PI * part as f64 / whole as f64;
    [angle.cos(), angle.sin()]
}

/// The transform `y_k = sum over j of x_j exp(-2 pi i j k / n)`.
pub(super) fn fourier(numbers: &[Complex]) -> Vec<Complex> {
    let length = numbers.len() as u64;
    if length.is_power_of_two() || length == 0 {
        return of_power(numbers.to_vec());
    }
    // j k = (j^2 + k^2 - (k - j)^2) / 2.
    let chirp: Vec<Complex> = (0..u128::from(length))
        .map(|at| turn((at * at % (2 * u128::from(length))) as u64, length))
        .collect();
    let padded = (2 * length - 1).next_power_of_two() as usize;
    let (mut given, mut filter) = (vec![[0.0; 2]; padded], vec![[0.0; 2]; padded]);
    for (at, (number, turn)) in numbers.iter().zip(&chirp).enumerate() {
        given[at] = times(*number, *turn);
        filter[at] = conjugate(*turn);
        filter[(padded - at) % padded] = conjugate(*turn);
    }
    let both = of_power(given).into_iter().zip(of_power(filter));
    // The inverse transform, as that of conjugates.
    let products = both.map(|(one, other)| conjugate(times(one, other)));
    let inverse = of_power(products.collect());
    let scaled = |number: Complex| conjugate(number).map(|part| part / padded as f64);
    let both = inverse.into_iter().zip(&chirp);
    both.map(|(number, turn)| times(scaled(number), *turn))
        .collect()
}

fn of_power(mut numbers: Vec<Complex>) -> Vec<Complex> {
    let length = numbers.len();
    let bits = length.trailing_zeros();
    for at in 0..length {
        let other = match bits {
            0 => at,
            _ => at.reverse_bits() >> (usize::BITS - bits),
        };
        if at < other {
            numbers.swap(at, other);
        }
    }
    let turns: Vec<Complex> = (0..length / 2)
        .map(|at| turn(2 * at as u64, length as u64))
        .collect();
    let mut half = 1;
    while half < length {
        let step = length / (2 * half);
        for both in numbers.chunks_exact_mut(2 * half) {
            let (low, high) = both.split_at_mut(half);
            for (at, (low, high)) in low.iter_mut().zip(high).enumerate() {
                let turned = times(*high, turns[at * step]);
                *high = [low[0] - turned[0], low[1] - turned[1]];
                *low = [low[0] + turned[0], low[1] + turned[1]];
            }
        }
        half *= 2;
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transforms_are_those_of_the_definition() {
        let mut random = fastrand::Rng::with_seed(1);
        for length in [1, 2, 3, 8, 15, 64, 97] {
            let numbers: Vec<Complex> = (0..length)
                .map(|_| [random.f64() - 0.5, random.f64() - 0.5])
                .collect();
            for (at, found) in (0..).zip(fourier(&numbers)) {
                let terms = (0..)
                    .zip(&numbers)
                    .map(|(of, number)| times(*number, turn(2 * (at * of % length), length)));
                let right = terms.fold([0.0; 2], |sum, [re, im]| [sum[0] + re, sum[1] + im]);
                let error = (found[0] - right[0]).hypot(found[1] - right[1]);
                assert!(
                    error < 1e-13 * length as f64,
                    "{length}: {found:?} {right:?}"
                );
            }
        }
    }
}
