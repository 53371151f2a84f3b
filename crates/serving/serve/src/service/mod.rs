//! The models of a server, and the state of the server.

mod load;
mod load_error;
pub(crate) mod loader;
mod memory;
mod on_demand;
pub(crate) mod residency;
mod served;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::Instant;

use cudock_base::lock;
use cudock_base::text::suggest;
use cudock_server::ServerResources;
use cudock_trace::Exporter;

pub use self::load_error::LoadError;
use self::load_error::LoadFailure;
pub(crate) use self::loader::Loader;
pub(crate) use self::residency::{ResidencyReport, Usage};
pub(crate) use self::served::ServedModel;
use crate::model::{Model, ModelId};
use crate::settings::ServeSettings;
use crate::{ModelListing, ServeError};

pub struct ModelService {
    pub(crate) settings: ServeSettings,
    /// The models, by name and then version.
    models: RwLock<Arc<Vec<ServedModel>>>,
    /// Models that could not be loaded.
    failures: Mutex<BTreeMap<ModelId, LoadFailure>>,
    loading: AtomicBool,
    pub(crate) resources: ServerResources,
    started: Instant,
    /// Models are loaded and unloaded one at a time.
    loads: Mutex<()>,
    loader: Arc<Loader>,
    closed: AtomicBool,
    /// Sends traces and metrics, while the server runs.
    exporter: OnceLock<Exporter>,
}

impl ModelService {
    pub fn new(settings: ServeSettings) -> Self {
        Self {
            resources: ServerResources::new(&settings.server, settings.limits.body),
            loader: Arc::new(Loader::new(settings.model_memory)),
            settings,
            models: RwLock::default(),
            failures: Mutex::default(),
            loading: AtomicBool::new(true),
            started: Instant::now(),
            loads: Mutex::new(()),
            closed: AtomicBool::new(false),
            exporter: OnceLock::new(),
        }
    }

    /// Sets the exporter of traces, once.
    pub(crate) fn set_exporter(&self, exporter: Option<Exporter>) {
        if let Some(exporter) = exporter {
            let _ = self.exporter.set(exporter);
        }
    }

    /// The exporter of traces, if there is one.
    pub(crate) fn exporter(&self) -> Option<&Exporter> {
        self.exporter.get()
    }

    /// All models that are served, loaded or not, by name and then version.
    pub(crate) fn all(&self) -> Arc<Vec<ServedModel>> {
        Arc::clone(&self.models.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The models that have been loaded; their engines may have been unloaded since.
    pub(crate) fn known(&self) -> Vec<Arc<Model>> {
        self.all().iter().filter_map(|served| served.known().cloned()).collect()
    }

    fn get(&self, id: &ModelId) -> Option<ServedModel> {
        self.all().iter().find(|served| served.file().is(&id.0, &id.1)).cloned()
    }

    /// Finds a model by name; the newest version if none is given.
    pub(crate) fn find(&self, name: &str, version: Option<&str>) -> Result<ServedModel, ServeError> {
        let models = self.all();
        let mut named = models.iter().filter(|served| served.file().name == name).peekable();
        if named.peek().is_none() {
            return Err(self.no_model(name));
        }
        let found = match version.filter(|version| !version.is_empty()) {
            None => named.last(),
            Some(version) => named.find(|served| served.file().version == version),
        };
        found.cloned().ok_or_else(|| ServeError::VersionNotFound {
            name: name.to_owned(),
            version: version.unwrap_or_default().to_owned(),
        })
    }

    /// The model of a request that does not name one: the only one.
    pub(crate) fn only_model(&self) -> Result<ServedModel, ServeError> {
        let models = self.all();
        let newest = models.last().ok_or_else(|| self.nothing_loaded())?;
        if models.iter().all(|served| served.file().name == newest.file().name) {
            return Ok(newest.clone());
        }
        let mut names: Vec<_> = models.iter().map(|served| served.file().name.as_str()).collect();
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
        let models = self.all();
        let names = models.iter().map(|served| served.file().name.as_str());
        let suggestion = suggest::closest(name, names).map(str::to_owned);
        ServeError::ModelNotFound { name: name.to_owned(), suggestion }
    }

    /// Every model, loaded or not.
    pub fn models(&self) -> Vec<ModelListing> {
        let (models, failures) = (self.all(), self.failures());
        let mut entries: Vec<_> = models.iter().map(|served| self.listing(served, &failures)).collect();
        for failed in failures {
            if !models.iter().any(|served| served.file().is(&failed.name, &failed.version)) {
                entries.push(failed);
            }
        }
        entries
    }

    /// The names of the models whose requests are answered, each once.
    pub fn ready_names(&self) -> Vec<String> {
        let models = self.all();
        let ready = models.iter().filter(|served| self.is_model_ready(served));
        let mut names: Vec<String> = ready.map(|served| served.file().name.clone()).collect();
        names.dedup();
        names
    }

    fn listing(&self, served: &ServedModel, failures: &[ModelListing]) -> ModelListing {
        let file = served.file();
        let lost = |model: &Arc<Model>| model.health.snapshot().engine_lost.unwrap_or_default();
        let absent = || {
            let failure = failures.iter().find(|failed| file.is(&failed.name, &failed.version));
            let is_loading = self.residency(&file.id()).is_loading;
            let reason = || if is_loading { "loading" } else { "unloaded" }.to_owned();
            failure.map_or_else(reason, |failure| failure.reason.clone())
        };
        ModelListing {
            name: file.name.clone(),
            version: file.version.clone(),
            ready: served.has_engine(),
            reason: served.known().filter(|model| model.is_resident()).map_or_else(absent, lost),
        }
    }

    /// Models that could not be loaded.
    pub(crate) fn failures(&self) -> Vec<ModelListing> {
        let listing = |((name, version), failure): (&ModelId, &LoadFailure)| ModelListing {
            name: name.clone(),
            version: version.clone(),
            ready: false,
            reason: failure.reason.clone(),
        };
        lock(&self.failures).iter().map(listing).collect()
    }

    /// Whether requests can be processed: models are loaded or can be, each loaded one has an engine, there is memory
    /// for a small request, and the server is not shutting down.
    pub(crate) fn is_ready(&self) -> bool {
        let models = self.all();
        let is_broken = |served: &ServedModel| served.is_resident() && !served.has_engine();
        !self.is_loading()
            && !self.is_draining()
            && !self.resources.budget.is_exhausted()
            && !models.iter().any(is_broken)
            && models.iter().any(|served| served.has_engine() || self.is_loadable(served))
    }

    /// Whether requests load models.
    pub(crate) fn loads_on_request(&self) -> bool {
        self.loader.residency().loads_on_request()
    }

    /// Whether requests for a model can be processed: it has an engine, or gets one when a request arrives.
    pub(crate) fn is_model_ready(&self, served: &ServedModel) -> bool {
        !self.is_draining()
            && if served.is_resident() { served.has_engine() } else { self.is_loadable(served) }
    }

    fn is_loadable(&self, served: &ServedModel) -> bool {
        !served.is_resident() && self.loader.check(&served.file().id()).is_ok()
    }

    /// The residency of a model, for reports.
    pub(crate) fn residency(&self, id: &ModelId) -> ResidencyReport {
        self.loader.residency().report(id)
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
        self.closed.store(true, Ordering::Release);
        self.loader.wake();
        for model in self.known() {
            model.close();
        }
    }
}
