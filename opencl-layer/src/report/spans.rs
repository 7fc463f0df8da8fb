//! The times of commands, for a trace.
//!
//! Drivers have clocks of their own. A command is queued right before its enqueueing
//! function returns, so the least difference between the host's clock then and the
//! driver's time of queueing is how much a device's clock is behind.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};
use std::time::Instant;

use opencl_sys::{
    CL_COMMAND_COPY_BUFFER, CL_COMMAND_READ_BUFFER, CL_COMMAND_WRITE_BUFFER,
    CL_PROFILING_COMMAND_END, CL_PROFILING_COMMAND_QUEUED, CL_PROFILING_COMMAND_START,
    CL_PROFILING_COMMAND_SUBMIT,
};
use pdawl::codelet::Name;
use pdawl::runtime::CommandKind;
use pdawl::trace::{self, Trace};

use crate::command::Command;
use crate::native::Native;

/// Spans of a process at most, and commands of a queue that have not ended.
const MOST: usize = 1_000_000;
/// The queue of samples.
const SAMPLES: usize = usize::MAX;

/// Whether one more command may be kept.
pub fn has_room(kept: usize) -> bool {
    kept < MOST
}

/// What a command is.
#[derive(Clone)]
pub struct SpanCommand {
    kind: CommandKind,
    label: Name,
    bytes: u64,
}

impl SpanCommand {
    pub fn new(kind: CommandKind, label: impl Into<Name>, bytes: u64) -> Self {
        let label = label.into();
        Self { kind, label, bytes }
    }
}

/// A command of the program's.
pub fn of(command: &Command) -> SpanCommand {
    if let Some(launch) = command.launch() {
        let name = launch.kernel.name.to_string_lossy();
        return SpanCommand::new(CommandKind::Launch, Name::Shared(name.into()), 0);
    }
    let bytes = command
        .uses
        .iter()
        .map(|used| used.range.len() as u64)
        .max()
        .unwrap_or(0);
    match command.kind {
        CL_COMMAND_READ_BUFFER => SpanCommand::new(CommandKind::Read, "read", bytes),
        CL_COMMAND_WRITE_BUFFER => SpanCommand::new(CommandKind::Write, "write", bytes),
        CL_COMMAND_COPY_BUFFER => SpanCommand::new(CommandKind::Copy, "copy", bytes),
        _ => SpanCommand::new(CommandKind::Copy, "other", bytes),
    }
}

/// A command that may not have ended.
pub struct Pending {
    what: SpanCommand,
    pub place: usize,
    native: Arc<Native>,
    /// When its enqueueing function had returned.
    host: u64,
}

impl Pending {
    pub fn new(what: SpanCommand, place: usize, native: &Arc<Native>) -> Self {
        let native = Arc::clone(native);
        Self {
            what,
            place,
            native,
            host: host_now(),
        }
    }

    /// Its span; `None` while it runs, an error if there is none.
    pub fn span(&self, queue: usize, device: &str) -> Option<Result<Span, ()>> {
        match self.native.execution_status() {
            Ok(status) if status > 0 => None,
            Ok(0) => Some(Span::of(
                &self.what,
                queue,
                device,
                &self.native,
                Some(self.host),
            )),
            _ => Some(Err(())),
        }
    }
}

/// A command that has ended.
pub struct Span {
    what: SpanCommand,
    queue: usize,
    device: String,
    /// Queued, submitted, started and ended by the device's clock.
    times: [u64; 4],
    host: Option<u64>,
}

impl Span {
    fn of(
        what: &SpanCommand,
        queue: usize,
        device: &str,
        native: &Native,
        host: Option<u64>,
    ) -> Result<Self, ()> {
        let whats = [
            CL_PROFILING_COMMAND_QUEUED,
            CL_PROFILING_COMMAND_SUBMIT,
            CL_PROFILING_COMMAND_START,
            CL_PROFILING_COMMAND_END,
        ];
        let mut times = [0; 4];
        for (time, what) in times.iter_mut().zip(whats) {
            *time = native.device_time(what).map_err(drop)?;
        }
        Ok(Self {
            what: what.clone(),
            queue,
            device: device.to_owned(),
            times,
            host,
        })
    }
}

fn host_now() -> u64 {
    static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
    u64::try_from(BEGAN.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// The spans of the process.
#[derive(Default)]
pub struct Spans {
    spans: Vec<Span>,
    pub lost: u64,
    /// By device: what must be added to its times.
    behind: HashMap<String, i128>,
}

impl Spans {
    pub fn add(&mut self, ended: Vec<Span>) {
        for span in ended {
            if let Some(host) = span.host {
                let behind = i128::from(host) - i128::from(span.times[0]);
                let least = self.behind.entry(span.device.clone()).or_insert(behind);
                *least = behind.min(*least);
            }
            match has_room(self.spans.len()) {
                true => self.spans.push(span),
                false => self.lost += 1,
            }
        }
    }

    /// Adds a sample that has ended.
    pub fn sample(&mut self, device: &str, native: &Native) {
        let what = SpanCommand::new(CommandKind::Launch, "sample", 0);
        self.add(
            Span::of(&what, SAMPLES, device, native, None)
                .into_iter()
                .collect(),
        );
    }

    /// The trace. Samples have the queue after the last.
    pub fn trace(&self, queues: usize) -> Trace {
        let mut devices: Vec<String> = Vec::new();
        let mut spans = Vec::new();
        for span in &self.spans {
            let device = devices.iter().position(|device| *device == span.device);
            let device = device.unwrap_or_else(|| {
                devices.push(span.device.clone());
                devices.len() - 1
            });
            let behind = self.behind.get(&span.device).copied().unwrap_or(0);
            let at = |index: usize| {
                u64::try_from((i128::from(span.times[index]) + behind).max(0)).unwrap_or(u64::MAX)
            };
            spans.push(trace::Span {
                device,
                queue: span.queue.min(queues),
                kind: span.what.kind,
                label: span.what.label.clone(),
                codelet: None,
                step: 0,
                units: 0..0,
                // When a command became ready is not known.
                ready: at(2),
                queued: at(0),
                submitted: at(1),
                started: at(2),
                ended: at(3),
                bytes: span.what.bytes,
                workers: None,
            });
        }
        Trace {
            devices,
            spans,
            ..Trace::default()
        }
    }
}
