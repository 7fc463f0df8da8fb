//! The chart in a page: wheel to zoom, drag to pan, double click for all.

use std::io::Write;

use super::svg;
use crate::trace::escape::Escaped;
use crate::trace::{About, Trace};

/// Commands down to this many pixels stay apart, to be seen when zoomed in.
const THINNEST: f64 = 0.05;

/// Writes the chart as a page that needs nothing else, not even a network.
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
body { margin: 0; background: #ffffff; font: 12px system-ui, sans-serif; color: #57606a; }\
p { margin: 4px 16px; }\
#plot { cursor: grab; }";

const SCRIPT: &str = include_str!("zoom.js");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::samples::{about, two_devices};

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
    fn the_script_finds_what_it_redraws() {
        let page = page();
        for id in ["plot", "axis", "unit", "steps"] {
            assert!(page.contains(&format!("id=\"{id}\"")), "{id}");
            assert!(SCRIPT.contains(&format!("'{id}'")), "{id}");
        }
        assert!(page.contains("(simulated)</title>"));
    }
}
