//! TensorFlow Serving: <https://www.tensorflow.org/tfx/serving/api_rest>.

use cudock_server::HttpRejection;
use cudock_tensor::{DType, TensorSpec};
use hyper::StatusCode;
use serde_json::{Map, Value, json};

use super::foreign_call::ForeignCall;
use super::v1;
use crate::ServeError;
use crate::http::response::{self, HttpResponse};
use crate::http::route::ModelName;
use crate::service::ModelService;

pub(super) fn call(parts: &[&str]) -> Result<Option<ForeignCall>, HttpRejection> {
    v1::call(parts)
}

/// `GET /v1/models/NAME`: the state of one version, or of all.
pub(super) fn status(service: &ModelService, model: &ModelName) -> Result<HttpResponse, ServeError> {
    service.find(&model.name, model.version.as_deref())?;
    let all = service.all();
    let is_asked = |version: &str| model.version.as_deref().is_none_or(|asked| asked == version);
    let versions = all.iter().filter(|served| served.file().name == model.name);
    let versions = versions.filter(|served| is_asked(&served.file().version)).map(|served| {
        let state = if service.is_model_ready(served) { "AVAILABLE" } else { "LOADING" };
        json!({
            "version": served.file().version,
            "state": state,
            "status": {"error_code": "OK", "error_message": ""},
        })
    });
    let report = json!({ "model_version_status": versions.collect::<Vec<_>>() });
    Ok(response::json(StatusCode::OK, &report))
}

/// `GET /v1/models/NAME/metadata`
pub(super) async fn metadata(service: &ModelService, model: &ModelName) -> Result<HttpResponse, ServeError> {
    let model = service.model(&model.name, model.version.as_deref()).await?;
    let signature = &model.signature;
    let report = json!({
        "model_spec": {"name": model.name(), "signature_name": "", "version": model.version()},
        "metadata": {"signature_def": {"signature_def": {"serving_default": {
            "inputs": tensors(&signature.inputs),
            "outputs": tensors(&signature.outputs),
            "method_name": "tensorflow/serving/predict",
        }}}},
    });
    Ok(response::json(StatusCode::OK, &report))
}

fn tensors(specs: &[TensorSpec]) -> Map<String, Value> {
    let tensor = |spec: &TensorSpec| {
        let sizes = spec.shape.iter().map(|size| size.map_or("-1".to_owned(), |size| size.to_string()));
        let dimensions: Vec<Value> = sizes.map(|size| json!({"size": size, "name": ""})).collect();
        json!({
            "dtype": data_type(spec.dtype),
            "tensor_shape": {"dim": dimensions, "unknown_rank": spec.any_rank},
            "name": format!("{}:0", spec.name),
        })
    };
    specs.iter().map(|spec| (spec.name.clone(), tensor(spec))).collect()
}

/// `tensorflow.DataType`.
const fn data_type(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "DT_BOOL",
        DType::U8 => "DT_UINT8",
        DType::U16 => "DT_UINT16",
        DType::U32 => "DT_UINT32",
        DType::U64 => "DT_UINT64",
        DType::I8 => "DT_INT8",
        DType::I16 => "DT_INT16",
        DType::I32 => "DT_INT32",
        DType::I64 => "DT_INT64",
        DType::F16 => "DT_HALF",
        DType::BF16 => "DT_BFLOAT16",
        DType::F32 => "DT_FLOAT",
        DType::F64 => "DT_DOUBLE",
        DType::String => "DT_STRING",
    }
}
