//! An HTTP server for webhooks that answers as a test says: well, late, wrong, half, or not at all.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::tls;

mod half;
mod received;

use half::{Half, Whole};
pub use received::Received;

/// What a request is answered with.
#[derive(Clone, Debug)]
pub enum Answer {
    /// A status, without a body.
    Status(u16),
    /// A status with headers and a body.
    With(u16, Vec<(&'static str, String)>, Bytes),
    /// The status, but only after this time.
    Late(Duration, u16),
    /// A status, a part of the body it announces, and a closed connection.
    Half(u16),
    /// A closed connection.
    Nothing,
}

type Script = dyn Fn(&Received) -> Answer + Send + Sync;

/// The server. Dropped, it is gone with all its connections.
pub struct Receiver {
    port: u16,
    scheme: &'static str,
    tls: Option<(TlsAcceptor, TempDir)>,
    shared: Arc<Shared>,
    /// `None` = connections are refused.
    listening: Option<JoinSet<()>>,
}

struct Shared {
    script: Mutex<Arc<Script>>,
    received: Mutex<Vec<Received>>,
    /// Requests under way, and the most there ever were.
    open: AtomicUsize,
    most: AtomicUsize,
}

impl Receiver {
    /// A server that answers 200.
    ///
    /// # Panics
    /// No port is free.
    pub async fn start() -> Self {
        Self::with("http", None).await
    }

    /// The same with TLS, with an authority of its own.
    ///
    /// # Panics
    /// As [`Receiver::start`], or certificates can't be made.
    pub async fn with_tls() -> Self {
        let folder = tempfile::tempdir().expect("a folder for certificates");
        let acceptor = tls::acceptor(folder.path()).expect("certificates can be made");
        Self::with("https", Some((acceptor, folder))).await
    }

    async fn with(scheme: &'static str, tls: Option<(TlsAcceptor, TempDir)>) -> Self {
        let shared = Shared {
            script: Mutex::new(Arc::new(|_: &Received| Answer::Status(200))),
            received: Mutex::default(),
            open: AtomicUsize::new(0),
            most: AtomicUsize::new(0),
        };
        let mut receiver = Self { port: 0, scheme, tls, shared: Arc::new(shared), listening: None };
        receiver.open().await;
        receiver
    }

    /// `http://127.0.0.1:<port><path>`
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("{}://127.0.0.1:{}{path}", self.scheme, self.port)
    }

    /// The authority that has signed its certificate.
    ///
    /// # Panics
    /// It speaks no TLS.
    #[must_use]
    pub fn ca_file(&self) -> PathBuf {
        self.tls.as_ref().expect("it speaks TLS").1.path().join("ca.crt")
    }

    /// How it answers from now on.
    pub fn answer(&self, script: impl Fn(&Received) -> Answer + Send + Sync + 'static) {
        *lock(&self.shared.script) = Arc::new(script);
    }

    /// All requests so far, in their order.
    #[must_use]
    pub fn received(&self) -> Vec<Received> {
        lock(&self.shared.received).clone()
    }

    /// How many there were.
    #[must_use]
    pub fn count(&self) -> usize {
        lock(&self.shared.received).len()
    }

    /// The most requests that were under way at once.
    #[must_use]
    pub fn most_at_once(&self) -> usize {
        self.shared.most.load(Ordering::SeqCst)
    }

    /// Closes all connections and refuses new ones.
    pub async fn close(&mut self) {
        if let Some(mut listening) = self.listening.take() {
            listening.shutdown().await;
        }
    }

    /// Takes connections again, on the same port.
    ///
    /// # Panics
    /// Somebody has taken the port meanwhile.
    pub async fn open(&mut self) {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        let listener = TcpListener::bind(address).await.expect("the port is free");
        self.port = listener.local_addr().expect("it is bound").port();
        let (shared, tls) =
            (Arc::clone(&self.shared), self.tls.as_ref().map(|(acceptor, _)| acceptor.clone()));
        let mut listening = JoinSet::new();
        listening.spawn(listen(listener, shared, tls));
        self.listening = Some(listening);
    }
}

/// Answers each connection with what is not HTTP.
///
/// # Panics
/// No port is free.
pub async fn garbage() -> (SocketAddr, JoinSet<()>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port is free");
    let address = listener.local_addr().expect("it is bound");
    let mut serving = JoinSet::new();
    serving.spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 16_384]).await;
            let _ = stream.write_all(b"\x00\x01\x02 220 smtp.example ESMTP\r\n\r\n").await;
        }
    });
    (address, serving)
}

async fn listen(listener: TcpListener, shared: Arc<Shared>, tls: Option<TlsAcceptor>) {
    // Ends with this future.
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        let (shared, tls) = (Arc::clone(&shared), tls.clone());
        connections.spawn(async move {
            match tls {
                None => serve(stream, shared).await,
                Some(acceptor) => {
                    if let Ok(stream) = accept(&acceptor, stream).await {
                        serve(stream, shared).await;
                    }
                }
            }
        });
    }
}

async fn accept(
    acceptor: &TlsAcceptor,
    stream: TcpStream,
) -> io::Result<tokio_rustls::server::TlsStream<TcpStream>> {
    acceptor.accept(stream).await
}

async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin, shared: Arc<Shared>) {
    let service = service_fn(move |request| handle(request, Arc::clone(&shared)));
    // A client that goes away is its own business.
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

async fn handle(request: Request<Incoming>, shared: Arc<Shared>) -> Result<Response<Whole>, io::Error> {
    let _under_way = UnderWay::new(Arc::clone(&shared));
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let text = |value: &hyper::header::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let headers = parts.headers.iter().map(|(name, value)| (name.to_string(), text(value)));
    let received = Received {
        method: parts.method.to_string(),
        path: parts.uri.to_string(),
        headers: headers.collect::<BTreeMap<_, _>>(),
        body,
        at: Instant::now(),
    };
    let script = Arc::clone(&*lock(&shared.script));
    let answer = script(&received);
    lock(&shared.received).push(received);
    respond(answer).await
}

async fn respond(answer: Answer) -> Result<Response<Whole>, io::Error> {
    let (status, headers, body) = match answer {
        Answer::Status(status) => (status, vec![], Bytes::new()),
        Answer::With(status, headers, body) => (status, headers, body),
        Answer::Late(time, status) => {
            tokio::time::sleep(time).await;
            (status, vec![], Bytes::new())
        }
        Answer::Half(status) => {
            let response = Response::builder().status(status).header("content-length", "1000");
            return Ok(response.body(Half::default().boxed()).expect("a response of such parts"));
        }
        Answer::Nothing => return Err(io::ErrorKind::ConnectionAborted.into()),
    };
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(name, value);
    }
    let body = Full::new(body).map_err(|never: Infallible| match never {}).boxed();
    Ok(response.body(body).expect("a response of such parts"))
}

/// A request under way.
struct UnderWay(Arc<Shared>);

impl UnderWay {
    fn new(shared: Arc<Shared>) -> Self {
        let open = shared.open.fetch_add(1, Ordering::SeqCst) + 1;
        shared.most.fetch_max(open, Ordering::SeqCst);
        Self(shared)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::SeqCst);
    }
}

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
