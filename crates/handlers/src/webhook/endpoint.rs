//! The connections to one endpoint.

use std::error::Error;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use overdue_store::tls;
use tower_service::Service;

use super::answer::BODY;

/// How long a connection may take to be made: name, TCP and TLS.
const CONNECT: Duration = Duration::from_secs(10);
/// How long a connection is kept that nobody uses: less than the 5 s of Node.js, the shortest that is common. A server that
/// closes one just when it is used again costs an attempt.
const IDLE: Duration = Duration::from_secs(4);
/// How long and how much an answer that is done is read on, so that its connection can be used again.
const DRAIN: Duration = Duration::from_secs(1);
const DRAINED: usize = 64 * 1024;

/// An address, and the connections to it.
#[derive(Debug)]
pub(super) struct Endpoint {
    url: Uri,
    /// Scheme, host and port. The rest may be as good as a password.
    shown: String,
    client: Client<Deadline, Full<Bytes>>,
}

/// What came of a request.
#[derive(Debug)]
pub(super) enum Sent {
    /// An answer, with the first [`BODY`] bytes of its body.
    Answered { status: StatusCode, headers: HeaderMap, body: Vec<u8> },
    /// There was no connection: nothing was sent.
    OutOfReach(String),
    /// No answer, or none that is HTTP. It may have been acted on.
    Failed(String),
}

impl Endpoint {
    /// An endpoint that takes so many connections; a request to it is given up after `limit`.
    ///
    /// # Errors
    /// No such address, or no authorities; a sentence for people.
    pub(super) fn new(
        url: &str,
        ca_file: Option<&Path>,
        limit: Option<Duration>,
        connections: usize,
    ) -> Result<Self, String> {
        let (url, shown) = address(url)?;
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        http.set_nodelay(true);
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls::config(ca_file).map_err(|error| format!("webhook {shown}: {error}"))?)
            .https_or_http()
            .enable_http1()
            .wrap_connector(http);
        // Before the limit: what was never connected is out of reach, and not slow.
        let most = limit.map_or(CONNECT, |limit| CONNECT.min(limit.mul_f64(0.75)));
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(connections)
            .build(Deadline { connector, most });
        Ok(Self { url, shown, client })
    }

    /// Sends one request and reads its answer.
    pub(super) async fn post(&self, headers: HeaderMap, body: Bytes) -> Sent {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.url.clone();
        *request.headers_mut() = headers;
        match self.client.request(request).await {
            Ok(response) => answered(response).await,
            Err(error) if error.is_connect() => {
                Sent::OutOfReach(format!("cannot reach {}: {}", self.shown, causes(&error)))
            }
            Err(error) => Sent::Failed(format!("no answer from {}: {}", self.shown, causes(&error))),
        }
    }
}

/// The address, and what of it may be shown. The errors show nothing of it: a login may stand in it.
fn address(url: &str) -> Result<(Uri, String), String> {
    let write = "write it like https://example.com/timeouts";
    let uri: Uri = url.parse().map_err(|error| format!("the webhook's URL is none ({error}); {write}"))?;
    let scheme = uri.scheme_str().filter(|scheme| ["http", "https"].contains(scheme));
    let (Some(scheme), Some(authority)) = (scheme, uri.authority()) else {
        return Err(format!("the webhook's URL does not begin with http:// or https://; {write}"));
    };
    if authority.as_str().contains('@') {
        return Err(
            "the webhook's URL holds a login, which would not be sent; use a secret, or a token in its path"
                .to_owned(),
        );
    }
    let shown = format!("{scheme}://{authority}");
    Ok((uri, shown))
}

async fn answered(response: Response<Incoming>) -> Sent {
    let (parts, body) = response.into_parts();
    let body = if parts.status.is_success() {
        tokio::time::timeout(DRAIN, beginning(body, DRAINED)).await.unwrap_or_default()
    } else {
        beginning(body, BODY).await
    };
    Sent::Answered { status: parts.status, headers: parts.headers, body }
}

/// At least so many bytes, or all there are. What breaks off says as much as it said.
async fn beginning(mut body: Incoming, enough: usize) -> Vec<u8> {
    let mut read = Vec::new();
    while read.len() < enough
        && let Some(Ok(frame)) = body.frame().await
    {
        if let Some(data) = frame.data_ref() {
            read.extend_from_slice(data);
        }
    }
    read
}

/// What caused an error, in one line: its own text only says that there was one.
fn causes(error: &dyn Error) -> String {
    let mut causes: Vec<String> = vec![];
    let mut next = error.source();
    while let Some(cause) = next {
        let said = cause.to_string();
        // Many errors print their cause themselves.
        if causes.last().is_none_or(|last| !last.ends_with(&said)) {
            causes.push(said);
        }
        next = cause.source();
    }
    if causes.is_empty() { error.to_string() } else { causes.join(": ") }
}

/// Connects within a deadline.
#[derive(Clone)]
struct Deadline {
    connector: HttpsConnector<HttpConnector>,
    most: Duration,
}

type Connecting<T> = Pin<Box<dyn Future<Output = Result<T, Box<dyn Error + Send + Sync>>> + Send>>;

impl Service<Uri> for Deadline {
    type Response = <HttpsConnector<HttpConnector> as Service<Uri>>::Response;
    type Error = Box<dyn Error + Send + Sync>;
    type Future = Connecting<Self::Response>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.connector.poll_ready(context)
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let (connecting, most) = (self.connector.call(to), self.most);
        Box::pin(async move {
            match tokio::time::timeout(most, connecting).await {
                Ok(connected) => connected,
                Err(_) => Err(format!("no connection within {}", humantime::format_duration(most)).into()),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_shows_no_path_and_holds_no_login() {
        assert_eq!(address("https://a.example:8443/hook?token=x").unwrap().1, "https://a.example:8443");
        assert_eq!(address("http://[::1]:80").unwrap().1, "http://[::1]:80");
        for (url, why) in [
            ("ftp://a.example/", "does not begin with http://"),
            ("a.example/hook", "is none"),
            ("/hook", "does not begin with http://"),
            ("https:///hook", "is none"),
            ("https://user:c2VjcmV0@a.example/", "holds a login"),
            ("https://a.example/a b", "is none"),
            ("", "is none"),
        ] {
            let error = address(url).unwrap_err();
            assert!(error.contains(why) && !error.contains("c2VjcmV0"), "{url}: {error}");
        }
    }
}
