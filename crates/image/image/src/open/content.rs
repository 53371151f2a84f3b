//! What a resolved image consists of.

use std::sync::OnceLock;

use super::BlobSource;
use super::docker::DockerImage;
use super::graph::Graph;
use super::listing::Listed;

/// The content of a resolved image.
pub(super) enum Content {
    /// A manifest or an index.
    Documents { store: Box<dyn BlobSource>, listed: Listed },
    /// An image in an archive of docker, which has no manifest. Its layers are hashed where a digest is needed.
    Docker { image: DockerImage, graph: OnceLock<Graph> },
}

impl Content {
    pub(super) fn docker(image: DockerImage) -> Self {
        Content::Docker { image, graph: OnceLock::new() }
    }
}
