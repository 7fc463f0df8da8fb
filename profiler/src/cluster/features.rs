//! Features that vary, on the scale on which they are compared.

use super::dendrogram::Dendrogram;
use crate::fitted::Input;

/// What varies relatively less than this does not vary.
const CONSTANT: f64 = 1e-9;

/// A feature that varies over the rows it was looked at in.
#[derive(Clone, Debug, PartialEq)]
pub struct Feature {
    /// Its place in a row's values.
    pub index: usize,
    /// Whether it counts by its logarithm, as [`Input::learn`] decides for the
    /// models that use it.
    pub log: bool,
    /// With the target.
    pub correlation: f64,
    /// Of its values on that scale, normalised to [0, 1].
    pub variance: f64,
}

/// The features that vary, and how alike they are.
#[derive(Clone, Debug)]
pub struct Features<'a> {
    names: &'a [String],
    features: Vec<Feature>,
    /// 1 - |correlation| of each pair, row by row.
    distances: Vec<f64>,
}

impl<'a> Features<'a> {
    /// Looks at rows of finite `values`, one value a name, and at what is to
    /// be predicted of each, usually the time's logarithm.
    pub fn of(names: &'a [String], rows: &[&[f64]], target: &[f64]) -> Self {
        let target = unit(target);
        let mut features = Vec::new();
        let mut columns = Vec::new();
        for index in 0..names.len() {
            let mut column: Vec<f64> = rows.iter().map(|row| row[index]).collect();
            let scale = Input::learn(&names[index], column.iter().copied());
            let greatest = scale.max.abs().max(scale.min.abs());
            if rows.is_empty() || scale.max - scale.min <= CONSTANT * greatest {
                continue;
            }
            if scale.log {
                column.iter_mut().for_each(|v| *v = v.ln());
            }
            let variance = normalised_variance(&column);
            let column = unit(&column);
            features.push(Feature {
                index,
                log: scale.log,
                correlation: correlation(&column, &target),
                variance,
            });
            columns.push(column);
        }
        let n = columns.len();
        let mut distances = vec![0.0; n * n];
        for a in 0..n {
            for b in a + 1..n {
                let distance = 1.0 - correlation(&columns[a], &columns[b]).abs();
                distances[a * n + b] = distance;
                distances[b * n + a] = distance;
            }
        }
        Self {
            names,
            features,
            distances,
        }
    }

    /// The same without those of some columns.
    pub fn without(self, columns: &[usize]) -> Self {
        let stays = |feature: &Feature| !columns.contains(&feature.index);
        let n = self.features.len();
        let stay: Vec<usize> = (0..n).filter(|&p| stays(&self.features[p])).collect();
        let row = |&a: &usize| stay.iter().map(move |b| (a, *b));
        Self {
            names: self.names,
            distances: (stay.iter().flat_map(row))
                .map(|(a, b)| self.distances[a * n + b])
                .collect(),
            features: stay.iter().map(|&p| self.features[p].clone()).collect(),
        }
    }

    /// The features, in the order of the names.
    pub fn features(&self) -> &[Feature] {
        &self.features
    }

    /// The tree of those features whose places in [`Features::features`] are
    /// given.
    pub fn dendrogram(&self, places: &[usize]) -> Dendrogram {
        let n = self.features.len();
        Dendrogram::of(places.len(), |a, b| {
            self.distances[places[a] * n + places[b]]
        })
    }

    /// The feature's name.
    pub fn name(&self, feature: &Feature) -> &'a str {
        &self.names[feature.index]
    }
}

fn normalised_variance(column: &[f64]) -> f64 {
    let least = column.iter().copied().fold(f64::INFINITY, f64::min);
    let greatest = column.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let n = column.len() as f64;
    let mean = column.iter().sum::<f64>() / n;
    let variance = column.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n;
    variance / (greatest - least).powi(2)
}

/// A column shifted to mean 0 and scaled to length 1, so that the product of
/// two is their correlation; all 0 if the column is constant.
fn unit(column: &[f64]) -> Vec<f64> {
    let mean = column.iter().sum::<f64>() / column.len().max(1) as f64;
    let centred: Vec<f64> = column.iter().map(|v| v - mean).collect();
    let length = centred.iter().map(|v| v * v).sum::<f64>().sqrt();
    if length > 0.0 && length.is_finite() {
        centred.iter().map(|v| v / length).collect()
    } else {
        vec![0.0; column.len()]
    }
}

/// The correlation of two columns that [`unit`] made, in [-1, 1].
fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let product: f64 = a.iter().zip(b).map(|(a, b)| a * b).sum();
    product.clamp(-1.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(n: usize) -> Vec<String> {
        (0..n).map(|i| format!("f{i}")).collect()
    }

    #[test]
    fn constants_are_dropped_and_wide_ranges_logarithmic() {
        let rows: Vec<[f64; 5]> = (0..6)
            .map(|i| {
                let x = f64::from(i);
                [7e9, x.exp2(), 1.0 + 0.1 * x, x, 3.0 + 1e-12 * x]
            })
            .collect();
        let rows: Vec<&[f64]> = rows.iter().map(|row| &row[..]).collect();
        let names = names(5);
        let target: Vec<f64> = (0..6).map(f64::from).collect();
        let features = Features::of(&names, &rows, &target);
        let kept: Vec<(usize, bool)> = features
            .features()
            .iter()
            .map(|f| (f.index, f.log))
            .collect();
        // 2^x spans 32 times; x begins at 0.
        assert_eq!(kept, [(1, true), (2, false), (3, false)]);
        assert!(
            features
                .features()
                .iter()
                .all(|f| (f.correlation - 1.0).abs() < 1e-9)
        );
        // All three are the same line after scaling: a variance of
        // (36 - 1) / 12 over 5 squared.
        let expected = 35.0 / 12.0 / 25.0;
        assert!(
            features
                .features()
                .iter()
                .all(|f| (f.variance - expected).abs() < 1e-9)
        );
        assert_eq!(features.dendrogram(&[0, 1, 2]).clusters_beyond(1e-9), 1);
    }

    #[test]
    fn what_is_left_out_leaves_the_others_as_they_were() {
        let rows = [
            [1.0, 9.0, 2.0, 5.0],
            [2.0, 1.0, 4.5, 1.0],
            [3.0, 4.0, 5.0, 7.0],
        ];
        let rows: Vec<&[f64]> = rows.iter().map(|row| &row[..]).collect();
        let (names, target) = (names(4), [1.0, 2.0, 3.0]);
        let all = Features::of(&names, &rows, &target);
        let some = all.clone().without(&[1]);
        let kept: Vec<usize> = some.features().iter().map(|f| f.index).collect();
        assert_eq!(kept, [0, 2, 3]);
        let of_all: Vec<Feature> = [0, 2, 3].map(|place| all.features()[place].clone()).into();
        assert_eq!(some.features(), of_all);
        assert_eq!(some.dendrogram(&[0, 1, 2]), all.dendrogram(&[0, 2, 3]));
    }

    #[test]
    fn nothing_to_look_at_is_no_feature() {
        let names = names(2);
        assert!(Features::of(&names, &[], &[]).features().is_empty());
        let row: &[f64] = &[1.0, 2.0];
        assert!(Features::of(&names, &[row], &[1.0]).features().is_empty());
    }

    #[test]
    fn a_constant_target_correlates_with_nothing() {
        let rows: [&[f64]; 3] = [&[1.0], &[2.0], &[3.0]];
        let names = names(1);
        let features = Features::of(&names, &rows, &[5.0; 3]);
        assert_eq!(features.features()[0].correlation, 0.0);
    }

    fn of(a: &[f64], b: &[f64]) -> f64 {
        correlation(&unit(a), &unit(b))
    }

    #[test]
    fn known_values() {
        let x = [1.0, 2.0, 3.0, 4.0];
        assert!((of(&x, &[3.0, 5.0, 7.0, 9.0]) - 1.0).abs() < 1e-12);
        assert!((of(&x, &[8.0, 6.0, 4.0, 2.0]) + 1.0).abs() < 1e-12);
        // Covariance 2.5, sums of squares 5 and 5.
        assert!((of(&x, &[1.0, 3.0, 2.0, 4.0]) - 0.8).abs() < 1e-12);
    }

    #[test]
    fn constants_correlate_with_nothing() {
        assert_eq!(of(&[2.0; 4], &[1.0, 2.0, 3.0, 4.0]), 0.0);
        assert_eq!(of(&[], &[]), 0.0);
    }
}
