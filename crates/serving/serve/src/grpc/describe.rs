//! Metadata, configuration and statistics of server and models.

use std::sync::Arc;

use cudock_server::Histogram;
use cudock_tensor::{DType, Signature, TensorSpec};

use super::messages::{
    InferBatchStatistics, InferStatistics, ModelConfig, ModelConfigResponse, ModelDynamicBatching,
    ModelIndex, ModelInput, ModelMetadataResponse, ModelOutput, ModelStatistics, ModelStatisticsResponse,
    OutputTensor, RepositoryIndexResponse, ServerMetadataResponse, StatisticDuration,
};
use crate::ModelListing;
use crate::metrics::{BatchSize, ModelTotals};
use crate::model::Model;

/// The platform name of ONNX models for Triton's clients.
const PLATFORM: &str = "onnxruntime_onnx";

/// Supported extensions of the protocol.
const EXTENSIONS: [&str; 4] = ["binary_tensor_data", "model_configuration", "model_repository", "statistics"];

pub(crate) fn server_metadata() -> ServerMetadataResponse {
    ServerMetadataResponse {
        name: "cudock".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        extensions: EXTENSIONS.map(str::to_owned).into(),
    }
}

pub(crate) fn model_metadata<'version>(
    model: &Model,
    versions: impl Iterator<Item = &'version str>,
) -> ModelMetadataResponse {
    metadata(model.name(), versions.map(str::to_owned).collect(), &model.signature)
}

fn metadata(name: &str, versions: Vec<String>, signature: &Signature) -> ModelMetadataResponse {
    let tensor = |spec: &TensorSpec| OutputTensor {
        name: spec.name.clone(),
        datatype: spec.dtype.protocol_name().to_owned(),
        shape: spec.protocol_shape(),
    };
    ModelMetadataResponse {
        name: name.to_owned(),
        versions,
        platform: PLATFORM.to_owned(),
        inputs: signature.inputs.iter().map(tensor).collect(),
        outputs: signature.outputs.iter().map(tensor).collect(),
    }
}

/// The model as a Triton configuration: dimensions are those of one row if rows share batches.
pub(crate) fn model_config(model: &Model) -> ModelConfigResponse {
    let preferred = &model.settings.batcher.preferred_rows;
    let config = config(model.name(), &model.signature, model.max_rows(), preferred);
    ModelConfigResponse { config: Some(config) }
}

fn config(name: &str, signature: &Signature, max_rows: usize, preferred: &[usize]) -> ModelConfig {
    let parts = |spec: &TensorSpec| {
        let dims = spec.protocol_shape().into_iter().skip(usize::from(signature.batched)).collect();
        (spec.name.clone(), data_type(spec.dtype), dims)
    };
    let input = |spec| {
        let (name, data_type, dims) = parts(spec);
        ModelInput { name, data_type, dims }
    };
    let output = |spec| {
        let (name, data_type, dims) = parts(spec);
        ModelOutput { name, data_type, dims }
    };
    let size = |rows: usize| i32::try_from(rows).unwrap_or(i32::MAX);
    ModelConfig {
        name: name.to_owned(),
        platform: PLATFORM.to_owned(),
        backend: "onnxruntime".to_owned(),
        max_batch_size: if signature.batched { size(max_rows) } else { 0 },
        input: signature.inputs.iter().map(input).collect(),
        output: signature.outputs.iter().map(output).collect(),
        dynamic_batching: signature.batched.then(|| ModelDynamicBatching {
            preferred_batch_size: preferred.iter().map(|&rows| size(rows)).collect(),
        }),
    }
}

/// `inference.DataType`.
const fn data_type(dtype: DType) -> i32 {
    match dtype {
        DType::Bool => 1,
        DType::U8 => 2,
        DType::U16 => 3,
        DType::U32 => 4,
        DType::U64 => 5,
        DType::I8 => 6,
        DType::I16 => 7,
        DType::I32 => 8,
        DType::I64 => 9,
        DType::F16 => 10,
        DType::F32 => 11,
        DType::F64 => 12,
        DType::String => 13,
        DType::BF16 => 14,
    }
}

pub(crate) fn statistics(models: &[Arc<Model>]) -> ModelStatisticsResponse {
    let statistics =
        |model: &Arc<Model>| model_statistics(model.name(), model.version(), &model.queue.metrics.totals());
    ModelStatisticsResponse { model_stats: models.iter().map(statistics).collect() }
}

fn model_statistics(name: &str, version: &str, totals: &ModelTotals) -> ModelStatistics {
    let nanoseconds = |histogram: &Histogram| u64::try_from(histogram.sum().as_nanos()).unwrap_or(u64::MAX);
    let (queue, compute) = (nanoseconds(&totals.stages.queue), nanoseconds(&totals.stages.compute));
    let counts = &totals.counts;
    let requests = |ns| Some(StatisticDuration { count: counts.requests, ns });
    let batches = |size: &BatchSize| InferBatchStatistics {
        batch_size: size.rows as u64,
        compute_infer: Some(StatisticDuration { count: size.count, ns: size.nanos }),
    };
    ModelStatistics {
        name: name.to_owned(),
        version: version.to_owned(),
        inference_count: counts.rows,
        execution_count: counts.batches,
        inference_stats: Some(InferStatistics {
            success: requests(queue.saturating_add(compute)),
            fail: Some(StatisticDuration { count: counts.failed, ns: 0 }),
            queue: requests(queue),
            compute_infer: requests(compute),
        }),
        batch_stats: totals.sizes.iter().map(batches).collect(),
    }
}

/// Lists the models; only those that are ready, if `ready`.
pub(crate) fn index(models: Vec<ModelListing>, ready: bool) -> RepositoryIndexResponse {
    let models = models.into_iter().filter(|entry| entry.ready || !ready).map(|entry| ModelIndex {
        name: entry.name,
        version: entry.version,
        state: if entry.ready { "READY" } else { "UNAVAILABLE" }.to_owned(),
        reason: entry.reason,
    });
    RepositoryIndexResponse { models: models.collect() }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use prost::Message;

    use super::super::fixtures;
    use super::*;
    use crate::metrics::RequestCounts;

    #[test]
    fn messages_match_those_of_the_official_classes() {
        let signature = Signature {
            inputs: vec![TensorSpec::new("x", DType::F16, [None, Some(3), None])],
            outputs: vec![TensorSpec::new("y", DType::String, [None, Some(1)])],
            batched: true,
        };
        let config = ModelConfigResponse { config: Some(config("model", &signature, 32, &[8, 32])) };
        assert_eq!(config.encode_to_vec(), fixtures::message("config"));
        let metadata = metadata("model", vec!["1".to_owned(), "2".to_owned()], &signature);
        assert_eq!(metadata.encode_to_vec(), fixtures::message("metadata"));
        let counts = RequestCounts { requests: 5, rows: 9, batches: 2, failed: 1, ..Default::default() };
        let sizes = vec![BatchSize { rows: 4, count: 1, nanos: 400 }];
        let mut totals = ModelTotals { counts, sizes, ..ModelTotals::default() };
        totals.stages.queue.record(Duration::from_nanos(100));
        totals.stages.compute.record(Duration::from_nanos(1000));
        let statistics =
            ModelStatisticsResponse { model_stats: vec![model_statistics("model", "1", &totals)] };
        assert_eq!(statistics.encode_to_vec(), fixtures::message("statistics"));
        let index = index(vec![listing("bad", false, "not ONNX")], false);
        assert_eq!(index.encode_to_vec(), fixtures::message("index"));
    }

    #[test]
    fn a_model_without_batching_keeps_its_full_shape() {
        let inputs = vec![TensorSpec::new("x", DType::F32, [Some(1), None])];
        let signature = Signature { inputs, outputs: Vec::new(), batched: false };
        let config = config("model", &signature, 32, &[8]);
        assert_eq!((config.max_batch_size, config.dynamic_batching), (0, None));
        assert_eq!(config.input[0].dims, [1, -1]);
    }

    #[test]
    fn every_data_type_has_a_distinct_number() {
        let mut numbers = DType::ALL.map(data_type);
        numbers.sort_unstable();
        assert_eq!(numbers, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]);
    }

    fn listing(name: &str, ready: bool, reason: &str) -> ModelListing {
        ModelListing { name: name.to_owned(), version: "1".to_owned(), ready, reason: reason.to_owned() }
    }

    #[test]
    fn only_ready_models_are_listed_on_request() {
        let models = || vec![listing("good", true, ""), listing("bad", false, "not ONNX")];
        assert_eq!(index(models(), true).models.len(), 1);
        let all = index(models(), false).models;
        assert_eq!((all[0].state.as_str(), all[0].reason.as_str()), ("READY", ""));
        assert_eq!((all[1].state.as_str(), all[1].reason.as_str()), ("UNAVAILABLE", "not ONNX"));
    }
}
