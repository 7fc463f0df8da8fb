//! Kernels in OpenCL C that compute subtasks, as Unicorn's programs have them (section III,
//! figure 1), and codelets, which have implementations for several kinds of devices.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::access::{Subscription, Use};
use super::{ProgramError, SpaceTask};
use crate::cluster::space::{Block, SpaceBlock, SpaceId};
use crate::cluster::task::{Computed, SubtaskLaunch, Task};
use crate::codelet::{AddressSpace, Cost, KernelSource, Name, NdRange, OpenClKernel, Shape, Value};
use crate::graph::spec::source::{self, KernelInfo};

type RangeOf = Arc<dyn Fn(u64) -> NdRange + Send + Sync>;
type ValuesOf = Arc<dyn Fn(u64) -> Vec<Value> + Send + Sync>;
type LaunchOfLines = Arc<dyn Fn(u64, Range<u64>) -> (NdRange, Vec<Value>) + Send + Sync>;

/// A kernel in OpenCL C. Its first arguments are the memory of the task's accesses, in their
/// order; then come its values.
#[derive(Clone)]
pub struct SubtaskKernel {
    source: KernelSource,
    info: Arc<KernelInfo>,
    range: RangeOf,
    values: ValuesOf,
    by_lines: Option<LaunchOfLines>,
}

impl SubtaskKernel {
    /// The kernel `entry` of a source. `range` is the launch of a subtask.
    ///
    /// # Errors
    /// A source with a bracket that is not closed, or without the kernel.
    pub fn new(
        source: impl Into<Cow<'static, str>>,
        entry: &str,
        range: impl Fn(u64) -> NdRange + Send + Sync + 'static,
    ) -> Result<Self, ProgramError> {
        Self::of(
            source.into(),
            "the program's source".to_owned(),
            entry,
            range,
        )
    }

    /// The kernel `entry` of a file.
    ///
    /// # Errors
    /// As [`Self::new`], and a file that cannot be read.
    pub fn from_file(
        path: impl AsRef<Path>,
        entry: &str,
        range: impl Fn(u64) -> NdRange + Send + Sync + 'static,
    ) -> Result<Self, ProgramError> {
        let file = path.as_ref().display().to_string();
        let text = std::fs::read_to_string(&path).map_err(|error| ProgramError::Unreadable {
            file: file.clone(),
            why: error.to_string(),
        })?;
        Self::of(text.into(), file, entry, range)
    }

    fn of(
        text: Cow<'static, str>,
        file: String,
        entry: &str,
        range: impl Fn(u64) -> NdRange + Send + Sync + 'static,
    ) -> Result<Self, ProgramError> {
        let kernels = source::kernels(&text, &BTreeMap::new());
        let kernels = kernels.map_err(|unclosed| ProgramError::Source {
            file: file.clone(),
            why: unclosed.to_string(),
        })?;
        let Some(info) = kernels.iter().find(|kernel| kernel.name == entry) else {
            let known: Vec<&str> = kernels.iter().map(|kernel| kernel.name.as_str()).collect();
            let why = format!("it has no kernel {entry}; it has {known:?}");
            return Err(ProgramError::Source { file, why });
        };
        Ok(Self {
            info: Arc::new(info.clone()),
            source: KernelSource::new(text, file, entry.to_owned(), ""),
            range: Arc::new(range),
            values: Arc::new(|_| Vec::new()),
            by_lines: None,
        })
    }

    /// The arguments after the memory, for a subtask: numbers, and local memory.
    pub fn values(self, values: impl Fn(u64) -> Vec<Value> + Send + Sync + 'static) -> Self {
        Self {
            values: Arc::new(values),
            ..self
        }
    }

    /// Several devices of a node may compute a subtask together, each some of its lines: rows of
    /// the first block that the subtask writes, or columns if that has one row. `launch` has the
    /// launch and the values for these. The memory that is written has these lines alone, and
    /// the memory that is read what [`Read::by_lines`] says; in natural views both are at their
    /// places.
    ///
    /// [`Read::by_lines`]: super::Read::by_lines
    pub fn by_lines(
        self,
        launch: impl Fn(u64, Range<u64>) -> (NdRange, Vec<Value>) + Send + Sync + 'static,
    ) -> Self {
        let by_lines: Option<LaunchOfLines> = Some(Arc::new(launch));
        Self { by_lines, ..self }
    }

    /// Whether it can compute some lines of a subtask.
    pub(super) fn is_divisible(&self) -> bool {
        self.by_lines.is_some()
    }

    /// The kernel for some lines of a subtask; itself if it cannot be divided.
    pub(super) fn of_lines(&self, subtask: u64, lines: Range<u64>) -> Self {
        let Some(by_lines) = self.by_lines.clone() else {
            return self.clone();
        };
        let (launch, of) = (Arc::clone(&by_lines), lines.clone());
        Self {
            range: Arc::new(move |_| launch(subtask, of.clone()).0),
            values: Arc::new(move |_| by_lines(subtask, lines.clone()).1),
            by_lines: None,
            ..self.clone()
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.info.name
    }

    pub(super) fn values_of(&self, subtask: u64) -> Vec<Value> {
        (self.values)(subtask)
    }

    /// The implementation for a subtask.
    pub(super) fn implementation(&self, subtask: u64) -> OpenClKernel {
        let range = (self.range)(subtask);
        OpenClKernel {
            source: self.source.clone(),
            fp64: self.info.fp64,
            shape: Shape::with(move |_, _| range.clone()),
        }
    }

    /// Why it cannot compute a subtask with these accesses.
    pub(super) fn fault(&self, subtask: u64, subscription: &Subscription) -> Option<String> {
        let (name, parameters) = (self.name(), &self.info.parameters);
        let values = self.values_of(subtask);
        let (accesses, values) = (subscription.uses.len(), values.len());
        if parameters.len() != accesses + values {
            return Some(format!(
                "kernel {name} has {} arguments, and the task gives {accesses} accesses and \
                 {values} values",
                parameters.len()
            ));
        }
        for (number, one) in subscription.uses.iter().enumerate() {
            let (parameter, access) = (&parameters[number], self.info.accesses[number]);
            let argument = format!("argument {number} ({}) of kernel {name}", parameter.name);
            let is_memory = matches!(
                parameter.address,
                AddressSpace::Global | AddressSpace::Constant
            );
            if !parameter.pointer || !is_memory {
                return Some(format!(
                    "{argument} is no global memory, and the task gives an access for it"
                ));
            }
            let is_empty = match one {
                Use::Read(read) if read.page.is_some() => {
                    return Some(format!(
                        "{argument} would be space {} where it is touched, which only functions \
                         can do; let the task read blocks of it",
                        read.space
                    ));
                }
                Use::Read(read) if access.written && !access.guessed => {
                    return Some(format!(
                        "{argument} is written by it, and the task reads space {} there; let it \
                         write or update the space",
                        read.space
                    ));
                }
                Use::Read(read) => read.elements() == 0,
                Use::Write(write) => write.block.is_empty(),
            };
            if is_empty {
                return Some(format!(
                    "{argument} would be memory without elements; let there be fewer subtasks"
                ));
            }
        }
        let range = (self.range)(subtask).global;
        let is_wrong = range.is_empty() || range.len() > 3 || range.contains(&0);
        is_wrong.then(|| {
            format!(
                "the launch of kernel {name} has work-items {range:?}; 1 to 3 dimensions have \
                 some each"
            )
        })
    }
}

// Tasks of a codelet, which has implementations for several kinds of devices, perhaps those
// of libraries. Its arguments may tell where blocks lie in memory, so that whole matrices are
// computed where they are.

/// What a subtask uses: blocks of the program's spaces, by the numbers of these.
#[derive(Clone, Debug, Default)]
pub struct Uses {
    pub reads: Vec<(usize, Block)>,
    /// What it changes is among both.
    pub writes: Vec<(usize, Block)>,
    pub cost: Cost,
}

/// A task whose subtasks a codelet computes.
#[derive(Clone)]
pub struct CodeletTask {
    name: Name,
    count: u64,
    uses: Arc<dyn Fn(u64) -> Uses + Send + Sync>,
    launch: Arc<dyn Fn(u64) -> SubtaskLaunch + Send + Sync>,
}

impl CodeletTask {
    /// A task of so many subtasks.
    pub fn new(
        name: impl Into<Name>,
        count: u64,
        uses: impl Fn(u64) -> Uses + Send + Sync + 'static,
        launch: impl Fn(u64) -> SubtaskLaunch + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            count,
            uses: Arc::new(uses),
            launch: Arc::new(launch),
        }
    }
}

impl SpaceTask for CodeletTask {
    fn name(&self) -> &str {
        self.name.as_str()
    }

    fn count(&self) -> u64 {
        self.count
    }

    fn on(&self, spaces: &[SpaceId]) -> Arc<dyn Computed> {
        Arc::new(OnSpaces {
            task: self.clone(),
            spaces: spaces.into(),
        })
    }
}

struct OnSpaces {
    task: CodeletTask,
    spaces: Arc<[SpaceId]>,
}

impl OnSpaces {
    fn parts(&self, blocks: Vec<(usize, Block)>) -> Vec<SpaceBlock> {
        let parts = blocks.into_iter().map(|(space, block)| SpaceBlock {
            space: self.spaces[space],
            block,
        });
        parts.collect()
    }
}

impl Task for OnSpaces {
    fn name(&self) -> &str {
        self.task.name.as_str()
    }

    fn count(&self) -> u64 {
        self.task.count
    }

    fn reads(&self, subtask: u64) -> Vec<SpaceBlock> {
        self.parts((self.task.uses)(subtask).reads)
    }

    fn writes(&self, subtask: u64) -> Vec<SpaceBlock> {
        self.parts((self.task.uses)(subtask).writes)
    }

    fn cost(&self, subtask: u64) -> Cost {
        (self.task.uses)(subtask).cost
    }
}

impl Computed for OnSpaces {
    fn launch(&self, subtask: u64) -> SubtaskLaunch {
        (self.task.launch)(subtask)
    }
}
