//! Writes what `docker load` reads, and loads it into a daemon.

use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::Path;

use cudock_base::{Algorithm, Digest, Hasher, ScratchDir};
use cudock_registry::daemon;
use serde_json::json;

use super::blob::BundleBlob;
use super::bundle::Bundle;
use super::document;
use super::error::WriteError;
use super::layout::{WriteFailed, append, replace};
use super::options::{WriteOptions, Written};
use super::rewrite::decompress;
use super::tar::{BLOCK, FileContent, LayerEntry, padding};
use crate::kind::FileKind;
use crate::manifest::{self, Descriptor, ImageConfig};

/// Writes the image of one platform. Its layers are not compressed, as old versions of docker expect them.
pub(super) fn write(
    bundle: &Bundle,
    file: &Path,
    name: Option<&str>,
    options: &WriteOptions,
) -> Result<Written, WriteError> {
    let (manifest, document) = bundle.select(options.platform.as_ref())?;
    let missing = |descriptor: &Descriptor| WriteError::damaged(&descriptor.digest, "not found");
    let config = document.config.as_ref().ok_or_else(|| missing(&manifest))?;
    let config = bundle.blob(&config.digest).ok_or_else(|| missing(config))?;
    let config_bytes = config.verified()?;
    let parsed: ImageConfig = manifest::parse(&manifest.digest, &config_bytes)?;
    let layers: Vec<&Descriptor> = document.layers.iter().flatten().collect();
    let ids = &parsed.rootfs.diff_ids;
    if ids.len() != layers.len() {
        return Err(WriteError::damaged(&manifest.digest, "its configuration lists other layers"));
    }
    replace(file, |out| {
        let mut sent = 0;
        let mut names: Vec<String> = Vec::new();
        for (layer, id) in layers.iter().zip(ids) {
            let blob = bundle.blob(&layer.digest).ok_or_else(|| missing(layer))?;
            let digest: Digest = id.parse().map_err(|_| WriteError::damaged(id, "not a digest"))?;
            let name = format!("{}.tar", digest.hex());
            if !names.contains(&name) {
                sent += append_layer(out, &name, blob, &digest)?;
            }
            names.push(name);
        }
        let config_name = format!("{}.json", config.digest()?.hex());
        append(out, &config_name, &config_bytes)?;
        let tags: Vec<String> = name.map(tagged).into_iter().collect();
        let list = document::bytes(&json!([{ "Config": config_name, "RepoTags": tags, "Layers": names }]));
        append(out, "manifest.json", &list)?;
        Ok(Written { bytes_sent: sent, ..Written::default() })
    })
}

/// A name with its tag.
fn tagged(name: &str) -> String {
    let last = name.rsplit('/').next().unwrap_or_default();
    if last.contains(':') { name.to_owned() } else { format!("{name}:latest") }
}

/// Appends a layer uncompressed, and verifies its digest. The size is known at the end, and then written into the header.
fn append_layer(
    out: &mut BufWriter<File>,
    name: &str,
    blob: &BundleBlob,
    diff_id: &Digest,
) -> Result<u64, WriteFailed> {
    let header =
        |size| LayerEntry::new(name, FileKind::File(FileContent::Bytes(Vec::new())), 0o644).header(size);
    let start = out.stream_position().map_err(WriteFailed::Io)?;
    out.write_all(&[0; BLOCK]).map_err(WriteFailed::Io)?;
    let mut hasher = Hasher::new(Algorithm::Sha256);
    let mut size = 0;
    decompress::<WriteFailed>(&blob.descriptor.digest, &blob.bytes()?, |chunk| {
        hasher.update(chunk);
        size += chunk.len() as u64;
        out.write_all(chunk).map_err(WriteFailed::Io)
    })?;
    if hasher.digest() != *diff_id {
        return Err(WriteError::damaged(&blob.descriptor.digest, "its content has another digest").into());
    }
    let header = header(size)?;
    if header.len() != BLOCK {
        return Err(WriteError::damaged(
            &blob.descriptor.digest,
            "more than 8 GiB is too large for this format",
        )
        .into());
    }
    let mut finish = || {
        out.write_all(padding(size))?;
        let end = out.stream_position()?;
        out.seek(SeekFrom::Start(start))?;
        out.write_all(&header)?;
        out.seek(SeekFrom::Start(end))
    };
    finish().map_err(WriteFailed::Io)?;
    Ok(size)
}

/// Loads the image of one platform into a daemon, through an archive: daemons take nothing else.
pub(super) fn load(bundle: &Bundle, name: &str, options: &WriteOptions) -> Result<Written, WriteError> {
    let scratch = ScratchDir::new(&options.scratch)?;
    let archive = scratch.path().join("image.tar");
    let written = write(bundle, &archive, Some(name), options)?;
    daemon::load(name, &archive, &options.sockets, Some(&*options.progress))?;
    Ok(written)
}
