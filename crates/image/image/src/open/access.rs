//! How an image that a user named is reached: from a local file, a daemon of this machine, or a registry.

use std::sync::Arc;

use cudock_base::Environment;
use cudock_http::Progress;
use cudock_registry::{Client, Options, daemon};

use super::{ImageSource, OpenOptions, ResolvedImage};
use crate::error::ImageError;
use crate::manifest::Platform;

/// When an image is fetched from its registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pull {
    /// The registry resolves the name anew.
    Always,
    /// Only where the image is not on this machine.
    Missing,
    /// Never: without the image on this machine there is an error.
    Never,
}

impl Pull {
    /// Its spelling in `--pull`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::Missing => "missing",
            Self::Never => "never",
        }
    }
}

/// Which image of several is wanted, and from where it may come.
#[derive(Clone)]
pub struct Access {
    /// Which platform; this machine's without it.
    pub platform: Option<Platform>,
    /// Whether only what is on this machine is used.
    pub offline: bool,
    /// When registries are asked; always without it, and daemons of this machine first.
    pub pull: Option<Pull>,
    /// Receives the progress of downloads.
    pub progress: Arc<dyn Progress>,
}

impl Access {
    /// The options to open an image with. Registries and daemons are asked only for images that are theirs.
    fn options(&self, source: &ImageSource) -> Result<OpenOptions, ImageError> {
        let platform = self.platform.clone();
        let progress = Some(Arc::clone(&self.progress));
        if !source.is_remote() {
            let scratch = std::env::temp_dir();
            return Ok(OpenOptions { platform, client: None, sockets: Vec::new(), progress, scratch });
        }
        let environment = Environment::of_process();
        let mut options = Options::from_environment(&environment)?;
        options.offline = self.offline || self.pull == Some(Pull::Never);
        options.prefer_kept_tags = self.pull == Some(Pull::Missing);
        options.progress.clone_from(&progress);
        let scratch = options.store.directory().join("scratch");
        let client = Arc::new(Client::new(options)?);
        let sockets = daemon::sockets(&environment);
        Ok(OpenOptions { platform, client: Some(client), sockets, progress, scratch })
    }

    /// A name without a transport is searched for in the daemons of this machine first, since that is where images that were built
    /// here are. `--pull always` skips them, and so does a digest: daemons do not keep the manifests that digests are of.
    fn prefer_daemon(&self, source: ImageSource, options: &OpenOptions) -> ImageSource {
        let ImageSource::Registry(reference) = &source else { return source };
        if self.pull == Some(Pull::Always) || reference.digest.is_some() {
            return source;
        }
        let name = reference.to_string();
        let has_daemon = options.sockets.iter().any(|socket| socket.exists());
        if has_daemon && daemon::has(&name, &options.sockets).unwrap_or(false) {
            return ImageSource::Daemon { name };
        }
        source
    }

    /// Finds an image by the name that a user typed, where only images are meant.
    pub fn find(&self, name: &str) -> Result<ResolvedImage, ImageError> {
        let found = self.find_source(ImageSource::parse(name)?);
        found.map_err(|error| error.with_local_file(name))
    }

    /// Finds the image of a source.
    pub fn find_source(&self, source: ImageSource) -> Result<ResolvedImage, ImageError> {
        let options = self.options(&source)?;
        ResolvedImage::resolve(&self.prefer_daemon(source, &options), &options)
    }
}

#[cfg(test)]
mod tests {
    use cudock_http::NoProgress;

    use super::*;

    fn access(pull: Option<Pull>) -> Access {
        Access { platform: None, offline: false, pull, progress: Arc::new(NoProgress) }
    }

    #[test]
    fn local_images_need_no_client_and_names_without_a_transport_are_in_a_registry() {
        let layout = ImageSource::parse("oci:./layout").unwrap();
        assert!(!layout.is_remote());
        let options = access(None).options(&layout).unwrap();
        assert!(options.client.is_none() && options.sockets.is_empty());
        let name = ImageSource::parse("team/app:1.0").unwrap();
        assert!(name.is_remote() && matches!(name, ImageSource::Registry(_)));
        assert!(ImageSource::parse("docker-daemon:app").unwrap().is_remote());
    }

    #[test]
    fn without_a_daemon_the_registry_is_used() {
        let source = ImageSource::parse("team/app:1.0").unwrap();
        let options = OpenOptions {
            platform: None,
            client: None,
            sockets: Vec::new(),
            progress: None,
            scratch: std::env::temp_dir(),
        };
        for pull in [None, Some(Pull::Always), Some(Pull::Missing)] {
            assert_eq!(access(pull).prefer_daemon(source.clone(), &options), source, "{pull:?}");
        }
    }
}
