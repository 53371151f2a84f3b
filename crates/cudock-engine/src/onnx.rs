//! ONNX Runtime in this process.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use cudock_map::SharedMemory;
use cudock_tensor::Signature;
use ort::environment::Environment;
use ort::logging::LogLevel;

use crate::cuda::{Gpu, Pinned, Stream};
use crate::gpu::LaneGpu;
use crate::recording::nobody_records;
use crate::runner::{Model, Runner, SharedSession};
use crate::signature::signature;
use crate::value::{Names, library_version};
use crate::{Device, Engine, EngineError, EngineSettings, Lane, Provider, Usage, providers, usage};

/// A model loaded into this process. A crash of the library is a crash of this process, and a run that hangs cannot be
/// stopped: servers use [`crate::IsolatedEngine`].
pub struct OnnxEngine {
    model: Arc<Model>,
    device: Device,
    sessions: Vec<Arc<SharedSession>>,
    gpu: Option<Arc<Gpu>>,
    settings: EngineSettings,
    lanes_left: usize,
}

impl OnnxEngine {
    /// Loads the library and the model. Providers that cannot be used are passed over, and [`Device`] says why; the
    /// processor always can.
    ///
    /// A process can have one library of ONNX Runtime: a second path is refused.
    pub fn load(settings: &EngineSettings) -> Result<Self, EngineError> {
        let environment = environment(settings)?;
        let _held = nobody_records();
        let wrong = |reason| EngineError::Load { model: settings.model.clone(), reason };
        let opened = open_first_usable(&environment, settings).map_err(wrong)?;
        let unranked =
            cudock_model::onnx::open(&settings.model).map(|graph| graph.unranked).unwrap_or_default();
        let (signature, names) = {
            let session = opened.first.session.lock().unwrap_or_else(PoisonError::into_inner);
            let signature = signature(session.inputs(), session.outputs(), &unranked).map_err(wrong)?;
            (signature, Names::new(session.inputs(), session.outputs()).map_err(wrong)?)
        };
        let mut sessions = vec![opened.first];
        for _ in 1..settings.sessions.max(1).min(settings.lanes.max(1)) {
            let session = opened.way.open(&environment, settings).map_err(wrong)?;
            sessions.push(session);
        }
        let graphs = if opened.way.graphs { settings.graphs.clone() } else { Vec::new() };
        let version = library_version(&settings.library).unwrap_or_else(|| "of unknown version".to_owned());
        let device = Device {
            provider: opened.way.provider,
            name: opened.way.gpu.as_ref().map_or_else(|| "cpu".to_owned(), |gpu| gpu.name.clone()),
            gpu: opened.way.provider.on_gpu().then_some(settings.gpu),
            passed_over: opened.passed_over,
            notes: opened.notes,
            engine: format!("ONNX Runtime {version}"),
        };
        Ok(Self {
            model: Arc::new(Model { signature, names, graphs }),
            device,
            sessions,
            gpu: opened.way.gpu,
            settings: settings.clone(),
            lanes_left: settings.lanes.max(1),
        })
    }

    /// The lane with that number, over the memory of its inputs and outputs.
    pub(crate) fn lane(
        &self,
        number: usize,
        inputs: Vec<SharedMemory>,
        outputs: Vec<SharedMemory>,
    ) -> Result<Runner, EngineError> {
        let _held = nobody_records();
        let failed = |error: crate::cuda::CudaError| EngineError::Failed(error.to_string());
        let session = self
            .sessions
            .get(number % self.sessions.len().max(1))
            .ok_or_else(|| EngineError::Failed("the engine has no session".to_owned()))?;
        let gpu = match &self.gpu {
            Some(gpu) => {
                let tensors = inputs.len() + outputs.len();
                let mut lane =
                    LaneGpu::new(gpu, self.settings.gpu, tensors, self.settings.pinned).map_err(failed)?;
                for (tensor, memory) in inputs.iter().chain(&outputs).enumerate() {
                    lane.pin(tensor, memory);
                }
                Some(lane)
            }
            None => None,
        };
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        Ok(Runner::new(number, Arc::clone(&self.model), Arc::clone(session), inputs, outputs, gpu))
    }
}

impl Engine for OnnxEngine {
    fn signature(&self) -> &Signature {
        &self.model.signature
    }

    fn device(&self) -> &Device {
        &self.device
    }

    fn take_lanes(&mut self) -> Vec<Box<dyn Lane>> {
        let count = std::mem::take(&mut self.lanes_left);
        let make = |number| {
            let inputs = room(self.model.signature.inputs.len()).ok()?;
            let outputs = room(self.model.signature.outputs.len()).ok()?;
            Some(Box::new(self.lane(number, inputs, outputs).ok()?) as Box<dyn Lane>)
        };
        (0..count).map_while(make).collect()
    }

    fn usage(&self) -> Usage {
        usage::of_process(std::process::id())
    }

    fn process(&self) -> Option<u32> {
        None
    }
}

/// Memory for so many tensors, to grow as they come.
pub(crate) fn room(tensors: usize) -> std::io::Result<Vec<SharedMemory>> {
    (0..tensors).map(|_| SharedMemory::new(0)).collect()
}

/// How the model's sessions are opened.
struct Way {
    provider: Provider,
    graphs: bool,
    gpu: Option<Arc<Gpu>>,
}

impl Way {
    fn open(
        &self,
        environment: &Environment,
        settings: &EngineSettings,
    ) -> Result<Arc<SharedSession>, String> {
        let stream = match &self.gpu {
            Some(gpu) if settings.io_binding => Some(Stream::new(gpu).map_err(|error| error.to_string())?),
            _ => None,
        };
        let session = providers::open(environment, settings, self.provider, self.graphs, stream.as_ref())?;
        Ok(Arc::new(SharedSession { session: Mutex::new(session), stream }))
    }
}

struct Opened {
    first: Arc<SharedSession>,
    way: Way,
    passed_over: Vec<(Provider, String)>,
    notes: Vec<String>,
}

fn open_first_usable(environment: &Environment, settings: &EngineSettings) -> Result<Opened, String> {
    let mut passed_over = Vec::new();
    for &provider in settings.providers.iter().filter(|provider| provider.on_gpu()) {
        match open_on_gpu(environment, settings, provider) {
            Ok((first, way, notes)) => return Ok(Opened { first, way, passed_over, notes }),
            Err(reason) => passed_over.push((provider, reason)),
        }
    }
    let way = Way { provider: Provider::Cpu, graphs: false, gpu: None };
    let first = way.open(environment, settings)?;
    Ok(Opened { first, way, passed_over, notes: Vec::new() })
}

/// A first session on a GPU: with recorded launches if they are wanted and the model allows it, else without.
fn open_on_gpu(
    environment: &Environment,
    settings: &EngineSettings,
    provider: Provider,
) -> Result<(Arc<SharedSession>, Way, Vec<String>), String> {
    let gpu = Gpu::open(settings.gpu).map_err(|error| error.to_string())?;
    let mut notes = Vec::new();
    let mut way = Way { provider, graphs: !settings.graphs.is_empty(), gpu: Some(gpu) };
    if settings.pinned
        && let Err(reason) = can_pin(way.gpu.as_ref())
    {
        notes.push(format!("memory is not pinned: {reason}"));
    }
    if way.graphs && (!settings.io_binding || provider != Provider::Cuda) {
        way.graphs = false;
        notes.push("launches are recorded on the CUDA provider and with io binding only".to_owned());
    }
    if way.graphs {
        match way.open(environment, settings) {
            Ok(first) => return Ok((first, way, notes)),
            Err(reason) => notes.push(format!("launches are not recorded: {reason}")),
        }
        way.graphs = false;
    }
    let first = way.open(environment, settings)?;
    Ok((first, way, notes))
}

fn can_pin(gpu: Option<&Arc<Gpu>>) -> Result<(), String> {
    let memory = SharedMemory::new(0).map_err(|error| error.to_string())?;
    gpu.map_or(Ok(()), |gpu| Pinned::new(gpu, memory.mapping()).map(drop)).map_err(|error| error.to_string())
}

/// The one environment of this process, made with the library that is asked for first. Public for those who measure
/// sessions of `ort` beside the engines here.
pub fn environment(settings: &EngineSettings) -> Result<Environment, EngineError> {
    static FIRST: OnceLock<(PathBuf, Environment)> = OnceLock::new();
    static MAKING: Mutex<()> = Mutex::new(());
    let refused = |reason| EngineError::Library { library: settings.library.clone(), reason };
    let _one_at_a_time = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((library, environment)) = FIRST.get() {
        if *library != settings.library {
            return Err(refused(format!("this process already uses {}", library.display())));
        }
        return Ok(environment.clone());
    }
    if !settings.library.is_file() {
        return Err(refused("there is no such file".to_owned()));
    }
    preload(settings);
    let environment = ort::init_from(&settings.library)
        .map_err(|error| refused(error.to_string()))?
        .with_name("cudock")
        .with_telemetry(false)
        .build()
        .map_err(|error| refused(error.to_string()))?;
    // The engine returns its errors, and whoever asked will say them; it need not write them down as well.
    environment.set_log_level(LogLevel::Fatal);
    Ok(FIRST.get_or_init(|| (settings.library.clone(), environment)).1.clone())
}

/// Loads the libraries that the CUDA provider will look for by name, where this process was not started with their
/// folders on its search path. One that is missing shows when the provider is tried.
fn preload(settings: &EngineSettings) {
    if !settings.providers.iter().any(|provider| provider.on_gpu()) {
        return;
    }
    let searched: Vec<PathBuf> = std::env::var_os("LD_LIBRARY_PATH")
        .map(|path| std::env::split_paths(&path).collect())
        .unwrap_or_default();
    let folders: Vec<&Path> = settings
        .library_path
        .iter()
        .filter(|folder| !searched.contains(folder))
        .map(PathBuf::as_path)
        .collect();
    for name in ort::ep::cuda::CUDA_DYLIBS.iter().chain(ort::ep::cuda::CUDNN_DYLIBS) {
        if let Some(library) =
            folders.iter().map(|folder| folder.join(name)).find(|library| library.is_file())
        {
            let _ = ort::util::preload_dylib(library);
        }
    }
}
