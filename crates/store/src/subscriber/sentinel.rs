//! Who the primary is, as the Sentinels say.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::lookup_host;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsConnector;
use tracing::debug;

use super::line::Line;
use super::{login, transport};
use crate::ErrorKind;
use crate::endpoint::Endpoint;
use crate::fault::Fault;

/// How long one Sentinel may take: another is asked then.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often they are asked whether the primary is still the same. They also close the connections of one that they
/// demote; but not of one that they cannot reach.
const LOOK: Duration = Duration::from_secs(5);

/// The Sentinels that are known, the one to be asked next in front.
pub(crate) struct Sentinels {
    hosts: Vec<(String, u16)>,
    service: String,
}

impl Sentinels {
    pub(crate) fn new(hosts: Vec<(String, u16)>, service: String) -> Self {
        Self { hosts, service }
    }

    /// The address of the primary, by the first Sentinel that answers.
    pub(super) async fn primary(
        &mut self,
        at: &Endpoint,
        tls: Option<&TlsConnector>,
    ) -> Result<(String, u16), Fault> {
        let mut last = Fault::new(ErrorKind::Unreachable, "no Sentinel is named");
        for _ in 0..self.hosts.len() {
            let asked = timeout(PATIENCE, self.ask(at, tls)).await;
            match asked.unwrap_or_else(|_| Err(Fault::new(ErrorKind::Unreachable, "no answer came"))) {
                Ok(primary) => return Ok(primary),
                Err(fault) => {
                    debug!(host = ?self.hosts.first(), why = fault.text, "no primary from this Sentinel");
                    last = fault;
                    self.hosts.rotate_left(1);
                }
            }
        }
        last.text = format!("no Sentinel tells the primary; the last one: {}", last.text);
        Err(last)
    }

    async fn ask(&mut self, at: &Endpoint, tls: Option<&TlsConnector>) -> Result<(String, u16), Fault> {
        let Some((host, port)) = self.hosts.first() else {
            return Err(Fault::new(ErrorKind::Settings, "no Sentinel is named"));
        };
        let (stream, peer) = transport::tcp(host, *port, tls).await?;
        let mut line = Line::over(stream, Some(peer));
        match login::authenticate(&mut line, at).await {
            // A Sentinel may have no password, or not know the user: it says so again if that matters.
            Err(fault) if fault.kind != ErrorKind::Refused => return Err(fault),
            _ => {}
        }
        let service = self.service.as_bytes();
        let answer = line.ask(&[b"SENTINEL", b"GET-MASTER-ADDR-BY-NAME", service]).await?;
        let Some([host, port]) = answer.into_array().and_then(|pair| <[_; 2]>::try_from(pair).ok()) else {
            let text = format!("it watches no primary by the name {}", self.service);
            return Err(Fault::new(ErrorKind::Settings, text));
        };
        let primary =
            host.as_str().map(str::to_owned).zip(port.as_u64().and_then(|port| port.try_into().ok()));
        let primary =
            primary.ok_or(Fault::new(ErrorKind::Malformed, "the address of the primary cannot be read"))?;
        if let Ok(others) = line.ask(&[b"SENTINEL", b"SENTINELS", service]).await {
            self.learn(others.into_array().unwrap_or_default());
        }
        Ok(primary)
    }

    /// Takes in the Sentinels that another one knows: each a flat list of names and values.
    fn learn(&mut self, others: Vec<overdue_protocol::Reply>) {
        for other in others {
            let fields = other.into_array().unwrap_or_default();
            let value = |name: &str| {
                fields
                    .chunks_exact(2)
                    .find(|pair| pair[0].as_str() == Some(name))
                    .and_then(|pair| pair[1].as_str())
            };
            let port = value("port").and_then(|port| port.parse().ok());
            if let (Some(host), Some(port)) = (value("ip"), port)
                && !self.hosts.iter().any(|(known, at)| known == host && *at == port)
            {
                self.hosts.push((host.to_owned(), port));
            }
        }
    }

    /// Ends when they name another primary than the one at `peer`. What cannot be found out changes nothing.
    pub(super) async fn moved(&mut self, at: &Endpoint, tls: Option<&TlsConnector>, peer: SocketAddr) {
        loop {
            sleep(LOOK).await;
            if self.named(at, tls).await.is_some_and(|named| !named.iter().any(|&one| is_same(one, peer))) {
                return;
            }
        }
    }

    /// The addresses of the one that they name now; `None` when that cannot be found out.
    pub(crate) async fn named(
        &mut self,
        at: &Endpoint,
        tls: Option<&TlsConnector>,
    ) -> Option<Vec<SocketAddr>> {
        let (host, port) = self.primary(at, tls).await.ok()?;
        addresses(&host, port).await
    }
}

/// What a host that is told as a name, or in one of several forms, stands for.
pub(crate) async fn addresses(host: &str, port: u16) -> Option<Vec<SocketAddr>> {
    Some(timeout(PATIENCE, lookup_host((host, port))).await.ok()?.ok()?.collect())
}

pub(crate) fn is_same(one: SocketAddr, other: SocketAddr) -> bool {
    one.port() == other.port() && one.ip().to_canonical() == other.ip().to_canonical()
}

#[cfg(test)]
mod tests {
    use overdue_protocol::Reply;

    use super::*;

    #[test]
    fn other_sentinels_are_learnt_once() {
        let mut known = Sentinels::new(vec![("a".into(), 1)], "main".into());
        let bytes = |text: &'static str| Reply::Bytes(text.into());
        let other = |host, port| {
            Reply::Array(vec![
                bytes("name"),
                bytes("ip"),
                bytes("ip"),
                bytes(host),
                bytes("port"),
                bytes(port),
            ])
        };
        known.learn(vec![other("a", "1"), other("b", "2"), other("b", "2"), other("c", "x"), Reply::Nil]);
        assert_eq!(known.hosts, [("a".to_owned(), 1), ("b".to_owned(), 2)]);
    }

    #[test]
    fn an_address_in_its_ipv6_form_is_the_same() {
        let same = |one: &str, other: &str| is_same(one.parse().unwrap(), other.parse().unwrap());
        assert!(same("127.0.0.1:1", "[::ffff:127.0.0.1]:1"));
        assert!(!same("127.0.0.1:1", "127.0.0.1:2") && !same("127.0.0.1:1", "127.0.0.2:1"));
    }
}
