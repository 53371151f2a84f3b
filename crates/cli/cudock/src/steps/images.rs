//! How images are opened, and what is printed meanwhile.

use std::path::Path;
use std::sync::Arc;

use cudock_base::text::format::fixed_bytes;
use cudock_http::Progress;
use cudock_image::{Access, Image, Platform};

use crate::failure::Failure;
use crate::output::{self, status};
use crate::steps::progress::Lines;

/// Compressed layers of this size take seconds to read.
const LONG: u64 = 500_000_000;

/// Images of a platform, with downloads shown on standard error.
pub(crate) fn access(platform: Option<Platform>, offline: bool) -> Access {
    Access { platform, offline, pull: None, progress: progress() }
}

/// A progress display for downloads.
pub(crate) fn progress() -> Arc<dyn Progress> {
    Arc::new(Lines::default())
}

/// The value of `--platform`.
pub(crate) fn platform(text: Option<&str>) -> Result<Option<Platform>, Failure> {
    let platform = text.map(str::parse::<Platform>).transpose();
    platform.map_err(|error| Failure::input(error).hint("--platform linux/amd64"))
}

/// Says that an image is about to be read, if that takes long.
pub(crate) fn announce_read(image: &Image) {
    announce_fetch(image);
    let stored: u64 = image.layers.iter().map(|layer| layer.size).sum();
    if stored > LONG && output::redraws() {
        status(format!("reading {} in {} layers", fixed_bytes(stored), image.layers.len()));
    }
}

/// Says that an image is about to be fetched.
pub(crate) fn announce_fetch(image: &Image) {
    let bytes = image.bytes_to_fetch();
    if bytes > 0 {
        status(format!("fetching {} of {}", fixed_bytes(bytes), image.name));
    }
}

/// Says that an argument names a file, where it could also be meant as the name of an image. An error if the file has the name of
/// an image with a digest.
pub(crate) fn note_local(text: &str) -> Result<(), Failure> {
    let Some(path) = cudock_image::local_path(text)?.filter(|_| !cudock_compat::is_file_name(text)) else {
        return Ok(());
    };
    // Few images have a name with an extension.
    let last = text.rsplit('/').next().unwrap_or_default();
    let has_extension = last.split(':').next().is_some_and(|name| name.contains('.'));
    if !has_extension && cudock_image::ImageSource::reference(text).is_ok() {
        let what = if path.is_dir() { "directory" } else { "file" };
        output::note(format!(
            "{text} is a {what} here, which is taken; the image of that name is docker://{text}"
        ));
    }
    Ok(())
}

/// An error if the argument of a verb that only takes files is a file with the name of an image with a digest.
pub(crate) fn refuse_digest(path: &Path) -> Result<(), Failure> {
    path.to_str().map(cudock_image::local_path).transpose()?;
    Ok(())
}
