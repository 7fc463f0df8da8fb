//! Prints to the terminal. Styles are dropped where they are not wanted (not a
//! terminal, `NO_COLOR`, a rank of a launcher), and a closed reader causes no panic.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use anstream::AutoStream;
use anstyle::{AnsiColor, Style};
use indicatif::{ProgressBar, ProgressStyle};
use pdawl_api::cluster::wire::environment::Launched;
use pdawl_api::report::{Printed, Schematic};
use serde::Serialize;

use super::args::Format;
use super::failure::Failure;

const ERROR: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
const REMEDY: Style = Style::new().bold();

/// Drops styles and hides bars in a rank that a launcher started. Launchers give ranks
/// pseudo-terminals, whatever they write to themselves, so a rank does not know whether
/// its output comes to a terminal.
pub fn settle() {
    if Launched::detect().is_some() {
        anstream::ColorChoice::Never.write_global();
    }
}

/// Whether standard error shows bars.
fn shows_bars() -> bool {
    Launched::detect().is_none() && std::io::stderr().is_terminal()
}

/// Standard output, once it is kept for reports.
static KEPT: OnceLock<File> = OnceLock::new();

/// Keeps standard output for reports. What drivers write there from then on, such as the
/// output of a kernel's `printf`, goes to standard error, so that a report in JSON stays
/// one. Where that is not possible, both stay on standard output.
pub fn keep_output() {
    // Below 3 it would be taken for a standard stream.
    let Ok(kept) = rustix::io::fcntl_dupfd_cloexec(std::io::stdout(), 3) else {
        return;
    };
    if rustix::stdio::dup2_stdout(std::io::stderr()).is_ok() {
        KEPT.get_or_init(|| File::from(kept));
    }
}

/// Prints text that may carry ANSI styles to standard output.
///
/// # Errors
/// [`Failure::ReaderGone`] for a closed pipe.
pub fn print(text: &str) -> Result<(), Failure> {
    let written = match KEPT.get() {
        Some(kept) => kept
            .try_clone()
            .and_then(|kept| write(&mut AutoStream::auto(kept), text)),
        None => write(&mut anstream::stdout().lock(), text),
    };
    written.map_err(|error| Failure::of_printing(&error))
}

fn write(out: &mut dyn Write, text: &str) -> io::Result<()> {
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// The columns of the terminal on which reports are printed, if they are.
pub fn columns() -> Option<u16> {
    let size = match KEPT.get() {
        Some(kept) => rustix::termios::tcgetwinsize(kept),
        None => rustix::termios::tcgetwinsize(std::io::stdout()),
    };
    size.ok()
        .map(|size| size.ws_col)
        .filter(|columns| *columns > 0)
}

/// Prints a value as indented JSON to standard output.
///
/// # Errors
/// As [`print`].
pub fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let mut text = serde_json::to_string_pretty(value).map_err(Failure::of)?;
    text.push('\n');
    print(&text)
}

/// Prints a report as JSON, or as the text that `text` makes of it.
///
/// # Errors
/// As [`print`].
pub fn print_report<T: Schematic>(
    format: Format,
    report: &T,
    text: impl FnOnce(&T) -> String,
) -> Result<(), Failure> {
    match format {
        Format::Text => print(&text(report)),
        Format::Json => print_json(&Printed::from(report)),
    }
}

/// Those of named files that can be read, with a warning for each other one: a broken file
/// must not hide the others.
pub fn readable<T, E: Display>(
    names: Vec<String>,
    read: impl Fn(&str) -> Result<T, E>,
) -> Vec<(String, T)> {
    let one = |name: String| match read(&name) {
        Ok(file) => Some((name, file)),
        Err(error) => {
            warn(&error.to_string());
            None
        }
    };
    names.into_iter().filter_map(one).collect()
}

/// Prints what a file has as JSON, or as the file's text.
///
/// # Errors
/// As [`print`].
pub fn print_file(format: Format, file: &impl Serialize, text: &str) -> Result<(), Failure> {
    match format {
        Format::Text => print(text),
        Format::Json => print_json(file),
    }
}

/// Prints an error and its remedy to standard error.
pub fn error(what: &str, remedy: Option<&str>) {
    let mut err = anstream::stderr().lock();
    // If standard error is closed, the message is lost.
    let _ = writeln!(err, "{ERROR}pdawl:{ERROR:#} {}", printable(what));
    if let Some(remedy) = remedy {
        let _ = writeln!(err, "  {REMEDY}try:{REMEDY:#} {}", printable(remedy));
    }
}

/// Prints a warning to standard error.
pub fn warn(what: &str) {
    let _ = writeln!(
        anstream::stderr().lock(),
        "{WARNING}pdawl: warning:{WARNING:#} {}",
        printable(what)
    );
}

/// Prints a message beside the result to standard error.
pub fn message(what: &str) {
    let _ = writeln!(anstream::stderr().lock(), "{}", printable(what));
}

/// Escapes control characters, since names in a message may come from anywhere.
fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => shown.push(c),
            c if c.is_control() => shown.extend(c.escape_default()),
            c => shown.push(c),
        }
    }
    shown
}

/// A progress bar on standard error; hidden for JSON and where it is no terminal.
pub fn progress(format: Format, steps: u64, what: &str) -> ProgressBar {
    if format != Format::Text || !shows_bars() {
        let hidden = ProgressBar::hidden();
        hidden.set_length(steps);
        return newest(what, hidden);
    }
    let style = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} [{elapsed}]");
    let bar = ProgressBar::new(steps).with_message(what.to_owned());
    if let Ok(style) = style {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    newest(what, bar)
}

/// What the newest bar is of, and the bar, which counts even where it is hidden.
static NEWEST: Mutex<Option<(String, ProgressBar)>> = Mutex::new(None);

fn newest(what: &str, bar: ProgressBar) -> ProgressBar {
    let mut newest = NEWEST.lock().unwrap_or_else(PoisonError::into_inner);
    *newest = Some((what.to_owned(), bar.clone()));
    bar
}

/// What is being done, how much of it is done, and of how much.
pub fn done() -> Option<(String, u64, Option<u64>)> {
    let newest = NEWEST.lock().unwrap_or_else(PoisonError::into_inner);
    let (what, bar) = newest.as_ref()?;
    Some((what.clone(), bar.position(), bar.length()))
}

/// A spinner with a message on standard error; hidden where it is no terminal.
pub fn spinner() -> ProgressBar {
    if !shows_bars() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new_spinner();
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_control_the_terminal() {
        let text = printable("a\0b\u{1b}[31m c\nd\té");
        assert_eq!(text, "a\\u{0}b\\u{1b}[31m c\nd\té");
    }
}
