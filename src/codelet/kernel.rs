//! An OpenCL implementation: its source, its sizes, and the arguments of a compiled
//! kernel.
//!
//! Names of codelets and commands, cheap to clone.

use std::borrow::Cow;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::{Deref, Range};
use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};

use super::Value;

/// Work-items of a group that every device can have: kernels whose groups are larger have a
/// smaller variant with so many, where their arithmetic allows it (see [`OpenClKernel::or`]).
pub const LEAST_GROUP: usize = 32;

/// The local size of a launch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum LocalSize {
    /// The driver chooses.
    #[default]
    Any,
    /// Preferred: where the device cannot, or the global size is no multiple of it,
    /// the nearest smaller size is used.
    Near(Vec<usize>),
    /// Required by the kernel: it is an error if the device cannot.
    Exactly(Vec<usize>),
}

/// Sizes of an OpenCL launch, in one to three dimensions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NdRange {
    pub global: Vec<usize>,
    pub local: LocalSize,
    /// The global offset; `None` is zero everywhere.
    pub offset: Option<Vec<usize>>,
}

impl NdRange {
    /// This many work-items; the local size is left to the driver.
    pub fn new(global: Vec<usize>) -> Self {
        Self {
            global,
            ..Self::default()
        }
    }

    /// A work-group of so many work-items for each unit.
    pub fn group_per_unit(units: &Range<u64>, items: usize) -> Self {
        Self::new(vec![(units.end - units.start) as usize * items])
    }

    /// A work-group of exactly so many work-items for each unit, which counts from 0.
    pub fn exact_group_per_unit(units: &Range<u64>, items: usize) -> Self {
        Self::group_per_unit(units, items)
            .exactly(vec![items])
            .starting_at(vec![units.start as usize * items])
    }

    /// With groups of this size, or the nearest that is possible.
    pub fn near(self, local: Vec<usize>) -> Self {
        Self {
            local: LocalSize::Near(local),
            ..self
        }
    }

    /// With groups of exactly this size.
    pub fn exactly(self, local: Vec<usize>) -> Self {
        Self {
            local: LocalSize::Exactly(local),
            ..self
        }
    }

    /// With this global offset.
    pub fn starting_at(self, offset: Vec<usize>) -> Self {
        Self {
            offset: Some(offset),
            ..self
        }
    }
}

/// Computes a launch's sizes from its units and arguments.
#[derive(Clone)]
pub enum Shape {
    /// A function, for the program's own kernels.
    Of(fn(&Range<u64>, &[Value]) -> NdRange),
    /// A closure, for example with sizes from a file.
    With(ShapeFn),
    /// Several kernels that follow one another.
    Series(Arc<KernelSeries>),
}

/// Kernels of one program that follow one another in each launch. All of them get the
/// launch's arguments, and after these a memory of their own, which has no contents at the
/// begin of a launch. What differs from step to step, a kernel reads from its global offset.
#[derive(Debug)]
pub struct KernelSeries {
    /// Each kernel once.
    pub kernels: Vec<KernelSource>,
    pub steps: StepsFn,
    /// Bytes of the memory of their own, for launches with these arguments.
    pub scratch: fn(&[Value]) -> u64,
}

/// Computes the steps of a launch from its units and arguments: the index of a kernel, and its
/// sizes.
pub type StepsFn = fn(&Range<u64>, &[Value]) -> Vec<(usize, NdRange)>;

/// A kernel of a launch, and its sizes.
pub type Step<'a> = (&'a KernelSource, NdRange);

/// A shape that captures values.
pub type ShapeFn = Arc<dyn Fn(&Range<u64>, &[Value]) -> NdRange + Send + Sync>;

impl Shape {
    /// A shape that captures values.
    pub fn with(sizes: impl Fn(&Range<u64>, &[Value]) -> NdRange + Send + Sync + 'static) -> Self {
        Self::With(Arc::new(sizes))
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Self::Of(_) => "Shape::Of",
            Self::With(_) => "Shape::With",
            Self::Series(_) => "Shape::Series",
        })
    }
}

/// A kernel's text, its name within it, and how to compile it.
///
/// Equal by content. Clones share one allocation, and the content is hashed
/// once, at creation: as a key it costs a launch no more than a number.
#[derive(Clone)]
pub struct KernelSource {
    text: Arc<Text>,
    smaller: Option<Arc<OpenClKernel>>,
}

struct Text {
    source: Cow<'static, str>,
    file: Cow<'static, str>,
    entry: Cow<'static, str>,
    options: Cow<'static, str>,
    digest: u64,
}

impl KernelSource {
    /// The kernel `entry` of `source`, which comes from `file` (a name for
    /// messages), compiled with `options` such as `-DREAL=double`.
    pub fn new(
        source: impl Into<Cow<'static, str>>,
        file: impl Into<Cow<'static, str>>,
        entry: impl Into<Cow<'static, str>>,
        options: impl Into<Cow<'static, str>>,
    ) -> Self {
        let (source, entry, options) = (source.into(), entry.into(), options.into());
        let mut hasher = DefaultHasher::new();
        (&source, &entry, &options).hash(&mut hasher);
        let text = Text {
            digest: hasher.finish(),
            file: file.into(),
            source,
            entry,
            options,
        };
        Self {
            text: Arc::new(text),
            smaller: None,
        }
    }

    /// The kernel for devices that cannot run this one.
    pub fn smaller(&self) -> Option<&OpenClKernel> {
        self.smaller.as_deref()
    }

    /// The whole source.
    pub fn text(&self) -> &str {
        &self.text.source
    }

    /// The source file's name, for messages.
    pub fn file(&self) -> &str {
        &self.text.file
    }

    /// The kernel's name in the source.
    pub fn entry(&self) -> &str {
        &self.text.entry
    }

    /// Compiler options.
    pub fn options(&self) -> &str {
        &self.text.options
    }

    /// Source and options: kernels of one program have these in common.
    pub fn program(&self) -> (Cow<'static, str>, Cow<'static, str>) {
        (self.text.source.clone(), self.text.options.clone())
    }
}

impl PartialEq for KernelSource {
    fn eq(&self, other: &Self) -> bool {
        let (one, other) = (&self.text, &other.text);
        Arc::ptr_eq(one, other)
            || (one.digest == other.digest
                && one.entry == other.entry
                && one.options == other.options
                && one.source == other.source)
    }
}

impl Eq for KernelSource {}

impl Hash for KernelSource {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.digest.hash(state);
    }
}

impl fmt::Debug for KernelSource {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} ({}) {}", self.entry(), self.file(), self.options())
    }
}

/// An OpenCL implementation.
#[derive(Clone, Debug)]
pub struct OpenClKernel {
    /// The kernel; of a series, the first.
    pub source: KernelSource,
    /// Whether it needs `cl_khr_fp64`.
    pub fp64: bool,
    pub shape: Shape,
}

impl OpenClKernel {
    /// With a kernel that computes the same in smaller work-groups, for devices that cannot
    /// run this one.
    pub fn or(mut self, smaller: Self) -> Self {
        self.source.smaller = Some(Arc::new(smaller));
        self
    }

    /// All its kernels, each once.
    pub fn kernels(&self) -> &[KernelSource] {
        match &self.shape {
            Shape::Series(series) => &series.kernels,
            Shape::Of(_) | Shape::With(_) => std::slice::from_ref(&self.source),
        }
    }

    /// The kernels of a launch over these units with these arguments, in order, and their
    /// sizes.
    pub fn steps(&self, units: &Range<u64>, args: &[Value]) -> Vec<Step<'_>> {
        match &self.shape {
            Shape::Of(sizes) => vec![(&self.source, sizes(units, args))],
            Shape::With(sizes) => vec![(&self.source, sizes(units, args))],
            Shape::Series(series) => {
                let steps = (series.steps)(units, args).into_iter();
                (steps.map(|(kernel, sizes)| (&series.kernels[kernel], sizes))).collect()
            }
        }
    }

    /// Whether it is several kernels in order, of which the arguments tell how many.
    pub fn is_series(&self) -> bool {
        matches!(self.shape, Shape::Series(_))
    }

    /// How many kernels a launch over these units with these arguments is, at least 1.
    pub fn launches(&self, units: &Range<u64>, args: &[Value]) -> u64 {
        match &self.shape {
            Shape::Series(series) => (series.steps)(units, args).len().max(1) as u64,
            Shape::Of(_) | Shape::With(_) => 1,
        }
    }

    /// Bytes of the memory of their own that its kernels have after these arguments; `None`
    /// where they take none.
    pub fn scratch(&self, args: &[Value]) -> Option<u64> {
        match &self.shape {
            Shape::Series(series) => Some((series.scratch)(args)),
            Shape::Of(_) | Shape::With(_) => None,
        }
    }
}

/// The address space of a kernel's argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AddressSpace {
    Global,
    Constant,
    Local,
    /// By value.
    Private,
}

/// An argument of a compiled kernel, as its compiler reports it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelArgument {
    pub name: String,
    pub address: AddressSpace,
    /// As in the source, such as `float*` or `uint`.
    pub type_name: String,
    /// Whether it is a pointer to memory that the kernel must not write.
    pub read_only: bool,
}

/// A codelet's or a command's name: a constant, or made at run time. A clone never
/// copies the text, so a name can accompany every command through the queues and
/// into the trace.
#[derive(Clone)]
pub enum Name {
    Fixed(&'static str),
    Shared(Arc<str>),
}

impl Name {
    /// The text.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Fixed(text) => text,
            Self::Shared(text) => text,
        }
    }
}

impl Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl From<&'static str> for Name {
    fn from(text: &'static str) -> Self {
        Self::Fixed(text)
    }
}

impl From<String> for Name {
    fn from(text: String) -> Self {
        Self::Shared(text.into())
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.pad(self)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Name {}

impl PartialEq<str> for Name {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Name {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_equal_by_content() {
        let one = KernelSource::new("a", "one.cl", "k", "");
        let other = KernelSource::new("a".to_owned(), "other.cl", "k", "");
        assert_eq!(one, other);
        assert_eq!(one, one.clone());
        for different in [
            KernelSource::new("b", "one.cl", "k", ""),
            KernelSource::new("a", "one.cl", "l", ""),
            KernelSource::new("a", "one.cl", "k", "-DX"),
        ] {
            assert_ne!(one, different);
        }
    }

    #[test]
    fn a_shape_may_know_more_than_its_arguments() {
        let wide = 7;
        let source = KernelSource::new("a", "one.cl", "k", "");
        let shape = Shape::with(move |units, _| {
            NdRange::new(vec![wide, (units.end - units.start) as usize])
                .exactly(vec![7, 1])
                .starting_at(vec![0, units.start as usize])
        });
        let kernel = OpenClKernel {
            source,
            fp64: false,
            shape,
        };
        let steps = kernel.steps(&(3..5), &[]);
        let [(_, sizes)] = &steps[..] else {
            panic!("one kernel: {steps:?}");
        };
        assert_eq!(sizes.global, [7, 2]);
        assert_eq!(sizes.local, LocalSize::Exactly(vec![7, 1]));
        assert_eq!(sizes.offset, Some(vec![0, 3]));
    }
}
