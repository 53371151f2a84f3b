use cudock_build::unpack::PackageKind::Deb;
use cudock_image::FileKind;
use cudock_testkit::tar::Tar;
use proptest::prelude::*;

use crate::support::{deb, read, refused};

#[test]
fn data_becomes_entries_of_root() {
    let data = Tar::default()
        .directory("./usr")
        .file("./usr/lib/liba.so.1", "elf")
        .symlink("./usr/lib/liba.so", "liba.so.1")
        .hard_link("./usr/lib/copy", "./usr/lib/liba.so.1")
        .end();
    let list = read(Deb, &deb(&data)).unwrap();
    let paths: Vec<&str> = list.entries.iter().map(|entry| entry.path.as_str()).collect();
    assert_eq!(paths, ["usr", "usr/lib/liba.so.1", "usr/lib/liba.so", "usr/lib/copy"]);
    assert_eq!(list.entries[1].kind, list.entries[3].kind);
    assert_eq!(list.entries[2].kind, FileKind::Symlink("liba.so.1".to_owned()));
}

#[test]
fn devices_are_dropped_and_setuid_bits_removed_with_a_note() {
    let data = Tar::default()
        .device("dev/null", b'3', 1, 3)
        .entry("run/fifo", b'6', "", b"")
        .entry_with_mode("usr/bin/su", b'0', 0o4755, b"elf")
        .end();
    let list = read(Deb, &deb(&data)).unwrap();
    assert_eq!(list.entries.len(), 1);
    assert_eq!(list.entries[0].mode, 0o755);
    assert_eq!(list.notes.len(), 3);
}

#[test]
fn hostile_packages_are_refused() {
    let tar = Tar::default;
    for (name, data, message) in [
        ("climbing", tar().file("../etc/passwd", "x"), "outside"),
        ("link out", tar().symlink("usr/a", "../../../etc"), "leads out of the image"),
        ("absolute link out", tar().symlink("usr/a", "/../etc"), "leads out of the image"),
        (
            "through a link",
            tar().symlink("usr/a", "/etc").file("usr/a/passwd", "x"),
            "leads through the link",
        ),
        ("hard link out", tar().hard_link("usr/a", "../../etc/passwd"), "not in the package"),
        ("hard link to nothing", tar().hard_link("usr/a", "etc/shadow"), "not in the package"),
        ("empty link", tar().symlink("usr/a", ""), "without a valid target"),
        ("whiteout", tar().file("usr/.wh.a", ""), "whiteout"),
        ("bomb", tar().file("usr/zeros", vec![0; 2 << 20]), "bomb"),
    ] {
        let reason = refused(Deb, &deb(&data.end()));
        assert!(reason.contains(message), "{name}: {reason}");
    }
    for bytes in [&b"!<arch>\n"[..], b"", b"PK\x03\x04", &deb(b"no tar")] {
        refused(Deb, bytes);
    }
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..600), at in 0_usize..1500) {
        let mut package = deb(&Tar::default().file("usr/a", "content").symlink("usr/b", "a").end());
        for (index, byte) in bytes.iter().enumerate() {
            if let Some(target) = package.get_mut(at + index * 11) {
                *target ^= byte;
            }
        }
        let _ = read(Deb, &package);
        let _ = read(Deb, &bytes);
    }
}
