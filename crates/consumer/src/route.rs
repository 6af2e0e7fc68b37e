//! A handler for each pattern of names: the first that matches starts it, the last takes the rest.

use std::sync::Arc;

use overdue_protocol::Entry;
use overdue_protocol::watch::Glob;
use overdue_store::Error;
use tokio::task::AbortHandle;

use crate::duty::Duty;
use crate::handler::Handler;
use crate::options::{self, Options};
use crate::payload::Payload;
use crate::reach::{Reach, Reaches};
use crate::station::Start;
use crate::work::{Handling, Work};

/// A handler that is not complete before the consumer's own terms are known.
type Unsettled = Box<dyn FnOnce(&str, &str, &Options) -> Result<Route, Error> + Send>;

/// A handler, ready.
pub(crate) struct Route {
    work: Box<dyn Work>,
    reach: Arc<Reach>,
}

impl Route {
    /// `whose` it is, and of which queue and group: what errors and log lines say.
    fn settle<T: Payload>(
        handler: impl Handler<T>,
        whose: &str,
        of: &str,
        options: &Options,
    ) -> Result<Self, Error> {
        let terms = handler.terms().settle(whose, options)?;
        let reach = Reach::new(format!("{whose} ({of})"), options.probe);
        let duty = Arc::new(Duty { terms, reach: reach.clone() });
        Ok(Self { work: Box::new(Handling::new(handler, duty)), reach })
    }
}

/// The handlers with a pattern, in the order in which they were given.
#[derive(Default)]
pub(crate) struct Routes(Vec<(Glob, Unsettled)>);

impl Routes {
    pub(crate) fn add<T: Payload>(&mut self, pattern: &[u8], handler: impl Handler<T>) {
        let settle = |whose: &str, of: &str, options: &Options| Route::settle(handler, whose, of, options);
        self.0.push((Glob::new(pattern.to_vec()), Box::new(settle)));
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

    /// All of them, and the one for what no pattern matches; and whether what they work with can be reached.
    ///
    /// # Errors
    /// [`overdue_store::ErrorKind::Settings`]: a handler's own terms can't be.
    pub(crate) fn and_rest<T: Payload>(
        self,
        handler: impl Handler<T>,
        of: &str,
        options: &Options,
    ) -> Result<(Arc<dyn Work>, Reaches), Error> {
        let (mut routes, mut reaches) = (vec![], vec![]);
        for (pattern, settle) in self.0 {
            let whose = format!("the handler of {:?}", String::from_utf8_lossy(pattern.as_bytes()));
            let Route { work, reach } = settle(&whose, of, options)?;
            routes.push((pattern, work));
            reaches.push(reach);
        }
        let whose = if routes.is_empty() { "the handler" } else { "the handler of the rest" };
        let Route { work: rest, reach } = Route::settle(handler, whose, of, options)?;
        reaches.push(reach);
        let work: Arc<dyn Work> =
            if routes.is_empty() { rest.into() } else { Arc::new(Routed { routes, rest }) };
        Ok((work, Reaches::new(reaches)))
    }
}

struct Routed {
    routes: Vec<(Glob, Box<dyn Work>)>,
    rest: Box<dyn Work>,
}

impl Work for Routed {
    fn start(&self, start: Start, entry: Box<Entry>) -> AbortHandle {
        let name = entry.id.as_bytes();
        let route = self.routes.iter().find(|(pattern, _)| pattern.is_match(name));
        route.map_or(&self.rest, |(_, work)| work).start(start, entry)
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
