//! The scripts under test: those of this program, or those of a folder like `lua/`.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use bytes::Bytes;
use overdue_protocol::{Script, script};
use overdue_sandbox::Connection;

use crate::exit::{Exit, Failure};
use crate::stage::wire;

/// The digest of each script that the server was given, by its name.
pub(super) type Digests = HashMap<&'static str, Bytes>;

/// Gives the server all scripts, from `folder` when there is one. Each has the parts before it that ours has.
pub(super) fn load(redis: &mut Connection, folder: Option<&Path>) -> Result<Digests, Failure> {
    let mut digests = Digests::new();
    for script in script::ALL {
        let text = folder.map_or_else(|| Ok(script.text.to_owned()), |folder| read(folder, script))?;
        let loaded = wire::load(redis, &text).map_err(|error| {
            Failure::new(Exit::Redis, format!("cannot load the script {}: {error}", script.name))
        })?;
        digests.insert(script.name, loaded);
    }
    Ok(digests)
}

/// A script of `folder`, with its parts.
fn read(folder: &Path, script: &Script) -> Result<String, Failure> {
    let parts = script.parts.iter().map(|part| folder.join("lib").join(part));
    let files = parts.chain([folder.join(script.name)]).map(|file| file.with_extension("lua"));
    files
        .map(|file| {
            fs::read_to_string(&file).map_err(|error| {
                let what = format!("cannot read {}: {error}: --lua names a folder like lua/", file.display());
                Failure::new(Exit::Usage, what)
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_holds_the_same_files_gives_the_same_texts() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lua");
        for script in script::ALL {
            assert_eq!(read(&folder, script).unwrap(), script.text, "{}", script.name);
        }
        let error = read(Path::new("/nowhere"), &script::SWEEP).unwrap_err();
        assert!(error.lines().any(|line| line.contains("/nowhere/lib/clock.lua")), "{error:?}");
    }
}
