//! Spans as a Gantt chart: an SVG file, or an HTML page that fills its window,
//! zooms and pans. Both are self-contained. Several runs are drawn on one time axis.
//!
//! `rows` reduces the spans to bars of at least a given time, so that a long run gives a
//! small file. `layout` has the positions, `labels` are around the plot, and the `legend` gives
//! each codelet a colour. `svg` draws all that, with the `table` of the report. `data` writes it
//! as JSON, which the script `chart.js` draws on canvases of a `page`.

mod data;
mod labels;
mod layout;
mod legend;
mod page;
mod rows;
mod svg;
mod table;

#[cfg(test)]
mod boxes_tests;

pub use data::write as write_data;
pub use page::{SCRIPT, STYLE, write as write_html};
pub use svg::write as write_svg;
pub use table::Table;

use std::fmt;

use serde::Serialize;

use super::{About, Trace};

/// A run to draw.
#[derive(Clone, Debug)]
pub struct Chart<'a> {
    pub trace: &'a Trace,
    pub about: About,
    pub sheet: Sheet,
}

/// What a report adds to the spans of its run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sheet {
    /// Times that the run could not go below.
    pub bounds: Vec<Bound>,
    /// Devices that were lost, or came back.
    pub losses: Vec<Happened>,
    /// Steps that began with another plan.
    pub plans: Vec<Happened>,
    /// Drawn under the chart.
    pub table: Option<Table>,
    /// Lines under the table.
    pub notes: Vec<String>,
}

/// What happened at the begin of a step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Happened {
    pub step: u32,
    pub what: String,
}

/// A time that a run could not go below.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// Two words, such as `critical path`.
    pub name: &'static str,
    /// What it means, in a sentence.
    pub meaning: &'static str,
    /// From the begin of the run.
    pub seconds: f64,
}

/// Displays a string with its markup escaped. Control characters, which XML
/// forbids, are replaced.
pub struct Escaped<'a>(pub &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        use fmt::Write;
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                '\n' => f.write_char('\n')?,
                c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => {
                    f.write_char('\u{fffd}')?
                }
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_and_control_characters_are_gone() {
        assert_eq!(
            Escaped("<a href=\"x\">&'\u{1b}\u{0}\n</a>").to_string(),
            "&lt;a href=&quot;x&quot;&gt;&amp;&#39;\u{fffd}\u{fffd}\n&lt;/a&gt;"
        );
    }
}
