//! The tree of features that correlation clusters.

use kodama::{Method, linkage};
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
}
