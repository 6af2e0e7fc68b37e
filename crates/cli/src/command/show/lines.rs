//! What was found, for people.

use super::sight::{Body, Where};
use crate::output::text;

/// The first line of a place.
pub(super) fn head(place: &Where, body: &Body, now_ms: u64) -> Vec<String> {
    let at = |ms: u64| format!("{} ({})", text::time(ms), text::distance(ms, now_ms));
    let due_ms = body.due_ms.unwrap_or(0);
    let due = if body.due_ms.is_some_and(|due_ms| due_ms <= now_ms) {
        "; due, and not fired yet: is a relay running?"
    } else {
        ""
    };
    let mut more = Vec::new();
    let (name, words) = match place {
        Where::Armed => ("armed", format!("fires {}{due}", at(due_ms))),
        Where::Watched => ("watched", format!("ends {}{due}", at(due_ms))),
        Where::Unread { group: None, .. } => ("unread", "no group reads this queue".to_owned()),
        Where::Unread { group: Some(group), group_is_there: true, .. } => {
            ("unread", format!("{group} was not given it yet"))
        }
        Where::Unread { group: Some(group), .. } => {
            ("unread", format!("it is addressed to group {group}, which is gone"))
        }
        Where::Held { group, by, idle_ms, begun_alone, .. } => {
            if *begun_alone > 0 {
                more.push((
                    "alone",
                    format!("begun {begun_alone} times with nothing beside it: its holders died"),
                ));
            }
            (
                "held",
                format!("by {by} for {group}; taken, or its lease renewed, {} ago", text::span(*idle_ms)),
            )
        }
        Where::Finished { group, .. } => {
            ("finished", format!("by {group}; the entry is there for other groups"))
        }
        Where::Waiting { group, not_before_ms, .. } => {
            ("waiting", format!("for {group}: not before {}", at(*not_before_ms)))
        }
        Where::Dead { letter, group, reason, detail, buried_ms, by, .. } => {
            more.extend(reason.as_ref().map(|reason| ("reason", reason.clone())));
            more.extend(
                detail.as_ref().filter(|text| !text.is_empty()).map(|detail| ("detail", detail.clone())),
            );
            more.extend(by.as_ref().map(|by| ("by", by.clone())));
            let group = group.as_deref().unwrap_or("?");
            ("dead", format!("letter {letter} of {group}, buried {}", at(*buried_ms)))
        }
        Where::Done { group, done_ms, by, .. } => {
            let [group, by] = [group, by].map(|name| name.as_deref().unwrap_or("?"));
            ("done", format!("by {by} for {group} {}", at(*done_ms)))
        }
    };
    let mut lines = text::field::<11>(name, &words);
    lines.extend(more.iter().flat_map(|(name, value)| text::field::<11>(name, value)));
    lines
}

/// The lines of what is known of the timeout there, whatever the places; the payload last.
pub(super) fn body(body: &Body, is_ahead: bool, entry: Option<&str>) -> Vec<String> {
    let number = |n: Option<u64>| n.map(|n| n.to_string());
    let due = body.due.clone().filter(|_| !is_ahead);
    let fields = [
        ("generation", number(body.generation)),
        ("key", body.key.clone()),
        ("attempt", number(body.attempt)),
        ("due", due),
        ("fired", body.fired.clone()),
        ("source", body.source.clone()),
        ("entry", entry.map(str::to_owned)),
        ("flaw", body.flaw.clone()),
        ("trace", body.trace.clone()),
    ];
    let fields = fields.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let mut lines: Vec<_> = fields
        .chain(body.watched.lines())
        .flat_map(|(name, value)| text::field::<11>(name, &value))
        .collect();
    if let Some(payload) = &body.raw {
        let encoding = body.encoding.as_deref().unwrap_or("raw");
        lines.extend(text::field::<11>("payload", &format!("{} bytes, {encoding}", payload.len())));
        lines.extend(Some(text::payload(payload, usize::MAX)).filter(|shown| !shown.is_empty()));
    }
    lines
}
