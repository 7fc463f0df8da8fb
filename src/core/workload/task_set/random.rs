//! Random tasks: several readers of a datum, results, versions in place, order
//! without data, and data of unlike sizes.

use fastrand::Rng;

use super::builder::Builder;
use super::operation::{Operation, bytes};
use super::{TaskSetError, within};
use crate::codelet::Cost;
use crate::graph::{Argument, DatumId};

/// Random tasks. The seed of the set determines them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RandomTasks {
    pub tasks: u32,
    /// Data that the host gives.
    pub given: u32,
    /// Most bytes of a datum; the least is 1.
    pub bytes: u32,
    /// Most inputs of a task.
    pub inputs: u32,
    /// Most operations of a task. Its memory traffic is the bytes of its data.
    pub flops: f64,
    /// Whether tasks read what other tasks make, overwrite data in place, and follow
    /// one another.
    pub dependencies: bool,
    /// Whether tasks make data; without them and without dependencies tasks only
    /// read.
    pub outputs: bool,
}

impl RandomTasks {
    /// So many tasks of every kind with small data, as checking tasks need.
    pub fn small(tasks: u32) -> Self {
        Self {
            tasks,
            given: 1 + tasks / 4,
            bytes: 100,
            inputs: 4,
            flops: 1e7,
            dependencies: true,
            outputs: true,
        }
    }

    pub(super) fn check(&self) -> Result<Option<&'static str>, TaskSetError> {
        within("tasks", self.tasks, u32::MAX)?;
        within("given data", self.given, u32::MAX)?;
        within("bytes of a datum", self.bytes, u32::MAX)?;
        within("inputs of a task", self.inputs, 32)?;
        Ok(Some("random tasks only have costs or check bytes"))
    }

    pub(super) fn add(&self, builder: &mut Builder) {
        // Another sequence than that of the order of the tasks.
        let mut rng = Rng::with_seed(!builder.set.seed);
        let most = u64::from(self.bytes);
        // Data that later tasks may read.
        let mut alive = Vec::new();
        for number in 0..self.given {
            let datum = builder.given_bytes(format!("given.{number}"), rng.u64(1..=most), bytes);
            alive.push(datum);
        }
        for number in 0..self.tasks as usize {
            let mut arguments = self.inputs(builder, &mut rng, number, &mut alive);
            let updates = |argument: &Argument| matches!(argument, Argument::InOut { .. });
            let least = u32::from(self.outputs && !arguments.iter().any(updates));
            let outputs = match self.outputs {
                true => rng.u32(least..3),
                false => 0,
            };
            for output in 0..outputs {
                let (name, wanted) = (format!("made.{number}.{output}"), rng.u8(0..3) == 0);
                let datum = builder.made_bytes(name, rng.u64(1..=most), wanted);
                if self.dependencies {
                    alive.push(datum);
                }
                arguments.push(match rng.u8(0..4) {
                    0 => Argument::Output(datum),
                    _ => Argument::FullOutput(datum),
                });
            }
            let cost = Cost {
                flops: rng.f64() * self.flops,
                bytes: builder.traffic(&arguments) as f64,
            };
            let operation = Operation::Any(cost);
            builder.task(format!("task.{number}"), operation, arguments);
            if self.dependencies && number > 0 && rng.u8(0..6) == 0 {
                builder.order(rng.usize(0..number), number);
            }
        }
    }

    /// The inputs of a task, of which some are overwritten. Half of them are recent,
    /// so that there are long chains.
    fn inputs(
        &self,
        builder: &mut Builder,
        rng: &mut Rng,
        number: usize,
        alive: &mut [DatumId],
    ) -> Vec<Argument> {
        let mut arguments = Vec::new();
        let mut taken = Vec::new();
        let least = u32::from(!self.outputs);
        for input in 0..rng.u32(least..=self.inputs) {
            let last = alive.len();
            let at = match rng.bool() {
                true => rng.usize(0..last),
                false => rng.usize(last.saturating_sub(4)..last),
            };
            let from = alive[at];
            if taken.contains(&from) {
                continue;
            }
            taken.push(from);
            if self.dependencies && rng.u8(0..5) == 0 {
                let (name, wanted) = (format!("version.{number}.{input}"), rng.u8(0..3) == 0);
                let to = builder.version(name, from, wanted);
                // The new version is not for this task.
                taken.push(to);
                alive[at] = to;
                arguments.push(Argument::InOut { from, to });
            } else {
                arguments.push(Argument::Input(from));
            }
        }
        arguments
    }
}
