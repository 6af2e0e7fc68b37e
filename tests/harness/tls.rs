//! A private server that speaks TLS, with a certificate authority of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use overdue_sandbox::free_port;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tempfile::TempDir;
use tokio_rustls::TlsAcceptor;

use crate::Redis;
use crate::redis::Options;

/// The year until which certificates are good, unless they are not to be.
const LASTING: i32 = 4096;

/// A server with a plain port for the test's own commands and a TLS port for what is tested.
#[derive(Debug)]
pub struct Tls {
    redis: Redis,
    port: u16,
    folder: TempDir,
}

impl Tls {
    /// Makes the certificates and starts the server. Clients need no certificate.
    ///
    /// # Panics
    /// It does not start: the installed redis-server may be built without TLS.
    #[must_use]
    pub fn start() -> Self {
        Self::with(&Options::default())
    }

    /// As [`Tls::start`], with `options`.
    ///
    /// # Panics
    /// It does not start.
    #[must_use]
    pub fn with(options: &Options) -> Self {
        Self::valid_until(options, LASTING)
    }

    /// As [`Tls::start`], with a certificate that ran out years ago.
    ///
    /// # Panics
    /// It does not start.
    #[must_use]
    pub fn expired() -> Self {
        Self::valid_until(&Options::default(), 2020)
    }

    fn valid_until(options: &Options, last: i32) -> Self {
        let folder = tempfile::tempdir().expect("a folder for certificates");
        write_certificates(folder.path(), last).expect("certificates can be made");
        let path = |name: &str| folder.path().join(name).display().to_string();
        let lines = [
            format!("tls-cert-file \"{}\"", path("server.crt")),
            format!("tls-key-file \"{}\"", path("server.key")),
            format!("tls-ca-cert-file \"{}\"", path("ca.crt")),
            "tls-auth-clients no".to_owned(),
        ];
        let port = free_port();
        let options = lines.into_iter().fold(options.clone().line(format!("tls-port {port}")), Options::line);
        Self { redis: Redis::with(options), port, folder }
    }

    /// `rediss://127.0.0.1:<port>/`. The certificate is for `127.0.0.1` and `localhost`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("rediss://127.0.0.1:{}/", self.port)
    }

    /// The TLS port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The authority that has signed the server's certificate: `ca_file`.
    #[must_use]
    pub fn ca_file(&self) -> PathBuf {
        self.folder.path().join("ca.crt")
    }

    /// The server, for commands over its plain socket.
    #[must_use]
    pub fn redis(&self) -> &Redis {
        &self.redis
    }
}

/// Makes certificates as [`Tls`] does, and what accepts connections with them.
pub(crate) fn acceptor(folder: &Path) -> Result<TlsAcceptor, Box<dyn std::error::Error>> {
    write_certificates(folder, LASTING)?;
    let certificate = CertificateDer::from_pem_file(folder.join("server.crt"))?;
    let key = PrivateKeyDer::from_pem_file(folder.join("server.key"))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let config = config.with_no_client_auth().with_single_cert(vec![certificate], key)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn write_certificates(folder: &Path, last: i32) -> Result<(), Box<dyn std::error::Error>> {
    let ca_key = KeyPair::generate()?;
    let mut ca = CertificateParams::new(vec![])?;
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    fs::write(folder.join("ca.crt"), ca.self_signed(&ca_key)?.pem())?;
    let key = KeyPair::generate()?;
    let mut server = CertificateParams::new(vec!["localhost".to_owned(), "127.0.0.1".to_owned()])?;
    server.not_after = rcgen::date_time_ymd(last, 1, 1);
    fs::write(folder.join("server.crt"), server.signed_by(&key, &Issuer::new(ca, ca_key))?.pem())?;
    fs::write(folder.join("server.key"), key.serialize_pem())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use rustls::{ClientConfig, ClientConnection, RootCertStore, Stream};

    use super::*;

    fn ping(tls: &Tls, roots: RootCertStore) -> std::io::Result<[u8; 7]> {
        let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        let name = "127.0.0.1".try_into().unwrap();
        let mut session = ClientConnection::new(Arc::new(config), name).unwrap();
        let mut socket = TcpStream::connect(("127.0.0.1", tls.port()))?;
        let mut stream = Stream::new(&mut session, &mut socket);
        stream.write_all(b"PING\r\n")?;
        let mut pong = [0; 7];
        stream.read_exact(&mut pong)?;
        Ok(pong)
    }

    #[test]
    fn its_certificate_holds_for_who_knows_the_authority() {
        let tls = Tls::start();
        let mut roots = RootCertStore::empty();
        assert!(ping(&tls, roots.clone()).is_err());
        roots.add(CertificateDer::from_pem_file(tls.ca_file()).unwrap()).unwrap();
        assert_eq!(&ping(&tls, roots).unwrap(), b"+PONG\r\n");
    }
}
