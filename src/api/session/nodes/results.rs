//! The results of a program over nodes, as values.

use bytemuck::Pod;
use thiserror::Error;

use crate::cluster::record::ClusterOutcome;
use crate::workload::cluster::program::{Program, Space};

/// The results of a program, at the first node; at the others there are none.
#[derive(Clone, Debug)]
pub struct Results {
    outcome: Option<ClusterOutcome>,
    /// The spaces that the program brings, the result first: the name of their elements' type,
    /// and their bytes.
    spaces: Vec<(usize, &'static str, Vec<u8>)>,
}

/// Why a result has no such elements.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ResultError {
    #[error("the result has elements of type {has}, and not {asked}; ask for Vec<{has}>")]
    Type {
        has: &'static str,
        asked: &'static str,
    },
    #[error("{space} is no result of the program; add it with Program::add_result")]
    NoResult { space: String },
}

impl Results {
    pub(super) fn new(
        program: &Program,
        outcome: Option<ClusterOutcome>,
        brought: Vec<(usize, Vec<u8>)>,
    ) -> Self {
        let spaces = (brought.into_iter())
            .map(|(space, bytes)| (space, program.element_type(space), bytes))
            .collect();
        Self { outcome, spaces }
    }

    /// The elements of the program's result, by rows; `None` if this is not the first node.
    ///
    /// # Errors
    /// Elements of another type.
    pub fn to_vec<T: Pod>(&self) -> Result<Option<Vec<T>>, ResultError> {
        match self.spaces.first() {
            Some((_, has, bytes)) => self.elements(has, bytes),
            None => Ok(None),
        }
    }

    /// The elements of a space that the program [brings](Program::add_result), by rows; `None`
    /// if this is not the first node.
    ///
    /// # Errors
    /// A space that it does not bring.
    pub fn of<T: Pod>(&self, space: Space<T>) -> Result<Option<Vec<T>>, ResultError> {
        let mut spaces = self.spaces.iter();
        match spaces.find(|(number, ..)| *number == space.number()) {
            Some((_, has, bytes)) => self.elements(has, bytes),
            None => Err(ResultError::NoResult {
                space: format!("{space:?}"),
            }),
        }
    }

    /// What the nodes did; `None` if this is not the first node.
    pub fn outcome(&self) -> Option<&ClusterOutcome> {
        self.outcome.as_ref()
    }

    fn elements<T: Pod>(
        &self,
        has: &'static str,
        bytes: &[u8],
    ) -> Result<Option<Vec<T>>, ResultError> {
        let asked = std::any::type_name::<T>();
        if has != asked {
            return Err(ResultError::Type { has, asked });
        }
        Ok((self.outcome.as_ref()).map(|_| bytemuck::pod_collect_to_vec(bytes)))
    }
}
