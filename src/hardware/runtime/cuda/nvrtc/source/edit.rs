//! Changes of a text that keep its lines where they are.

use std::collections::BTreeMap;
use std::ops::Range;

/// A text, and what is to be changed in it.
pub(super) struct Edits<'a> {
    text: &'a str,
    /// By where each begins: where it ends, and what comes there. The first change of a place
    /// holds.
    changes: BTreeMap<usize, (usize, String)>,
}

impl<'a> Edits<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            text,
            changes: BTreeMap::new(),
        }
    }

    /// The text of some bytes.
    pub(super) fn text(&self, range: Range<usize>) -> &'a str {
        &self.text[range]
    }

    /// Puts another text in the place of some bytes, unless they were changed before. Line
    /// breaks among them stay.
    pub(super) fn replace(&mut self, range: Range<usize>, by: &str) {
        let mut before = self.changes.range(..range.end);
        if before
            .next_back()
            .is_some_and(|(_, (end, _))| *end > range.start)
        {
            return;
        }
        let breaks: String = self.text[range.clone()]
            .split_inclusive('\n')
            .filter(|line| line.ends_with('\n'))
            .map(|line| {
                if line.trim_end().ends_with('\\') {
                    "\\\n"
                } else {
                    "\n"
                }
            })
            .collect();
        self.changes
            .insert(range.start, (range.end, format!("{by}{breaks}")));
    }

    /// The changed text.
    pub(super) fn done(self) -> String {
        let mut text = String::with_capacity(self.text.len() + 256);
        let mut from = 0;
        for (begin, (end, by)) in self.changes {
            text.push_str(&self.text[from..begin]);
            text.push_str(&by);
            from = end;
        }
        text.push_str(&self.text[from..]);
        text
    }
}
