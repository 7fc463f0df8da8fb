//! Commands that can go to one place only.
//!
//! An image lives at one place of its context, because drivers lay images out as they
//! like. Whatever uses an image goes there.

use crate::command::Command;

impl Command {
    /// The only place that can run it, if there is one.
    pub fn fixed_place(&self) -> Option<usize> {
        self.uses.iter().find_map(|used| used.mem.only_place)
    }
}
