//! A command, and which node of a cluster gets it.

use std::time::Duration;

use fred::types::config::Server;
use fred::types::{ClusterHash, Value};

/// A command to be sent once.
pub(crate) struct Order {
    pub(crate) name: &'static str,
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
    /// This one.
    Node(Server),
    /// Any.
    Any,
    /// As `Key`, and the reply may take long.
    Blocking(usize),
}

impl Order {
    /// Slot, node, and whether the connection is blocked meanwhile, in the library's words.
    ///
    /// For plain commands the library heeds a slot or a node and nothing else: an offset is passed over in silence,
    /// and the first argument taken for the key.
    pub(crate) fn target(&self, clustered: bool) -> (ClusterHash, Option<Server>, bool) {
        let slot = |place: usize| match self.args.get(place) {
            Some(Value::Bytes(key)) if clustered => ClusterHash::Custom(fred::util::redis_keyslot(key)),
            _ => ClusterHash::Random,
        };
        match &self.route {
            Route::Key(place) => (slot(*place), None, false),
            Route::Blocking(place) => (slot(*place), None, true),
            Route::Slot(slot) => (ClusterHash::Custom(*slot), None, false),
            Route::Node(server) => (ClusterHash::Random, Some(server.clone()), false),
            Route::Any => (ClusterHash::Random, None, false),
        }
    }
}
