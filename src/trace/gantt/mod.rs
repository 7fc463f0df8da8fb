//! Spans as a Gantt chart: one self-contained SVG, or that SVG in a page that
//! zooms and pans.
//!
//! `rows` reduces the spans to bars that are at least a given time wide, so
//! a long run gives a small file; `axis` chooses ticks; `layout` says what
//! lies where; `svg` draws the chart of each `bar`, the `flows` between them and
//! the `labels` around them; `html` wraps the drawing with a few lines of script.

mod axis;
mod bar;
mod flows;
mod html;
mod labels;
mod layout;
mod rows;
mod svg;

pub use html::write as write_html;
pub use svg::write as write_svg;
