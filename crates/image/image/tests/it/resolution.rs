//! Which image a layout or archive stands for is decided once, and everything agrees about it.

use std::fs;
use std::slice::from_ref;

use cudock_image::write::{Destination, WriteError};
use cudock_image::{Image, ImageSource, ResolvedImage};
use cudock_testkit::ambiguous::{AmbiguousLayout, Meant};
use cudock_testkit::random::{Random, cases, seed};
use cudock_testkit::tar::Tar;
use serde_json::json;

use crate::support::{Blobs, CONFIG, INDEX, MANIFEST, configuration, index, layout, options};
use crate::write::write_options;

/// The marker that the maker of an image put into it.
fn marker_of(image: &Image) -> String {
    let tree = crate::support::contents(image).unwrap();
    let marker = tree.get("marker").unwrap().kept().unwrap();
    String::from_utf8_lossy(marker).trim().to_owned()
}

fn check_platform(found: &ResolvedImage, meant: &Meant) {
    match (found.open(), &meant.manifest) {
        (Ok(image), Some((digest, marker))) => {
            assert_eq!(&image.digest.as_ref().unwrap().to_string(), digest);
            assert_eq!(&marker_of(&image), marker);
        }
        (Err(_), None) => {}
        (opened, expected) => panic!("{:?} instead of {expected:?}", opened.map(|image| image.digest)),
    }
}

#[test]
fn whatever_a_layout_lists_opening_copying_and_signing_mean_the_same_image() {
    let mut random = Random::new(seed());
    let (mut meant, mut refused, mut copied) = (0, 0, 0);
    for case in 0..cases(1000) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let made = AmbiguousLayout::new(&mut random, &[]);
        let name = made.name.clone();
        let source = if random.one_in(2) {
            made.write_layout(&path.join("image"));
            ImageSource::Layout { directory: path.join("image"), name }
        } else {
            made.write_archive(&path.join("image.tar"));
            ImageSource::Archive { file: path.join("image.tar"), name }
        };
        let found = match (ResolvedImage::resolve(&source, &options(path)), &made.meant) {
            (Ok(found), Some(_)) => found,
            (Err(_), None) => {
                refused += 1;
                continue;
            }
            (found, expected) => panic!("case {case}: {found:?} instead of {expected:?}"),
        };
        meant += 1;
        let expected = made.meant.as_ref().unwrap();
        assert_eq!(found.digest().unwrap().to_string(), expected.digest, "case {case}");
        check_platform(&found, expected);
        let bundle = match found.bundle() {
            Ok(bundle) => bundle,
            Err(error) => {
                assert!(!made.is_whole, "case {case}: {error}");
                continue;
            }
        };
        assert!(made.is_whole, "case {case}: a part is listed as something else, or is not there");
        assert_eq!(bundle.digest(), expected.digest, "case {case}");
        if random.one_in(4) {
            copied += 1;
            let copy = Destination::Layout { directory: path.join("copy"), name: None };
            let written = bundle.write(&copy, &write_options(path)).unwrap();
            assert_eq!(written.digest, expected.digest, "case {case}");
            let copy = ResolvedImage::resolve(&layout(&path.join("copy")), &options(path)).unwrap();
            assert_eq!(copy.digest().unwrap().to_string(), expected.digest, "case {case}");
            check_platform(&copy, expected);
            // What docker gets is selected in the same way.
            let file = path.join("docker.tar");
            let docker = Destination::DockerArchive { file: file.clone(), name: None };
            match (bundle.write(&docker, &write_options(path)), &expected.manifest) {
                (Ok(_), Some((_, marker))) => {
                    let source = ImageSource::Archive { file, name: None };
                    let image = ResolvedImage::resolve(&source, &options(path)).unwrap().open().unwrap();
                    assert_eq!(&marker_of(&image), marker, "case {case}");
                }
                (Err(_), None) => {}
                (written, expected) => panic!("case {case}: {written:?} instead of {expected:?}"),
            }
        }
    }
    eprintln!("{meant} resolved, {copied} of them copied, {refused} refused");
    assert!(meant > 0 && refused > 0 && copied > 0);
}

#[test]
fn an_image_before_the_proven_one_is_not_run_in_its_place() {
    let mut blobs = Blobs::default();
    let proven = blobs.image("amd64", &[Tar::default().file("marker", "proven").end()]);
    let config = blobs.document(CONFIG, &configuration("amd64", 1));
    let layer = blobs.add(crate::support::LAYER, Tar::default().file("marker", "evil").end());
    let evil = json!({
        "schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [layer],
        "subject": {"mediaType": MANIFEST, "digest": proven["digest"], "size": proven["size"]},
    });
    let evil = blobs.document(MANIFEST, &evil);
    for listed in [vec![evil.clone(), proven.clone()], vec![proven.clone(), evil]] {
        let directory = tempfile::tempdir().unwrap();
        blobs.write(directory.path(), &index(&listed));
        let found = ResolvedImage::resolve(&layout(directory.path()), &options(directory.path())).unwrap();
        assert_eq!(found.digest().unwrap().to_string(), proven["digest"]);
        assert_eq!(marker_of(&found.open().unwrap()), "proven");
    }
}

#[test]
fn what_was_resolved_stays_the_same_whatever_becomes_of_the_files() {
    let mut blobs = Blobs::default();
    let [first, second] = ["first", "second"].map(|marker| {
        let mut own = Blobs::default();
        let image = own.image("amd64", &[Tar::default().file("marker", marker).end()]);
        blobs.0.extend(own.0);
        image
    });
    let directory = tempfile::tempdir().unwrap();
    blobs.write(directory.path(), &index(from_ref(&first)));
    let found = ResolvedImage::resolve(&layout(directory.path()), &options(directory.path())).unwrap();
    fs::write(directory.path().join("index.json"), index(&[second]).to_string()).unwrap();
    assert_eq!(marker_of(&found.open().unwrap()), "first");
    assert_eq!(found.bundle().unwrap().digest(), first["digest"]);
    // Documents are compared with the digests that were resolved.
    let blob = first["digest"].as_str().unwrap().replace(':', "/");
    let mut manifest: serde_json::Value =
        serde_json::from_slice(&blobs.0[first["digest"].as_str().unwrap()]).unwrap();
    let config = manifest["config"]["digest"].take().as_str().unwrap().replace(':', "/");
    fs::write(directory.path().join("blobs").join(config), "{}").unwrap();
    fs::write(directory.path().join("blobs").join(blob), "{}").unwrap();
    assert!(found.open().is_err());
}

#[test]
fn a_document_of_two_kinds_is_rejected() {
    let mut blobs = Blobs::default();
    let image = blobs.image("amd64", &[Tar::default().end()]);
    let config = blobs.document(CONFIG, &configuration("amd64", 0));
    let both = json!({"schemaVersion": 2, "manifests": [image], "config": config, "layers": []});
    let as_index = json!({"schemaVersion": 2, "mediaType": INDEX, "config": config, "layers": []});
    let as_manifest = json!({"schemaVersion": 2, "mediaType": MANIFEST, "manifests": [image]});
    for (document, kind, reason) in [
        (&both, MANIFEST, "an index and a manifest in one document"),
        (&both, INDEX, "an index and a manifest in one document"),
        (&both, "", "an index and a manifest in one document"),
        (&as_index, MANIFEST, "a manifest with the media type of an index"),
        (&as_manifest, INDEX, "an index with the media type of a manifest"),
        (
            &json!({"schemaVersion": 2, "config": config, "layers": []}),
            INDEX,
            "a manifest with the media type of an index",
        ),
    ] {
        let below = blobs.document(kind, document);
        let directory = tempfile::tempdir().unwrap();
        blobs.write(directory.path(), &index(&[below]));
        let error =
            ResolvedImage::resolve(&layout(directory.path()), &options(directory.path())).unwrap_err();
        assert!(error.to_string().contains(reason), "{error}");
    }
}

#[test]
fn broken_and_numerous_referrers_do_not_hide_others() {
    let mut blobs = Blobs::default();
    let image = blobs.image("amd64", &[Tar::default().end()]);
    let about = json!({"mediaType": MANIFEST, "digest": image["digest"], "size": image["size"]});
    let empty = blobs.add("application/vnd.oci.empty.v1+json", b"{}".to_vec());
    let referrer = |blobs: &mut Blobs, kind: &str, number: usize| {
        let part = blobs.add("text/plain", format!("{kind} {number}").into_bytes());
        let document = json!({
            "schemaVersion": 2, "mediaType": MANIFEST, "artifactType": kind, "config": empty,
            "layers": [part], "subject": about,
        });
        blobs.document(MANIFEST, &document)
    };
    let mut listed = vec![image.clone()];
    for number in 0..300 {
        let broken = referrer(&mut blobs, "text/proof", number);
        match number % 3 {
            0 => _ = blobs.0.remove(broken["digest"].as_str().unwrap()),
            1 => blobs.0.get_mut(broken["digest"].as_str().unwrap()).unwrap()[0] = b'!',
            // A part of it is missing.
            _ => {
                let part =
                    blobs.0.iter().find(|(_, bytes)| **bytes == format!("text/proof {number}").into_bytes());
                let part = part.unwrap().0.clone();
                blobs.0.remove(&part);
            }
        }
        let mut broken = broken;
        broken["artifactType"] = json!("text/proof");
        listed.push(broken);
    }
    listed.push(referrer(&mut blobs, "text/proof", 300));
    let directory = tempfile::tempdir().unwrap();
    blobs.write(directory.path(), &index(&listed));
    let found = ResolvedImage::resolve(&layout(directory.path()), &options(directory.path())).unwrap();
    let referrers = found.referrers(&found.digest().unwrap(), Some("text/proof")).unwrap();
    assert_eq!((referrers.unreadable.len(), referrers.omitted), (200, 0));
    let parts: Vec<Result<Vec<u8>, WriteError>> =
        referrers.found.iter().map(|one| found.part(&one.layers[0])).collect();
    assert_eq!(parts.iter().filter(|part| part.is_err()).count(), 100);
    assert!(parts.iter().any(|part| part.as_ref().is_ok_and(|part| part == b"text/proof 300")));
    let bundle = found.bundle().unwrap();
    assert_eq!(bundle.unreadable_referrers().len(), 300);
    let copy = Destination::Layout { directory: directory.path().join("copy"), name: None };
    bundle.write(&copy, &write_options(directory.path())).unwrap();
    let copy =
        ResolvedImage::resolve(&layout(&directory.path().join("copy")), &options(directory.path())).unwrap();
    assert_eq!(copy.referrers(&copy.digest().unwrap(), None).unwrap().found.len(), 1);
}

#[test]
fn what_is_listed_twice_must_be_the_same_thing_both_times() {
    let mut blobs = Blobs::default();
    let image = blobs.image("amd64", &[Tar::default().file("marker", "one").end()]);
    let mut as_index = image.clone();
    as_index["mediaType"] = json!(INDEX);
    as_index["platform"] = json!({"os": "linux", "architecture": "unknown"});
    let other = blobs.image("arm64", &[Tar::default().file("marker", "two").end()]);
    for (again, is_copied) in [(&image, true), (&as_index, false)] {
        for listed in [[&image, &other, again], [again, &image, &other]] {
            let directory = tempfile::tempdir().unwrap();
            blobs.write(directory.path(), &index(&listed.map(Clone::clone)));
            let found = ResolvedImage::resolve(&layout(directory.path()), &options(directory.path()));
            assert_eq!(found.is_ok_and(|found| found.bundle().is_ok()), is_copied, "{listed:?}");
        }
    }
}
