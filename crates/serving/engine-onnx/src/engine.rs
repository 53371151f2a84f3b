//! ONNX Runtime in this process.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};

use cudock_base::lock;
use cudock_engine::{
    DeviceInfo, Engine, EngineError, Lane, LaneMemory, Provider, SharedEngine, SharedLane, skip_reasons,
};
use cudock_mmap::SharedMemory;
use cudock_tensor::Signature;
use ort::environment::Environment;
use ort::logging::LogLevel;

use crate::cuda::{CudaGpu, CudaStream, PinnedMemory};
use crate::gpu::LaneGpu;
use crate::graph_capture::block_capture;
use crate::memory_limit::{BufferBudget, MemoryLimit};
use crate::model_data::ModelData;
use crate::ort_tensor::{TensorNames, library_version};
use crate::runner::{LoadedModel, Runner, SharedSession};
use crate::signature::signature;
use crate::{OnnxEngineSettings, providers};

/// A model loaded into this process. A crash of the library crashes this process, and a run that hangs cannot be
/// stopped: servers use [`cudock_engine::IsolatedEngine`].
pub struct OnnxEngine {
    model: Arc<LoadedModel>,
    pub(crate) device: DeviceInfo,
    sessions: Vec<Arc<SharedSession>>,
    gpu: Option<Arc<CudaGpu>>,
    buffers: Arc<BufferBudget>,
    settings: OnnxEngineSettings,
    remaining_lanes: usize,
}

impl OnnxEngine {
    /// Opens the sessions of a model.
    pub(crate) fn open(settings: &OnnxEngineSettings, model: &ModelData) -> Result<Self, EngineError> {
        let environment = environment(settings)?;
        let _held = block_capture();
        let load_error = |reason| EngineError::Load { model: settings.model.clone(), reason };
        let opened = open_first_usable(&environment, settings, model)?;
        let unranked =
            cudock_model::onnx::open(&settings.model).map(|graph| graph.unranked).unwrap_or_default();
        let (signature, names) = {
            let session = lock(&opened.first.session);
            let signature = signature(session.inputs(), session.outputs(), &unranked).map_err(load_error)?;
            (signature, TensorNames::new(session.inputs(), session.outputs()).map_err(load_error)?)
        };
        let mut sessions = vec![opened.first];
        for _ in 1..settings.kind.sessions.max(1).min(settings.lanes.max(1)) {
            sessions.push(opened.config.open(&environment, settings, model).map_err(load_error)?);
        }
        let graphs = if opened.config.graphs { settings.kind.graphs.clone() } else { Vec::new() };
        let version =
            library_version(&settings.kind.library).unwrap_or_else(|| "(unknown version)".to_owned());
        let device = DeviceInfo {
            provider: opened.config.provider,
            name: opened.config.gpu.as_ref().map_or_else(|| "cpu".to_owned(), |gpu| gpu.name.clone()),
            gpu: opened.config.provider.is_gpu().then_some(settings.gpu),
            skipped_providers: opened.skipped_providers,
            notes: opened.notes,
            engine: format!("ONNX Runtime {version}"),
            precision: None,
        };
        Ok(Self {
            model: Arc::new(LoadedModel { signature: Arc::new(signature), names, graphs }),
            device,
            sessions,
            gpu: opened.config.gpu,
            buffers: Arc::new(BufferBudget::new(MemoryLimit::of(settings))),
            settings: settings.clone(),
            remaining_lanes: settings.lanes.max(1),
        })
    }

    /// A lane besides those of the settings.
    pub(crate) fn spare_lane(&self) -> Result<Runner, EngineError> {
        let memory =
            LaneMemory::new(&self.model.signature).map_err(|error| EngineError::Failed(error.to_string()))?;
        self.lane(self.settings.lanes.max(1), memory)
    }

    fn lane(&self, number: usize, memory: LaneMemory) -> Result<Runner, EngineError> {
        let _held = block_capture();
        let session = self
            .sessions
            .get(number % self.sessions.len().max(1))
            .ok_or_else(|| EngineError::Failed("the engine has no session".to_owned()))?;
        let gpu = match &self.gpu {
            Some(gpu) => {
                let tensors = memory.inputs.len() + memory.outputs.len();
                let pinned = self.settings.kind.pinned;
                let mut lane = LaneGpu::new(gpu, &self.buffers, self.settings.gpu, tensors, pinned)
                    .map_err(EngineError::Failed)?;
                for (tensor, memory) in memory.inputs.iter().chain(&memory.outputs).enumerate() {
                    lane.pin(tensor, memory);
                }
                Some(lane)
            }
            None => None,
        };
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        Ok(Runner::new(number, Arc::clone(&self.model), Arc::clone(session), memory, gpu))
    }
}

impl Engine for OnnxEngine {
    fn signature(&self) -> &Signature {
        &self.model.signature
    }

    fn device(&self) -> &DeviceInfo {
        &self.device
    }

    fn take_lanes(&mut self) -> Vec<Box<dyn Lane>> {
        let count = std::mem::take(&mut self.remaining_lanes);
        let open = |number| {
            let memory = LaneMemory::new(&self.model.signature).ok()?;
            Some(Box::new(self.lane(number, memory).ok()?) as Box<dyn Lane>)
        };
        (0..count).map_while(open).collect()
    }
}

impl SharedEngine for OnnxEngine {
    fn open_lane(&self, number: usize, memory: LaneMemory) -> Result<Box<dyn SharedLane>, EngineError> {
        Ok(Box::new(self.lane(number, memory)?))
    }
}

/// How the model's sessions are opened.
struct SessionConfig {
    provider: Provider,
    graphs: bool,
    gpu: Option<Arc<CudaGpu>>,
}

impl SessionConfig {
    fn open(
        &self,
        environment: &Environment,
        settings: &OnnxEngineSettings,
        model: &ModelData,
    ) -> Result<Arc<SharedSession>, String> {
        let gpu = self.gpu.as_ref().filter(|_| settings.kind.io_binding);
        let stream = gpu.map(CudaStream::new).transpose()?;
        let session =
            providers::open(environment, settings, model, self.provider, self.graphs, stream.as_ref())
                .map_err(|error| error.to_string())?;
        Ok(Arc::new(SharedSession { session: Mutex::new(session), stream }))
    }
}

struct OpenedModel {
    first: Arc<SharedSession>,
    config: SessionConfig,
    skipped_providers: Vec<(Provider, String)>,
    notes: Vec<String>,
}

fn open_first_usable(
    environment: &Environment,
    settings: &OnnxEngineSettings,
    model: &ModelData,
) -> Result<OpenedModel, EngineError> {
    let mut skipped_providers = Vec::new();
    for &provider in settings.providers.iter().filter(|provider| provider.is_gpu()) {
        match open_on_gpu(environment, settings, model, provider) {
            Ok(opened) => return Ok(OpenedModel { skipped_providers, ..opened }),
            Err(reason) => skipped_providers.push((provider, reason)),
        }
    }
    if settings.require_gpu {
        return Err(EngineError::NoGpu(skip_reasons(&skipped_providers)));
    }
    let config = SessionConfig { provider: Provider::Cpu, graphs: false, gpu: None };
    let first = config
        .open(environment, settings, model)
        .map_err(|reason| EngineError::Load { model: settings.model.clone(), reason })?;
    Ok(OpenedModel { first, config, skipped_providers, notes: Vec::new() })
}

/// Opens the first session on a GPU: with CUDA graphs if requested and supported by the model.
fn open_on_gpu(
    environment: &Environment,
    settings: &OnnxEngineSettings,
    model: &ModelData,
    provider: Provider,
) -> Result<OpenedModel, String> {
    let gpu = CudaGpu::open(settings.gpu)?;
    let mut notes = Vec::new();
    let mut config = SessionConfig { provider, graphs: !settings.kind.graphs.is_empty(), gpu: Some(gpu) };
    if settings.kind.pinned
        && let Err(reason) = can_pin(config.gpu.as_ref())
    {
        notes.push(format!("memory is not pinned: {reason}"));
    }
    if config.graphs && (!settings.kind.io_binding || provider != Provider::Cuda) {
        config.graphs = false;
        notes.push("CUDA graphs need the CUDA provider and I/O binding".to_owned());
    }
    let mut first = config.open(environment, settings, model);
    if config.graphs
        && let Err(reason) = &first
    {
        notes.push(format!("CUDA graphs are disabled: {reason}"));
        config.graphs = false;
        first = config.open(environment, settings, model);
    }
    Ok(OpenedModel { first: first?, config, skipped_providers: Vec::new(), notes })
}

fn can_pin(gpu: Option<&Arc<CudaGpu>>) -> Result<(), String> {
    let memory = SharedMemory::new(0).map_err(|error| error.to_string())?;
    gpu.map_or(Ok(()), |gpu| PinnedMemory::new(gpu, memory.mapping()).map(drop))
}

/// The environment of this process, created with the library that is requested first. Public for measurements of `ort`
/// sessions.
pub fn environment(settings: &OnnxEngineSettings) -> Result<Environment, EngineError> {
    static FIRST: OnceLock<(PathBuf, Environment)> = OnceLock::new();
    static MAKING: Mutex<()> = Mutex::new(());
    let library_error = |reason| EngineError::Library { library: settings.kind.library.clone(), reason };
    let _one_at_a_time = lock(&MAKING);
    if let Some((library, environment)) = FIRST.get() {
        if *library != settings.kind.library {
            return Err(library_error(format!("this process already uses {}", library.display())));
        }
        return Ok(environment.clone());
    }
    if !settings.kind.library.is_file() {
        return Err(library_error("file not found".to_owned()));
    }
    preload(settings);
    let environment = ort::init_from(&settings.kind.library)
        .map_err(|error| library_error(error.to_string()))?
        .with_name("cudock")
        .with_telemetry(false)
        .build()
        .map_err(|error| library_error(error.to_string()))?;
    // The engine returns its errors, and the caller reports them; it need not log them, too.
    environment.set_log_level(LogLevel::Fatal);
    Ok(FIRST.get_or_init(|| (settings.kind.library.clone(), environment)).1.clone())
}

/// Preloads the libraries that the CUDA provider looks up by name, unless this process was started with their
/// directories on its search path. A missing one shows when the provider is tried.
fn preload(settings: &OnnxEngineSettings) {
    if !settings.providers.iter().any(|provider| provider.is_gpu()) {
        return;
    }
    let searched = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let searched: Vec<PathBuf> = std::env::split_paths(&searched).collect();
    let directories = settings.library_path.iter().filter(|directory| !searched.contains(directory));
    for name in ort::ep::cuda::CUDA_DYLIBS.iter().chain(ort::ep::cuda::CUDNN_DYLIBS) {
        let mut libraries = directories.clone().map(|directory| directory.join(name));
        if let Some(library) = libraries.find(|library| library.is_file()) {
            let _ = ort::util::preload_dylib(library);
        }
    }
}
