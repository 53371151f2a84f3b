//! Other model servers whose clients a server answers, and how often.

use std::net::Ipv6Addr;
use std::str::FromStr;
use std::time::Duration;

use clap::ValueEnum;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, de};

use crate::QuantityError;
use crate::schema::rate::RequestRate;

/// The API of another model server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ValueEnum, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Dialect {
    /// `/predictions/NAME`, `/ping`, `/models`
    #[serde(rename = "torchserve")]
    #[value(name = "torchserve")]
    TorchServe,
    /// `/invocations`, `/ping`
    #[serde(rename = "sagemaker")]
    #[value(name = "sagemaker")]
    SageMaker,
    /// The routes in `AIP_PREDICT_ROUTE` and `AIP_HEALTH_ROUTE`
    Vertex,
    /// `/score`, `/`
    #[serde(rename = "azureml")]
    #[value(name = "azureml")]
    AzureMl,
    /// `/v1/models/NAME:predict`, `/v1/models`
    #[serde(rename = "kserve-v1")]
    #[value(name = "kserve-v1")]
    KServeV1,
    /// `/v1/models/NAME:predict`, `/v1/models/NAME/metadata`
    #[serde(rename = "tensorflow-serving")]
    #[value(name = "tensorflow-serving")]
    TensorFlowServing,
    /// The server of most tutorials: `/predict`, `/health`
    Flask,
}

/// Most requests of a client, written as `100/s` or `100/s:20`, where 20 requests may come at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateLimit {
    pub per_second: f64,
    /// Requests that may come at once; one second's worth if the text has none.
    pub burst: u32,
}

impl FromStr for RateLimit {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let wrong = || QuantityError::unreadable(text, "rate limit", "a rate such as 100/s, or 100/s:20");
        let (rate, burst) = text.split_once(':').map_or((text, None), |(rate, burst)| (rate, Some(burst)));
        let RequestRate(rate) = rate.parse()?;
        let per_second = rate.times_in(Duration::from_secs(1));
        if rate.is_zero() {
            return Err(wrong());
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive, and saturates")]
        let second = per_second.ceil() as u32;
        let burst = burst.map_or(Ok(second), |burst| burst.trim().parse().map_err(|_| wrong()))?;
        if burst == 0 { Err(wrong()) } else { Ok(Self { per_second, burst }) }
    }
}

impl<'de> Deserialize<'de> for RateLimit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// A name or an address under which a server is reached, without scheme and port. An IPv6 address is in brackets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostName(String);

impl HostName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for HostName {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let trimmed = text.trim();
        let bare = trimmed.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(trimmed);
        if let Ok(address) = bare.parse::<Ipv6Addr>() {
            return Ok(Self(format!("[{address}]")));
        }
        let is_name = trimmed.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte))
            && trimmed.bytes().any(|byte| byte.is_ascii_alphanumeric());
        let wrong = || {
            QuantityError::unreadable(text, "host", "a name without scheme and port, such as models.example")
        };
        if is_name { Ok(Self(trimmed.to_owned())) } else { Err(wrong()) }
    }
}

impl<'de> Deserialize<'de> for HostName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_neither_scheme_nor_port() {
        for (text, expected) in [
            ("models.example", "models.example"),
            (" my_gpu-1 ", "my_gpu-1"),
            ("10.0.0.5", "10.0.0.5"),
            ("FE80:0::1", "[fe80::1]"),
            ("[::1]", "[::1]"),
        ] {
            assert_eq!(text.parse::<HostName>().unwrap().as_str(), expected, "{text}");
        }
        for text in [
            "",
            ".",
            "*",
            "*.example",
            "https://a.example",
            "a.example:80",
            "a.example/b",
            "a b",
            "u@a",
            "[a]",
        ] {
            assert!(text.parse::<HostName>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_rate_limit_has_a_rate_and_maybe_a_burst() {
        for (text, per_second, burst) in
            [("100/s", 100.0, 100), ("100/s:20", 100.0, 20), ("30/min", 0.5, 1), ("2.5:7", 2.5, 7)]
        {
            assert_eq!(text.parse(), Ok(RateLimit { per_second, burst }), "{text}");
        }
        for text in ["", "0/s", "-1/s", "100/s:", "100/s:0", "100/s:-1", "100/fortnight", "nan/s", "inf"] {
            assert!(text.parse::<RateLimit>().is_err(), "{text}");
        }
    }
}
