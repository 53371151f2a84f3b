//! An engine that is loaded and warmed up.

use cudock_engine::{Engine, Lane};

use super::health::ModelHealth;

pub(crate) struct WarmEngine {
    pub(super) engine: Box<dyn Engine>,
    pub(super) lanes: Vec<Box<dyn Lane>>,
}

impl WarmEngine {
    /// Reports that it is about to run.
    pub(crate) fn report(&self, health: &ModelHealth) {
        health.engine_started(self.engine.device(), self.engine.process());
    }

    /// Whether its process is running, if it has one of its own.
    pub(super) fn is_running(&self) -> bool {
        self.engine.exit_check().is_none_or(|has_exited| !has_exited())
    }
}
