//! Hostile images: each is rejected or stays inside, and none causes a panic or unbounded memory use.

use std::fs;

use cudock_base::{Digest, Report as _};
use cudock_image::{ImageError, LayerLimits, OpenOptions, Platform};
use serde_json::{Value, json};

use crate::support::{
    self, Blobs, CONFIG, LAYER, MANIFEST, Tar, configuration, gzip, header, image_of, index, layout, lines,
    merge, named, open, options, read_bundle, rejection, seal, text, try_merge, zstd,
};

fn tar() -> Tar {
    Tar::default()
}

#[track_caller]
fn assert_rejected(layer: Tar, part: &str) {
    let plain = layer.end();
    for form in [plain.clone(), gzip(&plain), zstd(&plain)] {
        let error = rejection(form);
        assert!(error.starts_with("layer 1 (sha256:") && error.contains(part), "{error}");
    }
}

#[test]
fn path_traversal_is_rejected() {
    for name in ["../x", "a/../../x", "a/..", "..", "/../x", "./a/.././x"] {
        assert_rejected(tar().file(name, "1"), "points outside the image");
        assert_rejected(tar().directory(name), "points outside the image");
        assert_rejected(tar().file("a", "1").hard_link("b", name), "points outside the image");
        assert_rejected(tar().pax(&[("path", name.as_bytes())]).file("a", "1"), "points outside the image");
        assert_rejected(
            tar().entry("L", b'L', "", name.as_bytes()).file("a", "1"),
            "points outside the image",
        );
    }
    assert_rejected(tar().file("a/../.wh.x", ""), "points outside the image");
}

#[test]
fn absolute_names_and_links_stay_inside() {
    let layer = tar()
        .file("/etc/passwd", "inside")
        .file("//x", "1")
        .symlink("up", "../../../../etc")
        .symlink("root", "/")
        .file("root/y", "2")
        .file("up/z", "3")
        .file("..x", "4")
        .hard_link("linked", "/etc/passwd");
    let tree = merge(&[layer.end()]);
    let expected = [
        "..x=4",
        "etc/",
        "etc/passwd=inside",
        "etc/z=3",
        "linked=inside",
        "root>/",
        "up>../../../../etc",
        "x=1",
        "y=2",
    ];
    assert_eq!(lines(&tree), expected);
    assert_eq!(text(&tree, "/up/../../../etc/passwd"), "inside");
}

#[test]
fn symlink_loops_do_not_resolve_and_cannot_be_written_through() {
    let symlink_loop =
        || tar().symlink("a", "b").symlink("b", "./a").symlink("self", "self").symlink("in", "in/x");
    let tree = merge(&[symlink_loop().end()]);
    for path in ["a", "b", "self", "in", "a/x", "self/../a", "in/y"] {
        assert!(tree.resolve(path).is_none(), "{path}");
        assert_eq!(tree.names(path).count(), 0, "{path}");
    }
    for name in ["a/x", "self/x", "in/y"] {
        assert_rejected(symlink_loop().file(name, "1"), "symlink loop");
        assert_rejected(symlink_loop().hard_link("c", name), "symlink loop");
        // Removing a path behind a loop has no effect.
        assert_eq!(merge(&[symlink_loop().end(), tar().whiteout(name).end()]).iter().count(), 4);
    }
    assert_eq!(merge(&[symlink_loop().end(), tar().opaque("a").end()]).iter().count(), 4);
}

#[test]
fn at_most_forty_symlinks_are_followed() {
    let mut layer = tar().file("end", "1").symlink("l1", "end");
    for number in 2..=41 {
        layer = layer.symlink(&format!("l{number}"), &format!("l{}", number - 1));
    }
    let tree = merge(&[layer.end()]);
    assert_eq!(tree.resolve("l40").unwrap().0, "end");
    assert!(tree.resolve("l41").is_none());
}

#[test]
fn exponential_symlinks_are_bounded() {
    let mut layer = tar().symlink("l0", &"x/../".repeat(15));
    for number in 1..30 {
        let before = number - 1;
        layer = layer.symlink(&format!("l{number}"), &format!("l{before}/../l{before}/../l{before}"));
    }
    let tree = merge(&[layer.end()]);
    assert!(tree.resolve("l29").is_none());
}

#[test]
fn a_hard_link_to_a_missing_file_or_directory_is_rejected() {
    assert_rejected(tar().hard_link("a", "missing"), "hard link to `missing`, which does not exist");
    assert_rejected(tar().directory("d").hard_link("a", "d"), "which does not exist");
    assert_rejected(tar().hard_link("a", "a"), "which does not exist");
    assert_rejected(tar().hard_link("a", ""), "which does not exist");
    assert_rejected(tar().hard_link("a", "later").file("later", "1"), "which does not exist");
    let error = try_merge(&[tar().file("a", "1").end(), tar().whiteout("a").hard_link("b", "a").end()]);
    let error = error.unwrap_err();
    assert!(matches!(&error, ImageError::Layer { number: 2, .. }) && !error.is_outside(), "{error}");
}

/// A header whose size field holds these bytes.
fn sized(field: &[u8]) -> [u8; 512] {
    let mut block = header(b"file", b'0', 0, b"");
    block[124..124 + field.len()].copy_from_slice(field);
    seal(&mut block);
    block
}

#[test]
fn a_size_beyond_the_layer_is_rejected_whether_or_not_the_file_is_read() {
    let sizes: [&[u8]; 4] = [
        b"00000100000\0",
        b"77777777777\0",
        b"\x80\0\0\0\0\0\0\x02\0\0\0\0",
        b"\x80\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff",
    ];
    for size in sizes {
        let plain = tar().raw(&sized(size)).raw(b"short").end();
        for form in [plain.clone(), gzip(&plain), zstd(&plain)] {
            let (_directory, image) = image_of(&[form]);
            let read = image.walk(LayerLimits::default(), |_, content| Ok(Some(content.all()?.len())));
            let begun = image.walk(LayerLimits::default(), |_, content| Ok(Some(content.start()?.len())));
            let passed = image.walk(LayerLimits::default(), |_, _| Ok(None::<usize>));
            for walked in [read, begun, passed] {
                let error = walked.unwrap_err().to_string();
                assert!(
                    error.contains("in the middle of an entry") || error.contains("too large"),
                    "{error}"
                );
            }
        }
    }
}

#[test]
fn sizes_that_are_not_numbers_are_rejected() {
    for size in [
        b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\x80\0\0\x01\0\0\0\0\0\0\0\0",
        b"0000000008 \0",
        b"-0000000001\0",
    ] {
        assert_rejected(tar().raw(&sized(size)), "the size is not a number");
    }
    for size in ["-1", "1e3", "18446744073709551616", "+", " 1"] {
        assert_rejected(tar().pax(&[("size", size.as_bytes())]).file("a", "1"), "the size is not a number");
    }
    assert_rejected(tar().pax(&[("size", b"18446744073709551615")]).file("a", "1"), "");
}

#[test]
fn a_wrong_checksum_is_rejected() {
    for at in [0, 100, 130, 156, 200, 300, 511] {
        let mut layer = tar().file("a", "1").file("b", "2");
        layer.0[1024 + at] ^= 0x04;
        assert_rejected(layer, "invalid tar header at entry 2: checksum mismatch");
    }
    assert_rejected(tar().raw(&[b'z'; 512]), "checksum mismatch");
    assert_rejected(tar().raw(b"#!/bin/sh\n"), "checksum mismatch");
}

#[test]
fn a_single_zero_block_is_accepted_only_at_the_end() {
    assert_rejected(tar().file("a", "1").raw(&[0; 512]).file("b", "2"), "single zero block");
    assert_eq!(lines(&merge(&[tar().file("a", "1").raw(&[0; 512]).0])), ["a=1"]);
    // Two zero blocks are the end, whatever follows.
    let hidden = tar().file("a", "1").raw(&[0; 1024]).file("b", "2").end();
    assert_eq!(lines(&merge(&[hidden])), ["a=1"]);
}

#[test]
fn a_layer_without_final_padding_is_complete() {
    // Some writers omit the padding, and engines accept that.
    let layer = tar().file("a", "1");
    assert_eq!(lines(&merge(&[layer.0[..513].to_vec()])), ["a=1"]);
}

#[test]
fn a_truncated_layer_gives_an_error_or_existing_entries() {
    let plain = tar()
        .directory("d")
        .pax(&[("path", b"d/long")])
        .file("cut", "1234")
        .entry("L", b'L', "", b"d/other\0")
        .hard_link("cut", "d/long")
        .symlink("d/link", "other")
        .end();
    let whole = lines(&merge(std::slice::from_ref(&plain)));
    assert_eq!(whole.len(), 4);
    for form in [plain.clone(), gzip(&plain), zstd(&plain)] {
        let mut complete = 0;
        for end in 0..form.len() {
            cudock_image::fuzz(&form[..end]);
            // Inside a block of a plain layer, all cuts are alike.
            if form.len() == plain.len() && !matches!(end % 512, 0..4 | 510..) {
                continue;
            }
            if let Ok(tree) = try_merge(&[form[..end].to_vec()]) {
                let some = lines(&tree);
                assert!(some.iter().all(|line| whole.contains(line)), "cut at {end}: {some:?}");
                complete += usize::from(some == whole);
            }
        }
        assert!(complete < 64, "{complete} cuts of {} were not noticed", form.len());
    }
}

#[test]
fn flipped_bytes_never_cause_a_panic() {
    let plain = tar()
        .directory("d")
        .pax(&[("path", b"d/x")])
        .file("cut", "1")
        .symlink("l", "d")
        .file("l/y", "2")
        .end();
    for form in [plain.clone(), gzip(&plain), zstd(&plain)] {
        for at in 0..form.len().min(3000) {
            for flip in [0x01, 0x80, 0xff] {
                let mut bytes = form.clone();
                bytes[at] ^= flip;
                cudock_image::fuzz(&bytes);
            }
        }
    }
}

#[test]
fn extended_headers_are_bounded_before_they_are_read() {
    let claimed = (1_u64 << 20) + 1;
    for kind in *b"LKx" {
        // The layer ends after the header: a reader that trusts it would fail with another error.
        assert_rejected(tar().raw(&header(b"x", kind, claimed, b"")), "an extended header of 1048577 bytes");
        let mut endless = header(b"x", kind, 0, b"");
        endless[124..136].copy_from_slice(b"\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff");
        seal(&mut endless);
        assert_rejected(tar().raw(&endless), "an extended header of");
    }
    let name = vec![b'n'; 1 << 20];
    let tree = merge(&[tar().entry("L", b'L', "", &name).file("cut", "1").end()]);
    assert_eq!(tree.iter().next().unwrap().0.len(), 1 << 20);
}

#[test]
fn invalid_pax_records_are_rejected() {
    let broken: [&[u8]; 10] = [
        b"path=x\n",
        b"9 path=x\n\n",
        b"99 path=x\n",
        b"0 \n",
        b"1 ",
        b"9 path=xy",
        b"7 pathx\n",
        b"-9 path=x\n",
        b"99999999999999999999999 path=x\n",
        b"                    9 path=x\n",
    ];
    for body in broken {
        assert_rejected(tar().entry("x", b'x', "", body).file("a", "1"), "invalid pax record");
    }
}

#[test]
fn a_decompression_bomb_is_stopped_at_the_limit() {
    let plain = tar().entry("zeros", b'0', "", &vec![0; 8 << 20]).end();
    for form in [gzip(&plain), zstd(&plain)] {
        assert!(form.len() < 64 << 10);
        let (_directory, image) = image_of(&[form]);
        let limits = LayerLimits { unpacked: 1 << 20, ..LayerLimits::default() };
        let passed = image.walk(limits, |_, _| Ok(None::<()>)).unwrap_err().to_string();
        let read = image.walk(limits, |_, content| Ok(Some(content.all()?.len()))).unwrap_err().to_string();
        for error in [passed, read] {
            assert!(
                error.contains("decompresses to more than 1048576 bytes: rejected as a decompression bomb"),
                "{error}"
            );
        }
        // Below a gibibyte any ratio is accepted.
        let limits = LayerLimits { ratio: 1, ..LayerLimits::default() };
        assert!(image.walk(limits, |_, content| Ok(Some(content.all()?.len()))).is_ok());
    }
}

#[test]
fn a_layer_with_too_many_entries_is_rejected() {
    let layer = tar().file("a", "1").file("b", "2").whiteout("c").end();
    let (_directory, image) = image_of(&[layer]);
    let walk = |entries| image.walk(LayerLimits { entries, ..LayerLimits::default() }, |_, _| Ok(None::<()>));
    assert!(walk(2).unwrap_err().to_string().contains("rejected: more than 2 entries"));
    assert_eq!(walk(3).unwrap().iter().count(), 2);
}

#[test]
fn entries_without_a_name_are_ignored() {
    for name in ["", "/", ".", "./", "././/"] {
        let layer = tar().file("a", "1").entry(name, b'0', "", b"").directory(name).symlink(name, "a");
        assert_eq!(lines(&merge(&[layer.hard_link(name, "a").end()])), ["a=1"], "{name:?}");
    }
}

#[test]
fn invalid_whiteouts_are_rejected() {
    for name in [".wh.", ".wh..", ".wh...", "d/.wh.", "d/.wh..."] {
        let error = rejection(tar().file("d/a", "1").file(name, "").end());
        assert!(error.contains("is an invalid whiteout"), "{name}: {error}");
    }
    let tree = merge(&[tar().file("...", "1").file("a", "2").end(), tar().file(".wh....", "").end()]);
    assert_eq!(lines(&tree), ["a=2"]);
}

#[test]
fn a_name_ends_at_nul_and_invalid_utf8_is_replaced() {
    let layer = tar().entry(b"a\0hidden", b'0', "", b"1").entry(b"d/\xff\xfe", b'0', "", b"2");
    let tree = merge(&[layer.end()]);
    assert_eq!(lines(&tree), ["a=1", "d/", "d/\u{fffd}\u{fffd}=2"]);
    assert_eq!(tree.names("d").count(), 1);
}

#[test]
fn a_pax_name_with_a_nul_hides_no_other_file() {
    let layer = tar().file("a", "1").pax(&[("path", b"a\0b")]).file("cut", "2").file("b", "3");
    if let Ok(tree) = try_merge(&[layer.end()]) {
        assert_eq!((text(&tree, "a"), text(&tree, "b")), ("1".to_owned(), "3".to_owned()));
        assert_eq!(tree.names("").count(), tree.iter().count());
    }
}

#[test]
fn sparse_maps_are_bounded() {
    let mut sparse = header(b"s", b'S', 0, b"");
    sparse[482] = 1;
    seal(&mut sparse);
    let mut more = [0; 512];
    more[504] = 1;
    let endless = (0..5000).fold(tar().raw(&sparse), |tar, _| tar.raw(&more));
    assert_rejected(endless, "too many extents");
    let error = rejection(tar().raw(&sparse).0);
    assert!(error.contains("unexpected end of layer in a sparse map"), "{error}");
}

/// The error of opening a layout.
#[track_caller]
fn unopened(blobs: &Blobs, top: &Value) -> ImageError {
    let directory = tempfile::tempdir().unwrap();
    blobs.write(directory.path(), top);
    let from_directory = open(&layout(directory.path()), &options(directory.path())).err().expect("it opens");
    let file = directory.path().join("image.tar");
    fs::write(&file, blobs.archive(top)).unwrap();
    let from_archive =
        open(&support::archive(&file), &options(directory.path())).err().expect("the archive opens");
    assert_eq!(std::mem::discriminant(&from_directory), std::mem::discriminant(&from_archive));
    from_directory
}

#[test]
fn nested_indexes_are_bounded() {
    let mut blobs = Blobs::default();
    let mut descriptor = blobs.image("amd64", &[tar().end()]);
    for depth in 1..8 {
        let top = index(&[descriptor.clone()]);
        let directory = tempfile::tempdir().unwrap();
        blobs.write(directory.path(), &top);
        let opened = open(&layout(directory.path()), &options(directory.path()));
        // `index.json` is not one of the image's own documents.
        assert_eq!(opened.is_ok(), depth <= 4, "{depth}");
        assert_eq!(read_bundle(&layout(directory.path()), &options(directory.path())).is_ok(), depth <= 4);
        if depth > 4 {
            let error = unopened(&blobs, &top).to_string();
            assert!(error.contains("nested too deeply"), "{error}");
        }
        descriptor = blobs.document(support::INDEX, &top);
    }
}

#[test]
fn a_size_that_differs_from_the_manifest_is_rejected() {
    let mut blobs = Blobs::default();
    let good = blobs.image("amd64", &[tar().end()]);
    for (size, reason) in [
        (json!(0), "bytes, expected"),
        (json!(7), "bytes, expected"),
        (json!(1_u64 << 44), "bytes, expected"),
        (json!((1_u64 << 44) + 1), "larger than any image"),
        (json!(u64::MAX), "larger than any image"),
    ] {
        let mut lying = good.clone();
        lying["size"] = size;
        let error = unopened(&blobs, &index(&[lying])).to_string();
        assert!(error.contains(reason), "{error}");
    }
    let config = blobs.document(CONFIG, &configuration("amd64", 1));
    let mut layer = blobs.add(LAYER, tar().end());
    layer["size"] = json!(1025);
    let manifest = blobs.manifest(&config, &[layer], "amd64");
    let error = unopened(&blobs, &index(&[manifest])).to_string();
    assert!(error.contains("has 1024 bytes, expected 1025"), "{error}");
}

#[test]
fn documents_with_a_wrong_digest_are_rejected() {
    let mut blobs = Blobs::default();
    let manifest = blobs.image("amd64", &[tar().end()]);
    let digests: Vec<String> = blobs.0.keys().cloned().collect();
    for digest in digests {
        let mut swapped = blobs.clone();
        let bytes = swapped.0.get_mut(&digest).unwrap();
        if !bytes.starts_with(b"{") {
            continue;
        }
        // The same length, but one byte differs.
        let at = bytes.windows(5).position(|part| part == b"linux" || part == b"oci.i").unwrap();
        bytes[at] ^= 0x20;
        let error = unopened(&swapped, &index(std::slice::from_ref(&manifest))).to_string();
        assert!(error.contains("digest mismatch"), "{error}");
    }
}

#[test]
fn digests_with_paths_are_rejected() {
    for digest in ["sha256:../../../etc/passwd", "../x", "md5:00", "", "sha256:ABC"] {
        let top = index(&[json!({"mediaType": MANIFEST, "digest": digest, "size": 1})]);
        assert!(unopened(&Blobs::default(), &top).to_string().contains("is not a digest"), "{digest}");
    }
    let missing = json!({"mediaType": MANIFEST, "digest": Digest::sha256_of(b"x").to_string(), "size": 1});
    let directory = tempfile::tempdir().unwrap();
    Blobs::default().write(directory.path(), &index(&[missing]));
    assert!(matches!(
        open(&layout(directory.path()), &options(directory.path())),
        Err(ImageError::Io { .. })
    ));
}

#[test]
fn manifest_and_configuration_must_agree_about_the_number_of_layers() {
    let mut blobs = Blobs::default();
    let layer = blobs.add(LAYER, tar().end());
    let config = blobs.document(CONFIG, &configuration("amd64", 2));
    for layers in [vec![], vec![layer.clone()], vec![layer.clone(), layer.clone(), layer]] {
        let manifest = blobs.manifest(&config, &layers, "amd64");
        let error = unopened(&blobs, &index(&[manifest])).to_string();
        assert!(error.contains("different numbers of layers"), "{error}");
    }
}

#[test]
fn encrypted_layers_are_reported() {
    let mut blobs = Blobs::default();
    let layer = blobs.add("application/vnd.oci.image.layer.v1.tar+gzip+encrypted", b"secret".to_vec());
    let config = blobs.document(CONFIG, &configuration("amd64", 1));
    let manifest = blobs.manifest(&config, &[layer], "amd64");
    assert!(unopened(&blobs, &index(&[manifest])).to_string().contains("encrypted layers are not supported"));
}

#[test]
fn documents_that_are_not_manifests_are_rejected() {
    let documents = [
        (json!({"schemaVersion": 1, "fsLayers": []}), "schema version 1"),
        (json!({"schemaVersion": 2}), "neither an index nor a manifest"),
        (json!({"schemaVersion": 2, "manifests": []}), "the index is empty"),
        (json!({"schemaVersion": 2, "manifests": 5}), "invalid type"),
        (json!({"schemaVersion": 2, "manifests": [{"digest": "x"}]}), "missing field"),
        (json!([]), ""),
        (json!(null), ""),
    ];
    for (document, part) in documents {
        let mut blobs = Blobs::default();
        let top = unopened(&blobs, &document);
        assert!(matches!(top, ImageError::Document { .. }) && top.to_string().contains(part), "{top}");
        let below = blobs.document("application/octet-stream", &document);
        let error = unopened(&blobs, &index(&[below])).to_string();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn a_document_of_nine_megabytes_is_rejected() {
    let mut blobs = Blobs::default();
    let good = blobs.image("amd64", &[tar().end()]);
    let mut large = index(&[good]);
    large["annotations"] = json!({"long": "x".repeat(9 << 20)});
    assert!(unopened(&blobs, &large).to_string().contains("too large for an image document"));
    let below = blobs.document(support::INDEX, &large);
    assert!(matches!(unopened(&blobs, &index(&[below])), ImageError::Document { .. }));
}

#[test]
fn deeply_nested_documents_are_rejected() {
    let mut blobs = Blobs::default();
    let deep = format!("{{\"manifests\":{}{}}}", "[".repeat(200_000), "]".repeat(200_000));
    let below = blobs.add(MANIFEST, deep.into_bytes());
    assert!(matches!(unopened(&blobs, &index(&[below])), ImageError::Document { .. }));
}

#[test]
fn one_of_two_images_in_a_layout_must_be_selected() {
    let mut blobs = Blobs::default();
    let first = blobs.image("amd64", &[tar().file("first", "1").end()]);
    let second = blobs.image("amd64", &[tar().file("second", "2").end()]);
    let error = unopened(&blobs, &index(&[named(second.clone(), "b"), named(first.clone(), "a")]));
    assert!(matches!(&error, ImageError::Several { names, .. } if names == &["a", "b"]), "{error}");
    assert!(error.hints()[0].ends_with(":a"), "{:?}", error.hints());
    // Without names and platforms nothing is left to choose by, and the message must not end in an empty list.
    let bare = |mut descriptor: Value| {
        descriptor.as_object_mut().unwrap().remove("platform");
        descriptor
    };
    let error = unopened(&blobs, &index(&[bare(first), bare(second)])).to_string();
    assert!(!error.trim_end().ends_with("it contains"), "{error}");
}

#[test]
fn a_missing_platform_is_reported_with_the_available_ones() {
    let mut blobs = Blobs::default();
    let (arm, power) = (blobs.image("arm64", &[]), blobs.image("ppc64le", &[]));
    let directory = tempfile::tempdir().unwrap();
    let wanted: Platform = "linux/riscv64".parse().unwrap();
    let options_for_riscv = OpenOptions { platform: Some(wanted), ..options(directory.path()) };
    // A single image is not used for another platform either.
    for (manifests, found) in
        [(vec![arm.clone(), power], vec!["linux/arm64", "linux/ppc64le"]), (vec![arm], vec!["linux/arm64"])]
    {
        blobs.write(directory.path(), &index(&manifests));
        let error = open(&layout(directory.path()), &options_for_riscv).err().unwrap();
        let ImageError::NoPlatform { requested, available, .. } = &error else { panic!("{error}") };
        assert_eq!(requested, "linux/riscv64");
        assert_eq!(*available, found);
        assert_eq!(error.hints(), ["choose one with --platform linux/arm64"]);
    }
}

#[test]
fn invalid_platforms_are_rejected() {
    for text in ["", "linux", "linux/", "/amd64", "linux/arm/v7/x"] {
        assert!(text.parse::<Platform>().is_err(), "{text}");
    }
    assert_eq!("linux/aarch64".parse::<Platform>().unwrap(), Platform::linux("arm64"));
    assert_eq!("linux/arm/v7".parse::<Platform>().unwrap().to_string(), "linux/arm/v7");
}
