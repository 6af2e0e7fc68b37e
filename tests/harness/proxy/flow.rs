//! What the proxy does with each connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::{Mode, Shared};

pub(super) async fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    loop {
        let Ok((client, _)) = listener.accept().await else { continue };
        if shared.refusing.load(Ordering::SeqCst) {
            continue;
        }
        shared.accepted.fetch_add(1, Ordering::SeqCst);
        let shared = Arc::clone(shared);
        tokio::spawn(async move {
            shared.open.fetch_add(1, Ordering::SeqCst);
            carry(client, &shared).await;
            shared.open.fetch_sub(1, Ordering::SeqCst);
        });
    }
}

/// One connection, until both directions have ended or it is cut.
async fn carry(mut client: TcpStream, shared: &Shared) {
    let mut cuts = shared.cuts.subscribe();
    let target = *shared.target.lock().expect("no holder panics");
    let Ok(mut server) = TcpStream::connect(target).await else { return };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let chosen = AtomicU64::new(0);
    let (from_client, to_client) = client.split();
    let (from_server, to_server) = server.split();
    let up =
        Flow { mode: shared.up.subscribe(), bytes: &shared.bytes_up, shared, chosen: &chosen, upward: true };
    let down = Flow {
        mode: shared.down.subscribe(),
        bytes: &shared.bytes_down,
        shared,
        chosen: &chosen,
        upward: false,
    };
    tokio::select! {
        _ = cuts.changed() => {}
        // An error is a cut; a plain end waits for the other direction.
        _ = async { tokio::try_join!(up.pump(from_client, to_server), down.pump(from_server, to_client)) } => {}
    }
}

struct Flow<'a> {
    mode: watch::Receiver<Mode>,
    bytes: &'a AtomicU64,
    shared: &'a Shared,
    /// For which call of [`Proxy::only`] the connection was chosen; 0 for none.
    chosen: &'a AtomicU64,
    upward: bool,
}

/// The connection is over.
struct Over;

impl Flow<'_> {
    async fn pump(
        mut self,
        mut from: impl AsyncReadExt + Unpin,
        mut to: impl AsyncWriteExt + Unpin,
    ) -> Result<(), Over> {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let n = from.read(&mut buffer).await.map_err(|_| Over)?;
            self.choose(&buffer[..n]);
            let mode = self.next_mode().await;
            match mode {
                Mode::Cut if n > 0 => return Err(Over),
                Mode::Drop => {
                    self.shared.dropped.fetch_add(n as u64, Ordering::SeqCst);
                }
                Mode::Delay(time) => tokio::time::sleep(time).await,
                Mode::Pass | Mode::Hold | Mode::Cut => {}
            }
            if n == 0 {
                return to.shutdown().await.map_err(|_| Over);
            }
            if mode != Mode::Drop {
                // Counted first: who has the bytes finds them counted.
                self.bytes.fetch_add(n as u64, Ordering::SeqCst);
                to.write_all(&buffer[..n]).await.map_err(|_| Over)?;
            }
        }
    }

    /// Looks whether the client sends what [`Proxy::only`] asks for.
    fn choose(&self, bytes: &[u8]) {
        let only = self.shared.only.lock().expect("no holder panics");
        if let Some((call, text)) = only.as_ref().filter(|_| self.upward)
            && bytes.windows(text.len()).any(|window| window == text)
        {
            self.chosen.store(*call, Ordering::SeqCst);
        }
    }

    fn is_meant(&self) -> bool {
        let only = self.shared.only.lock().expect("no holder panics");
        only.as_ref().is_none_or(|(call, _)| self.chosen.load(Ordering::SeqCst) == *call)
    }

    /// The mode for this connection; returns when it is not [`Mode::Hold`].
    async fn next_mode(&mut self) -> Mode {
        loop {
            let mode = *self.mode.borrow_and_update();
            if !self.is_meant() {
                return Mode::Pass;
            }
            if mode != Mode::Hold {
                return mode;
            }
            if self.mode.changed().await.is_err() {
                return Mode::Cut;
            }
        }
    }
}
