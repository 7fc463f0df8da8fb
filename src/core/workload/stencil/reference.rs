//! The sequential reference of a stencil: plain loops over whole grids. It shares no
//! code with the codelets.

use crate::verify::Compared;
use crate::workload::ends;

/// A floating-point type of a grid.
pub trait Real: bytemuck::Pod + PartialEq {
    /// `(((north + south) + (west + east)) + centre) / 5`, by multiplication.
    fn five(centre: Self, beside: [Self; 4]) -> Self;
    /// The 7-point sum; `beside` as in 2-D, then below and above.
    fn seven(centre: Self, beside: [Self; 6]) -> Self;
    /// `((north*cn + south*cs) + (west*cw + east*ce)) + centre*cc`; `by` has the coefficients
    /// of the point itself and of those beside it, in their order.
    fn five_by(by: [Self; 5], centre: Self, beside: [Self; 4]) -> Self;
    /// The 7-point sum with coefficients; `beside` as in 2-D, then below and above.
    fn seven_by(by: [Self; 7], centre: Self, beside: [Self; 6]) -> Self;
    /// The nearest number.
    fn of(number: f64) -> Self;
    /// As a double.
    fn wide(self) -> f64;
    /// The absolute difference, rounded as numbers of the grid are.
    fn change_from(self, before: Self) -> f64;
}

macro_rules! real {
    ($type:ty) => {
        impl Real for $type {
            fn five(c: Self, [n, s, w, e]: [Self; 4]) -> Self {
                (((n + s) + (w + e)) + c) * (1.0f64 / 5.0) as $type
            }
            fn seven(c: Self, [n, s, w, e, b, a]: [Self; 6]) -> Self {
                (((n + s) + (w + e)) + ((b + a) + c)) * (1.0f64 / 7.0) as $type
            }
            fn five_by([cc, cn, cs, cw, ce]: [Self; 5], c: Self, [n, s, w, e]: [Self; 4]) -> Self {
                ((n * cn + s * cs) + (w * cw + e * ce)) + c * cc
            }
            fn seven_by(
                [cc, cn, cs, cw, ce, cb, ca]: [Self; 7],
                c: Self,
                [n, s, w, e, b, a]: [Self; 6],
            ) -> Self {
                (((n * cn + s * cs) + (w * cw + e * ce)) + (b * cb + a * ca)) + c * cc
            }
            fn of(number: f64) -> Self {
                number as $type
            }
            fn wide(self) -> f64 {
                self as f64
            }
            fn change_from(self, before: Self) -> f64 {
                (self - before).abs() as f64
            }
        }
    };
}

real!(f64);
real!(f32);

/// The coefficients as numbers of the grid, if there are as many.
fn numbers<T: Real, const N: usize>(coefficients: Option<&[f64]>) -> Option<[T; N]> {
    let coefficients: [f64; N] = coefficients?.try_into().ok()?;
    Some(coefficients.map(T::of))
}

/// When a run ends that is checked: after a step that [`ends`] it. Only the last
/// step, and those after each multiple of `period`, are looked at.
#[derive(Clone, Copy)]
pub struct Until {
    pub tolerance: f64,
    pub period: u32,
}

/// A result.
pub struct Computed<T> {
    pub grid: Vec<T>,
    /// Steps that were computed.
    pub steps: u32,
    /// The largest absolute change of a point in the last one, if it was looked at.
    pub change: Option<f64>,
}

/// The grid of `(nx, ny, nz)` points after `steps` steps, or once it is to end, by the mean or
/// by coefficients, of which there are 5 in 2-D, where there is no `nz`, and 7 in 3-D.
pub fn compute<T: Real>(
    mut grid: Vec<T>,
    (nx, ny, nz): (usize, usize, Option<usize>),
    coefficients: Option<&[f64]>,
    steps: u32,
    until: Option<Until>,
) -> Computed<T> {
    let mut next = grid.clone();
    let mut change = None;
    let (of_five, of_seven) = (numbers(coefficients), numbers(coefficients));
    for step in 1..=steps {
        match nz {
            None => {
                for y in 1..ny - 1 {
                    for x in 1..nx - 1 {
                        let i = y * nx + x;
                        let beside = [grid[i - nx], grid[i + nx], grid[i - 1], grid[i + 1]];
                        next[i] = match of_five {
                            None => T::five(grid[i], beside),
                            Some(by) => T::five_by(by, grid[i], beside),
                        };
                    }
                }
            }
            Some(nz) => {
                let plane = nx * ny;
                for z in 1..nz - 1 {
                    for y in 1..ny - 1 {
                        for x in 1..nx - 1 {
                            let i = z * plane + y * nx + x;
                            let beside = [
                                grid[i - nx],
                                grid[i + nx],
                                grid[i - 1],
                                grid[i + 1],
                                grid[i - plane],
                                grid[i + plane],
                            ];
                            next[i] = match of_seven {
                                None => T::seven(grid[i], beside),
                                Some(by) => T::seven_by(by, grid[i], beside),
                            };
                        }
                    }
                }
            }
        }
        std::mem::swap(&mut grid, &mut next);
        if let Some(until) = until
            && (step == steps || step.is_multiple_of(until.period))
        {
            let largest = (0..grid.len()).filter(|i| is_inner(*i, (nx, ny, nz)));
            let largest = largest.fold(0.0, |largest, i| {
                largest_of(largest, grid[i].change_from(next[i]))
            });
            change = Some(largest);
            if ends(largest, until.tolerance) {
                return Computed {
                    grid,
                    steps: step,
                    change,
                };
            }
        }
    }
    Computed {
        grid,
        steps,
        change,
    }
}

/// Whether a point is none of the outermost ones, which keep their values.
fn is_inner(point: usize, (nx, ny, nz): (usize, usize, Option<usize>)) -> bool {
    let inner = |at: usize, length: usize| at > 0 && at + 1 < length;
    let (x, y) = (point % nx, point / nx % ny);
    let z = nz.is_none_or(|nz| inner(point / nx / ny, nz));
    inner(x, nx) && inner(y, ny) && z
}

/// Compares a grid with the right one: the largest absolute difference, NaN if one is, and
/// whether they agree bit for bit. Numbers that are none (NaN) agree, as devices choose their
/// bits.
pub fn compare<T: Real>(found: &[T], right: &[T]) -> Compared {
    let mut compared = Compared {
        error: 0.0,
        right: found.len() == right.len(),
        numbers: found.len() as u64,
        not_finite: 0,
    };
    for (found, right) in found.iter().zip(right) {
        let (of_found, of_right) = (found.wide(), right.wide());
        compared.not_finite += u64::from(!of_found.is_finite());
        let are_none = of_found.is_nan() && of_right.is_nan();
        if !are_none && bytemuck::bytes_of(found) != bytemuck::bytes_of(right) {
            compared.right = false;
            compared.error = largest_of(compared.error, (of_found - of_right).abs());
        }
    }
    compared
}

/// The larger of two numbers; NaN if one is.
fn largest_of(one: f64, other: f64) -> f64 {
    match one.is_nan() || other.is_nan() {
        true => f64::NAN,
        false => one.max(other),
    }
}
