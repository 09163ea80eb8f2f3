//! As much of HTTP/1.1 as a browser on this machine needs to read pages: GET and HEAD, one request per connection.
//!
//! Pages of other origins cannot reach it: a request whose Host is not this server's own address is refused, which is
//! what DNS rebinding (a foreign name that suddenly means 127.0.0.1) needs and cannot have. Nor can other users of this
//! machine: a browser is let in by a token in the address it is first sent to, and by a cookie from then on. Nothing is ever
//! changed by a request.

use std::{
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

/// Longest head of a request; browsers send one or two KiB.
const HEAD_BYTES: usize = 16 << 10;
const HEADERS: usize = 64;
/// Requests at once; a browser makes six.
const CONNECTIONS: usize = 16;
/// A request has to come whole within this.
const ASKING: Duration = Duration::from_secs(5);
/// An answer has to be taken whole within this.
const TAKING: Duration = Duration::from_secs(30);
/// How long nothing is accepted after a connection could not be.
const PAUSE: Duration = Duration::from_millis(20);
const TOKEN: &str = "token";
/// Bytes that are written at once, between two looks at the clock.
const PIECE: usize = 64 << 10;

/// Who is let in.
#[derive(Debug, Clone)]
pub(super) struct Gate {
    pub(super) address: SocketAddr,
    /// What a browser has to know; anyone is let in without one.
    pub(super) token: Option<String>,
}

impl Gate {
    /// The name of the cookie; cookies are shared by all ports of a host.
    fn cookie(&self) -> String {
        format!("fstone-{}", self.address.port())
    }

    /// The names that a browser of this machine has for this server. It leaves out port 80, which is HTTP's own.
    fn names(&self) -> Vec<String> {
        let port = self.address.port();
        let hosts = ["127.0.0.1", "localhost"];
        let bare = hosts.iter().filter(|_| port == 80).map(|host| (*host).to_owned());
        hosts.iter().map(|host| format!("{host}:{port}")).chain(bare).collect()
    }

    /// Whether this is the token, in a time that does not depend on how much of it matches.
    fn fits(&self, offered: &str) -> bool {
        self.token.as_ref().is_none_or(|token| {
            token.len() == offered.len() && token.bytes().zip(offered.bytes()).fold(0, |all, (a, b)| all | (a ^ b)) == 0
        })
    }

    fn admits(&self, cookies: &[u8]) -> bool {
        let name = self.cookie();
        let cookies = String::from_utf8_lossy(cookies);
        cookies
            .split(';')
            .filter_map(|one| one.trim().split_once('='))
            .any(|(of, token)| of == name && self.fits(token))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Request {
    /// "/run/3", percent-decoded.
    pub(super) path: String,
    /// Names and values after the question mark, decoded.
    pub(super) query: Vec<(String, String)>,
}

impl Request {
    pub(super) fn value(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) kind: &'static str,
    pub(super) body: String,
    /// Whole header lines of this answer alone.
    headers: String,
}

impl Answer {
    pub(super) fn html(status: u16, body: String) -> Self {
        Self { status, kind: "text/html; charset=utf-8", body, headers: String::new() }
    }

    pub(super) fn json(body: String) -> Self {
        Self { status: 200, kind: "application/json", body, headers: String::new() }
    }

    fn plain(status: u16, words: &str) -> Self {
        Self { status, kind: "text/plain; charset=utf-8", body: format!("{words}\n"), headers: String::new() }
    }

    /// Gives a browser that came with the token its cookie, and sends it to the same page without the token, which would
    /// stay in its history.
    fn welcome(gate: &Gate, target: &str) -> Self {
        let token = gate.token.as_deref().unwrap_or_default();
        // A path is one: neither "//host" nor a line's end gets into the header.
        let safe = |text: &str, marks: &str| -> String {
            text.chars().filter(|c| c.is_ascii_alphanumeric() || marks.contains(*c)).collect()
        };
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let others = query.split('&').filter(|pair| !pair.is_empty() && named(pair).0 != TOKEN);
        let query: Vec<String> = others.map(|pair| safe(pair, "-._~%+=")).collect();
        let query = if query.is_empty() { String::new() } else { format!("?{}", query.join("&")) };
        let path = safe(&decoded(path), "/-._");
        let headers = format!(
            "Location: /{}{query}\r\nSet-Cookie: {}={token}; Path=/; HttpOnly; SameSite=Strict\r\n",
            path.trim_start_matches('/'),
            gate.cookie()
        );
        Self { headers, ..Self::plain(303, "go on without the token") }
    }
}

/// Listens on the loopback interface only; port 0 takes any that is free.
pub(super) fn listen(port: u16) -> std::io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

/// Answers requests until the process ends.
pub(super) fn serve(listener: &TcpListener, gate: &Gate, answer: impl Fn(&Request) -> Answer + Send + Sync + 'static) {
    accept(listener.incoming(), gate, answer, || std::thread::sleep(PAUSE));
}

fn accept(
    streams: impl Iterator<Item = std::io::Result<TcpStream>>,
    gate: &Gate,
    answer: impl Fn(&Request) -> Answer + Send + Sync + 'static,
    pause: impl Fn(),
) {
    let (answer, busy) = (Arc::new(answer), Arc::new(AtomicUsize::new(0)));
    for stream in streams {
        // A connection that broke before it was accepted does not affect others. Without a descriptor for it, it is still the
        // next one, and every try fails at once until another connection has ended.
        let Ok(stream) = stream else {
            pause();
            continue;
        };
        let Some(place) = Slot::take(&busy) else { continue };
        let (answer, gate) = (Arc::clone(&answer), gate.clone());
        // Without a thread, the connection is closed and its place is free again.
        let _ = std::thread::Builder::new().spawn(move || {
            let _place = place;
            // The client closed the connection.
            let _ = converse(stream, &gate, &*answer);
        });
    }
}

/// One of the places for requests, released however its thread ends.
struct Slot(Arc<AtomicUsize>);

impl Slot {
    fn take(busy: &Arc<AtomicUsize>) -> Option<Self> {
        let place = Self(Arc::clone(busy));
        (busy.fetch_add(1, Ordering::AcqRel) < CONNECTIONS).then_some(place)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// What is left until then; an error when nothing is.
fn left(until: Instant) -> std::io::Result<Option<Duration>> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(std::io::ErrorKind::TimedOut.into()) } else { Ok(Some(left)) }
}

/// The head of a request, which has to come whole in time: a limit of each read alone is none for who sends byte by byte.
/// Without its end when it is too long.
fn read_head(stream: &mut TcpStream, until: Instant) -> std::io::Result<Vec<u8>> {
    let mut head = Vec::new();
    let mut buffer = [0; 4096];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") && head.len() <= HEAD_BYTES {
        stream.set_read_timeout(left(until)?)?;
        match stream.read(&mut buffer)? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            read => head.extend_from_slice(&buffer[..read]),
        }
    }
    Ok(head)
}

fn write_whole(stream: &mut TcpStream, mut bytes: &[u8], until: Instant) -> std::io::Result<()> {
    while !bytes.is_empty() {
        stream.set_write_timeout(left(until)?)?;
        let written = stream.write(&bytes[..bytes.len().min(PIECE)])?;
        bytes = &bytes[written..];
    }
    Ok(())
}

fn converse(mut stream: TcpStream, gate: &Gate, answer: &dyn Fn(&Request) -> Answer) -> std::io::Result<()> {
    let head = read_head(&mut stream, Instant::now() + ASKING)?;
    let (answer, body_too) = match parse(&head, gate) {
        Ok((request, body_too)) => (answer(&request), body_too),
        Err(refusal) => (refusal, !head.trim_ascii_start().starts_with(b"HEAD ")),
    };
    let reason = match answer.status {
        200 => "OK",
        303 => "See Other",
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
         connect-src 'self'; img-src data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'\r\n{}\r\n",
        answer.status,
        answer.kind,
        answer.body.len(),
        answer.headers
    );
    let until = Instant::now() + TAKING;
    write_whole(&mut stream, head.as_bytes(), until)?;
    write_whole(&mut stream, if body_too { answer.body.as_bytes() } else { b"" }, until)
}

/// The request in a head, and whether its answer has a body; or why it is refused.
fn parse(head: &[u8], gate: &Gate) -> Result<(Request, bool), Answer> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut parsed = httparse::Request::new(&mut headers);
    match parsed.parse(head) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) | Err(_) => return Err(Answer::plain(400, "this is not an HTTP request")),
    }
    let values = |name: &'static str| {
        parsed.headers.iter().filter(move |header| header.name.eq_ignore_ascii_case(name)).map(|header| header.value)
    };
    let names = gate.names();
    let hosts: Vec<&[u8]> = values("host").collect();
    if !matches!(hosts.as_slice(), [host] if names.iter().any(|own| own.as_bytes() == *host)) {
        return Err(Answer::plain(403, &format!("this server is {} and does not answer to other names", names[0])));
    }
    let body_too = match parsed.method {
        Some("GET") => true,
        Some("HEAD") => false,
        _ => return Err(Answer::plain(405, "only GET: nothing can be changed here")),
    };
    let target = parsed.path.unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let query = query.split('&').filter(|pair| !pair.is_empty()).map(named);
    let request = Request { path: decoded(path), query: query.collect() };
    if gate.token.is_some() {
        match request.value(TOKEN) {
            Some(token) if gate.fits(token) => return Err(Answer::welcome(gate, target)),
            None if values("cookie").any(|cookies| gate.admits(cookies)) => {}
            _ => return Err(Answer::plain(403, "open the address that fstone serve printed: it has a token in it")),
        }
    }
    Ok((request, body_too))
}

/// The name and the value of "row=ext4+%C3%BC".
fn named(pair: &str) -> (String, String) {
    let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
    (decoded(&name.replace('+', " ")), decoded(&value.replace('+', " ")))
}

/// Percent-decoded; invalid UTF-8 becomes replacement characters.
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

    fn gate(port: u16, token: Option<&str>) -> Gate {
        Gate { address: SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port), token: token.map(str::to_owned) }
    }

    fn asked(head: &str) -> Result<(Request, bool), u16> {
        parse(head.as_bytes(), &gate(4080, None)).map_err(|answer| answer.status)
    }

    #[test]
    fn port_80_has_no_number_in_a_browsers_words() {
        for host in ["127.0.0.1", "localhost", "localhost:80"] {
            let head = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
            assert!(parse(head.as_bytes(), &gate(80, None)).is_ok(), "{host}");
            assert_eq!(parse(head.as_bytes(), &gate(81, None)).map_err(|answer| answer.status), Err(403), "{host}");
        }
    }

    #[test]
    fn a_token_lets_in_and_becomes_a_cookie() {
        let gate = gate(4080, Some("0123456789abcdef"));
        let ask = |target: &str, cookie: &str| {
            let head = format!("GET {target} HTTP/1.1\r\nHost: localhost:4080\r\n{cookie}\r\n");
            parse(head.as_bytes(), &gate)
        };
        for (target, cookie) in [
            ("/", ""),
            ("/?token=", ""),
            ("/?token=0123456789abcdeF", ""),
            ("/", "Cookie: fstone-4080=wrong\r\n"),
            ("/", "Cookie: fstone-4081=0123456789abcdef\r\n"),
        ] {
            assert_eq!(ask(target, cookie).map_err(|answer| answer.status), Err(403), "{target} {cookie}");
        }
        let welcome = ask("//evil.example%0d%0aX:1?token=0123456789abcdef", "").expect_err("a redirection");
        assert_eq!(welcome.status, 303);
        assert!(
            welcome.headers.starts_with("Location: /evil.exampleX1\r\nSet-Cookie: fstone-4080=0123456789abcdef;"),
            "{welcome:?}"
        );
        assert!(welcome.headers.contains("HttpOnly; SameSite=Strict"), "{welcome:?}");
        for (asked, location) in [
            ("/compare?before=1&after=4&token=0123456789abcdef", "/compare?before=1&after=4\r\n"),
            ("/history?token=0123456789abcdef&row=ext4+%C3%BC&x", "/history?row=ext4+%C3%BC&x\r\n"),
            ("/?a=\"<b>&tok%65n=0123456789abcdef", "/?a=b\r\n"),
        ] {
            let welcome = ask(asked, "").expect_err("a redirection");
            assert!(welcome.headers.starts_with(&format!("Location: {location}")), "{asked}: {welcome:?}");
        }
        assert!(ask("/run/3", "Cookie: a=b; fstone-4080=0123456789abcdef\r\n").is_ok());
    }

    /// A client that sends a byte now and then, each well within any limit of a single read.
    #[test]
    fn a_slow_client_is_given_up_and_its_place_is_free() {
        let (listener, address) = listen(0).expect("a port");
        let client = std::thread::spawn(move || {
            let mut stream = TcpStream::connect(address).expect("connected");
            while stream.write_all(b"x").is_ok() {
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        let (mut stream, _) = listener.accept().expect("a client");
        let told = read_head(&mut stream, Instant::now() + Duration::from_millis(100)).expect_err("it never ends");
        assert!(matches!(told.kind(), std::io::ErrorKind::TimedOut | std::io::ErrorKind::WouldBlock), "{told}");
        drop(stream);
        client.join().expect("it was cut off");

        let busy = Arc::new(AtomicUsize::new(0));
        let places: Vec<_> = std::iter::repeat_with(|| Slot::take(&busy)).take(CONNECTIONS).collect();
        assert!(places.iter().all(Option::is_some) && Slot::take(&busy).is_none());
        assert_eq!(busy.load(Ordering::Acquire), CONNECTIONS, "who finds none takes none");
        let panicked = std::thread::spawn(move || {
            let _places = places;
            // Like a panic, but without its words in the tests' log.
            std::panic::resume_unwind(Box::new("a page could not be made"));
        });
        assert!(panicked.join().is_err());
        assert_eq!(busy.load(Ordering::Acquire), 0, "a panic gives its place back");
    }

    #[test]
    fn a_head_is_answered_without_a_body_also_when_it_is_refused() {
        let (listener, address) = listen(0).expect("a port");
        let answered = |gate: Gate, host: String| {
            let client = std::thread::spawn(move || {
                let mut stream = TcpStream::connect(address).expect("connected");
                let head = format!("HEAD / HTTP/1.1\r\nHost: {host}\r\n\r\n");
                stream.write_all(head.as_bytes()).expect("sent");
                let mut answer = String::new();
                stream.read_to_string(&mut answer).map(|_| answer).expect("answered")
            });
            let (stream, _) = listener.accept().expect("a client");
            converse(stream, &gate, &|_| Answer::plain(200, "here")).expect("taken");
            client.join().expect("it asks")
        };
        for (gate, host, status) in [
            (gate(address.port(), None), address.to_string(), "200"),
            (gate(address.port(), None), "evil.example".to_owned(), "403"),
            (gate(address.port(), Some("0123456789abcdef")), address.to_string(), "403"),
        ] {
            let answer = answered(gate, host);
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
            assert!(!answer.contains("Content-Length: 0") && answer.ends_with("\r\n\r\n"), "{answer}");
        }
    }

    #[test]
    fn without_descriptors_the_server_waits_and_then_answers() {
        let (listener, address) = listen(0).expect("a port");
        let client = std::thread::spawn(move || {
            let mut stream = TcpStream::connect(address).expect("connected");
            let head = format!("GET / HTTP/1.1\r\nHost: {address}\r\n\r\n");
            stream.write_all(head.as_bytes()).expect("sent");
            let mut answer = String::new();
            stream.read_to_string(&mut answer).map(|_| answer)
        });
        let full = || Err(rustix::io::Errno::MFILE.into());
        let streams = [full(), full(), listener.accept().map(|(stream, _)| stream)];
        let pauses = std::cell::Cell::new(0);
        let gate = gate(address.port(), None);
        accept(streams.into_iter(), &gate, |_| Answer::plain(200, "here"), || pauses.set(pauses.get() + 1));
        let answer = client.join().expect("it asks").expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("here\n"), "{answer}");
        assert_eq!(pauses.get(), 2);
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
