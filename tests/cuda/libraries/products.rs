//! Products, symmetric updates and triangular solutions by cuBLAS.

use pdawl_api::codelet::gemm::Gemm;
use pdawl_api::codelet::tile::{BLOCK, GemmTile, SyrkTile, TrsmTile};
use pdawl_api::codelet::{Element, NumberFormat, Precision, ProductPrecision, Value};

use super::{
    At, BLAS, BOTH, by_library, bytes, numbers, places, random, real, sizes, tolerance,
    with_fake_kernels,
};
use crate::library::fake;

/// Compares a matrix with its reference, and what is around it with what was there.
fn compare(
    most: f64,
    (got, before): (&[f64], &[f64]),
    (at, rows, columns): (At, usize, usize),
    right: impl Fn(usize, usize) -> Option<f64>,
) {
    let mut inside = vec![false; got.len()];
    for row in 0..rows {
        for column in 0..columns {
            let index = at.index(row, column);
            inside[index] = true;
            if let Some(right) = right(row, column) {
                let error = (got[index] - right).abs();
                assert!(
                    error <= most * right.abs().max(1.0),
                    "({row}, {column}): {} for {right}",
                    got[index]
                );
            }
        }
    }
    for (index, inside) in inside.iter().enumerate() {
        let same = got[index].to_bits() == before[index].to_bits();
        assert!(
            *inside || same || before[index].is_nan() && got[index].is_nan(),
            "{index}"
        );
    }
}

const PRODUCTS: [ProductPrecision; 5] = [
    ProductPrecision::Single(NumberFormat::F16),
    ProductPrecision::Single(NumberFormat::Bf16),
    ProductPrecision::Single(NumberFormat::Tf32),
    ProductPrecision::Single(NumberFormat::F32),
    ProductPrecision::Double,
];

/// Random numbers as they are stored.
fn stored(seed: u64, count: usize, element: Element) -> Vec<f64> {
    numbers(element, &bytes(element, &random(seed, count)))
}

#[test]
fn tiles_are_multiplied_with_any_strides_and_factors() {
    let _fake = fake();
    for precision in PRODUCTS {
        let (factors, sums) = (precision.factors(), precision.sums());
        for (transposed, [m, n, k], (alpha, beta)) in [
            (false, [7, 5, 9], (1.0, 0.0)),
            (true, [7, 5, 9], (-1.0, 1.0)),
            (false, [1, 33, 2], (0.5, -2.0)),
            (true, [64, 1, 17], (1.0, 0.0)),
            (false, [3, 4, 1], (2.0, 1.0)),
        ] {
            let b_rows = if transposed { n } else { k };
            let b_columns = if transposed { k } else { n };
            let a = At {
                first: 3,
                stride: k + 2,
            };
            let b = At {
                first: 1,
                stride: b_columns + 1,
            };
            let c = At {
                first: 7,
                stride: n + 3,
            };
            let of_a = stored(1, a.room(m), factors);
            let of_b = stored(2, b.room(b_rows), factors);
            let of_c = match beta == 0.0 {
                true => vec![f64::NAN; c.room(m)],
                false => random(3, c.room(m)),
            };
            let tile = GemmTile::new(precision, m as u32, n as u32, k as u32);
            let tile = if transposed { tile.transposed() } else { tile };
            let codelet = with_fake_kernels(tile.unaligned().codelet(), sums);
            let values = [
                &sizes([m, n, k, a.stride, b.stride, c.stride])[..],
                &places([a.first, b.first, c.first]),
                &[real(sums, alpha), real(sums, beta)],
            ]
            .concat();
            let contents = [
                bytes(factors, &of_a),
                bytes(factors, &of_b),
                bytes(sums, &of_c),
            ];
            let of_library = (&[m as u64, n as u64, k as u64][..], BLAS);
            let got = by_library(&codelet, of_library, 0..tile.units(), &contents, &values);
            let right = |row: usize, column: usize| {
                let sum: f64 = (0..k)
                    .map(|l| {
                        let b = match transposed {
                            true => b.index(column, l),
                            false => b.index(l, column),
                        };
                        of_a[a.index(row, l)] * of_b[b]
                    })
                    .sum();
                let old = if beta == 0.0 {
                    0.0
                } else {
                    beta * of_c[c.index(row, column)]
                };
                Some(alpha * sum + old)
            };
            let got = numbers(sums, &got[2]);
            // Factors are at most 1.
            let of_factors = match precision {
                ProductPrecision::Single(format) => format.product_error() * k as f64,
                ProductPrecision::Double => 0.0,
            };
            let most = tolerance(sums) + alpha.abs() * of_factors;
            compare(most, (&got, &of_c), (c, m, n), right);
        }
    }
}

#[test]
fn batches_are_multiplied_by_their_matrices() {
    let _fake = fake();
    for (format, of) in [
        (false, false, 3, 0..3),
        (true, false, 4, 1..3),
        (false, true, 2, 0..2),
        (true, true, 3, 2..3),
    ]
    .into_iter()
    .flat_map(|of| NumberFormat::ALL.map(|format| (format, of.clone())))
    {
        let (transposed, common_a, batch, some) = of;
        let (m, n, k) = (70, 9, 5);
        let mut gemm = Gemm {
            rows: m,
            columns: n,
            depth: k,
            ..Gemm::square(1)
        };
        gemm = gemm.format(format).batch(batch).after(1, 2);
        gemm.transposed = transposed;
        gemm.common_a = common_a;
        let codelet = with_fake_kernels(gemm.codelet(), Precision::F32);
        let [m, n, k, batch] = [m, n, k, batch].map(|size| size as usize);
        let element = format.element();
        let of_a = stored(1, (batch + 1) * m * k, element);
        let of_b = stored(2, (batch + 2) * k * n, element);
        let of_c = vec![f64::NAN; batch * m * n];
        let blocks = gemm.units() / batch as u64;
        assert_eq!(blocks, u64::from(gemm.rows.div_ceil(BLOCK)));
        let units = some.start as u64 * blocks..some.end as u64 * blocks;
        let contents = [&of_a, &of_b, &of_c].map(|numbers| bytes(element, numbers));
        let of_library = [m, n, k, some.len()].map(|size| size as u64);
        let values = gemm.sizes();
        let got = by_library(&codelet, (&of_library, BLAS), units, &contents, &values);
        let got = numbers(element, &got[2]);
        for one in 0..batch {
            let (first_a, first_b) = (
                (1 + if common_a { 0 } else { one }) * m * k,
                (2 + one) * k * n,
            );
            for row in 0..m {
                for column in 0..n {
                    let has = got[(one * m + row) * n + column];
                    if !some.contains(&one) {
                        assert!(has.is_nan(), "matrix {one} is not meant");
                        continue;
                    }
                    let right: f64 = (0..k)
                        .map(|l| {
                            let b = if transposed {
                                column * k + l
                            } else {
                                l * n + column
                            };
                            of_a[first_a + row * k + l] * of_b[first_b + b]
                        })
                        .sum();
                    let of_format =
                        format.product_error() * k as f64 + element.unit() * right.abs();
                    assert!(
                        (has - right).abs() < 2e-5 + of_format,
                        "{one} ({row}, {column}): {has} {right}"
                    );
                }
            }
        }
    }
}

#[test]
fn symmetric_updates_have_their_lower_triangles() {
    let _fake = fake();
    for precision in BOTH {
        for ([n, k], (alpha, beta)) in [
            ([9, 4], (-1.0, 1.0)),
            ([5, 13], (1.0, 0.0)),
            ([1, 1], (2.0, 0.5)),
        ] {
            let a = At {
                first: 2,
                stride: k + 1,
            };
            let c = At {
                first: 5,
                stride: n + 4,
            };
            let of_a = random(1, a.room(n));
            let of_c = match beta == 0.0 {
                true => vec![f64::NAN; c.room(n)],
                false => random(2, c.room(n)),
            };
            let tile = SyrkTile {
                precision,
                rows: n as u32,
                depth: k as u32,
                alpha,
                beta,
                aligned: false,
            };
            let codelet = with_fake_kernels(tile.codelet(), precision);
            let values = [
                &sizes([n, k, a.stride, c.stride])[..],
                &places([a.first, c.first]),
                &[real(precision, alpha), real(precision, beta)],
            ]
            .concat();
            let contents = [&of_a, &of_c].map(|numbers| bytes(precision, numbers));
            let of_library = (&[n as u64, k as u64][..], BLAS);
            let got = by_library(&codelet, of_library, 0..tile.units(), &contents, &values);
            let right = |row: usize, column: usize| {
                if column > row {
                    return None;
                }
                let sum: f64 = (0..k)
                    .map(|l| of_a[a.index(row, l)] * of_a[a.index(column, l)])
                    .sum();
                let old = if beta == 0.0 {
                    0.0
                } else {
                    beta * of_c[c.index(row, column)]
                };
                Some(alpha * sum + old)
            };
            compare(
                tolerance(precision),
                (&numbers(precision, &got[1]), &of_c),
                (c, n, n),
                right,
            );
        }
    }
}

#[test]
fn rows_are_solved_with_a_triangle() {
    let _fake = fake();
    for precision in BOTH {
        for ([m, n], units) in [
            ([7, 5], 0..1),
            ([1, 9], 0..1),
            ([150, 6], 1..2),
            ([150, 6], 2..3),
        ] {
            let l = At {
                first: 4,
                stride: n + 2,
            };
            let b = At {
                first: 1,
                stride: n + 1,
            };
            let mut of_l = random(1, l.room(n));
            for row in 0..n {
                of_l[l.index(row, row)] += 4.0;
                for column in row + 1..n {
                    of_l[l.index(row, column)] = f64::NAN;
                }
            }
            let of_b = random(2, b.room(m));
            let tile = TrsmTile {
                precision,
                rows: m as u32,
                columns: n as u32,
            };
            let codelet = with_fake_kernels(tile.codelet(), precision);
            let values: Vec<Value> = [
                &sizes([m, n, l.stride, b.stride])[..],
                &places([l.first, b.first]),
            ]
            .concat();
            let contents = [&of_l, &of_b].map(|numbers| bytes(precision, numbers));
            let block = BLOCK as usize;
            let rows = units.start as usize * block..(units.end as usize * block).min(m);
            let of_library = (&[rows.len() as u64, n as u64][..], BLAS);
            let got = by_library(&codelet, of_library, units, &contents, &values);
            let got = numbers(precision, &got[1]);
            let mut right = of_b.clone();
            for row in rows {
                for column in 0..n {
                    let known: f64 = (0..column)
                        .map(|k| right[b.index(row, k)] * of_l[l.index(column, k)])
                        .sum();
                    let number = &mut right[b.index(row, column)];
                    *number = (*number - known) / of_l[l.index(column, column)];
                }
            }
            for (index, (got, right)) in got.iter().zip(&right).enumerate() {
                assert!(
                    (got - right).abs() <= tolerance(precision),
                    "{index}: {got} for {right}"
                );
            }
        }
    }
}
