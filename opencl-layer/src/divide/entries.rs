//! What is known of dividing a launch: by its key, its shape, the sizes of its arguments and
//! the scalars that decide which bytes it writes.

use std::fmt::Write;
use std::sync::Arc;

use super::verdict::{self, begin};
use crate::argument::Argument;
use crate::cut::Cut;
use crate::launch::Launch;
use crate::program::SeparateGroups;
use crate::records::{Deciding, DivisionRecord};

impl Launch {
    /// What is known of dividing it.
    pub fn division(&self) -> &Arc<DivisionRecord> {
        self.division.get_or_init(|| {
            let record = self.record();
            let deciding = deciding(self, self.kernel.separate_groups());
            record.divisions.of(deciding, |deciding, _| {
                let key = begin(record) + &text(deciding);
                let kept = verdict::kept(&key, self);
                Arc::new(DivisionRecord::new(key, Cut::all(&self.shape), kept))
            })
        })
    }
}

fn deciding(launch: &Launch, separate_groups: &SeparateGroups) -> Deciding {
    let Ok(division) = separate_groups else {
        return Deciding::new();
    };
    let iterates = launch.iterates();
    let decides = |index: &usize| {
        division.scalars.contains(index) || (iterates && division.fixed.contains(index))
    };
    let arguments = launch.arguments.iter().enumerate();
    let deciding = arguments.filter_map(|(index, set)| match &set.argument {
        Argument::Bytes(bytes) if decides(&index) => Some((index, Some(Arc::clone(bytes)))),
        Argument::Local(_) => Some((index, None)),
        _ => None,
    });
    deciding.collect()
}

/// What decides, as files have it.
fn text(deciding: &Deciding) -> String {
    let mut text = String::new();
    for (index, bytes) in deciding {
        // Writing to a string does not fail.
        let _ = match bytes {
            Some(_) => write!(text, " {index}="),
            None => write!(text, " {index}!"),
        };
        for byte in bytes.iter().flat_map(|bytes| bytes.iter()) {
            let _ = write!(text, "{byte:02x}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_values_and_their_absence() {
        let value: Arc<[u8]> = [1, 0xab].as_slice().into();
        let deciding = vec![(2, None), (10, Some(value))];
        assert_eq!(text(&deciding), " 2! 10=01ab");
        assert_eq!(text(&Deciding::new()), "");
    }
}
