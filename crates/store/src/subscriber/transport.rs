//! A stream of bytes to one server: TCP, TLS over it, or a Unix socket.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use rustls::pki_types::ServerName;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;

use crate::ErrorKind;
use crate::fault::Fault;

/// Whatever carries bytes both ways.
pub(super) trait Transport: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Transport for T {}

/// Connects to a host and, with a connector, checks that it is the one that its certificate names.
///
/// It has no deadline of its own.
pub(super) async fn tcp(
    host: &str,
    port: u16,
    tls: Option<&TlsConnector>,
) -> Result<(Box<dyn Transport>, SocketAddr), Fault> {
    let stream = TcpStream::connect((host, port)).await.map_err(|error| Fault::of_io(&error))?;
    let peer = stream.peer_addr().map_err(|error| Fault::of_io(&error))?;
    keep_alive(&stream).map_err(|error| Fault::of_io(&error))?;
    let Some(tls) = tls else { return Ok((Box::new(stream), peer)) };
    let name = ServerName::try_from(host.to_owned())
        .map_err(|_| Fault::new(ErrorKind::Settings, "the host is no name that a certificate can be for"))?;
    let stream = tls.connect(name, stream).await.map_err(|error| Fault::of_io(&error))?;
    Ok((Box::new(stream), peer))
}

/// Connects to a socket of this machine.
pub(super) async fn unix(path: &Path) -> Result<Box<dyn Transport>, Fault> {
    let stream = UnixStream::connect(path).await.map_err(|error| Fault::of_io(&error))?;
    Ok(Box::new(stream))
}

fn keep_alive(stream: &TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let socket = SockRef::from(stream);
    let keepalive = TcpKeepalive::new().with_time(Duration::from_secs(5));
    socket.set_tcp_keepalive(&keepalive.with_interval(Duration::from_secs(2)).with_retries(3))?;
    // Frees a connection that is stuck in a write.
    socket.set_tcp_user_timeout(Some(Duration::from_secs(10)))
}
