//! A body that breaks off.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use hyper::body::{Body, Frame};

/// Any body.
pub(super) type Whole = BoxBody<Bytes, io::Error>;

/// Some bytes, then an error: the connection is closed.
#[derive(Default)]
pub(super) struct Half {
    turns: u32,
}

impl Body for Half {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        self.turns += 1;
        match self.turns {
            1 => Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"half of it"))))),
            // A server that has to wait sends what it has.
            2 => {
                context.waker().wake_by_ref();
                Poll::Pending
            }
            _ => Poll::Ready(Some(Err(io::ErrorKind::ConnectionAborted.into()))),
        }
    }
}
