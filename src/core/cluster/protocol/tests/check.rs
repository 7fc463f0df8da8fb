//! What nodes have, element by element, and what they should have.

use std::collections::HashMap;

use crate::cluster::NodeId;
use crate::cluster::space::{SpaceBlock, SpaceId, Spaces};
use crate::cluster::task::Task;

use super::{RandomTask, SIDE};

/// The contents of elements.
pub type Contents = HashMap<(SpaceId, u64), u64>;

/// The same by the subtask of a chain that wrote them; none of what was there before.
pub type Versions = HashMap<(Option<u64>, (SpaceId, u64)), u64>;

/// The elements of a part.
pub fn elements(part: &SpaceBlock) -> impl Iterator<Item = (SpaceId, u64)> + '_ {
    let rows = part.block.rows.clone();
    let elements = rows.flat_map(|row| part.block.columns.clone().map(move |c| row * SIDE + c));
    elements.map(|element| (part.space, element))
}

/// What a subtask of a task writes; a number that no other one does.
pub fn value(task: usize, subtask: u64) -> u64 {
    (task as u64 + 1) * 1_000 + subtask
}

/// The contents at the begin of each task, and at the end of the last one.
pub fn reference(
    spaces: &Spaces,
    tasks: &[std::sync::Arc<RandomTask>],
    count: u32,
) -> Vec<Contents> {
    let mut contents = Contents::new();
    for space in (0..count).map(SpaceId) {
        let whole = spaces.extent(space).whole();
        for (block, _) in spaces.directory(space).holders(&whole) {
            let part = SpaceBlock { space, block };
            contents.extend(elements(&part).map(|element| (element, 0)));
        }
    }
    let mut all = vec![contents];
    for (number, task) in tasks.iter().enumerate() {
        let mut next = all[number].clone();
        for subtask in 0..task.count() {
            let written = if task.reduces() { 0 } else { subtask };
            for part in task.writes(subtask) {
                next.extend(elements(&part).map(|element| (element, value(number, written))));
            }
        }
        all.push(next);
    }
    all
}

/// What a node has before the first task.
pub fn first_contents(
    spaces: &Spaces,
    count: u32,
    me: NodeId,
    successor: impl Fn(NodeId) -> NodeId,
) -> Contents {
    let mut contents = Contents::new();
    for space in (0..count).map(SpaceId) {
        let whole = spaces.extent(space).whole();
        for (block, holder) in spaces.directory(space).holders(&whole) {
            if successor(holder.node) == me {
                let part = SpaceBlock { space, block };
                contents.extend(elements(&part).map(|element| (element, 0)));
            }
        }
    }
    contents
}
