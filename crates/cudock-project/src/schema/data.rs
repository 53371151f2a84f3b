//! `[data]`: what a workload reads.

use serde::Deserialize;

use crate::{ByteRate, ByteSize};

/// What a workload reads. Storage and network decide whether it keeps the GPU busy.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Data {
    /// How much lies there: `"500GB"`.
    pub size: Option<ByteSize>,
    /// Where: `"blob-hot"`, `"adls-gen2-hot"`, `"files-premium"`, `"local-nvme"` …
    pub storage: Option<String>,
    /// The region it lies in: `"westeurope"`; that of the machine if left out.
    pub region: Option<String>,
    /// How it is read.
    pub access: Option<DataAccess>,
    /// How often it is read from front to back: `3`.
    pub passes: Option<u32>,
    /// What one GPU uses up a second when it never waits: `"200MB/s"`.
    pub rate: Option<ByteRate>,
    /// What is read at a time, which is what storage charges by: `"4MiB"`.
    pub read_size: Option<ByteSize>,
    /// What leaves Azure in the end (of a service: each month): `"10GB"`.
    pub leaves: Option<ByteSize>,
}

/// How data is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DataAccess {
    /// From where it lies, while the GPU works.
    Stream,
    /// Copied to the machine's own disk first.
    Stage,
    /// Whichever is cheaper.
    Either,
}
