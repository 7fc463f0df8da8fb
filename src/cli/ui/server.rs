//! The server of the page: who gets an answer, and which.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use pdawl_api::machine;
use pdawl_api::trace::gantt;
use serde::{Deserialize, Serialize};

use super::catalogue::{Catalogue, unfit};
use super::http::{self, Connection, JSON, Method, Request, Response};
use super::runs::{Ran, RunError, Runs};
use super::watch;
use crate::failure::Failure;

/// What the page asks for.
#[derive(Deserialize)]
struct Asked {
    /// Of a run, after `pdawl run`.
    words: Vec<String>,
    /// Whether its commands are drawn, too.
    #[serde(default)]
    chart: bool,
}

/// A server of a page, on a port of 127.0.0.1.
pub struct Server {
    /// Where the page is.
    pub address: String,
    /// What each path begins with.
    root: String,
    hosts: [String; 2],
    runs: Runs,
    /// Runs that were made, as JSON.
    files: Vec<u8>,
    /// Shared with the thread of each client.
    clients: Arc<()>,
    stop: &'static AtomicBool,
}

/// Clients at once, at most: a browser has six for a page.
const CLIENTS: usize = 64;

/// 128 random bits.
fn token() -> Result<String, Failure> {
    let mut bytes = [0; 16];
    match rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()) {
        Ok(16) => Ok(format!("{:032x}", u128::from_ne_bytes(bytes))),
        _ => Err(Failure::failed(
            "the system gives no random numbers",
            "the same on another system",
        )),
    }
}

/// Opens the address in a browser, if there is one; it is printed anyway.
pub fn open(address: &str) {
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

impl Server {
    /// A server at this port, or at any free one if it is 0, and what listens for clients.
    ///
    /// # Errors
    /// When the port cannot be had.
    pub fn listen(
        port: u16,
        files: Vec<u8>,
        stop: &'static AtomicBool,
    ) -> Result<(TcpListener, Self), Failure> {
        let unable = |error: std::io::Error| {
            Failure::failed(
                format!("the page cannot be served at port {port} of 127.0.0.1: {error}"),
                "another --port, or none for any free one",
            )
        };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(unable)?;
        let port = listener.local_addr().map_err(unable)?.port();
        let root = format!("/{}/", token()?);
        let server = Self {
            address: format!("http://127.0.0.1:{port}{root}"),
            root,
            hosts: [format!("127.0.0.1:{port}"), format!("localhost:{port}")],
            runs: Runs::new().map_err(unable)?,
            files,
            clients: Arc::default(),
            stop,
        };
        Ok((listener, server))
    }

    /// Answers clients until the program ends.
    pub fn accept(&self, listener: &TcpListener) {
        thread::scope(|scope| {
            while http::readable(listener, self.stop) {
                let Ok((stream, _)) = listener.accept() else {
                    // There are too many open files, for a while.
                    thread::sleep(Duration::from_millis(50));
                    continue;
                };
                let client = Arc::clone(&self.clients);
                if Arc::strong_count(&client) <= CLIENTS {
                    // Without a thread, this client finds its connection closed.
                    let _ = thread::Builder::new().spawn_scoped(scope, || {
                        self.serve(stream);
                        drop(client);
                    });
                }
            }
        });
    }

    /// Answers a client.
    fn serve(&self, stream: TcpStream) {
        let Ok(mut client) = Connection::new(stream, self.stop) else {
            return;
        };
        let answer = match client.request() {
            Ok(request) => request.and_then(|request| self.answer(&request, &client)),
            Err(refusal) => Some(refusal),
        };
        if let Some(answer) = answer {
            // A client that has gone needs none.
            let _ = client.answer(&answer);
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
            (Method::Get, "made.js") => text("text/javascript", include_str!("page/made.js")),
            (Method::Get, "state.js") => text("text/javascript", include_str!("page/state.js")),
            (Method::Get, "views.js") => text("text/javascript", include_str!("page/views.js")),
            (Method::Get, "page.css") => text("text/css", include_str!("page/page.css")),
            (Method::Get, "chart.js") => text("text/javascript", gantt::SCRIPT),
            (Method::Get, "chart.css") => text("text/css", gantt::STYLE),
            (Method::Get, "catalogue") => Some(json(&Catalogue::new())),
            (Method::Get, "files") => Some(Response::of(JSON, self.files.clone())),
            (Method::Get, "watch") => Some(Response::of(JSON, watch::so_far())),
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
        match (self.runs).run(&asked.words, drawn.then_some(ending), client) {
            Ok(Ran {
                chart: Some(drawing),
                ..
            }) if ending == "svg" => Some(Response::of("image/svg+xml", drawing)),
            Ok(Ran { report, chart }) => {
                Some(Response::of(JSON, joined(&report, chart.as_deref())))
            }
            Err(RunError::Refused(why)) => Some(Response::refused(422, &why)),
            Err(RunError::Left) => None,
        }
    }
}

/// A report and a chart, which are JSON, as one.
pub fn joined(report: &[u8], chart: Option<&[u8]>) -> Vec<u8> {
    let chart = chart.unwrap_or(b"null");
    [b"{\"report\":", report, b",\"chart\":", chart, b"}"].concat()
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
    fn tokens_differ() {
        let [one, other] = [token().unwrap(), token().unwrap()];
        assert!(one.len() == 32 && one != other);
    }
}
