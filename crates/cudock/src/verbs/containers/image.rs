//! The image of a container: found where the words say.

use std::path::Path;
use std::sync::Arc;

use cudock_base::Environment;
use cudock_http::{NoProgress, Progress};
use cudock_image::registry::{Client, Options, daemon};
use cudock_image::{ImageError, OpenOptions, Platform, ImageSource, open};
use cudock_runtime::engine::builtin::Open;

use super::args::PullChoice;
use crate::output::megabytes;
use crate::verbs::progress::Lines;

/// Which image of several, and from where.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wish {
    pub(crate) platform: Option<Platform>,
    pub(crate) offline: bool,
}

/// How an image is fetched for a container.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Fetch {
    /// When registries are asked; always without it, and daemons of this machine first.
    pub(crate) pull: Option<PullChoice>,
    /// Whether nothing is said about fetching.
    pub(crate) quiet: bool,
}

/// Opens images as the words of a command say.
pub(crate) fn opener(wish: Wish, fetch: Fetch) -> Open {
    Box::new(move |image| {
        let source = source(image)?;
        let options = options(&source, &wish, fetch)?;
        // Who says that the registry is to be asked does not mean a daemon's copy.
        let source =
            if fetch.pull == Some(PullChoice::Always) { source } else { in_daemon(source, &options) };
        let opened = open(&source, &options)?;
        let to_fetch = opened.bytes_to_fetch();
        if to_fetch > 0 && !fetch.quiet {
            anstream::eprintln!("fetching {} of {}", megabytes(to_fetch), opened.name);
        }
        Ok(opened)
    })
}

fn source(image: &str) -> Result<ImageSource, ImageError> {
    if let Some(source) = ImageSource::with_transport(image) {
        return source;
    }
    if let Some(source) = ImageSource::at(Path::new(image)) {
        return Ok(source);
    }
    ImageSource::reference(image)
}

/// How an image is opened where it is: registries and daemons are asked only for images that are theirs.
pub(crate) fn open_options(source: &ImageSource, wish: &Wish) -> Result<OpenOptions, ImageError> {
    options(source, wish, Fetch::default())
}

fn options(source: &ImageSource, wish: &Wish, fetch: Fetch) -> Result<OpenOptions, ImageError> {
    let platform = wish.platform.clone();
    let progress: Arc<dyn Progress> =
        if fetch.quiet { Arc::new(NoProgress) } else { Arc::new(Lines::default()) };
    if !crate::verbs::check::is_remote(source) {
        let scratch = std::env::temp_dir();
        return Ok(OpenOptions {
            platform,
            client: None,
            sockets: Vec::new(),
            progress: Some(progress),
            scratch,
        });
    }
    let environment = Environment::of_process();
    let mut settings = Options::from_environment(&environment).map_err(ImageError::from)?;
    settings.offline = wish.offline || fetch.pull == Some(PullChoice::Never);
    settings.prefer_kept_tags = fetch.pull == Some(PullChoice::Missing);
    settings.progress = Some(progress.clone());
    let scratch = settings.store.directory().join("scratch");
    let client = Client::new(settings).map_err(ImageError::from)?;
    let sockets = daemon::sockets(&environment);
    Ok(OpenOptions { platform, client: Some(Arc::new(client)), sockets, progress: Some(progress), scratch })
}

/// A name without a transport is looked for in the daemons of this machine first, as everyone who built it there expects.
pub(crate) fn in_daemon(source: ImageSource, options: &OpenOptions) -> ImageSource {
    let ImageSource::Registry(reference) = &source else { return source };
    let name = reference.to_string();
    let here = options.sockets.iter().any(|socket| socket.exists());
    if here && daemon::has(&name, &options.sockets).unwrap_or(false) {
        return ImageSource::Daemon { name };
    }
    source
}
