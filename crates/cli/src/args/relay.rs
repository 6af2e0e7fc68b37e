//! `overdue relay`

use clap::Args;

use crate::settings::flags::{self, Flags};

const EXAMPLES: &str = "\
Examples:
  overdue relay                     every queue, on the local Redis
  overdue relay --queue orders --queue mails --listen 0.0.0.0:9633
  overdue relay --watch 'session:*=sessions' --watch 'order:*=orders'
                                    keys with a TTL too, whoever wrote them
  overdue relay --redis rediss://redis.internal:6380/ \\
                --user relay --password-file /run/secrets/redis

Any number of relays may run, on any number of hosts; there is no leader.
Without one nothing fires; what became due meanwhile fires when one is back.
Stop it with SIGTERM or Ctrl-C.";

/// All its flags are settings: read them from [`crate::settings::Relay`].
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Relay {
    #[command(flatten)]
    pub(crate) flags: Flags<flags::Relay>,
}
