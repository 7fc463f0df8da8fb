//! A device's memory and queues for one case, and launches on them.

use std::sync::Arc;

use super::case::{Argument, Case, Variant};
use super::{Options, TrialError, Verdict};
use crate::codelet::{BufferId, HostMemoryId, Memory, Value};
use crate::runtime::{
    Command, CommandKind, Completion, DeviceId, DeviceSpan, EventId, HostSpan, Launch, QueueId,
    Runtime, RuntimeError, Status, Tag,
};

/// Bytes of the transfer that holds launches up: some milliseconds.
const GATE: u64 = 128 << 20;

/// Numbers of an output that are looked at.
const LOOKS: usize = 2048;

/// Bits of an output before it is computed: no number.
const POISON: u8 = 0xff;

/// A queue, and the memory of its launches.
struct Lane {
    queue: QueueId,
    inputs: Vec<Memory>,
    output: Memory,
}

/// What holds launches up.
struct Gate {
    queue: QueueId,
    from: HostMemoryId,
    to: BufferId,
    bytes: u64,
}

pub(super) struct Bench<'a> {
    runtime: &'a mut dyn Runtime,
    device: DeviceId,
    host: Vec<HostMemoryId>,
    buffers: Vec<BufferId>,
    lanes: Vec<Lane>,
    gate: Option<Gate>,
    /// Host memory for an output.
    back: Option<HostMemoryId>,
    inputs: Vec<Vec<f32>>,
    random: fastrand::Rng,
}

impl<'a> Bench<'a> {
    pub(super) fn new(runtime: &'a mut dyn Runtime, device: DeviceId) -> Self {
        Self {
            runtime,
            device,
            host: Vec::new(),
            buffers: Vec::new(),
            lanes: Vec::new(),
            gate: None,
            back: None,
            inputs: Vec::new(),
            random: fastrand::Rng::with_seed(0),
        }
    }

    /// Allocates memory for every queue, and fills it with random numbers from
    /// -1 to 1.
    pub(super) fn prepare(&mut self, case: &Case, options: Options) -> Result<(), TrialError> {
        self.random = fastrand::Rng::with_seed(options.seed);
        let shares = self.runtime.devices()[self.device.0].shares_host_memory;
        let mut staged = Vec::new();
        for numbers in &case.inputs {
            let random = &mut self.random;
            let input: Vec<f32> = (0..*numbers).map(|_| 2.0 * random.f32() - 1.0).collect();
            staged.push(self.host_memory(bytemuck::cast_slice(&input))?);
            self.inputs.push(input);
        }
        let back = self.host_memory(&vec![POISON; case.output * size_of::<f32>()])?;
        self.back = Some(back);
        for _ in 0..options.queues.max(1) {
            let queue = self.runtime.queue(self.device)?;
            let mut lane = Lane {
                queue,
                inputs: Vec::new(),
                output: Memory::Host(back),
            };
            for (host, numbers) in staged.iter().zip(&case.inputs) {
                lane.inputs.push(match shares {
                    true => Memory::Host(*host),
                    false => Memory::Device(self.copied(queue, *host, *numbers)?),
                });
            }
            lane.output = match shares {
                // The first lane's is the one that is looked at.
                true if self.lanes.is_empty() => Memory::Host(back),
                true => Memory::Host(self.host_memory(&vec![0; case.output * size_of::<f32>()])?),
                false => Memory::Device(self.copied(queue, back, case.output)?),
            };
            self.lanes.push(lane);
        }
        if !shares {
            let bytes = GATE.min(self.runtime.devices()[self.device.0].memory / 16);
            self.gate = Some(Gate {
                queue: self.runtime.queue(self.device)?,
                from: self.host_memory(&vec![0; bytes as usize])?,
                to: self.buffer(bytes)?,
                bytes,
            });
        }
        Ok(())
    }

    /// Releases everything.
    pub(super) fn free(&mut self) {
        for lane in self.lanes.drain(..) {
            self.runtime.free_queue(lane.queue);
        }
        if let Some(gate) = self.gate.take() {
            self.runtime.free_queue(gate.queue);
        }
        for buffer in self.buffers.drain(..) {
            self.runtime.free(buffer);
        }
        for memory in self.host.drain(..) {
            self.runtime.free_host(memory);
        }
    }

    /// Computes once on poisoned memory and looks at the result.
    pub(super) fn check(&mut self, case: &Case, variant: &Variant) -> Result<Verdict, TrialError> {
        let (queue, output) = (self.lanes[0].queue, self.lanes[0].output);
        let Some(back) = self.back else {
            unreachable!("a bench is prepared before it is used")
        };
        self.runtime.host_bytes(back)?.fill(POISON);
        let span = HostSpan {
            memory: back,
            offset: 0,
            bytes: (case.output * size_of::<f32>()) as u64,
        };
        if let Memory::Device(buffer) = output {
            let to = DeviceSpan { buffer, offset: 0 };
            self.submit(queue, Command::Write { from: span, to }, &[])?;
            self.all(1)?;
        }
        let launched = self
            .submit(queue, self.launch(case, variant, 0), &[])
            .and_then(|_| self.all(1));
        match launched {
            Ok(_) => {}
            Err(
                TrialError::Failed { why, .. }
                | TrialError::Runtime(
                    RuntimeError::Build { log: why, .. } | RuntimeError::Call { why, .. },
                ),
            ) => return Ok(Verdict::Refused(why)),
            Err(other) => return Err(other),
        }
        if let Memory::Device(buffer) = output {
            let from = DeviceSpan { buffer, offset: 0 };
            self.submit(queue, Command::Read { from, to: span }, &[])?;
            self.all(1)?;
        }
        let bytes = self.runtime.host_bytes(back)?;
        let got: &[f32] = &bytemuck::cast_slice(bytes)[..case.output];
        let error = error(case, &self.inputs, got, &mut self.random);
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
    ) -> Result<f64, TrialError> {
        let mut commands = 0;
        let mut wait = Vec::new();
        if let Some(gate) = &self.gate {
            let from = HostSpan {
                memory: gate.from,
                offset: 0,
                bytes: gate.bytes,
            };
            let to = DeviceSpan {
                buffer: gate.to,
                offset: 0,
            };
            wait.push(self.submit(gate.queue, Command::Write { from, to }, &[])?);
            commands += 1;
        }
        for launch in 0..options.launches.max(1) {
            // A queue is in order: its first launch waits for all of it.
            let wait = if launch == 0 { &wait[..] } else { &[] };
            for lane in 0..self.lanes.len() {
                let command = self.launch(case, variant, lane);
                self.submit(self.lanes[lane].queue, command, wait)?;
                commands += 1;
            }
        }
        let done = self.all(commands)?;
        let launches = || done.iter().filter(|c| c.kind == CommandKind::Launch);
        let begin = launches().map(|c| c.started).min().unwrap_or(0);
        let end = launches().map(|c| c.ended).max().unwrap_or(0);
        Ok(end.saturating_sub(begin).max(1) as f64 * 1e-9 / launches().count().max(1) as f64)
    }

    fn launch(&self, case: &Case, variant: &Variant, lane: usize) -> Command {
        let lane = &self.lanes[lane];
        let args = case.args.iter().map(|argument| match argument {
            Argument::Input(index) => Value::Memory(lane.inputs[*index]),
            Argument::Output => Value::Memory(lane.output),
            Argument::Value(value) => *value,
        });
        Command::Launch(Launch {
            codelet: Arc::clone(&variant.codelet),
            units: 0..case.units,
            args: args.collect(),
            cost: case.cost,
        })
    }

    /// Host memory that begins with these bytes.
    fn host_memory(&mut self, contents: &[u8]) -> Result<HostMemoryId, TrialError> {
        let memory = self.runtime.alloc_host(contents.len().max(1) as u64)?;
        self.host.push(memory);
        self.runtime.host_bytes(memory)?[..contents.len()].copy_from_slice(contents);
        Ok(memory)
    }

    fn buffer(&mut self, bytes: u64) -> Result<BufferId, TrialError> {
        let buffer = self.runtime.alloc(self.device, bytes.max(1))?;
        self.buffers.push(buffer);
        Ok(buffer)
    }

    /// A buffer with host memory's numbers.
    fn copied(
        &mut self,
        queue: QueueId,
        memory: HostMemoryId,
        numbers: usize,
    ) -> Result<BufferId, TrialError> {
        let bytes = (numbers * size_of::<f32>()) as u64;
        let buffer = self.buffer(bytes)?;
        let from = HostSpan {
            memory,
            offset: 0,
            bytes,
        };
        let to = DeviceSpan { buffer, offset: 0 };
        self.submit(queue, Command::Write { from, to }, &[])?;
        self.all(1)?;
        Ok(buffer)
    }

    fn submit(
        &mut self,
        queue: QueueId,
        command: Command,
        wait: &[EventId],
    ) -> Result<EventId, TrialError> {
        let tag = Tag {
            step: 0,
            label: "trial".into(),
            units: 0..0,
        };
        Ok(self.runtime.submit(queue, command, wait, tag)?)
    }

    /// Completions of this many commands, all of which went well.
    fn all(&mut self, commands: usize) -> Result<Vec<Completion>, TrialError> {
        let mut all = Vec::with_capacity(commands);
        let mut failure = None;
        while all.len() < commands {
            let Some(done) = self.runtime.wait(None)? else {
                break;
            };
            let why = match &done.status {
                Status::Done => None,
                Status::Failed(why) | Status::DeviceLost(why) => Some(why.clone()),
                Status::Skipped => Some("a command before it failed".to_owned()),
            };
            let device = &self.runtime.devices()[done.device.0].name;
            failure = failure.or(why.map(|why| TrialError::Failed {
                device: device.clone(),
                what: done.kind.name(),
                why,
            }));
            all.push(done);
        }
        failure.map_or(Ok(all), Err)
    }
}

/// The largest error of the numbers looked at, of their root mean square; an
/// output that has no number somewhere is infinitely wrong.
fn error(case: &Case, inputs: &[Vec<f32>], got: &[f32], random: &mut fastrand::Rng) -> f64 {
    if !got.iter().all(|number| number.is_finite()) {
        return f64::INFINITY;
    }
    let ends = [0, case.output - 1];
    let others = (0..LOOKS).map(|_| random.usize(0..case.output));
    let (mut worst, mut squares) = (0.0_f64, 0.0);
    for at in ends.into_iter().chain(others) {
        let right = (case.right)(inputs, at);
        worst = worst.max((f64::from(got[at]) - right).abs());
        squares += right * right;
    }
    let mean = (squares / (LOOKS + ends.len()) as f64).sqrt();
    match mean > 0.0 {
        true => worst / mean,
        false => worst,
    }
}
