//! What all threads of a server share.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Notify, watch};

use crate::connection::drain::DrainSignal;
use crate::connection::monitor::ConnectionMonitor;
use crate::connection::tls::Tls;
use crate::handler::Handler;
use crate::limits::memory::Budget;
use crate::settings::ServerSettings;

/// How long to wait for an evicted connection before another one is evicted.
const EVICT_INTERVAL: Duration = Duration::from_millis(20);

pub(crate) struct ServerShared<H> {
    pub(crate) handler: H,
    pub(crate) settings: ServerSettings,
    pub(crate) drain: DrainSignal,
    pub(crate) budget: Arc<Budget>,
    pub(crate) tls: Option<Tls>,
    pub(crate) ending: watch::Receiver<bool>,
    pub(crate) connections: AtomicUsize,
    /// Notified when a connection has ended.
    pub(crate) ended: Notify,
    pub(crate) monitors: Vec<ConnectionMonitor>,
    /// The lowest file descriptor that connections may not use.
    pub(crate) first_reserved: i32,
}

impl<H: Handler> ServerShared<H> {
    /// Reloads keys and certificates if they have changed. The previous ones stay if the new ones cannot be used.
    pub(crate) fn refresh_credentials(&self) {
        let settings = &self.settings;
        let report = |what: &str, outcome: Result<bool, String>| match outcome {
            Ok(false) => {}
            Ok(true) => settings.log.event(&format!("{what}_reloaded"), &[]),
            Err(error) => settings.log.event(&format!("{what}_not_reloaded"), &[("error", &error)]),
        };
        report("keys", settings.keys.refresh().map_err(|error| error.to_string()));
        if let Some(tls) = &self.tls {
            report("certificate", tls.refresh().map_err(|error| error.to_string()));
        }
    }

    /// Waits until another connection can be accepted, closing the one that has been idle longest.
    pub(crate) async fn make_room(&self) {
        let before = self.connections.load(Ordering::Acquire);
        loop {
            let ended = self.ended.notified();
            ConnectionMonitor::evict_oldest(&self.monitors);
            // Another connection may have become idle meanwhile.
            let _ = tokio::time::timeout(EVICT_INTERVAL, ended).await;
            if self.connections.load(Ordering::Acquire) < before.max(1) {
                return;
            }
        }
    }
}
