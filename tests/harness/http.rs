//! One GET, no client library.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// How long an answer may take.
const DEADLINE: Duration = Duration::from_secs(5);

/// An HTTP answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The status, such as 200 or 503.
    pub status: u16,
    /// The body as text.
    pub body: String,
}

/// GET `path` from `addr`.
///
/// # Errors
/// No connection, no answer within 5 s, or no HTTP.
pub fn get(addr: SocketAddr, path: &str) -> io::Result<Response> {
    let mut stream = TcpStream::connect_timeout(&addr, DEADLINE)?;
    stream.set_read_timeout(Some(DEADLINE))?;
    // 1.0: the answer comes in one piece and ends with the connection.
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {addr}\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let answer = String::from_utf8_lossy(&answer);
    let parse = || {
        let (head, body) = answer.split_once("\r\n\r\n")?;
        let status = head.split(' ').nth(1)?.parse().ok()?;
        Some(Response { status, body: body.to_owned() })
    };
    parse().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("no HTTP answer: {answer:?}")))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    #[test]
    fn status_and_body_are_read() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let addr = listener.local_addr().unwrap();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            // The whole request: what is left unread resets the connection.
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                request.extend(byte);
            }
            stream.write_all(b"HTTP/1.0 503 Service Unavailable\r\nA: b\r\n\r\nno sweep\n").unwrap();
        });
        let response = get(addr, "/readyz").unwrap();
        server.join().unwrap();
        assert_eq!(response, Response { status: 503, body: "no sweep\n".into() });
    }
}
