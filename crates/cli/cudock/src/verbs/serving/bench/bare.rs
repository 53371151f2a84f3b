//! Measures a model without a server.

use std::path::Path;

use cudock_cli::BenchArgs;
use cudock_engine::{Engine, EngineSettings, Provider};
use cudock_engine_onnx::{OnnxEngine, OnnxSettings};
use cudock_loadgen::engine_bench::{EngineBenchError, EngineReport};
use cudock_project::DeviceChoice;

use super::bare_text;
use super::report::EngineBenchReport;
use crate::failure::{Failure, Outcome, chain};
use crate::output::{self, Format, status, warning};
use crate::steps::runtime;

pub(crate) fn run(args: &BenchArgs, model: &Path, format: Format) -> Result<Outcome, Failure> {
    if args.engine.batch.contains(&0) || args.rows.contains(&0) {
        return Err(Failure::input("the number of rows is zero"));
    }
    let mut engine = load(args, model)?;
    for (provider, reason) in &engine.device().skipped_providers {
        warning(format!("{provider:?} is not used: {reason}"));
    }
    let measured = args.engine_bench().run(&mut engine, &|batch| status(format!("batches of {batch} …")));
    let EngineReport { device, runs, best_batch, json } = measured.map_err(|error| match error {
        EngineBenchError::Payload(error) => error.into(),
        error => Failure::outside(chain(&error)),
    })?;
    let model = model.display().to_string();
    let report = EngineBenchReport {
        schema: 1,
        model,
        device,
        sessions: args.engine.sessions,
        runs,
        best_batch,
        json,
    };
    match format {
        Format::Text => bare_text::print(&report),
        Format::Json => output::json(&report),
    }
    Ok(Outcome::Yes)
}

fn load(args: &BenchArgs, model: &Path) -> Result<OnnxEngine, Failure> {
    if !model.is_file() {
        return Err(
            Failure::input(format!("{} not found", model.display())).hint("pass an ONNX file with --model")
        );
    }
    let engine = &args.engine;
    let device = args.device.unwrap_or(DeviceChoice::Cpu).resolve(cudock_host::has_gpu);
    let on_gpu = device.is_gpu();
    let settings = runtime::provide(model, on_gpu, args.offline)?;
    let processors = || std::thread::available_parallelism().map_or(1, usize::from);
    let settings = EngineSettings {
        providers: match device {
            DeviceChoice::Auto | DeviceChoice::Cpu => vec![Provider::Cpu],
            DeviceChoice::Cuda => vec![Provider::Cuda],
            DeviceChoice::TensorRt => vec![Provider::TensorRt, Provider::Cuda],
        },
        gpu: engine.gpu,
        threads: engine.engine_threads.unwrap_or_else(processors),
        lanes: engine.lanes.unwrap_or(engine.sessions).max(engine.sessions).max(1),
        kind: OnnxSettings {
            sessions: engine.sessions.max(1),
            nhwc: engine.nhwc,
            graphs: if engine.graphs { engine.batch.clone() } else { Vec::new() },
            pinned: on_gpu && !engine.no_pinned,
            io_binding: !engine.no_io_binding,
            ..settings.kind
        },
        ..settings
    };
    OnnxEngine::load(&settings).map_err(|error| Failure::outside(chain(&error)))
}
