//! `overdue probe`: asks a process of this machine how it is. For health checks where there is no other program.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use serde::Serialize;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::args::probe::{Probe, Process};
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::settings::{Listen, Settings};

/// How long the answer may take.
const DEADLINE: Duration = Duration::from_secs(5);
/// How much of it is read, bytes.
const ANSWER_MAX: u64 = 64 * 1024;

#[derive(Serialize)]
struct Answer {
    status: u16,
    body: String,
}

/// Runs the command. Exit code 4 when the process is not ready or does not answer.
pub(crate) async fn run(args: &Probe, settings: &Settings, output: &mut Output) -> Result<(), Failure> {
    let (listen, setting) = match args.process {
        Process::Relay => (settings.relay.listen, "relay.listen"),
        Process::Consume => (settings.consume.listen, "consume.listen"),
    };
    let addr = match listen {
        Listen::At(addr) if addr.port() != 0 => near(addr),
        Listen::At(_) | Listen::Off => {
            let what = format!("{setting} names no port to ask: set it as the process has it");
            return Err(Failure::new(Exit::Usage, what));
        }
    };
    let path = if args.live { "/livez" } else { "/readyz" };
    let failed = |error: io::Error| {
        let what =
            format!("no answer from http://{addr}{path}: {error}: is it running, and is {setting} its?");
        Failure::new(Exit::CheckFailed, what)
    };
    let asked = tokio::time::timeout(DEADLINE, get(addr, path)).await;
    let answer = asked.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())).map_err(failed)?;
    output.say(answer.body.trim_end())?;
    output.object(&answer)?;
    match answer.status {
        200 => Ok(()),
        status => {
            Err(Failure::new(Exit::CheckFailed, format!("http://{addr}{path} answers {status}: see above")))
        }
    }
}

/// Where a process of this machine that listens at `addr` is reached.
fn near(addr: SocketAddr) -> SocketAddr {
    let ip = match addr {
        SocketAddr::V4(v4) if v4.ip().is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        SocketAddr::V6(v6) if v6.ip().is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        other => other.ip(),
    };
    SocketAddr::new(ip, addr.port())
}

/// One GET. 1.0: the answer comes in one piece and ends with the connection.
async fn get(addr: SocketAddr, path: &str) -> io::Result<Answer> {
    let mut stream = TcpStream::connect(addr).await?;
    stream.write_all(format!("GET {path} HTTP/1.0\r\nHost: {addr}\r\n\r\n").as_bytes()).await?;
    let mut bytes = vec![];
    stream.take(ANSWER_MAX).read_to_end(&mut bytes).await?;
    let text = String::from_utf8_lossy(&bytes);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_default();
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    let no_http = || io::Error::new(io::ErrorKind::InvalidData, "that is no HTTP");
    Ok(Answer { status: status.ok_or_else(no_http)?, body: body.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_listens_everywhere_is_asked_on_loopback() {
        let near = |text: &str| near(text.parse().unwrap()).to_string();
        assert_eq!(near("0.0.0.0:9633"), "127.0.0.1:9633");
        assert_eq!(near("[::]:9633"), "[::1]:9633");
        assert_eq!(near("10.0.0.1:9633"), "10.0.0.1:9633");
    }
}
