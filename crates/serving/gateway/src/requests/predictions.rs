//! Which requests to upstreams are predictions.
//!
//! The gateway does not know the paths of its upstreams, so a POST may change anything there, and web pages of other origins
//! may not send it. A prediction changes nothing: it may be sent to the path whose requests share batches, and to those that
//! the common model servers document.

/// Paths of predictions. A star is one segment.
const PATHS: [&str; 23] = [
    // cudock and Flask, TorchServe, SageMaker, Azure Machine Learning
    "/predict",
    "/predict/*",
    "/predict/*/*",
    "/predictions/*",
    "/predictions/*/*",
    "/invocations",
    "/score",
    // The Open Inference Protocol, and Triton's extension for generated text
    "/v2/models/*/infer",
    "/v2/models/*/versions/*/infer",
    "/v2/models/*/generate",
    "/v2/models/*/versions/*/generate",
    "/v2/models/*/generate_stream",
    "/v2/models/*/versions/*/generate_stream",
    // TensorFlow Serving, KServe
    "/v1/models/*:predict",
    "/v1/models/*/versions/*:predict",
    // OpenAI, as vLLM and others have it
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/embeddings",
    // Text Generation Inference, Ollama
    "/generate",
    "/generate_stream",
    "/api/generate",
    "/api/chat",
    "/api/embed",
];

/// Whether a POST to a path is a prediction, if it is not to that of the batches.
pub(crate) fn is_prediction(path: &str) -> bool {
    // An upstream that resolves dots or escaped slashes takes the path for another.
    let is_plain = !path.contains("/.") && !path.contains("//") && !path.contains(['%', '\\', ';']);
    is_plain && PATHS.iter().any(|pattern| matches(pattern, path))
}

fn matches(pattern: &str, path: &str) -> bool {
    let (mut wanted, mut found) = (pattern.split('/'), path.split('/'));
    loop {
        match (wanted.next(), found.next()) {
            (None, None) => return true,
            (Some(wanted), Some(found)) if matches_segment(wanted, found) => {}
            _ => return false,
        }
    }
}

fn matches_segment(pattern: &str, segment: &str) -> bool {
    match pattern.strip_prefix('*') {
        Some(end) => segment.strip_suffix(end).is_some_and(|name| !name.is_empty()),
        None => pattern == segment,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn predictions_of_common_servers_are_known() {
        for path in [
            "/predict",
            "/predict/digits/1",
            "/predictions/resnet",
            "/v2/models/m/versions/2/infer",
            "/v1/models/half_plus_two:predict",
            "/v1/models/m/versions/3:predict",
            "/v1/chat/completions",
        ] {
            assert!(is_prediction(path), "{path}");
        }
    }

    #[test]
    fn what_manages_models_is_not_a_prediction_however_it_is_written() {
        for path in [
            "/",
            "/predict/",
            "/predictions",
            "/predictions/",
            "/models",
            "/models/m",
            "/v2/repository/models/m/load",
            "/v2/repository/models/m/unload",
            "/v2/models/m",
            "/v2/models/m/trace/setting",
            "/v1/models/:predict",
            "/v1/models/m:explain",
            "/v1/load_lora_adapter",
            "/api/delete",
            "/predictions/../models",
            "/predictions/..",
            "/predict/%2e%2e/models",
            "/predict/..%2fmodels",
            "/predict//models",
            "/predict/a;/models",
            "/predict/..\\models",
        ] {
            assert!(!is_prediction(path), "{path}");
        }
    }
}
