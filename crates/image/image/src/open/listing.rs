//! Entries in the `index.json` of a layout or archive: images, and their referrers.

use std::collections::HashSet;

use super::BlobSource;
use crate::error::ImageError;
use crate::manifest::{Descriptor, Document, REF_NAME, REFERRERS};

/// The number of documents and blobs in one image.
pub(super) const MAX_PARTS: usize = 10_000;

/// The image that was meant.
pub(super) struct Listed {
    /// Its descriptor, without what concerns only the layout.
    pub(super) top: Descriptor,
    pub(super) bytes: Vec<u8>,
    /// Documents that may refer to it.
    pub(super) referrers: Vec<Descriptor>,
}

/// The image in a layout or archive with an `index.json`: the only one, or the one with this name; or the whole index, if that
/// is one image for several platforms.
pub(super) fn find(store: &dyn BlobSource, index: &[u8], name: Option<&str>) -> Result<Listed, ImageError> {
    let location = store.location();
    let whole = Descriptor::of("application/vnd.oci.image.index.v1+json", index);
    let document = Document::read(&location, index)?;
    let Entries { mut images, mut referrers, others } =
        classify(store, document.manifests.unwrap_or_default())?;
    let mut names: Vec<String> = images.iter().filter_map(name_of).map(str::to_owned).collect();
    names.sort();
    names.dedup();
    if let Some(name) = name {
        images.retain(|image| name_of(image) == Some(name));
        if images.is_empty() {
            return Err(ImageError::NoName { location, requested: name.to_owned(), names });
        }
    }
    for index in images.iter().filter_map(Descriptor::referrers) {
        // Tools that do not know it remove it from layouts, as nothing lists it.
        let Ok(bytes) = store.document(&index) else { continue };
        let Ok(document) = Document::read_as(&location, &index, &bytes) else { continue };
        referrers.extend(document.manifests.unwrap_or_default());
    }
    let mut seen = HashSet::new();
    images.retain(|image| seen.insert(image.digest.clone()));
    match (images.as_slice(), name) {
        ([], _) => Err(ImageError::document(&location, "the index is empty: index.json lists no image")),
        ([image], _) if name.is_some() || !others => {
            let bytes = store.document(image)?;
            let mut top = image.clone();
            top.annotations.retain(|key, _| key != REF_NAME && key != REFERRERS);
            Ok(Listed { top, bytes, referrers })
        }
        (_, Some(name)) => {
            let digests: Vec<&str> = images.iter().map(|image| image.digest.as_str()).collect();
            let message = format!("several images have this name: {}", digests.join(", "));
            Err(ImageError::document(&format!("{location}:{name}"), message))
        }
        // One image for several platforms is one image; two names are two images.
        _ if names.len() > 1 => Err(ImageError::Several { location, names }),
        _ => Ok(Listed { top: whole, bytes: index.to_vec(), referrers }),
    }
}

/// The entries of an `index.json` by what they are.
struct Entries {
    images: Vec<Descriptor>,
    /// Documents with a subject.
    referrers: Vec<Descriptor>,
    /// Whether it lists anything else, such as an attestation.
    others: bool,
}

fn classify(store: &dyn BlobSource, listed: Vec<Descriptor>) -> Result<Entries, ImageError> {
    if listed.len() > MAX_PARTS {
        return Err(ImageError::document(&store.location(), "index.json has too many entries"));
    }
    let mut entries = Entries { images: Vec::new(), referrers: Vec::new(), others: false };
    for entry in listed {
        let read =
            store.document(&entry).and_then(|bytes| Document::read_as(&store.location(), &entry, &bytes));
        let document = match read {
            Ok(document) => document,
            // An image that cannot be read must not make way for another one.
            Err(error) if entry.is_image() => return Err(error),
            Err(_) => {
                entries.referrers.push(entry);
                continue;
            }
        };
        match document.subject {
            Some(_) => entries.referrers.push(entry),
            None if entry.is_image() && document.artifact_type.is_none() => entries.images.push(entry),
            None => entries.others = true,
        }
    }
    Ok(entries)
}

fn name_of(image: &Descriptor) -> Option<&str> {
    image.annotations.get(REF_NAME).map(String::as_str)
}
