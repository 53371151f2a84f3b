//! `GET /openapi.json`: the routes and models of this server in OpenAPI 3.1, for generated clients.

use cudock_base::text::percent;
use cudock_tensor::envelope::Envelope;
use cudock_tensor::{DType, ResponseForm, Signature, TensorSpec};
use hyper::StatusCode;
use serde_json::{Map, Value, json};

use super::dialects::{self, DescribedRoute};
use super::response::{self, HttpResponse};
use crate::model::Model;
use crate::service::{ModelService, ServedModel};

/// Path, name and description of each route without parameters whose response is JSON.
const INFO_ROUTES: [(&str, &str, &str); 6] = [
    ("/health", "health", "State of the server, its models and devices."),
    ("/ready", "ready", "Whether requests are answered: 200 or 503."),
    ("/live", "live", "Whether the process responds."),
    ("/status", "status", "Counts and latencies of the last seconds."),
    ("/v2", "server_metadata", "Name, version and extensions of the server."),
    ("/v2/models/stats", "statistics", "Statistics of all models."),
];

/// Suffix of the path, prefix of the name, and description of each route of a model whose response is JSON.
const MODEL_ROUTES: [(&str, &str, &str); 4] = [
    ("", "metadata", "Inputs and outputs of the model."),
    ("/ready", "is_ready", "Whether the model answers requests: 200 or 503."),
    ("/config", "config", "Configuration of the model, in Triton's format."),
    ("/stats", "statistics", "Statistics of the model, in Triton's format."),
];

/// `GET /openapi.json`
pub(crate) fn openapi(service: &ModelService) -> HttpResponse {
    let all = service.all();
    let mut paths = Map::new();
    for (path, name, description) in INFO_ROUTES {
        paths.insert(path.to_owned(), json!({"get": operation(name, description, None, &json!({}))}));
    }
    let mut get = operation("metrics", "Metrics for Prometheus.", None, &json!({}));
    let text =
        json!({"200": {"description": "Success", "content": {"text/plain": {"schema": {"type": "string"}}}}});
    insert(&mut get, "responses", text);
    paths.insert("/metrics".to_owned(), json!({ "get": get }));
    for (index, served) in all.iter().enumerate() {
        // Requests that name no version go to the newest, which is the last one.
        let is_newest = all.get(index + 1).is_none_or(|next| next.file().name != served.file().name);
        if is_newest {
            add_model(served, &mut paths);
        }
    }
    if let (Ok(served), false) = (service.only_model(), service.settings.dialects.overrides("/predict")) {
        let (request, result) = predict_schemas(served.known().map(AsRef::as_ref));
        let post = operation("predict", "Run the model.", Some(&request), &result);
        paths.insert("/predict".to_owned(), json!({ "post": post }));
    }
    // Where two of them share a path, the first one answers.
    for route in service.settings.dialects.described().iter().rev() {
        add_foreign(route, &mut paths);
    }
    let (schemes, security) = if service.settings.server.keys.are_required() {
        let bearer = json!({"type": "http", "scheme": "bearer"});
        let api_key = json!({"type": "apiKey", "in": "header", "name": "x-api-key"});
        (json!({"bearer": bearer, "api_key": api_key}), json!([{"bearer": []}, {"api_key": []}]))
    } else {
        (json!({}), json!([]))
    };
    let document = json!({
        "openapi": "3.1.0",
        "info": {"title": "cudock serve", "version": env!("CARGO_PKG_VERSION")},
        "paths": paths,
        "components": {
            "schemas": {"Error": {"type": "object", "properties": {"error": {"type": "string"}}}},
            "securitySchemes": schemes,
        },
        "security": security,
    });
    response::json(StatusCode::OK, &document)
}

fn insert(object: &mut Value, key: &str, value: Value) {
    if let Some(object) = object.as_object_mut() {
        object.insert(key.to_owned(), value);
    }
}

/// Adds the routes of the newest version of a model.
fn add_model(served: &ServedModel, paths: &mut Map<String, Value>) {
    let name = &served.file().name;
    let encoded = percent::encode(name);
    let (request, result) = predict_schemas(served.known().map(AsRef::as_ref));
    let run = format!("Run the model `{name}`.");
    let post = operation(&format!("predict_{}", identifier(name)), &run, Some(&request), &result);
    paths.insert(format!("/predict/{encoded}"), json!({ "post": post }));
    let infer = operation(
        &format!("infer_{}", identifier(name)),
        &format!("{run} Open Inference Protocol."),
        Some(&tensors_schema("inputs")),
        &tensors_schema("outputs"),
    );
    paths.insert(format!("/v2/models/{encoded}/infer"), json!({ "post": infer }));
    for (suffix, prefix, description) in MODEL_ROUTES {
        let get = operation(&format!("{prefix}_{}", identifier(name)), description, None, &json!({}));
        paths.insert(format!("/v2/models/{encoded}{suffix}"), json!({ "get": get }));
    }
}

/// Adds a route of another API; those of the server itself that it replaces are not described.
fn add_foreign(route: &DescribedRoute, paths: &mut Map<String, Value>) {
    let DescribedRoute { dialect, path, is_predict } = route;
    let name = identifier(&format!("{dialect:?}_{path}"));
    let description = format!("As {} answers it.", dialects::product(*dialect));
    let operation = if *is_predict {
        let envelope = dialects::predict_api(*dialect).envelope;
        operation(&name, &description, Some(&envelope_schema(envelope)), &response_schema(envelope))
    } else {
        operation(&name, &description, None, &json!({}))
    };
    let method = if *is_predict { "post" } else { "get" };
    let mut item = json!({ method: operation });
    let parameters: Vec<Value> = ["model", "version"]
        .into_iter()
        .filter(|name| path.contains(&format!("{{{name}}}")))
        .map(|name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}}))
        .collect();
    if !parameters.is_empty() {
        insert(&mut item, "parameters", json!(parameters));
    }
    paths.insert(path.clone(), item);
}

fn operation(name: &str, description: &str, request: Option<&Value>, result: &Value) -> Value {
    let mut operation = json!({
        "operationId": name,
        "summary": description,
        "responses": {
            "200": {"description": "Success", "content": {"application/json": {"schema": result}}},
            "default": {
                "description": "Error",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
            },
        },
    });
    if let Some(request) = request {
        let body = json!({"required": true, "content": {"application/json": {"schema": request}}});
        insert(&mut operation, "requestBody", body);
    }
    operation
}

/// A name that clients can use as an identifier.
fn identifier(name: &str) -> String {
    let letters = name
        .chars()
        .map(|letter| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '_' });
    letters.collect()
}

/// The request and the response of `/predict`; a model that was never loaded may have any inputs.
fn predict_schemas(model: Option<&Model>) -> (Value, Value) {
    let signature = model.map(|model| &*model.signature);
    let input = signature.map_or(json!({}), |signature| values_schema(&signature.inputs, signature, false));
    let prediction =
        signature.map_or(json!({}), |signature| values_schema(&signature.outputs, signature, true));
    let names: Vec<&str> =
        signature.iter().flat_map(|it| &it.outputs).map(|spec| spec.name.as_str()).collect();
    let output =
        if names.is_empty() { json!({"type": "string"}) } else { json!({"type": "string", "enum": names}) };
    let request = json!({
        "type": "object",
        "required": ["input"],
        "additionalProperties": false,
        "properties": {
            "input": input,
            "outputs": {"type": "array", "items": output},
            "id": {"type": "string"},
            "parameters": {
                "type": "object",
                "additionalProperties": false,
                "properties": {
                    "priority": {"type": "integer", "minimum": 0},
                    "timeout_ms": {"type": "number", "exclusiveMinimum": 0},
                },
            },
        },
    });
    let result = json!({
        "type": "object",
        "required": ["prediction", "device"],
        "properties": {
            "prediction": prediction,
            "device": {"type": "string"},
            "id": {"type": "string"},
            "labels": {"type": "array", "items": {}},
        },
    });
    (request, result)
}

/// One tensor as its value, several as an object by name.
fn values_schema(specs: &[TensorSpec], signature: &Signature, is_output: bool) -> Value {
    let schema = |spec: &TensorSpec| {
        if spec.any_rank || spec.json {
            return json!({});
        }
        let whole = array_schema(&spec.shape, spec.dtype, is_output);
        if !signature.counts_rows() {
            return whole;
        }
        let row = array_schema(spec.shape.get(1..).unwrap_or_default(), spec.dtype, is_output);
        json!({"anyOf": [whole, row]})
    };
    if let [only] = specs {
        return schema(only);
    }
    let properties: Map<String, Value> = specs.iter().map(|spec| (spec.name.clone(), schema(spec))).collect();
    let names: Vec<&String> = if is_output { Vec::new() } else { properties.keys().collect() };
    json!({"type": "object", "required": names, "properties": properties})
}

/// Arrays nested to that shape.
fn array_schema(shape: &[Option<usize>], dtype: DType, is_output: bool) -> Value {
    let Some((size, rest)) = shape.split_first() else { return element_schema(dtype, is_output) };
    let mut schema = json!({"type": "array", "items": array_schema(rest, dtype, is_output)});
    if let Some(size) = size {
        insert(&mut schema, "minItems", json!(size));
        insert(&mut schema, "maxItems", json!(size));
    }
    schema
}

fn element_schema(dtype: DType, is_output: bool) -> Value {
    match dtype {
        DType::Bool => json!({"type": "boolean"}),
        DType::String => json!({"type": "string"}),
        // JSON has no NaN.
        DType::F16 | DType::BF16 | DType::F32 | DType::F64 if is_output => {
            json!({"type": ["number", "null"]})
        }
        DType::F16 | DType::BF16 | DType::F32 | DType::F64 => json!({"type": "number"}),
        _ => json!({"type": "integer"}),
    }
}

/// A request or a response of the Open Inference Protocol, whose tensors have that key.
fn tensors_schema(key: &str) -> Value {
    let tensor = json!({
        "type": "object",
        "required": ["name", "datatype", "shape", "data"],
        "properties": {
            "name": {"type": "string"},
            "datatype": {"type": "string"},
            "shape": {"type": "array", "items": {"type": "integer"}},
            "data": {"type": "array", "items": {}},
            "parameters": {"type": "object"},
        },
    });
    json!({
        "type": "object",
        "required": [key],
        "properties": {
            "id": {"type": "string"},
            "model_name": {"type": "string"},
            "model_version": {"type": "string"},
            key: {"type": "array", "items": tensor},
            "parameters": {"type": "object"},
        },
    })
}

/// The requests of another API: an object with one of its keys, or any array.
fn envelope_schema(envelope: &Envelope) -> Value {
    let objects = envelope
        .inputs
        .iter()
        .map(|(key, _)| json!({"type": "object", "required": [key], "properties": {*key: {}}}));
    let bare = envelope.bare.then(|| json!({"type": "array", "items": {}}));
    json!({"anyOf": objects.chain(bare).collect::<Vec<_>>()})
}

fn response_schema(envelope: &Envelope) -> Value {
    let mut forms: Vec<ResponseForm> = envelope.inputs.iter().map(|(_, form)| *form).collect();
    forms.extend(envelope.bare.then_some(ResponseForm::Bare));
    forms.dedup();
    let object = |key: &str| json!({"type": "object", "required": [key], "properties": {key: {}}});
    let schemas = forms.into_iter().map(|form| match form {
        ResponseForm::Prediction => object("prediction"),
        ResponseForm::Rows => object("predictions"),
        ResponseForm::Columns => object("outputs"),
        ResponseForm::Bare => json!({}),
    });
    json!({"anyOf": schemas.collect::<Vec<_>>()})
}
