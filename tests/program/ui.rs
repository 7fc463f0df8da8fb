//! `pdawl ui` as a server: who gets an answer, what is refused, and how it ends.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use predicates::str::contains;
use serde_json::{Value, json};

use crate::command::{Home, interrupt, process};
use crate::schemas;

/// A server, which ends with its test.
struct Served {
    child: Child,
    host: String,
    /// Path of the page, with its token.
    root: String,
}

impl Served {
    fn start() -> Self {
        let mut child = process("ui --no-open --format json")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let output = child.stdout.take().unwrap();
        let mut printed = serde_json::Deserializer::from_reader(output).into_iter::<Value>();
        let printed = printed.next().expect("a report").unwrap();
        schemas::conforms(&printed);
        let address = printed["address"].as_str().expect("an address");
        let address = address.strip_prefix("http://").expect("an address");
        let (host, path) = address.split_once('/').expect("a path");
        assert!(host.starts_with("127.0.0.1:"), "{host}");
        Self {
            child,
            host: host.to_owned(),
            root: format!("/{path}"),
        }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.host).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        stream
    }

    /// Status and body of the answer.
    fn ask(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        self.ask_as(&self.host, method, path, body)
    }

    fn ask_as(&self, host: &str, method: &str, path: &str, body: &str) -> (u16, String) {
        let mut stream = self.connect();
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\nConnection: close"
        );
        stream
            .write_all(format!("{head}\r\n\r\n{body}").as_bytes())
            .unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let status = answer
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        let (_, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
        (status.expect("a status"), body.to_owned())
    }

    /// The answer to a run.
    fn run(&self, line: &str) -> (u16, Value) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let asked = json!({ "words": words }).to_string();
        let (status, body) = self.ask("POST", &format!("{}run", self.root), &asked);
        (status, serde_json::from_str(&body).expect("JSON"))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn only_the_page_with_its_token_is_answered() {
    let served = Served::start();
    let root = &served.root;
    let (status, page) = served.ask("GET", root, "");
    assert_eq!(status, 200);
    assert!(page.contains("<title>pdawl: what if</title>"));
    assert_eq!(served.ask("GET", &format!("{root}catalogue"), "").0, 200);
    let wrong = format!("/{}/", "0".repeat(32));
    for path in ["/", "/catalogue", &*wrong, &root[..root.len() - 1]] {
        assert_eq!(served.ask("GET", path, "").0, 403, "{path}");
    }
    for host in ["example.org", "127.0.0.1", ""] {
        assert_eq!(served.ask_as(host, "GET", root, "").0, 403, "{host}");
    }
    assert_eq!(served.ask("GET", &format!("{root}none"), "").0, 404);
    assert_eq!(served.ask("GET", &format!("{root}run"), "").0, 404);
    assert_eq!(served.ask("DELETE", root, "").0, 405);
}

#[test]
fn a_run_is_that_of_the_command_and_its_drawing_too() {
    let served = Served::start();
    let home = Home::new();
    let line = "cholesky --machine v100x2,gpu0.speed=2x --size 4096 --policy heft";
    let (status, answer) = served.run(line);
    assert_eq!((status, &answer["chart"]), (200, &Value::Null));
    assert_eq!(
        answer["report"]["seconds"],
        home.json(&format!("run {line}"))["seconds"]
    );
    let asked = json!({ "words": line.split(' ').collect::<Vec<_>>(), "chart": true });
    let (_, body) = served.ask("POST", &format!("{}run", served.root), &asked.to_string());
    let answer: Value = serde_json::from_str(&body).unwrap();
    home.json(&format!("run {line} --gantt a.json --trace t.json"));
    let drawn: Value =
        serde_json::from_str(&std::fs::read_to_string(home.path("a.json")).unwrap()).unwrap();
    assert_eq!(answer["chart"], drawn);
    home.json(&format!("run {line} --gantt a.svg"));
    let (_, svg) = served.ask(
        "POST",
        &format!("{}drawing", served.root),
        &asked.to_string(),
    );
    assert_eq!(svg, std::fs::read_to_string(home.path("a.svg")).unwrap());
    let (_, machine) = served.ask(
        "POST",
        &format!("{}machine", served.root),
        "k40,gpu0.speed=2x",
    );
    assert!(machine.contains("pdawl-machine/1"), "{machine}");
}

#[test]
fn what_a_page_may_not_have_is_refused_in_words() {
    let served = Served::start();
    for (line, expected) in [
        ("stencil", "the page simulates"),
        ("stencil --machine k40 --output /tmp/none.npy", "--output"),
        ("stencil --machine k40 --size many", "--size"),
        (
            "tasks --set matmul2d --n 1000 --machine v100x2",
            "larger tiles or a smaller size",
        ),
        ("stencil --machine k40 --steps 10000000", "fewer steps"),
    ] {
        let (status, answer) = served.run(line);
        let said = answer["error"].as_str().unwrap_or_default();
        assert_eq!(status, 422, "{line}: {answer}");
        assert!(said.contains(expected), "{line}: {said}");
    }
    let (status, answer) = served.run("stencil --machine k40 --steps 3");
    assert_eq!(
        (status, answer["report"]["interrupted"].as_bool()),
        (200, Some(false))
    );
}

#[test]
fn a_thousand_random_requests_harm_nothing() {
    let served = Served::start();
    let (mut random, mut answered) = (fastrand::Rng::with_seed(57), 0);
    let words = [
        "stencil",
        "--machine",
        "k40",
        "--size",
        "-1",
        "\u{1F600}",
        "--",
        "'",
        "run",
        "--steps",
        "2",
    ];
    for _ in 0..1000 {
        let mut bytes: Vec<u8> = match random.u8(0..4) {
            0 => (0..random.usize(0..400)).map(|_| random.u8(..)).collect(),
            kind => {
                let some: Vec<&str> = (0..random.usize(0..7))
                    .map(|_| words[random.usize(..words.len())])
                    .collect();
                let body = json!({ "words": some, "chart": random.bool() }).to_string();
                let path =
                    ["run", "drawing", "machine", "", "catalogue", "../x"][random.usize(..6)];
                let length = if kind == 1 {
                    random.usize(0..99)
                } else {
                    body.len()
                };
                format!(
                    "POST {}{path} HTTP/1.1\r\nHost: {}\r\nContent-Length: {length}\r\n\r\n{body}",
                    served.root, served.host
                )
                .into_bytes()
            }
        };
        if random.u8(0..3) == 0 {
            for _ in 0..random.usize(1..5) {
                let at = random.usize(0..=bytes.len());
                bytes.splice(at..at, [random.u8(..)]);
            }
        }
        let mut stream = served.connect();
        // The server may have closed the connection before it has all.
        let _ = stream
            .write_all(&bytes)
            .and_then(|()| stream.shutdown(Shutdown::Write));
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        answered += usize::from(answer.starts_with(b"HTTP/1.1 "));
    }
    assert!(answered > 300, "{answered}");
    assert_eq!(served.run("stencil --machine k40 --steps 3").0, 200);
}

#[test]
fn a_reader_that_goes_ends_its_run_and_ctrl_c_all() {
    let mut served = Served::start();
    let asked =
        json!({ "words": "matmul --size 200000 --machine v100x4".split(' ').collect::<Vec<_>>() })
            .to_string();
    let head = format!(
        "POST {}run HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n\r\n",
        served.root,
        served.host,
        asked.len()
    );
    let begin = || {
        let mut stream = served.connect();
        stream
            .write_all(format!("{head}{asked}").as_bytes())
            .unwrap();
        stream
    };
    let runs = |wanted: bool| {
        let children = format!("/proc/{0}/task", served.child.id());
        let began = Instant::now();
        loop {
            let tasks = std::fs::read_dir(&children).into_iter().flatten().flatten();
            let any =
                tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
            if any.into_iter().any(|children| !children.trim().is_empty()) == wanted {
                return;
            }
            assert!(
                began.elapsed() < Duration::from_secs(8),
                "its runs: {wanted}"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    let stream = begin();
    runs(true);
    drop(stream);
    runs(false);
    let _stream = begin();
    runs(true);
    interrupt(&served.child);
    assert_eq!(served.child.wait().unwrap().code(), Some(130));
}

#[test]
fn a_wrong_run_or_port_is_refused_at_once() {
    let home = Home::new();
    for (line, code, expected) in [
        ("ui stencil", 1, "stencil: No such file"),
        ("ui run stencil", 2, "the page simulates"),
        ("ui run stencil --machine none", 2, "none"),
        ("ui --port 99999", 2, "--port"),
        ("ui --port 1 --no-open", 1, "127.0.0.1"),
    ] {
        if line.contains("--port 1 ") && rustix::process::geteuid().is_root() {
            continue;
        }
        home.pdawl(line)
            .assert()
            .code(code)
            .stderr(contains(expected));
    }
}
