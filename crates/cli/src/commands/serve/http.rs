//! As much of HTTP/1.1 as a browser on this machine needs to read pages: GET and HEAD, one request per connection.
//!
//! Pages of other origins cannot reach it: a request whose Host is not this server's own address is refused, which is
//! what DNS rebinding (a foreign name that suddenly means 127.0.0.1) needs and cannot have. Nothing is ever changed by a
//! request.

use std::{
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

/// Longest head of a request; browsers send one or two KiB.
const HEAD_BYTES: usize = 16 << 10;
/// Headers a request may have.
const HEADERS: usize = 64;
/// Requests at once; a browser makes six.
const CONNECTIONS: usize = 16;
/// A request has to come within this, and an answer to be taken within six times this.
const PATIENCE: Duration = Duration::from_secs(5);

/// What was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Request {
    /// "/run/3", percent-decoded.
    pub(super) path: String,
    /// Names and values after the question mark, decoded.
    pub(super) query: Vec<(String, String)>,
}

impl Request {
    /// The value of a name in the query.
    pub(super) fn value(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// What is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) kind: &'static str,
    pub(super) body: String,
}

impl Answer {
    pub(super) fn html(status: u16, body: String) -> Self {
        Self { status, kind: "text/html; charset=utf-8", body }
    }

    pub(super) fn json(body: String) -> Self {
        Self { status: 200, kind: "application/json", body }
    }

    fn plain(status: u16, words: &str) -> Self {
        Self { status, kind: "text/plain; charset=utf-8", body: format!("{words}\n") }
    }
}

/// Listens on the loopback interface only; port 0 takes any that is free.
pub(super) fn listen(port: u16) -> std::io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

/// Answers requests until the process ends.
pub(super) fn serve(
    listener: &TcpListener,
    address: SocketAddr,
    answer: impl Fn(&Request) -> Answer + Send + Sync + 'static,
) {
    let (answer, busy) = (Arc::new(answer), Arc::new(AtomicUsize::new(0)));
    for stream in listener.incoming() {
        // A connection that broke before it was accepted concerns nobody else.
        let Ok(stream) = stream else { continue };
        if busy.fetch_add(1, Ordering::AcqRel) >= CONNECTIONS {
            busy.fetch_sub(1, Ordering::AcqRel);
            continue;
        }
        let (answer, busy) = (Arc::clone(&answer), Arc::clone(&busy));
        std::thread::spawn(move || {
            // The reader went away: there is nobody to tell.
            let _ = converse(stream, address, &*answer);
            busy.fetch_sub(1, Ordering::AcqRel);
        });
    }
}

fn converse(mut stream: TcpStream, address: SocketAddr, answer: &dyn Fn(&Request) -> Answer) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE * 6))?;
    let mut head = Vec::new();
    let mut buffer = [0; 4096];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") && head.len() <= HEAD_BYTES {
        match stream.read(&mut buffer)? {
            0 => return Ok(()),
            read => head.extend_from_slice(&buffer[..read]),
        }
    }
    let (answer, body_too) = match parse(&head, address) {
        Ok((request, body_too)) => (answer(&request), body_too),
        Err(refusal) => (refusal, true),
    };
    let reason = match answer.status {
        200 => "OK",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        409 => "Conflict",
        _ => "Internal Server Error",
    };
    let head = format!(
        "HTTP/1.1 {} {reason}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\nCache-Control: no-store\r\n\
         X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\nCross-Origin-Resource-Policy: same-origin\r\n\
         Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
         connect-src 'self'; img-src data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'\r\n\r\n",
        answer.status,
        answer.kind,
        answer.body.len()
    );
    stream.write_all(head.as_bytes())?;
    if body_too {
        stream.write_all(answer.body.as_bytes())?;
    }
    stream.flush()
}

/// The request in a head, and whether its answer has a body; or why it is refused.
fn parse(head: &[u8], address: SocketAddr) -> Result<(Request, bool), Answer> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut parsed = httparse::Request::new(&mut headers);
    match parsed.parse(head) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) | Err(_) => return Err(Answer::plain(400, "this is no request")),
    }
    let hosts: Vec<&[u8]> = parsed
        .headers
        .iter()
        .filter(|header| header.name.eq_ignore_ascii_case("host"))
        .map(|header| header.value)
        .collect();
    let own = [format!("127.0.0.1:{}", address.port()), format!("localhost:{}", address.port())];
    if !matches!(hosts.as_slice(), [host] if own.iter().any(|own| own.as_bytes() == *host)) {
        return Err(Answer::plain(403, &format!("this server is {} and answers to no other name", own[0])));
    }
    let body_too = match parsed.method {
        Some("GET") => true,
        Some("HEAD") => false,
        _ => return Err(Answer::plain(405, "only GET: nothing can be changed here")),
    };
    let target = parsed.path.unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let query = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decoded(&name.replace('+', " ")), decoded(&value.replace('+', " ")))
    });
    Ok((Request { path: decoded(path), query: query.collect() }, body_too))
}

/// Percent-decoded; what is no UTF-8 becomes replacement characters.
fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut index = 0;
    while index < bytes.len() {
        let byte = bytes[index];
        let hex = bytes.get(index + 1..index + 3).and_then(|hex| std::str::from_utf8(hex).ok());
        match (byte, hex.and_then(|hex| u8::from_str_radix(hex, 16).ok())) {
            (b'%', Some(value)) => {
                out.push(value);
                index += 3;
            }
            _ => {
                out.push(byte);
                index += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 4080);

    fn asked(head: &str) -> Result<(Request, bool), u16> {
        parse(head.as_bytes(), ADDRESS).map_err(|answer| answer.status)
    }

    #[test]
    fn a_request_is_understood() {
        let head = "GET /compare?before=3&after=7&row=ext4+%C3%BC%26 HTTP/1.1\r\nHost: localhost:4080\r\n\r\n";
        let (request, body_too) = asked(head).expect("a request");
        assert!(body_too && request.path == "/compare");
        assert_eq!(request.value("row"), Some("ext4 ü&"));
        assert_eq!((request.value("before"), request.value("none")), (Some("3"), None));
        assert_eq!(asked("HEAD / HTTP/1.1\r\nHost: 127.0.0.1:4080\r\n\r\n").map(|(_, body)| body), Ok(false));
        assert_eq!(decoded("%zz%4"), "%zz%4");
    }

    #[test]
    fn other_names_methods_and_rubbish_are_refused() {
        for host in [
            "Host: evil.example\r\n",
            "Host: localhost\r\n",
            "Host: 127.0.0.1:4081\r\n",
            "",
            "Host: localhost:4080\r\nHost: evil.example\r\n",
        ] {
            assert_eq!(asked(&format!("GET / HTTP/1.1\r\n{host}\r\n")), Err(403), "{host:?}");
        }
        assert_eq!(asked("POST / HTTP/1.1\r\nHost: localhost:4080\r\n\r\n"), Err(405));
        assert_eq!(asked("rubbish\r\n\r\n"), Err(400));
        assert_eq!(asked("GET / HTTP/1.1\r\nHost: localhost:4080\r\n"), Err(400));
    }
}
