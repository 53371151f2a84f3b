//! Where traces and metrics are sent, from the variables of OpenTelemetry:
//! <https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/>.

use std::time::Duration;

use cudock_base::text::percent;
use cudock_base::{Environment, ErrorKind, Report};

use crate::sampler::Sampler;

/// An error in the settings of the collector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExportError {
    #[error("{name} is `{value}`, and expected is {expected}")]
    Variable { name: &'static str, value: String, expected: &'static str },
    #[error("`{0}` is not the URL of an OpenTelemetry collector; expected one such as http://localhost:4318")]
    Endpoint(String),
}

impl Report for ExportError {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Input
    }
}

/// Where and how traces and metrics are sent.
#[derive(Clone, Debug, PartialEq)]
pub struct ExportSettings {
    /// The URL for traces; `None` if they are not sent.
    pub(crate) traces: Option<String>,
    /// The URL for metrics; `None` if they are not sent.
    pub(crate) metrics: Option<String>,
    /// Headers of each request, which may be secret.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) timeout: Duration,
    /// Describes this process in all traces and metrics.
    pub(crate) resource: Vec<(String, String)>,
    pub(crate) sampler: Sampler,
    /// Maximum number of spans that wait to be sent.
    pub(crate) queue: usize,
    /// Maximum number of spans that are sent at once.
    pub(crate) batch: usize,
    /// Longest time that spans wait.
    pub(crate) delay: Duration,
    pub(crate) metric_interval: Duration,
}

impl ExportSettings {
    /// The settings for a collector at `endpoint`, or at that in the environment; `None` if neither names one.
    /// `service` is the name of the service if the environment has none.
    pub fn new(
        endpoint: Option<&str>,
        service: &str,
        environment: &Environment,
    ) -> Result<Option<Self>, ExportError> {
        let text = |name: &str| Some(environment.get(name)?.to_string_lossy().trim().to_owned());
        if text("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return Ok(None);
        }
        let base = endpoint.map(str::to_owned).or_else(|| text("OTEL_EXPORTER_OTLP_ENDPOINT"));
        let url = |own: &str, exporter: &str, path: &str| {
            if text(exporter).is_some_and(|value| value == "none") {
                return None;
            }
            let own = if endpoint.is_none() { text(own) } else { None };
            own.or_else(|| Some(format!("{}{path}", base.as_deref()?.trim_end_matches('/'))))
        };
        let traces = url("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_TRACES_EXPORTER", "/v1/traces");
        let metrics = url("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "OTEL_METRICS_EXPORTER", "/v1/metrics");
        for url in traces.iter().chain(&metrics) {
            if !url.starts_with("http://") && !url.starts_with("https://") {
                return Err(ExportError::Endpoint(url.clone()));
            }
        }
        if traces.is_none() && metrics.is_none() {
            return Ok(None);
        }
        if let Some(value) = text("OTEL_EXPORTER_OTLP_PROTOCOL").filter(|value| value != "http/protobuf") {
            let expected = "http/protobuf";
            return Err(ExportError::Variable { name: "OTEL_EXPORTER_OTLP_PROTOCOL", value, expected });
        }
        let number = |name: &'static str, default: u64| match text(name) {
            None => Ok(default),
            Some(value) => value.parse().ok().filter(|number| *number > 0).ok_or(ExportError::Variable {
                name,
                value,
                expected: "a number above 0",
            }),
        };
        let size = |name, default| Ok(usize::try_from(number(name, default)?).unwrap_or(usize::MAX));
        let queue = size("OTEL_BSP_MAX_QUEUE_SIZE", 2048)?.min(MAX_QUEUE);
        Ok(Some(Self {
            traces,
            metrics,
            headers: pairs(&text("OTEL_EXPORTER_OTLP_HEADERS").unwrap_or_default()),
            timeout: Duration::from_millis(number("OTEL_EXPORTER_OTLP_TIMEOUT", 10_000)?),
            resource: resource(service, text("OTEL_SERVICE_NAME"), text("OTEL_RESOURCE_ATTRIBUTES")),
            sampler: sampler(text("OTEL_TRACES_SAMPLER"), text("OTEL_TRACES_SAMPLER_ARG").as_deref())?,
            queue,
            batch: size("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 512)?.min(queue),
            delay: Duration::from_millis(number("OTEL_BSP_SCHEDULE_DELAY", 5000)?),
            metric_interval: Duration::from_millis(number("OTEL_METRIC_EXPORT_INTERVAL", 60_000)?),
        }))
    }
}

/// Maximum number of spans that may wait, whatever the environment says.
const MAX_QUEUE: usize = 1 << 20;

fn sampler(name: Option<String>, argument: Option<&str>) -> Result<Sampler, ExportError> {
    let Some(value) = name else { return Ok(Sampler::default()) };
    let expected = "a sampler such as parentbased_traceidratio, with OTEL_TRACES_SAMPLER_ARG from 0 to 1";
    let name = "OTEL_TRACES_SAMPLER";
    Sampler::named(&value, argument).ok_or(ExportError::Variable { name, value, expected })
}

fn resource(default: &str, service: Option<String>, attributes: Option<String>) -> Vec<(String, String)> {
    let mut resource = pairs(&attributes.unwrap_or_default());
    let key = "service.name";
    if let Some(service) = service {
        resource.retain(|(other, _)| other != key);
        resource.push((key.to_owned(), service));
    } else if !resource.iter().any(|(other, _)| other == key) {
        resource.push((key.to_owned(), default.to_owned()));
    }
    resource
}

/// `key=value` pairs with commas between them, whose values are percent-encoded. Others are ignored, as the
/// specification requires.
fn pairs(text: &str) -> Vec<(String, String)> {
    let pair = |pair: &str| {
        let (key, value) = pair.split_once('=')?;
        let key = key.trim();
        (!key.is_empty()).then_some(())?;
        Some((key.to_owned(), percent::decode(value.trim())?))
    };
    text.split(',').filter_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(
        endpoint: Option<&str>,
        variables: &[(&str, &str)],
    ) -> Result<Option<ExportSettings>, ExportError> {
        ExportSettings::new(endpoint, "cudock", &Environment::of("/", variables.iter().copied()))
    }

    #[test]
    fn the_endpoint_comes_from_the_flag_or_the_environment() {
        let base = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318/");
        let own = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://t/x");
        let urls = |endpoint, variables: &[(&str, &str)]| {
            settings(endpoint, variables).unwrap().map(|settings| (settings.traces, settings.metrics))
        };
        let both = |traces: &str, metrics: &str| Some((Some(traces.to_owned()), Some(metrics.to_owned())));
        assert_eq!(urls(None, &[]), None);
        assert_eq!(urls(None, &[base]), both("http://c:4318/v1/traces", "http://c:4318/v1/metrics"));
        assert_eq!(urls(None, &[base, own]), both("https://t/x", "http://c:4318/v1/metrics"));
        assert_eq!(
            urls(Some("http://f:1"), &[base, own]),
            both("http://f:1/v1/traces", "http://f:1/v1/metrics")
        );
        assert_eq!(urls(None, &[own]), Some((Some("https://t/x".to_owned()), None)));
        assert_eq!(
            urls(None, &[base, ("OTEL_METRICS_EXPORTER", "none")]),
            Some((Some("http://c:4318/v1/traces".to_owned()), None))
        );
        assert_eq!(urls(None, &[base, ("OTEL_SDK_DISABLED", "TRUE")]), None);
    }

    #[test]
    fn the_service_has_a_name_and_attributes() {
        let resource = |variables: &[(&str, &str)]| {
            settings(Some("http://c:4318"), variables).unwrap().unwrap().resource
        };
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(resource(&[]), [pair("service.name", "cudock")]);
        let attributes = ("OTEL_RESOURCE_ATTRIBUTES", "service.name=a,region=west%20us, bad ,=x");
        assert_eq!(resource(&[attributes]), [pair("service.name", "a"), pair("region", "west us")]);
        assert_eq!(
            resource(&[attributes, ("OTEL_SERVICE_NAME", "b")]),
            [pair("region", "west us"), pair("service.name", "b")]
        );
    }

    #[test]
    fn what_cannot_be_used_is_an_error() {
        for (endpoint, variable) in [
            ("localhost:4318", ("PATH", "/")),
            ("http://c:4318", ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")),
            ("http://c:4318", ("OTEL_TRACES_SAMPLER", "sometimes")),
            ("http://c:4318", ("OTEL_BSP_MAX_QUEUE_SIZE", "0")),
            ("http://c:4318", ("OTEL_EXPORTER_OTLP_TIMEOUT", "10s")),
        ] {
            assert!(settings(Some(endpoint), &[variable]).is_err(), "{endpoint} {variable:?}");
        }
    }
}
