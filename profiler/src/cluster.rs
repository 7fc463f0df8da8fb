//! The choice of a model's features: of hundreds of correlated features a few distinct
//! ones (the paper's section 3.2, step 4).
//!
//! [`Features`] keeps what varies and correlates with the time;
//! [`Dendrogram`] groups what correlates with each other by hierarchical
//! agglomerative clustering; [`Selection`] has one feature a cluster.

use kodama::{Method, linkage};

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
/// Features merged step by step, the most alike first. The distance of two
/// features is 1 - |correlation|, that of two clusters the mean over their
/// pairs (average linkage).
#[derive(Clone, Debug, PartialEq)]
pub struct Dendrogram {
    features: usize,
    /// Two clusters that become one, and their distance, from 0 (they say the same) to 1. Of
    /// n features, cluster `i < n` is feature i alone, and cluster `n + s` is what step s
    /// made. Distances never fall.
    steps: Vec<(usize, usize, f64)>,
}

impl Dendrogram {
    /// Clusters features by their distances, which `distance` tells of each
    /// pair. What is not finite counts as the greatest distance, 1.
    pub fn of(features: usize, distance: impl Fn(usize, usize) -> f64) -> Self {
        let pairs = (0..features).flat_map(|a| (a + 1..features).map(move |b| (a, b)));
        let known = |d: f64| if d.is_finite() { d.max(0.0) } else { 1.0 };
        let mut condensed: Vec<f64> = pairs.map(|(a, b)| known(distance(a, b))).collect();
        let steps = match features {
            0 | 1 => Vec::new(),
            _ => linkage(&mut condensed, features, Method::Average)
                .steps()
                .iter()
                .map(|step| (step.cluster1, step.cluster2, step.dissimilarity))
                .collect(),
        };
        Self { features, steps }
    }

    /// Cuts the tree into `clusters` (at least 1, at most one a feature), and
    /// tells each feature's cluster. Clusters are numbered by their first
    /// features.
    pub fn cut(&self, clusters: usize) -> Vec<usize> {
        let n = self.features;
        let merges = n.saturating_sub(clusters.max(1));
        let mut parent: Vec<usize> = (0..n + merges).collect();
        for (step, (left, right, _)) in self.steps.iter().take(merges).enumerate() {
            for side in [*left, *right] {
                let root = root(&parent, side);
                parent[root] = n + step;
            }
        }
        let mut roots = Vec::new();
        let mut number = |feature| {
            let root = root(&parent, feature);
            roots.iter().position(|r| *r == root).unwrap_or_else(|| {
                roots.push(root);
                roots.len() - 1
            })
        };
        (0..n).map(&mut number).collect()
    }

    /// How many clusters there are in which nothing is further apart than
    /// `distance`.
    pub fn clusters_beyond(&self, distance: f64) -> usize {
        let merged = self.steps.iter().filter(|step| step.2 <= distance).count();
        self.features - merged
    }
}

fn root(parent: &[usize], mut cluster: usize) -> usize {
    while parent[cluster] != cluster {
        cluster = parent[cluster];
    }
    cluster
}

/// By how much a threshold is lowered at a time.
const STEP: f64 = 0.05;
/// Features closer than this count as one.
const SAME: f64 = 0.01;

/// The features that a model of so many inputs gets.
#[derive(Clone, Debug, PartialEq)]
pub struct Selection {
    /// One a cluster, in the order of the table's names.
    pub inputs: Vec<Feature>,
    /// The least |correlation| with the target of what was clustered.
    pub threshold: f64,
}

impl Features<'_> {
    /// Clusters the features whose |correlation| with the target is at least
    /// `threshold` (the paper's is 0.75, under its Figure 4) into `clusters`,
    /// and takes from each the feature of the greatest variance along with the
    /// target: its variance times its squared correlation, the first name
    /// among equals. Where a cluster's features correlate equally with the
    /// target, as they nearly do above a high threshold, this is the paper's
    /// greatest variance. Where the threshold had to be lowered, variance alone
    /// would choose a switch with two values, and leave out the size.
    ///
    /// The threshold is lowered by 0.05 until as many features pass as
    /// clusters are wanted, where those that differ only in name count once:
    /// a size in units, in bytes and in flops would otherwise be three
    /// clusters and leave out the number of workers. `None` if even then there
    /// are not so many. No clusters are no inputs.
    pub fn select(&self, clusters: usize, threshold: f64) -> Option<Selection> {
        if clusters == 0 {
            return Some(Selection {
                inputs: Vec::new(),
                threshold,
            });
        }
        let mut threshold = threshold;
        let mut tried = usize::MAX;
        loop {
            let passing = self.passing(threshold);
            if passing.len() >= clusters && passing.len() != tried {
                let dendrogram = self.dendrogram(&passing);
                if dendrogram.clusters_beyond(SAME) >= clusters {
                    let cut = dendrogram.cut(clusters);
                    let inputs = self.representatives(&passing, clusters, &cut);
                    return Some(Selection { inputs, threshold });
                }
                tried = passing.len();
            }
            if threshold <= 0.0 {
                return None;
            }
            // Twentieths, without the error of repeated subtraction.
            threshold = (((threshold - STEP) / STEP).round() * STEP).max(0.0);
        }
    }

    /// The features of these columns that vary, whatever they correlate with.
    pub fn of_columns(&self, columns: &[usize]) -> Selection {
        let features = self.features().iter();
        let inputs = features.filter(|feature| columns.contains(&feature.index));
        Selection {
            inputs: inputs.cloned().collect(),
            threshold: 0.0,
        }
    }

    /// How many features that differ in more than name there are.
    pub fn distinct(&self) -> usize {
        self.dendrogram(&self.passing(0.0)).clusters_beyond(SAME)
    }

    fn passing(&self, threshold: f64) -> Vec<usize> {
        let passes = |&p: &usize| self.features()[p].correlation.abs() >= threshold;
        (0..self.features().len()).filter(passes).collect()
    }

    fn representatives(&self, places: &[usize], clusters: usize, cut: &[usize]) -> Vec<Feature> {
        let mut best: Vec<Option<&Feature>> = vec![None; clusters];
        for (&place, &cluster) in places.iter().zip(cut) {
            let feature = &self.features()[place];
            if best[cluster].is_none_or(|known| self.represents(feature, known)) {
                best[cluster] = Some(feature);
            }
        }
        let mut inputs: Vec<Feature> = best.into_iter().flatten().cloned().collect();
        inputs.sort_by_key(|feature| feature.index);
        inputs
    }

    /// Whether the first stands for a cluster rather than the second. Equal
    /// columns may differ by rounding.
    fn represents(&self, a: &Feature, b: &Feature) -> bool {
        let along = |f: &Feature| f.variance * f.correlation * f.correlation;
        if (along(a) - along(b)).abs() <= 1e-9 * along(b) {
            return self.name(a) < self.name(b);
        }
        along(a) > along(b)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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

    /// Average linkage as it is defined: every mean over all pairs anew.
    fn brute_force(n: usize, distance: &impl Fn(usize, usize) -> f64) -> Vec<(Vec<usize>, f64)> {
        let mut clusters: Vec<Vec<usize>> = (0..n).map(|i| vec![i]).collect();
        let mut merges = Vec::new();
        while clusters.len() > 1 {
            let mut best = (f64::INFINITY, 0, 0);
            for a in 0..clusters.len() {
                for b in a + 1..clusters.len() {
                    let (x, y) = (&clusters[a], &clusters[b]);
                    let pairs = x.iter().flat_map(|&i| y.iter().map(move |&j| (i, j)));
                    let sum: f64 = pairs.map(|(i, j)| distance(i.min(j), i.max(j))).sum();
                    let mean = sum / (x.len() * y.len()) as f64;
                    if mean < best.0 {
                        best = (mean, a, b);
                    }
                }
            }
            let other = clusters.remove(best.2);
            clusters[best.1].extend(other);
            clusters[best.1].sort_unstable();
            merges.push((clusters[best.1].clone(), best.0));
        }
        merges
    }

    fn members(tree: &Dendrogram, cluster: usize) -> Vec<usize> {
        let n = tree.features;
        if cluster < n {
            return vec![cluster];
        }
        let (left, right, _) = tree.steps[cluster - n];
        let mut all = [members(tree, left), members(tree, right)].concat();
        all.sort_unstable();
        all
    }

    proptest! {
        #[test]
        fn it_is_average_linkage(
            n in 2_usize..9,
            values in proptest::collection::vec(0.0_f64..1.0, 81),
        ) {
            let distance = |a: usize, b: usize| values[a * 9 + b];
            let tree = Dendrogram::of(n, distance);
            let expected = brute_force(n, &distance);
            prop_assert_eq!(tree.steps.len(), n - 1);
            for (step, (together, distance)) in expected.iter().enumerate() {
                prop_assert_eq!(&members(&tree, n + step), together);
                prop_assert!((tree.steps[step].2 - distance).abs() < 1e-12);
            }
            for k in 1..=n {
                let labels = tree.cut(k);
                let mut undone: Vec<Vec<usize>> = (0..n).map(|i| vec![i]).collect();
                for (together, _) in &expected[..n - k] {
                    undone.retain(|c| !together.contains(&c[0]));
                    undone.push(together.clone());
                }
                prop_assert_eq!(labels.iter().max().unwrap() + 1, k);
                for cluster in undone {
                    let same = cluster.iter().all(|&i| labels[i] == labels[cluster[0]]);
                    prop_assert!(same, "{labels:?} {cluster:?}");
                }
            }
        }
    }

    #[test]
    fn planted_clusters_are_found() {
        // Features 0, 3, 6 ..., 1, 4, 7 ... and 2, 5, 8 ... belong together.
        let distance = |a: usize, b: usize| if a % 3 == b % 3 { 0.02 } else { 0.9 };
        let tree = Dendrogram::of(12, distance);
        let labels = tree.cut(3);
        assert_eq!(labels, (0..12).map(|i| i % 3).collect::<Vec<_>>());
        assert_eq!(tree.clusters_beyond(0.05), 3);
        assert_eq!(tree.clusters_beyond(0.95), 1);
        assert_eq!(tree.clusters_beyond(0.0), 12);
    }

    #[test]
    fn few_features_and_unknown_distances_are_no_reason_to_fail() {
        assert!(Dendrogram::of(0, |_, _| 0.0).steps.is_empty());
        assert!(Dendrogram::of(0, |_, _| 0.0).cut(4).is_empty());
        assert_eq!(Dendrogram::of(1, |_, _| 0.0).cut(4), [0]);
        let tree = Dendrogram::of(3, |_, b| if b == 2 { f64::NAN } else { 0.1 });
        assert_eq!(tree.cut(2), [0, 0, 1]);
        assert_eq!(tree.cut(9), [0, 1, 2]);
        assert_eq!(tree.cut(0), [0, 0, 0]);
    }

    /// Columns: the size thrice, the workers, a chunk, something binary that
    /// has nothing to do with the target.
    fn rows() -> (Vec<String>, Vec<Vec<f64>>, Vec<f64>) {
        let names = [
            "size_b",
            "size_a",
            "size_noisy",
            "workers",
            "chunk",
            "colour",
        ];
        let mut rows = Vec::new();
        let mut target = Vec::new();
        for size in [64.0, 128.0, 256.0, 512.0, 1024.0] {
            for workers in [1.0, 2.0, 4.0, 8.0] {
                for chunk in [1.0, 16.0] {
                    let n = rows.len() as f64;
                    let colour = f64::from(u8::from(rows.len() % 3 == 0));
                    let noisy = size * (1.0 + 0.03 * (n * 1.7).sin());
                    rows.push(vec![size * 8.0, size, noisy, workers, chunk, colour]);
                    target.push((size / workers * (1.0 + 0.1 * chunk)).ln());
                }
            }
        }
        (names.map(String::from).to_vec(), rows, target)
    }

    fn names_of<'a>(names: &'a [String], selection: &Selection) -> Vec<&'a str> {
        let name = |f: &Feature| names[f.index].as_str();
        selection.inputs.iter().map(name).collect()
    }

    #[test]
    fn one_feature_a_cluster_and_equals_by_name() {
        let (names, rows, target) = rows();
        let rows: Vec<&[f64]> = rows.iter().map(Vec::as_slice).collect();
        let features = Features::of(&names, &rows, &target);
        assert_eq!(features.distinct(), 4);
        let one = features.select(1, 0.7).unwrap();
        assert_eq!(one.threshold, 0.7);
        // The noisy copy spreads less over its range; the others are equal.
        assert_eq!(names_of(&names, &one), ["size_a"]);
        let three = features.select(3, 0.7).unwrap();
        assert_eq!(names_of(&names, &three), ["size_a", "workers", "chunk"]);
        assert!(three.threshold < 0.5, "{}", three.threshold);
        assert!(three.threshold > 0.0);
        let four = features.select(4, 0.7).unwrap();
        assert_eq!(
            names_of(&names, &four),
            ["size_a", "workers", "chunk", "colour"]
        );
        assert_eq!(features.select(5, 0.7), None);
        let none = features.select(0, 0.7).unwrap();
        assert!(none.inputs.is_empty());
    }

    #[test]
    fn the_threshold_is_lowered_no_further_than_needed() {
        let (names, rows, target) = rows();
        let rows: Vec<&[f64]> = rows.iter().map(Vec::as_slice).collect();
        let features = Features::of(&names, &rows, &target);
        let two = features.select(2, 0.75).unwrap();
        let workers = &features.features()[3];
        assert!(two.threshold <= workers.correlation.abs());
        assert!(two.threshold + STEP + 1e-9 > workers.correlation.abs());
    }
}
