//! TLS: rustls with the ring provider; the system's authorities, or those of a file.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

/// The connector; the error is a sentence for people.
pub(crate) fn connector(ca_file: Option<&Path>) -> Result<TlsConnector, String> {
    Ok(TlsConnector::from(Arc::new(config(ca_file)?)))
}

/// What to trust: the authorities in `ca_file` and no others, or those of the system (`SSL_CERT_FILE` names others).
///
/// The provider is named: the library's own default panics when another one is in the program.
///
/// # Errors
/// The file is no PEM file with certificates, or the system trusts nobody; a sentence for people.
pub fn config(ca_file: Option<&Path>) -> Result<ClientConfig, String> {
    let roots = match ca_file {
        Some(path) => from_file(path)?,
        None => from_system()?,
    };
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS cannot be set up: {error}"))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(config)
}

fn from_file(path: &Path) -> Result<RootCertStore, String> {
    let bad =
        |why: String| format!("ca_file {}: {why}; it must be a PEM file with certificates", path.display());
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| bad(error.to_string()))? {
        let certificate = certificate.map_err(|error| bad(error.to_string()))?;
        roots.add(certificate).map_err(|error| bad(error.to_string()))?;
    }
    if roots.is_empty() { Err(bad("no certificate in it".into())) } else { Ok(roots) }
}

fn from_system() -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    // One bad file in the system's folder must not take TLS down.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err("this system has no trusted authorities; install ca-certificates or set ca_file".into());
    }
    Ok(roots)
}
