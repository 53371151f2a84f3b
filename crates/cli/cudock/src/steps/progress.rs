//! Shows the progress of downloads on standard error.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use cudock_http::Progress;

use cudock_base::text::format::fixed_bytes;

use crate::output::{redraw, redraws, status};

/// One line that is redrawn on a terminal; elsewhere one line per layer or file.
#[derive(Default)]
pub(crate) struct Lines {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    transfers: BTreeMap<String, (u64, Option<u64>)>,
    drawn: Option<Instant>,
}

impl State {
    fn draw(&mut self, now: bool) {
        if !redraws() {
            return;
        }
        if !now && self.drawn.is_some_and(|drawn| drawn.elapsed() < Duration::from_millis(100)) {
            return;
        }
        self.drawn = Some(Instant::now());
        let fetched: u64 = self.transfers.values().map(|(bytes, _)| bytes).sum();
        let total: u64 = self.transfers.values().map(|(bytes, size)| size.unwrap_or(*bytes)).sum();
        redraw(&format!("fetched {} of {}", fixed_bytes(fetched), fixed_bytes(total)));
    }
}

impl Progress for Lines {
    fn started(&self, what: &str, size: Option<u64>, already: u64) {
        if let Ok(mut state) = self.state.lock() {
            state.transfers.insert(what.to_owned(), (already, size));
            state.draw(true);
        }
    }

    fn at(&self, what: &str, bytes: u64) {
        if let Ok(mut state) = self.state.lock() {
            if let Some((fetched, _)) = state.transfers.get_mut(what) {
                *fetched = bytes;
            }
            state.draw(false);
        }
    }

    fn waiting(&self, what: &str) {
        status(format!("waiting for another cudock process that fetches {}", short(what)));
    }

    fn retrying(&self, _what: &str, reason: &str, wait: Duration) {
        status(format!("{reason}; retrying in {:.1} s", wait.as_secs_f64()));
    }

    fn finished(&self, what: &str) {
        if let Ok(mut state) = self.state.lock() {
            state.draw(true);
            let unfinished =
                state.transfers.values().any(|(bytes, size)| size.is_some_and(|size| *bytes < size));
            if redraws() {
                if !unfinished {
                    status("");
                }
            } else {
                let size = state.transfers.get(what).map_or(0, |(bytes, _)| *bytes);
                status(format!("fetched {} ({})", short(what), fixed_bytes(size)));
            }
        }
    }
}

/// The first digits of a digest; other names are not shortened.
fn short(what: &str) -> &str {
    if what.starts_with("sha") { what.get(..19).unwrap_or(what) } else { what }
}
