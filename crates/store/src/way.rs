//! What is done alike over one connection and over all of a store's.

use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use fred::types::Resp3Frame;
use overdue_protocol::{Reply, Script};

use crate::fault::Fault;
use crate::frame;
use crate::order::Order;

/// A command on its way. Boxed: the library's futures nest so deep that an application's own would meet the compiler's
/// limit, and every caller's would be as large as they are.
pub(crate) type Sending<'a> = Pin<Box<dyn Future<Output = Result<Resp3Frame, Fault>> + Send + 'a>>;

/// What an order is sent over: one connection, or all of a store's.
pub(crate) trait Way: Sync {
    /// The address for errors, without password.
    fn place(&self) -> &str;

    /// Sends a command. What was certainly not executed and passes at once is tried again within the deadline.
    fn send<'a>(&'a self, order: &'a Order) -> Sending<'a>;

    /// Sends a command and reads its reply, naming what was being done in every error.
    fn ask(&self, doing: &str, order: &Order) -> impl Future<Output = crate::Result<Reply>> + Send {
        async move {
            let answer = self.send(order).await.and_then(frame::reply);
            answer.map_err(|fault| fault.during(doing, self.place()))
        }
    }

    /// Runs a script; all keys lie in one slot.
    fn eval(
        &self,
        script: &'static Script,
        keys: Vec<Bytes>,
        args: Vec<Bytes>,
        deadline: Duration,
    ) -> impl Future<Output = Result<Reply, Fault>> + Send {
        async move {
            let mut order = Order::of_script(script, keys, args, deadline);
            let answer = match self.send(&order).await {
                Err(fault) if fault.no_script => {
                    order.tell_script(script);
                    self.send(&order).await
                }
                other => other,
            };
            answer.and_then(frame::reply)
        }
    }
}
