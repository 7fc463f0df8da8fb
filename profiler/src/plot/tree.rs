//! The layout of the branches of a dendrogram.

use super::PlotError;
use crate::cluster::Dendrogram;

/// A dendrogram's nodes in places. Nodes below the number of features are
/// these; the others are the merges in their order.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tree {
    /// Features from top to bottom, so that no two branches cross.
    pub leaves: Vec<usize>,
    /// Of each node: how far down it stands, in leaves.
    pub down: Vec<f64>,
    /// Of each node: the distance at which it was made, 0 for a feature.
    pub distance: Vec<f64>,
    /// Of each node: its cluster, counted from the top, if it is within one.
    pub cluster: Vec<Option<usize>>,
    /// A distance that lies between the last merge within clusters and the
    /// first of clusters.
    pub cut: f64,
}

impl Tree {
    /// Arranges a dendrogram that is cut into `clusters`.
    ///
    /// # Errors
    /// Merges that do not make one tree of all features.
    pub fn of(dendrogram: &Dendrogram, clusters: usize) -> Result<Self, PlotError> {
        check(dendrogram)?;
        let (n, steps) = (dendrogram.names.len(), &dendrogram.steps);
        let leaves = leaves(dendrogram);
        let mut down = vec![0.0; n + steps.len()];
        for (place, leaf) in leaves.iter().enumerate() {
            down[*leaf] = place as f64;
        }
        let mut distance = vec![0.0; n + steps.len()];
        for (step, merge) in steps.iter().enumerate() {
            down[n + step] = (down[merge.left] + down[merge.right]) / 2.0;
            distance[n + step] = merge.distance;
        }
        let clusters = clusters.clamp(1, n);
        let within = n - clusters;
        let labels = dendrogram.cut(clusters);
        let mut order: Vec<usize> = Vec::new();
        for leaf in &leaves {
            if !order.contains(&labels[*leaf]) {
                order.push(labels[*leaf]);
            }
        }
        let mut cluster: Vec<Option<usize>> = (labels.iter())
            .map(|label| order.iter().position(|known| known == label))
            .collect();
        for (step, merge) in steps.iter().enumerate() {
            cluster.push(cluster[merge.left].filter(|_| step < within));
        }
        let last = match within {
            0 => 0.0,
            _ => steps[within - 1].distance,
        };
        let next = steps.get(within).map_or(1.1 * last, |merge| merge.distance);
        Ok(Self {
            leaves,
            down,
            distance,
            cluster,
            cut: (last + next) / 2.0,
        })
    }
}

/// A tree may come from a file.
fn check(dendrogram: &Dendrogram) -> Result<(), PlotError> {
    let n = dendrogram.names.len();
    if n == 0 {
        return Err(PlotError::Empty {
            missing: "no features were clustered",
        });
    }
    let wrong = |why: String| Err(PlotError::Tree { why });
    if dendrogram.steps.len() + 1 != n {
        let steps = dendrogram.steps.len();
        return wrong(format!("{n} features in {steps} merges"));
    }
    let mut merged = vec![false; n + dendrogram.steps.len()];
    for (step, merge) in dendrogram.steps.iter().enumerate() {
        for side in [merge.left, merge.right] {
            if side >= n + step || merged[side] {
                return wrong(format!(
                    "merge {step} is of cluster {side}, which is not there"
                ));
            }
            merged[side] = true;
        }
        if !(merge.distance.is_finite() && merge.distance >= 0.0) {
            return wrong(format!("merge {step} is at distance {}", merge.distance));
        }
    }
    Ok(())
}

fn leaves(dendrogram: &Dendrogram) -> Vec<usize> {
    let n = dendrogram.names.len();
    let mut leaves = Vec::with_capacity(n);
    let mut open = vec![n + dendrogram.steps.len() - 1];
    while let Some(node) = open.pop() {
        match node.checked_sub(n) {
            None => leaves.push(node),
            Some(step) => {
                let merge = &dendrogram.steps[step];
                open.extend([merge.right, merge.left]);
            }
        }
    }
    leaves
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Merge;

    fn merge(left: usize, right: usize, distance: f64) -> Merge {
        Merge {
            left,
            right,
            distance,
            size: 2,
        }
    }

    /// 0 and 2 are alike, 1 and 3 less so.
    fn dendrogram() -> Dendrogram {
        Dendrogram {
            names: ["a", "b", "c", "d"].map(String::from).to_vec(),
            steps: vec![merge(0, 2, 0.1), merge(1, 3, 0.3), merge(4, 5, 0.8)],
        }
    }

    #[test]
    fn branches_do_not_cross_and_clusters_hang_together() {
        let tree = Tree::of(&dendrogram(), 2).unwrap();
        assert_eq!(tree.leaves, [0, 2, 1, 3]);
        assert_eq!(tree.down, [0.0, 2.0, 1.0, 3.0, 0.5, 2.5, 1.5]);
        let (first, second) = (Some(0), Some(1));
        assert_eq!(
            tree.cluster,
            [first, second, first, second, first, second, None]
        );
        assert!((tree.cut - 0.55).abs() < 1e-12);
    }

    #[test]
    fn any_number_of_clusters_can_be_cut() {
        let cut = |clusters| Tree::of(&dendrogram(), clusters).unwrap().cut;
        assert!((cut(4) - 0.05).abs() < 1e-12);
        assert!(cut(1) > 0.8);
        assert_eq!(cut(0), cut(1));
        assert_eq!(cut(9), cut(4));
        let lone = Dendrogram {
            names: vec!["a".into()],
            steps: Vec::new(),
        };
        assert_eq!(Tree::of(&lone, 1).unwrap().leaves, [0]);
    }

    #[test]
    fn a_damaged_tree_is_refused() {
        let damaged = |damage: &dyn Fn(&mut Dendrogram)| {
            let mut dendrogram = dendrogram();
            damage(&mut dendrogram);
            Tree::of(&dendrogram, 2).unwrap_err().to_string()
        };
        assert!(damaged(&|d| d.names.clear()).contains("no features"));
        assert!(damaged(&|d| d.steps.truncate(2)).contains("4 features in 2 merges"));
        assert!(damaged(&|d| d.steps[1].left = 0).contains("merge 1 is of cluster 0"));
        assert!(damaged(&|d| d.steps[0].left = 5).contains("merge 0 is of cluster 5"));
        assert!(damaged(&|d| d.steps[0].distance = f64::NAN).contains("distance NaN"));
    }
}
