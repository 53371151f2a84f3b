//! Scales upstreams to zero and back by commands of the user.

use std::io;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::state::GatewayState;

/// Pause between two runs of the command while nothing comes up; it doubles up to the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// Interval at which it is looked whether requests wait or arrive.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Runs a command while requests wait and no upstream can be reached.
pub(crate) async fn wake(state: Arc<GatewayState>, command: Vec<String>) {
    let is_needed = || state.upstreams.held() > 0 && !state.upstreams.is_any_reachable();
    loop {
        state.upstreams.held_one.notified().await;
        let mut pause = FIRST_PAUSE;
        while is_needed() {
            state.metrics.woken();
            run(&state, "wake", command.clone()).await;
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

/// Runs a command once whenever no request has been answered, held or in progress for that time.
pub(crate) async fn stop(state: Arc<GatewayState>, command: Vec<String>, idle_after: Duration) {
    let (mut seen, mut idle_since, mut is_stopped) = (0, Instant::now(), false);
    loop {
        tokio::time::sleep(CHECK_INTERVAL).await;
        let upstreams = &state.upstreams;
        let assigned = upstreams.assigned();
        let is_used = upstreams.held() > 0 || upstreams.all.iter().any(|upstream| upstream.outstanding() > 0);
        if is_used || assigned != seen {
            (seen, idle_since, is_stopped) = (assigned, Instant::now(), false);
        } else if !is_stopped && idle_since.elapsed() >= idle_after && upstreams.is_any_reachable() {
            is_stopped = true;
            run(&state, "idle_stop", command.clone()).await;
        }
    }
}

async fn run(state: &GatewayState, event: &str, command: Vec<String>) {
    let outcome = ended(command).await.unwrap_or_else(|error| error.to_string());
    state.settings.server.log.event(event, &[("outcome", &outcome)]);
}

/// Runs a command without a shell, and returns how it ended.
async fn ended(command: Vec<String>) -> io::Result<String> {
    let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(program);
    // What it prints goes where the log goes.
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::from(io::stderr()));
    let mut child = command.spawn()?;
    let (ended, end) = oneshot::channel();
    // A thread of its own, which a shutdown does not wait for.
    thread::Builder::new().name("command".to_owned()).spawn(move || {
        let _ = ended.send(child.wait());
    })?;
    end.await.map_err(io::Error::other)?.map(|status| status.to_string())
}
