//! One consumer with its handler.

use std::io;
use std::pin::Pin;
use std::time::Duration;

use overdue_consumer::{Backoff, Consumer, Handler, Raw, Report};
use overdue_handlers::{Exec, Groups, PATIENCE, Pipe, Webhook, WebhookOptions};
use tokio::sync::mpsc;

use crate::exit::{Exit, Failure};
use crate::handler::print::Print;
use crate::service::Service;
use crate::settings::Settings;
use crate::settings::consumer::{ConsumerRule, HandlerRule};

/// How much longer than a command's own last deadline the consumer waits for it.
const MARGIN: Duration = Duration::from_secs(2);

/// How a consumer ended.
pub(super) type Consumed = Result<Report, Failure>;
/// A consumer that runs once this is awaited.
pub(super) type Consuming = Pin<Box<dyn Future<Output = Consumed> + Send>>;

/// What all consumers of the process share.
pub(super) struct Desk<'a> {
    pub(super) settings: &'a Settings,
    pub(super) service: &'a Service,
    pub(super) groups: &'a Groups,
    pub(super) json: bool,
    /// Whether there may be several: their errors say whose they are.
    pub(super) named: bool,
    /// Told when stdout can't be written to.
    pub(super) broken: mpsc::UnboundedSender<io::Error>,
}

impl Desk<'_> {
    /// Makes the handler, and puts the consumer on its mark.
    ///
    /// # Errors
    /// The handler can't work as it is set up.
    pub(super) fn begin(&self, rule: &ConsumerRule) -> Result<Consuming, Failure> {
        let wrong = |problem: String| {
            let whose = format!("consumer {} of queue {}: ", rule.group, rule.queue);
            Failure::new(Exit::Usage, if self.named { whose + &problem } else { problem })
        };
        let consumer = self.consumer(rule);
        let (limit, stop, grace) = (rule.limit, self.service.stop.clone(), self.settings.consume.grace);
        // A handler of commands ends them by itself, at the limit and at the end of the grace; what it hands back then
        // does not run any more.
        let patient = grace + PATIENCE + MARGIN;
        match &rule.handler {
            HandlerRule::Webhook { url, secret_file } => {
                let consume = &self.settings.consume;
                let options = WebhookOptions {
                    secret_file: secret_file.clone(),
                    ca_file: consume.webhook_ca_file.clone(),
                    limit,
                    connections: consume.webhook_connections,
                };
                Ok(self.serve(consumer.grace(grace), Webhook::new(url, options).map_err(wrong)?))
            }
            HandlerRule::Exec(command) => {
                let handler = Exec::new(command.clone(), limit, stop, grace, self.groups);
                Ok(self.serve(consumer.grace(patient), handler.map_err(wrong)?))
            }
            HandlerRule::Pipe(command) => {
                let handler = Pipe::new(command.clone(), limit, stop, grace, self.groups);
                Ok(self.serve(consumer.grace(patient), handler.map_err(wrong)?))
            }
            HandlerRule::Print => {
                let consumer = limit.into_iter().fold(consumer.grace(grace), Consumer::limit);
                Ok(self.serve(consumer, self.print()?))
            }
        }
    }

    fn print(&self) -> Result<Print, Failure> {
        let (handler, why) = Print::start(self.json, io::stdout())
            .map_err(|error| Failure::new(Exit::Usage, format!("cannot start threads: {error}")))?;
        let broken = self.broken.clone();
        tokio::spawn(async move {
            // Nobody is left to tell when the process ends.
            if let Ok(error) = why.await {
                let _ = broken.send(error);
            }
        });
        Ok(handler)
    }

    fn consumer(&self, rule: &ConsumerRule) -> Consumer<Raw> {
        Consumer::builder(self.settings.redis.clone(), rule.queue.as_str(), rule.group.as_str())
            .from(rule.from)
            .concurrency(rule.concurrency)
            .lease(rule.lease)
            .attempts(rule.attempts)
            .policy(Backoff { first: rule.retry_wait, most: rule.retry_wait_max })
            .probe(self.settings.consume.probe_max)
            .health(self.service.health.clone())
    }

    fn serve(&self, consumer: Consumer<Raw>, handler: impl Handler<Raw>) -> Consuming {
        let stop = self.service.stop.clone().cancelled_owned();
        Box::pin(async move { consumer.serve(handler, stop).await.map_err(Failure::from) })
    }
}
