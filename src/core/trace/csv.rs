//! Spans as CSV, a row for each, for data frames and spreadsheets.
//!
//! | column | meaning |
//! |---|---|
//! | `origin` | `simulated` or `measured` |
//! | `machine`, `strategy` | as in the report |
//! | `device`, `queue` | device name, index of the queue within the device |
//! | `kind` | `write` (H2D), `ndrange` or `read` (D2H) |
//! | `label` | the purpose of the command |
//! | `step` | the step it belongs to, counted from 0 |
//! | `first_unit`, `units` | the units concerned |
//! | `bytes` | bytes moved between host and device |
//! | `ready_ns` ... `ended_ns` | nanoseconds on the runtime's clock |

use std::io::Write;

use super::{About, Trace};

/// The header, in the order of the columns.
const HEADER: [&str; 16] = [
    "origin",
    "machine",
    "strategy",
    "device",
    "queue",
    "kind",
    "label",
    "step",
    "first_unit",
    "units",
    "bytes",
    "ready_ns",
    "queued_ns",
    "submitted_ns",
    "started_ns",
    "ended_ns",
];

/// Writes the header and every span.
///
/// # Errors
/// Those of the writer.
pub fn write(trace: &Trace, about: &About, out: impl Write) -> std::io::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(HEADER).map_err(of_system)?;
    for span in &trace.spans {
        let number = |number: u64| number.to_string();
        let written = writer.write_record([
            about.origin(),
            &about.machine,
            &about.strategy,
            super::device_name(trace, span.device),
            &number(span.queue as u64),
            span.kind.name(),
            &span.label,
            &number(span.step.into()),
            &number(span.units.start),
            &number(span.units.end.saturating_sub(span.units.start)),
            &number(span.bytes),
            &number(span.ready),
            &number(span.queued),
            &number(span.submitted),
            &number(span.started),
            &number(span.ended),
        ]);
        written.map_err(of_system)?;
    }
    writer.flush()
}

/// The system's error, whose kind the format's own error hides.
fn of_system(error: csv::Error) -> std::io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => std::io::Error::other(format!("{other:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{about, two_devices};
    use super::*;

    fn text(trace: &Trace) -> String {
        let mut out = Vec::new();
        write(trace, &about(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn reads_back_what_was_written() {
        let trace = two_devices();
        let text = text(&trace);
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        assert_eq!(reader.headers().unwrap(), &HEADER[..]);
        let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
        assert_eq!(rows.len(), trace.spans.len());
        let write = &rows[1];
        assert_eq!(&write[0], "simulated");
        assert_eq!(&write[3], "gpu <0> & \"co\"");
        assert_eq!(&write[5], "write");
        assert_eq!((&write[8], &write[9], &write[10]), ("0", "8", "4096"));
        assert_eq!((&write[11], &write[14], &write[15]), ("90", "100", "300"));
    }

    #[test]
    fn an_empty_trace_still_has_its_header() {
        assert_eq!(text(&Trace::default()).trim(), HEADER.join(","));
    }
}
