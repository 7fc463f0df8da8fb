//! The times of commands, for a trace.
//!
//! Drivers have clocks of their own. A command is queued right before its enqueueing
//! function returns, so the least difference between the host's clock then and the
//! driver's time of queueing is how much a device's clock is behind.

use std::sync::{Arc, LazyLock};
use std::time::Instant;

use opencl_sys::{
    CL_COMMAND_COPY_BUFFER, CL_COMMAND_READ_BUFFER, CL_COMMAND_WRITE_BUFFER,
    CL_PROFILING_COMMAND_END, CL_PROFILING_COMMAND_QUEUED, CL_PROFILING_COMMAND_START,
    CL_PROFILING_COMMAND_SUBMIT,
};
use pdawl_api::codelet::Name;
use pdawl_api::runtime::CommandKind;
use pdawl_api::trace::{Span, Trace};

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

/// A span of a command, whose times are not known yet.
pub fn untimed(kind: CommandKind, label: impl Into<Name>, bytes: u64) -> Span {
    Span {
        device: 0,
        queue: 0,
        kind,
        label: label.into(),
        codelet: None,
        step: 0,
        units: 0..0,
        ready: 0,
        queued: 0,
        submitted: 0,
        started: 0,
        ended: 0,
        bytes,
        workers: None,
    }
}

/// A command of the program's.
pub fn of(command: &Command) -> Span {
    if let Some(launch) = command.launch() {
        let name = launch.kernel.name.to_string_lossy();
        return untimed(CommandKind::Launch, Name::Shared(name.into()), 0);
    }
    let bytes = command.uses.iter().map(|used| used.range.len() as u64);
    let (kind, label) = match command.kind {
        CL_COMMAND_READ_BUFFER => (CommandKind::Read, "read"),
        CL_COMMAND_WRITE_BUFFER => (CommandKind::Write, "write"),
        CL_COMMAND_COPY_BUFFER => (CommandKind::Copy, "copy"),
        _ => (CommandKind::Copy, "other"),
    };
    untimed(kind, label, bytes.max().unwrap_or(0))
}

/// A command that may not have ended.
pub struct Pending {
    span: Span,
    pub place: usize,
    native: Arc<Native>,
    /// When its enqueueing function had returned.
    host: u64,
}

impl Pending {
    pub fn new(span: Span, place: usize, native: &Arc<Native>) -> Self {
        let native = Arc::clone(native);
        Self {
            span,
            place,
            native,
            host: host_now(),
        }
    }

    /// What has ended; `None` while it runs, an error if it has no times.
    pub fn ended(&self, queue: usize, device: &str) -> Option<Result<Ended, ()>> {
        match self.native.execution_status() {
            Ok(status) if status > 0 => None,
            Ok(0) => {
                let mut span = self.span.clone();
                span.queue = queue;
                Some(Ended::of(span, device, &self.native, Some(self.host)))
            }
            _ => Some(Err(())),
        }
    }
}

/// A command that has ended, with times by its device's clock.
pub struct Ended {
    span: Span,
    device: String,
    host: Option<u64>,
}

impl Ended {
    fn of(mut span: Span, device: &str, native: &Native, host: Option<u64>) -> Result<Self, ()> {
        let time = |what| native.device_time(what).map_err(drop);
        span.queued = time(CL_PROFILING_COMMAND_QUEUED)?;
        span.submitted = time(CL_PROFILING_COMMAND_SUBMIT)?;
        span.started = time(CL_PROFILING_COMMAND_START)?;
        span.ended = time(CL_PROFILING_COMMAND_END)?;
        let device = device.to_owned();
        Ok(Self { span, device, host })
    }
}

fn host_now() -> u64 {
    static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
    u64::try_from(BEGAN.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// The spans of the process.
#[derive(Default)]
pub struct Spans {
    /// With times by the devices' clocks.
    spans: Vec<Span>,
    devices: Vec<String>,
    /// By device: what must be added to its times, if it is known.
    behind: Vec<Option<i128>>,
    pub lost: u64,
}

impl Spans {
    pub fn add(&mut self, ended: Vec<Ended>) {
        for Ended {
            mut span,
            device,
            host,
        } in ended
        {
            let known = self.devices.iter().position(|other| *other == device);
            span.device = known.unwrap_or_else(|| {
                self.devices.push(device);
                self.behind.push(None);
                self.devices.len() - 1
            });
            if let Some(host) = host {
                let behind = i128::from(host) - i128::from(span.queued);
                let least = self.behind[span.device].get_or_insert(behind);
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
        let mut span = untimed(CommandKind::Launch, "sample", 0);
        span.queue = SAMPLES;
        self.add(Ended::of(span, device, native, None).into_iter().collect());
    }

    /// The trace. Samples have the queue after the last.
    pub fn trace(&self, queues: usize) -> Trace {
        let spans = self.spans.iter().map(|span| {
            let behind = self.behind[span.device].unwrap_or(0);
            let at = |time: u64| {
                let time = (i128::from(time) + behind).max(0);
                u64::try_from(time).unwrap_or(u64::MAX)
            };
            Span {
                queue: span.queue.min(queues),
                // When a command became ready is not known.
                ready: at(span.started),
                queued: at(span.queued),
                submitted: at(span.submitted),
                started: at(span.started),
                ended: at(span.ended),
                ..span.clone()
            }
        });
        Trace {
            devices: self.devices.clone(),
            spans: spans.collect(),
            ..Trace::default()
        }
    }
}
