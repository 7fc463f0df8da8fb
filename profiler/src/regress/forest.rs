//! A random forest: grown by smartcore, kept and walked in a form of our own.

use ndarray::Array2;
use serde::{Deserialize, Serialize};
use smartcore::ensemble::random_forest_regressor::{
    RandomForestRegressor, RandomForestRegressorParameters,
};
use smartcore::linalg::basic::arrays::Array2 as _;
use smartcore::linalg::basic::matrix::DenseMatrix;

use super::FitError;

/// The mean of what many trees predict, each grown on rows drawn with
/// replacement.
///
/// Outside of the range of the training it predicts what it saw at the edge.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Forest {
    inputs: usize,
    trees: Vec<Vec<Node>>,
}

/// A node of a tree in depth-first order: the left child, for values up to the
/// threshold, is the next node. `[feature, right, value]` in files.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(from = "(u16, u32, f32)", into = "(u16, u32, f32)")]
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

impl From<Node> for (u16, u32, f32) {
    fn from(node: Node) -> (u16, u32, f32) {
        (node.feature, node.right, node.value)
    }
}

impl Forest {
    pub(super) fn inputs(&self) -> usize {
        self.inputs
    }

    pub(super) fn predict(&self, x: &[f64]) -> f64 {
        let sum: f64 = self.trees.iter().map(|tree| walk(tree, x)).sum();
        sum / self.trees.len() as f64
    }

    /// Every walk must end in a leaf: children lie behind their parents.
    pub(super) fn check(&self) -> Result<(), String> {
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
    let matrix = DenseMatrix::from_iterator(x.iter().copied(), x.nrows(), inputs, 0);
    let parameters = RandomForestRegressorParameters::default()
        .with_n_trees(usize::from(shape.trees))
        .with_max_depth(shape.depth)
        .with_min_samples_leaf(shape.min_leaf)
        .with_min_samples_split(2)
        .with_m((2 * inputs).div_ceil(3))
        .with_seed(seed);
    let grown: Grown =
        RandomForestRegressor::fit_with_weights(&matrix, &y.to_vec(), weights, parameters)
            .map_err(|error| failed(error.to_string()))?;
    let theirs = serde_json::to_value(&grown)
        .and_then(serde_json::from_value::<theirs::Forest>)
        .map_err(|error| failed(error.to_string()))?;
    let forest = Forest {
        inputs,
        trees: theirs
            .forest_regressor
            .trees
            .iter()
            .map(theirs::Tree::flat)
            .collect(),
    };
    forest.check().map_err(failed)?;
    Ok(forest)
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
        nodes: Vec<Node>,
    }

    #[derive(Deserialize)]
    struct Node {
        output: f64,
        split_feature: u16,
        split_value: Option<f64>,
        true_child: Option<usize>,
        false_child: Option<usize>,
    }

    impl Tree {
        /// Its nodes in depth-first order.
        pub fn flat(&self) -> Vec<super::Node> {
            let mut flat = Vec::with_capacity(self.nodes.len());
            self.push(0, &mut flat);
            flat
        }

        fn push(&self, index: usize, flat: &mut Vec<super::Node>) {
            let node = &self.nodes[index];
            let place = flat.len();
            flat.push(super::Node {
                feature: 0,
                right: 0,
                value: node.output as f32,
            });
            let split = (node.split_value, node.true_child, node.false_child);
            if let (Some(threshold), Some(left), Some(right)) = split {
                self.push(left, flat);
                flat[place] = super::Node {
                    feature: node.split_feature,
                    right: flat.len() as u32,
                    value: threshold as f32,
                };
                self.push(right, flat);
            }
        }
    }
}
