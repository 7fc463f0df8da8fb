//! `pdawl ui`: serves a page to this machine's browser, which shows what simulated runs would be.
//!
//! * [`http`] reads requests and writes responses, [`runs`] starts the runs, and [`catalogue`]
//!   says what the page offers. `page/` is the page; the charts' script and style are those of
//!   `--gantt`.
//!
//! Only 127.0.0.1 is listened on, and each address begins with a random token, so that neither
//! other machines nor other users' pages reach it.

mod catalogue;
mod http;
mod runs;

use std::fmt::Write;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::thread;

use pdawl_api::machine;
use pdawl_api::trace::gantt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::args::Format;
use super::failure::Failure;
use super::{interrupt, terminal};
use catalogue::{Catalogue, unfit};
use http::{Connection, JSON, Method, Request, Response};
use runs::{Ran, RunError, Runs};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  pdawl ui\n  pdawl ui run stencil --machine k40 --fault gpu0:slow:2@10\n  \
                        pdawl ui --port 8080 --no-open"
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

    /// A run to begin with, as `pdawl run` takes it
    #[arg(
        value_name = "run WORKLOAD",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    run: Vec<String>,
}

/// Where the page is.
#[derive(JsonSchema, Serialize)]
pub struct Served {
    /// For a browser on this machine.
    address: String,
}

/// What the page asks for.
#[derive(Deserialize)]
struct Asked {
    /// Of a run, after `pdawl run`.
    words: Vec<String>,
    /// Whether its commands are drawn, too.
    #[serde(default)]
    chart: bool,
}

struct Server<'a> {
    /// What each path begins with.
    root: String,
    hosts: [String; 2],
    runs: Runs,
    stop: &'a AtomicBool,
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Result<(), Failure> {
    let stop = interrupt::listen()?;
    let begin = match args.run.split_first() {
        None => String::new(),
        Some((first, words)) if first == "run" => match unfit(words) {
            None => fragment(words),
            Some(why) => return Err(Failure::usage(why, "another run")),
        },
        Some((first, _)) => {
            return Err(Failure::usage(
                format!("`{first}` is no run"),
                "pdawl ui run WORKLOAD",
            ));
        }
    };
    let unable = |error: std::io::Error| {
        let at = args.port;
        Failure::failed(
            format!("the page cannot be served at port {at} of 127.0.0.1: {error}"),
            "another --port, or none for any free one",
        )
    };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, args.port)).map_err(unable)?;
    let port = listener.local_addr().map_err(unable)?.port();
    let server = Server {
        root: format!("/{}/", token()?),
        hosts: [format!("127.0.0.1:{port}"), format!("localhost:{port}")],
        runs: Runs::new().map_err(unable)?,
        stop,
    };
    let address = format!("http://127.0.0.1:{port}{}{begin}", server.root);
    let served = Served { address };
    terminal::print_report(args.format, &served, |of| {
        format!("{}\nCtrl-C ends it.\n", of.address)
    })?;
    if !args.no_open {
        open(&served.address);
    }
    thread::scope(|scope| {
        while http::readable(&listener, stop) {
            if let Ok((stream, _)) = listener.accept() {
                // Without a thread, this client finds its connection closed.
                let _ = thread::Builder::new().spawn_scoped(scope, || server.serve(stream));
            }
        }
    });
    Err(Failure::Interrupted)
}

/// 128 random bits.
fn token() -> Result<String, Failure> {
    let mut bytes = [0_u8; 16];
    let got = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    if got != Ok(bytes.len()) {
        return Err(Failure::failed(
            "the system gives no random numbers",
            "the same on another system",
        ));
    }
    let digits = |mut text: String, byte: u8| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    };
    Ok(bytes.into_iter().fold(String::new(), digits))
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

/// Opens the address in a browser, if there is one; it is printed anyway.
fn open(address: &str) {
    let mut command = Command::new("xdg-open");
    command.arg(address);
    let quiet = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if let Ok(mut opened) = quiet.spawn() {
        // It ends soon; waiting for it leaves no zombie.
        let _ = thread::Builder::new().spawn(move || opened.wait());
    }
}

impl Server<'_> {
    /// Answers a client until it goes.
    fn serve(&self, stream: TcpStream) {
        let Ok(mut client) = Connection::new(stream, self.stop) else {
            return;
        };
        loop {
            let (answer, ends) = match client.next() {
                Ok(Some(request)) => match self.answer(&request, &client) {
                    Some(answer) => (answer, false),
                    None => return,
                },
                Ok(None) => return,
                Err(refusal) => (refusal, true),
            };
            if client.answer(&answer).is_err() || ends {
                return;
            }
        }
    }

    /// The answer to a request; `None` if nobody waits for it.
    fn answer(&self, request: &Request, client: &Connection) -> Option<Response> {
        // A page of elsewhere whose name leads here has that name as the host.
        let path = request.path.strip_prefix(&self.root);
        let (true, Some(path)) = (self.hosts.contains(&request.host), path) else {
            return Some(Response::refused(
                403,
                "the address has no token, or a wrong one",
            ));
        };
        let text = |kind, text: &'static str| Some(Response::of(kind, text.as_bytes()));
        match (request.method, path.split('?').next().unwrap_or_default()) {
            (Method::Get, "") => text("text/html", include_str!("page/index.html")),
            (Method::Get, "page.js") => text("text/javascript", include_str!("page/page.js")),
            (Method::Get, "form.js") => text("text/javascript", include_str!("page/form.js")),
            (Method::Get, "state.js") => text("text/javascript", include_str!("page/state.js")),
            (Method::Get, "views.js") => text("text/javascript", include_str!("page/views.js")),
            (Method::Get, "page.css") => text("text/css", include_str!("page/page.css")),
            (Method::Get, "chart.js") => text("text/javascript", gantt::SCRIPT),
            (Method::Get, "chart.css") => text("text/css", gantt::STYLE),
            (Method::Get, "catalogue") => Some(json(&Catalogue::new())),
            (Method::Post, "run") => self.run(&request.body, client, "json"),
            (Method::Post, "drawing") => self.run(&request.body, client, "svg"),
            (Method::Post, "machine") => Some(machine_of(&request.body)),
            _ => Some(Response::refused(404, "there is no such part of the page")),
        }
    }

    /// Runs what is asked for. A chart is data beside the report, or a drawing alone.
    fn run(&self, body: &[u8], client: &Connection, ending: &str) -> Option<Response> {
        let asked: Asked = match serde_json::from_slice(body) {
            Ok(asked) => asked,
            Err(error) => return Some(Response::refused(400, &error.to_string())),
        };
        if let Some(why) = unfit(&asked.words) {
            return Some(Response::refused(422, &why));
        }
        let drawn = asked.chart || ending == "svg";
        let gantt: &[&str] = if drawn { &["--gantt", "{}"] } else { &[] };
        let rest = ["--format", "json"]
            .iter()
            .chain(gantt)
            .map(|word| (*word).to_owned());
        let words = ["run".to_owned()]
            .into_iter()
            .chain(asked.words)
            .chain(rest);
        let words: Vec<String> = words.collect();
        match self.runs.run(&words, drawn.then_some(ending), client) {
            Ok(Ran {
                chart: Some(drawing),
                ..
            }) if ending == "svg" => Some(Response::of("image/svg+xml", drawing)),
            Ok(Ran { report, chart }) => {
                let chart = chart.unwrap_or_else(|| b"null".to_vec());
                let parts: [&[u8]; 5] = [b"{\"report\":", &report, b",\"chart\":", &chart, b"}"];
                Some(Response::of(JSON, parts.concat()))
            }
            Err(RunError::Refused(why)) => Some(Response::refused(422, &why)),
            Err(RunError::Left) => None,
        }
    }
}

fn json(value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(bytes) => Response::of(JSON, bytes),
        Err(error) => Response::refused(500, &error.to_string()),
    }
}

/// A machine by its name, as figures and as a file.
fn machine_of(name: &[u8]) -> Response {
    #[derive(Serialize)]
    struct Shown {
        machine: machine::MachineFile,
        toml: String,
    }
    let name = String::from_utf8_lossy(name);
    let found = machine::find(&name).and_then(|machine| {
        let toml = machine.to_toml()?;
        Ok(Shown { machine, toml })
    });
    match found {
        Ok(shown) => json(&shown),
        Err(error) => Response::refused(422, &error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_in_the_address_whatever_is_in_it() {
        let words = ["spmv", "--matrix", "a b#&%.mtx"].map(str::to_owned);
        assert_eq!(fragment(&words), "#run=spmv+--matrix+a%20b%23%26%25.mtx");
    }

    #[test]
    fn tokens_differ() {
        let [one, other] = [token().unwrap(), token().unwrap()];
        assert!(one.len() == 32 && one != other);
    }
}
