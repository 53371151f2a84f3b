//! What a sweep never exceeds.

use std::time::Duration;

use cudock_base::{TimeSpan, Usd};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de};

/// What a sweep never exceeds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "LimitOptions")]
pub struct SweepLimits {
    /// Trials in total; needed unless `sampler = "grid"`, or `timeout` or `dollars` ends the sweep.
    pub trials: Option<u32>,
    /// Trials at the same time; as many as there are GPUs for if absent.
    pub concurrent: Option<u32>,
    // Of one attempt.
    /// Time of one trial: `"20m"`.
    #[serde(deserialize_with = "time")]
    #[schemars(with = "Option<TimeSpan>")]
    pub trial_timeout: Option<Duration>,
    // Not the time while it was paused or killed.
    /// Time of the sweep, while it is active: `"8h"`.
    #[serde(deserialize_with = "time")]
    #[schemars(with = "Option<TimeSpan>")]
    pub timeout: Option<Duration>,
    // Of all attempts.
    /// US dollars: `12.5`.
    #[serde(deserialize_with = "dollars")]
    #[schemars(with = "Option<f64>")]
    pub dollars: Option<Usd>,
}

fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    TimeSpan::deserialize(deserializer).map(|time| Some(time.0))
}

fn dollars<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Usd>, D::Error> {
    let dollars = f64::deserialize(deserializer)?;
    let amount = Usd::nearest(dollars).filter(|amount| *amount > Usd::ZERO);
    let invalid = || format!("invalid amount `{dollars}`: expected US dollars such as 20 or 12.5");
    amount.map(Some).ok_or_else(|| de::Error::custom(invalid()))
}

/// Limits as the journal has them: times in milliseconds, and money as text, so that no digit is lost.
#[derive(Serialize, Deserialize)]
#[serde(remote = "SweepLimits")]
pub(super) struct SweepLimitsRecord {
    trials: Option<u32>,
    concurrent: Option<u32>,
    #[serde(with = "crate::encoding::option_millis")]
    trial_timeout: Option<Duration>,
    #[serde(with = "crate::encoding::option_millis")]
    timeout: Option<Duration>,
    #[serde(with = "crate::encoding::option_usd")]
    dollars: Option<Usd>,
}
