//! The memory and the queues of one case on a device, and launches on them.

use std::sync::Arc;

use super::case::{Argument, Case, Variant};
use super::{Options, Verdict};
use crate::codelet::{Element, HostMemoryId, Memory, Value};
use crate::runtime::{Command, CommandKind, DeviceId, Launch, QueueId, Runtime, RuntimeError};
use crate::scope::{DeviceArray, RuntimeScope};
use crate::verify::numbers;

/// Bytes of the transfer that launches wait for: some milliseconds.
const GATE: u64 = 128 << 20;

/// Numbers of an output that are checked.
const LOOKS: usize = 2048;

/// A byte of an output before it is computed, which makes it no number.
const POISON: u8 = 0xff;

/// A queue, and the memory of its launches.
struct Lane {
    queue: QueueId,
    inputs: Vec<Memory>,
    output: DeviceArray,
}

/// A transfer that launches wait for.
struct Gate {
    queue: QueueId,
    array: DeviceArray,
}

/// One device with the memory and the queues of a case.
pub(super) struct Bench<'a> {
    scope: RuntimeScope<'a>,
    lanes: Vec<Lane>,
    /// `None` on a device that shares the host's memory.
    gate: Option<Gate>,
    inputs: Vec<Vec<f64>>,
    random: fastrand::Rng,
}

impl<'a> Bench<'a> {
    /// Allocates memory for every queue, and fills it with random numbers from
    /// -1 to 1.
    pub(super) fn open(
        runtime: &'a mut dyn Runtime,
        device: DeviceId,
        case: &Case,
        options: Options,
    ) -> Result<Self, RuntimeError> {
        let mut scope = RuntimeScope::on(runtime);
        let mut random = fastrand::Rng::with_seed(options.seed);
        let element = case.format.element();
        let bytes = |numbers: usize| numbers as u64 * element.bytes();
        let mut draw = |numbers: &usize| -> Vec<u8> {
            let drawn = (0..*numbers).map(|_| f64::from(2.0 * random.f32() - 1.0));
            let mut stored = vec![0; bytes(*numbers) as usize];
            element.store(drawn, &mut stored);
            stored
        };
        let stored: Vec<Vec<u8>> = case.inputs.iter().map(&mut draw).collect();
        let inputs = stored.iter().map(|stored| numbers(stored, element));
        let inputs: Vec<Vec<f64>> = inputs.collect();
        let info = &scope.devices()[device.0];
        let (shares, memory) = (info.shares_host_memory, info.memory);
        // Queues share the host's copy of the inputs, and of the first output.
        let mut host_inputs: Vec<HostMemoryId> = Vec::new();
        let mut lanes: Vec<Lane> = Vec::new();
        for _ in 0..options.queues.max(1) {
            let queue = scope.queue(device)?;
            let mut memories = Vec::new();
            for (index, input) in stored.iter().enumerate() {
                let size = input.len() as u64;
                let array = match host_inputs.get(index) {
                    None => scope.array(device, size)?,
                    Some(host) => scope.array_over(*host, device, size)?,
                };
                if host_inputs.len() == index {
                    host_inputs.push(array.host);
                }
                scope.fill(queue, &array, input)?;
                memories.push(array.memory());
            }
            let output = match lanes.first().filter(|_| !shares) {
                None => scope.array(device, bytes(case.output))?,
                Some(first) => scope.array_over(first.output.host, device, bytes(case.output))?,
            };
            lanes.push(Lane {
                queue,
                inputs: memories,
                output,
            });
        }
        let gate = match shares {
            true => None,
            false => Some(Gate {
                queue: scope.queue(device)?,
                array: scope.array(device, GATE.min(memory / 16))?,
            }),
        };
        Ok(Self {
            scope,
            lanes,
            gate,
            inputs,
            random,
        })
    }

    /// Computes once on poisoned memory and checks the result.
    pub(super) fn check(
        &mut self,
        case: &Case,
        variant: &Variant,
    ) -> Result<Verdict, RuntimeError> {
        let (queue, output) = (self.lanes[0].queue, self.lanes[0].output);
        let poison = vec![POISON; output.bytes as usize];
        self.scope.fill(queue, &output, &poison)?;
        let launch = self.launch(case, variant, 0);
        match self.scope.run(queue, launch) {
            Ok(()) => {}
            Err(
                RuntimeError::Failed { why, .. }
                | RuntimeError::Unfit { why, .. }
                | RuntimeError::Build { log: why, .. }
                | RuntimeError::Call { why, .. },
            ) => return Ok(Verdict::Refused(why)),
            Err(other) => return Err(other),
        }
        let bytes = self.scope.contents(queue, &output)?;
        let element = case.format.element();
        let got = &bytes[..case.output * element.bytes() as usize];
        let got = numbers(got, element);
        let error = error(case, &self.inputs, &got, &mut self.random);
        Ok(match error <= case.tolerance {
            true => Verdict::Right { error },
            false => Verdict::Wrong { error },
        })
    }

    /// Seconds of a launch.
    pub(super) fn time(
        &mut self,
        case: &Case,
        variant: &Variant,
        options: Options,
    ) -> Result<f64, RuntimeError> {
        let mut commands = 0;
        let mut wait = Vec::new();
        if let Some(Gate { queue, array }) = &self.gate
            && let Some(buffer) = array.buffer
        {
            let write = Command::write(array.host, 0..array.bytes, buffer, 0);
            wait.push(self.scope.enqueue(*queue, write, &[])?);
            commands += 1;
        }
        for launch in 0..options.launches.max(1) {
            // A queue is in order, so its other launches wait, too.
            let wait = if launch == 0 { &wait[..] } else { &[] };
            for lane in 0..self.lanes.len() {
                let command = self.launch(case, variant, lane);
                let queue = self.lanes[lane].queue;
                self.scope.enqueue(queue, command, wait)?;
                commands += 1;
            }
        }
        let done = self.scope.completions(commands)?;
        let launches = || done.iter().filter(|c| c.kind == CommandKind::Launch);
        let begin = launches().map(|c| c.started).min().unwrap_or(0);
        let end = launches().map(|c| c.ended).max().unwrap_or(0);
        Ok(end.saturating_sub(begin).max(1) as f64 * 1e-9 / launches().count().max(1) as f64)
    }

    fn launch(&self, case: &Case, variant: &Variant, lane: usize) -> Command {
        let lane = &self.lanes[lane];
        let args = case.args.iter().map(|argument| match argument {
            Argument::Input(index) => Value::Memory(lane.inputs[*index]),
            Argument::Output => Value::Memory(lane.output.memory()),
            Argument::Value(value) => *value,
        });
        Command::Launch(Launch {
            codelet: Arc::clone(&variant.codelet),
            units: 0..case.units,
            args: args.collect(),
            cost: case.cost,
        })
    }
}

/// The largest error of the numbers checked beyond that of rounding them to the format, relative
/// to their root mean square; infinite for an output that holds something else than numbers.
fn error(case: &Case, inputs: &[Vec<f64>], got: &[f64], random: &mut fastrand::Rng) -> f64 {
    if !got.iter().all(|number| number.is_finite()) {
        return f64::INFINITY;
    }
    let element = case.format.element();
    let ends = [0, case.output - 1];
    let others = (0..LOOKS).map(|_| random.usize(0..case.output));
    let (mut worst, mut squares) = (0.0_f64, 0.0);
    for at in ends.into_iter().chain(others) {
        let right = (case.right)(inputs, at);
        let rounding = match element {
            Element::F16 | Element::Bf16 => element.unit() * right.abs().max(element.least()),
            // The tolerance counts it.
            Element::F32 | Element::F64 => 0.0,
        };
        worst = worst.max((got[at] - right).abs() - rounding);
        squares += right * right;
    }
    let mean = (squares / (LOOKS + ends.len()) as f64).sqrt();
    match mean > 0.0 {
        true => worst / mean,
        false => worst,
    }
}
