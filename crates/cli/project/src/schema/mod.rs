//! The keys of `cudock.toml`.

/// Combines every field, so that the compiler reports one that is missing here.
macro_rules! combine {
    ($options:ident, $fallback:ident, $($field:ident)*) => {
        Self { $($field: $options.$field.or($fallback.$field)),* }
    };
}

mod data;
mod deploy;
mod gateway;
mod image;
mod lint;
mod needs;
mod one_or_many;
mod rate;
mod serve;
mod spot;
mod start;
mod workload;

use std::collections::BTreeMap;

use cudock_sweep::SweepOptions;
use schemars::JsonSchema;
use serde::Deserialize;

pub use data::Data;
pub use deploy::{Deploy, DeployTarget, NamedTarget};
pub use gateway::GatewayOptions;
pub use image::ImageBuild;
pub use lint::{FailLevel, Lint};
pub use needs::{CapabilityRange, Needs};
pub use rate::{DayRate, RequestRate};
pub use serve::inputs::{
    ImageColor, ImageFilter, ImageLayout, ImageOptions, ImageSize, ScoreFunction, TextOptions,
};
pub use serve::routes::{Dialect, HostName, RateLimit};
pub use serve::tensor::{ElementType, TensorDeclaration};
pub use serve::{DeviceChoice, KeepLoaded, Precision, ServeOptions, TryModel};
pub use spot::{SpotChoice, SpotUse};
pub use start::Start;
pub use workload::{Workload, WorkloadKind};

/// The whole file.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Manifest {
    /// Name of the project; that of the directory if absent.
    pub name: Option<String>,
    pub workload: Workload,
    /// What it needs; found by inspection where absent.
    pub needs: Needs,
    pub data: Data,
    /// What a start costs.
    pub start: Start,
    /// Where it may run.
    pub deploy: Deploy,
    /// Places that `cudock up --on NAME` deploys to, by name.
    pub targets: BTreeMap<String, NamedTarget>,
    /// How a model is served.
    pub serve: ServeOptions,
    /// What stands in front of a model server.
    pub gateway: GatewayOptions,
    /// What an image is made of.
    pub image: Option<ImageBuild>,
    /// How Dockerfiles are linted.
    pub lint: Lint,
    /// A hyperparameter sweep.
    pub sweep: Option<SweepOptions>,
}
