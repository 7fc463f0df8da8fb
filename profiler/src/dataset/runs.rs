//! The index of a dataset's runs.

use std::collections::HashMap;

use super::Fault;
use crate::Sample;

/// The key of a run: a dataset has each key once.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    pub machine: String,
    pub device: String,
    pub codelet: String,
    pub configuration: String,
    pub repeat: u32,
}

/// The key of a run: to know whether it was measured already.
pub fn key(sample: &Sample) -> Key {
    Key {
        machine: sample.machine.clone(),
        device: sample.device.clone(),
        codelet: sample.codelet.clone(),
        configuration: sample.configuration.clone(),
        repeat: sample.repeat,
    }
}

/// The runs that were seen, each with its line.
#[derive(Debug, Default)]
pub(super) struct Runs {
    lines: HashMap<Key, usize>,
    first: Option<(bool, usize)>,
}

impl Runs {
    /// Whether a run can be added to those noted.
    ///
    /// # Errors
    /// A run that is there already; a simulated one among measured ones, or
    /// the other way round.
    pub fn fits(&self, sample: &Sample) -> Result<(), Fault> {
        if let Some((simulated, line)) = self.first
            && simulated != sample.simulated
        {
            let first = if simulated { "simulated" } else { "measured" };
            return Err(Fault::new(
                "simulated",
                sample.simulated,
                format!("differs from line {line}, which is {first}"),
                "keep simulated and measured runs in files of their own",
            ));
        }
        let Some(line) = self.lines.get(&key(sample)) else {
            return Ok(());
        };
        Err(Fault::new(
            "repeat",
            sample.repeat,
            format!(
                "stands on line {line} already, with the same machine, device, codelet and \
                 configuration"
            ),
            "remove one of the two, or give each repeat its own number",
        ))
    }

    /// Notes a run and its line.
    pub fn note(&mut self, sample: &Sample, line: usize) {
        self.first.get_or_insert((sample.simulated, line));
        self.lines.insert(key(sample), line);
    }

    pub fn contains(&self, key: &Key) -> bool {
        self.lines.contains_key(key)
    }
}
