//! A kernel that a user brings, as work that can be divided: any NDRange kernel
//! of one to three dimensions.
//!
//! It is divided along one dimension, the *axis*, into units of one or several
//! work-groups. A device computes a range of units as one launch with a global
//! offset, on buffers that are as large as the whole needs, so indices are
//! those of the undivided launch; `preamble` makes what the kernel asks for
//! (its group, the number of groups, the global size) so as well.
//!
//! What can be divided, and which part of a buffer a unit touches, cannot be
//! seen in a source for certain. An engine finds it out by running parts of
//! the kernel and tells it here ([`UserKernel::divided`], [`Slices`]).
//!
//! * `axis` is the arithmetic of units, `codelet` makes launches of them;
//!   [`compare`] tells whether two results agree, `sink` takes them.

mod axis;
mod codelet;
pub mod compare;
mod divisible;
mod preamble;
mod sink;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

pub use axis::{Axis, MOST_UNITS};
pub use sink::Sink;

use super::Divisible;
use crate::codelet::{Codelet, Memory, RawValue, Value};
use crate::graph::spec::source::KernelInfo;
use crate::graph::spec::{Argument, Buffer, Kernel, fill};

/// Which buffers are divided as the work is: of these, unit `u` touches only
/// its slice. By position; the others are whole everywhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slices {
    /// Buffers that are read, of which a unit needs its slice only.
    pub read: Vec<usize>,
    /// Buffers that are written, of which a unit writes its slice only.
    pub written: Vec<usize>,
    /// Whether a unit's results do not depend on what was in the output
    /// buffers, so that it can be computed again in place.
    pub pure: bool,
}

/// A user's kernel with its data. See the module's page.
#[derive(Clone, Debug)]
pub struct UserKernel {
    kernel: Kernel,
    info: KernelInfo,
    /// The groups that it is launched in, chosen here where the file leaves
    /// them open and the kernel asks for them.
    local: Option<Vec<u64>>,
    /// Groups that are only quick, where the kernel does not care: drivers that
    /// choose by themselves choose anew for each length of a part, and some
    /// compile anew for that.
    quick: Option<Vec<u64>>,
    axis: Axis,
    slices: Slices,
    codelet: Arc<Codelet>,
    seed: u64,
    /// Contents that users bring, by position.
    contents: BTreeMap<usize, Arc<[u8]>>,
    /// Who wants the results.
    sink: Option<Sink>,
}

impl UserKernel {
    /// A kernel of a specification; `info` is what its source says of it.
    /// Buffers that are read begin with random numbers of this seed. It is not
    /// divided before [`divided`](Self::divided) says how.
    pub fn new(kernel: Kernel, info: KernelInfo, seed: u64) -> Self {
        let local = kernel.local.clone().or_else(|| {
            (info.required_local.as_ref())
                .map(|local| local[..kernel.global.len()].to_vec())
                .or_else(|| info.uses_groups.then(|| axis::groups(&kernel.global)))
        });
        let quick = match &local {
            Some(_) => None,
            None => axis::quick_groups(&kernel.global),
        };
        let axis = Axis::whole(&kernel.global, local.as_deref());
        Self {
            codelet: codelet::codelet(&kernel, &info, [local.as_deref(), quick.as_deref()], axis),
            kernel,
            info,
            local,
            quick,
            axis,
            slices: Slices::default(),
            seed,
            contents: BTreeMap::new(),
            sink: None,
        }
    }

    /// The same, with the results going to `sink`.
    pub fn with_sink(self, sink: Sink) -> Self {
        Self {
            sink: Some(sink),
            ..self
        }
    }

    /// Hands on what a written buffer has at the end.
    pub fn deliver(&self, position: usize, bytes: &[u8]) {
        if let Some(Sink(take)) = &self.sink {
            take(position, bytes);
        }
    }

    /// The same, divided along an axis into units that touch these slices.
    pub fn divided(self, axis: Axis, slices: Slices) -> Self {
        Self {
            codelet: codelet::codelet(&self.kernel, &self.info, self.groups(), axis),
            axis,
            slices,
            ..self
        }
    }

    /// The same, with these bytes in the buffer at a position, which must be
    /// as many as it has.
    ///
    /// # Errors
    /// The bytes that the buffer has, if the number is another, or `None` if
    /// there is no such buffer.
    pub fn with_contents(mut self, position: usize, bytes: Arc<[u8]>) -> Result<Self, Option<u64>> {
        let buffer = self.buffers().find(|(at, _)| *at == position);
        let wanted = buffer.ok_or(None)?.1.bytes();
        if bytes.len() as u64 != wanted {
            return Err(Some(wanted));
        }
        self.contents.insert(position, bytes);
        Ok(self)
    }

    /// The ways to divide it, the best first: along the dimension that varies
    /// slowest in memory, in most kernels the last one.
    pub fn axes(&self) -> Vec<Axis> {
        let dimensions = (0..self.kernel.global.len()).rev();
        dimensions
            .map(|dimension| {
                let groups = self.local.as_deref().or(self.quick.as_deref());
                Axis::of(dimension, &self.kernel.global, groups)
            })
            .filter(|axis| axis.units() > 1)
            .collect()
    }

    /// The specification that it is of.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// What its source says of it.
    pub fn info(&self) -> &KernelInfo {
        &self.info
    }

    /// Work-items of a group; `None`: the driver chooses.
    pub fn local(&self) -> Option<&[u64]> {
        self.local.as_deref()
    }

    fn groups(&self) -> [Option<&[u64]>; 2] {
        [self.local.as_deref(), self.quick.as_deref()]
    }

    /// The launches for a range of units: one, or where the last unit is no
    /// whole number of groups, that one by itself.
    pub fn launches(&self, units: &Range<u64>) -> Vec<Range<u64>> {
        let last = self.units().saturating_sub(1);
        let quick = (self.quick.as_ref()).and_then(|quick| quick.get(self.axis.dimension));
        let items = self.axis.items(&(last..last + 1));
        let ragged = quick.is_some_and(|group| !(items.end - items.start).is_multiple_of(*group));
        match ragged && units.start < last && units.end > last {
            true => vec![units.start..last, last..units.end],
            false => vec![units.clone()],
        }
    }

    /// How it is divided.
    pub fn axis(&self) -> Axis {
        self.axis
    }

    /// What its units touch.
    pub fn slices(&self) -> &Slices {
        &self.slices
    }

    /// Work-items of the whole launch.
    pub fn items(&self) -> u64 {
        self.kernel.global.iter().product()
    }

    /// Its buffers, with their positions.
    pub fn buffers(&self) -> impl Iterator<Item = (usize, &Buffer)> {
        self.kernel.buffers()
    }

    /// Whether what it reads changes from step to step.
    pub fn iterates(&self) -> bool {
        self.buffers()
            .any(|(_, buffer)| buffer.direction.reads() && buffer.direction.writes())
    }

    /// The bytes of a buffer that these units touch, if the buffer is divided.
    pub fn slice(&self, buffer: &Buffer, units: &Range<u64>) -> Option<Range<u64>> {
        self.axis.slice(buffer.bytes(), units)
    }

    /// What a buffer begins with: random numbers if it is read, or what the
    /// user brought; zeros if it is only written.
    pub fn fill(&self, position: usize, bytes: &mut [u8]) {
        let buffer = self.buffers().find(|(at, _)| *at == position);
        match (self.contents.get(&position), buffer) {
            (Some(given), Some((_, buffer))) => {
                let bytes = &mut bytes[..buffer.bytes() as usize];
                bytes.copy_from_slice(given);
            }
            (None, Some((_, buffer))) if buffer.direction.reads() => {
                let seed = self.seed.wrapping_add(position as u64);
                let indices = fill::indices(&self.kernel);
                fill::random(buffer.element.base, indices, seed, bytes);
            }
            _ => bytes.fill(0),
        }
    }

    /// The arguments of a launch on these memories, one for each buffer in the
    /// order of their positions.
    pub fn args(&self, memories: &[Memory]) -> Vec<Value> {
        let mut memories = memories.iter();
        let value = |argument: &Argument| match argument {
            Argument::Buffer(_) => memories.next().map(|memory| Value::Memory(*memory)),
            Argument::Scalar { bytes, .. } => RawValue::new(bytes).map(Value::Raw),
            Argument::Local { bytes, .. } => Some(Value::Local(*bytes)),
        };
        self.kernel.arguments.iter().filter_map(value).collect()
    }

    /// Bytes of all buffers.
    pub fn bytes(&self) -> u64 {
        self.buffers().map(|(_, buffer)| buffer.bytes()).sum()
    }
}
