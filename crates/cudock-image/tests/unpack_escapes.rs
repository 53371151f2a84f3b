//! Archives that try to get out of their folder: each attempt ends in a refusal or stays inside.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail loudly"
)]

mod support;
mod unpack_support;

use std::fs;
use std::io::Write;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};

use cudock_image::unpack::{Store, StoreOptions, UnpackError};
use cudock_image::{Limits, open};
use sha2::{Digest, Sha256};
use support::{Tar, gzip, header, layout, options, seal, zstd};
use unpack_support::{Bench, attribute, image_with, is_root, layout_with, set_number, silent};

fn tar() -> Tar {
    Tar::default()
}

/// Why a layer is refused; whatever it tried, nothing outside has changed and nothing is kept.
#[track_caller]
fn refused(layer: Vec<u8>) -> String {
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

/// What one layer becomes, as lines; and nothing outside has changed.
#[track_caller]
fn lines(layer: Tar) -> Vec<String> {
    let bench = Bench::new();
    let unpacked = bench.unpack(&[layer.end()]);
    bench.assert_untouched();
    unpack_support::lines(&unpacked.layers[0])
}

#[test]
fn names_that_lead_upwards_are_refused() {
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
            let error = refused(layer.end());
            assert!(error.contains("leads out of the image"), "{name}: {error}");
        }
    }
    let odd = refused(tar().pax(&[("path", b"\xff/../../x")]).file("a", "1").end());
    assert!(odd.contains("leads out of the image"), "{odd}");
}

#[test]
fn absolute_names_are_names_below_the_root_of_the_layer() {
    let got = lines(tar().file("/etc/passwd", "mine").directory("//usr//").hard_link("/p", "/etc/passwd"));
    assert_eq!(got, ["etc/", "etc/passwd=mine", "p=mine", "usr/"]);
}

#[test]
fn writing_through_a_link_stays_inside_however_far_up_it_leads() {
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
fn a_file_at_the_place_of_a_link_replaces_it_and_is_not_written_through_it() {
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
fn a_hard_link_takes_nothing_from_outside() {
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
        assert!(error.contains("which is not there"), "{error}");
    }
    // A link to a link is that link: what it leads to is not touched.
    let unpacked = bench.unpack(&[tar().symlink("l", victim).hard_link("m", "l").file("m", "1").end()]);
    assert_eq!(fs::read_link(unpacked.layers[0].join("l")).unwrap().to_str(), Some(victim));
    bench.assert_untouched();
    assert_eq!(fs::metadata(victim).unwrap().nlink(), 1);
}

#[test]
fn a_folder_that_becomes_a_link_between_two_entries_leads_nowhere_else() {
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
fn links_in_a_circle_are_refused() {
    for layer in [
        tar().symlink("a", "b").symlink("b", "a").file("a/x", "1"),
        tar().symlink("a", "a").file("a/x", "1"),
        tar().symlink("a", "a/a").hard_link("x", "a/y"),
    ] {
        assert!(refused(layer.end()).contains("links in a circle"));
    }
}

#[test]
fn device_nodes_are_left_out_with_a_note() {
    let mut node = header(b"dev/sda", b'4', 0, b"");
    set_number(&mut node, 329, 8);
    set_number(&mut node, 337, 0);
    let bench = Bench::new();
    let layer =
        tar().raw(&node).entry("null", b'3', "", b"").hard_link("again", "dev/sda").file("after", "1");
    let unpacked = bench.unpack(&[layer.end()]);
    assert_eq!(unpack_support::lines(&unpacked.layers[0]), ["after=1", "dev/"]);
    assert_eq!(unpacked.notes, ["layer 1: 3 device nodes left out: dev/sda, null, again"]);
}

#[test]
fn device_nodes_on_request_are_made_but_never_one_that_overlayfs_takes_for_a_removal() {
    if !is_root() {
        cudock_testkit::missing("device-nodes", "making device nodes takes root");
        return;
    }
    let bench = Bench::new();
    let mut node = header(b"full", b'3', 0, b"");
    set_number(&mut node, 329, 1);
    set_number(&mut node, 337, 7);
    let layer = tar().raw(&node).entry("fake-whiteout", b'3', "", b"").end();
    let options = StoreOptions { devices: true, ..StoreOptions::of_process() };
    let store = Store::open_with(bench.store_folder(), options).unwrap();
    let (_folder, image) = image_with(&[layer]);
    let unpacked = store.unpack(&image, &silent()).unwrap();
    let made = fs::symlink_metadata(unpacked.layers[0].join("full")).unwrap();
    assert!(made.file_type().is_char_device() && made.rdev() == 0x107, "{:x}", made.rdev());
    assert!(!unpacked.layers[0].join("fake-whiteout").exists());
    assert!(unpacked.notes[0].contains("1 device nodes left out: fake-whiteout"), "{:?}", unpacked.notes);
}

#[test]
fn names_of_all_bytes_that_linux_takes_are_kept_byte_by_byte() {
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
fn a_byte_of_zero_in_a_name_is_refused() {
    for record in ["path", "linkpath"] {
        let layer = tar().file("a", "").pax(&[(record, b"a\0b")]).symlink("s", "a");
        assert!(refused(layer.end()).contains("byte of zero"), "{record}");
    }
    let layer = tar().file("a", "").pax(&[("linkpath", b"a\0b")]).hard_link("s", "a");
    assert!(refused(layer.end()).contains("byte of zero"));
}

#[test]
fn names_longer_than_linux_takes_are_refused_and_the_longest_are_made() {
    let named = |name: &str| tar().pax(&[("path", name.as_bytes())]).file("cut", "1");
    assert!(refused(named(&"n".repeat(256)).end()).contains("a name of 256 bytes"));
    assert!(refused(named(&"n/".repeat(3000)).end()).contains("a path of 5999 bytes"));
    assert!(refused(named(&format!("{}/x", "m".repeat(256))).end()).contains("a name of 256 bytes"));
    assert!(
        refused(tar().pax(&[("linkpath", &[b'l'; 5000])]).symlink("s", "cut").end()).contains("5000 bytes")
    );
    assert_eq!(lines(named(&"n".repeat(255))).len(), 1);
}

#[test]
fn nesting_of_a_hundred_thousand_levels_is_refused_and_what_a_path_can_name_is_made() {
    let deep = |levels: usize| {
        let path = "d/".repeat(levels);
        tar().pax(&[("path", path.as_bytes())]).directory("cut").end()
    };
    assert!(refused(deep(100_000)).contains("a path of"));
    let bench = Bench::new();
    let unpacked = bench.unpack(&[deep(2000)]);
    drop(unpacked);
    // As deep as it is, it can be removed again.
    assert_eq!(bench.store().prune(&|_| false).unwrap().layers, 1);
    assert_eq!(bench.layers_on_disk(), Vec::<String>::new());
}

#[test]
fn links_that_make_paths_longer_than_linux_takes_are_refused() {
    let long = "d/".repeat(1500);
    let layer = tar()
        .pax(&[("linkpath", long.as_bytes())])
        .symlink("l", "cut")
        .pax(&[("path", format!("l/{long}/x").as_bytes())])
        .file("cut", "1");
    assert!(refused(layer.end()).contains("a path of"));
}

#[test]
fn sizes_that_lie_are_refused() {
    let lying = |size: u64| tar().raw(&header(b"big", b'0', size, b"")).raw(b"short");
    for layer in [lying(1 << 30).0, gzip(&lying(1 << 30).0), zstd(&lying(1 << 30).0)] {
        assert!(refused(layer).contains("ends in the middle of an entry"));
    }
    let mut endless = header(b"big", b'0', 0, b"");
    endless[124..136].copy_from_slice(b"\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff");
    seal(&mut endless);
    assert!(refused(tar().raw(&endless).end()).contains("ends in the middle"));
}

#[test]
fn files_with_holes_are_made_with_their_holes_in_each_way_to_write_them() {
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
fn maps_of_holes_that_lie_are_refused() {
    let one = |size: &str, map: &str| {
        let records: [(&str, &[u8]); 2] =
            [("GNU.sparse.size", size.as_bytes()), ("GNU.sparse.map", map.as_bytes())];
        refused(tar().pax(&records).file("s", "DATA").end())
    };
    for (size, map) in
        [("8", "6,4"), ("8", "0,5"), ("8", "0,2,1,2"), ("8", "18446744073709551615,4"), ("8", "0")]
    {
        let error = one(size, map);
        assert!(error.contains("map of holes"), "{size} {map}: {error}");
    }
    assert!(one("9223372036854775807", "0,4").contains("claims 9223372036854775807 bytes"));
    let listed = |body: &[u8]| {
        let records: [(&str, &[u8]); 3] =
            [("GNU.sparse.major", b"1"), ("GNU.sparse.minor", b"0"), ("GNU.sparse.realsize", b"8192")];
        refused(tar().pax(&records).entry("s", b'0', "", body).end())
    };
    let filled = |text: &[u8]| {
        let mut body = text.to_vec();
        body.resize(512, 0);
        body
    };
    assert!(listed(&filled(b"9999999\n")).contains("more holes than can be"));
    assert!(listed(&filled(b"1\n0\n9000\n")).contains("map of holes"));
    assert!(listed(&filled(b"x\n")).contains("map of holes is broken"));
    assert!(listed(b"1\n").contains("map of holes is broken"));
}

#[test]
fn a_decompression_bomb_is_stopped_at_the_limit_and_leaves_nothing() {
    let plain = tar().entry("zeros", b'0', "", &vec![0; 8 << 20]).end();
    let behind_the_end = [tar().file("a", "1").end(), vec![0; 8 << 20]].concat();
    for bytes in [gzip(&plain), zstd(&plain), gzip(&behind_the_end)] {
        let bench = Bench::new();
        let limits = Limits { unpacked: 1 << 20, ..Limits::default() };
        let options = StoreOptions { limits, ..StoreOptions::of_process() };
        let store = Store::open_with(bench.store_folder(), options).unwrap();
        let (_folder, image) = image_with(&[bytes]);
        let error = store.unpack(&image, &silent()).unwrap_err().to_string();
        assert!(error.contains("refused as a decompression bomb"), "{error}");
        assert_eq!(bench.layers_on_disk(), Vec::<String>::new());
    }
}

#[test]
fn a_million_entries_pass_and_more_than_the_limit_do_not() {
    // Written as it is made: all of it at once would be half a gigabyte.
    let count = 1_000_000;
    let (mut packed, mut hash) = (::zstd::Encoder::new(Vec::new(), 1).unwrap(), Sha256::new());
    let entry = tar().directory("d").0;
    for block in std::iter::repeat_n(entry.as_slice(), count).chain([[0; 1024].as_slice()]) {
        packed.write_all(block).unwrap();
        hash.update(block);
    }
    let layer = packed.finish().unwrap();
    let digits: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    let folder = tempfile::tempdir().unwrap();
    layout_with(folder.path(), &[layer], &[format!("sha256:{digits}")]);
    let image = open(&layout(folder.path()), &options(folder.path())).unwrap();
    let bench = Bench::new();
    for (entries, passes) in [(count as u64 - 1, false), (count as u64, true)] {
        let limits = Limits { entries, ..Limits::default() };
        let store_options = StoreOptions { limits, ..StoreOptions::of_process() };
        let store = Store::open_with(bench.store_folder(), store_options).unwrap();
        match store.unpack(&image, &silent()) {
            Ok(unpacked) => assert!(passes && unpack_support::lines(&unpacked.layers[0]) == ["d/"]),
            Err(error) => {
                assert!(!passes && error.to_string().contains("more than 999999 entries"), "{error}");
            }
        }
        assert_eq!(bench.layers_on_disk().len(), usize::from(passes));
    }
}

#[test]
fn of_entries_with_one_name_the_last_counts_and_links_to_the_first_keep_it() {
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
        .file("f/g", "a folder now");
    let expected = ["a=second", "d/", "d/x=1", "e=a file now", "f/", "f/g=a folder now", "kept=first"];
    assert_eq!(lines(layer), expected);
}

#[test]
fn a_hard_link_may_take_the_place_of_what_it_links_to() {
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
fn whiteouts_that_remove_nothing_with_a_name_are_refused() {
    for name in [".wh.", ".wh..", ".wh...", "d/.wh.", "d/.wh..."] {
        let error = refused(tar().file("d/a", "1").file(name, "").end());
        assert!(error.contains("removes nothing that has a name"), "{name}: {error}");
    }
}

#[test]
fn attributes_that_overlayfs_reads_cannot_be_smuggled_in() {
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
        if let Some(value) = attribute(&path, "user.fine") {
            assert_eq!(value, b"kept");
        } else {
            cudock_testkit::missing("user-attributes", "this file system has no user attributes");
        }
    }
    assert!(unpacked.notes[0].contains("10 extended attributes left out"), "{:?}", unpacked.notes);
}

#[test]
fn owners_that_nobody_can_be_are_refused() {
    for record in ["uid", "gid"] {
        for number in ["4294967295", "4294967296", "18446744073709551615"] {
            let error = refused(tar().pax(&[(record, number.as_bytes())]).file("a", "1").end());
            assert!(error.contains("which nobody can be"), "{record} {number}: {error}");
        }
        assert!(refused(tar().pax(&[(record, b"-1")]).file("a", "1").end()).contains("is not a number"));
    }
}

#[test]
fn folders_that_nobody_may_enter_do_not_stop_what_goes_into_them() {
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
fn bytes_that_are_flipped_or_cut_off_never_get_out_of_their_folder() {
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
    // Both halves are whole archives, so that one is unpacked above the other.
    let twice = [plain.clone(), plain].concat();
    cudock_image::unpack::fuzz(&twice);
    for at in (0..twice.len()).filter(|at| at % 512 < 8 || (100..160).contains(&(at % 512))).step_by(13) {
        let mut bytes = twice.clone();
        bytes[at] ^= 0x11;
        cudock_image::unpack::fuzz(&bytes);
        cudock_image::unpack::fuzz(&twice[..at]);
    }
}
