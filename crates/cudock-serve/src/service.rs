//! The models of a server, and the state of the server.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Instant;

use cudock_base::{lock, suggest};
use cudock_server::ServerResources;

use crate::model::{self, FileStamps, Model, ModelFile, RepositoryError};
use crate::settings::{ModelSource, ServeSettings};
use crate::{ModelListing, ServeError};

pub struct ModelService {
    pub(crate) settings: ServeSettings,
    models: RwLock<Arc<Vec<Arc<Model>>>>,
    /// Models that could not be loaded, by name and version.
    failures: Mutex<BTreeMap<(String, String), LoadFailure>>,
    loading: AtomicBool,
    pub(crate) resources: ServerResources,
    started: Instant,
    /// Two reloads at once would load everything twice.
    reloading: Mutex<()>,
}

struct LoadFailure {
    reason: String,
    /// Whether it failed because a required GPU is missing.
    is_gpu_missing: bool,
    files: FileStamps,
}

impl ModelService {
    pub fn new(settings: ServeSettings) -> Self {
        Self {
            resources: ServerResources::new(&settings.server, settings.limits.body),
            settings,
            models: RwLock::default(),
            failures: Mutex::default(),
            loading: AtomicBool::new(true),
            started: Instant::now(),
            reloading: Mutex::new(()),
        }
    }

    /// Loads all models. A model that cannot be loaded is recorded and the others are loaded nevertheless; an error if
    /// none can be loaded.
    pub(crate) fn load(&self) -> Result<(), LoadError> {
        let found = self.find()?;
        if let (true, ModelSource::Directory(path)) = (found.is_empty(), &self.settings.models) {
            return Err(RepositoryError::Empty { path: path.clone() }.into());
        }
        for entry in &found {
            // The reason is recorded for `/health`, and used below.
            let _ = self.load_one(entry);
        }
        self.loading.store(false, Ordering::Release);
        if self.loaded().is_empty() {
            let reasons: Vec<String> = self.failures().into_iter().map(|failure| failure.reason).collect();
            let reasons = reasons.join("\n");
            let is_gpu_missing = lock(&self.failures).values().any(|failure| failure.is_gpu_missing);
            return Err(if is_gpu_missing { LoadError::NoGpu(reasons) } else { LoadError::None(reasons) });
        }
        Ok(())
    }

    /// Finds the models. What cannot be read is logged and skipped.
    fn find(&self) -> Result<Vec<ModelFile>, RepositoryError> {
        let found = model::find_models(&self.settings.models)?;
        for error in &found.unreadable {
            let source = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
            self.settings.server.log.event("models_not_read", &[("error", &format!("{error}: {source}"))]);
        }
        Ok(found.models)
    }

    fn load_one(&self, found: &ModelFile) -> Result<Arc<Model>, ServeError> {
        let key = (found.name.clone(), found.version.clone());
        let begun = Instant::now();
        let settings = &self.settings;
        let log = &settings.server.log;
        let labels = [("model", &*found.name), ("version", &found.version)];
        let loaded = (settings.model_settings)(found.settings_file().as_deref())
            .map_err(|reason| ServeError::NotReady { name: found.name.clone(), reason })
            .and_then(|model| Model::load(found, &model, &settings.start_engine, log));
        match loaded {
            Ok(model) => {
                let model = Arc::new(model);
                let took = begun.elapsed().as_millis().to_string();
                let device = model.health.device_name();
                let outcome = [("device", &*device), ("after_ms", &took)];
                log.event("model_ready", &[labels, outcome].concat());
                if let Some(reason) = model.degraded() {
                    log.event("degraded", &[("model", &found.name), ("reason", &reason)]);
                }
                lock(&self.failures).remove(&key);
                self.replace(&model);
                Ok(model)
            }
            Err(error) => {
                let reason = match &error {
                    ServeError::NotReady { reason, .. } => reason.clone(),
                    other => other.to_string(),
                };
                log.event("model_not_loaded", &[&labels[..], &[("error", &reason)]].concat());
                let is_gpu_missing = matches!(error, ServeError::NoGpu { .. });
                let files = FileStamps::of(found);
                let failure = LoadFailure { reason: reason.clone(), is_gpu_missing, files };
                lock(&self.failures).insert(key, failure);
                Err(ServeError::Reload { name: found.name.clone(), reason })
            }
        }
    }

    /// Replaces the previous model of the same name and version, which ends once its requests are finished.
    fn replace(&self, model: &Arc<Model>) {
        let is_old = |other: &Model| other.file.is(model.name(), model.version());
        for old in self.remove(is_old, Some(model)) {
            old.succeeded_by(Arc::clone(model));
            old.close();
        }
    }

    /// Reloads a model, or all of them, from the current state of the directory: new versions are added, versions
    /// without a file are removed. A version that cannot be loaded does not stop the others; the first such error is
    /// returned. Blocks.
    pub(crate) fn reload_blocking(&self, name: Option<&str>) -> Result<(), ServeError> {
        let _one_at_a_time = lock(&self.reloading);
        let is_selected = |other: &str| name.is_none_or(|name| name == other);
        let found = self.find().map_err(|error| ServeError::Reload {
            name: name.unwrap_or("all models").to_owned(),
            reason: error.to_string(),
        })?;
        let selected: Vec<_> = found.iter().filter(|found| is_selected(&found.name)).collect();
        if let (true, Some(name)) = (selected.is_empty(), name) {
            return Err(self.no_model(name));
        }
        let is_present = |name: &str, version: &str| selected.iter().any(|found| found.is(name, version));
        self.forget_failures(|name, version| !is_selected(name) || is_present(name, version));
        let outcomes: Vec<_> = selected.iter().map(|found| self.load_one(found).map(drop)).collect();
        self.retire(|model| is_selected(model.name()) && !is_present(model.name(), model.version()));
        outcomes.into_iter().collect()
    }

    /// Loads what changed on disk since it was loaded, and removes what is gone. Blocks.
    pub(crate) fn sync_with_directory(&self) {
        let _one_at_a_time = lock(&self.reloading);
        let Ok(found) = model::find_models(&self.settings.models).map(|found| found.models) else { return };
        let is_present = |name: &str, version: &str| found.iter().any(|found| found.is(name, version));
        self.forget_failures(is_present);
        let loaded = self.loaded();
        for entry in &found {
            let same = loaded.iter().any(|model| model.file == *entry && model.stamps.hold());
            if !same && !self.has_failed_unchanged(entry) {
                let _ = self.load_one(entry);
            }
        }
        self.retire(|model| !is_present(model.name(), model.version()));
    }

    fn forget_failures(&self, is_there: impl Fn(&str, &str) -> bool) {
        lock(&self.failures).retain(|(name, version), _| is_there(name, version));
    }

    /// Whether the same, unchanged file failed to load before.
    fn has_failed_unchanged(&self, found: &ModelFile) -> bool {
        let failures = lock(&self.failures);
        let failure = failures.get(&(found.name.clone(), found.version.clone()));
        failure.is_some_and(|failure| failure.files == FileStamps::of(found))
    }

    fn retire(&self, is_gone: impl Fn(&Model) -> bool) {
        for model in self.remove(is_gone, None) {
            let labels = [("model", model.name()), ("version", model.version())];
            self.settings.server.log.event("model_retired", &labels);
            model.close();
        }
    }

    /// Removes models from those that take requests and returns them; adds another one, if there is one.
    fn remove(&self, is_gone: impl Fn(&Model) -> bool, added: Option<&Arc<Model>>) -> Vec<Arc<Model>> {
        let mut models = self.models.write().unwrap_or_else(PoisonError::into_inner);
        let (gone, mut kept): (Vec<_>, Vec<_>) = models.iter().cloned().partition(|model| is_gone(model));
        kept.extend(added.cloned());
        kept.sort_by(|a, b| {
            a.name().cmp(b.name()).then_with(|| model::compare_versions(a.version(), b.version()))
        });
        *models = Arc::new(kept);
        gone
    }

    /// Reloads a model, or all of them, without blocking the calling thread.
    pub(crate) async fn reload(self: &Arc<Self>, name: Option<&str>) -> Result<(), ServeError> {
        let (service, name) = (Arc::clone(self), name.map(ToOwned::to_owned));
        let reload = tokio::task::spawn_blocking(move || service.reload_blocking(name.as_deref()));
        reload.await.unwrap_or_else(|error| Err(ServeError::Engine(error.to_string())))
    }

    /// All loaded models, by name and then version.
    pub(crate) fn loaded(&self) -> Arc<Vec<Arc<Model>>> {
        Arc::clone(&self.models.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// A model by name; the newest version if none is given.
    pub(crate) fn model(&self, name: &str, version: Option<&str>) -> Result<Arc<Model>, ServeError> {
        let models = self.loaded();
        let mut named = models.iter().filter(|model| model.name() == name).peekable();
        if named.peek().is_none() {
            return Err(self.no_model(name));
        }
        let found = match version.filter(|version| !version.is_empty()) {
            None => named.last(),
            Some(version) => named.find(|model| model.version() == version),
        };
        found.cloned().ok_or_else(|| ServeError::VersionNotFound {
            name: name.to_owned(),
            version: version.unwrap_or_default().to_owned(),
        })
    }

    /// The model of a request that does not name one: the only one.
    pub(crate) fn only_model(&self) -> Result<Arc<Model>, ServeError> {
        let models = self.loaded();
        let newest = models.last().ok_or_else(|| self.nothing_loaded())?;
        if models.iter().all(|model| model.name() == newest.name()) {
            return Ok(Arc::clone(newest));
        }
        let mut names: Vec<_> = models.iter().map(|model| model.name()).collect();
        names.dedup();
        Err(ServeError::AmbiguousModel(names.join(", ")))
    }

    fn nothing_loaded(&self) -> ServeError {
        let reason = if self.is_loading() { "models are being loaded" } else { "no model could be loaded" };
        ServeError::NotReady { name: "default".to_owned(), reason: reason.to_owned() }
    }

    fn no_model(&self, name: &str) -> ServeError {
        let failures = self.failures();
        let failure = failures.into_iter().find(|failed| failed.name == name).map(|failed| failed.reason);
        let loading = || self.is_loading().then(|| "models are being loaded".to_owned());
        if let Some(reason) = failure.or_else(loading) {
            return ServeError::NotReady { name: name.to_owned(), reason };
        }
        let loaded = self.loaded();
        let suggestion = suggest::closest(name, loaded.iter().map(|model| model.name())).map(str::to_owned);
        ServeError::ModelNotFound { name: name.to_owned(), suggestion }
    }

    /// Every model, loaded or not.
    pub fn models(&self) -> Vec<ModelListing> {
        let loaded = self.loaded();
        let mut entries: Vec<_> = loaded
            .iter()
            .map(|model| ModelListing {
                name: model.name().to_owned(),
                version: model.version().to_owned(),
                ready: model.is_ready(),
                reason: model.health.snapshot().engine_lost.unwrap_or_default(),
            })
            .collect();
        for failed in self.failures() {
            if !loaded.iter().any(|model| model.file.is(&failed.name, &failed.version)) {
                entries.push(failed);
            }
        }
        entries
    }

    /// Models that could not be loaded.
    pub(crate) fn failures(&self) -> Vec<ModelListing> {
        let listing = |((name, version), failure): (&(String, String), &LoadFailure)| ModelListing {
            name: name.clone(),
            version: version.clone(),
            ready: false,
            reason: failure.reason.clone(),
        };
        lock(&self.failures).iter().map(listing).collect()
    }

    /// Whether requests can be processed: models are loaded, each has an engine, there is memory for a small request,
    /// and the server is not shutting down.
    pub(crate) fn is_ready(&self) -> bool {
        let models = self.loaded();
        !self.is_loading()
            && !self.is_draining()
            && !self.resources.budget.is_exhausted()
            && !models.is_empty()
            && models.iter().all(|model| model.is_ready())
    }

    pub(crate) fn is_loading(&self) -> bool {
        self.loading.load(Ordering::Acquire)
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.resources.drain.has_begun()
    }

    pub(crate) fn uptime(&self) -> std::time::Duration {
        self.started.elapsed()
    }

    /// Closes all models once their requests are finished. Blocks.
    pub(crate) fn close(&self) {
        for model in self.loaded().iter() {
            model.close();
        }
    }
}

/// There is nothing to serve.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error(transparent)]
    Repository(#[from] RepositoryError),
    #[error("no model could be loaded\n{0}")]
    None(String),
    /// No model could be loaded, one of them because a required GPU is missing.
    #[error("no model could be loaded\n{0}")]
    NoGpu(String),
}
