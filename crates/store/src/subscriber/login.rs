//! From an address to a connection that is logged in, named, and at the right server.

use std::net::SocketAddr;

use overdue_protocol::Reply;
use tokio_rustls::TlsConnector;

use super::line::Line;
use super::sentinel::Sentinels;
use super::transport;
use crate::endpoint::{Endpoint, Place};
use crate::fault::Fault;
use crate::{ErrorKind, Secret, dial};

/// Makes connections to one node, again and again.
pub(crate) struct Login {
    at: Endpoint,
    tls: Option<TlsConnector>,
    name: String,
    sentinels: Option<Sentinels>,
}

impl Login {
    pub(crate) fn new(at: Endpoint, tls: Option<TlsConnector>, role: &str) -> Self {
        let sentinels = match &at.place {
            Place::Sentinel { hosts, service } => Some(Sentinels::new(hosts.clone(), service.clone())),
            _ => None,
        };
        Self { at, tls, name: dial::name(role), sentinels }
    }

    /// The address for errors, without password.
    pub(super) fn place(&self) -> String {
        self.at.to_string()
    }

    /// Connects. It has no deadline of its own.
    pub(crate) async fn connect(&mut self) -> Result<Line, Fault> {
        self.connect_with(&[]).await
    }

    /// Connects, and sends `commands` together with all that it takes to log in: a busy server may take milliseconds for
    /// each round trip. Their answers are left to read.
    pub(super) async fn connect_with(&mut self, commands: &[&[&[u8]]]) -> Result<Line, Fault> {
        let mut line = self.reach().await?;
        let auth = credentials(&self.at);
        let role = self.sentinels.is_some().then(|| [b"ROLE".as_slice()]);
        let name = [b"CLIENT".as_slice(), b"SETNAME", self.name.as_bytes()];
        let login = auth.as_deref().into_iter().chain(role.as_ref().map(|role| &role[..])).chain([&name[..]]);
        line.send(&login.chain(commands.iter().copied()).collect::<Vec<_>>()).await?;
        if auth.is_some() {
            line.answer().await?;
        }
        if role.is_some() {
            check_role(line.answer().await?)?;
        }
        match line.answer().await {
            // A name is not worth a subscription; but to others the server says here that it does not want them.
            Err(fault) if !(fault.text.starts_with("NOPERM") || fault.text.contains("unknown command")) => {
                Err(fault)
            }
            _ => Ok(line),
        }
    }

    /// Chooses the database: a subscription has none.
    pub(crate) async fn select(&self, line: &mut Line) -> Result<(), Fault> {
        if self.at.db > 0 {
            line.ask(&[b"SELECT", self.at.db.to_string().as_bytes()]).await?;
        }
        Ok(())
    }

    async fn reach(&mut self) -> Result<Line, Fault> {
        let tls = self.tls.as_ref();
        let primary;
        let (host, port) = match (&self.at.place, &mut self.sentinels) {
            (Place::Unix(path), _) => return Ok(Line::over(transport::unix(path).await?, None)),
            (_, Some(sentinels)) => {
                primary = sentinels.primary(&self.at, tls).await?;
                (&primary.0, primary.1)
            }
            (Place::One { host, port }, _) => (host, *port),
            (Place::Cluster { .. } | Place::Sentinel { .. }, None) => {
                return Err(Fault::new(ErrorKind::Settings, "a cluster is connected to node by node"));
            }
        };
        let (stream, peer) = transport::tcp(host, port, tls).await?;
        Ok(Line::over(stream, Some(peer)))
    }

    /// Ends when this is no longer the server to be connected to: only Sentinels tell.
    pub(super) async fn moved(&mut self, peer: Option<SocketAddr>) {
        match (&mut self.sentinels, peer) {
            (Some(sentinels), Some(peer)) => sentinels.moved(&self.at, self.tls.as_ref(), peer).await,
            _ => std::future::pending().await,
        }
    }
}

/// Gives user and password, if there are any.
pub(super) async fn authenticate(line: &mut Line, at: &Endpoint) -> Result<(), Fault> {
    if let Some(auth) = credentials(at) {
        line.ask(&auth).await?;
    }
    Ok(())
}

/// The command that gives them.
fn credentials(at: &Endpoint) -> Option<Vec<&[u8]>> {
    let password = at.password.as_ref().map(Secret::expose);
    match (&at.username, password) {
        (Some(user), password) => {
            Some(vec![b"AUTH", user.as_bytes(), password.unwrap_or_default().as_bytes()])
        }
        (None, Some(password)) => Some(vec![b"AUTH", password.as_bytes()]),
        (None, None) => None,
    }
}

fn check_role(role: Reply) -> Result<(), Fault> {
    let role = role.into_array().and_then(|parts| parts.into_iter().next()?.as_str().map(str::to_owned));
    match role.as_deref() {
        Some("master") => Ok(()),
        other => {
            let text =
                format!("the server that Sentinel names is no primary: {}", other.unwrap_or("unknown"));
            Err(Fault::new(ErrorKind::Unavailable, text))
        }
    }
}
