//! The chart in a page that is as wide as its window and zooms and pans:
//! wheel to zoom, drag to pan, double click for all.

use std::io::Write;

use super::svg;
use crate::trace::escape::Escaped;
use crate::trace::{About, Trace};

/// Commands of at least this many pixels are bars of their own, so that they can
/// be told apart when the chart is enlarged.
const THINNEST: f64 = 0.05;

/// Writes the chart as a page that loads nothing from elsewhere.
///
/// # Errors
/// Those of the writer.
pub fn write(trace: &Trace, about: &About, out: impl Write) -> std::io::Result<()> {
    let mut out = out;
    writeln!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <title>pdawl: {}</title>\n<style>{STYLE}</style>\n</head>\n<body>",
        Escaped(&about.title())
    )?;
    svg::draw(trace, about, THINNEST, &mut out)?;
    writeln!(
        out,
        "<p>Wheel: zoom. Drag: pan. Double click: everything. Hover: details.</p>\n\
         <script>{SCRIPT}</script>\n</body>\n</html>"
    )?;
    out.flush()
}

const STYLE: &str = "\
body { margin: 0; overflow-x: auto; background: #ffffff; font: 12px system-ui, sans-serif; color: #57606a; }\
p { margin: 4px 16px; }\
svg { display: block; }\
#plot { cursor: grab; }";

const SCRIPT: &str = include_str!("zoom.js");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::fixtures::{about, two_devices};

    fn page() -> String {
        let mut out = Vec::new();
        write(&two_devices(), &about(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn nothing_is_loaded_from_elsewhere() {
        let page = page().replace("http://www.w3.org/2000/svg", "");
        for outside in ["http:", "https:", "src=", "href=", "@import", "url("] {
            assert!(!page.contains(outside), "{outside}");
        }
    }

    #[test]
    fn the_chart_follows_the_width_of_the_window() {
        assert!(page().contains("new ResizeObserver(fill).observe(document.body)"));
    }

    #[test]
    fn the_script_finds_what_it_redraws() {
        let page = page();
        for id in ["plot", "axis", "unit", "steps"] {
            assert!(page.contains(&format!("id=\"{id}\"")), "{id}");
            assert!(SCRIPT.contains(&format!("'{id}'")), "{id}");
        }
        assert!(page.contains("(simulated)</title>"));
    }
}
