//! The sequential reference of a stencil: plain loops over whole grids. It shares no
//! code with the codelets.

/// A floating-point type of a grid.
pub trait Real: bytemuck::Pod + PartialEq {
    /// `(((north + south) + (west + east)) + centre) / 5`, by multiplication.
    fn five(centre: Self, beside: [Self; 4]) -> Self;
    /// The 7-point sum; `beside` as in 2-D, then below and above.
    fn seven(centre: Self, beside: [Self; 6]) -> Self;
    /// As a double.
    fn wide(self) -> f64;
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
            fn wide(self) -> f64 {
                self as f64
            }
        }
    };
}

real!(f64);
real!(f32);

/// The grid after `steps` steps; `nz` is `None` in 2-D.
pub fn compute<T: Real>(
    mut grid: Vec<T>,
    nx: usize,
    ny: usize,
    nz: Option<usize>,
    steps: u32,
) -> Vec<T> {
    let mut next = grid.clone();
    for _ in 0..steps {
        match nz {
            None => {
                for y in 1..ny - 1 {
                    for x in 1..nx - 1 {
                        let i = y * nx + x;
                        next[i] = T::five(
                            grid[i],
                            [grid[i - nx], grid[i + nx], grid[i - 1], grid[i + 1]],
                        );
                    }
                }
            }
            Some(nz) => {
                let plane = nx * ny;
                for z in 1..nz - 1 {
                    for y in 1..ny - 1 {
                        for x in 1..nx - 1 {
                            let i = z * plane + y * nx + x;
                            next[i] = T::seven(
                                grid[i],
                                [
                                    grid[i - nx],
                                    grid[i + nx],
                                    grid[i - 1],
                                    grid[i + 1],
                                    grid[i - plane],
                                    grid[i + plane],
                                ],
                            );
                        }
                    }
                }
            }
        }
        std::mem::swap(&mut grid, &mut next);
    }
    grid
}

/// The largest absolute difference of two grids, NaN if a difference is NaN, and
/// whether the grids agree bit for bit.
pub fn compare<T: Real>(a: &[T], b: &[T]) -> (f64, bool) {
    let same =
        a.len() == b.len() && bytemuck::cast_slice::<T, u8>(a) == bytemuck::cast_slice::<T, u8>(b);
    let largest = a.iter().zip(b).fold(0.0f64, |largest, (a, b)| {
        let difference = (a.wide() - b.wide()).abs();
        if largest.is_nan() || difference.is_nan() {
            f64::NAN
        } else {
            largest.max(difference)
        }
    });
    (largest, same)
}
