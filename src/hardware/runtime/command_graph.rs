//! Launches with precedences among them, which are repeated as one command.

use std::sync::Arc;

use super::{HostSpan, Launch, RuntimeError};

/// A launch of a [`CommandGraph`].
#[derive(Clone, Debug)]
pub struct GraphLaunch {
    pub launch: Arc<Launch>,
    /// Indices of the launches that end before this one starts. They are before it.
    pub after: Vec<usize>,
}

/// Launches with precedences among them, which are repeated without a change. Launches
/// without a precedence between them may run in any order and at the same time.
#[derive(Clone, Debug)]
pub struct CommandGraph {
    launches: Vec<GraphLaunch>,
    /// The host memory among the arguments.
    host_spans: Vec<HostSpan>,
}

impl CommandGraph {
    /// A graph of these launches, at least one.
    ///
    /// # Errors
    /// [`RuntimeError::Call`] for no launches, and for one that is to come after itself or
    /// after a later one.
    pub fn new(launches: Vec<GraphLaunch>) -> Result<Self, RuntimeError> {
        let refuse = |why: String| RuntimeError::Call {
            device: "every device".to_owned(),
            call: "making a command graph",
            why,
        };
        if launches.is_empty() {
            return Err(refuse(
                "it has no launches; give it at least one".to_owned(),
            ));
        }
        for (index, launch) in launches.iter().enumerate() {
            if let Some(later) = launch.after.iter().find(|before| **before >= index) {
                return Err(refuse(format!(
                    "launch {index} is to come after launch {later}, which is not before it; \
                     list launches in an order in which they may run"
                )));
            }
        }
        let host_spans = launches.iter().flat_map(|of| of.launch.host_spans());
        Ok(Self {
            host_spans: host_spans.collect(),
            launches,
        })
    }

    /// Its launches, each after all that it comes after.
    pub fn launches(&self) -> &[GraphLaunch] {
        &self.launches
    }

    /// The host memory among the arguments.
    pub(super) fn host_spans(&self) -> &[HostSpan] {
        &self.host_spans
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codelet::{Cost, HostMemoryId, Memory, Value, zeros};
    use crate::runtime::{Command, CommandKind};

    fn launch(args: Vec<Value>, after: &[usize]) -> GraphLaunch {
        GraphLaunch {
            launch: Arc::new(Launch {
                codelet: Arc::new(zeros::codelet()),
                units: 0..1,
                args,
                cost: Cost::default(),
            }),
            after: after.to_vec(),
        }
    }

    #[test]
    fn launches_come_after_earlier_ones() {
        let graph = |after: &[&[usize]]| {
            let launches = after.iter().map(|after| launch(Vec::new(), after));
            CommandGraph::new(launches.collect())
        };
        assert!(graph(&[&[], &[0], &[0, 1]]).is_ok());
        for (after, part) in [
            (&[][..], "it has no launches"),
            (&[&[0][..]], "launch 0 is to come after launch 0"),
            (&[&[], &[2], &[]], "launch 1 is to come after launch 2"),
        ] {
            let error = graph(after).expect_err(part).to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn the_command_has_the_launches_and_their_host_memory() {
        let memory = HostMemoryId::fresh();
        let launches = vec![
            launch(vec![Value::Memory(Memory::Host(memory))], &[]),
            launch(vec![Value::U32(1)], &[0]),
        ];
        let command = Command::Graph(Arc::new(CommandGraph::new(launches).expect("a graph")));
        assert_eq!(command.kind(), CommandKind::Launch);
        assert_eq!((command.launches().count(), command.bytes()), (2, 0));
        assert!(!command.is_mixed());
        let spans: Vec<HostSpan> = command.host_spans().collect();
        assert_eq!(spans, [HostSpan::new(memory, 0..u64::MAX)]);
    }
}
