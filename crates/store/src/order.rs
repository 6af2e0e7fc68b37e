//! A command, and which node of a cluster gets it.

use std::time::Duration;

use fred::types::{ClusterHash, Value};

/// A command to be sent once.
#[derive(Clone)]
pub(crate) struct Order {
    pub(crate) name: &'static str,
    /// The word in metrics: a script's name, or `read` or `command`.
    pub(crate) call: &'static str,
    pub(crate) args: Vec<Value>,
    pub(crate) route: Route,
    pub(crate) deadline: Duration,
}

/// Which node of a cluster gets a command, and whether it blocks the connection.
#[derive(Clone)]
pub(crate) enum Route {
    /// The one that holds the key at this place of the arguments.
    Key(usize),
    /// The one that holds this slot.
    Slot(u16),
    /// Any.
    Any,
    /// As `Key`, and the reply may take long.
    Blocking(usize),
}

impl Order {
    /// A plain command.
    pub(crate) fn new(name: &'static str, args: Vec<Value>, route: Route, deadline: Duration) -> Self {
        let call = if matches!(route, Route::Blocking(_)) { "read" } else { "command" };
        Self { name, call, args, route, deadline }
    }

    /// Slot, and whether the connection is blocked meanwhile, in the library's words.
    ///
    /// For plain commands the library heeds a slot and nothing else: an offset is passed over in silence, and the
    /// first argument taken for the key.
    pub(crate) fn target(&self, clustered: bool) -> (ClusterHash, bool) {
        let slot = self.slot().filter(|_| clustered || matches!(self.route, Route::Slot(_)));
        (slot.map_or(ClusterHash::Random, ClusterHash::Custom), matches!(self.route, Route::Blocking(_)))
    }

    /// The slot of the node that gets it; `None` = any node.
    pub(crate) fn slot(&self) -> Option<u16> {
        match self.route {
            Route::Key(place) | Route::Blocking(place) => match self.args.get(place) {
                Some(Value::Bytes(key)) => Some(fred::util::redis_keyslot(key)),
                _ => None,
            },
            Route::Slot(slot) => Some(slot),
            Route::Any => None,
        }
    }
}
