//! HTTP/1.1 as one page on this machine needs it: a request of bounded size a connection, which
//! may end at any time, and a response.

use std::borrow::Cow;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Bytes of a request's head and of its body, at most.
const HEAD: usize = 16 << 10;
const BODY: usize = 256 << 10;
/// Header lines of a request, at most.
const HEADERS: usize = 64;
/// How often a wait looks for the end of the program.
const LOOK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};
/// How long a response may take to be sent, if its reader takes nothing.
const SENDING: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Get,
    Post,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Request {
    pub method: Method,
    /// What follows the host, with a leading `/`.
    pub path: String,
    /// Of the header `Host`.
    pub host: String,
    pub body: Vec<u8>,
}

/// What a request is answered with.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    /// Its media type.
    pub kind: &'static str,
    pub body: Cow<'static, [u8]>,
}

pub const JSON: &str = "application/json";

impl Response {
    pub fn of(kind: &'static str, body: impl Into<Cow<'static, [u8]>>) -> Self {
        Self {
            status: 200,
            kind,
            body: body.into(),
        }
    }

    /// A refusal in words.
    pub fn refused(status: u16, why: &str) -> Self {
        Self {
            status,
            kind: JSON,
            body: serde_json::json!({ "error": why })
                .to_string()
                .into_bytes()
                .into(),
        }
    }

    /// The whole response. A page may load and send nothing elsewhere, and no other page may
    /// have it as a part.
    fn bytes(&self) -> Vec<u8> {
        let reason = match self.status {
            200 => "OK",
            403 => "Forbidden",
            404 => "Not Found",
            _ => "Refused",
        };
        let head = format!(
            "HTTP/1.1 {} {reason}\r\nContent-Type: {}; charset=utf-8\r\nContent-Length: {}\r\n\
             Connection: close\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n\
             Referrer-Policy: no-referrer\r\nCross-Origin-Resource-Policy: same-origin\r\n\
             Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; \
             connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; \
             frame-ancestors 'none'\r\n\r\n",
            self.status,
            self.kind,
            self.body.len()
        );
        [head.as_bytes(), &self.body].concat()
    }
}

/// A connection of a client.
pub struct Connection<'a> {
    stream: TcpStream,
    stop: &'a AtomicBool,
}

impl<'a> Connection<'a> {
    /// # Errors
    /// When the system refuses the stream's options.
    pub fn new(stream: TcpStream, stop: &'a AtomicBool) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(SENDING))?;
        Ok(Self { stream, stop })
    }

    /// The request; `None` at the end of the connection or of the program.
    ///
    /// # Errors
    /// The answer to what is no request.
    pub fn request(&mut self) -> Result<Option<Request>, Response> {
        let (mut came, mut some) = (Vec::new(), [0; 16 << 10]);
        while readable(&self.stream, self.stop) {
            match self.stream.read(&mut some) {
                Ok(0) | Err(_) => return Ok(None),
                Ok(read) => came.extend_from_slice(&some[..read]),
            }
            if let Some(request) = parse(&came)? {
                return Ok(Some(request));
            }
        }
        Ok(None)
    }

    /// # Errors
    /// When the client takes nothing.
    pub fn answer(&mut self, response: &Response) -> io::Result<()> {
        self.stream.write_all(&response.bytes())
    }

    /// Whether the client has gone, or the program ends.
    pub fn is_over(&self) -> bool {
        let mut byte = [0];
        self.stop.load(Ordering::Relaxed) || (self.stream.set_nonblocking(true).is_err()) || {
            let peeked = self.stream.peek(&mut byte);
            let restored = self.stream.set_nonblocking(false);
            matches!(peeked, Ok(0)) || restored.is_err()
        }
    }

    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }
}

/// Waits until there is something to read, or accept; false at the end of the program.
pub fn readable(from: &impl AsFd, stop: &AtomicBool) -> bool {
    while !stop.load(Ordering::Relaxed) {
        let mut waits = [PollFd::new(from, PollFlags::IN)];
        match poll(&mut waits, Some(&LOOK)) {
            Ok(1..) => return true,
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
        }
    }
    false
}

/// The request that these bytes are; `None` if more must come.
fn parse(came: &[u8]) -> Result<Option<Request>, Response> {
    let refused = |status, why| Err(Response::refused(status, why));
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut head = httparse::Request::new(&mut headers);
    let length = match head.parse(came) {
        Ok(httparse::Status::Complete(length)) if length <= HEAD => length,
        Ok(httparse::Status::Partial) if came.len() <= HEAD => return Ok(None),
        Ok(_) => return refused(431, "the head of the request is too long"),
        Err(_) => return refused(400, "this is no request of HTTP/1.1"),
    };
    let method = match head.method {
        Some("GET") => Method::Get,
        Some("POST") => Method::Post,
        _ => return refused(405, "GET and POST are known"),
    };
    let header = |name: &str| {
        let mut all = head.headers.iter();
        let found = all.find(|header| header.name.eq_ignore_ascii_case(name));
        found.map(|header| String::from_utf8_lossy(header.value).into_owned())
    };
    if header("transfer-encoding").is_some() {
        return refused(411, "a body needs its length");
    }
    let body = match header("content-length").map(|text| text.trim().parse::<usize>()) {
        None => 0,
        Some(Ok(body)) if body <= BODY => body,
        Some(Ok(_)) => return refused(413, "the body of the request is too long"),
        Some(Err(_)) => return refused(400, "Content-Length is no number"),
    };
    let Some(body) = came.get(length..length + body) else {
        return Ok(None);
    };
    Ok(Some(Request {
        method,
        path: head.path.unwrap_or_default().to_owned(),
        host: header("host").unwrap_or_default(),
        body: body.to_vec(),
    }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const POST: &str = "POST /t/run HTTP/1.1\r\nHost: 127.0.0.1:9\r\nContent-Length: 4\r\n\r\nbody";

    #[test]
    fn a_request_is_read_when_all_of_it_came() {
        for end in 0..POST.len() {
            assert_eq!(parse(&POST.as_bytes()[..end]).unwrap(), None);
        }
        let two = format!("{POST}GET /");
        let request = parse(two.as_bytes()).unwrap().unwrap();
        assert_eq!((request.method, &*request.path), (Method::Post, "/t/run"));
        assert_eq!(
            (&*request.host, &*request.body),
            ("127.0.0.1:9", &b"body"[..])
        );
    }

    #[test]
    fn what_is_too_much_or_no_request_is_refused() {
        let line = "GET / HTTP/1.1\r\n";
        for (text, status) in [
            ("hello\r\n\r\n".to_owned(), 400),
            ("PUT / HTTP/1.1\r\n\r\n".to_owned(), 405),
            (format!("{line}X: {}", "y".repeat(HEAD)), 431),
            (format!("{line}X: {}\r\n\r\n", "y".repeat(HEAD)), 431),
            (format!("{line}{}\r\n", "X: y\r\n".repeat(HEADERS + 1)), 400),
            (format!("{line}Content-Length: 9999999\r\n\r\n"), 413),
            (format!("{line}Content-Length: -1\r\n\r\n"), 400),
            (format!("{line}Transfer-Encoding: chunked\r\n\r\n"), 411),
        ] {
            assert_eq!(
                parse(text.as_bytes()).unwrap_err().status,
                status,
                "{text:.40}"
            );
        }
    }

    proptest! {
        #[test]
        fn whatever_comes_is_read_refused_or_waited_for(
            bytes in proptest::collection::vec(any::<u8>(), 0..300),
            at in 0..POST.len(),
        ) {
            let _ = parse(&bytes);
            let mut changed = POST.as_bytes().to_vec();
            changed.splice(at..at, bytes);
            let _ = parse(&changed);
        }
    }
}
