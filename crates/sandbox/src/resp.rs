//! As much RESP2 as admin commands need; the product's own client is not used here.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use crate::error::{Error, ErrorKind};

/// How long an answer may take.
const DEADLINE: Duration = Duration::from_secs(10);

/// What Redis answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// No value.
    Nil,
    /// An integer.
    Int(i64),
    /// A string or status, binary-safe.
    Bytes(Vec<u8>),
    /// An error inside a list; at top level it is an [`Error`].
    Error(String),
    /// A list.
    Array(Vec<Value>),
}

impl Value {
    /// A string as text, an integer as decimal text, else nothing: for admin answers.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Value::Int(n) => n.to_string(),
            _ => String::new(),
        }
    }

    /// An integer, or a string of digits.
    #[must_use]
    pub fn int(&self) -> Option<i64> {
        self.text().parse().ok()
    }

    /// The items of a list; nothing for anything else.
    #[must_use]
    pub fn items(&self) -> &[Value] {
        if let Value::Array(items) = self { items } else { &[] }
    }
}

/// One blocking connection. An answer that takes longer than 10 s is an error.
pub struct Connection {
    input: BufReader<Box<dyn Read + Send>>,
    output: Box<dyn Write + Send>,
}

impl Connection {
    /// Connects over TCP.
    ///
    /// # Errors
    /// Nobody listens there.
    pub fn tcp(addr: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&addr, DEADLINE)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(DEADLINE))?;
        stream.set_write_timeout(Some(DEADLINE))?;
        Ok(Self { input: BufReader::new(Box::new(stream.try_clone()?)), output: Box::new(stream) })
    }

    /// Connects to a unix socket.
    ///
    /// # Errors
    /// Nobody listens there.
    pub fn unix(path: &Path) -> io::Result<Self> {
        let stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(DEADLINE))?;
        stream.set_write_timeout(Some(DEADLINE))?;
        Ok(Self { input: BufReader::new(Box::new(stream.try_clone()?)), output: Box::new(stream) })
    }

    /// Sends one command and reads its answer.
    ///
    /// # Errors
    /// [`ErrorKind::Redis`] with Redis' own words, or [`ErrorKind::Io`].
    pub fn call(&mut self, args: &[impl AsRef<[u8]>]) -> Result<Value, Error> {
        let doing = || args.first().map_or_else(String::new, |a| String::from_utf8_lossy(a.as_ref()).into());
        self.send(args).and_then(|()| self.receive()).map_err(|error| error.during(doing()))
    }

    /// Sends one command. Its answer is the next that [`Connection::receive`] reads after those that are still to come.
    ///
    /// # Errors
    /// [`ErrorKind::Io`].
    pub fn send(&mut self, args: &[impl AsRef<[u8]>]) -> Result<(), Error> {
        let mut out = format!("*{}\r\n", args.len()).into_bytes();
        for arg in args.iter().map(AsRef::as_ref) {
            out.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
            out.extend_from_slice(arg);
            out.extend_from_slice(b"\r\n");
        }
        let sent = self.output.write_all(&out);
        sent.map_err(|error| Error::new(ErrorKind::Io, "send a command", error.to_string()))
    }

    /// Reads the answer to the oldest command that has none yet.
    ///
    /// # Errors
    /// As [`Connection::call`].
    pub fn receive(&mut self) -> Result<Value, Error> {
        let doing = "read an answer";
        match self.value().map_err(|error| Error::new(ErrorKind::Io, doing, error.to_string()))? {
            Value::Error(text) => Err(Error::new(ErrorKind::Redis, doing, text)),
            value => Ok(value),
        }
    }

    fn value(&mut self) -> io::Result<Value> {
        let mut line = Vec::new();
        self.input.read_until(b'\n', &mut line)?;
        let line = line.strip_suffix(b"\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
        let (&kind, rest) = line.split_first().ok_or(io::ErrorKind::InvalidData)?;
        let number = || std::str::from_utf8(rest).ok().and_then(|n| n.parse::<i64>().ok());
        let number = || number().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData));
        match kind {
            b'+' => Ok(Value::Bytes(rest.to_vec())),
            b'-' => Ok(Value::Error(String::from_utf8_lossy(rest).into_owned())),
            b':' => Ok(Value::Int(number()?)),
            b'$' => match usize::try_from(number()?) {
                Err(_) => Ok(Value::Nil),
                Ok(len) => {
                    let mut bytes = vec![0; len + 2];
                    self.input.read_exact(&mut bytes)?;
                    bytes.truncate(len);
                    Ok(Value::Bytes(bytes))
                }
            },
            b'*' => match usize::try_from(number()?) {
                Err(_) => Ok(Value::Nil),
                Ok(len) => (0..len).map(|_| self.value()).collect::<io::Result<_>>().map(Value::Array),
            },
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}
