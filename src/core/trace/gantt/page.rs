//! Charts in a page that is as wide as its window, zooms and pans, on canvases. It loads
//! nothing from elsewhere.

use std::io::{self, Write};

use super::{Chart, Escaped};

/// The style of charts in a page, and the script that draws them from what [`write_data`] writes.
///
/// [`write_data`]: super::write_data
pub const STYLE: &str = concat!(include_str!("chart.css"), include_str!("dark.css"));
pub const SCRIPT: &str = include_str!("chart.js");

/// Writes the charts as a page, one below the other on one time axis.
///
/// # Errors
/// Those of the writer.
pub fn write(charts: &[Chart], out: impl Write) -> io::Result<()> {
    let mut out = out;
    let titles: Vec<String> = charts.iter().map(|chart| chart.about.title()).collect();
    write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>pdawl: {}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main></main>\n\
         <script>{SCRIPT}</script>\n<script>\nnew Charts(document.querySelector('main')).show(",
        Escaped(&titles.join("; "))
    )?;
    // A script's text ends at the first `</script`, even within a string.
    let mut data = Vec::new();
    super::write_data(charts, &mut data)?;
    write!(
        out,
        "{}",
        String::from_utf8_lossy(&data).replace('<', "\\u003c")
    )?;
    writeln!(out, ");\n</script>\n</body>\n</html>")?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::super::{Sheet, Table};
    use super::*;
    use crate::trace::fixtures::{about, two_devices};

    fn page() -> String {
        let mut trace = two_devices();
        trace.spans[0].label = "</script><b>".into();
        let table = Table {
            header: vec!["Device".into(), "Share".into()],
            rows: vec![vec!["<host>".into(), "40 %".into()]],
        };
        let chart = || Chart {
            trace: &trace,
            about: about(),
            sheet: Sheet {
                table: Some(table.clone()),
                notes: vec!["no <report>".into()],
                ..Sheet::default()
            },
        };
        let mut out = Vec::new();
        write(&[chart(), chart()], &mut out).unwrap();
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
    fn names_cannot_break_out() {
        let page = page();
        assert_eq!(page.matches("</script>").count(), 2);
        for part in ["<b>", "<host>", "<report>"] {
            assert!(!page.contains(part), "{part}");
        }
        assert!(page.contains("(simulated)</title>"));
    }
}
