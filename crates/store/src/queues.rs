//! The hash of queues (PROTOCOL.md section 1).

use std::collections::BTreeMap;

use bytes::Bytes;
use fred::types::Value;
use overdue_protocol::{FORMAT, QueueInfo, QueueName, Reply};

use crate::order::Route;
use crate::script;
use crate::{Error, ErrorKind, Result, Store};

impl Store {
    /// How many partitions a new queue gets: 1, on a cluster 4.
    #[must_use]
    pub fn default_partitions(&self) -> u32 {
        if self.is_cluster() { 4 } else { 1 }
    }

    /// Every queue.
    ///
    /// # Errors
    /// `Malformed` or `NewerFormat` names the queue.
    pub async fn queues(&self) -> Result<BTreeMap<QueueName, QueueInfo>> {
        let doing = "list the queues";
        let flat = self.read(doing, &script::HASH, vec![self.keyspace().queues()], vec![]).await?;
        let mut queues = BTreeMap::new();
        let mut flat = flat.into_iter().filter_map(Reply::into_bytes);
        while let (Some(name), Some(raw)) = (flat.next(), flat.next()) {
            let text = String::from_utf8_lossy(&name);
            let name = QueueName::new(&text)
                .map_err(|error| Error::new(ErrorKind::Malformed, doing, error.to_string()))?;
            let info = decode(&name, &raw)?;
            queues.insert(name, info);
        }
        Ok(queues)
    }

    /// One queue, or `None`.
    ///
    /// # Errors
    /// As [`Store::queues`].
    pub async fn queue(&self, name: &QueueName) -> Result<Option<QueueInfo>> {
        let field = Bytes::copy_from_slice(name.as_str().as_bytes());
        let doing = format!("look up queue {name}");
        let found = self.read(&doing, &script::FIELD, vec![self.keyspace().queues()], vec![field]).await?;
        found.into_iter().next().and_then(Reply::into_bytes).map(|raw| decode(name, &raw)).transpose()
    }

    /// Creates a queue unless it is there; answers what is there now, and whether this call created it.
    ///
    /// # Errors
    /// As [`Store::queues`]; a number of partitions outside 1 to 1024 is `Settings`.
    pub async fn create_queue(&self, name: &QueueName, partitions: u32) -> Result<(QueueInfo, bool)> {
        let doing = format!("create queue {name}");
        if !(1..=overdue_protocol::partition::MAX_PARTITIONS).contains(&partitions) {
            return Err(Error::new(ErrorKind::Settings, doing, "a queue has 1 to 1024 partitions"));
        }
        let info = QueueInfo { partitions, created_ms: self.time_ms().await?, format: FORMAT, paused: false };
        let args = vec![
            Value::Bytes(self.keyspace().queues()),
            Value::from(name.as_str().to_owned()),
            Value::Bytes(Bytes::from(info.encode())),
        ];
        // An unknown outcome here is settled by the look that follows.
        let created = match self.command(&doing, "HSETNX", args, Route::Key(0)).await {
            Ok(reply) => reply == Reply::Int(1),
            Err(error) if error.kind() == ErrorKind::OutcomeUnknown => false,
            Err(error) => return Err(error),
        };
        let Some(found) = self.queue(name).await? else {
            return Err(Error::new(
                ErrorKind::OutcomeUnknown,
                doing,
                "it was removed again at once: try again",
            ));
        };
        if created {
            let args =
                vec![Value::Bytes(self.keyspace().queues_wake()), Value::from(name.as_str().to_owned())];
            // Only a hint: everybody reads the list again every 10 s.
            let _ = self.command(&doing, "PUBLISH", args, Route::Any).await;
        }
        Ok((found, created))
    }

    /// Sets or clears `paused`; answers false when there is no such queue.
    ///
    /// # Errors
    /// As [`Store::queues`].
    pub async fn set_paused(&self, name: &QueueName, paused: bool) -> Result<bool> {
        if self.queue(name).await?.is_none() {
            return Ok(false);
        }
        let doing = format!("{} queue {name}", if paused { "pause" } else { "resume" });
        let args =
            [name.as_str(), if paused { "1" } else { "0" }].map(|arg| Bytes::copy_from_slice(arg.as_bytes()));
        let keys = vec![self.keyspace().queues()];
        let reply = self
            .connection()
            .eval(&script::PAUSE, keys, args.to_vec(), self.settings().command_deadline)
            .await;
        let reply = reply.map_err(|fault| fault.during(doing, self.place()))?;
        Ok(reply.into_array().and_then(|parts| parts.first().and_then(Reply::as_u64)) == Some(1))
    }
}

fn decode(name: &QueueName, raw: &[u8]) -> Result<QueueInfo> {
    let doing = || format!("use queue {name}");
    let info = QueueInfo::decode(raw).map_err(|what| Error::malformed(doing(), what))?;
    if info.format > FORMAT {
        let detail = format!(
            "it is in format {}, this program knows up to {FORMAT}: upgrade this program",
            info.format
        );
        return Err(Error::new(ErrorKind::NewerFormat, doing(), detail));
    }
    Ok(info)
}
