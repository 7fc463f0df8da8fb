//! Finds out at one device, on copies, how a kernel's launches can be divided.
//!
//! 1. The kernel runs whole, twice: its results must not differ.
//! 2. For each axis, the slowest first, sets of blocks run: of every two blocks, a set has
//!    the first and lacks the second. So a store to another block's slice is seen as a
//!    change outside of the slices of those that ran. What ran must have the result of the
//!    whole in its slices, so it needs no other block. This is done on several contents, as
//!    a store may leave what is there: on those of the program, and on others in which
//!    every store changes something.
//! 3. Where blocks do not keep to their slices, the kernel runs in three parts whose results
//!    are merged: they must have the result of the whole.
//!
//! The second step holds for other launches only if no address of a store and no condition
//! on which it happens depends on data, as the kernel's text tells. Results of other
//! kernels are always merged.
//!
//! Contents stay at the device, where they are compared and restored. A set with fewer
//! blocks takes less time to run, but there are more sets to compare: which costs less
//! follows from the times of the first step.
//!
//! Where only devices with equal results may share a launch, each other device runs it
//! whole on the same contents.

use std::ffi::CString;
use std::ptr;
use std::sync::Arc;
use std::time::Instant;

use opencl_sys::CL_INVALID_BUILD_OPTIONS;
use pdawl_api::profile::kernels::{Agreeing, Division as Verdict};

use super::bytes::{Bytes, Numbers, Random};
use crate::form::Form;
use crate::own_queue::{Built, Memory, OwnQueue, Site};
use crate::shape::{Cut, Shape};
use crate::status::Fallible;

/// Contents besides the program's where numbers are replaced: one that happens to be what a
/// store leaves is not so twice.
const OTHERS: u64 = 2;

/// What is to be examined.
pub struct Question {
    pub trial: Trial,
    pub whole: Shape,
    pub cuts: Vec<Cut>,
    /// Why the results must be merged, if the text tells it.
    pub merges: Option<String>,
    /// By argument: the numbers with which a trial may replace what is there.
    pub numbers: Vec<Option<Numbers>>,
    /// Whether a trial on other numbers is needed to see all stores.
    pub needs_others: bool,
    /// Devices, if their results are to be compared.
    pub compared: Option<Compared>,
}

/// Devices whose results are compared, by their names in profiles, which those of one model
/// and driver share.
pub struct Compared {
    pub own: String,
    pub others: Vec<(String, Site)>,
}

/// Contents of buffers, by argument, at the device.
type Contents = Vec<(usize, Arc<Memory>)>;

/// A question that is being answered.
struct Examination<'a> {
    question: &'a Question,
    trial: &'a Trial,
    bytes: Bytes<'a>,
    /// The program's contents of all buffers.
    base: Contents,
    /// The buffers that the kernel writes. Each has two slots for what is found.
    work: Contents,
}

impl Question {
    /// The answer.
    ///
    /// # Errors
    /// The code of a driver that refused something.
    pub fn answer(&self) -> Fallible<Verdict> {
        let trial = &self.trial;
        let buffers = trial.buffers();
        let base: Contents = buffers
            .map(|(index, copy, _)| (index, copy.clone()))
            .collect();
        let work = trial.buffers().filter(|(.., written)| *written);
        let work =
            work.map(|(index, copy, _)| Ok((index, Arc::new(trial.queue.memory(copy.bytes)?))));
        let work = work.collect::<Fallible<Contents>>()?;
        let examination = Examination {
            question: self,
            trial,
            bytes: Bytes::new(&trial.queue, 2 * work.len())?,
            base,
            work,
        };
        let mut verdict = examination.verdict()?;
        if let Verdict::Sliced { agreeing, .. } | Verdict::Merged { agreeing, .. } = &mut verdict
            && let Some(compared) = &self.compared
        {
            agreeing.insert(compared.own.clone(), true);
            for (name, other) in &compared.others {
                // A device that cannot run it agrees with none.
                let agrees = examination.agrees(other).unwrap_or(false);
                *agreeing.entry(name.clone()).or_insert(true) &= agrees;
            }
        }
        Ok(verdict)
    }
}

impl Examination<'_> {
    fn verdict(&self) -> Fallible<Verdict> {
        let plain = self.trial.build(Form::Whole)?;
        let result = self.result(&plain)?;
        self.load(&plain, &self.base)?;
        let run = self.seconds(|| plain.launch(&self.question.whole))?;
        self.compare(&self.work, &result)?;
        if self.bytes.first_found()?.is_some() {
            return Ok(refused("its results differ from run to run"));
        }
        let compare = self.seconds(|| self.compare(&self.work, &result))?;
        drop(plain);
        let mut reason = "it has one group along every axis".to_owned();
        let mut merged = None;
        for cut in &self.question.cuts {
            let built = self.trial.build(cut.form())?;
            let axis = cut.axis.dimension;
            let why = match &self.question.merges {
                Some(why) => Some(why.clone()),
                None => self.outside_slices(&built, cut, &result, (run, compare))?,
            };
            let Some(why) = why else {
                let agreeing = Agreeing::new();
                return Ok(Verdict::Sliced { axis, agreeing });
            };
            // Another axis may have slices.
            if merged.is_some() {
                continue;
            }
            match self.differs(&built, cut, &result)? {
                Some(why) => reason = why,
                None => {
                    merged = Some(Verdict::Merged {
                        axis,
                        reason: why,
                        agreeing: Agreeing::new(),
                    });
                    if self.question.merges.is_some() {
                        break;
                    }
                }
            }
        }
        Ok(merged.unwrap_or(Verdict::Refused { reason }))
    }

    /// The results of the whole on the program's contents.
    fn result(&self, plain: &Built) -> Fallible<Contents> {
        self.load(plain, &self.base)?;
        plain.launch(&self.question.whole)?;
        let copied = |(index, memory): &(usize, Arc<Memory>)| {
            let copy = self.trial.queue.memory(memory.bytes)?;
            self.trial.queue.copy(memory, &copy, 0..memory.bytes)?;
            Ok((*index, Arc::new(copy)))
        };
        self.work.iter().map(copied).collect()
    }

    /// The seconds of work at the device.
    fn seconds(&self, work: impl FnOnce() -> Fallible<()>) -> Fallible<f64> {
        self.trial.queue.finish()?;
        let begin = Instant::now();
        work()?;
        self.trial.queue.finish()?;
        Ok(begin.elapsed().as_secs_f64())
    }

    /// Has the next launches run on some contents, of which those that are written are
    /// copied.
    fn load(&self, built: &Built, contents: &Contents) -> Fallible<()> {
        for (index, memory) in contents {
            match of(&self.work, *index) {
                Some(work) => {
                    self.trial.queue.copy(memory, work, 0..memory.bytes)?;
                    built.set_memory(*index, work)?;
                }
                None => built.set_memory(*index, memory)?,
            }
        }
        Ok(())
    }

    /// Notes at the second slots which buffers differ.
    fn compare(&self, some: &Contents, others: &Contents) -> Fallible<()> {
        let mut pairs = some.iter().zip(others).enumerate();
        pairs.try_for_each(|(at, ((_, one), (_, other)))| {
            self.bytes.differ(one, other, 0..one.bytes, 2 * at + 1)
        })
    }

    /// Whether another device has the same results, on the program's contents and on
    /// others.
    fn agrees(&self, peer: &Site) -> Fallible<bool> {
        let peer = self.trial.at(peer)?;
        let (here, there) = (self.trial.build(Form::Whole)?, peer.build(Form::Whole)?);
        for round in 0..=OTHERS {
            let contents = self.contents(&here, (round, true))?;
            self.set_scalars(&there, (round, true))?;
            for ((_, from), (_, to, _)) in contents.iter().zip(peer.buffers()) {
                peer.queue.write(to, &self.trial.queue.read(from)?)?;
            }
            self.load(&here, &contents)?;
            here.launch(&self.question.whole)?;
            there.launch(&self.question.whole)?;
            let written = peer.buffers().filter(|(.., written)| *written);
            for ((_, work), (_, other, _)) in self.work.iter().zip(written) {
                if self.trial.queue.read(work)? != peer.queue.read(other)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Why the form for parts, or the parts together, have another result than the whole.
    fn differs(&self, built: &Built, cut: &Cut, result: &Contents) -> Fallible<Option<String>> {
        let contents = self.contents(built, (0, false))?;
        let mut together = Contents::new();
        for (index, work) in &self.work {
            let all = self.trial.queue.memory(work.bytes)?;
            if let Some(base) = of(&self.base, *index) {
                self.trial.queue.copy(base, &all, 0..all.bytes)?;
            }
            together.push((*index, Arc::new(all)));
        }
        self.bytes.forget()?;
        for part in cut.axis.thirds() {
            self.load(built, &contents)?;
            built.launch(&cut.part(&part))?;
            for (at, ((index, work), (_, all))) in self.work.iter().zip(&together).enumerate() {
                if let Some(base) = of(&self.base, *index) {
                    self.bytes.merge(base, work, all, 2 * at)?;
                }
            }
        }
        self.compare(&together, result)?;
        let Some(slot) = self.bytes.first_found()? else {
            return Ok(None);
        };
        self.bytes.forget()?;
        self.load(built, &contents)?;
        built.launch(&cut.part(&(0..cut.blocks())))?;
        self.compare(&self.work, result)?;
        Ok(Some(match (self.bytes.first_found()?, slot % 2) {
            (Some(_), _) => "its results differ when it is built for parts".to_owned(),
            (None, 0) => format!(
                "groups of different parts write unlike values to argument {}",
                self.argument(slot)
            ),
            (None, _) => "its parts together have another result than the whole: groups depend on \
                          one another"
                .to_owned(),
        }))
    }

    /// The argument of a slot.
    fn argument(&self, slot: usize) -> usize {
        self.work[slot / 2].0
    }

    /// Why parts do not write only their slices. `run` and `compare` are the seconds of the
    /// whole and of comparing results.
    fn outside_slices(
        &self,
        built: &Built,
        cut: &Cut,
        result: &Contents,
        (run, compare): (f64, f64),
    ) -> Fallible<Option<String>> {
        for (index, work) in &self.work {
            if cut.slice(work.bytes, &(0..1)).is_none() {
                return Ok(Some(format!(
                    "argument {index} has no equal slices of whole bytes"
                )));
            }
        }
        let sets = cut.axis.sets(run, compare);
        let others = match self.question.needs_others {
            true => OTHERS,
            false => 1,
        };
        self.bytes.forget()?;
        for round in 0..=others {
            let contents = self.contents(built, (round, self.question.needs_others))?;
            self.load(built, &contents)?;
            for set in &sets {
                for range in set {
                    built.launch(&cut.part(range))?;
                }
                for (at, ((index, work), (_, result))) in self.work.iter().zip(result).enumerate() {
                    let Some(before) = of(&contents, *index) else {
                        continue;
                    };
                    // What ran is restored. Then nothing may differ.
                    for slice in set.iter().filter_map(|range| cut.slice(work.bytes, range)) {
                        if round == 0 {
                            self.bytes.differ(work, result, slice.clone(), 2 * at)?;
                        }
                        self.trial.queue.copy(before, work, slice)?;
                    }
                    self.bytes.differ(work, before, 0..work.bytes, 2 * at + 1)?;
                }
                if let Some(slot) = self.bytes.first_found()? {
                    let index = self.argument(slot);
                    return Ok(Some(match slot % 2 {
                        0 => format!("slices of argument {index} depend on other groups"),
                        _ => format!("groups write outside of their slices of argument {index}"),
                    }));
                }
            }
        }
        Ok(None)
    }

    /// The program's contents, or, from round 1 on, others, with the plain arguments that
    /// belong to them. Numbers are replaced if asked, where they may be. Written buffers
    /// that are not read have each byte turned over: a store is then seen in the program's
    /// contents or in these.
    fn contents(&self, built: &Built, (round, replaces): (u64, bool)) -> Fallible<Contents> {
        self.set_scalars(built, (round, replaces))?;
        if round == 0 {
            return Ok(self.base.clone());
        }
        let other = |(index, memory): &(usize, Arc<Memory>)| {
            let seed = round << 32 | *index as u64;
            let made = match self.question.numbers[*index].filter(|_| replaces) {
                Some(numbers) => Arc::new(self.bytes.filled(memory.bytes, numbers, seed)?),
                None if of(&self.work, *index).is_some() => Arc::new(self.bytes.turned(memory)?),
                None => Arc::clone(memory),
            };
            Ok((*index, made))
        };
        self.base.iter().map(other).collect()
    }

    /// Sets the plain arguments of a round.
    fn set_scalars(&self, built: &Built, (round, replaces): (u64, bool)) -> Fallible<()> {
        let mut random = Random(round);
        for (index, given) in self.trial.arguments.iter().enumerate() {
            let Given::Bytes(bytes) = given else {
                continue;
            };
            match self.question.numbers[index].filter(|_| replaces && round > 0) {
                Some(numbers) => built.set(index, &numbers.fill(bytes.len(), &mut random))?,
                None => built.set(index, bytes)?,
            }
        }
        Ok(())
    }
}

/// The contents of an argument.
fn of(contents: &Contents, index: usize) -> Option<&Arc<Memory>> {
    let mut contents = contents.iter();
    contents.find_map(|(other, memory)| (*other == index).then_some(memory))
}

/// A refusal.
pub fn refused(reason: &str) -> Verdict {
    Verdict::Refused {
        reason: reason.to_owned(),
    }
}

/// An argument.
#[derive(Clone)]
pub enum Given {
    /// A copy of a buffer.
    Buffer {
        copy: Arc<Memory>,
        written: bool,
    },
    /// Local memory, or a null pointer.
    Local(usize),
    Bytes(Vec<u8>),
}

/// A kernel's program.
#[derive(Clone)]
pub struct Source {
    pub text: CString,
    pub options: CString,
    pub kernel: CString,
}

/// What a trial needs. It keeps the driver's context.
pub struct Trial {
    pub source: Source,
    pub arguments: Vec<Given>,
    pub queue: OwnQueue,
}

impl Trial {
    pub fn new(site: Site, source: Source, arguments: Vec<Given>) -> Fallible<Self> {
        Ok(Self {
            source,
            arguments,
            queue: OwnQueue::new(site)?,
        })
    }

    /// The same trial at another device, with copies without contents.
    pub fn at(&self, site: &Site) -> Fallible<Self> {
        let mut trial = Self::new(site.clone(), self.source.clone(), self.arguments.clone())?;
        for given in &mut trial.arguments {
            if let Given::Buffer { copy, .. } = given {
                *copy = Arc::new(trial.queue.memory(copy.bytes)?);
            }
        }
        Ok(trial)
    }

    /// The copies of buffers, by argument, and whether the kernel writes them.
    pub fn buffers(&self) -> impl Iterator<Item = (usize, &Arc<Memory>, bool)> + '_ {
        let arguments = self.arguments.iter().enumerate();
        arguments.filter_map(|(index, given)| match given {
            Given::Buffer { copy, written } => Some((index, copy, *written)),
            _ => None,
        })
    }

    /// Builds the program in a form, and sets the arguments of the kernel.
    pub fn build(&self, form: Form) -> Fallible<Built<'_>> {
        let text = [form.preamble().as_bytes(), self.source.text.as_bytes()].concat();
        let options = [self.source.options.as_bytes(), b" -DPDAWL_TRIAL"].concat();
        let options = CString::new(options).map_err(|_| CL_INVALID_BUILD_OPTIONS)?;
        let built = self.queue.program(&text, &options, &self.source.kernel)?;
        for (index, given) in self.arguments.iter().enumerate() {
            match given {
                Given::Buffer { copy, .. } => built.set_memory(index, copy)?,
                Given::Local(bytes) => built.set_value(index, (*bytes, ptr::null()))?,
                Given::Bytes(bytes) => built.set(index, bytes)?,
            }
        }
        Ok(built)
    }
}
