//! Sessions on each provider.

use std::sync::OnceLock;

use cudock_engine::Provider;
use ort::environment::Environment;
use ort::ep::{ArenaExtendStrategy, CUDA, ExecutionProvider, TensorRT, cuda::ConvAlgorithmSearch};
use ort::logging::LogLevel;
use ort::session::Session;
use ort::session::builder::GraphOptimizationLevel;

use crate::OnnxEngineSettings;
use crate::cuda::CudaStream;
use crate::memory_limit::MemoryLimit;
use crate::model_data::ModelData;

/// Fusions of ONNX Runtime whose kernels need cuDNN, where the operators that they replace do not.
const CUDNN_FUSIONS: &str = "AttentionFusion;BiasSoftmaxFusion";

/// Opens a session on one provider, with the CPU as fallback for unsupported operators.
pub(crate) fn open(
    environment: &Environment,
    settings: &OnnxEngineSettings,
    model: &ModelData,
    provider: Provider,
    graphs: bool,
    stream: Option<&CudaStream>,
) -> ort::Result<Session> {
    // Spinning threads would take CPU time from the server. Memory is planned by shape; operators run one after
    // another, each on all threads.
    let mut builder = Session::builder(environment)?
        .with_optimization_level(GraphOptimizationLevel::All)?
        .with_intra_threads(settings.threads)?
        .with_inter_threads(1)?
        .with_intra_op_spinning(false)?
        .with_inter_op_spinning(false)?
        .with_memory_pattern(true)?
        .with_log_level(LogLevel::Fatal)?;
    if provider.is_gpu() && !has_cudnn() {
        builder = builder.with_config_entry("optimization.disable_specified_optimizers", CUDNN_FUSIONS)?;
    }
    match provider {
        Provider::Cpu => {}
        Provider::Cuda => cuda(settings, graphs, stream)?.register(&mut builder)?,
        Provider::TensorRt => {
            tensorrt(settings, stream)?.register(&mut builder)?;
            cuda(settings, false, stream)?.register(&mut builder)?;
        }
    }
    model.commit(&mut builder)
}

/// Whether the CUDA provider will find cuDNN, which it opens by name. Images for models that do not need it lack it.
fn has_cudnn() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    let mut names = ort::ep::cuda::CUDNN_DYLIBS.iter();
    *FOUND.get_or_init(|| names.next().is_some_and(|shim| ort::util::preload_dylib(*shim).is_ok()))
}

fn cuda(settings: &OnnxEngineSettings, graphs: bool, stream: Option<&CudaStream>) -> ort::Result<CUDA> {
    let search = if settings.kind.exhaustive {
        ConvAlgorithmSearch::Exhaustive
    } else {
        ConvAlgorithmSearch::Heuristic
    };
    let mut provider = CUDA::default()
        .with_device_id(device(settings)?)
        .with_arena_extend_strategy(ArenaExtendStrategy::NextPowerOfTwo)
        .with_conv_algorithm_search(search)
        .with_prefer_nhwc(settings.kind.nhwc)
        .with_cuda_graph(graphs);
    if let Some(limit) = MemoryLimit::of(settings) {
        // A limit also keeps the arena from growing to twice what it needs.
        provider = provider
            .with_memory_limit(limit.session)
            .with_arena_extend_strategy(ArenaExtendStrategy::SameAsRequested);
    }
    Ok(match stream {
        Some(stream) => stream.assign_to_cuda(provider),
        None => provider,
    })
}

fn tensorrt(settings: &OnnxEngineSettings, stream: Option<&CudaStream>) -> ort::Result<TensorRT> {
    let mut provider = TensorRT::default().with_device_id(device(settings)?);
    if let Some(limit) = MemoryLimit::of(settings) {
        provider = provider.with_max_workspace_size(limit.session);
    }
    if let Some(directory) = &settings.kind.engine_cache {
        let directory = directory.display();
        provider = provider
            .with_engine_cache(true)
            .with_engine_cache_path(directory.to_string())
            .with_timing_cache(true)
            .with_timing_cache_path(directory.to_string());
    }
    Ok(match stream {
        Some(stream) => stream.assign_to_tensorrt(provider),
        None => provider,
    })
}

fn device(settings: &OnnxEngineSettings) -> ort::Result<i32> {
    i32::try_from(settings.gpu).map_err(|_| ort::Error::new(format!("invalid GPU index {}", settings.gpu)))
}
