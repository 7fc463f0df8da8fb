//! Combining the nodes' results of a reduction along a binary tree (Unicorn, section III,
//! figure 3).

use super::{Action, Message};
use crate::cluster::NodeId;
use crate::cluster::task::TaskId;

/// A node's part in the tree.
#[derive(Clone, Debug, Default)]
pub(super) struct Combining {
    /// How many other nodes' results are combined with this node's.
    combined: usize,
    /// How many nodes send their results to this one, and the node that gets them all;
    /// `None` before the coordinator has sent its order, and when this node's part is done.
    part: Option<(usize, Option<NodeId>)>,
}

impl Combining {
    /// The coordinator has informed the nodes that have results. The one at place p sends its
    /// to that at p without its lowest bit.
    pub fn begin(&mut self, me: NodeId, nodes: &[NodeId], task: TaskId, actions: &mut Vec<Action>) {
        let Some(place) = nodes.iter().position(|&node| node == me) else {
            return;
        };
        let steps = (0..usize::BITS).map(|bit| 1usize << bit);
        let steps = steps.take_while(|step| place & step == 0 && *step < nodes.len());
        let children = steps.filter(|step| place + step < nodes.len()).count();
        let parent = (place > 0).then(|| nodes[place & (place - 1)]);
        self.part = Some((children, parent));
        self.advance(task, actions);
    }

    /// Another node's results are combined with this node's.
    pub fn combined(&mut self, task: TaskId, actions: &mut Vec<Action>) {
        self.combined += 1;
        self.advance(task, actions);
    }

    fn advance(&mut self, task: TaskId, actions: &mut Vec<Action>) {
        match self.part {
            Some((children, parent)) if children == self.combined => {
                self.part = None;
                actions.push(match parent {
                    Some(to) => Action::SendCombined { to },
                    None => Action::Send {
                        to: NodeId::FIRST,
                        message: Message::Combined { task },
                    },
                });
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every node sends once, and the first one has all, for any number of nodes.
    #[test]
    fn all_results_reach_the_first_node() {
        for count in 1..20 {
            let nodes: Vec<NodeId> = (0..count).map(|node| NodeId(node * 3)).collect();
            let mut parts = vec![Combining::default(); nodes.len()];
            let mut had: Vec<Vec<usize>> = (0..nodes.len()).map(|node| vec![node]).collect();
            let mut actions = Vec::new();
            let mut ended = None;
            for place in (0..nodes.len()).rev() {
                parts[place].begin(nodes[place], &nodes, TaskId(1), &mut actions);
                let mut from = place;
                while let Some(action) = actions.pop() {
                    let Action::SendCombined { to } = action else {
                        ended = Some(from);
                        continue;
                    };
                    let to = nodes.iter().position(|&node| node == to).unwrap();
                    let sent = std::mem::take(&mut had[from]);
                    had[to].extend(sent);
                    parts[to].combined(TaskId(1), &mut actions);
                    from = to;
                }
            }
            assert_eq!(ended, Some(0));
            had[0].sort();
            assert!(had[0].iter().copied().eq(0..nodes.len()));
        }
    }
}
