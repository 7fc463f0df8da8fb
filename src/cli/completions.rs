//! `pdawl completions`: scripts by which shells complete commands and options.

use clap::{Command, ValueEnum};
use clap_complete::aot::{self, generate};

use super::failure::Failure;
use super::terminal;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  pdawl completions bash > ~/.local/share/bash-completion/completions/pdawl\n  \
                  pdawl completions zsh > ~/.zfunc/_pdawl\n  \
                  pdawl completions fish > ~/.config/fish/completions/pdawl.fish\n\n\
                  A folder such as ~/.zfunc must be in zsh's fpath."
)]
pub struct Args {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// A shell that is written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

impl From<Shell> for aot::Shell {
    fn from(shell: Shell) -> Self {
        match shell {
            Shell::Bash => Self::Bash,
            Shell::Zsh => Self::Zsh,
            Shell::Fish => Self::Fish,
        }
    }
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Result<(), Failure> {
    let mut script = Vec::new();
    let shell = aot::Shell::from(args.shell);
    generate(shell, &mut shown(), "pdawl", &mut script);
    terminal::print(&String::from_utf8_lossy(&script))
}

/// The command line without what is hidden: scripts would have it.
fn shown() -> Command {
    let all = super::command();
    let shown = all.get_subcommands().filter(|each| !each.is_hide_set());
    Command::new("pdawl")
        .version(env!("CARGO_PKG_VERSION"))
        .args(all.get_arguments())
        .subcommands(shown)
}
