//! A user's OpenCL kernel as a divisible workload: any NDRange kernel of one to three
//! dimensions.
//!
//! The kernel is divided along one dimension, the *axis*, into units of one or several
//! work-groups. A device computes a range of units as one launch with a global offset.
//! Its buffers have their full size, so indices equal those of the undivided launch.
//! Code before its source corrects the group numbers, the number of groups and the global size.
//!
//! The source does not show for certain how a kernel can be divided, and which part of
//! a buffer a unit uses. An engine determines both by running parts of the kernel, and
//! passes the result to [`UserKernel::divided`] ([`Slices`]).
//!
//! * `axis` has the arithmetic of units. `graph` has whole
//!   launches as a task graph. [`compare`] compares results, and a [`Sink`] receives them.

mod axis;
pub mod compare;
mod graph;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

pub use super::Sink;
pub use axis::{Axis, Extent, MOST_UNITS, ranges, work_items};

use super::Divisible;
use crate::codelet::{
    Codelet, Cost, KernelSource, Memory, NdRange, OpenClKernel, RawValue, Shape, Value,
};
use crate::graph::spec::source::{self, KernelInfo, Source, macros_of};
use crate::graph::spec::{Argument, Buffer, Kernel, fill};
use crate::parallel;
use crate::workload::Data;

/// The buffers that are divided like the units, by position. Unit `u` uses only its
/// slice of them. All devices keep the other buffers whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slices {
    /// Buffers of which a unit reads only its slice.
    pub read: Vec<usize>,
    /// Buffers of which a unit writes only its slice.
    pub written: Vec<usize>,
    /// Whether a unit's results do not depend on the earlier contents of the output
    /// buffers, so that it can be computed again in place.
    pub pure: bool,
}

/// The first bytes of a buffer that a user gives.
pub trait GivenBytes: fmt::Debug + Send + Sync {
    /// All of them. They stay what they are until results are delivered.
    fn bytes(&self) -> &[u8];
}

impl GivenBytes for Arc<[u8]> {
    fn bytes(&self) -> &[u8] {
        self
    }
}

/// A user's kernel with its data. See the module's documentation.
#[derive(Clone, Debug)]
pub struct UserKernel {
    kernel: Kernel,
    info: KernelInfo,
    /// The group size. It is chosen here if the kernel uses groups and the file gives
    /// no size.
    local: Option<Vec<u64>>,
    /// A fast group size, if the kernel does not use groups. A driver would choose
    /// another size for each length of a part, and some drivers compile again for it.
    quick: Option<Vec<u64>>,
    axis: Axis,
    slices: Slices,
    codelet: Arc<Codelet>,
    seed: u64,
    /// Contents that the user gives, by position.
    contents: BTreeMap<usize, Arc<dyn GivenBytes>>,
    /// The receiver of the results.
    sink: Option<Sink>,
}

impl UserKernel {
    /// A kernel of a specification; `info` comes from its source. Buffers that are read
    /// begin with random numbers of this seed. The kernel is one unit until
    /// [`divided`](Self::divided) is called.
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
            codelet: codelet(&kernel, &info, [local.as_deref(), quick.as_deref()], axis),
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

    /// The same kernel, which passes its results to `sink`.
    pub fn with_sink(self, sink: Sink) -> Self {
        Self {
            sink: Some(sink),
            ..self
        }
    }

    /// Passes the final contents of a written buffer to the sink.
    pub fn deliver(&self, position: usize, bytes: &[u8]) {
        if let Some(sink) = &self.sink {
            sink.take(position, bytes);
        }
    }

    /// The same kernel, divided along an axis into units that use these slices.
    pub fn divided(self, axis: Axis, slices: Slices) -> Self {
        Self {
            codelet: codelet(&self.kernel, &self.info, self.groups(), axis),
            axis,
            slices,
            ..self
        }
    }

    /// The same kernel, with these bytes in the buffer at a position.
    ///
    /// # Errors
    /// The buffer's size in bytes, if it differs from the number of `bytes`, or `None`
    /// if there is no such buffer.
    pub fn with_contents(
        mut self,
        position: usize,
        bytes: Arc<dyn GivenBytes>,
    ) -> Result<Self, Option<u64>> {
        let buffer = self.buffers().find(|(at, _)| *at == position);
        let wanted = buffer.ok_or(None)?.1.bytes();
        if bytes.bytes().len() as u64 != wanted {
            return Err(Some(wanted));
        }
        self.contents.insert(position, bytes);
        Ok(self)
    }

    /// The axes along which it may be divided, the best first. The best dimension
    /// varies slowest in memory, and is the last one in most kernels.
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

    /// Its specification.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// The properties that its source shows.
    pub fn info(&self) -> &KernelInfo {
        &self.info
    }

    /// Work-items of a group; `None` if the driver chooses.
    pub fn local(&self) -> Option<&[u64]> {
        self.local.as_deref()
    }

    fn groups(&self) -> [Option<&[u64]>; 2] {
        [self.local.as_deref(), self.quick.as_deref()]
    }

    /// The launches for a range of units: one, or a second one for the last unit if that
    /// is not a whole number of groups.
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

    /// The axis along which it is divided.
    pub fn axis(&self) -> Axis {
        self.axis
    }

    /// The slices that its units use.
    pub fn slices(&self) -> &Slices {
        &self.slices
    }

    /// Its buffers, with their positions.
    pub fn buffers(&self) -> impl Iterator<Item = (usize, &Buffer)> {
        self.kernel.buffers()
    }

    /// Whether its inputs change from step to step.
    pub fn iterates(&self) -> bool {
        self.buffers()
            .any(|(_, buffer)| buffer.direction.reads() && buffer.direction.writes())
    }

    /// Whether a unit may use other places in a later step than in the first, as far as the
    /// text tells: data that the kernel changes decide where it writes or reads.
    pub fn moves(&self) -> bool {
        let source = Source::new(&self.kernel.text, &macros_of(&self.kernel.options));
        let Ok(division) = source.divisible(&self.kernel.name) else {
            return false;
        };
        let changes = |(position, buffer): (usize, &Buffer)| {
            let decides =
                division.deciding.contains(&position) || division.fixed.contains(&position);
            buffer.direction.reads() && buffer.direction.writes() && decides
        };
        self.iterates() && (division.by_chance || self.buffers().any(changes))
    }

    /// Whether the contents of its buffers decide which memory it touches, as far as the text
    /// tells.
    pub fn touches_by_data(&self) -> bool {
        let macros = macros_of(&self.kernel.options);
        source::touches_by_data(&self.kernel.text, &macros, &self.kernel.name)
    }

    /// The slice of a buffer for these units, if the buffer can be divided.
    pub fn slice(&self, buffer: &Buffer, units: &Range<u64>) -> Option<Range<u64>> {
        self.axis.slice(buffer.bytes(), units)
    }

    /// Writes a buffer's first contents: the user's, or random numbers if it is read,
    /// or zeros if it is only written.
    pub fn fill(&self, position: usize, bytes: &mut [u8]) {
        self.fill_from(position, 0, bytes);
    }

    /// Writes a part of a buffer's first contents, from its byte `begin` on. Bytes behind
    /// the buffer's last one are of no meaning.
    pub fn fill_from(&self, position: usize, begin: u64, bytes: &mut [u8]) {
        let buffer = self.buffers().find(|(at, _)| *at == position);
        match (self.contents.get(&position), buffer) {
            (Some(given), _) => {
                let given = given.bytes().get(begin as usize..).unwrap_or_default();
                let length = given.len().min(bytes.len());
                parallel::copy(&mut bytes[..length], &given[..length]);
            }
            (None, Some((_, buffer))) if buffer.direction.reads() => {
                let seed = self.seed.wrapping_add(position as u64);
                let (base, indices) = (buffer.element.base, fill::indices(&self.kernel));
                let (each, skipped) = (base.bytes(), begin % base.bytes());
                let (first, length) = (begin / each, skipped + bytes.len() as u64);
                if skipped == 0 && length.is_multiple_of(each) {
                    return fill::random(base, indices, seed, first, bytes);
                }
                // A part may begin or end within an element.
                let mut elements = vec![0; length.next_multiple_of(each) as usize];
                fill::random(base, indices, seed, first, &mut elements);
                bytes.copy_from_slice(&elements[skipped as usize..length as usize]);
            }
            _ => bytes.fill(0),
        }
    }

    /// The arguments of a launch. `memories` has one memory for each buffer, in the
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

/// Launches a kernel divided along `axis`, in groups of `local` work-items. Without
/// `local` it uses groups of `quick` work-items if they divide the launch.
fn codelet(
    kernel: &Kernel,
    info: &KernelInfo,
    [local, quick]: [Option<&[u64]>; 2],
    axis: Axis,
) -> Arc<Codelet> {
    let text = axis::preamble(&kernel.text, &kernel.source, &kernel.global, local);
    let source = KernelSource::new(
        text,
        kernel.source.display().to_string(),
        kernel.name.clone(),
        kernel.options.clone(),
    );
    let sizes = |sizes: &[u64]| -> Vec<usize> { sizes.iter().map(|n| *n as usize).collect() };
    let (global, local, quick) = (sizes(&kernel.global), local.map(sizes), quick.map(sizes));
    // Other kernels compute the same in groups of any size that a device can run.
    let needs_groups = info.uses_groups || info.required_local.is_some();
    let shape = Shape::with(move |units: &Range<u64>, _: &[Value]| {
        let items = axis.items(units);
        let (mut part, mut offset) = (global.clone(), vec![0; global.len()]);
        part[axis.dimension] = (items.end - items.start) as usize;
        offset[axis.dimension] = items.start as usize;
        let whole = |groups: &&Vec<usize>| part.iter().zip(*groups).all(|(n, g)| n % g == 0);
        let groups = local.as_ref().or(quick.as_ref().filter(whole)).cloned();
        let range = NdRange::new(part).starting_at(offset);
        match groups {
            Some(groups) if needs_groups => range.exactly(groups),
            Some(groups) => range.near(groups),
            None => range,
        }
    });
    Arc::new(Codelet {
        name: kernel.name.clone().into(),
        host: None,
        opencl: Some(OpenClKernel {
            source,
            fp64: info.fp64,
            shape,
        }),
        library: None,
    })
}

impl Divisible for UserKernel {
    fn name(&self) -> &'static str {
        "kernel"
    }

    fn units(&self) -> u64 {
        self.axis.units()
    }

    fn unit_bytes(&self) -> u64 {
        (self.bytes() / self.units()).max(1)
    }

    fn fp64(&self) -> bool {
        self.info.fp64
    }

    fn codelet(&self) -> Arc<Codelet> {
        Arc::clone(&self.codelet)
    }

    /// The units' part of the buffers. The number of operations is unknown.
    fn cost(&self, units: &Range<u64>) -> Cost {
        let part = (units.end - units.start) as f64 / self.units() as f64;
        Cost {
            flops: 0.0,
            bytes: self.bytes() as f64 * part,
        }
    }

    fn data(&self) -> Data<'_> {
        Data::Kernel(self)
    }
}
