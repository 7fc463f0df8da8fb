//! Files of a co-run's results.

use std::collections::BTreeMap;

use pdawl::codelet::Precision;
use pdawl::matrix::npy::{ElementType, write_array_header};

use super::failure::Failure;
use super::output::Output;
use super::terminal;

/// A file that a result is written to.
struct Save {
    /// Of the result.
    position: usize,
    output: Output,
    /// Of numbers, in front of which a header says how many there are.
    numbers: Option<Precision>,
}

/// The files of results.
pub struct Saves(Vec<Save>);

impl Saves {
    /// Files of results by their positions, without headers.
    pub fn raw(outputs: Vec<(usize, Output)>) -> Self {
        let saves = outputs.into_iter().map(|(position, output)| Save {
            position,
            output,
            numbers: None,
        });
        Self(saves.collect())
    }

    /// The file of the only result, an array of numbers.
    pub fn array(output: Output, precision: Precision) -> Self {
        Self(vec![Save {
            position: 0,
            output,
            numbers: Some(precision),
        }])
    }

    /// Leaves the files unchanged, and says why.
    pub fn drop_unwritten(self, why: &str) {
        if !self.0.is_empty() {
            terminal::warn(&format!("{why}: no result was written"));
        }
    }

    /// Writes the results of the last run.
    ///
    /// # Errors
    /// As [`Output::write`].
    pub fn write(self, results: &BTreeMap<usize, Vec<u8>>) -> Result<(), Failure> {
        for save in self.0 {
            if let Some(bytes) = results.get(&save.position) {
                save.output.write(|out| {
                    if let Some(precision) = save.numbers {
                        let count = bytes.len() as u64 / precision.bytes();
                        write_array_header(out, &[count], ElementType::Real(precision))?;
                    }
                    out.write_all(bytes)
                })?;
            }
        }
        Ok(())
    }
}
