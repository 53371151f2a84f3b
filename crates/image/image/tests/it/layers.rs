//! Merging of layers, and all variants of the tar format.

use std::sync::Mutex;

use cudock_image::{FileKind, LayerLimits};

use crate::support::{self, Tar, gzip, header, image_of, lines, merge, seal, text, zstd};

fn merged(layers: Vec<Tar>) -> Vec<String> {
    lines(&merge(&layers.into_iter().map(Tar::end).collect::<Vec<_>>()))
}

fn tar() -> Tar {
    Tar::default()
}

#[test]
fn a_whiteout_removes_what_lower_layers_have_and_nothing_else() {
    let lower = tar().file("a", "1").file("ab", "2").directory("d").file("d/x", "3").file("d/y", "4");
    let upper = tar().whiteout("a").whiteout("d/x").whiteout("never/there");
    assert_eq!(merged(vec![lower.clone(), upper]), ["ab=2", "d/", "d/y=4"]);
    let whole = merged(vec![lower.clone(), tar().whiteout("d")]);
    assert_eq!(whole, ["a=1", "ab=2"]);
    assert_eq!(
        merged(vec![lower, tar().whiteout("d"), tar().file("d/z", "5")]),
        ["a=1", "ab=2", "d/", "d/z=5"]
    );
}

#[test]
fn what_a_layer_adds_itself_survives_its_own_whiteouts_in_any_order() {
    let lower = || tar().directory("d").file("d/x", "old").file("d/y", "old");
    let before = tar().whiteout("d/x").file("d/x", "new");
    let after = tar().file("d/x", "new").whiteout("d/x");
    for upper in [before, after] {
        assert_eq!(merged(vec![lower(), upper]), ["d/", "d/x=new", "d/y=old"]);
    }
    let from_directory = tar().file("d/x", "new").whiteout("d");
    assert_eq!(merged(vec![lower(), from_directory]), ["d/", "d/x=new"]);
}

#[test]
fn an_opaque_directory_hides_lower_layers_and_not_its_own_entries() {
    let lower = || tar().directory("d").directory("d/e").file("d/e/x", "old").file("d0", "beside");
    for upper in [
        tar().opaque("d").directory("d").file("d/new", "1"),
        tar().directory("d").file("d/new", "1").opaque("d"),
    ] {
        assert_eq!(merged(vec![lower(), upper]), ["d/", "d/new=1", "d0=beside"]);
    }
    assert_eq!(merged(vec![lower(), tar().opaque("").file("only", "1")]), ["only=1"]);
    assert_eq!(merged(vec![lower(), tar().opaque("none"), tar().opaque("d")]), ["d/", "d0=beside"]);
}

#[test]
fn a_hard_link_resolves_in_this_layer_or_a_lower_one() {
    let lower = tar().file("d/a", "first");
    let upper = tar().hard_link("b", "d/a").file("c", "own").hard_link("e", "/c").hard_link("f", "./e");
    let tree = merge(&[lower.end(), upper.end(), tar().file("d/a", "second").end()]);
    assert_eq!(lines(&tree), ["b=first", "c=own", "d/", "d/a=second", "e=own", "f=own"]);
    assert_eq!(tree.get("b").unwrap().size(), Some(5));
}

#[test]
fn a_hard_link_to_a_symlink_is_that_symlink() {
    let layer = tar().file("a", "1").symlink("l", "a").hard_link("m", "l");
    let tree = merge(&[layer.end()]);
    assert_eq!(lines(&tree), ["a=1", "l>a", "m>a"]);
    assert_eq!(text(&tree, "m"), "1");
}

#[test]
fn a_hard_link_through_a_symlinked_directory_resolves() {
    let lower = tar().file("usr/lib/a", "1").symlink("lib", "usr/lib");
    let upper = tar().hard_link("lib/b", "lib/a");
    assert_eq!(merged(vec![lower, upper]), ["lib>usr/lib", "usr/", "usr/lib/", "usr/lib/a=1", "usr/lib/b=1"]);
}

#[test]
fn paths_through_symlinks_of_lower_layers_are_resolved() {
    let lower =
        || tar().directory("usr").directory("usr/lib").file("usr/lib/a", "1").symlink("lib", "usr/lib");
    let put = merged(vec![lower(), tar().file("lib/x", "2").file("lib/y", "3")]);
    assert_eq!(put, ["lib>usr/lib", "usr/", "usr/lib/", "usr/lib/a=1", "usr/lib/x=2", "usr/lib/y=3"]);
    assert_eq!(merged(vec![lower(), tar().whiteout("lib/a")]), ["lib>usr/lib", "usr/", "usr/lib/"]);
    assert_eq!(merged(vec![lower(), tar().opaque("lib")]), ["lib>usr/lib", "usr/", "usr/lib/"]);
    // A whiteout of its own name removes the symlink itself, and a directory of that name replaces it.
    assert_eq!(merged(vec![lower(), tar().whiteout("lib")]), ["usr/", "usr/lib/", "usr/lib/a=1"]);
    assert_eq!(
        merged(vec![lower(), tar().directory("lib").file("lib/x", "2")]),
        ["lib/", "lib/x=2", "usr/", "usr/lib/", "usr/lib/a=1"]
    );
}

#[test]
fn a_symlink_that_changes_within_a_layer_redirects_later_entries() {
    let lower = || tar().directory("d").directory("e").symlink("l", "d");
    let relinked = tar().file("l/x", "1").symlink("l", "e").file("l/y", "2");
    assert_eq!(merged(vec![lower(), relinked]), ["d/", "d/x=1", "e/", "e/y=2", "l>e"]);
    let by_hard_link = tar().symlink("m", "e").file("l/x", "1").hard_link("l", "m").file("l/y", "2");
    assert_eq!(merged(vec![lower(), by_hard_link]), ["d/", "d/x=1", "e/", "e/y=2", "l>e", "m>e"]);
}

#[test]
fn a_symlink_replaced_by_a_file_no_longer_redirects() {
    let lower = tar().directory("d").symlink("l", "d");
    let upper = tar().file("l/x", "1").file("l", "now a file").file("l/y", "2");
    let tree = merge(&[lower.end(), upper.end()]);
    assert!(tree.get("d/y").is_none(), "{:?}", lines(&tree));
}

#[test]
fn files_and_directories_replace_each_other() {
    let file = || tar().file("p", "1");
    let directory = || tar().directory("p").file("p/q/r", "2").file("p0", "beside");
    assert_eq!(merged(vec![file(), directory()]), ["p/", "p/q/", "p/q/r=2", "p0=beside"]);
    assert_eq!(merged(vec![directory(), file()]), ["p=1", "p0=beside"]);
    assert_eq!(merged(vec![directory(), tar().symlink("p", "p0")]), ["p>p0", "p0=beside"]);
    assert_eq!(merged(vec![directory(), tar().directory("p")]), ["p/", "p/q/", "p/q/r=2", "p0=beside"]);
    assert_eq!(merged(vec![file(), tar().entry("p", b'6', "", b"")]), ["p?"]);
}

#[test]
fn the_last_version_of_a_file_is_kept_and_each_is_inspected_once() {
    let layers = [tar().file("a", "one"), tar().file("a", "second"), tar().file("b", "x").file("a", "3")];
    let (_directory, image) = image_of(&layers.map(Tar::end));
    let seen = Mutex::new(Vec::new());
    let tree = image.walk(LayerLimits::default(), |header, content| {
        assert_eq!((&header.kind, header.mode), (&FileKind::File(header.size()), 0o644));
        seen.lock().unwrap().push(header.path.clone());
        Ok(Some(content.all()?.to_vec()))
    });
    let tree = tree.unwrap();
    assert_eq!(lines(&tree), ["a=3", "b=x"]);
    assert_eq!(tree.get("a").unwrap().size(), Some(1));
    let mut seen = seen.into_inner().unwrap();
    seen.sort();
    assert_eq!(seen, ["a", "a", "a", "b"]);
}

#[test]
fn unread_and_partly_read_files_do_not_affect_the_next() {
    let long = "x".repeat(2000);
    let layer = tar().file("skipped", &long).file("begun", &long).file("short", "abc").file("whole", &long);
    for bytes in [layer.clone().end(), gzip(&layer.clone().end()), zstd(&layer.end())] {
        let (_directory, image) = image_of(&[bytes]);
        let tree = image.walk(LayerLimits::default(), |header, content| {
            Ok(match header.path.as_str() {
                "skipped" => None,
                "begun" | "short" => Some(content.start()?.len()),
                _ => Some(content.start()?.len() + content.all()?.len() + content.start()?.len()),
            })
        });
        let kept = tree.unwrap().iter().map(|(_, node)| node.kept().copied()).collect::<Vec<_>>();
        assert_eq!(kept, [Some(512), Some(3), None, Some(512 + 2000 + 512)]);
    }
}

#[test]
fn gnu_long_names_and_long_links_are_read() {
    let (name, target) = (format!("d/{}", "n".repeat(300)), format!("../{}", "t".repeat(200)));
    let layer = tar()
        .entry("././@LongLink", b'L', "", format!("{name}\0").as_bytes())
        .file("cut off", "1")
        .entry("././@LongLink", b'K', "", format!("{target}\0").as_bytes())
        .entry("././@LongLink", b'L', "", format!("{name}2\0").as_bytes())
        .symlink("cut off", "cut off")
        .file("after", "2");
    assert_eq!(
        merged(vec![layer]),
        ["after=2".into(), "d/".into(), format!("{name}=1"), format!("{name}2>{target}")]
    );
}

#[test]
fn pax_records_give_path_link_and_size() {
    let name = format!("p/{}", "n".repeat(300));
    let mut lying = header(b"small", b'0', 0, b"");
    lying[124..136].copy_from_slice(b"00000000000\0");
    seal(&mut lying);
    let layer = tar()
        .pax(&[("mtime", b"1.5"), ("path", name.as_bytes()), ("SCHILY.xattr.user.a", b"\0=\n\xff")])
        .file("cut off", "1")
        .pax(&[("linkpath", b"somewhere else")])
        .symlink("l", "cut off")
        .pax(&[("size", b"600")])
        .raw(&lying)
        .raw(&[b'z'; 600])
        .file("after", "2");
    let expected = [
        "after=2".into(),
        "l>somewhere else".into(),
        "p/".into(),
        format!("{name}=1"),
        format!("small={}", "z".repeat(600)),
    ];
    assert_eq!(merged(vec![layer]), expected);
}

#[test]
fn an_empty_pax_record_leaves_the_header_as_it_is() {
    // Go's reader, and so every engine, does the same. Otherwise a file visible to a container would be hidden from us.
    let layer = tar().pax(&[("path", b""), ("linkpath", b"")]).file("seen", "1");
    assert_eq!(merged(vec![layer]), ["seen=1"]);
}

#[test]
fn global_pax_records_have_no_effect() {
    let body = support::record("path", b"everything");
    let layer = tar().entry("pax_global_header", b'g', "", &body).file("a", "1").file("b", "2");
    assert_eq!(merged(vec![layer]), ["a=1", "b=2"]);
}

#[test]
fn the_ustar_prefix_comes_before_the_name_and_only_in_ustar() {
    let mut ustar = header(b"name", b'0', 1, b"");
    ustar[345..349].copy_from_slice(b"long");
    seal(&mut ustar);
    let mut gnu = ustar;
    gnu[257..265].copy_from_slice(b"ustar  \0");
    seal(&mut gnu);
    assert_eq!(
        merged(vec![tar().raw(&ustar).raw(b"1").raw(&gnu).raw(b"2")]),
        ["long/", "long/name=1", "name=2"]
    );
}

#[test]
fn sizes_may_be_binary_or_padded_with_blanks() {
    let with = |name: &[u8], field: &[u8; 12]| {
        let mut block = header(name, b'0', 0, b"");
        block[124..136].copy_from_slice(field);
        seal(&mut block);
        block
    };
    let layer = tar()
        .raw(&with(b"binary", b"\x80\0\0\0\0\0\0\0\0\0\0\x03"))
        .raw(b"abc")
        .raw(&with(b"blanks", b"         4 \0"))
        .raw(b"four")
        .raw(&with(b"full", b"000000000005"))
        .raw(b"fives");
    assert_eq!(merged(vec![layer]), ["binary=abc", "blanks=four", "full=fives"]);
}

#[test]
fn old_headers_with_signed_checksums_and_trailing_slashes_are_read() {
    let mut block = header(b"caf\xc3\xa9", b'0', 1, b"");
    let signed: i64 = block
        .iter()
        .enumerate()
        .map(|(at, byte)| if (148..156).contains(&at) { 32 } else { i64::from(byte.cast_signed()) })
        .sum();
    block[148..155].copy_from_slice(format!("{signed:06o}\0").as_bytes());
    let old = tar().entry("dir/", 0, "", b"").entry("file", 0, "", b"2").entry("contiguous", b'7', "", b"3");
    assert_eq!(merged(vec![old.raw(&block).raw(b"1")]), ["café=1", "contiguous=3", "dir/", "file=2"]);
}

#[test]
fn a_regular_file_has_contents_even_if_its_name_ends_in_a_slash() {
    // Go treats a trailing slash as a directory only for old headers. A reader that skips less than Go does would
    // parse contents as headers, and see files that no container has.
    let hidden = Tar::default().file("hidden", "").0;
    let layer = tar().entry("x/", b'0', "", &hidden).file("after", "1");
    let tree = merge(&[layer.end()]);
    assert!(tree.get("hidden").is_none() && tree.get("after").is_some(), "{:?}", lines(&tree));
}

#[test]
fn sparse_files_are_listed_but_not_inspected() {
    let mut gnu = header(b"gnu", b'S', 700, b"");
    gnu[482] = 1;
    seal(&mut gnu);
    let mut map = [0; 512];
    map[504] = 1;
    let layer = tar()
        .raw(&gnu)
        .raw(&map)
        .raw(&[0; 512])
        .raw(&[b'x'; 700])
        .pax(&[("GNU.sparse.major", b"1"), ("GNU.sparse.name", b"pax"), ("GNU.sparse.realsize", b"9999")])
        .entry("GNUSparseFile.0/pax", b'0', "", &[b'y'; 600])
        .file("after", "1");
    assert_eq!(merged(vec![layer]), ["after=1", "gnu?", "pax?"]);
}

#[test]
fn the_name_of_a_sparse_file_wins_in_any_order() {
    let records: [(&str, &[u8]); 3] =
        [("GNU.sparse.major", b"1"), ("GNU.sparse.name", b"real"), ("path", b"GNUSparseFile.0/real")];
    let mut turned = records;
    turned.reverse();
    for records in [records, turned] {
        assert_eq!(merged(vec![tar().pax(&records).file("cut off", "x")]), ["real?"]);
    }
}

#[test]
fn devices_and_fifos_are_listed_without_contents() {
    let layer = tar().entry("null", b'3', "", b"").entry("sda", b'4', "", b"").entry("p", b'6', "", b"");
    assert_eq!(merged(vec![layer.file("after", "1")]), ["after=1", "null?", "p?", "sda?"]);
}

#[test]
fn a_layer_is_the_same_with_any_compression() {
    // The descriptor always says gzip; the magic bytes decide.
    let plain = tar().directory("d").file("d/x", "long ".repeat(40_000)).symlink("l", "d/x").end();
    let (first, second) = plain.split_at(1000);
    let skippable = [b"\x5a\x2a\x4d\x18\x05\0\0\0hello".as_slice(), &zstd(&plain)].concat();
    let forms = [
        gzip(&plain),
        [gzip(first), gzip(second)].concat(),
        zstd(&plain),
        [zstd(first), zstd(second)].concat(),
        skippable,
    ];
    let expected = lines(&merge(std::slice::from_ref(&plain)));
    assert_eq!(expected.len(), 3);
    for (number, form) in forms.into_iter().enumerate() {
        assert_eq!(lines(&merge(&[form])), expected, "form {number}");
    }
}

#[test]
fn names_lists_one_directory_and_follows_symlinks_to_it() {
    let layer = tar()
        .file("d/b/deep/er", "")
        .file("d/a", "")
        .file("d/b-c", "")
        .file("d/b0", "")
        .file("d.x", "")
        .symlink("l", "d")
        .symlink("gone", "nowhere")
        .directory("e");
    let tree = merge(&[layer.end()]);
    let names = |path: &str| tree.names(path).map(str::to_owned).collect::<Vec<_>>();
    for path in ["d", "/d/", "l", "e/../d", "l/b/.."] {
        assert_eq!(names(path), ["a", "b", "b-c", "b0"], "{path}");
    }
    assert_eq!(names("/"), ["d", "d.x", "e", "gone", "l"]);
    assert_eq!(names("d/b"), ["deep"]);
    for nothing in ["e", "gone", "d/a", "missing"] {
        assert!(names(nothing).is_empty(), "{nothing}");
    }
}

#[test]
fn resolve_follows_symlinks_in_all_components() {
    let layer = tar()
        .file("usr/lib/x86/libc.so.6", "c")
        .symlink("lib", "usr/lib")
        .symlink("usr/lib/libc.so", "x86/libc.so.6")
        .symlink("usr/here", "../lib/./x86")
        .symlink("absolute", "/lib/libc.so")
        .symlink("high", "../../../../usr")
        .symlink("gone", "usr/none");
    let tree = merge(&[layer.end()]);
    let real = |path: &str| tree.resolve(path).map(|(path, _)| path);
    for path in [
        "usr/lib/x86/libc.so.6",
        "/lib/libc.so",
        "absolute",
        "usr/here/libc.so.6",
        "high/here/../libc.so",
        "lib/../../lib/x86/../libc.so",
        "//lib//x86/./libc.so.6",
    ] {
        assert_eq!(real(path).as_deref(), Some("usr/lib/x86/libc.so.6"), "{path}");
    }
    assert_eq!(real("lib").as_deref(), Some("usr/lib"));
    assert_eq!(real("gone"), None);
    assert!(tree.get("gone").is_some() && tree.get("/lib/").is_some());
    assert!(tree.get("lib/libc.so").is_none(), "get follows nothing");
}

#[test]
fn aufs_metadata_is_ignored() {
    let lower = tar().file("plnk", "1").file("aufs", "2");
    let upper =
        tar().directory(".wh..wh.plnk").file(".wh..wh.aufs", "").directory("d").file("d/.wh..wh.orph", "");
    assert_eq!(merged(vec![lower, upper]), ["aufs=2", "d/", "plnk=1"]);
}

#[test]
fn an_image_without_layers_or_with_empty_ones_is_an_empty_tree() {
    assert!(merge(&[]).iter().next().is_none());
    let tree = merge(&[tar().end(), gzip(&tar().end()), Vec::new(), tar().directory(".").end()]);
    assert_eq!(tree.iter().count(), 0);
}
