//! What signs the requests: one secret, or two while the one takes the place of the other.
//!
//! The file is read again when it has changed, so that secrets are rotated without a restart. What is wrong with it then
//! is said once, and the old ones go on.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::alphabet::STANDARD as ALPHABET;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};

/// What a secret begins with.
const PREFIX: &str = "whsec_";
/// The bytes in a secret.
const LENGTH: std::ops::RangeInclusive<usize> = 24..=64;
/// How often the file is looked at.
const LOOK: Duration = Duration::from_secs(1);
/// With or without its padding.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &ALPHABET,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The secrets of a file.
pub(super) struct Secrets {
    file: PathBuf,
    state: Mutex<State>,
}

struct State {
    keys: Vec<Vec<u8>>,
    seen: Version,
    looked: Instant,
}

/// What tells one state of a file from another.
type Version = Option<(i64, i64, u64, u64)>;

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Secrets").field("file", &self.file).finish_non_exhaustive()
    }
}

impl Secrets {
    /// Reads them.
    ///
    /// # Errors
    /// The file can't be read, or holds something else; a sentence that says which line, never what is in it.
    pub(super) fn read(file: PathBuf) -> Result<Self, String> {
        // Before the file: when it changes in between, it is read once too often.
        let seen = version(&file);
        let keys = keys(&file)?;
        Ok(Self { state: Mutex::new(State { keys, seen, looked: Instant::now() }), file })
    }

    /// `webhook-signature`: one signature for each secret.
    pub(super) fn sign(&self, id: &str, seconds: u64, body: &[u8]) -> String {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.looked.elapsed() >= LOOK {
            self.look(&mut state);
        }
        let signatures: Vec<_> = state.keys.iter().map(|key| signature(key, id, seconds, body)).collect();
        signatures.join(" ")
    }

    fn look(&self, state: &mut State) {
        state.looked = Instant::now();
        let seen = version(&self.file);
        if seen == state.seen {
            return;
        }
        state.seen = seen;
        match keys(&self.file) {
            Ok(keys) => {
                tracing::info!(secrets = keys.len(), "read the webhook secrets again");
                state.keys = keys;
            }
            Err(problem) => tracing::warn!("{problem}; the former secrets go on"),
        }
    }
}

fn version(file: &PathBuf) -> Version {
    let version = |data: Metadata| (data.mtime(), data.mtime_nsec(), data.size(), data.ino());
    std::fs::metadata(file).ok().map(version)
}

fn keys(file: &PathBuf) -> Result<Vec<Vec<u8>>, String> {
    let shown = file.display();
    let text = std::fs::read_to_string(file)
        .map_err(|error| format!("cannot read the webhook secrets in {shown}: {error}"))?;
    let lines = text.lines().map(str::trim).enumerate().filter(|(_, line)| !line.is_empty());
    let keys = lines
        .map(|(n, line)| key(line).map_err(|problem| format!("{shown}, line {}: {problem}", n + 1)))
        .collect::<Result<Vec<_>, _>>()?;
    match keys.len() {
        1 | 2 => Ok(keys),
        0 => Err(format!("{shown} is empty: it should hold a line {PREFIX}...")),
        n => Err(format!("{shown} holds {n} secrets: one signs, two while they are rotated")),
    }
}

/// The errors do not repeat the line.
fn key(line: &str) -> Result<Vec<u8>, String> {
    let make = "make one with: echo whsec_$(openssl rand -base64 32)";
    let text = line.strip_prefix(PREFIX).ok_or(format!("a secret begins with {PREFIX}; {make}"))?;
    let key = LENIENT.decode(text).map_err(|_| format!("behind {PREFIX} stands no base64; {make}"))?;
    if LENGTH.contains(&key.len()) {
        return Ok(key);
    }
    Err(format!("a secret has {} to {} bytes, this one {}; {make}", LENGTH.start(), LENGTH.end(), key.len()))
}

fn signature(key: &[u8], id: &str, seconds: u64, body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key of any length will do");
    mac.update(format!("{id}.{seconds}.").as_bytes());
    mac.update(body);
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

/// SHA-256 in hexadecimal.
pub(super) fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// The example that the Standard Webhooks libraries test themselves with.
    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const ID: &str = "msg_p5jXN8AQM9LWM0D4loKWxJek";
    const BODY: &[u8] = br#"{"test": 2432232314}"#;
    const SIGNATURE: &str = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
    const OTHER: &str = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

    fn secrets(text: &str) -> (tempfile::TempDir, Result<Secrets, String>) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secret");
        fs::write(&file, text).unwrap();
        let secrets = Secrets::read(file);
        (folder, secrets)
    }

    #[test]
    fn the_published_example_is_signed_as_published() {
        let (_folder, secrets) = secrets(&format!("{SECRET}\r\n\n"));
        assert_eq!(secrets.unwrap().sign(ID, 1_614_265_330, BODY), SIGNATURE);
    }

    #[test]
    fn during_a_rotation_both_secrets_sign() {
        let (_folder, secrets) = secrets(&format!("{OTHER}\n{SECRET}\n"));
        let secrets = secrets.unwrap();
        let both = secrets.sign(ID, 1_614_265_330, BODY);
        assert!(both.ends_with(&format!(" {SIGNATURE}")) && both.matches("v1,").count() == 2, "{both}");
        assert!(!format!("{secrets:?}").contains("MfKQ"));
    }

    #[test]
    fn a_file_that_changed_is_read_again_and_a_bad_one_changes_nothing() {
        let (folder, secrets) = secrets(OTHER);
        let secrets = secrets.unwrap();
        let sign = |text: &str| {
            // As an orchestrator does it: another file takes the name.
            fs::write(folder.path().join("new"), text).unwrap();
            fs::rename(folder.path().join("new"), folder.path().join("secret")).unwrap();
            secrets.look(&mut secrets.state.lock().unwrap());
            secrets.sign(ID, 1_614_265_330, BODY)
        };
        assert_eq!(sign(SECRET), SIGNATURE);
        assert_eq!(sign("whsec_nothing to see"), SIGNATURE);
        assert_ne!(sign(OTHER), SIGNATURE);
    }

    #[test]
    fn what_is_no_secret_is_named_and_never_shown() {
        for (text, why) in [
            ("\n", "is empty"),
            ("c2VjcmV0", "line 1: a secret begins with whsec_"),
            ("whsec_?????", "line 1: behind whsec_ stands no base64"),
            ("whsec_c2VjcmV0", "line 1: a secret has 24 to 64 bytes, this one 6"),
            (&format!("{SECRET}\n{SECRET}\n{SECRET}"), "holds 3 secrets"),
        ] {
            let error = secrets(text).1.unwrap_err();
            assert!(error.contains(why), "{error}");
            assert!(
                !error.contains("c2VjcmV0") && !error.contains("MfKQ") && !error.contains("???"),
                "{error}"
            );
        }
        assert!(Secrets::read("/no/such".into()).unwrap_err().starts_with("cannot read the webhook secrets"));
    }
}
