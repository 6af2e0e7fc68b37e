//! The books of a partition (PROTOCOL.md section 7).

use std::collections::BTreeMap;

use overdue_protocol::{Partition, Reply};

use crate::script;
use crate::{Result, Store};

impl Store {
    /// Every field of a partition's tally as text; [`overdue_protocol::tally`] names them. Empty when there is none.
    ///
    /// # Errors
    /// As [`Store::run`].
    pub async fn tally(&self, partition: &Partition) -> Result<BTreeMap<String, String>> {
        let flat = self.read("read the tally", &script::HASH, vec![partition.tally()], vec![]).await?;
        let mut tally = BTreeMap::new();
        let text =
            |reply: Reply| reply.into_bytes().map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let mut flat = flat.into_iter().filter_map(text);
        while let (Some(name), Some(value)) = (flat.next(), flat.next()) {
            tally.insert(name, value);
        }
        Ok(tally)
    }
}
