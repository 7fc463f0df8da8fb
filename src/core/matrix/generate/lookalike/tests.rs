use proptest::prelude::*;

use super::*;
use crate::matrix::control::quietly;
use crate::matrix::stats::Stats;

fn look_alike(name: &str, scale: f64) -> LookAlike {
    LookAlike::new(*KnownMatrix::find(name).unwrap(), scale).unwrap()
}

fn made(name: &str, scale: f64) -> Csr {
    quietly(|control| look_alike(name, scale).generate(1, None, control)).unwrap()
}

/// The values of the paper's Table 3: dimension and nonzeros in millions, mean,
/// deviation, coefficient of variation and maximum of the row lengths.
const TABLE: [(&str, f64, f64, f64, f64, f64, u32); 5] = [
    ("circuit5M", 5.56, 59.52, 10.71, 1356.62, 126.68, 1_290_501),
    ("eu-2005", 0.86, 19.24, 22.30, 29.33, 1.32, 6985),
    ("in-2004", 1.38, 16.92, 12.23, 37.23, 3.04, 7753),
    ("FullChip", 2.99, 26.62, 8.91, 1806.80, 202.73, 2_312_481),
    ("kmer_U1a", 67.7, 138.8, 2.05, 0.37, 0.18, 35),
];

/// The row lengths at full size, without entries. They equal the table's values within
/// its rounding.
#[test]
fn row_lengths_have_the_papers_statistics() {
    for (name, dimension, nonzeros, mean, deviation, cv, most) in TABLE {
        let size = look_alike(name, 1.0).size;
        let lengths = RowLengths::of(KnownMatrix::find(name).unwrap(), size);
        let (mut total, mut squares, mut longest) = (0u128, 0u128, 0);
        for rank in 0..size.rows {
            let length = lengths.of_rank(rank);
            total += u128::from(length);
            squares += u128::from(length) * u128::from(length);
            longest = longest.max(length);
        }
        let rows = f64::from(size.rows);
        assert_eq!(total, size.nonzeros.into(), "{name}");
        assert_eq!(longest, most, "{name}");
        let found_mean = total as f64 / rows;
        let found_deviation = (squares as f64 / rows - found_mean * found_mean).sqrt();
        for (found, expected, rounding) in [
            (
                rows / 1e6,
                dimension,
                if dimension > 10.0 { 0.05 } else { 0.005 },
            ),
            (
                total as f64 / 1e6,
                nonzeros,
                if nonzeros > 100.0 { 0.05 } else { 0.005 },
            ),
            (found_mean, mean, 0.005),
            (found_deviation, deviation, 0.005),
            (found_deviation / found_mean, cv, 0.005),
        ] {
            assert!(
                (found - expected).abs() <= rounding,
                "{name}: {found} {expected}"
            );
        }
    }
}

/// The number of circuit5M's rows by power of ten of their length, from the README of
/// merge-spmv.
#[test]
fn circuit5m_has_as_many_rows_of_each_magnitude() {
    let known = KnownMatrix::find("circuit5M").unwrap();
    let lengths = RowLengths::of(known, look_alike("circuit5M", 1.0).size);
    let mut decades = [0u32; 7];
    for rank in 0..known.rows {
        decades[lengths.of_rank(rank).ilog10() as usize] += 1;
    }
    assert_eq!(decades, [5_205_090, 325_350, 20_298, 7568, 0, 14, 6]);
}

#[test]
fn smaller_look_alikes_keep_mean_and_distribution() {
    for (name, _, _, mean, deviation, _, most) in TABLE {
        let scale = if name == "kmer_U1a" { 0.001 } else { 0.01 };
        let (known, matrix) = (KnownMatrix::find(name).unwrap(), made(name, scale));
        let stats = Stats::of(&matrix);
        let rows = (f64::from(known.rows) * scale).round();
        assert_eq!(f64::from(stats.rows), rows, "{name}");
        assert_eq!(
            stats.nonzeros as f64,
            (known.nonzeros as f64 * scale).round(),
            "{name}"
        );
        assert!((stats.mean - mean).abs() < 0.01, "{name}: {}", stats.mean);
        match known.kind {
            Kind::Circuit => {
                // Dense rows have the same part of all columns.
                assert_eq!(
                    stats.most as f64,
                    (f64::from(most) * scale).round(),
                    "{name}"
                );
                let expected = scaled_deviation(known, scale);
                let off = stats.deviation / expected - 1.0;
                assert!(
                    off.abs() < 0.01,
                    "{name}: {} for {expected}",
                    stats.deviation
                );
            }
            Kind::Web { .. } | Kind::Kmer => {
                assert!(stats.most <= most.into(), "{name}: {}", stats.most);
                let off = stats.deviation / deviation - 1.0;
                assert!(off.abs() < 0.02, "{name}: {}", stats.deviation);
            }
        }
    }
}

/// The expected deviation of a circuit at a scale. Its dense rows are shorter by
/// `scale`, and its other rows are fewer by it.
fn scaled_deviation(known: &'static KnownMatrix, scale: f64) -> f64 {
    let lengths = RowLengths::of(known, look_alike(known.name, 1.0).size);
    let dense_rows = 20;
    let mut squares = 0.0;
    for rank in 0..known.rows {
        let square = f64::from(lengths.of_rank(rank)).powi(2);
        squares += square
            * if rank < dense_rows {
                scale * scale
            } else {
                scale
            };
    }
    let rows = f64::from(known.rows);
    let mean = known.nonzeros as f64 / rows;
    (squares / (rows * scale) - mean * mean).sqrt()
}

/// The share of entries within this number of columns of the diagonal.
fn near(matrix: &Csr, distance: u32) -> f64 {
    let mut near = 0;
    for row in 0..matrix.rows() {
        let (columns, _) = matrix.row(row);
        near += columns
            .iter()
            .filter(|c| c.abs_diff(row) <= distance)
            .count();
    }
    near as f64 / matrix.nonzeros() as f64
}

#[test]
fn columns_have_the_distribution_of_their_kind() {
    let circuit = made("FullChip", 0.01);
    // The two dense rows have a fifth of the entries, and so have their columns.
    assert!(near(&circuit, 100) > 0.4, "{}", near(&circuit, 100));
    let columns = |matrix: &Csr| {
        let mut counts = vec![0u64; matrix.columns() as usize];
        matrix
            .column_of()
            .iter()
            .for_each(|c| counts[*c as usize] += 1);
        counts.into_iter().max().unwrap_or(0)
    };
    assert!(columns(&circuit) > 15_000, "{}", columns(&circuit));

    let (local, shallow) = (made("in-2004", 0.02), made("eu-2005", 0.02));
    assert!(near(&local, 1000) > 0.6, "{}", near(&local, 1000));
    assert!(near(&shallow, 1000) < near(&local, 1000) - 0.1);
    // A web graph has pages with many links to them.
    assert!(columns(&local) > 1000, "{}", columns(&local));

    let kmer = made("kmer_U1a", 0.001);
    assert!(near(&kmer, 100) < 0.01 && columns(&kmer) < 20);
}

#[test]
fn a_shape_can_have_another_mean() {
    for (shape, per_row) in [("web", 30), ("web", 9), ("circuit", 5), ("circuit", 20)] {
        let known = KnownMatrix::shape(shape).unwrap();
        let like = LookAlike::shaped(known, 20_000, Some(per_row)).unwrap();
        assert_eq!(like.to_string(), format!("{shape}:20000,{per_row}"));
        let matrix = quietly(|control| like.generate(3, None, control)).unwrap();
        let stats = Stats::of(&matrix);
        assert_eq!(stats.nonzeros, 20_000 * u64::from(per_row), "{shape}");
        if shape == "web" {
            // The coefficient of variation is that of the known matrix.
            let usual = known.deviation * f64::from(known.rows) / known.nonzeros as f64;
            let variation = stats.deviation / stats.mean;
            assert!((variation / usual - 1.0).abs() < 0.05, "{variation}");
        }
    }
    let own = LookAlike::shaped(KnownMatrix::shape("web").unwrap(), 500, None);
    assert_eq!(own.unwrap().to_string(), "web:500");
    let error =
        LookAlike::shaped(KnownMatrix::shape("circuit").unwrap(), 500, Some(3)).unwrap_err();
    assert!(error.contains("4 to 64 entries a row, not 3"), "{error}");
}

#[test]
fn every_known_matrix_has_a_small_look_alike() {
    for known in &KNOWN {
        let scale = 100.0 / f64::from(known.rows);
        let matrix = quietly(|control| {
            LookAlike::new(*known, scale)
                .unwrap()
                .generate(7, None, control)
        });
        assert_eq!(matrix.unwrap().rows(), 100, "{}", known.name);
    }
}

#[test]
fn a_look_alike_that_needs_too_much_memory_is_refused() {
    let error = quietly(|control| look_alike("kmer_U1a", 1.0).generate(1, Some(2 << 30), control));
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains("making a look-alike of kmer_U1a needs 2.06 GiB"),
        "{error}"
    );
}

proptest! {
    #[test]
    fn every_place_is_taken_once(count in 1u32..3000, seed: u64) {
        let permutation = Permutation::new(count, seed);
        let mut places: Vec<u32> = (0..count).map(|number| permutation.of(number)).collect();
        places.sort_unstable();
        prop_assert_eq!(places, (0..count).collect::<Vec<_>>());
    }
}

#[test]
fn neighbours_are_parted() {
    let permutation = Permutation::new(1_000_003, 1);
    let far = (0..10_000).filter(|i| permutation.of(*i).abs_diff(permutation.of(i + 1)) > 10_000);
    assert!(far.count() > 9_700);
}
