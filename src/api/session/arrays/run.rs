//! An operation that is about to run.

use super::alone::OperationOptions;
use crate::policy::{NamedPolicy, PolicyNameError};
use crate::session::{Error, GraphOptions, GraphPolicy, Run, Session};

/// An operation on arrays that is about to run.
pub struct ArrayRun<'a, R> {
    session: &'a mut Session,
    operation: Box<Operation<'a, R>>,
    wrong: Option<Error>,
    options: OperationOptions,
}

type Operation<'a, R> =
    dyn FnOnce(&mut Session, OperationOptions) -> Result<ArrayResult<R>, Error> + 'a;

/// What an operation has computed, and the report of its run.
#[derive(Clone, Debug)]
pub struct ArrayResult<R> {
    pub result: R,
    pub run: Run,
}

/// Refuses what was found wrong.
pub fn checked<R>(computed: ArrayResult<R>) -> Result<ArrayResult<R>, Error> {
    match &computed.run.verification {
        Some(found) if !found.right => Err(Error::Wrong(found.wrong.unwrap_or(1))),
        _ => Ok(computed),
    }
}

impl<'a, R> ArrayRun<'a, R> {
    pub(super) fn new(
        session: &'a mut Session,
        operation: impl FnOnce(&mut Session, OperationOptions) -> Result<ArrayResult<R>, Error> + 'a,
    ) -> Self {
        let options = GraphOptions {
            gpu_memory: session.gpu_memory,
            ..GraphOptions::of(NamedPolicy::LOCALITY)
        };
        Self {
            session,
            operation: Box::new(operation),
            wrong: None,
            options: options.into(),
        }
    }

    /// The policy of this name, as in `pdawl run matmul --policy`; `locality` unless it is said.
    pub fn policy(mut self, name: &str) -> Self {
        match name.parse() {
            Ok(named) => self.options.run.policy = GraphPolicy::Named(named),
            Err(error) => self.wrong = Some(PolicyNameError::into(error)),
        }
        self
    }

    /// Tiles of so many rows and columns; a transform's subtasks have so many lines. By default
    /// those that suit the devices.
    pub fn tile(mut self, rows: u32) -> Self {
        self.options.tile = Some(rows.into());
        self
    }

    /// At most so many bytes of each GPU's memory.
    pub fn gpu_memory(mut self, bytes: u64) -> Self {
        self.options.run.gpu_memory = Some(bytes);
        self
    }

    /// Compares the result with a reference; a wrong one is [`Error::Wrong`].
    pub fn verify(mut self) -> Self {
        self.options.run.verify = true;
        self
    }

    /// Keeps the times of every command.
    pub fn traced(mut self) -> Self {
        self.options.run.traced = true;
        self
    }

    /// Runs it.
    ///
    /// # Errors
    /// What is wrong with the arguments, a matrix that has no such factors, when memory does
    /// not suffice, when all devices are lost, and [`Error::Stopped`].
    pub fn run(self) -> Result<ArrayResult<R>, Error> {
        if let Some(wrong) = self.wrong {
            return Err(wrong);
        }
        if self.options.tile == Some(0) {
            return Err(Error::Arguments(
                "a tile has at least 1 row, and 0 are asked for".to_owned(),
            ));
        }
        checked((self.operation)(self.session, self.options)?)
    }
}
