//! Spreading: which node computes which subtasks of a task.
//!
//! Each policy is a pure state machine in a file of its own. It learns what happened, and
//! gives orders through the [`TaskState`]: give subtasks to a node, ask for some back, have
//! one computed at a second node. It knows no messages and reads no clock. In a node,
//! devices take subtasks from the node's queue ([`crate::cluster::protocol`]).

mod data;
mod ledger;
mod paces;
pub mod rate;
mod state;
mod static_shares;
mod steal;
mod together;

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use ledger::{BrokenRule, Completion, Ledger, Runs};
pub use state::{Network, Order, TaskState};
pub use static_shares::StaticShares;
pub use steal::Steal;
pub use together::Together;

use crate::cluster::NodeId;
use crate::time::Nanos;

/// What a device does when it has ended a subtask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Next {
    /// It computes another one.
    Computes,
    /// It waits: other nodes' data have not come.
    Waits,
    /// Its node has no more subtasks.
    Nothing,
}

/// A subtask is done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Finished {
    pub node: NodeId,
    /// The device, by its place in the node's list.
    pub device: usize,
    pub subtask: u64,
    /// The device's time.
    pub took: Nanos,
    pub next: Next,
    /// Whether this result counts, as no other node was faster.
    pub counts: bool,
}

/// How a policy's requests for other nodes' work fared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    pub asked: u64,
    /// Requests that brought at least one subtask.
    pub brought: u64,
}

/// A policy that spreads subtasks over nodes. Each of its functions is called when the
/// state has been brought up to date.
pub trait Spread: Send {
    /// As users write it.
    fn name(&self) -> &'static str;

    /// Whether it asks where data are. Finding out takes a while for large tasks.
    fn wants_data(&self) -> bool {
        false
    }

    /// How many tasks of a chain may be begun and not ended. With 1, all subtasks of a task
    /// become free at once, when the task before it has ended.
    fn window(&self) -> usize {
        1
    }

    /// A task or a chain of tasks begins: its subtasks are free, but for those of a chain that
    /// wait for others.
    fn begin(&mut self, state: &mut TaskState);

    /// These subtasks of a chain are free now, as what they read is final.
    fn freed(&mut self, subtasks: &[u64], state: &mut TaskState);

    /// A subtask is done.
    fn done(&mut self, finished: &Finished, state: &mut TaskState);

    /// A node has given subtasks back, which are free now, and kept others that it had
    /// begun. A node whose last device has failed gives all back without being asked.
    fn revoked(
        &mut self,
        node: NodeId,
        subtasks: &[Range<u64>],
        kept: &[Range<u64>],
        state: &mut TaskState,
    );

    /// A node is lost. What it had or had done is free, unless another node has it.
    fn lost(&mut self, node: NodeId, state: &mut TaskState);

    /// A device of a node has failed.
    fn device_lost(&mut self, node: NodeId, device: usize, state: &mut TaskState);

    /// The time that it asked for has come.
    fn woken(&mut self, state: &mut TaskState);

    /// Its requests for other nodes' work in all tasks.
    fn requests(&self) -> Requests {
        Requests::default()
    }
}

/// A policy between nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NamedSpread {
    /// [`Together`], the default.
    #[default]
    Together,
    /// [`Together`] without regard to where data are.
    Oblivious,
    /// [`StaticShares`].
    Static,
    /// [`Steal`].
    Steal,
}

const NAMES: [(&str, NamedSpread); 4] = [
    ("together", NamedSpread::Together),
    ("oblivious", NamedSpread::Oblivious),
    ("static", NamedSpread::Static),
    ("steal", NamedSpread::Steal),
];

/// Why a text is not a policy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` is not a policy between nodes; known are together, oblivious, static and steal")]
pub struct SpreadNameError(String);

impl FromStr for NamedSpread {
    type Err = SpreadNameError;

    fn from_str(text: &str) -> Result<Self, SpreadNameError> {
        let found = NAMES.into_iter().find(|(name, _)| *name == text.trim());
        found
            .map(|(_, spread)| spread)
            .ok_or_else(|| SpreadNameError(text.to_owned()))
    }
}

impl fmt::Display for NamedSpread {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let name = NAMES.into_iter().find(|(_, spread)| spread == self);
        f.pad(name.map_or("", |(name, _)| name))
    }
}

impl NamedSpread {
    /// All policies.
    pub fn all() -> impl Iterator<Item = Self> {
        NAMES.into_iter().map(|(_, spread)| spread)
    }

    /// The policy. `seed` is that of random choices.
    pub fn spread(self, seed: u64) -> Box<dyn Spread> {
        match self {
            Self::Together => Box::new(Together::new(true)),
            Self::Oblivious => Box::new(Together::new(false)),
            Self::Static => Box::new(StaticShares),
            Self::Steal => Box::new(Steal::new(seed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_written() {
        for named in NamedSpread::all() {
            assert_eq!(named.to_string().parse(), Ok(named));
            assert_eq!(named.spread(0).name(), named.to_string());
        }
        let error = "equal".parse::<NamedSpread>().unwrap_err();
        assert!(
            error.to_string().starts_with("`equal` is not a policy"),
            "{error}"
        );
    }
}
