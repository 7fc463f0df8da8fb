//! Random forests: grown with smartcore, kept in a form of our own.

use ndarray::Array2;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use smartcore::ensemble::random_forest_regressor::{
    RandomForestRegressor, RandomForestRegressorParameters,
};
use smartcore::error::Failed;
use smartcore::linalg::basic::arrays::Array2 as _;
use smartcore::linalg::basic::matrix::DenseMatrix;

use super::{FitError, Regression};

/// The mean of what many trees predict, each grown on rows drawn with
/// replacement.
///
/// Outside of the range of the training it predicts what it saw at the edge.
#[derive(Clone, Debug, Deserialize, PartialEq, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Forest {
    inputs: usize,
    trees: Vec<Vec<Node>>,
}

/// A node of a tree in depth-first order: the left child, for values up to the
/// threshold, is the next node. `[feature, right, value]` in files.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, JsonSchema, Serialize)]
#[serde(from = "(u16, u32, f32)", into = "(u16, u32, f64)")]
struct Node {
    feature: u16,
    /// The index of the right child, or 0 for a leaf.
    right: u32,
    /// The threshold, or what a leaf predicts.
    value: f32,
}

impl From<(u16, u32, f32)> for Node {
    fn from((feature, right, value): (u16, u32, f32)) -> Node {
        Node {
            feature,
            right,
            value,
        }
    }
}

impl From<Node> for (u16, u32, f64) {
    /// As 64 bits with the few digits that tell one 32-bit number from the
    /// next: half of a file would be the others.
    fn from(node: Node) -> (u16, u32, f64) {
        let short = node.value.to_string().parse();
        (node.feature, node.right, short.unwrap_or(node.value.into()))
    }
}

impl Regression for Forest {
    fn inputs(&self) -> usize {
        self.inputs
    }

    fn predict(&self, x: &[f64]) -> f64 {
        let sum: f64 = self.trees.iter().map(|tree| walk(tree, x)).sum();
        sum / self.trees.len() as f64
    }

    /// Every walk must end in a leaf: children lie behind their parents.
    fn check(&self) -> Result<(), String> {
        if self.trees.is_empty() {
            return Err("the forest has no trees".into());
        }
        for (number, tree) in self.trees.iter().enumerate() {
            let sound = |(index, node): (usize, &Node)| {
                let right = node.right as usize;
                let inner = right > index + 1
                    && right < tree.len()
                    && usize::from(node.feature) < self.inputs;
                node.value.is_finite() && (right == 0 || inner)
            };
            if tree.is_empty() || !tree.iter().enumerate().all(sound) {
                return Err(format!("tree {number} of the forest is damaged"));
            }
        }
        Ok(())
    }
}

fn walk(tree: &[Node], x: &[f64]) -> f64 {
    let mut index = 0;
    loop {
        let node = &tree[index];
        if node.right == 0 {
            return f64::from(node.value);
        }
        index = if x[usize::from(node.feature)] <= f64::from(node.value) {
            index + 1
        } else {
            node.right as usize
        };
    }
}

/// Trees, their depth, and the fewest rows of a leaf; see [`Spec::Forest`](super::Spec::Forest).
type Shape = (u16, u16, usize);

type Grown = RandomForestRegressor<f64, f64, DenseMatrix<f64>, Vec<f64>>;

/// Grows a forest. Each row is drawn in proportion to its weight. Two thirds
/// of the features are tried at each split: with few features, of which one is
/// the size, fewer would grow many trees that do not see it.
pub(super) fn fit(
    shape: Shape,
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
    (trees, depth, min_leaf): Shape,
    x: &Array2<f64>,
    y: &[f64],
    weights: &[f64],
    seed: u64,
) -> Result<Grown, Failed> {
    let parameters = RandomForestRegressorParameters::default()
        .with_n_trees(usize::from(trees))
        .with_max_depth(depth)
        .with_min_samples_leaf(min_leaf)
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

    const SHAPE: Shape = (12, 9, 2);

    #[test]
    fn predicts_as_smartcore_does() {
        let (x, y) = profile(120, 21);
        let grown = grow(SHAPE, &x, &y, &[1.0; 120], 3).unwrap();
        let ours = fit(SHAPE, &x, &y, &[1.0; 120], 3).unwrap();
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
        let fit = |seed| fit(SHAPE, &x, &y, &[1.0; 60], seed).unwrap();
        assert_eq!(fit(1), fit(1));
        assert_ne!(fit(1), fit(2));
    }

    #[test]
    fn a_row_of_weight_zero_is_never_drawn() {
        let (x, mut y) = profile(60, 24);
        let mut weights = [1.0; 60];
        weights[13] = 0.0;
        let before = fit(SHAPE, &x, &y, &weights, 5).unwrap();
        y[13] = 1e6;
        assert_eq!(before, fit(SHAPE, &x, &y, &weights, 5).unwrap());
    }

    #[test]
    fn damaged_trees_are_refused() {
        let sound = r#"{"inputs":2,"trees":[[[1,2,0.5],[0,0,-1.0],[0,0,1.0]]]}"#;
        let read = |text: &str| serde_json::from_str::<Forest>(text).unwrap().check();
        assert_eq!(read(sound), Ok(()));
        for (part, damage) in [
            ("[1,2,0.5]", "[2,2,0.5]"),
            ("[1,2,0.5]", "[1,3,0.5]"),
            ("[1,2,0.5]", "[1,1,0.5]"),
            ("[0,0,1.0]", "[0,1,1.0]"),
            ("[[1,2,0.5],[0,0,-1.0],[0,0,1.0]]", ""),
            ("[[1,2,0.5],[0,0,-1.0],[0,0,1.0]]", "[]"),
        ] {
            assert!(read(&sound.replace(part, damage)).is_err(), "{damage}");
        }
    }
}
