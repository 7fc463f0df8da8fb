//! Grows random forests with smartcore.

use ndarray::Array2;
use smartcore::ensemble::random_forest_regressor::{
    RandomForestRegressor, RandomForestRegressorParameters,
};
use smartcore::error::Failed;
use smartcore::linalg::basic::arrays::Array2 as _;
use smartcore::linalg::basic::matrix::DenseMatrix;

use super::FitError;
use super::forest::{Forest, Node};

/// How to grow a forest; see [`Spec::Forest`](super::Spec::Forest).
pub(super) struct Shape {
    pub trees: u16,
    pub depth: u16,
    pub min_leaf: usize,
}

type Grown = RandomForestRegressor<f64, f64, DenseMatrix<f64>, Vec<f64>>;

/// Grows a forest. Each row is drawn in proportion to its weight. Two thirds
/// of the features are tried at each split: with few features, of which one is
/// the size, fewer would grow many trees that do not see it.
pub(super) fn fit(
    shape: &Shape,
    x: &Array2<f64>,
    y: &[f64],
    weights: &[f64],
    seed: u64,
) -> Result<Forest, FitError> {
    let failed = |reason: String| FitError::Solver {
        family: "forest",
        reason,
    };
    let inputs = x.ncols();
    if inputs > usize::from(u16::MAX) {
        return Err(failed(format!("{inputs} features are too many")));
    }
    let grown = grow(shape, x, y, weights, seed).map_err(|error| failed(error.to_string()))?;
    let theirs = serde_json::to_value(&grown)
        .and_then(serde_json::from_value::<theirs::Forest>)
        .map_err(|error| failed(error.to_string()))?;
    let trees = theirs.forest_regressor.trees.iter().map(|tree| {
        let mut nodes = Vec::with_capacity(tree.nodes.len());
        flatten(&tree.nodes, 0, &mut nodes);
        nodes
    });
    let forest = Forest {
        inputs,
        trees: trees.collect(),
    };
    forest.check().map_err(failed)?;
    Ok(forest)
}

fn grow(
    shape: &Shape,
    x: &Array2<f64>,
    y: &[f64],
    weights: &[f64],
    seed: u64,
) -> Result<Grown, Failed> {
    let parameters = RandomForestRegressorParameters::default()
        .with_n_trees(usize::from(shape.trees))
        .with_max_depth(shape.depth)
        .with_min_samples_leaf(shape.min_leaf)
        .with_min_samples_split(2)
        .with_m((2 * x.ncols()).div_ceil(3))
        .with_seed(seed);
    RandomForestRegressor::fit_with_weights(&dense(x), &y.to_vec(), weights, parameters)
}

fn dense(x: &Array2<f64>) -> DenseMatrix<f64> {
    DenseMatrix::from_iterator(x.iter().copied(), x.nrows(), x.ncols(), 0)
}

/// Puts their nodes from `index` down into depth-first order.
fn flatten(theirs: &[theirs::Node], index: usize, ours: &mut Vec<Node>) {
    let node = &theirs[index];
    let place = ours.len();
    ours.push(Node {
        feature: 0,
        right: 0,
        value: node.output as f32,
    });
    let split = (node.split_value, node.true_child, node.false_child);
    if let (Some(threshold), Some(left), Some(right)) = split {
        flatten(theirs, left, ours);
        ours[place] = Node {
            feature: node.split_feature,
            right: ours.len() as u32,
            value: threshold as f32,
        };
        flatten(theirs, right, ours);
    }
}

/// What smartcore keeps to itself, as its serialisation shows it.
mod theirs {
    use serde::Deserialize;

    #[derive(Deserialize)]
    pub struct Forest {
        pub forest_regressor: Trees,
    }

    #[derive(Deserialize)]
    pub struct Trees {
        pub trees: Vec<Tree>,
    }

    #[derive(Deserialize)]
    pub struct Tree {
        pub nodes: Vec<Node>,
    }

    #[derive(Deserialize)]
    pub struct Node {
        pub output: f64,
        pub split_feature: u16,
        pub split_value: Option<f64>,
        pub true_child: Option<usize>,
        pub false_child: Option<usize>,
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::profile;
    use super::*;

    const SHAPE: Shape = Shape {
        trees: 12,
        depth: 9,
        min_leaf: 2,
    };

    #[test]
    fn predicts_as_smartcore_does() {
        let (x, y) = profile(120, 21);
        let grown = grow(&SHAPE, &x, &y, &[1.0; 120], 3).unwrap();
        let ours = fit(&SHAPE, &x, &y, &[1.0; 120], 3).unwrap();
        let points = profile(80, 22).0;
        let expected = grown.predict(&dense(&points)).unwrap();
        for (row, expected) in points.rows().into_iter().zip(expected) {
            let found = ours.predict(&row.to_vec());
            // Files hold numbers of 7 digits.
            assert!((found - expected).abs() < 1e-5, "{found} {expected}");
        }
    }

    #[test]
    fn the_seed_decides() {
        let (x, y) = profile(60, 23);
        let fit = |seed| fit(&SHAPE, &x, &y, &[1.0; 60], seed).unwrap();
        assert_eq!(fit(1), fit(1));
        assert_ne!(fit(1), fit(2));
    }

    #[test]
    fn a_row_of_weight_zero_is_never_drawn() {
        let (x, mut y) = profile(60, 24);
        let mut weights = [1.0; 60];
        weights[13] = 0.0;
        let before = fit(&SHAPE, &x, &y, &weights, 5).unwrap();
        y[13] = 1e6;
        assert_eq!(before, fit(&SHAPE, &x, &y, &weights, 5).unwrap());
    }
}
