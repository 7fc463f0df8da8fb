//! The writers of a buffer in a program's own memory.

use std::ops::Range;
use std::sync::Arc;

use crate::lock::{Mutex, VIEW};
use crate::native::Native;

/// What a buffer in a program's memory has more.
#[derive(Default)]
pub struct HostView {
    /// Commands that wrote the buffer, until the program's memory has their bytes.
    writers: Mutex<Vec<(Range<usize>, Arc<Native>)>, VIEW>,
}

impl HostView {
    /// Notes a command that writes a range.
    pub fn written(&self, range: Range<usize>, native: &Arc<Native>) {
        let mut writers = self.writers.lock();
        // What is written again is brought with the later command's bytes.
        writers.retain(|(other, _)| other.start < range.start || range.end < other.end);
        writers.push((range, Arc::clone(native)));
    }

    /// The ranges whose writers have all ended; they are forgotten.
    pub fn take_ended(&self) -> Vec<Range<usize>> {
        let mut writers = self.writers.lock();
        let has_ended = |native: &Native| native.execution_status().is_ok_and(|status| status <= 0);
        let (mut ended, mut running): (Vec<_>, Vec<_>) =
            writers.drain(..).partition(|(_, native)| has_ended(native));
        let meets = |range: &Range<usize>| {
            running
                .iter()
                .any(|(other, _)| other.start < range.end && range.start < other.end)
        };
        let (kept, whole): (Vec<_>, Vec<_>) = ended.drain(..).partition(|(range, _)| meets(range));
        running.extend(kept);
        *writers = running;
        whole.into_iter().map(|(range, _)| range).collect()
    }
}
