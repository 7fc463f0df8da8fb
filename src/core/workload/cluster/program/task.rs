//! Tasks whose subtasks are computed by safe functions on the host, by kernels on OpenCL
//! devices, or by both.

use std::ops::Range;
use std::sync::Arc;

use bytemuck::Pod;

use super::SpaceTask;
use super::access::{Access, Begin, Bytes, ReadOf, Subscription, Use};
use super::kernel::SubtaskKernel;
use super::subscription::UNITS;
use super::touch::{Absent, Touches};
use crate::cluster::space::{Block, SpaceBlock, SpaceId};
use crate::cluster::task::{
    Beginning, Combine, Computed, ReadArgument, SubtaskLaunch, SubtaskValue, Task,
};
use crate::codelet::function::{Accumulators, UnitMemory, codelet, reduction};
use crate::codelet::{Codelet, Cost, Memory, Name, Value};

/// What a subtask uses, or some lines of it.
type Subscribe = Arc<dyn Fn(u64, Option<Range<u64>>) -> Subscription + Send + Sync>;
type Run = Arc<dyn Fn(u64, u64, &mut Bytes<'_>) + Send + Sync>;
type CostOf = Arc<dyn Fn(u64) -> Cost + Send + Sync>;

/// Some numbers of each subtask.
type ItemsOf = Arc<dyn Fn(u64) -> Range<u64> + Send + Sync>;

/// A task that computes its subtasks with a function, a kernel, or both. They get views of the
/// blocks that their subtask names, and no other data.
///
/// A subtask consists of *units*, each of which one core computes: unit `u` of `n` has the
/// `u`-th of `n` parts of each block that the subtask writes, some of its rows, or of its
/// columns if it has one row. A kernel computes a whole subtask.
#[derive(Clone)]
pub struct ProgramTask {
    pub(super) name: Name,
    pub(super) count: u64,
    subscribe: Subscribe,
    function: Option<Function>,
    kernel: Option<SubtaskKernel>,
    cost: Option<CostOf>,
    reduction: Option<Accumulators>,
}

/// How the host computes a subtask.
#[derive(Clone)]
struct Function {
    run: Run,
    /// Where units have parts of these, and accumulators of their own.
    items: Option<ItemsOf>,
}

/// Which unit of which subtask a function computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit {
    pub subtask: u64,
    /// Its number in the subtask.
    pub number: u64,
}

impl ProgramTask {
    /// A task of `count` subtasks, which use spaces as `accesses` says: one access, or a tuple
    /// of up to six. The function gets a view for each.
    pub fn new<A: Access>(
        name: impl Into<Name>,
        count: u64,
        accesses: A,
        function: impl Fn(Unit, A::View<'_>) + Send + Sync + 'static,
    ) -> Self {
        let accesses = Arc::new(accesses);
        let subscribing = Arc::clone(&accesses);
        let run = move |subtask, number, bytes: &mut Bytes| {
            function(Unit { subtask, number }, accesses.view(bytes));
        };
        let run = Function {
            run: Arc::new(run),
            items: None,
        };
        Self::of(name.into(), count, subscribing, Some(run))
    }

    /// A task whose subtasks a kernel computes, on OpenCL devices alone.
    pub fn kernel(count: u64, accesses: impl Access, kernel: SubtaskKernel) -> Self {
        let name = Name::from(kernel.name().to_owned());
        Self::of(name, count, Arc::new(accesses), None).with_kernel(kernel)
    }

    /// A task that reduces: each subtask adds what it finds to blocks that all of them write,
    /// and all are combined by an operation that is commutative and associative. The
    /// accumulators begin with `identity`, to which the operation adds nothing.
    ///
    /// `items` are numbers of a subtask that its units share, such as the rows that it reads.
    /// The function gets some of them, and adds what belongs to these to its views of what it
    /// writes. Each core has accumulators of its own, so that the input is read once.
    ///
    /// ```
    /// use pdawl_core::cluster::space::Block;
    /// use pdawl_core::workload::cluster::program::{Program, ProgramTask};
    ///
    /// // How often each digit occurs.
    /// let mut program = Program::new("digits");
    /// let digits = program.given(1, 1000, |_, column| (column % 10) as u8);
    /// let counts = program.space::<u64>(1, 10);
    /// let part = |subtask: u64| 250 * subtask..250 * (subtask + 1);
    /// let read = digits.read(move |subtask| Block::new(0..1, part(subtask)));
    /// program.add_task(ProgramTask::reduction(
    ///     "count",
    ///     4,
    ///     part,
    ///     (read, counts.write(move |_| counts.whole())),
    ///     (0_u64, |sum, other| *sum += other),
    ///     |columns, (digits, mut counts)| {
    ///         for column in columns {
    ///             counts[(0, digits[(0, column)].into())] += 1;
    ///         }
    ///     },
    /// ));
    /// # program.set_result(counts);
    /// # assert!(program.check().is_ok());
    /// ```
    pub fn reduction<A: Access, T: Pod + Send + Sync>(
        name: impl Into<Name>,
        count: u64,
        items: impl Fn(u64) -> Range<u64> + Send + Sync + 'static,
        accesses: A,
        (identity, operation): (T, impl Fn(&mut T, T) + Send + Sync + 'static),
        function: impl Fn(Range<u64>, A::View<'_>) + Send + Sync + 'static,
    ) -> Self {
        let accesses = Arc::new(accesses);
        let subscribing = Arc::clone(&accesses);
        let items: ItemsOf = Arc::new(items);
        let of = Arc::clone(&items);
        let run = move |subtask, number, bytes: &mut Bytes| {
            function(part(&of(subtask), number), accesses.view(bytes));
        };
        let function = Function {
            run: Arc::new(run),
            items: Some(items),
        };
        let task = Self::of(name.into(), count, subscribing, Some(function));
        task.reduce(identity, operation)
    }

    fn of(name: Name, count: u64, accesses: Arc<impl Access>, function: Option<Function>) -> Self {
        Self {
            name,
            count,
            subscribe: Arc::new(move |subtask, lines| {
                let uses = Vec::new();
                let mut subscription = Subscription { uses, lines };
                accesses.subscribe(subtask, &mut subscription);
                subscription
            }),
            function,
            kernel: None,
            cost: None,
            reduction: None,
        }
    }

    /// OpenCL devices compute its subtasks with this kernel.
    pub fn with_kernel(self, kernel: SubtaskKernel) -> Self {
        let kernel = Some(kernel);
        Self { kernel, ..self }
    }

    /// The operations and the memory traffic of a subtask. By default it reads and writes
    /// each byte once, and computes nothing.
    pub fn cost(self, cost: impl Fn(u64) -> Cost + Send + Sync + 'static) -> Self {
        Self {
            cost: Some(Arc::new(cost)),
            ..self
        }
    }

    /// All subtasks write the same blocks, of elements of type `T`, which begin with
    /// `identity`. Their results are combined element by element, in any order. Units divide
    /// what is written, so that each of them reads all that its subtask reads; in a
    /// [`reduction`](Self::reduction) they divide what is read.
    pub fn reduce<T: Pod + Send + Sync>(
        self,
        identity: T,
        operation: impl Fn(&mut T, T) + Send + Sync + 'static,
    ) -> Self {
        let begin = move |sums: &mut [u8]| {
            let sums = sums.chunks_exact_mut(size_of::<T>());
            sums.for_each(|sum| sum.copy_from_slice(bytemuck::bytes_of(&identity)));
        };
        let combine = move |sums: &mut [u8], others: &[u8]| {
            let length = size_of::<T>();
            let pairs = sums.chunks_exact_mut(length);
            for (to, other) in pairs.zip(others.chunks_exact(length)) {
                let mut sum: T = bytemuck::pod_read_unaligned(to);
                operation(&mut sum, bytemuck::pod_read_unaligned(other));
                to.copy_from_slice(bytemuck::bytes_of(&sum));
            }
        };
        let reduction = Some(Accumulators {
            begin: Arc::new(begin),
            combine: Arc::new(combine),
        });
        Self { reduction, ..self }
    }

    fn subscription(&self, subtask: u64) -> Subscription {
        (self.subscribe)(subtask, None)
    }

    /// Of how many units, which devices may share, a subtask consists. A reduction's units have
    /// no lines of their own.
    fn units(&self, subtask: u64) -> u64 {
        let mut kernel = self.kernel.iter();
        if self.reduction.is_some() || !kernel.all(SubtaskKernel::is_divisible) {
            return 1;
        }
        let subscription = self.subscription(subtask);
        if subscription.touches() {
            return 1;
        }
        let cuts = subscription.cuts().unwrap_or_default();
        let units = cuts.first().map_or(1, |cuts| cuts.len().saturating_sub(1));
        units as u64
    }

    /// A task whose only subtask is some units of a subtask.
    fn part(&self, subtask: u64, units: Range<u64>) -> Self {
        let whole = self.subscription(subtask);
        let all = whole.cuts().unwrap_or_else(|_| whole.whole());
        let own = units.start as usize..units.end as usize + 1;
        let cuts = all.iter().map(|cuts| cuts[own.clone()].to_vec());
        let cuts: Vec<Vec<u64>> = cuts.collect();
        let lines = match cuts.first().map(|cuts| &cuts[..]) {
            Some([begin, .., end]) => *begin..*end,
            _ => 0..0,
        };
        let kernel = self.kernel.as_ref();
        let kernel = kernel.map(|kernel| kernel.of_lines(subtask, lines.clone()));
        let function = self.function.as_ref().map(|function| {
            let (run, first) = (Arc::clone(&function.run), units.start);
            Function {
                run: Arc::new(move |_, unit, bytes: &mut Bytes| run(subtask, first + unit, bytes)),
                items: None,
            }
        });
        let of_all = all.first().map_or(1, |cuts| cuts.len().saturating_sub(1));
        let fraction = (units.end - units.start) as f64 / of_all.max(1) as f64;
        let cost = self.cost.clone().map(|cost| -> CostOf {
            Arc::new(move |_| {
                let Cost { flops, bytes } = cost(subtask);
                Cost {
                    flops: flops * fraction,
                    bytes: bytes * fraction,
                }
            })
        });
        let subscribe = Arc::clone(&self.subscribe);
        Self {
            name: self.name.clone(),
            count: 1,
            subscribe: Arc::new(move |_, _| {
                let mut part = subscribe(subtask, Some(lines.clone()));
                part.take_lines(&cuts);
                part
            }),
            function,
            kernel,
            cost,
            reduction: None,
        }
    }

    /// The task on a workload's spaces, by the ids that they have in a run.
    pub fn on(&self, spaces: &[SpaceId]) -> Arc<dyn Computed> {
        Arc::new(OnSpaces {
            task: self.clone(),
            spaces: spaces.into(),
            touches: Touches::default(),
        })
    }
}

impl SpaceTask for ProgramTask {
    fn name(&self) -> &str {
        &self.name
    }

    fn count(&self) -> u64 {
        self.count
    }

    fn on(&self, spaces: &[SpaceId]) -> Arc<dyn Computed> {
        self.on(spaces)
    }
}

/// The items of a unit.
fn part(items: &Range<u64>, number: u64) -> Range<u64> {
    let (count, units) = (items.end.saturating_sub(items.start), item_units(items));
    let cut =
        |number| items.start + (u128::from(count) * u128::from(number) / u128::from(units)) as u64;
    cut(number)..cut(number + 1)
}

/// The units that share items.
fn item_units(items: &Range<u64>) -> u64 {
    items.end.saturating_sub(items.start).clamp(1, UNITS)
}

struct OnSpaces {
    task: ProgramTask,
    spaces: Arc<[SpaceId]>,
    touches: Touches,
}

impl OnSpaces {
    /// What a subtask uses, with what it has touched.
    fn subscription(&self, subtask: u64) -> Subscription {
        let mut subscription = self.task.subscription(subtask);
        self.touches.subscribe(subtask, &mut subscription);
        subscription
    }

    fn part(&self, space: usize, block: &Block) -> SpaceBlock {
        SpaceBlock {
            // One that does not exist is refused when the task begins.
            space: *self.spaces.get(space).unwrap_or(&SpaceId(u32::MAX)),
            block: block.clone(),
        }
    }

    fn parts(&self, read: &ReadOf) -> Vec<SpaceBlock> {
        let blocks = read.blocks.iter().filter(|block| !block.is_empty());
        blocks.map(|block| self.part(read.space, block)).collect()
    }

    /// How the host computes a subtask.
    fn host(&self, subtask: u64) -> Option<(Codelet, u64)> {
        let Function { run, items } = self.task.function.clone()?;
        let subscription = self.subscription(subtask);
        let name = self.task.name.clone();
        // Cuts that do not suit have been refused when the task began.
        let even = || subscription.cuts().unwrap_or_else(|_| subscription.whole());
        let cuts = match &items {
            Some(_) => subscription.whole(),
            None => even(),
        };
        let memory = subscription.memory(&cuts);
        let units = match &items {
            Some(items) => item_units(&items(subtask)),
            None => memory.units().max(1),
        };
        let accumulates = items.is_some();
        // What memory begins with for the device that computes is not written again.
        let zeroes = self.task.kernel.is_none() && self.task.reduction.is_none();
        let touches = subscription.touches();
        let absent = match touches {
            true => self.touches.absent(subtask),
            false => Arc::default(),
        };
        let function = move |memory: UnitMemory| {
            let unit = memory.unit;
            let cut = if accumulates { 0 } else { unit as usize };
            let mut bytes = subscription.of_unit(&cuts, cut, memory, (zeroes, &absent));
            match touches {
                true => Absent::run(|| run(subtask, unit, &mut bytes)),
                false => run(subtask, unit, &mut bytes),
            }
        };
        let codelet = match self.task.reduction.clone().filter(|_| accumulates) {
            Some(accumulators) => reduction(name, memory, Arc::new(function), accumulators),
            None => codelet(name, memory, Arc::new(function)),
        };
        Some((codelet, units))
    }
}

impl Task for OnSpaces {
    fn name(&self) -> &str {
        &self.task.name
    }

    fn count(&self) -> u64 {
        self.task.count
    }

    fn reads(&self, subtask: u64) -> Vec<SpaceBlock> {
        let subscription = self.subscription(subtask);
        let mut parts: Vec<SpaceBlock> = subscription
            .reads()
            .flat_map(|read| self.parts(read))
            .collect();
        let changed = subscription.written();
        let changed = changed.filter(|write| write.begin == Begin::Contents);
        parts.extend(changed.map(|write| self.part(write.space, &write.block)));
        parts
    }

    fn writes(&self, subtask: u64) -> Vec<SpaceBlock> {
        let subscription = self.subscription(subtask);
        let written = subscription.written();
        written
            .map(|write| self.part(write.space, &write.block))
            .collect()
    }

    fn touches(&self, subtask: u64) -> Vec<SpaceBlock> {
        let subscription = self.task.subscription(subtask);
        let touched = subscription.reads().filter(|read| read.page.is_some());
        touched
            .map(|read| self.part(read.space, &read.extent.whole()))
            .collect()
    }

    fn changes(&self, subtask: u64) -> Vec<bool> {
        let subscription = self.subscription(subtask);
        let written = subscription.written();
        written
            .map(|write| write.begin == Begin::Contents)
            .collect()
    }

    fn cost(&self, subtask: u64) -> Cost {
        match &self.task.cost {
            Some(cost) => cost(subtask),
            None => Cost {
                flops: 0.0,
                bytes: self.subscription(subtask).bytes() as f64,
            },
        }
    }

    fn reduces(&self) -> bool {
        self.task.reduction.is_some()
    }

    fn fault(&self, subtask: u64) -> Option<String> {
        let subscription = self.subscription(subtask);
        let kernel = self.task.kernel.as_ref();
        let of_kernel = || kernel.and_then(|kernel| kernel.fault(subtask, &subscription));
        let of_cuts = || subscription.cuts().err();
        let has_function = self.task.function.is_some();
        (subscription.fault().or_else(of_kernel)).or_else(|| of_cuts().filter(|_| has_function))
    }
}

impl Computed for OnSpaces {
    fn is_compact(&self) -> bool {
        true
    }

    fn read_arguments(&self, subtask: u64) -> Vec<ReadArgument> {
        let subscription = self.subscription(subtask);
        let reads = subscription.reads().filter(|read| read.elements() > 0);
        reads
            .map(|read| ReadArgument {
                parts: self.parts(read),
                keeps_places: read.is_natural,
            })
            .collect()
    }

    fn keeps_places(&self, subtask: u64) -> Vec<bool> {
        let subscription = self.subscription(subtask);
        subscription
            .written()
            .map(|write| write.is_natural)
            .collect()
    }

    /// A function makes zeros itself. A kernel does not, and a reduction's accumulators begin
    /// with what adds nothing.
    fn begins(&self, part: &SpaceBlock) -> Beginning {
        let accumulates = |function: &Function| function.items.is_some();
        let is_own = self.task.function.as_ref().is_some_and(accumulates);
        // All subtasks begin alike, so that the first one's accesses tell.
        let index = self.spaces.iter().position(|space| *space == part.space);
        let first = self.subscription(0);
        let mut of_space = first.writes().filter(|write| Some(write.space) == index);
        let is_full = of_space.all(|write| write.begin == Begin::Anything);
        match (&self.task.reduction, &self.task.kernel) {
            _ if is_full => Beginning::Anything,
            (Some(_), None) if is_own => Beginning::Anything,
            (Some(_), _) => Beginning::Made,
            (None, None) => Beginning::Anything,
            (None, Some(_)) => Beginning::Zeros,
        }
    }

    fn begin(&self, _part: &SpaceBlock, bytes: &mut [u8]) {
        if let Some(reduction) = &self.task.reduction {
            (reduction.begin)(bytes);
        }
    }

    fn launch(&self, subtask: u64) -> SubtaskLaunch {
        let kernel = self.task.kernel.as_ref();
        let (host, units) = match self.host(subtask) {
            Some((codelet, units)) => (codelet.host, units),
            None => (None, 1),
        };
        let values = kernel.map(|kernel| kernel.values_of(subtask));
        let values = values.unwrap_or_default().into_iter();
        SubtaskLaunch {
            codelet: Arc::new(Codelet {
                name: self.task.name.clone(),
                host,
                opencl: kernel.map(|kernel| kernel.implementation(subtask)),
                library: None,
            }),
            units: 0..units,
            values: values.map(SubtaskValue::from).collect(),
        }
    }

    fn lacked(&self, subtask: u64) -> Vec<SpaceBlock> {
        let subscription = self.task.subscription(subtask);
        if !subscription.touches() {
            return Vec::new();
        }
        let lacked = self.touches.take(subtask, &subscription).into_iter();
        let parts = lacked.flat_map(|(read, blocks)| {
            let blocks = blocks.into_iter();
            blocks.map(move |block| self.part(read.space, &block))
        });
        parts.collect()
    }

    fn units(&self, subtask: u64) -> u64 {
        self.task.units(subtask)
    }

    fn part(&self, subtask: u64, units: Range<u64>) -> Option<Arc<dyn Computed>> {
        (self.task.units(subtask) > 1).then(|| {
            Arc::new(Self {
                task: self.task.part(subtask, units),
                spaces: Arc::clone(&self.spaces),
                touches: Touches::default(),
            }) as _
        })
    }

    /// In the order of the accesses.
    fn arguments(&self, subtask: u64, memories: Vec<Memory>, values: Vec<Value>) -> Vec<Value> {
        let subscription = self.subscription(subtask);
        let count = subscription.reads().filter(|read| read.elements() > 0);
        let (reads, writes) = memories.split_at(count.count().min(memories.len()));
        let (mut reads, mut writes) = (reads.iter(), writes.iter());
        let memories = subscription.uses.iter().filter_map(|one| match one {
            Use::Read(read) if read.elements() > 0 => reads.next(),
            Use::Write(write) if !write.block.is_empty() => writes.next(),
            _ => None,
        });
        let memories = memories.copied().map(Value::Memory);
        memories.chain(values).collect()
    }

    fn combine(&self) -> Option<Combine> {
        let reduction = self.task.reduction.as_ref();
        reduction.map(|reduction| Arc::clone(&reduction.combine))
    }
}
