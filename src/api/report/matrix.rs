//! The report of a matrix, as JSON of schema `pdawl-matrix/1` and as text.

use std::fmt::{self, Write};

use schemars::JsonSchema;
use serde::Serialize;

use super::style::{STRONG, line, notes, styled, written};
use super::table;
use crate::matrix::stats::LengthClass;
use crate::matrix::{MatrixSource, Origin, Stats};
use crate::quantity::{Bytes, Percent, Seconds};

/// Characters of the longest bar.
const BAR: f64 = 24.0;

/// A matrix; matrices.md describes them. Explicit zeros count, summed entries count once.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct MatrixReport {
    /// The name in outputs, which says so if the matrix is a look-alike.
    pub name: String,
    /// As on the command line.
    pub source: String,
    /// `file`, `generated` or `look-alike`.
    pub origin: &'static str,
    /// The seed; `None` for a file.
    pub seed: Option<u64>,
    /// Seconds to read or to generate the matrix.
    pub load_seconds: f64,
    pub rows: u32,
    pub columns: u32,
    pub nonzeros: u64,
    pub row_length: RowLength,
    pub empty_rows: u32,
    /// The greatest distance of an entry from the diagonal, in columns.
    pub bandwidth: u32,
    /// Classes of row lengths: 0, 1, 2, 3 to 4, 5 to 8 ..., without empty ones.
    pub histogram: Vec<LengthClass>,
    /// The file that the matrix was written to.
    pub written: Option<Written>,
    pub notes: Vec<String>,
}

/// Statistics of the number of entries in a row.
#[derive(Clone, Copy, Debug, JsonSchema, Serialize)]
pub struct RowLength {
    pub mean: f64,
    pub deviation: f64,
    /// Deviation over mean; `None` for a matrix without entries.
    pub variation: Option<f64>,
    pub least: u64,
    pub most: u64,
}

/// A file that was written.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Written {
    pub file: String,
    pub bytes: u64,
}

impl MatrixReport {
    /// The report of a matrix from a source, and the seconds that loading took.
    pub fn of(source: &MatrixSource, stats: &Stats, load_seconds: f64) -> Self {
        let origin = match source.origin {
            Origin::File(_) => "file",
            Origin::LookAlike(_) => "look-alike",
            Origin::Banded { .. } | Origin::Uniform { .. } | Origin::Rmat { .. } => "generated",
        };
        Self {
            name: source.name(),
            source: source.origin.to_string(),
            origin,
            seed: (origin != "file").then_some(source.seed),
            load_seconds,
            rows: stats.rows,
            columns: stats.columns,
            nonzeros: stats.nonzeros,
            row_length: RowLength {
                mean: stats.mean,
                deviation: stats.deviation,
                variation: stats.variation(),
                least: stats.least,
                most: stats.most,
            },
            empty_rows: stats.empty_rows,
            bandwidth: stats.bandwidth,
            histogram: stats.histogram.clone(),
            written: None,
            notes: Vec::new(),
        }
    }

    /// The report with ANSI styles.
    pub fn render(&self) -> String {
        written(|out| self.write(out))
    }

    fn write(&self, out: &mut String) -> fmt::Result {
        let size = format!("{} x {}", self.rows, self.columns);
        writeln!(out, "{}: {size}\n", styled(STRONG, &self.name))?;
        line(out, "Nonzeros", self.nonzeros)?;
        let RowLength {
            mean,
            deviation,
            variation,
            least,
            most,
        } = self.row_length;
        let variation = variation.map_or_else(|| "-".to_owned(), |cv| format!("{cv:.2}"));
        line(
            out,
            "A row has",
            format!("{mean:.2} on average, deviation {deviation:.2}, CV {variation}"),
        )?;
        line(out, "", format!("{least} at least, {most} at most"))?;
        line(out, "Empty rows", self.empty_rows)?;
        line(out, "Bandwidth", self.bandwidth)?;
        if let Some(seed) = self.seed {
            line(out, "Seed", seed)?;
        }
        let verb = match self.origin {
            "file" => "Read in",
            _ => "Made in",
        };
        line(out, verb, Seconds(self.load_seconds))?;
        if let Some(Written { file, bytes }) = &self.written {
            line(out, "Written to", format!("{file}, {}", Bytes(*bytes)))?;
        }
        if !self.histogram.is_empty() {
            writeln!(out, "\n{}", self.table())?;
        }
        notes(out, &self.notes)
    }

    fn table(&self) -> String {
        let header = ["Entries a row", "Rows", "of all", "Nonzeros", "of all", ""];
        let mut table = table::plain(&header, |column| (1..=4).contains(&column));
        for class in &self.histogram {
            let share = |part: f64, of: f64| if of > 0.0 { part / of } else { 0.0 };
            let of_rows = share(class.rows.into(), self.rows.into());
            let of_nonzeros = share(class.nonzeros as f64, self.nonzeros as f64);
            table.add_row(vec![
                lengths(class),
                class.rows.to_string(),
                Percent(of_rows).to_string(),
                class.nonzeros.to_string(),
                Percent(of_nonzeros).to_string(),
                "█".repeat((of_rows * BAR).round() as usize),
            ]);
        }
        table.trim_fmt()
    }
}

/// The lengths of a class as text.
fn lengths(class: &LengthClass) -> String {
    match class.least == class.most {
        true => class.least.to_string(),
        false => format!("{} to {}", class.least, class.most),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::Csr;

    fn report(source: &str, matrix: &Csr) -> MatrixReport {
        MatrixReport::of(&source.parse().unwrap(), &Stats::of(matrix), 0.25)
    }

    #[test]
    fn the_text_has_every_figure() {
        let matrix = Csr::new(4, 9, vec![0, 3, 3, 4, 5], vec![0, 4, 8, 2, 3], vec![1.0; 5]);
        let mut report = report("like:in-2004@0.5", &matrix.unwrap());
        report.notes.push("a note".into());
        report.written = Some(Written {
            file: "out.mtx".into(),
            bytes: 2048,
        });
        let text = anstream::adapter::strip_str(&report.render()).to_string();
        for part in [
            "look-alike of in-2004 at 0.5: 4 x 9",
            "Nonzeros    5\n",
            "1.25 on average, deviation 1.09, CV 0.87\n",
            "0 at least, 3 at most\n",
            "Empty rows  1\n",
            "Bandwidth   8\n",
            "Seed        1\n",
            "Made in     250 ms\n",
            "Written to  out.mtx, 2.00 KiB\n",
            "50.0 %",
            "3 to 4",
            "Note: a note\n",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn an_empty_matrix_has_a_report() {
        let matrix = Csr::new(0, 0, vec![0], Vec::new(), Vec::new()).unwrap();
        let report = report("m.mtx", &matrix);
        assert_eq!((report.origin, report.seed), ("file", None));
        assert!(report.render().contains("CV -"));
        let value = serde_json::to_value(&report).unwrap();
        assert!(value["row_length"]["variation"].is_null());
    }
}
