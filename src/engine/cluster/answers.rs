//! What other nodes ask for: it is sent as soon as host memory has it.

use super::encode::with_room;
use super::error::ClusterError;
use super::node::{Interruption, Node};
use super::subtasks::Subtasks;
use crate::cluster::NodeId;
use crate::cluster::protocol::{Message, RequestId};
use crate::cluster::space::Part;
use crate::cluster::task::chain::Source;

/// Parts that another node is to get.
pub(super) struct Answer {
    pub to: NodeId,
    pub sources: Vec<Source>,
    pub kind: AnswerKind,
}

/// As what they are sent.
pub(super) enum AnswerKind {
    /// For a request of a task.
    Data(RequestId),
    /// A part of a result, in this attempt.
    Piece(u64),
}

impl Node<'_> {
    /// Sends parts of spaces that another node asked for.
    pub(super) fn serve(
        &mut self,
        to: NodeId,
        request: RequestId,
        sources: Vec<Source>,
    ) -> Result<(), ClusterError> {
        self.answers.push(Answer {
            to,
            sources,
            kind: AnswerKind::Data(request),
        });
        self.answer()
    }

    /// Sends a part to the node that collects it.
    pub(super) fn send_piece(&mut self, to: NodeId, part: Part) -> Result<(), ClusterError> {
        self.answers.push(Answer {
            to,
            sources: vec![Source::before(part)],
            kind: AnswerKind::Piece(self.machine.restarts()),
        });
        self.answer()
    }

    /// Sends what host memory has, and has the rest copied there.
    pub(super) fn answer(&mut self) -> Result<(), ClusterError> {
        for answer in std::mem::take(&mut self.answers) {
            match self.subtasks.want(&self.spaces, &answer.sources) {
                Ok(true) => self.send_answer(answer)?,
                Ok(false) => self.answers.push(answer),
                // The other node knows already that this one answers for a lost one, or does not
                // need it any longer.
                Err(_) => self.unserved.push(answer),
            }
        }
        Ok(())
    }

    /// Waits until host memory has parts, which this node has.
    ///
    /// # Errors
    /// When the tasks begin anew, and what a run refuses.
    pub(super) fn until_here(&mut self, parts: Vec<Part>) -> Result<(), Interruption> {
        let sources: Vec<Source> = parts.into_iter().map(Source::before).collect();
        while !self.subtasks.want(&self.spaces, &sources)? {
            self.turn()?;
            self.check_restart()?;
        }
        Ok(())
    }

    fn send_answer(&mut self, answer: Answer) -> Result<(), ClusterError> {
        let Answer { to, sources, kind } = answer;
        let message = match (&kind, sources.first()) {
            (AnswerKind::Piece(attempt), Some(source)) => Message::Piece {
                attempt: *attempt,
                part: source.part.clone(),
            },
            (AnswerKind::Data(request), _) => Message::Data { request: *request },
            (AnswerKind::Piece(_), None) => return Ok(()),
        };
        let parts = sources.iter().map(|source| &source.part);
        let bytes = parts.map(|part| self.spaces.bytes(part)).sum();
        let (mut message, at) = with_room(&message, bytes)?;
        let Subtasks { graph, store, .. } = &self.subtasks;
        let copied = &mut message[at..];
        store.copy_all(graph, self.runtime, &self.spaces, &sources, copied)?;
        if let AnswerKind::Data(_) = kind {
            self.record.sent_bytes += (message.len() - at) as u64;
        }
        Ok(self.wire.send(to.index(), message)?)
    }
}
