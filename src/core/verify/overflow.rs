//! What a report says of results that overflowed.

use super::Compared;

/// A note of a result that was compared.
pub fn note(of: &Compared) -> Option<String> {
    notes(of.numbers, of.not_finite)
}

/// A note of a result of which so many numbers were compared, and so many are infinite or none.
pub fn notes(compared: u64, not_finite: u64) -> Option<String> {
    match (compared, not_finite) {
        (0, _) => Some(
            "not checked: no number of the result could be compared, as all overflow or may do \
             so; numbers of a smaller magnitude, or a greater precision, can be"
                .to_owned(),
        ),
        (_, 0) => None,
        (_, many) => Some(format!(
            "{many} numbers of the result are infinite or NaN: numbers of a smaller magnitude, or \
             a greater precision, do not overflow"
        )),
    }
}

/// A note of a run that its last change ended.
pub fn note_of_change(change: f64, steps: u64) -> Option<String> {
    (!change.is_finite()).then(|| {
        format!(
            "the numbers overflowed: their change is infinite or NaN after {steps} steps, with \
             which the run ended"
        )
    })
}
