//! One connection to one server, as RESP2 frames.

use std::net::SocketAddr;

use bytes::{Buf, Bytes, BytesMut};
use overdue_protocol::Reply;
use redis_protocol::resp2::decode::decode_range;
use redis_protocol::resp2::types::RangeFrame;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::transport::Transport;
use crate::ErrorKind;
use crate::fault::Fault;

/// How much is read at a time, if there is so much.
const CHUNK: usize = 64 * 1024;
/// The longest frame; keys and messages are far shorter, and who sends more than this is out of step.
const LONGEST: usize = 64 * 1024 * 1024;

/// A connection with what was read from it and not looked at yet.
pub(crate) struct Line {
    transport: Box<dyn Transport>,
    /// The other end, where it has an address.
    pub(super) peer: Option<SocketAddr>,
    buffer: BytesMut,
    /// So much of the buffer has been looked at.
    taken: usize,
    answered: bool,
    longest: usize,
}

impl Line {
    pub(super) fn over(transport: Box<dyn Transport>, peer: Option<SocketAddr>) -> Self {
        Self { transport, peer, buffer: BytesMut::new(), taken: 0, answered: false, longest: LONGEST }
    }

    /// Sends commands, each a list of words. It has no deadline of its own.
    pub(crate) async fn send(&mut self, commands: &[&[&[u8]]]) -> Result<(), Fault> {
        let mut bytes = vec![];
        for words in commands {
            bytes.extend(format!("*{}\r\n", words.len()).as_bytes());
            for word in *words {
                bytes.extend(format!("${}\r\n", word.len()).as_bytes());
                bytes.extend([*word, b"\r\n"].concat());
            }
        }
        let sent = async {
            self.transport.write_all(&bytes).await?;
            self.transport.flush().await
        };
        sent.await.map_err(|error| Fault::of_io(&error))
    }

    /// Sends one command and waits for its reply: for a connection that is not subscribed yet.
    pub(crate) async fn ask(&mut self, words: &[&[u8]]) -> Result<Reply, Fault> {
        self.send(&[words]).await?;
        self.answer().await
    }

    /// Waits for the next reply: for a connection that is not subscribed yet.
    pub(super) async fn answer(&mut self) -> Result<Reply, Fault> {
        loop {
            if let Some((frame, bytes)) = self.next()? {
                return reply(&frame, bytes);
            }
            self.fill().await?;
        }
    }

    /// Reads what has come, at least one byte. Nothing is lost when it is dropped before its end.
    pub(crate) async fn fill(&mut self) -> Result<(), Fault> {
        self.buffer.advance(self.taken);
        self.taken = 0;
        if self.buffer.len() > self.longest {
            let text = format!("what it sends has no end: a frame of more than {} MiB", self.longest >> 20);
            return Err(Fault::new(ErrorKind::Malformed, text));
        }
        if self.buffer.is_empty() && self.buffer.capacity() > 4 * CHUNK {
            // One long frame must not cost its memory for ever.
            self.buffer = BytesMut::new();
        }
        self.buffer.reserve(CHUNK);
        match self.transport.read_buf(&mut self.buffer).await {
            Ok(0) if self.answered => Err(Fault::new(ErrorKind::Unreachable, "it closed the connection")),
            Ok(0) => Err(Fault::new(ErrorKind::NotRedis, "it closed the connection without a word")),
            Ok(_) => Ok(()),
            Err(error) => Err(Fault::of_io(&error)),
        }
    }

    /// Lets a frame be so long.
    pub(crate) fn allow(&mut self, longest: usize) {
        self.longest = longest;
    }

    /// What is here and was not looked at yet.
    pub(crate) fn rest(&self) -> &[u8] {
        self.buffer.get(self.taken..).unwrap_or_default()
    }

    /// So much more was looked at.
    pub(crate) fn take(&mut self, length: usize) {
        self.taken += length;
    }

    /// The next frame that is here in full, with the bytes that its ranges point into.
    pub(super) fn next(&mut self) -> Result<Option<(RangeFrame, &[u8])>, Fault> {
        let Some(rest) = self.buffer.get(self.taken..).filter(|rest| !rest.is_empty()) else {
            return Ok(None);
        };
        match decode_range(rest) {
            Ok(Some((frame, length))) => {
                self.answered = true;
                let start = self.taken;
                self.taken += length;
                Ok(self.buffer.get(start..self.taken).map(|bytes| (frame, bytes)))
            }
            Ok(None) => Ok(None),
            Err(_) if self.answered => Err(Fault::new(ErrorKind::Malformed, "what it sends is no RESP")),
            Err(_) => Err(Fault::new(ErrorKind::NotRedis, "what it sends is no RESP")),
        }
    }
}

/// The string that a range points to; nothing for a frame of another type.
pub(super) fn text<'a>(frame: &RangeFrame, bytes: &'a [u8]) -> Option<&'a [u8]> {
    match frame {
        RangeFrame::BulkString(range) | RangeFrame::SimpleString(range) => bytes.get(range.0..range.1),
        _ => None,
    }
}

/// The error in a frame.
pub(super) fn refusal(frame: &RangeFrame, bytes: &[u8]) -> Option<Fault> {
    let RangeFrame::Error(range) = frame else { return None };
    Some(Fault::of_reply(&String::from_utf8_lossy(bytes.get(range.0..range.1).unwrap_or_default())))
}

fn reply(frame: &RangeFrame, bytes: &[u8]) -> Result<Reply, Fault> {
    Ok(match frame {
        RangeFrame::Null => Reply::Nil,
        RangeFrame::Integer(number) => Reply::Int(*number),
        RangeFrame::Array(items) => {
            Reply::Array(items.iter().map(|item| reply(item, bytes)).collect::<Result<_, _>>()?)
        }
        other => match refusal(other, bytes) {
            Some(fault) => return Err(fault),
            None => Reply::Bytes(Bytes::copy_from_slice(text(other, bytes).unwrap_or_default())),
        },
    })
}

#[cfg(test)]
mod tests {
    use tokio::io::duplex;

    use super::*;

    #[tokio::test]
    async fn frames_cut_at_every_byte_come_out_whole() {
        let sent = b"*2\r\n+a\r\n:-7\r\n$6\r\nx\xff\r\n\r\n\r\n*0\r\n$-1\r\n$0\r\n\r\n";
        let wanted = [
            Reply::Array(vec![Reply::Bytes("a".into()), Reply::Int(-7)]),
            Reply::Bytes(Bytes::from_static(b"x\xff\r\n\r\n")),
            Reply::Array(vec![]),
            Reply::Nil,
            Reply::Bytes(Bytes::new()),
        ];
        for piece in 1..=sent.len() {
            let (near, mut far) = duplex(piece);
            let writer = tokio::spawn(async move { far.write_all(sent).await });
            let mut line = Line::over(Box::new(near), None);
            let mut heard = vec![];
            while heard.len() < wanted.len() {
                line.fill().await.unwrap();
                while let Some((frame, bytes)) = line.next().unwrap() {
                    heard.push(reply(&frame, bytes).unwrap());
                }
            }
            assert_eq!(heard, wanted, "in pieces of {piece}");
            writer.await.unwrap().unwrap();
        }
    }

    #[tokio::test]
    async fn a_frame_without_end_is_a_broken_connection() {
        let (near, mut far) = duplex(CHUNK);
        tokio::spawn(async move {
            let _ = far.write_all(b"$999999999999\r\n").await;
            while far.write_all(&[b'x'; CHUNK]).await.is_ok() {}
        });
        let mut line = Line::over(Box::new(near), None);
        let fault = loop {
            match line.fill().await {
                Ok(()) => assert!(line.next().unwrap().is_none()),
                Err(fault) => break fault,
            }
        };
        assert_eq!(fault.kind, ErrorKind::Malformed);
        assert!(line.buffer.len() <= LONGEST + CHUNK * 2);
    }

    #[tokio::test]
    async fn what_is_no_redis_is_told_from_a_redis_that_breaks_off() {
        for (sent, kind) in [
            ("", ErrorKind::NotRedis),
            ("HTTP/1.1 400 Bad Request\r\n", ErrorKind::NotRedis),
            ("+OK\r\n", ErrorKind::Unreachable),
            ("+OK\r\n\x16\x03", ErrorKind::Malformed),
        ] {
            let mut line = Line::over(Box::new(tokio_test(sent)), None);
            let fault = loop {
                match line.next() {
                    Ok(Some(_)) => {}
                    Ok(None) => match line.fill().await {
                        Ok(()) => {}
                        Err(fault) => break fault,
                    },
                    Err(fault) => break fault,
                }
            };
            assert_eq!(fault.kind, kind, "{sent:?}");
        }
    }

    /// An end that says this and is closed.
    fn tokio_test(says: &'static str) -> tokio::io::DuplexStream {
        let (near, mut far) = duplex(64);
        tokio::spawn(async move { far.write_all(says.as_bytes()).await });
        near
    }
}
