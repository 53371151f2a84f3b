use cudock_build::unpack::{PackageKind::Wheel, PackedContent, Scheme};
use cudock_image::FileKind;
use proptest::prelude::*;

use crate::support::{INFO, archive, read, refused, wheel};

#[test]
fn files_go_where_their_scheme_says() {
    let points = format!("{INFO}/entry_points.txt");
    let bytes = wheel(&[
        ("pkg/__init__.py", b"x = 1\n"),
        ("pkg-1.0.data/scripts/tool", b"#!python\nprint()\n"),
        ("pkg-1.0.data/data/share/a.txt", b"a"),
        ("pkg-1.0.data/headers/a.h", b""),
        ("pkg-1.0.data/purelib/pkg/more.py", b""),
        (&points, b"[console_scripts]\nrun = pkg:main\n"),
    ]);
    let list = read(Wheel, &bytes).unwrap();
    let found =
        |scheme, path: &str| list.entries.iter().find(|entry| entry.scheme == scheme && entry.path == path);
    assert!(found(Scheme::Site, "pkg/__init__.py").is_some_and(|entry| entry.mode == 0o644));
    assert!(found(Scheme::Site, "pkg/more.py").is_some());
    assert!(found(Scheme::Data, "share/a.txt").is_some());
    assert!(found(Scheme::Headers, "a.h").is_some());
    assert!(found(Scheme::Scripts, "run").is_some_and(|entry| entry.mode == 0o755));
    let tool = found(Scheme::Scripts, "tool").unwrap();
    let line = "#!/usr/local/bin/python3\nprint()\n".len() as u64;
    assert!(matches!(tool.kind, FileKind::File(PackedContent { size, .. }) if size == line));
}

#[test]
fn hostile_wheels_are_refused() {
    let record = format!("{INFO}/RECORD");
    let long = "a".repeat(300);
    for (name, members, message) in [
        ("absolute", vec![("/etc/passwd", b"x".as_slice())], "absolute"),
        ("climbing", vec![("../evil.py", b"x")], "leads out"),
        ("climbing inside", vec![("pkg/../../evil.py", b"x")], "leads out"),
        ("climbing in data", vec![("pkg-1.0.data/scripts/../x", b"x")], "leads out"),
        ("backslash", vec![("pkg\\evil.py", b"x")], "backslash"),
        ("unknown scheme", vec![("pkg-1.0.data/root/etc/x", b"x")], "not a place"),
        ("scheme without a file", vec![("pkg-1.0.data/data", b"x")], "empty name"),
        ("whiteout", vec![("pkg/.wh.os.py", b"x")], "whiteout"),
        ("long name", vec![(long.as_str(), b"x")], "too long"),
    ] {
        let reason = refused(Wheel, &wheel(&members));
        assert!(reason.contains(message), "{name}: {reason}");
    }
    let zeros = vec![0; 2 << 20];
    assert!(refused(Wheel, &wheel(&[("pkg/zeros", &zeros)])).contains("bomb"));
    assert!(refused(Wheel, &archive(&[("pkg/a.py", b"x"), (&record, b"")])).contains("not in RECORD"));
    assert!(refused(Wheel, &archive(&[(&record, b"pkg/a.py,sha256=AAAA,1\n")])).contains("invalid line"));
    let hash = format!("pkg/a.py,sha256={},1\n", "A".repeat(43));
    assert!(
        refused(Wheel, &archive(&[("pkg/a.py", b"x"), (&record, hash.as_bytes())]))
            .contains("hash in RECORD")
    );
    assert!(refused(Wheel, &archive(&[(&record, hash.as_bytes())])).contains("not in the archive"));
    assert!(refused(Wheel, &archive(&[("pkg/a.py", b"x")])).contains(".dist-info"));
    assert!(refused(Wheel, b"PK").contains("zip"));
}

#[test]
fn a_symlink_in_a_wheel_is_refused() {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    zip.add_symlink("pkg/link", "/etc/passwd", options).unwrap();
    zip.start_file(format!("{INFO}/RECORD"), options).unwrap();
    let bytes = zip.finish().unwrap().into_inner();
    assert!(refused(Wheel, &bytes).contains("symlink"));
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..400), at in 0_usize..400) {
        let mut wheel = wheel(&[("pkg/a.py", b"x")]);
        for (index, byte) in bytes.iter().enumerate() {
            if let Some(target) = wheel.get_mut(at + index * 7) {
                *target ^= byte;
            }
        }
        let _ = read(Wheel, &wheel);
        let _ = read(Wheel, &bytes);
    }
}
