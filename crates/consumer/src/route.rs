//! A handler for each pattern of names: the first that matches starts it, the last takes the rest.

use std::sync::Arc;

use overdue_protocol::Entry;
use overdue_protocol::watch::Glob;
use overdue_store::Error;
use tokio::task::AbortHandle;

use crate::handler::Handler;
use crate::options;
use crate::payload::Payload;
use crate::station::Hand;
use crate::work::{Handling, Work};

/// The handlers with a pattern, in the order in which they were given.
#[derive(Default)]
pub(crate) struct Routes(Vec<(Glob, Box<dyn Work>)>);

impl Routes {
    pub(crate) fn add<T: Payload>(&mut self, pattern: &[u8], handler: impl Handler<T>) {
        self.0.push((Glob::new(pattern.to_vec()), Box::new(Handling::new(handler))));
    }

    /// Checks the patterns.
    ///
    /// # Errors
    /// [`overdue_store::ErrorKind::Settings`]: a handler that would never be called is a mistake.
    pub(crate) fn check(&self) -> Result<(), Error> {
        for (n, (pattern, _)) in self.0.iter().enumerate() {
            let shown = String::from_utf8_lossy(pattern.as_bytes());
            if shown.is_empty() {
                return Err(options::wrong("a pattern is empty: no name matches it"));
            }
            if self.0[..n].iter().any(|(earlier, _)| earlier == pattern) {
                return Err(options::wrong(format!(
                    "the pattern {shown:?} is there twice: the second handler would never be called"
                )));
            }
        }
        Ok(())
    }

    /// All of them, and the one for what no pattern matches.
    pub(crate) fn and_rest<T: Payload>(self, handler: impl Handler<T>) -> Arc<dyn Work> {
        let rest = Handling::new(handler);
        if self.0.is_empty() { Arc::new(rest) } else { Arc::new(Routed { routes: self, rest }) }
    }
}

struct Routed<W> {
    routes: Routes,
    rest: W,
}

impl<W: Work> Work for Routed<W> {
    fn start(&self, hand: Hand, entry: Entry) -> AbortHandle {
        let name = entry.id.as_bytes();
        match self.routes.0.iter().find(|(pattern, _)| pattern.is_match(name)) {
            Some((_, work)) => work.start(hand, entry),
            None => self.rest.start(hand, entry),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Outcome, Raw, Timeout};

    #[test]
    fn a_handler_that_would_never_be_called_is_a_mistake() {
        let with = |patterns: &[&str]| {
            let mut routes = Routes::default();
            for pattern in patterns {
                routes.add(pattern.as_bytes(), |_: Timeout<Raw>| async { Outcome::Done });
            }
            routes.check().map_err(|error| error.to_string())
        };
        assert_eq!(with(&["order:*", "*", "session:*"]), Ok(()));
        let twice = with(&["order:*", "*", "order:*"]).unwrap_err();
        assert!(twice.contains("the pattern \"order:*\" is there twice"), "{twice}");
        assert!(with(&[""]).unwrap_err().contains("a pattern is empty"));
    }
}
