//! Spans as a Gantt chart: an SVG file, or an HTML page that fills its window,
//! zooms and pans. Both are self-contained. Several runs are drawn on one time axis.
//!
//! `palette` gives each codelet a colour, and `rows` reduces the spans to bars of at
//! least a given time, so that a long run gives a small file. `axis` chooses ticks, and
//! `layout` has the positions. `svg` draws each `bar`, how busy devices are (`strips`),
//! the `flows` between commands, the `marks` of bounds, the `labels` around them and the
//! `legend`, with room for their `text`, and the `table` of the report. `html` adds the
//! script `zoom.js` to that drawing.

mod axis;
mod bar;
mod flows;
mod html;
mod labels;
mod layout;
mod legend;
mod marks;
mod palette;
mod rows;
mod strips;
mod svg;
mod table;
mod text;

#[cfg(test)]
mod boxes_tests;

pub use html::write as write_html;
pub use svg::write as write_svg;
pub use table::Table;

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
    /// Drawn under the chart.
    pub table: Option<Table>,
    /// Lines under the table.
    pub notes: Vec<String>,
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
