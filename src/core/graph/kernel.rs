//! The kernels of a task graph, and their arguments.

use std::ops::Range;
use std::sync::Arc;

use super::DatumId;
use crate::codelet::{Codelet, Cost, Name, Value};
use crate::machine::DeviceKind;

/// A kernel: its index in [`super::TaskGraph::kernels`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KernelId(pub usize);

/// An argument of a kernel, in the codelet's order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Argument {
    /// Memory that it reads.
    Input(DatumId),
    /// Memory that it writes, perhaps only in part. The memory holds zeros when
    /// the kernel starts.
    Output(DatumId),
    /// Memory of which it writes every byte and reads none that it has not
    /// written. The memory holds anything when the kernel starts, which saves
    /// the zeros of [`Argument::Output`].
    FullOutput(DatumId),
    /// Memory that it reads and writes: it reads `from` and leaves `to`, of the
    /// same length. Every other reader of `from` runs before it, and no other
    /// kernel overwrites `from`.
    InOut { from: DatumId, to: DatumId },
    /// A plain value or local memory, but no other memory.
    Value(Value),
    /// The memory of a datum that another argument reads or writes.
    Again(DatumId),
    /// A `u32`: the numbers of so many bytes from the begin of a row of a datum to that of
    /// the next one, in the memory in which the kernel gets it. The datum has a place.
    Stride { of: DatumId, number: u32 },
    /// A `u64`: the numbers of so many bytes before the one in this row and column of a datum
    /// that has a place, in the memory in which the kernel gets it.
    First {
        of: DatumId,
        number: u32,
        row: u64,
        column: u64,
    },
}

impl Argument {
    /// The datum that is read, if any.
    pub fn reads(&self) -> Option<DatumId> {
        match self {
            Self::Input(datum) | Self::InOut { from: datum, .. } => Some(*datum),
            Self::Output(_)
            | Self::FullOutput(_)
            | Self::Value(_)
            | Self::Again(_)
            | Self::Stride { .. }
            | Self::First { .. } => None,
        }
    }

    /// The datum that is written, if any.
    pub fn writes(&self) -> Option<DatumId> {
        match self {
            Self::Output(datum) | Self::FullOutput(datum) | Self::InOut { to: datum, .. } => {
                Some(*datum)
            }
            Self::Input(_)
            | Self::Value(_)
            | Self::Again(_)
            | Self::Stride { .. }
            | Self::First { .. } => None,
        }
    }
}

/// A codelet applied to data.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Its name in messages, traces and drawings.
    pub name: Name,
    pub codelet: Arc<Codelet>,
    /// The units of the launch.
    pub units: Range<u64>,
    /// In the codelet's order.
    pub arguments: Vec<Argument>,
    /// Operations, and bytes of memory traffic, of the launch.
    pub cost: Cost,
    /// The kind of device that it is to run on; `None` for any.
    pub prefers: Option<DeviceKind>,
}

impl Kernel {
    /// The data that it reads, each once, in the order of the arguments.
    pub fn inputs(&self) -> impl Iterator<Item = DatumId> + '_ {
        once(self.arguments.iter().map(Argument::reads))
    }

    /// The data whose memory it gets, in the order of the arguments.
    pub fn memories(&self) -> impl Iterator<Item = DatumId> + '_ {
        self.arguments.iter().filter_map(|argument| match argument {
            Argument::Again(datum) => Some(*datum),
            argument => argument.writes().or(argument.reads()),
        })
    }

    /// The data that it may write only in part; they begin with zeros.
    pub fn partial_outputs(&self) -> impl Iterator<Item = DatumId> + '_ {
        self.arguments.iter().filter_map(|argument| match argument {
            Argument::Output(datum) => Some(*datum),
            _ => None,
        })
    }

    /// The data that it writes, in the order of the arguments.
    pub fn outputs(&self) -> impl Iterator<Item = DatumId> + '_ {
        once(self.arguments.iter().map(Argument::writes))
    }
}

/// Each datum once, where it is first.
fn once(data: impl Iterator<Item = Option<DatumId>>) -> impl Iterator<Item = DatumId> {
    let mut seen = Vec::new();
    data.flatten().filter(move |datum| {
        let new = !seen.contains(datum);
        if new {
            seen.push(*datum);
        }
        new
    })
}
