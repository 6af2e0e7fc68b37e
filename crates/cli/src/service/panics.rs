//! A panic anywhere is one line in the log, and the end of the process: a task that died would not be missed
//! by anybody.

use std::panic::PanicHookInfo;

use tokio_util::sync::CancellationToken;

/// Cancelled by the first panic from now on.
pub(super) fn watch() -> CancellationToken {
    let panicked = CancellationToken::new();
    let token = panicked.clone();
    std::panic::set_hook(Box::new(move |info| {
        let location = info.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(location, "panic: {}", text(info));
        token.cancel();
    }));
    panicked
}

fn text<'a>(info: &'a PanicHookInfo<'_>) -> &'a str {
    let payload = info.payload();
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("(no text)")
}
