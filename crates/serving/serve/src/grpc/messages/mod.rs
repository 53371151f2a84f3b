//! The messages of the protocol, by their public field numbers. Fields that are never set or read here are omitted: on
//! the wire an absent field equals its default, and unknown ones are skipped. `ModelInferRequest` is parsed by hand, see
//! `infer`. Over HTTP, messages are sent as JSON with the same field names.

pub(in crate::grpc) mod encode;
pub(in crate::grpc) mod stream;

use bytes::Bytes;
use prost::Message;
use serde::Serialize;

use super::status::GrpcStatus;

/// The response of `ServerLive`, `ServerReady` and `ModelReady`, whose fields differ only in name.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ProbeResponse {
    #[prost(bool, tag = "1")]
    pub(crate) ready: bool,
}

/// The request of `ModelReady`, `ModelMetadata`, `ModelConfig` and `ModelStatistics`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ModelRequest {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) version: String,
}

#[derive(Clone, PartialEq, Message, Serialize)]
pub(crate) struct ServerMetadataResponse {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) version: String,
    #[prost(string, repeated, tag = "3")]
    pub(crate) extensions: Vec<String>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
pub(crate) struct ModelMetadataResponse {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, repeated, tag = "2")]
    pub(crate) versions: Vec<String>,
    #[prost(string, tag = "3")]
    pub(crate) platform: String,
    #[prost(message, repeated, tag = "4")]
    pub(crate) inputs: Vec<OutputTensor>,
    #[prost(message, repeated, tag = "5")]
    pub(crate) outputs: Vec<OutputTensor>,
}

/// `ModelMetadataResponse.TensorMetadata`, and `ModelInferResponse.InferOutputTensor`, which starts with the same
/// fields.
#[derive(Clone, PartialEq, Message, Serialize)]
pub(crate) struct OutputTensor {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) datatype: String,
    #[prost(int64, repeated, tag = "3")]
    pub(crate) shape: Vec<i64>,
}

/// `ModelInferResponse` without `raw_output_contents`, which are appended.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct InferResponseHead {
    #[prost(string, tag = "1")]
    pub(crate) model_name: String,
    #[prost(string, tag = "2")]
    pub(crate) model_version: String,
    #[prost(string, tag = "3")]
    pub(crate) id: String,
    #[prost(message, repeated, tag = "4")]
    pub(crate) parameters: Vec<ParameterEntry>,
    #[prost(message, repeated, tag = "5")]
    pub(crate) outputs: Vec<OutputTensor>,
}

/// An entry of a parameter map; a map is written as a list of entries.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ParameterEntry {
    #[prost(string, tag = "1")]
    pub(crate) key: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) value: Option<InferParameter>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct InferParameter {
    #[prost(bool, optional, tag = "1")]
    pub(crate) bool_param: Option<bool>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ModelConfigResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) config: Option<ModelConfig>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ModelConfig {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) platform: String,
    #[prost(int32, tag = "4")]
    pub(crate) max_batch_size: i32,
    #[prost(message, repeated, tag = "5")]
    pub(crate) input: Vec<ModelInput>,
    #[prost(message, repeated, tag = "6")]
    pub(crate) output: Vec<ModelOutput>,
    #[prost(message, optional, tag = "11")]
    pub(crate) dynamic_batching: Option<ModelDynamicBatching>,
    #[prost(string, tag = "17")]
    pub(crate) backend: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ModelInput {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(int32, tag = "2")]
    pub(crate) data_type: i32,
    #[prost(int64, repeated, tag = "4")]
    pub(crate) dims: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ModelOutput {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(int32, tag = "2")]
    pub(crate) data_type: i32,
    #[prost(int64, repeated, tag = "3")]
    pub(crate) dims: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ModelDynamicBatching {
    #[prost(int32, repeated, tag = "1")]
    pub(crate) preferred_batch_size: Vec<i32>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
pub(crate) struct ModelStatisticsResponse {
    #[prost(message, repeated, tag = "1")]
    pub(crate) model_stats: Vec<ModelStatistics>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
pub(crate) struct ModelStatistics {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) version: String,
    #[prost(uint64, tag = "4")]
    pub(crate) inference_count: u64,
    #[prost(uint64, tag = "5")]
    pub(crate) execution_count: u64,
    #[prost(message, optional, tag = "6")]
    pub(crate) inference_stats: Option<InferStatistics>,
    #[prost(message, repeated, tag = "7")]
    pub(crate) batch_stats: Vec<InferBatchStatistics>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
pub(crate) struct InferStatistics {
    #[prost(message, optional, tag = "1")]
    pub(crate) success: Option<StatisticDuration>,
    #[prost(message, optional, tag = "2")]
    pub(crate) fail: Option<StatisticDuration>,
    #[prost(message, optional, tag = "3")]
    pub(crate) queue: Option<StatisticDuration>,
    #[prost(message, optional, tag = "5")]
    pub(crate) compute_infer: Option<StatisticDuration>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
pub(crate) struct InferBatchStatistics {
    #[prost(uint64, tag = "1")]
    pub(crate) batch_size: u64,
    #[prost(message, optional, tag = "3")]
    pub(crate) compute_infer: Option<StatisticDuration>,
}

#[derive(Clone, Copy, PartialEq, Message, Serialize)]
pub(crate) struct StatisticDuration {
    #[prost(uint64, tag = "1")]
    pub(crate) count: u64,
    #[prost(uint64, tag = "2")]
    pub(crate) ns: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct RepositoryIndexRequest {
    #[prost(bool, tag = "2")]
    pub(crate) ready: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct RepositoryIndexResponse {
    #[prost(message, repeated, tag = "1")]
    pub(crate) models: Vec<ModelIndex>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
pub(crate) struct ModelIndex {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) version: String,
    #[prost(string, tag = "3")]
    pub(crate) state: String,
    #[prost(string, tag = "4")]
    pub(crate) reason: String,
}

/// The request of `RepositoryModelLoad` and `RepositoryModelUnload`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct RepositoryModelRequest {
    #[prost(string, tag = "2")]
    pub(crate) model_name: String,
    #[prost(message, repeated, tag = "3")]
    pub(crate) parameters: Vec<ParameterEntry>,
}

/// The request of `grpc.health.v1.Health`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct HealthCheckRequest {
    #[prost(string, tag = "1")]
    pub(crate) service: String,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct HealthCheckResponse {
    #[prost(enumeration = "ServingStatus", tag = "1")]
    pub(crate) status: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum ServingStatus {
    Unknown = 0,
    Serving = 1,
    NotServing = 2,
    ServiceUnknown = 3,
}

pub(in crate::grpc) fn decode<M: Message + Default>(message: Bytes) -> Result<M, GrpcStatus> {
    M::decode(message).map_err(|error| GrpcStatus::invalid(format!("cannot decode the message: {error}")))
}
