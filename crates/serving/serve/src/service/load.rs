//! Loads, reloads and retires models.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::Instant;

use cudock_base::lock;
use cudock_base::text::error_chain;

use super::load_error::{LoadError, LoadFailure};
use super::memory;
use super::residency::{Memory, Policy};
use super::{ModelService, ServedModel};
use crate::ServeError;
use crate::model::{self, FileStamps, Model, ModelFile, RepositoryError};
use crate::settings::{ModelSettings, ModelSource};

impl ModelService {
    /// Loads all models, except those that are loaded on demand. A model that cannot be loaded is recorded and the
    /// others are loaded nevertheless; an error if none can be loaded.
    pub(crate) fn load(self: &Arc<Self>) -> Result<(), LoadError> {
        let found = self.scan()?;
        if let (true, ModelSource::Directory(path)) = (found.is_empty(), &self.settings.models) {
            return Err(RepositoryError::Empty { path: path.clone() }.into());
        }
        let one_at_a_time = lock(&self.loads);
        for file in &found {
            // The reason is recorded for `/health`, and used below.
            let _ = self.register(file);
        }
        for file in found.iter().filter(|file| self.is_loaded_at_start(file)) {
            let _ = self.load_one(file);
        }
        drop(one_at_a_time);
        self.loading.store(false, Ordering::Release);
        if self.all().is_empty() {
            let reasons: Vec<String> = self.failures().into_iter().map(|failure| failure.reason).collect();
            let reasons = reasons.join("\n");
            let is_gpu_missing = lock(&self.failures).values().any(|failure| failure.is_gpu_missing);
            return Err(if is_gpu_missing { LoadError::NoGpu(reasons) } else { LoadError::None(reasons) });
        }
        let service = Arc::clone(self);
        let thread = thread::Builder::new().name("loader".to_owned()).spawn(move || service.run_loader());
        thread.map(drop).map_err(|error| LoadError::None(format!("cannot start a thread: {error}")))
    }

    /// Finds the models. What cannot be read is logged and skipped.
    fn scan(&self) -> Result<Vec<ModelFile>, RepositoryError> {
        let found = model::find_models(&self.settings.models)?;
        for error in &found.unreadable {
            self.settings.server.log.event("models_not_read", &[("error", &error_chain(error))]);
        }
        Ok(found.models)
    }

    /// Reads the settings of a model and records when it is loaded. One that is loaded on demand is served from now on.
    fn register(&self, file: &ModelFile) -> Result<ModelSettings, ServeError> {
        let id = file.id();
        let settings = (self.settings.model_settings)(&file.path, file.settings_file().as_deref());
        let estimate = match &settings {
            Ok(settings) if self.settings.model_memory.is_some() => memory::estimate(&file.path, settings),
            _ => Memory::Estimated { least: 0, likely: 0 },
        };
        // One that is loaded keeps the policy under which it was, until its settings are valid again.
        if settings.is_ok() || !self.residency(&id).is_loaded {
            let policy = self.policy(file, settings.as_ref().ok());
            self.loader.residency().insert(id.clone(), policy, estimate);
        }
        if self.settings.on_demand && self.get(&id).is_none() {
            self.swap(|_| false, Some(ServedModel::New(Arc::new(file.clone()))));
        }
        settings.map_err(|reason| {
            self.record_failure(file, &reason, false);
            ServeError::NotReady { name: file.name.clone(), reason }
        })
    }

    /// When a model is loaded and unloaded; a request for one with invalid settings gets the error as that of its load.
    fn policy(&self, file: &ModelFile, settings: Option<&ModelSettings>) -> Policy {
        let idle_unload = settings.and_then(|settings| settings.idle_unload);
        Policy {
            pinned: settings.is_some_and(|settings| settings.keep_loaded.includes(&file.name)),
            on_demand: self.settings.on_demand || idle_unload.is_some(),
            idle_unload,
            devices: settings.map_or_else(Vec::new, |settings| settings.gpus.clone()),
        }
    }

    fn is_loaded_at_start(&self, file: &ModelFile) -> bool {
        !self.settings.on_demand || self.loader.residency().is_pinned(&file.id())
    }

    /// Loads or reloads a model, and unloads others for it if necessary.
    pub(super) fn load_one(&self, file: &ModelFile) -> Result<Arc<Model>, ServeError> {
        let (id, begun) = (file.id(), Instant::now());
        let log = &self.settings.server.log;
        let labels = [("model", &*file.name), ("version", &file.version)];
        let is_limited = self.settings.model_memory.is_some();
        let is_loaded = || self.get(&id).is_some_and(|served| served.is_resident());
        let mut before = Vec::new();
        let loaded = self.register(file).and_then(|settings| {
            self.make_room(&id)?;
            self.loader.residency().begin_load(&id);
            if is_limited && !is_loaded() {
                before = memory::readings_since(Instant::now(), &self.settings.read_devices);
            }
            self.start(file, &settings)
        });
        match loaded {
            Ok(model) => {
                let (ready, took) = (Instant::now(), begun.elapsed());
                let milliseconds = took.as_millis().to_string();
                let device = model.health.device_name();
                let outcome = [("device", &*device), ("after_ms", &milliseconds)];
                log.event("model_ready", &[labels, outcome].concat());
                if let Some(reason) = model.degraded() {
                    log.event("degraded", &[("model", &file.name), ("reason", &reason)]);
                }
                lock(&self.failures).remove(&id);
                self.replace(&model);
                self.loader.residency().loaded(&id, ready, took);
                self.loader.announce();
                // Requests do not wait for new readings of the GPUs.
                if is_limited {
                    let now = memory::readings_since(ready, &self.settings.read_devices);
                    if let Some(bytes) = memory::measure(&model, &before, &now) {
                        self.loader.residency().measured(&id, bytes);
                    }
                }
                Ok(model)
            }
            Err(error) => {
                let is_gpu_missing = matches!(error, ServeError::NoGpu { .. });
                let reason = match error {
                    ServeError::NotReady { reason, .. } | ServeError::NotLoaded { reason, .. } => reason,
                    other => other.to_string(),
                };
                log.event("model_not_loaded", &[&labels[..], &[("error", &reason)]].concat());
                self.record_failure(file, &reason, is_gpu_missing);
                self.loader.residency().load_failed(&id, Instant::now(), &reason);
                let name = file.name.clone();
                if is_loaded() {
                    return Err(ServeError::Reload { name, reason });
                }
                self.reject_waiting(&id);
                Err(ServeError::LoadFailed { name, reason })
            }
        }
    }

    fn record_failure(&self, file: &ModelFile, reason: &str, is_gpu_missing: bool) {
        let failure = LoadFailure { reason: reason.to_owned(), is_gpu_missing, files: FileStamps::of(file) };
        lock(&self.failures).insert(file.id(), failure);
    }

    /// Starts the engines of a model again that was unloaded and has not changed, or loads it anew.
    fn start(&self, file: &ModelFile, settings: &ModelSettings) -> Result<Arc<Model>, ServeError> {
        let served = self.get(&file.id());
        let unloaded = served.as_ref().and_then(ServedModel::known).filter(|model| !model.is_resident());
        if let Some(model) = unloaded.filter(|model| model.file == *file && model.stamps.hold()) {
            return model.resume().map(|()| Arc::clone(model));
        }
        let (start, log) = (&self.settings.start_engine, &self.settings.server.log);
        Model::load(file, settings, start, log, &self.resources.budget, &self.loader).map(Arc::new)
    }

    /// Replaces the previous model of the same name and version, which ends once its requests are finished.
    fn replace(&self, model: &Arc<Model>) {
        let is_old = |other: &ServedModel| other.file().is(model.name(), model.version());
        for old in self.swap(is_old, Some(ServedModel::Known(Arc::clone(model)))) {
            if let Some(old) = old.known().filter(|old| !Arc::ptr_eq(old, model)) {
                old.succeeded_by(Arc::clone(model));
                old.close();
            }
        }
    }

    /// Reloads a model, or all of them, from the current state of the directory: new versions are added, versions
    /// without a file are removed. A version that cannot be loaded does not stop the others; the first such error is
    /// returned. Models that are not loaded stay so, unless one is named. Blocks.
    pub(crate) fn reload_blocking(&self, name: Option<&str>) -> Result<(), ServeError> {
        let _one_at_a_time = lock(&self.loads);
        let is_selected = |other: &str| name.is_none_or(|name| name == other);
        let found = self.scan().map_err(|error| ServeError::Reload {
            name: name.unwrap_or("all models").to_owned(),
            reason: error.to_string(),
        })?;
        let selected: Vec<_> = found.iter().filter(|file| is_selected(&file.name)).collect();
        if let (true, Some(name)) = (selected.is_empty(), name) {
            return Err(self.no_model(name));
        }
        let is_present = |name: &str, version: &str| selected.iter().any(|file| file.is(name, version));
        self.forget_failures(|name, version| !is_selected(name) || is_present(name, version));
        let outcomes: Vec<_> = selected
            .iter()
            .map(
                |file| if name.is_some() { self.load_in_any_case(file) } else { self.reload_if_loaded(file) },
            )
            .collect();
        self.retire(|file| is_selected(&file.name) && !is_present(&file.name, &file.version));
        outcomes.into_iter().collect()
    }

    fn load_in_any_case(&self, file: &ModelFile) -> Result<(), ServeError> {
        self.loader.residency().forget_outcome(&file.id());
        self.load_one(file).map(drop)
    }

    /// Reloads a model if it is loaded, or is new or has failed and models are loaded at the start.
    fn reload_if_loaded(&self, file: &ModelFile) -> Result<(), ServeError> {
        let is_unloaded = match self.get(&file.id()) {
            Some(served) => !served.is_resident(),
            None => self.settings.on_demand,
        };
        if !is_unloaded {
            return self.load_in_any_case(file);
        }
        self.loader.residency().forget_outcome(&file.id());
        let settings = self.register(file);
        if self.get(&file.id()).is_some_and(|served| served.file() != file) {
            self.move_unloaded(file);
        }
        settings.map(drop)
    }

    /// Serves a model that is not loaded from another file than before.
    fn move_unloaded(&self, file: &ModelFile) {
        let is_old = |served: &ServedModel| served.file().is(&file.name, &file.version);
        for old in self.swap(is_old, Some(ServedModel::New(Arc::new(file.clone())))) {
            if let Some(old) = old.known() {
                old.close();
            }
        }
    }

    /// Loads what changed on disk since it was loaded, and removes what is gone. Blocks.
    pub(crate) fn sync_with_directory(&self) {
        let _one_at_a_time = lock(&self.loads);
        let Ok(found) = model::find_models(&self.settings.models).map(|found| found.models) else { return };
        let is_present = |name: &str, version: &str| found.iter().any(|file| file.is(name, version));
        self.forget_failures(is_present);
        for file in &found {
            let is_same = match self.get(&file.id()) {
                Some(ServedModel::Known(model)) if model.is_resident() => {
                    model.file == *file && model.stamps.hold()
                }
                // Its files are checked when it is loaded.
                Some(served) => served.file() == file && !lock(&self.failures).contains_key(&file.id()),
                None => false,
            };
            if !is_same && !self.has_failed_unchanged(file) {
                let _ = self.reload_if_loaded(file);
            }
        }
        self.retire(|file| !is_present(&file.name, &file.version));
    }

    fn forget_failures(&self, is_there: impl Fn(&str, &str) -> bool) {
        lock(&self.failures).retain(|(name, version), _| is_there(name, version));
    }

    /// Whether the same, unchanged file failed to load before.
    fn has_failed_unchanged(&self, file: &ModelFile) -> bool {
        lock(&self.failures).get(&file.id()).is_some_and(|failure| failure.files == FileStamps::of(file))
    }

    fn retire(&self, is_gone: impl Fn(&ModelFile) -> bool) {
        for served in self.swap(|served| is_gone(served.file()), None) {
            let file = served.file();
            let labels = [("model", &*file.name), ("version", &file.version)];
            self.settings.server.log.event("model_retired", &labels);
            if let Some(model) = served.known() {
                model.close();
            }
            self.loader.residency().remove(&file.id());
        }
        // Requests may wait for the first load of one of them.
        self.loader.announce();
    }

    /// Removes models from those that take requests and returns them; adds another one, if there is one.
    fn swap(&self, is_gone: impl Fn(&ServedModel) -> bool, added: Option<ServedModel>) -> Vec<ServedModel> {
        let mut models = self.models.write().unwrap_or_else(PoisonError::into_inner);
        let (gone, mut kept): (Vec<_>, Vec<_>) = models.iter().cloned().partition(|served| is_gone(served));
        kept.extend(added);
        kept.sort_by(|a, b| {
            let (a, b) = (a.file(), b.file());
            a.name.cmp(&b.name).then_with(|| model::compare_versions(&a.version, &b.version))
        });
        *models = Arc::new(kept);
        gone
    }

    /// Reloads a model, or all of them, without blocking the calling thread.
    pub(crate) async fn reload(self: &Arc<Self>, name: Option<&str>) -> Result<(), ServeError> {
        let name = name.map(ToOwned::to_owned);
        self.run_blocking(move |service| service.reload_blocking(name.as_deref())).await
    }

    /// Runs something that blocks on a thread of its own.
    pub(super) async fn run_blocking(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> Result<(), ServeError> + Send + 'static,
    ) -> Result<(), ServeError> {
        let service = Arc::clone(self);
        let running = tokio::task::spawn_blocking(move || work(&service));
        running.await.unwrap_or_else(|error| Err(ServeError::Engine(error.to_string())))
    }
}
