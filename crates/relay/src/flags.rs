//! The server's `notify-keyspace-events`. It is per node, and lost at a restart: it is looked at again
//! after each reconnect and every few seconds.

use overdue_store::{Result, Store};
use overdue_telemetry::{Health, Metric};

use crate::settings::KeyspaceEvents;

const SETTING: &str = "notify-keyspace-events";
/// Events by key event channel, and expirations.
const NEEDED: &str = "Ex";
/// Stands for every class of events.
const ALL_CLASSES: char = 'A';

/// What was found last, so that each finding is said once.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Finding {
    Good,
    Missing(String),
    Untold,
}

/// Looks after the flags.
pub(crate) struct Flags {
    store: Store,
    mode: KeyspaceEvents,
    health: Health,
    last: Option<Finding>,
}

impl Flags {
    pub(crate) fn new(store: Store, mode: KeyspaceEvents, health: Health) -> Self {
        Self { store, mode, health, last: None }
    }

    /// Looks once; adds what is missing if it may.
    ///
    /// # Errors
    /// Redis did not answer. A refusal is no error: managed servers do not tell, and sweeps carry on alone.
    pub(crate) async fn look(&mut self) -> Result<()> {
        if self.mode == KeyspaceEvents::Ignore {
            return Ok(());
        }
        let finding = match self.store.config_get(SETTING).await? {
            None => Finding::Untold,
            Some(flags) => match missing(&flags) {
                None => Finding::Good,
                Some(missing) if self.mode == KeyspaceEvents::Add => self.add(&flags, missing).await?,
                Some(missing) => Finding::Missing(missing),
            },
        };
        self.say(finding);
        Ok(())
    }

    async fn add(&self, before: &str, missing: String) -> Result<Finding> {
        let after = format!("{before}{missing}");
        if !self.store.config_set(SETTING, &after).await? {
            return Ok(Finding::Missing(missing));
        }
        tracing::info!(before, after, "{SETTING}: added the flags that were missing");
        Ok(Finding::Good)
    }

    fn say(&mut self, finding: Finding) {
        if self.last.as_ref() == Some(&finding) {
            return;
        }
        let (value, why) = match &finding {
            Finding::Good => (1.0, None),
            Finding::Missing(missing) => (
                0.0,
                Some(format!(
                    "{SETTING} lacks {missing}: sweeps carry on alone; run CONFIG SET, or keyspace_events = \"add\""
                )),
            ),
            Finding::Untold => (
                -1.0,
                Some(format!(
                    "the server does not tell its {SETTING}: set it to include {NEEDED} where the server is managed"
                )),
            ),
        };
        Metric::KeyspaceEventsOk.set(value, &[]);
        if let Some(why) = &why {
            tracing::warn!("{why}");
        }
        self.health.set_degraded("notifications", why);
        self.last = Some(finding);
    }
}

/// The needed flags that `flags` lacks.
fn missing(flags: &str) -> Option<String> {
    let has = |flag: char| flags.contains(flag) || flag != 'E' && flags.contains(ALL_CLASSES);
    let missing: String = NEEDED.chars().filter(|&flag| !has(flag)).collect();
    (!missing.is_empty()).then_some(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_missing_is_added() {
        for (flags, lacks) in [
            ("", Some("Ex")),
            ("E", Some("x")),
            ("Kx", Some("E")),
            ("AKE", None),
            ("xE", None),
            ("AK", Some("E")),
            ("Eg$", Some("x")),
        ] {
            assert_eq!(missing(flags).as_deref(), lacks, "{flags:?}");
        }
    }
}
