//! `[start]`: what a start costs, apart from the service's time to provide a machine.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::{ByteSize, TimeSpan};

/// What a start costs.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Start {
    /// Compressed size of the image: `"4GB"`. Read from its manifest if absent and `workload.image` is set.
    #[schemars(extend("pattern" = "[1-9]"))]
    pub image_size: Option<ByteSize>,
    /// Unpacked size of the image: `"10GB"`.
    pub image_unpacked: Option<ByteSize>,
    /// Weights that are downloaded separately: `"14GB"`.
    pub weights: Option<ByteSize>,
    /// Time from the program's start until it is ready, including loading the weights: `"30s"`.
    pub ready: Option<TimeSpan>,
    /// Time the driver compiles on first use: `"20s"`.
    pub jit: Option<TimeSpan>,
}
