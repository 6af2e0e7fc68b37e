//! Bytes and times as text.

use std::cmp::Ordering;
use std::time::{Duration, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
pub(crate) use overdue_handlers::{IdText, PayloadText};
use overdue_protocol::TimerId;

/// How many bytes people see of a name that is longer than any id.
const SHOWN: usize = 64;

/// `bytes` on one line of a terminal: control characters, backslashes and what is not UTF-8 stand as
/// `\n`, `\\` or `\xff`.
pub(crate) fn printable(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\\' => text.push_str("\\\\"),
                c if c.is_control() => text.extend(c.escape_default()),
                c => text.push(c),
            }
        }
        for byte in chunk.invalid() {
            text += &format!("\\x{byte:02x}");
        }
    }
    text
}

/// An id for people, on one line. The name of a watched key may be longer than any id: it is cut.
pub(crate) fn id(bytes: &[u8]) -> String {
    if bytes.len() <= TimerId::MAX_BYTES {
        return printable(bytes);
    }
    let begin = printable(&bytes[..SHOWN]);
    format!("{begin}... ({} bytes)", bytes.len())
}

/// Unix milliseconds as `2026-01-01T00:00:00.000Z`; as digits when the year would have five.
pub(crate) fn time(unix_ms: u64) -> String {
    const YEAR_10000: u64 = 253_402_300_800_000;
    if unix_ms >= YEAR_10000 {
        return unix_ms.to_string();
    }
    humantime::format_rfc3339_millis(UNIX_EPOCH + Duration::from_millis(unix_ms)).to_string()
}

/// How far `unix_ms` lies from `now_ms`: `in 15m`, `1s 250ms ago`, `now`.
pub(crate) fn distance(unix_ms: u64, now_ms: u64) -> String {
    let span = span(unix_ms.abs_diff(now_ms));
    match unix_ms.cmp(&now_ms) {
        Ordering::Equal => "now".to_owned(),
        Ordering::Greater => format!("in {span}"),
        Ordering::Less => format!("{span} ago"),
    }
}

/// A length of time, rounded, in its two largest units: `2days 3h`, `14m 59s`, `1s 250ms`.
pub(crate) fn span(ms: u64) -> String {
    let unit = match ms {
        ..10_000 => 1,
        10_000..86_400_000 => 1_000,
        _ => 3_600_000,
    };
    let rounded = Duration::from_millis((ms + unit / 2) / unit * unit);
    humantime::format_duration(rounded).to_string().split(' ').take(2).collect::<Vec<_>>().join(" ")
}

/// A payload for people: as [`printable`] text, or in base64 when it is not UTF-8; cut to `most` characters.
pub(crate) fn payload(bytes: &[u8], most: usize) -> String {
    let text = match std::str::from_utf8(bytes) {
        Ok(_) => printable(bytes),
        Err(_) => format!("base64 {}", STANDARD.encode(bytes)),
    };
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}... ({} bytes)", &text[..end], bytes.len()),
        None => text,
    }
}

/// A named value: its name in `W` columns before its first line, the other lines below that.
pub(crate) fn field<const W: usize>(name: &str, value: &str) -> Vec<String> {
    let names = std::iter::once(printable(name.as_bytes())).chain(std::iter::repeat(String::new()));
    let line = |(name, line): (String, &str)| format!("{name:<W$} {}", printable(line.as_bytes()));
    names.zip(value.lines()).map(line).collect()
}

/// A number for people: `1,234,567`.
pub(crate) fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_words() {
        for (at, text) in [
            (1_000_000, "now"),
            (1_000_250, "in 250ms"),
            (1_899_999, "in 15m"),
            (1_899_000, "in 14m 59s"),
            (998_750, "1s 250ms ago"),
            (1_000_000 + 3 * 86_400_000 + 7_261_000, "in 3days 2h"),
            (1_000_000 + 2 * 86_400_000 - 9, "in 2days"),
        ] {
            assert_eq!(distance(at, 1_000_000), text);
        }
    }

    #[test]
    fn payloads_are_text_or_base64() {
        assert_eq!(payload(b"a\nb", 100), "a\\nb");
        assert_eq!(payload(b"\xff\x00", 100), "base64 /wA=");
        assert_eq!(payload("ééé".as_bytes(), 2), "éé... (6 bytes)");
        assert_eq!(payload(b"", 2), "");
    }

    #[test]
    fn ids_of_any_bytes_stay_on_one_line() {
        for (bytes, text) in [
            (&b"order-1"[..], "order-1"),
            (b"a\nb\x1b[31m\x00", "a\\nb\\u{1b}[31m\\u{0}"),
            (b"\xff\xfea\\", "\\xff\\xfea\\\\"),
            ("été".as_bytes(), "été"),
        ] {
            assert_eq!(printable(bytes), text);
        }
    }

    #[test]
    fn a_name_longer_than_any_id_is_cut() {
        assert_eq!(id(&[b'x'; 512]).len(), 512);
        assert_eq!(id(&[0xff; 65_536]), "\\xff".repeat(64) + "... (65536 bytes)");
    }

    #[test]
    fn numbers_are_grouped_by_thousands() {
        let counts = [0, 999, 1_000, 1_234_567].map(count);
        assert_eq!(counts, ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn times_are_utc() {
        assert_eq!(time(1_767_225_600_123), "2026-01-01T00:00:00.123Z");
        assert_eq!(time(u64::MAX), "18446744073709551615");
    }
}
