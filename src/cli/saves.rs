//! Files of a co-run's results.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use pdawl_api::codelet::Precision;
use pdawl_api::matrix::npy::{ElementType, write_array_header};
use pdawl_api::workload::kernel::Sink;

use super::failure::Failure;
use super::output::Output;
use super::terminal;

/// A result that the user wants to save.
pub struct SavedResult {
    /// Of an array of numbers, which a header in the file describes.
    pub array: Option<(Vec<u64>, Precision)>,
    pub bytes: Vec<u8>,
}

/// The array of the last run, which the user wants to save.
#[derive(Clone, Debug, Default)]
pub struct KeptArray(Arc<Mutex<Vec<u8>>>);

impl KeptArray {
    /// What a workload passes its result to.
    pub fn sink(&self) -> Sink {
        let kept = Arc::clone(&self.0);
        Sink::new(move |_, bytes| {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            *kept = bytes.to_vec();
        })
    }

    /// Takes the array, whose shape follows from how many numbers it has.
    pub fn take(&self, shape: impl FnOnce(u64) -> Vec<u64>, precision: Precision) -> SavedResult {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = std::mem::take(&mut *kept);
        let numbers = bytes.len() as u64 / precision.bytes();
        SavedResult {
            array: Some((shape(numbers), precision)),
            bytes,
        }
    }
}

/// The files of results, each by the result's position.
pub struct Saves(pub Vec<(usize, Output)>);

impl Saves {
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
    pub fn write(self, results: &BTreeMap<usize, SavedResult>) -> Result<(), Failure> {
        for (position, output) in self.0 {
            if let Some(SavedResult { array, bytes }) = results.get(&position) {
                output.write(|out| {
                    if let Some((shape, precision)) = array {
                        write_array_header(out, shape, ElementType::Real(*precision))?;
                    }
                    out.write_all(bytes)
                })?;
            }
        }
        Ok(())
    }
}
