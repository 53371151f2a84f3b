//! Images that lie: each is refused or stays inside, and none makes the walk panic or grow.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail loudly"
)]

mod support;

use std::fs;

use cudock_base::{Digest, Report as _};
use cudock_image::{ImageError, Limits, OpenOptions, Platform, open};
use serde_json::{Value, json};
use support::{
    Blobs, CONFIG, LAYER, MANIFEST, Tar, configuration, gzip, header, image_of, index, layout, lines, merge,
    named, options, refusal, seal, text, try_merge, zstd,
};

fn tar() -> Tar {
    Tar::default()
}

#[track_caller]
fn assert_refused(layer: Tar, part: &str) {
    let plain = layer.end();
    for form in [plain.clone(), gzip(&plain), zstd(&plain)] {
        let error = refusal(form);
        assert!(error.starts_with("layer 1 (sha256:") && error.contains(part), "{error}");
    }
}

#[test]
fn names_that_lead_upwards_are_refused() {
    for name in ["../x", "a/../../x", "a/..", "..", "/../x", "./a/.././x"] {
        assert_refused(tar().file(name, "1"), "leads out of the image");
        assert_refused(tar().directory(name), "leads out of the image");
        assert_refused(tar().file("a", "1").hard_link("b", name), "leads out of the image");
        assert_refused(tar().pax(&[("path", name.as_bytes())]).file("a", "1"), "leads out of the image");
        assert_refused(tar().entry("L", b'L', "", name.as_bytes()).file("a", "1"), "leads out of the image");
    }
    assert_refused(tar().file("a/../.wh.x", ""), "leads out of the image");
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
fn links_in_a_circle_lead_nowhere_and_nothing_can_be_put_behind_them() {
    let circle = || tar().symlink("a", "b").symlink("b", "./a").symlink("self", "self").symlink("in", "in/x");
    let tree = merge(&[circle().end()]);
    for path in ["a", "b", "self", "in", "a/x", "self/../a", "in/y"] {
        assert!(tree.resolve(path).is_none(), "{path}");
        assert_eq!(tree.names(path).count(), 0, "{path}");
    }
    for name in ["a/x", "self/x", "in/y"] {
        assert_refused(circle().file(name, "1"), "links in a circle");
        assert_refused(circle().hard_link("c", name), "links in a circle");
        // What is removed behind a circle was never there.
        assert_eq!(merge(&[circle().end(), tar().whiteout(name).end()]).len(), 4);
    }
    assert_eq!(merge(&[circle().end(), tar().opaque("a").end()]).len(), 4);
}

#[test]
fn forty_links_are_followed_and_not_one_more() {
    let mut layer = tar().file("end", "1").symlink("l1", "end");
    for number in 2..=41 {
        layer = layer.symlink(&format!("l{number}"), &format!("l{}", number - 1));
    }
    let tree = merge(&[layer.end()]);
    assert_eq!(tree.resolve("l40").unwrap().0, "end");
    assert!(tree.resolve("l41").is_none());
}

#[test]
fn links_that_multiply_end_soon() {
    let mut layer = tar().symlink("l0", &"x/../".repeat(15));
    for number in 1..30 {
        let before = number - 1;
        layer = layer.symlink(&format!("l{number}"), &format!("l{before}/../l{before}/../l{before}"));
    }
    let tree = merge(&[layer.end()]);
    assert!(tree.resolve("l29").is_none());
}

#[test]
fn a_hard_link_to_nothing_or_to_a_directory_is_refused() {
    assert_refused(tar().hard_link("a", "missing"), "hard link to `missing`, which is not there");
    assert_refused(tar().directory("d").hard_link("a", "d"), "which is not there");
    assert_refused(tar().hard_link("a", "a"), "which is not there");
    assert_refused(tar().hard_link("a", ""), "which is not there");
    assert_refused(tar().hard_link("a", "later").file("later", "1"), "which is not there");
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
fn a_size_larger_than_the_layer_is_refused_whether_the_file_is_read_or_not() {
    let sizes: [&[u8]; 4] = [
        b"00000100000\0",
        b"77777777777\0",
        b"\x80\0\0\0\0\0\0\x02\0\0\0\0",
        b"\x80\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff",
    ];
    for size in sizes {
        let plain = tar().raw(&sized(size)).raw(b"short").end();
        for form in [plain.clone(), gzip(&plain), zstd(&plain)] {
            let (_folder, image) = image_of(&[form]);
            let read = image.walk(Limits::default(), |_, content| Ok(Some(content.all()?.len())));
            let begun = image.walk(Limits::default(), |_, content| Ok(Some(content.start()?.len())));
            let passed = image.walk(Limits::default(), |_, _| Ok(None::<usize>));
            for walked in [read, begun, passed] {
                let error = walked.unwrap_err().to_string();
                assert!(error.contains("ends in the middle") || error.contains("too large"), "{error}");
            }
        }
    }
}

#[test]
fn sizes_that_are_no_numbers_are_refused() {
    for size in [
        b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\x80\0\0\x01\0\0\0\0\0\0\0\0",
        b"0000000008 \0",
        b"-0000000001\0",
    ] {
        assert_refused(tar().raw(&sized(size)), "its size is not a number");
    }
    for size in ["-1", "1e3", "18446744073709551616", "+", " 1"] {
        assert_refused(tar().pax(&[("size", size.as_bytes())]).file("a", "1"), "its size is not a number");
    }
    assert_refused(tar().pax(&[("size", b"18446744073709551615")]).file("a", "1"), "");
}

#[test]
fn a_checksum_that_lies_is_refused() {
    for at in [0, 100, 130, 156, 200, 300, 511] {
        let mut layer = tar().file("a", "1").file("b", "2");
        layer.0[1024 + at] ^= 0x04;
        assert_refused(layer, "broken tar header at entry 2: its checksum does not fit");
    }
    assert_refused(tar().raw(&[b'z'; 512]), "its checksum does not fit");
    assert_refused(tar().raw(b"#!/bin/sh\n"), "its checksum does not fit");
}

#[test]
fn one_block_of_zeros_ends_a_layer_only_at_its_end() {
    assert_refused(tar().file("a", "1").raw(&[0; 512]).file("b", "2"), "one block of zeros");
    assert_eq!(lines(&merge(&[tar().file("a", "1").raw(&[0; 512]).0])), ["a=1"]);
    // Two are the end, whatever lies behind.
    let hidden = tar().file("a", "1").raw(&[0; 1024]).file("b", "2").end();
    assert_eq!(lines(&merge(&[hidden])), ["a=1"]);
}

#[test]
fn a_layer_without_its_last_padding_is_whole() {
    // Writers that stop after the last byte exist, and engines unpack what they wrote.
    let layer = tar().file("a", "1");
    assert_eq!(lines(&merge(&[layer.0[..513].to_vec()])), ["a=1"]);
}

#[test]
fn a_layer_cut_off_anywhere_gives_an_error_or_entries_it_had() {
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
            // Between the borders of blocks, cuts of a plain layer are all alike.
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
fn bytes_that_are_flipped_never_make_it_panic() {
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
fn descriptions_of_entries_are_bounded_before_they_are_read() {
    let claimed = (1_u64 << 20) + 1;
    for kind in *b"LKx" {
        // Nothing lies behind the header: a reader that believed it would fail otherwise.
        assert_refused(tar().raw(&header(b"x", kind, claimed, b"")), "1048577 bytes to describe one entry");
        let mut endless = header(b"x", kind, 0, b"");
        endless[124..136].copy_from_slice(b"\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff");
        seal(&mut endless);
        assert_refused(tar().raw(&endless), "bytes to describe one entry");
    }
    let name = vec![b'n'; 1 << 20];
    let tree = merge(&[tar().entry("L", b'L', "", &name).file("cut", "1").end()]);
    assert_eq!(tree.iter().next().unwrap().0.len(), 1 << 20);
}

#[test]
fn broken_pax_records_are_refused() {
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
        assert_refused(tar().entry("x", b'x', "", body).file("a", "1"), "a pax record is broken");
    }
}

#[test]
fn a_decompression_bomb_is_stopped_at_the_limit() {
    let plain = tar().entry("zeros", b'0', "", &vec![0; 8 << 20]).end();
    for form in [gzip(&plain), zstd(&plain)] {
        assert!(form.len() < 64 << 10);
        let (_folder, image) = image_of(&[form]);
        let limits = Limits { unpacked: 1 << 20, ..Limits::default() };
        let passed = image.walk(limits, |_, _| Ok(None::<()>)).unwrap_err().to_string();
        let read = image.walk(limits, |_, content| Ok(Some(content.all()?.len()))).unwrap_err().to_string();
        for error in [passed, read] {
            assert!(
                error.contains("more than 1048576 bytes come out of it: refused as a decompression bomb"),
                "{error}"
            );
        }
        // Below a gigabyte no ratio is suspicious.
        let limits = Limits { ratio: 1, ..Limits::default() };
        assert!(image.walk(limits, |_, content| Ok(Some(content.all()?.len()))).is_ok());
    }
}

#[test]
fn a_layer_with_too_many_entries_is_refused() {
    let layer = tar().file("a", "1").file("b", "2").whiteout("c").end();
    let (_folder, image) = image_of(&[layer]);
    let walk = |entries| image.walk(Limits { entries, ..Limits::default() }, |_, _| Ok(None::<()>));
    assert!(walk(2).unwrap_err().to_string().contains("refused: more than 2 entries"));
    assert_eq!(walk(3).unwrap().len(), 2);
}

#[test]
fn entries_without_a_name_are_no_files() {
    for name in ["", "/", ".", "./", "././/"] {
        let layer = tar().file("a", "1").entry(name, b'0', "", b"").directory(name).symlink(name, "a");
        assert_eq!(lines(&merge(&[layer.hard_link(name, "a").end()])), ["a=1"], "{name:?}");
    }
}

#[test]
fn whiteouts_of_nothing_with_a_name_are_refused() {
    for name in [".wh.", ".wh..", ".wh...", "d/.wh.", "d/.wh..."] {
        let error = refusal(tar().file("d/a", "1").file(name, "").end());
        assert!(error.contains("removes nothing that has a name"), "{name}: {error}");
    }
    let tree = merge(&[tar().file("...", "1").file("a", "2").end(), tar().file(".wh....", "").end()]);
    assert_eq!(lines(&tree), ["a=2"]);
}

#[test]
fn a_name_ends_at_its_nul_and_bytes_that_are_no_text_are_replaced() {
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
        assert_eq!(tree.names("").count(), tree.len());
    }
}

#[test]
fn maps_of_holes_end() {
    let mut sparse = header(b"s", b'S', 0, b"");
    sparse[482] = 1;
    seal(&mut sparse);
    let mut more = [0; 512];
    more[504] = 1;
    let endless = (0..5000).fold(tar().raw(&sparse), |tar, _| tar.raw(&more));
    assert_refused(endless, "more holes than can be");
    let error = refusal(tar().raw(&sparse).0);
    assert!(error.contains("it ends in a map of holes"), "{error}");
}

/// Why a layout is not opened.
#[track_caller]
fn unopened(blobs: &Blobs, top: &Value) -> ImageError {
    let folder = tempfile::tempdir().unwrap();
    blobs.write(folder.path(), top);
    let from_folder = open(&layout(folder.path()), &options(folder.path())).err().expect("it opens");
    let file = folder.path().join("image.tar");
    fs::write(&file, blobs.archive(top)).unwrap();
    let from_archive =
        open(&support::archive(&file), &options(folder.path())).err().expect("the archive opens");
    assert_eq!(std::mem::discriminant(&from_folder), std::mem::discriminant(&from_archive));
    from_folder
}

#[test]
fn indexes_within_indexes_end() {
    let mut blobs = Blobs::default();
    let mut descriptor = blobs.image("amd64", &[tar().end()]);
    for depth in 1..8 {
        let top = index(&[descriptor.clone()]);
        let folder = tempfile::tempdir().unwrap();
        blobs.write(folder.path(), &top);
        let opened = open(&layout(folder.path()), &options(folder.path()));
        assert_eq!(opened.is_ok(), depth <= 3, "{depth}");
        if depth > 3 {
            let error = unopened(&blobs, &top).to_string();
            assert!(error.contains("indexes within indexes"), "{error}");
        }
        descriptor = blobs.document(support::INDEX, &top);
    }
}

#[test]
fn a_size_that_the_manifest_gets_wrong_is_refused() {
    let mut blobs = Blobs::default();
    let good = blobs.image("amd64", &[tar().end()]);
    for size in [json!(0), json!(7), json!(u64::MAX)] {
        let mut lying = good.clone();
        lying["size"] = size;
        let error = unopened(&blobs, &index(&[lying])).to_string();
        assert!(error.contains("bytes, and") && error.contains("were promised"), "{error}");
    }
    let config = blobs.document(CONFIG, &configuration("amd64", 1));
    let mut layer = blobs.add(LAYER, tar().end());
    layer["size"] = json!(1025);
    let manifest = blobs.manifest(&config, &[layer], "amd64");
    let error = unopened(&blobs, &index(&[manifest])).to_string();
    assert!(error.contains("has 1024 bytes, and 1025 were promised"), "{error}");
}

#[test]
fn documents_that_are_not_what_their_digest_says_are_refused() {
    let mut blobs = Blobs::default();
    let manifest = blobs.image("amd64", &[tar().end()]);
    let digests: Vec<String> = blobs.0.keys().cloned().collect();
    for digest in digests {
        let mut swapped = blobs.clone();
        let bytes = swapped.0.get_mut(&digest).unwrap();
        if !bytes.starts_with(b"{") {
            continue;
        }
        // The same document, the same length, another byte.
        let at = bytes.windows(5).position(|part| part == b"linux" || part == b"oci.i").unwrap();
        bytes[at] ^= 0x20;
        let error = unopened(&swapped, &index(std::slice::from_ref(&manifest))).to_string();
        assert!(error.contains("holds other bytes than its name says"), "{error}");
    }
}

#[test]
fn digests_that_are_paths_are_refused() {
    for digest in ["sha256:../../../etc/passwd", "../x", "md5:00", "", "sha256:ABC"] {
        let top = index(&[json!({"mediaType": MANIFEST, "digest": digest, "size": 1})]);
        assert!(unopened(&Blobs::default(), &top).to_string().contains("is no digest"), "{digest}");
    }
    let missing = json!({"mediaType": MANIFEST, "digest": Digest::sha256_of(b"x").to_string(), "size": 1});
    let folder = tempfile::tempdir().unwrap();
    Blobs::default().write(folder.path(), &index(&[missing]));
    assert!(matches!(open(&layout(folder.path()), &options(folder.path())), Err(ImageError::Io { .. })));
}

#[test]
fn manifest_and_configuration_must_agree_about_the_number_of_layers() {
    let mut blobs = Blobs::default();
    let layer = blobs.add(LAYER, tar().end());
    let config = blobs.document(CONFIG, &configuration("amd64", 2));
    for layers in [vec![], vec![layer.clone()], vec![layer.clone(), layer.clone(), layer]] {
        let manifest = blobs.manifest(&config, &layers, "amd64");
        let error = unopened(&blobs, &index(&[manifest])).to_string();
        assert!(error.contains("disagree about the number of layers"), "{error}");
    }
}

#[test]
fn encrypted_layers_are_named_as_such() {
    let mut blobs = Blobs::default();
    let layer = blobs.add("application/vnd.oci.image.layer.v1.tar+gzip+encrypted", b"secret".to_vec());
    let config = blobs.document(CONFIG, &configuration("amd64", 1));
    let manifest = blobs.manifest(&config, &[layer], "amd64");
    assert!(unopened(&blobs, &index(&[manifest])).to_string().contains("its layers are encrypted"));
}

#[test]
fn documents_that_are_no_manifests_are_refused_with_what_they_are() {
    let documents = [
        (json!({"schemaVersion": 1, "fsLayers": []}), "first schema"),
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
        let below = blobs.document(MANIFEST, &document);
        let error = unopened(&blobs, &index(&[below])).to_string();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn a_document_of_nine_megabytes_is_refused() {
    let mut blobs = Blobs::default();
    let good = blobs.image("amd64", &[tar().end()]);
    let mut large = index(&[good]);
    large["annotations"] = json!({"long": "x".repeat(9 << 20)});
    assert!(unopened(&blobs, &large).to_string().contains("too large for a document of an image"));
    let below = blobs.document(support::INDEX, &large);
    assert!(matches!(unopened(&blobs, &index(&[below])), ImageError::Document { .. }));
}

#[test]
fn documents_nested_without_end_are_refused() {
    let mut blobs = Blobs::default();
    let deep = format!("{{\"manifests\":{}{}}}", "[".repeat(200_000), "]".repeat(200_000));
    let below = blobs.add(MANIFEST, deep.into_bytes());
    assert!(matches!(unopened(&blobs, &index(&[below])), ImageError::Document { .. }));
}

#[test]
fn two_images_in_one_layout_have_to_be_told_apart() {
    let mut blobs = Blobs::default();
    let first = blobs.image("amd64", &[tar().file("first", "1").end()]);
    let second = blobs.image("amd64", &[tar().file("second", "2").end()]);
    let error = unopened(&blobs, &index(&[named(second.clone(), "b"), named(first.clone(), "a")]));
    assert!(matches!(&error, ImageError::Several { names, .. } if names == &["a", "b"]), "{error}");
    assert!(error.hints()[0].ends_with(":a"), "{:?}", error.hints());
    // Without names and platforms nothing is left to choose by, and the words must not end in an empty list.
    let bare = |mut descriptor: Value| {
        descriptor.as_object_mut().unwrap().remove("platform");
        descriptor
    };
    let error = unopened(&blobs, &index(&[bare(first), bare(second)])).to_string();
    assert!(!error.trim_end().ends_with("it has"), "{error}");
}

#[test]
fn a_platform_that_is_not_there_is_named_with_those_that_are() {
    let mut blobs = Blobs::default();
    let (arm, power) = (blobs.image("arm64", &[]), blobs.image("ppc64le", &[]));
    let folder = tempfile::tempdir().unwrap();
    let wanted: Platform = "linux/riscv64".parse().unwrap();
    let asked = OpenOptions { platform: Some(wanted), ..options(folder.path()) };
    // One image alone is no reason to take it for another platform.
    for (manifests, found) in
        [(vec![arm.clone(), power], vec!["linux/arm64", "linux/ppc64le"]), (vec![arm], vec!["linux/arm64"])]
    {
        blobs.write(folder.path(), &index(&manifests));
        let error = open(&layout(folder.path()), &asked).err().unwrap();
        let ImageError::NoPlatform { wanted, found: told, .. } = &error else { panic!("{error}") };
        assert_eq!(wanted, "linux/riscv64");
        assert_eq!(*told, found);
        assert_eq!(error.hints(), ["choose one with --platform linux/arm64"]);
    }
}

#[test]
fn words_that_are_no_platform_are_refused() {
    for text in ["", "linux", "linux/", "/amd64", "linux/arm/v7/x"] {
        assert!(text.parse::<Platform>().is_err(), "{text}");
    }
    assert_eq!("linux/aarch64".parse::<Platform>().unwrap(), Platform::linux("arm64"));
    assert_eq!("linux/arm/v7".parse::<Platform>().unwrap().to_string(), "linux/arm/v7");
}
