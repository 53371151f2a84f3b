//! Loads models when requests need them, and unloads them.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use cudock_base::lock;

use super::loader::FirstRequest;
use super::memory;
use super::residency::{Room, Step};
use super::{ModelService, ServedModel, Usage};
use crate::ServeError;
use crate::model::{Model, ModelId};

/// Interval at which the memory of loaded models is measured.
const MEASURE_INTERVAL: Duration = Duration::from_secs(1);

/// Longest interval between two attempts to make room for a model.
const ROOM_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Time for rejected requests to end, before the next step is decided.
const REJECTION_PAUSE: Duration = Duration::from_millis(1);

impl ModelService {
    /// Loads and unloads models as requests need it, until the service is closed.
    pub(super) fn run_loader(&self) {
        let mut measured = Instant::now();
        while !self.closed.load(Ordering::Acquire) {
            if measured.elapsed() >= MEASURE_INTERVAL {
                self.measure();
                measured = Instant::now();
            }
            if let ControlFlow::Break(time) = self.take_step() {
                let next_measurement = measured + MEASURE_INTERVAL;
                self.loader.wait(time.map_or(next_measurement, |time| time.min(next_measurement)));
            }
        }
    }

    /// Carries out the next step. If there is none, returns the time at which there may be one, if it is known.
    fn take_step(&self) -> ControlFlow<Option<Instant>> {
        let _one_at_a_time = lock(&self.loads);
        let step = self.loader.residency().next_step(Instant::now(), &|id| self.usage(id));
        match step {
            Step::Load(id) => {
                if let Some(served) = self.get(&id) {
                    // The reason is logged, and sent to those who wait for it.
                    let _ = self.load_one(served.file());
                }
            }
            Step::Unload(id) => self.unload_one(&id),
            Step::Reject(id) => {
                self.reject_waiting(&id);
                return ControlFlow::Break(Some(Instant::now() + REJECTION_PAUSE));
            }
            Step::Wait(time) => return ControlFlow::Break(time),
        }
        ControlFlow::Continue(())
    }

    fn usage(&self, id: &ModelId) -> Usage {
        let usage = match self.get(id) {
            Some(ServedModel::Known(model)) => Usage { is_stalled: !model.is_ready(), ..model.queue.usage() },
            _ => Usage::default(),
        };
        let waiting_since = [usage.waiting_since, self.loader.first_request(id)].into_iter().flatten().min();
        Usage { waiting_since, ..usage }
    }

    /// Records the memory of all loaded models.
    fn measure(&self) {
        let readings = (self.settings.read_devices)();
        for model in self.known().iter().filter(|model| model.is_resident()) {
            if let Some(bytes) = memory::measure(model, &[], &readings) {
                self.loader.residency().measured(&model.file.id(), bytes);
            }
        }
    }

    /// Unloads other models until there is memory for a model; the model itself, if it cannot be loaded next to itself.
    /// Blocks while the others are in use.
    pub(super) fn make_room(&self, id: &ModelId) -> Result<(), ServeError> {
        loop {
            let room = self.loader.residency().room(id, Instant::now(), &|id| self.usage(id));
            match room {
                Room::Fits => return Ok(()),
                Room::Unload(other) => self.unload_one(&other),
                Room::Later(_) | Room::None if self.get(id).is_some_and(|served| served.is_resident()) => {
                    self.unload_one(id);
                }
                Room::Later(time) => {
                    let left = time.saturating_duration_since(Instant::now());
                    thread::sleep(left.min(ROOM_POLL_INTERVAL));
                }
                Room::None => return self.loader.check(id),
            }
        }
    }

    /// Ends the engines of a model after the requests in its queue. Blocks.
    fn unload_one(&self, id: &ModelId) {
        if let Some(model) = self.get(id).as_ref().and_then(ServedModel::known) {
            model.unload();
            let labels = [("model", model.name()), ("version", model.version())];
            self.settings.server.log.event("model_unloaded", &labels);
        }
        self.loader.residency().unloaded(id);
        // Requests may have arrived meanwhile.
        self.loader.wake();
    }

    /// Sends an error to the requests that wait for a model that cannot be loaded.
    pub(super) fn reject_waiting(&self, id: &ModelId) {
        if let (Err(error), Some(ServedModel::Known(model))) = (self.loader.check(id), self.get(id)) {
            model.queue.fail_all(&error);
        }
        self.loader.announce();
    }

    /// Unloads all versions of a model without blocking the calling thread. Memory is free when this returns.
    pub(crate) async fn unload(self: &Arc<Self>, name: &str) -> Result<(), ServeError> {
        let name = name.to_owned();
        self.run_blocking(move |service| service.unload_blocking(&name)).await
    }

    fn unload_blocking(&self, name: &str) -> Result<(), ServeError> {
        let _one_at_a_time = lock(&self.loads);
        let models = self.all();
        let versions: Vec<_> = models.iter().filter(|served| served.file().name == name).collect();
        if versions.is_empty() {
            return Err(self.no_model(name));
        }
        if versions.iter().any(|served| self.residency(&served.file().id()).is_pinned) {
            return Err(ServeError::KeptLoaded(name.to_owned()));
        }
        for served in versions.iter().filter(|served| served.is_resident()) {
            self.unload_one(&served.file().id());
        }
        Ok(())
    }

    /// Finds a model by name and version. One that was never loaded is loaded.
    pub(crate) async fn model(&self, name: &str, version: Option<&str>) -> Result<Arc<Model>, ServeError> {
        Ok(self.after_first_load(self.find(name, version)?, None).await?.0)
    }

    /// Waits until a model has been loaded once, until the deadline if there is one. The request must keep the second
    /// value until it is finished, so that the model is not unloaded before.
    pub(crate) async fn after_first_load(
        &self,
        served: ServedModel,
        deadline: Option<Instant>,
    ) -> Result<(Arc<Model>, Option<FirstRequest>), ServeError> {
        let file = match served {
            ServedModel::Known(model) => return Ok((model, None)),
            ServedModel::New(file) => file,
        };
        let id = file.id();
        let mut outcomes = self.loader.outcomes();
        let request = self.loader.register(&id)?;
        let loading = async {
            loop {
                match self.get(&id) {
                    Some(ServedModel::Known(model)) => return Ok(model),
                    Some(ServedModel::New(_)) => self.loader.check(&id)?,
                    None => return Err(self.no_model(&id.0)),
                }
                // The sender is part of this service.
                let _ = outcomes.changed().await;
            }
        };
        let model = match deadline {
            None => loading.await,
            Some(deadline) => {
                let waited = tokio::time::timeout_at(deadline.into(), loading).await;
                waited.unwrap_or(Err(ServeError::DeadlineExceeded))
            }
        };
        Ok((model?, Some(request)))
    }
}
