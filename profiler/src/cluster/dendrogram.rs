//! The tree of features that correlation clusters.

use kodama::{Method, linkage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Features merged step by step, the most alike first. The distance of two
/// features is 1 - |correlation|, that of two clusters the mean over their
/// pairs (average linkage).
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Dendrogram {
    /// The features.
    pub names: Vec<String>,
    /// One merge fewer than there are features; distances never fall.
    pub steps: Vec<Merge>,
}

/// Two clusters become one. Of n features, cluster `i < n` is feature i alone,
/// and cluster `n + s` is what step s made.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Merge {
    pub left: usize,
    pub right: usize,
    /// From 0 (they say the same) to 1.
    pub distance: f64,
    /// Features in the new cluster.
    pub size: usize,
}

impl Dendrogram {
    /// Clusters features by their distances, which `distance` tells of each
    /// pair. What is not finite counts as the greatest distance, 1.
    pub fn of(names: Vec<String>, distance: impl Fn(usize, usize) -> f64) -> Self {
        let n = names.len();
        if n < 2 {
            return Self {
                names,
                steps: Vec::new(),
            };
        }
        let pairs = (0..n).flat_map(|a| (a + 1..n).map(move |b| (a, b)));
        let known = |d: f64| if d.is_finite() { d.max(0.0) } else { 1.0 };
        let mut condensed: Vec<f64> = pairs.map(|(a, b)| known(distance(a, b))).collect();
        let tree = linkage(&mut condensed, n, Method::Average);
        let steps = tree.steps().iter().map(|step| Merge {
            left: step.cluster1,
            right: step.cluster2,
            distance: step.dissimilarity,
            size: step.size,
        });
        Self {
            steps: steps.collect(),
            names,
        }
    }

    /// Cuts the tree into `clusters` (at least 1, at most one a feature), and
    /// tells each feature's cluster. Clusters are numbered by their first
    /// features.
    pub fn cut(&self, clusters: usize) -> Vec<usize> {
        let n = self.names.len();
        let merges = n.saturating_sub(clusters.max(1));
        let mut parent: Vec<usize> = (0..n + merges).collect();
        for (step, merge) in self.steps.iter().take(merges).enumerate() {
            for side in [merge.left, merge.right] {
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
        let merged = self.steps.iter().filter(|s| s.distance <= distance).count();
        self.names.len() - merged
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

    fn names(n: usize) -> Vec<String> {
        (0..n).map(|i| format!("f{i}")).collect()
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
        let n = tree.names.len();
        if cluster < n {
            return vec![cluster];
        }
        let merge = &tree.steps[cluster - n];
        let mut all = [members(tree, merge.left), members(tree, merge.right)].concat();
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
            let tree = Dendrogram::of(names(n), distance);
            let expected = brute_force(n, &distance);
            prop_assert_eq!(tree.steps.len(), n - 1);
            for (step, (together, distance)) in expected.iter().enumerate() {
                prop_assert_eq!(&members(&tree, n + step), together);
                prop_assert!((tree.steps[step].distance - distance).abs() < 1e-12);
                prop_assert_eq!(tree.steps[step].size, together.len());
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
        let tree = Dendrogram::of(names(12), distance);
        let labels = tree.cut(3);
        assert_eq!(labels, (0..12).map(|i| i % 3).collect::<Vec<_>>());
        assert_eq!(tree.clusters_beyond(0.05), 3);
        assert_eq!(tree.clusters_beyond(0.95), 1);
        assert_eq!(tree.clusters_beyond(0.0), 12);
    }

    #[test]
    fn few_features_and_unknown_distances_are_no_reason_to_fail() {
        assert!(Dendrogram::of(Vec::new(), |_, _| 0.0).steps.is_empty());
        assert!(Dendrogram::of(Vec::new(), |_, _| 0.0).cut(4).is_empty());
        assert_eq!(Dendrogram::of(names(1), |_, _| 0.0).cut(4), [0]);
        let tree = Dendrogram::of(names(3), |_, b| if b == 2 { f64::NAN } else { 0.1 });
        assert_eq!(tree.cut(2), [0, 0, 1]);
        assert_eq!(tree.cut(9), [0, 1, 2]);
        assert_eq!(tree.cut(0), [0, 0, 0]);
    }
}
