//! `[start]`: what a start takes, apart from what the service takes to give a machine.

use serde::Deserialize;

use crate::{ByteSize, Span};

/// What a start takes.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Start {
    /// What is fetched of the image: `"4GB"`. Read from its manifest if left out and `workload.image` is given.
    pub image_size: Option<ByteSize>,
    /// What the image takes on disk: `"10GB"`.
    pub image_unpacked: Option<ByteSize>,
    /// Weights that are fetched apart from the image: `"14GB"`.
    pub weights: Option<ByteSize>,
    /// From the program's start until it is ready, weights in GPU memory included: `"30s"`.
    pub ready: Option<Span>,
    /// What the driver compiles at first use: `"20s"`.
    pub jit: Option<Span>,
}
