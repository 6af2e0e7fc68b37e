//! The plain keyspace listener that people write today: subscribe to `expired`, and subscribe again when the
//! connection is lost. It knows nothing of Overdue.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufStream};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::now_us;

/// How long it waits before it connects again: what common client libraries do first.
const PAUSE: Duration = Duration::from_millis(50);

/// Listens until the task is aborted or nobody is interested. `told` makes what is passed on, of the name of a key
/// and when it was heard of, unix microseconds.
pub(crate) async fn listen<T>(addr: SocketAddr, heard: mpsc::Sender<T>, told: impl Fn(Bytes, u64) -> T) {
    while !heard.is_closed() {
        // However it ended: on to the next connection.
        let _ = session(addr, &heard, &told).await;
        sleep(PAUSE).await;
    }
}

async fn session<T>(
    addr: SocketAddr,
    heard: &mpsc::Sender<T>,
    told: &impl Fn(Bytes, u64) -> T,
) -> io::Result<()> {
    let mut redis = BufStream::new(TcpStream::connect(addr).await?);
    redis.write_all(b"SUBSCRIBE __keyevent@0__:expired\r\n").await?;
    redis.flush().await?;
    loop {
        let message = message(&mut redis).await?;
        if let [kind, _, key] = &message[..]
            && kind == "message"
        {
            heard.send(told(key.clone(), now_us())).await.map_err(|_| io::ErrorKind::BrokenPipe)?;
        }
    }
}

/// One message: a list of strings, or of strings and a number (the answer to SUBSCRIBE).
async fn message(redis: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Vec<Bytes>> {
    let (_, parts) = head(redis).await?;
    let mut message = vec![];
    for _ in 0..parts {
        let (kind, number) = head(redis).await?;
        if kind == b'$' {
            let mut bytes = vec![0; number + 2];
            redis.read_exact(&mut bytes).await?;
            bytes.truncate(number);
            message.push(bytes.into());
        }
    }
    Ok(message)
}

/// A line such as `*3`, `$7` or `:1`.
async fn head(redis: &mut (impl AsyncBufRead + Unpin)) -> io::Result<(u8, usize)> {
    let mut line = String::new();
    redis.read_line(&mut line).await?;
    let number = line.get(1..).and_then(|number| number.trim_end().parse().ok());
    let number = number.ok_or(io::ErrorKind::UnexpectedEof)?;
    Ok((line.as_bytes()[0], number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn messages_are_read_one_by_one() {
        let mut wire =
            &b"*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$3\r\n\r\na\r\n"[..];
        assert_eq!(message(&mut wire).await.unwrap(), ["subscribe", "c"]);
        assert_eq!(message(&mut wire).await.unwrap(), ["message", "c", "\r\na"]);
        assert!(message(&mut wire).await.is_err());
    }
}
