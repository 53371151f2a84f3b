//! Archives that try to escape from their directory: each is rejected or stays inside.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};

use cudock_base::{Algorithm, Hasher};
use cudock_image::LayerLimits;
use cudock_image::unpack::{LayerStore, StoreOptions, UnpackError};
use rustix::fs::{XattrFlags, setxattr};

use crate::support::{Tar, gzip, header, layout, open, options, seal, set_number, zstd};
use crate::unpack_support::{self, Bench, attribute, image_with, layout_with, silent};

fn tar() -> Tar {
    Tar::default()
}

/// The error for a rejected layer; nothing outside has changed and nothing is kept.
#[track_caller]
fn rejected(layer: Vec<u8>) -> String {
    let bench = Bench::new();
    let error = bench.try_unpack(&[layer]).expect_err("it is unpacked");
    bench.assert_untouched();
    assert_eq!(bench.layers_on_disk(), Vec::<String>::new(), "something is left behind");
    chain(&error)
}

fn chain(error: &UnpackError) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(next) = source {
        text = format!("{text}: {next}");
        source = next.source();
    }
    text
}

/// The listing of an unpacked layer; nothing outside has changed.
#[track_caller]
fn lines(layer: Tar) -> Vec<String> {
    let bench = Bench::new();
    let unpacked = bench.unpack(&[layer.end()]);
    bench.assert_untouched();
    unpack_support::lines(&unpacked.layers[0])
}

#[test]
fn path_traversal_is_rejected() {
    for name in ["../x", "a/../../x", "..", "/../x", "a/.."] {
        for layer in [
            tar().file(name, "1"),
            tar().directory(name),
            tar().symlink(name, "x"),
            tar().file("a", "1").hard_link("b", name),
            tar().pax(&[("path", name.as_bytes())]).file("a", "1"),
            tar().file("a", "1").pax(&[("linkpath", name.as_bytes())]).hard_link("b", "a"),
            tar().entry(name, b'6', "", b""),
        ] {
            let error = rejected(layer.end());
            assert!(error.contains("points outside the image"), "{name}: {error}");
        }
    }
    let odd = rejected(tar().pax(&[("path", b"\xff/../../x")]).file("a", "1").end());
    assert!(odd.contains("points outside the image"), "{odd}");
}

#[test]
fn absolute_names_are_relative_to_the_root_of_the_layer() {
    let got = lines(tar().file("/etc/passwd", "mine").directory("//usr//").hard_link("/p", "/etc/passwd"));
    assert_eq!(got, ["etc/", "etc/passwd=mine", "p=mine", "usr/"]);
}

#[test]
fn writing_through_a_symlink_stays_inside() {
    let bench = Bench::new();
    let outside = bench.outside().to_str().unwrap().to_owned();
    let up = format!("{}{}", "../".repeat(40), outside.trim_start_matches('/'));
    let layer = tar()
        .symlink("absolute", &outside)
        .file("absolute/new", "1")
        .symlink("up", "../../../../../../../../../..")
        .file("up/etc2", "2")
        .pax(&[("linkpath", up.as_bytes())])
        .symlink("relative", "cut")
        .file("relative/victim", "3")
        .symlink("root", "/")
        .file("root/top", "4")
        .directory("root/made")
        .hard_link("root/linked", "up/top");
    let unpacked = bench.unpack(&[layer.end()]);
    bench.assert_untouched();
    let root = &unpacked.layers[0];
    let inside = root.join(outside.trim_start_matches('/'));
    assert_eq!(fs::read_to_string(inside.join("new")).unwrap(), "1");
    assert_eq!(fs::read_to_string(inside.join("victim")).unwrap(), "3");
    assert_eq!(fs::read_to_string(root.join("etc2")).unwrap(), "2");
    assert_eq!(fs::read_to_string(root.join("linked")).unwrap(), "4");
    assert!(root.join("made").is_dir() && fs::symlink_metadata(root.join("root")).unwrap().is_symlink());
}

#[test]
fn a_file_replaces_a_symlink_and_is_not_written_through_it() {
    let bench = Bench::new();
    let victim = bench.outside().join("victim");
    let target = victim.to_str().unwrap();
    let layer =
        tar().symlink("l", target).file("l", "replaced").symlink("m", target).entry("m", b'6', "", b"");
    let unpacked = bench.unpack(&[layer.end()]);
    bench.assert_untouched();
    assert_eq!(fs::read_to_string(unpacked.layers[0].join("l")).unwrap(), "replaced");
    assert!(fs::symlink_metadata(unpacked.layers[0].join("m")).unwrap().file_type().is_fifo());
}

#[test]
fn a_hard_link_cannot_reach_outside() {
    let bench = Bench::new();
    let victim = bench.outside().join("victim");
    let victim = victim.to_str().unwrap();
    for layer in [
        tar().hard_link("stolen", victim),
        tar().symlink("d", bench.outside().to_str().unwrap()).hard_link("stolen", "d/victim"),
        tar().symlink("up", "../../../../../../..").hard_link("stolen", &format!("up{victim}")),
        tar().symlink("r", "/proc/self/root").hard_link("stolen", &format!("r{victim}")),
    ] {
        let error = chain(&bench.try_unpack(&[layer.end()]).unwrap_err());
        assert!(error.contains("which does not exist"), "{error}");
    }
    // A hard link to a symlink is that symlink: its target is not touched.
    let unpacked = bench.unpack(&[tar().symlink("l", victim).hard_link("m", "l").file("m", "1").end()]);
    assert_eq!(fs::read_link(unpacked.layers[0].join("l")).unwrap().to_str(), Some(victim));
    bench.assert_untouched();
    assert_eq!(fs::metadata(victim).unwrap().nlink(), 1);
}

#[test]
fn a_directory_replaced_by_a_symlink_does_not_redirect_outside() {
    let bench = Bench::new();
    let outside = bench.outside().to_str().unwrap().to_owned();
    let layer = tar()
        .directory("d")
        .file("d/first", "1")
        .symlink("d", &outside)
        .file("d/victim", "2")
        .directory("d/sub")
        .file("d/sub/x", "3")
        .directory("d")
        .file("d/last", "4");
    let unpacked = bench.unpack(&[layer.end()]);
    bench.assert_untouched();
    let root = &unpacked.layers[0];
    assert_eq!(unpack_support::lines(&root.join("d")), ["last=4"]);
    let inside = root.join(outside.trim_start_matches('/'));
    assert_eq!(unpack_support::lines(&inside), ["sub/", "sub/x=3", "victim=2"]);
}

#[test]
fn symlink_loops_are_rejected() {
    for layer in [
        tar().symlink("a", "b").symlink("b", "a").file("a/x", "1"),
        tar().symlink("a", "a").file("a/x", "1"),
        tar().symlink("a", "a/a").hard_link("x", "a/y"),
    ] {
        assert!(rejected(layer.end()).contains("symlink loop"));
    }
}

#[test]
fn device_nodes_are_skipped_with_a_note() {
    let mut node = header(b"dev/sda", b'4', 0, b"");
    set_number(&mut node, 329, 8);
    set_number(&mut node, 337, 0);
    let bench = Bench::new();
    let layer =
        tar().raw(&node).entry("null", b'3', "", b"").hard_link("again", "dev/sda").file("after", "1");
    let unpacked = bench.unpack(&[layer.end()]);
    assert_eq!(unpack_support::lines(&unpacked.layers[0]), ["after=1", "dev/"]);
    assert_eq!(unpacked.notes, ["layer 1: 3 device nodes skipped: dev/sda, null, again"]);
}

#[test]
fn names_may_contain_any_byte_that_linux_allows() {
    use std::os::unix::ffi::OsStrExt;
    let odd: [&[u8]; 5] = [b"new\nline", b"caf\xe9", b"\xff\xfe", b" blank ", b"-rf"];
    let layer = odd.iter().fold(tar(), |tar, name| tar.entry(name, b'0', "", b"x"));
    let bench = Bench::new();
    let unpacked = bench.unpack(&[layer.end()]);
    for name in odd {
        let path = unpacked.layers[0].join(std::ffi::OsStr::from_bytes(name));
        assert_eq!(fs::read(path).unwrap(), b"x", "{name:?}");
    }
    assert_eq!(fs::read_dir(&unpacked.layers[0]).unwrap().count(), odd.len());
}

#[test]
fn a_nul_byte_in_a_name_is_rejected() {
    for record in ["path", "linkpath"] {
        let layer = tar().file("a", "").pax(&[(record, b"a\0b")]).symlink("s", "a");
        assert!(rejected(layer.end()).contains("NUL byte"), "{record}");
    }
    let layer = tar().file("a", "").pax(&[("linkpath", b"a\0b")]).hard_link("s", "a");
    assert!(rejected(layer.end()).contains("NUL byte"));
}

#[test]
fn names_beyond_linux_limits_are_rejected_and_the_longest_are_created() {
    let named = |name: &str| tar().pax(&[("path", name.as_bytes())]).file("cut", "1");
    assert!(rejected(named(&"n".repeat(256)).end()).contains("a name of 256 bytes"));
    assert!(rejected(named(&"n/".repeat(3000)).end()).contains("a path of 5999 bytes"));
    assert!(rejected(named(&format!("{}/x", "m".repeat(256))).end()).contains("a name of 256 bytes"));
    assert!(
        rejected(tar().pax(&[("linkpath", &[b'l'; 5000])]).symlink("s", "cut").end()).contains("5000 bytes")
    );
    assert_eq!(lines(named(&"n".repeat(255))).len(), 1);
}

#[test]
fn excessive_nesting_is_rejected_and_the_deepest_path_is_created() {
    let deep = |levels: usize| {
        let path = "d/".repeat(levels);
        tar().pax(&[("path", path.as_bytes())]).directory("cut").end()
    };
    assert!(rejected(deep(100_000)).contains("a path of"));
    let bench = Bench::new();
    let unpacked = bench.unpack(&[deep(2000)]);
    drop(unpacked);
    // It can be removed again, however deep it is.
    assert_eq!(bench.store().prune(&|_| false).unwrap().layers, 1);
    assert_eq!(bench.layers_on_disk(), Vec::<String>::new());
}

#[test]
fn symlinks_that_exceed_the_path_limit_are_rejected() {
    let long = "d/".repeat(1500);
    let layer = tar()
        .pax(&[("linkpath", long.as_bytes())])
        .symlink("l", "cut")
        .pax(&[("path", format!("l/{long}/x").as_bytes())])
        .file("cut", "1");
    assert!(rejected(layer.end()).contains("a path of"));
}

#[test]
fn false_sizes_are_rejected() {
    let lying = |size: u64| tar().raw(&header(b"big", b'0', size, b"")).raw(b"short");
    for layer in [lying(1 << 30).0, gzip(&lying(1 << 30).0), zstd(&lying(1 << 30).0)] {
        assert!(rejected(layer).contains("in the middle of an entry"));
    }
    let mut endless = header(b"big", b'0', 0, b"");
    endless[124..136].copy_from_slice(b"\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff");
    seal(&mut endless);
    assert!(rejected(tar().raw(&endless).end()).contains("in the middle of an entry"));
}

#[test]
fn sparse_files_are_created_from_every_sparse_format() {
    let bench = Bench::new();
    let mut gnu = header(b"gnu", b'S', 4, b"");
    gnu[386..397].copy_from_slice(b"00000010000");
    gnu[398..409].copy_from_slice(b"00000000004");
    gnu[483..494].copy_from_slice(b"00000020000");
    seal(&mut gnu);
    let layer = tar()
        .raw(&gnu)
        .raw(b"DATA")
        .pax(&[
            ("GNU.sparse.size", b"8192"),
            ("GNU.sparse.numblocks", b"1"),
            ("GNU.sparse.offset", b"4096"),
            ("GNU.sparse.numbytes", b"4"),
        ])
        .file("v0.0", "DATA")
        .pax(&[("GNU.sparse.size", b"8192"), ("GNU.sparse.name", b"v0.1"), ("GNU.sparse.map", b"4096,4")])
        .file("GNUSparseFile.1/v0.1", "DATA")
        .pax(&[
            ("GNU.sparse.major", b"1"),
            ("GNU.sparse.minor", b"0"),
            ("GNU.sparse.name", b"v1.0"),
            ("GNU.sparse.realsize", b"8192"),
        ])
        .entry("GNUSparseFile.1/v1.0", b'0', "", &{
            let mut body = b"1\n4096\n4\n".to_vec();
            body.resize(512, 0);
            body.extend_from_slice(b"DATA");
            body
        })
        .file("after", "1");
    let unpacked = bench.unpack(&[layer.end()]);
    let mut expected = vec![0; 8192];
    expected[4096..4100].copy_from_slice(b"DATA");
    for name in ["gnu", "v0.0", "v0.1", "v1.0"] {
        assert_eq!(fs::read(unpacked.layers[0].join(name)).unwrap(), expected, "{name}");
    }
    assert_eq!(fs::read(unpacked.layers[0].join("after")).unwrap(), b"1");
}

#[test]
fn invalid_sparse_maps_are_rejected() {
    let one = |size: &str, map: &str| {
        let records: [(&str, &[u8]); 2] =
            [("GNU.sparse.size", size.as_bytes()), ("GNU.sparse.map", map.as_bytes())];
        rejected(tar().pax(&records).file("s", "DATA").end())
    };
    for (size, map) in
        [("8", "6,4"), ("8", "0,5"), ("8", "0,2,1,2"), ("8", "18446744073709551615,4"), ("8", "0")]
    {
        let error = one(size, map);
        assert!(error.contains("sparse map"), "{size} {map}: {error}");
    }
    assert!(one("9223372036854775807", "0,4").contains("claims 9223372036854775807 bytes"));
    let listed = |body: &[u8]| {
        let records: [(&str, &[u8]); 3] =
            [("GNU.sparse.major", b"1"), ("GNU.sparse.minor", b"0"), ("GNU.sparse.realsize", b"8192")];
        rejected(tar().pax(&records).entry("s", b'0', "", body).end())
    };
    let filled = |text: &[u8]| {
        let mut body = text.to_vec();
        body.resize(512, 0);
        body
    };
    assert!(listed(&filled(b"9999999\n")).contains("too many extents"));
    assert!(listed(&filled(b"1\n0\n9000\n")).contains("sparse map"));
    assert!(listed(&filled(b"x\n")).contains("invalid sparse map"));
    assert!(listed(b"1\n").contains("invalid sparse map"));
}

#[test]
fn a_decompression_bomb_is_stopped_at_the_limit_and_leaves_nothing() {
    let plain = tar().entry("zeros", b'0', "", &vec![0; 8 << 20]).end();
    let behind_the_end = [tar().file("a", "1").end(), vec![0; 8 << 20]].concat();
    for bytes in [gzip(&plain), zstd(&plain), gzip(&behind_the_end)] {
        let bench = Bench::new();
        let limits = LayerLimits { unpacked: 1 << 20, ..LayerLimits::default() };
        let options = StoreOptions { limits, ..StoreOptions::for_process() };
        let store = LayerStore::open_with(bench.store_dir(), options).unwrap();
        let (_directory, image) = image_with(&[bytes]);
        let error = store.unpack(&image, &silent()).unwrap_err().to_string();
        assert!(error.contains("rejected as a decompression bomb"), "{error}");
        assert_eq!(bench.layers_on_disk(), Vec::<String>::new());
    }
}

#[test]
fn a_million_entries_are_accepted_and_more_than_the_limit_are_not() {
    let bench = Bench::new();
    let unpack = |count: usize, limit: u64| {
        // Compressed while it is generated: a million would take half a gigabyte in memory.
        let (mut packed, mut hash) =
            (::zstd::Encoder::new(Vec::new(), 1).unwrap(), Hasher::new(Algorithm::Sha256));
        let entry = tar().directory("d").0;
        for block in std::iter::repeat_n(entry.as_slice(), count).chain([[0; 1024].as_slice()]) {
            packed.write_all(block).unwrap();
            hash.update(block);
        }
        let layer = packed.finish().unwrap();
        let directory = tempfile::tempdir().unwrap();
        layout_with(directory.path(), &[layer], &[hash.digest().to_string()]);
        let image = open(&layout(directory.path()), &options(directory.path())).unwrap();
        let limits = LayerLimits { entries: limit, ..LayerLimits::default() };
        let store_options = StoreOptions { limits, ..StoreOptions::for_process() };
        LayerStore::open_with(bench.store_dir(), store_options).unwrap().unpack(&image, &silent())
    };
    let error = unpack(1000, 999).unwrap_err();
    assert!(error.to_string().contains("more than 999 entries"), "{error}");
    assert_eq!(bench.layers_on_disk().len(), 0);
    let unpacked = unpack(1_000_000, 1_000_000).unwrap();
    assert_eq!(unpack_support::lines(&unpacked.layers[0]), ["d/"]);
    assert_eq!(bench.layers_on_disk().len(), 1);
}

#[test]
fn the_last_of_several_entries_wins_and_hard_links_keep_the_first() {
    let layer = tar()
        .file("a", "first")
        .hard_link("kept", "a")
        .file("a", "second")
        .directory("d")
        .file("d/x", "1")
        .directory("d")
        .file("e/y", "1")
        .file("e", "a file now")
        .file("f", "1")
        .file("f/g", "a directory now");
    let expected = ["a=second", "d/", "d/x=1", "e=a file now", "f/", "f/g=a directory now", "kept=first"];
    assert_eq!(lines(layer), expected);
}

#[test]
fn a_hard_link_may_replace_an_ancestor_of_its_target() {
    let layer = tar()
        .file("d/x", "1")
        .hard_link("d", "d/x")
        .file("e", "2")
        .hard_link("e/x", "e")
        .file("f", "3")
        .hard_link("f", "f")
        .directory("g")
        .hard_link("g", "f");
    assert_eq!(lines(layer), ["d=1", "e/", "e/x=2", "f=3", "g=3"]);
}

#[test]
fn invalid_whiteouts_are_rejected() {
    for name in [".wh.", ".wh..", ".wh...", "d/.wh.", "d/.wh..."] {
        let error = rejected(tar().file("d/a", "1").file(name, "").end());
        assert!(error.contains("is an invalid whiteout"), "{name}: {error}");
    }
}

#[test]
fn overlayfs_attributes_are_not_unpacked() {
    let records: [(&str, &[u8]); 6] = [
        ("SCHILY.xattr.trusted.overlay.opaque", b"y"),
        ("SCHILY.xattr.trusted.overlay.redirect", b"/etc"),
        ("SCHILY.xattr.user.overlay.opaque", b"y"),
        ("SCHILY.xattr.user.overlay.whiteout", b"y"),
        ("SCHILY.xattr.security.selinux", b"label"),
        ("SCHILY.xattr.user.fine", b"kept"),
    ];
    let bench = Bench::new();
    let layer = tar().pax(&records).directory("d").pax(&records).file("f", "1");
    let unpacked = bench.unpack(&[layer.end()]);
    for name in ["d", "f"] {
        let path = unpacked.layers[0].join(name);
        for (record, _) in &records[..5] {
            let attribute_name = record.trim_start_matches("SCHILY.xattr.");
            if attribute_name != "security.selinux" {
                assert_eq!(attribute(&path, attribute_name), None, "{attribute_name}");
            }
        }
        if let Err(error) = setxattr(&path, "user.probe", b"1", XattrFlags::empty()) {
            cudock_testkit::missing("user-attributes", format_args!("{}: {error}", path.display()));
        } else {
            assert_eq!(attribute(&path, "user.fine").as_deref(), Some(b"kept".as_slice()));
        }
    }
    assert!(unpacked.notes[0].contains("10 extended attributes skipped"), "{:?}", unpacked.notes);
}

#[test]
fn invalid_owners_are_rejected() {
    for record in ["uid", "gid"] {
        for number in ["4294967295", "4294967296", "18446744073709551615"] {
            let error = rejected(tar().pax(&[(record, number.as_bytes())]).file("a", "1").end());
            assert!(error.contains("has an invalid owner"), "{record} {number}: {error}");
        }
        assert!(rejected(tar().pax(&[(record, b"-1")]).file("a", "1").end()).contains("is not a number"));
    }
}

#[test]
fn inaccessible_directories_can_have_contents() {
    let mut closed = header(b"closed/", b'5', 0, b"");
    closed[100..107].copy_from_slice(b"0000000");
    seal(&mut closed);
    let bench = Bench::new();
    let unpacked = bench.unpack(&[tar().raw(&closed).file("closed/x", "1").end()]);
    let path = unpacked.layers[0].join("closed");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0);
    drop(unpacked);
    assert_eq!(bench.store().prune(&|_| false).unwrap().layers, 1);
}

#[test]
fn corrupted_archives_never_escape() {
    let plain = tar()
        .directory("d")
        .symlink("l", "../../d")
        .pax(&[("path", b"l/x"), ("mtime", b"1.5")])
        .file("cut", "1")
        .hard_link("h", "l/x")
        .whiteout("d/y")
        .opaque("d")
        .file("l/z", "2")
        .end();
    // Both halves are complete archives, so one is unpacked on top of the other.
    let twice = [plain.clone(), plain].concat();
    cudock_image::unpack::fuzz(&twice);
    for at in (0..twice.len()).filter(|at| at % 512 < 8 || (100..160).contains(&(at % 512))).step_by(13) {
        let mut bytes = twice.clone();
        bytes[at] ^= 0x11;
        cudock_image::unpack::fuzz(&bytes);
        cudock_image::unpack::fuzz(&twice[..at]);
    }
}
