//! A process that uses one of the clients, and does what it is told.

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

use crate::language::Language;

/// One process with a client. Dropping it ends it.
pub(crate) struct Speaker {
    language: Language,
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Speaker {
    /// A client of the server at `addr` that gives up after a second or so.
    pub(crate) fn start(language: Language, addr: SocketAddr) -> Self {
        Self::patient(language, addr, 1)
    }

    /// A client that gives up after so many seconds.
    pub(crate) fn patient(language: Language, addr: SocketAddr, seconds: u32) -> Self {
        let mut command = Command::new(language.interpreter());
        command.arg(language.driver()).arg(language.folder());
        // No folder of compiled files beside the client that is in the repository.
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        command.args([addr.ip().to_string(), addr.port().to_string(), seconds.to_string()]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take().unwrap());
        Self { language, child, stdin, stdout: BufReader::new(stdout) }
    }

    /// Asks, without waiting for the answer.
    pub(crate) fn ask(&mut self, request: &Value) {
        writeln!(self.stdin.as_mut().unwrap(), "{request}").unwrap();
    }

    /// The next answer.
    pub(crate) fn answer(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{:?}: {error}: {line}", self.language))
    }

    /// Asks, and waits for the answer.
    pub(crate) fn call(&mut self, request: &Value) -> Value {
        self.ask(request);
        self.answer()
    }

    /// Arms a timer in `orders`; `more` says when, and all else there is to say.
    pub(crate) fn schedule(&mut self, id: &[u8], payload: &[u8], more: &Value) -> Value {
        self.call(&schedule(id, payload, more))
    }

    /// Disarms a timer in `orders`.
    pub(crate) fn cancel(&mut self, id: &[u8]) -> Value {
        self.call(&json!({"what": "cancel", "queue": "orders", "id": BASE64.encode(id)}))
    }

    /// Looks up a timer in `orders`; its payload in base64.
    pub(crate) fn get(&mut self, id: &[u8]) -> Value {
        self.call(&json!({"what": "get", "queue": "orders", "id": BASE64.encode(id)}))
    }
}

/// The request that arms a timer in `orders`.
pub(crate) fn schedule(id: &[u8], payload: &[u8], more: &Value) -> Value {
    let mut request = json!({"what": "schedule", "queue": "orders",
        "id": BASE64.encode(id), "payload": BASE64.encode(payload)});
    request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    request
}

impl Drop for Speaker {
    fn drop(&mut self) {
        // It ends with its standard input; one that hangs in a call is not waited for.
        self.stdin = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
