//! `[data]`: the data that a workload reads.

use cudock_facts::tables::DataAccess;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{ByteRate, ByteSize};

/// The data that a workload reads. Storage and network decide whether the GPU stays busy.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Data {
    /// Its size: `"500GB"`.
    #[schemars(extend("pattern" = "[1-9]"))]
    pub size: Option<ByteSize>,
    /// Its storage: `"blob-hot"`, `"adls-gen2-hot"`, `"files-premium"`, `"local-nvme"` …
    pub storage: Option<String>,
    /// Its region: `"westeurope"`; that of the machine if absent.
    pub region: Option<String>,
    /// How it is read.
    pub access: Option<DataAccess>,
    /// Number of full passes: `3`.
    #[schemars(extend("minimum" = 1))]
    pub passes: Option<u32>,
    /// Rate at which one GPU that never waits consumes it: `"200MB/s"`.
    #[schemars(extend("pattern" = "[1-9]"))]
    pub rate: Option<ByteRate>,
    /// Size of one read, for which storage charges: `"4MiB"`.
    #[schemars(extend("pattern" = "[1-9]"))]
    pub read_size: Option<ByteSize>,
    /// Data that leaves Azure in the end (for a service: per month): `"10GB"`.
    pub leaves: Option<ByteSize>,
}
