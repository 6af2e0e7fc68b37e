//! Scripts as orders: EVALSHA, and EVAL with the same arguments when the server does not hold the script ([`crate::way`]).
//!
//! Sent as plain commands: the library's own script calls ignore the deadline and the number of attempts.

use std::collections::HashMap;
use std::sync::{LazyLock, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use fred::types::Value;
use overdue_protocol::Script;

use crate::order::{Order, Route};

macro_rules! own {
    ($($(#[$doc:meta])* $ident:ident = $name:literal;)*) => {
        $(
            $(#[$doc])*
            pub(crate) static $ident: Script =
                Script { name: concat!("store/", $name), parts: &[], text: include_str!(concat!("../../../lua/store/", $name, ".lua")) };
        )*
    };
}

own! {
    /// Every field of a hash.
    HASH = "hash";
    /// One field of a hash.
    FIELD = "field";
    /// A page of a sorted set in the order of (score, member).
    PAGE = "page";
    /// A member's score and its field in the hash beside it.
    RECORD = "record";
    /// The oldest that each group of a stream has not finished.
    WAITING = "waiting";
    /// Sets one field of a queue's entry.
    SETTING = "setting";
}

/// SHA-1 of each script met, by the address of its text.
static DIGESTS: LazyLock<RwLock<HashMap<usize, Bytes>>> = LazyLock::new(RwLock::default);

fn digest(script: &'static Script) -> Bytes {
    let address = script.text.as_ptr() as usize;
    if let Some(digest) = DIGESTS.read().unwrap_or_else(PoisonError::into_inner).get(&address) {
        return digest.clone();
    }
    let digest = Bytes::from(fred::util::sha1_hash(script.text));
    DIGESTS.write().unwrap_or_else(PoisonError::into_inner).insert(address, digest.clone());
    digest
}

impl Order {
    /// Runs a script that the server holds.
    pub(crate) fn of_script(
        script: &'static Script,
        keys: Vec<Bytes>,
        args: Vec<Bytes>,
        deadline: Duration,
    ) -> Self {
        let mut all: Vec<Value> = Vec::with_capacity(2 + keys.len() + args.len());
        // The key stands behind the digest and the number of keys.
        let route = if keys.is_empty() { Route::Any } else { Route::Key(2) };
        all.push(Value::Bytes(digest(script)));
        all.push(Value::Integer(keys.len() as i64));
        all.extend(keys.into_iter().chain(args).map(Value::Bytes));
        Self { name: "EVALSHA", call: script.name, args: all, route, deadline }
    }

    /// The same with the whole text: the server does not hold it.
    pub(crate) fn tell_script(&mut self, script: &'static Script) {
        self.name = "EVAL";
        self.args[0] = Value::Bytes(Bytes::from_static(script.text.as_bytes()));
    }
}
