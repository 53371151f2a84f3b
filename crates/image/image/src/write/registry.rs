//! Pushes images, and keeps them in the user's cache.

use std::io::Cursor;

use cudock_base::{Digest, try_parallel};
use cudock_registry::{Client, Document as StoredDocument, PushOutcome, PushedBlob, Reference};

use super::blob::{BlobData, BundleDocument};
use super::bundle::Bundle;
use super::document;
use super::error::WriteError;
use super::options::Written;
use crate::manifest::{Descriptor, Document};

/// Registries limit the rate of each connection.
const CONNECTIONS: usize = 4;

fn digest_of(descriptor: &Descriptor) -> Result<Digest, WriteError> {
    descriptor.digest.parse().map_err(|_| WriteError::damaged(&descriptor.digest, "not a digest"))
}

/// Pushes blobs, then the documents that name them, and the tag last.
pub(super) fn push(bundle: &Bundle, reference: &Reference, client: &Client) -> Result<Written, WriteError> {
    // Largest first, so that no connection starts the largest one last.
    let mut blobs: Vec<_> = bundle.blobs.iter().collect();
    blobs.sort_by_key(|blob| std::cmp::Reverse(blob.descriptor.size));
    let outcomes = try_parallel(&blobs, CONNECTIONS, |blob| {
        let from = match &blob.data {
            BlobData::Layer(layer) => layer.repository(),
            BlobData::Memory(_) | BlobData::File(_) => None,
        };
        let (digest, size) = (blob.digest()?, blob.descriptor.size);
        let pushed = PushedBlob { digest: &digest, size, from };
        let content = || Ok::<_, WriteError>(Cursor::new(blob.verified()?));
        Ok::<_, WriteError>((client.push_blob(reference, pushed, content)?, size))
    })?;
    let is_referrer = |stored: &BundleDocument| {
        bundle.referrers.iter().any(|referrer| referrer.digest == stored.descriptor.digest)
    };
    let is_top = |stored: &BundleDocument| stored.descriptor.digest == bundle.top.digest;
    let by_digest = Reference { tag: None, digest: None, ..reference.clone() };
    let tag = Some(reference.tag_or_latest().to_owned());
    let tagged = Reference { tag, digest: None, ..reference.clone() };
    let put = |name: &Reference, stored: &BundleDocument| {
        let digest = digest_of(&stored.descriptor)?;
        let is_listed = client.push_document(name, &stored.descriptor.media_type, &digest, &stored.bytes)?;
        Ok::<_, WriteError>(is_listed)
    };
    let (referrers, documents): (Vec<_>, Vec<_>) =
        bundle.documents.iter().partition(|stored| is_referrer(stored));
    // What has the tag is complete: also with its signatures, which refer to the image and come after it.
    for stored in documents.iter().filter(|stored| !is_top(stored) || !referrers.is_empty()) {
        put(&by_digest, stored)?;
    }
    for stored in referrers {
        if !put(&by_digest, stored)? {
            list_referrer(stored, &by_digest, client)?;
        }
    }
    for stored in documents.iter().filter(|stored| is_top(stored)) {
        put(&tagged, stored)?;
    }
    let mut written = Written::default();
    for (outcome, size) in outcomes {
        match outcome {
            PushOutcome::Present => written.bytes_present += size,
            PushOutcome::Mounted => written.bytes_mounted += size,
            PushOutcome::Sent => written.bytes_sent += size,
        }
    }
    Ok(written)
}

/// Lists a referrer under the tag that stands in for the referrers API.
fn list_referrer(stored: &BundleDocument, repository: &Reference, client: &Client) -> Result<(), WriteError> {
    let location = stored.descriptor.digest.as_str();
    let document = Document::read(location, &stored.bytes)?;
    let Some(subject) = document.subject else { return Ok(()) };
    let subject = digest_of(&subject)?;
    let mut listed = match client.referrers(repository, &subject)? {
        Some(index) => Document::read(location, &index)?.manifests.unwrap_or_default(),
        None => Vec::new(),
    };
    if listed.iter().any(|known| known.digest == stored.descriptor.digest) {
        return Ok(());
    }
    listed.push(Descriptor {
        artifact_type: document.artifact_type,
        annotations: document.annotations,
        ..stored.descriptor.clone()
    });
    let bytes = document::index(&listed, &std::collections::BTreeMap::new());
    let name = Reference { tag: Some(Client::referrers_tag(&subject)), ..repository.clone() };
    client.push_document(&name, document::INDEX, &Digest::sha256_of(&bytes), &bytes)?;
    Ok(())
}

/// Puts everything into the user's cache, under a name that containers can be started from.
pub(super) fn keep(bundle: &Bundle, reference: &Reference, client: &Client) -> Result<Written, WriteError> {
    let store = client.store();
    let mut written = Written::default();
    for blob in &bundle.blobs {
        let digest = blob.digest()?;
        let size = blob.descriptor.size;
        if store.path_of(&digest).is_some() {
            written.bytes_present += size;
        } else {
            store.write(&digest, &blob.verified()?)?;
            written.bytes_sent += size;
        }
    }
    let mut documents = Vec::new();
    for stored in bundle.documents.iter().filter(|stored| stored.descriptor.digest != bundle.top.digest) {
        documents.push(kept(stored)?);
    }
    if let Some(top) = bundle.document(&bundle.top.digest) {
        documents.push(kept(top)?);
    }
    client.keep(reference, &documents)?;
    Ok(written)
}

fn kept(stored: &BundleDocument) -> Result<StoredDocument, WriteError> {
    Ok(StoredDocument {
        digest: digest_of(&stored.descriptor)?,
        media_type: stored.descriptor.media_type.clone(),
        bytes: stored.bytes.clone(),
    })
}
