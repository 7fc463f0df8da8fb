//! `pdawl man`: manual pages, made of the same descriptions as `--help`.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use super::failure::Failure;
use super::output::Output;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  pdawl man ~/.local/share/man/man1 && man pdawl-run-stencil")]
pub struct Args {
    /// The folder of the pages, which is made if it is missing
    #[arg(value_name = "DIRECTORY")]
    directory: PathBuf,
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Result<(), Failure> {
    fs::create_dir_all(&args.directory).map_err(|error| {
        Failure::failed(
            format!(
                "cannot make the folder {}: {error}",
                args.directory.display()
            ),
            "a folder that can be written",
        )
    })?;
    let mut command = super::command().disable_help_subcommand(true);
    command.build();
    write(&command, &args.directory)
}

/// Writes the page of a command, and those of its subcommands.
fn write(command: &Command, folder: &Path) -> Result<(), Failure> {
    let man = Man::new(command.clone())
        .source(concat!("pdawl ", env!("CARGO_PKG_VERSION")))
        .manual("pdawl");
    let page = Output::prepare(&folder.join(man.get_filename()))?;
    let mut shown = command.get_subcommands().filter(|each| !each.is_hide_set());
    page.write(|mut out| {
        man.render_title(&mut out)?;
        man.render_name_section(&mut out)?;
        man.render_synopsis_section(&mut out)?;
        man.render_description_section(&mut out)?;
        man.render_options_section(&mut out)?;
        if command.has_subcommands() {
            man.render_subcommands_section(&mut out)?;
        }
        examples(command).to_writer(&mut out)
    })?;
    shown.try_for_each(|each| write(each, folder))
}

/// What follows the options in the help: examples, whose lines are indented, and text.
fn examples(command: &Command) -> Roff {
    let help = command.get_after_help().map(ToString::to_string);
    let help = help.unwrap_or_default();
    let (_, lines) = help.split_once(":\n").unwrap_or_default();
    let mut section = Roff::new();
    section.control("SH", ["EXAMPLES"]);
    let mut is_command = false;
    for line in lines.lines() {
        if line.starts_with("  ") != is_command {
            is_command = !is_command;
            // A command line keeps its line ends and is not hyphenated.
            section.control(if is_command { "nf" } else { "fi" }, []);
        }
        section.text([roman(line)]);
    }
    section
}
