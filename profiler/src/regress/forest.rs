//! A random forest, in the form of model files.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The mean of what many trees predict, each grown on rows drawn with
/// replacement.
///
/// Outside of the range of the training it predicts what it saw at the edge.
#[derive(Clone, Debug, Deserialize, PartialEq, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Forest {
    pub(super) inputs: usize,
    pub(super) trees: Vec<Vec<Node>>,
}

/// A node of a tree in depth-first order: the left child, for values up to the
/// threshold, is the next node. `[feature, right, value]` in files.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, JsonSchema, Serialize)]
#[serde(from = "(u16, u32, f32)", into = "(u16, u32, f64)")]
pub(super) struct Node {
    pub feature: u16,
    /// The index of the right child, or 0 for a leaf.
    pub right: u32,
    /// The threshold, or what a leaf predicts.
    pub value: f32,
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

#[cfg(test)]
mod tests {
    use super::*;

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
