//! Spans as a Gantt chart: an SVG file, or an HTML page that fills its window,
//! zooms and pans. Both are self-contained.
//!
//! `rows` reduces the spans to bars of at least a given time, so that a long run
//! gives a small file. `axis` chooses ticks, and `layout` has the positions. `svg`
//! draws each `bar`, the `flows` between them and the `labels` around them, with room for
//! their `text`. `html`
//! adds the script `zoom.js` to that drawing.

mod axis;
mod bar;
mod flows;
mod html;
mod labels;
mod layout;
mod rows;
mod svg;
mod text;

#[cfg(test)]
mod boxes_tests;

pub use html::write as write_html;
pub use svg::write as write_svg;
