//! Where containers run as processes: a server, programs, and other addresses than theirs.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use overdue_sandbox::free_port;
use overdue_tests::{Redis, Terminal};
use tempfile::TempDir;

/// A server, a folder, and what takes the place of what.
pub(super) struct Place {
    pub(super) terminal: Terminal,
    folder: TempDir,
    replaced: Vec<(String, String)>,
}

impl Place {
    /// Containers that call their server `redis:6379` talk to `redis`.
    pub(super) fn at(redis: &Redis) -> Self {
        let replaced = vec![
            ("redis:6379".to_owned(), format!("127.0.0.1:{}", redis.port())),
            ("-h redis ".to_owned(), "-h 127.0.0.1 ".to_owned()),
        ];
        Self { terminal: Terminal::at(redis), folder: tempfile::tempdir().unwrap(), replaced }
    }

    /// Its folder, which goes with it.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// From now on `there` is `here`.
    pub(super) fn put(&mut self, there: &str, here: impl Into<String>) {
        self.replaced.retain(|(replaced, _)| replaced != there);
        self.replaced.push((there.to_owned(), here.into()));
    }

    /// From now on what listens everywhere at `port` listens at the address that this gives.
    pub(super) fn listen(&mut self, port: u16) -> SocketAddr {
        let addr = SocketAddr::from(([127, 0, 0, 1], free_port()));
        self.put(&format!("0.0.0.0:{port}"), addr.to_string());
        addr
    }

    /// `text` with all that is other here.
    pub(super) fn replace(&self, text: &str) -> String {
        self.replaced.iter().fold(text.to_owned(), |text, (there, here)| text.replace(there, here))
    }

    /// A copy of a file or folder of ours, with all that is other here.
    pub(super) fn bring(&self, source: &Path) -> PathBuf {
        // Each copy has a place of its own: addresses may have been replaced meanwhile.
        let folder = tempfile::tempdir_in(self.folder.path()).unwrap().keep();
        let to = folder.join(source.file_name().unwrap());
        self.copy(source, &to);
        to
    }

    fn copy(&self, from: &Path, to: &Path) {
        if from.is_dir() {
            fs::create_dir_all(to).unwrap();
            for entry in fs::read_dir(from).unwrap() {
                let entry = entry.unwrap();
                self.copy(&entry.path(), &to.join(entry.file_name()));
            }
            return;
        }
        let text = fs::read_to_string(from).unwrap_or_else(|error| panic!("{}: {error}", from.display()));
        fs::write(to, self.replace(&text)).unwrap();
        let mode = fs::metadata(from).unwrap().permissions().mode();
        fs::set_permissions(to, fs::Permissions::from_mode(mode)).unwrap();
    }
}
