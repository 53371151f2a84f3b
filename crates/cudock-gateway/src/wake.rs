//! Starts an upstream that is scaled to zero, when a request waits for it.

use std::io;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::state::GatewayState;

/// Pause between two runs of the command while nothing comes up; it doubles up to the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// Interval at which it is looked whether requests still wait.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Runs a command while requests wait and no upstream can be reached.
pub(crate) async fn watch(state: Arc<GatewayState>, command: Vec<String>) {
    let is_needed = || state.upstreams.held() > 0 && !state.upstreams.is_any_reachable();
    loop {
        state.upstreams.held_one.notified().await;
        let mut pause = FIRST_PAUSE;
        while is_needed() {
            state.metrics.woken();
            let outcome = run(command.clone()).await.unwrap_or_else(|error| error.to_string());
            state.settings.server.log.event("wake", &[("outcome", &outcome)]);
            let still_down = async {
                while is_needed() {
                    tokio::time::sleep(CHECK_INTERVAL).await;
                }
            };
            let _ = tokio::time::timeout(pause, still_down).await;
            pause = LONGEST_PAUSE.min(pause * 2);
        }
    }
}

/// Runs a command without a shell, and returns how it ended.
async fn run(command: Vec<String>) -> io::Result<String> {
    let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(program);
    // What it prints goes where the log goes.
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::from(io::stderr()));
    let mut child = command.spawn()?;
    let (ended, end) = oneshot::channel();
    // A thread of its own, which a shutdown does not wait for.
    thread::Builder::new().name("wake".to_owned()).spawn(move || {
        let _ = ended.send(child.wait());
    })?;
    end.await.map_err(io::Error::other)?.map(|status| status.to_string())
}
