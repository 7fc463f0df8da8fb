//! `pdawl ui`: serves a page to this machine's browser, which shows what simulated runs would be,
//! and runs that were made.
//!
//! * [`server`] answers the page. [`http`] reads requests and writes responses, [`runs`] starts
//!   the runs, and [`catalogue`] says what the page offers. `page/` is the page; the charts'
//!   script and style are those of `--gantt`.
//! * [`files`] reads runs that were made, and [`watch`] shows one while it goes on.
//!
//! Only 127.0.0.1 is listened on, and each address begins with a random token, so that neither
//! other machines nor other users' pages reach it.

mod catalogue;
mod files;
mod http;
mod runs;
mod server;
pub mod watch;

use std::fmt::Write;

use schemars::JsonSchema;
use serde::Serialize;

use super::args::Format;
use super::failure::Failure;
use super::{interrupt, terminal};
use catalogue::unfit;
use server::{Server, open};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  pdawl ui\n  pdawl ui run stencil --machine k40 --fault gpu0:slow:2@10\n  \
                        pdawl ui report.json trace.json\n  pdawl ui --port 8080 --no-open"
)]
pub struct Args {
    /// The port of the page [default: any free one]
    #[arg(
        long,
        value_name = "PORT",
        default_value_t = 0,
        hide_default_value = true
    )]
    port: u16,

    /// Only print the address
    #[arg(long)]
    no_open: bool,

    /// How the address is printed
    #[arg(long, value_enum, default_value_t)]
    format: Format,

    /// Runs that were made, from `pdawl run` with `--format json` or `--trace FILE`; or `run` and a
    /// workload with its options, a run to begin with
    #[arg(
        value_name = "FILE|run WORKLOAD",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    shown: Vec<String>,
}

/// Where the page is.
#[derive(JsonSchema, Serialize)]
pub struct Served {
    /// For a browser on this machine.
    address: String,
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Result<(), Failure> {
    let stop = interrupt::listen()?;
    let (files, begin) = match args.shown.split_first() {
        Some((first, words)) if first == "run" => match unfit(words) {
            None => (files::read(&[])?, fragment(words)),
            Some(why) => return Err(Failure::usage(why, "another run")),
        },
        _ => (files::read(&args.shown)?, String::new()),
    };
    let (listener, server) = Server::listen(args.port, files, stop)?;
    let served = Served {
        address: format!("{}{begin}", server.address),
    };
    terminal::print_report(args.format, &served, |of| {
        format!("{}\nCtrl-C ends it.\n", of.address)
    })?;
    if !args.no_open {
        open(&served.address);
    }
    server.accept(&listener);
    Err(Failure::Interrupted)
}

/// The part of the address that has the page's state.
fn fragment(words: &[String]) -> String {
    let mut text = String::from("#run=");
    for (at, word) in words.iter().enumerate() {
        text.push_str(if at > 0 { "+" } else { "" });
        for byte in word.bytes() {
            let plain = byte.is_ascii_alphanumeric() || b"-._:,=/@".contains(&byte);
            // Writing to a string does not fail.
            let _ = match plain {
                true => write!(text, "{}", char::from(byte)),
                false => write!(text, "%{byte:02X}"),
            };
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_in_the_address_whatever_is_in_it() {
        let words = ["spmv", "--matrix", "a b#&%.mtx"].map(str::to_owned);
        assert_eq!(fragment(&words), "#run=spmv+--matrix+a%20b%23%26%25.mtx");
    }
}
