//! The hash of queues (PROTOCOL.md section 1).

use std::collections::BTreeMap;

use bytes::Bytes;
use fred::types::Value;
use overdue_protocol::{FORMAT, QueueInfo, QueueName, Reply};

use crate::order::Route;
use crate::script;
use crate::way::Way;
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

    /// Creates a queue without a history unless it is there; answers what is there now, and whether this call created it.
    ///
    /// # Errors
    /// As [`Store::queues`]; a number of partitions outside 1 to 1024 is `Settings`.
    pub async fn create_queue(&self, name: &QueueName, partitions: u32) -> Result<(QueueInfo, bool)> {
        self.create_queue_with(name, partitions, 0).await
    }

    /// The same with a history: the most finished timeouts that each partition keeps.
    ///
    /// # Errors
    /// As [`Store::create_queue`].
    pub async fn create_queue_with(
        &self,
        name: &QueueName,
        partitions: u32,
        history: u32,
    ) -> Result<(QueueInfo, bool)> {
        let doing = format!("create queue {name}");
        if !(1..=overdue_protocol::partition::MAX_PARTITIONS).contains(&partitions) {
            return Err(Error::new(ErrorKind::Settings, doing, "a queue has 1 to 1024 partitions"));
        }
        let created_ms = self.time_ms().await?;
        let info = QueueInfo { partitions, created_ms, format: FORMAT, paused: false, history };
        let args = vec![
            Value::Bytes(self.keyspace().queues()),
            Value::from(name.as_str().to_owned()),
            Value::Bytes(Bytes::from(info.encode())),
        ];
        // An unknown outcome here is settled by the look that follows.
        let created = match self.command(&doing, "HSETNX", args, Route::Key(0)).await {
            Ok(reply) => reply == Reply::Int(1),
            Err(error) if error.kind() == ErrorKind::OutcomeUnknown => false,
            // At maxmemory Redis refuses this of a queue that is there, too, and whoever reads it makes room.
            Err(error) if error.kind() == ErrorKind::OutOfMemory => {
                return self.queue(name).await?.map(|found| (found, false)).ok_or(error);
            }
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
        // MessagePack writes a boolean in one byte.
        let value = if paused { &[0xc3] } else { &[0xc2] };
        let doing = format!("{} queue {name}", if paused { "pause" } else { "resume" });
        self.set(name, "paused", Bytes::from_static(value), doing).await
    }

    /// Sets how many finished timeouts each partition keeps, and deletes what is beyond; answers what was set before, or
    /// `None` when there is no such queue. Consumers look every 10 s: until then they go by the old number.
    ///
    /// # Errors
    /// As [`Store::queues`].
    pub async fn set_history(&self, name: &QueueName, history: u32) -> Result<Option<u32>> {
        let Some(info) = self.queue(name).await? else { return Ok(None) };
        let doing = format!("set the history of queue {name}");
        // Before it counts: who goes by the new number cuts all that is beyond at once.
        self.cut_histories(name, &info, history).await?;
        let mut value = vec![0xce];
        value.extend(history.to_be_bytes());
        let is_there = self.set(name, "history", Bytes::from(value), doing).await?;
        self.cut_histories(name, &info, history).await?;
        Ok(is_there.then_some(info.history))
    }

    /// Deletes what is older than the last `keep`, a thousand at a time.
    async fn cut_histories(&self, name: &QueueName, info: &QueueInfo, keep: u32) -> Result<()> {
        let doing = format!("cut the history of queue {name}");
        for number in 0..info.partitions {
            let key = self.keyspace().partition(name, number).history();
            let mut length = self.length(&key).await?;
            while length > u64::from(keep) {
                length = length.saturating_sub(1_000).max(u64::from(keep));
                let args = vec![Value::Bytes(key.clone()), "MAXLEN".into(), length.to_string().into()];
                self.count(&doing, "XTRIM", args).await?;
            }
            if keep == 0 {
                self.count(&doing, "UNLINK", vec![Value::Bytes(key)]).await?;
            }
        }
        Ok(())
    }

    /// Sets a field of a queue's entry to `value`, MessagePack; answers false when there is no such queue.
    async fn set(&self, name: &QueueName, field: &'static str, value: Bytes, doing: String) -> Result<bool> {
        // A queue of a newer format is refused before anything is written.
        if self.queue(name).await?.is_none() {
            return Ok(false);
        }
        let text = |text: &str| Bytes::copy_from_slice(text.as_bytes());
        let (keys, args) = (vec![self.keyspace().queues()], vec![text(name.as_str()), text(field), value]);
        let reply =
            self.connection().eval(&script::SETTING, keys, args, self.settings().command_deadline).await;
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
