//! What a node notes for the trace of a run.

use crate::corun::{PROBE, WARM};
use crate::graph::TimedCommand;
use crate::runtime::CommandKind;
use crate::time::Nanos;
use crate::trace::{Span, Trace};
use pdawl_core::cluster::record::{CommandRecord, Stage, TaskRecord};

fn stage(kind: CommandKind) -> Stage {
    match kind {
        CommandKind::Read => Stage::Read,
        CommandKind::Launch => Stage::Compute,
        CommandKind::Write | CommandKind::Copy => Stage::Write,
    }
}

/// Tasks and the commands of their subtasks, on this node's clocks.
#[derive(Default)]
pub(super) struct Traced {
    pub tasks: Vec<TaskRecord>,
    /// How many tasks there were before the present chain.
    before: usize,
    pub commands: Vec<CommandRecord>,
}

impl Traced {
    /// A chain begins, whose tasks follow one another.
    pub fn begin_chain(&mut self) {
        self.before = self.tasks.len();
    }

    pub fn begin(&mut self, name: &str, now: Nanos) {
        self.tasks.push(TaskRecord {
            name: name.to_owned(),
            began: now,
            ended: now,
        });
    }

    pub fn end(&mut self, now: Nanos) {
        if let Some(task) = self.tasks.last_mut() {
            task.ended = now;
        }
    }

    /// Commands of a co-run have ended, whose first step is the task of this number. Those that
    /// came before it are left out.
    pub fn corun(&mut self, trace: &Trace, first: u32) {
        let is_set_up = |span: &&Span| [WARM, PROBE].contains(&&*span.label);
        let spans = trace.spans.iter().filter(|span| !is_set_up(span));
        self.commands.extend(spans.map(|span| CommandRecord {
            device: span.device as u32,
            queue: span.queue as u32,
            stage: stage(span.kind),
            task: first + span.step,
            subtask: 0,
            bytes: span.bytes,
            queued: span.queued,
            started: span.started,
            ended: span.ended,
        }));
    }

    /// A command of a subtask of the chain's task of an index has ended on a device.
    pub fn ended(&mut self, (index, subtask): (usize, u64), command: &TimedCommand) {
        self.commands.push(CommandRecord {
            device: command.device as u32,
            queue: command.queue as u32,
            stage: stage(command.kind),
            task: (self.before + index) as u32,
            subtask,
            bytes: command.bytes,
            queued: command.queued,
            started: command.started,
            ended: command.ended,
        });
    }

    /// The commands, with `shift` added to their times.
    pub fn shifted(&self, shift: i64) -> Vec<CommandRecord> {
        let shifted = |time: Nanos| time.saturating_add_signed(shift);
        let commands = self.commands.iter().map(|command| CommandRecord {
            queued: shifted(command.queued),
            started: shifted(command.started),
            ended: shifted(command.ended),
            ..*command
        });
        commands.collect()
    }
}
