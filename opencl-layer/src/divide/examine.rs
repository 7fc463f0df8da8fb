//! Finds out at one device, on copies, how a kernel's launches can be divided.
//!
//! 1. The kernel runs whole, twice: its results must not differ.
//! 2. For each axis, the slowest first, it runs whole in the form for parts, and in three
//!    parts whose results are merged. Both must have the same result.
//! 3. For each bit of a block's number, all blocks with the bit run together, and all
//!    without it. Two blocks differ in a bit, so a store to another block's slice is seen
//!    as a change outside of the slices of those that ran. What ran must have the result
//!    of the whole in its slices. This is done on several contents, as a store may leave
//!    what is there: on those of the program, and on others in which every store changes
//!    something.
//!
//! The third step holds for other launches only if no address of a store and no condition
//! on which it happens depends on data, as the kernel's text tells. Results of other
//! kernels are always merged.
//!
//! Where only devices with equal results may share a launch, each other device runs it
//! whole on the same contents.

use pdawl::profile::kernels::{Agreeing, Division as Verdict};
use pdawl::residency::difference::{Twice, merge, unchanged_outside};

use super::Form;
use super::cut::Cut;
use super::fill::{Numbers, Random};
use super::trial::{Built, Device, Given, Trial};
use crate::kernel::Shape;
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
    pub others: Vec<(String, Device)>,
}

/// Contents of all buffers, by argument.
type Contents = Vec<(usize, Vec<u8>)>;

impl Question {
    /// The answer.
    ///
    /// # Errors
    /// The code of a driver that refused something.
    pub fn answer(&self) -> Fallible<Verdict> {
        let trial = &self.trial;
        let base: Contents = (trial.buffers())
            .map(|(index, copy, bytes, _)| Ok((index, trial.read(copy, bytes)?)))
            .collect::<Fallible<_>>()?;
        let mut verdict = self.verdict(&base)?;
        if let Verdict::Sliced { agreeing, .. } | Verdict::Merged { agreeing, .. } = &mut verdict
            && let Some(compared) = &self.compared
        {
            agreeing.insert(compared.own.clone(), true);
            for (name, other) in &compared.others {
                // A device that cannot run it agrees with none.
                let agrees = self.agrees(other, &base).unwrap_or(false);
                *agreeing.entry(name.clone()).or_insert(true) &= agrees;
            }
        }
        Ok(verdict)
    }

    fn verdict(&self, base: &Contents) -> Fallible<Verdict> {
        let plain = self.trial.build(Form::Whole)?;
        let result = self.run(&plain, base, self.whole())?;
        if self.run(&plain, base, self.whole())? != result {
            return Ok(refused("its results differ from run to run"));
        }
        drop(plain);
        let mut reason = "it has one group along every axis".to_owned();
        let mut merged = None;
        for cut in &self.cuts {
            let built = self.trial.build(cut.form())?;
            if let Some(why) = self.differs(&built, cut, base, &result)? {
                reason = why;
                continue;
            }
            let why = match &self.merges {
                Some(why) => Some(why.clone()),
                None => self.strays(&built, cut, base, &result)?,
            };
            let axis = cut.axis;
            match why {
                None => {
                    let agreeing = Agreeing::new();
                    return Ok(Verdict::Sliced { axis, agreeing });
                }
                Some(reason) => {
                    merged.get_or_insert(Verdict::Merged {
                        axis,
                        reason,
                        agreeing: Agreeing::new(),
                    });
                }
            }
        }
        Ok(merged.unwrap_or(Verdict::Refused { reason }))
    }

    fn whole(&self) -> &[Shape] {
        std::slice::from_ref(&self.whole)
    }

    /// The written buffers after launches on some contents.
    fn run(&self, built: &Built, contents: &Contents, shapes: &[Shape]) -> Fallible<Contents> {
        let trial = built.trial;
        for ((_, copy, ..), (_, bytes)) in trial.buffers().zip(contents) {
            trial.write(copy, bytes)?;
        }
        for shape in shapes {
            built.launch(shape)?;
        }
        let written = trial.buffers().filter(|(.., written)| *written);
        let read = written.map(|(index, copy, bytes, _)| Ok((index, trial.read(copy, bytes)?)));
        read.collect()
    }

    /// Whether another device has the same results, on the program's contents and on
    /// others.
    fn agrees(&self, peer: &Device, base: &Contents) -> Fallible<bool> {
        let peer = self.trial.at(peer)?;
        let (here, there) = (self.trial.build(Form::Whole)?, peer.build(Form::Whole)?);
        for round in 0..=OTHERS {
            let contents = self.contents(&here, base, (round, true))?;
            // The plain arguments of the other kernel.
            self.contents(&there, base, (round, true))?;
            let here = self.run(&here, &contents, self.whole())?;
            if here != self.run(&there, &contents, self.whole())? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Why the form for parts, or the parts together, have another result than the whole.
    fn differs(
        &self,
        built: &Built,
        cut: &Cut,
        base: &Contents,
        result: &Contents,
    ) -> Fallible<Option<String>> {
        let blocks = cut.blocks();
        if self.run(built, base, &[cut.part(&(0..blocks))])? != *result {
            return Ok(Some(
                "its results differ when it is built for parts".to_owned(),
            ));
        }
        let written = |all: &Contents| -> Contents {
            let is_written = |index: usize| result.iter().any(|(other, _)| *other == index);
            all.iter()
                .filter(|(index, _)| is_written(*index))
                .cloned()
                .collect()
        };
        let base_written = written(base);
        let mut together = base_written.clone();
        let first = (blocks * 3 / 10).clamp(1, blocks - 1);
        let second = (blocks * 7 / 10).max(first);
        for part in [0..first, first..second, second..blocks] {
            if part.is_empty() {
                continue;
            }
            let results = self.run(built, base, &[cut.part(&part)])?;
            for (((index, base), (_, part)), (_, all)) in
                base_written.iter().zip(&results).zip(&mut together)
            {
                if merge(base, part, all, Twice::MayAgree).is_err() {
                    return Ok(Some(format!(
                        "groups of different parts write unlike values to argument {index}"
                    )));
                }
            }
        }
        Ok((together != *result).then(|| {
            "its parts together have another result than the whole: groups depend on one another"
                .to_owned()
        }))
    }

    /// Why parts do not write only their slices.
    fn strays(
        &self,
        built: &Built,
        cut: &Cut,
        base: &Contents,
        result: &Contents,
    ) -> Fallible<Option<String>> {
        let others = match self.needs_others {
            true => OTHERS,
            false => 1,
        };
        for round in 0..=others {
            let contents = self.contents(built, base, (round, self.needs_others))?;
            for bit in 0..cut.bits() {
                for is_set in [true, false] {
                    let ranges = cut.with_bit(bit, is_set);
                    let shapes: Vec<Shape> = ranges.iter().map(|range| cut.part(range)).collect();
                    let after = self.run(built, &contents, &shapes)?;
                    for ((index, after), (_, result)) in after.iter().zip(result) {
                        let slices = ranges.iter().map(|range| cut.slice(after.len(), range));
                        let Some(slices) = slices.collect::<Option<Vec<_>>>() else {
                            return Ok(Some(format!(
                                "argument {index} has no equal slices of whole bytes"
                            )));
                        };
                        let before = contents.iter().find(|(other, _)| other == index);
                        let before = before.map_or(&[][..], |(_, bytes)| bytes);
                        let wide: Vec<_> = (slices.iter())
                            .map(|slice| slice.start as u64..slice.end as u64)
                            .collect();
                        if !unchanged_outside(before, after, &wide) {
                            return Ok(Some(format!(
                                "groups write outside of their slices of argument {index}"
                            )));
                        }
                        let same = |slice: &std::ops::Range<usize>| {
                            after[slice.clone()] == result[slice.clone()]
                        };
                        if round == 0 && !slices.iter().all(same) {
                            return Ok(Some(format!(
                                "slices of argument {index} depend on other groups"
                            )));
                        }
                    }
                }
            }
        }
        Ok(None)
    }

    /// The program's contents, or, from round 1 on, others. Numbers are replaced if asked,
    /// where they may be. Written buffers that are not read have each byte turned over: a
    /// store is then seen in the program's contents or in these.
    fn contents(
        &self,
        built: &Built,
        base: &Contents,
        (round, replaces): (u64, bool),
    ) -> Fallible<Contents> {
        if round == 0 {
            return Ok(base.clone());
        }
        let mut random = Random(round);
        let numbers = |index: usize| self.numbers[index].filter(|_| replaces);
        for (index, given) in self.trial.arguments.iter().enumerate() {
            if let (Given::Bytes(bytes), Some(numbers)) = (given, numbers(index)) {
                built.set(index, &numbers.fill(bytes.len(), &mut random))?;
            }
        }
        let other = |((index, bytes), (.., written)): (&(usize, Vec<u8>), (_, _, _, bool))| {
            let made = match numbers(*index) {
                Some(numbers) => numbers.fill(bytes.len(), &mut random),
                None if written => bytes.iter().map(|byte| !byte).collect(),
                None => bytes.clone(),
            };
            (*index, made)
        };
        Ok(base.iter().zip(self.trial.buffers()).map(other).collect())
    }
}

/// A refusal.
pub fn refused(reason: &str) -> Verdict {
    Verdict::Refused {
        reason: reason.to_owned(),
    }
}
