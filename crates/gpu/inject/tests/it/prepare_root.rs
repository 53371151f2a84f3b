//! Roots made ready for a driver, among them roots that mean harm.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use cudock_host::ld_cache::Cache;
use cudock_inject::{Edits, ElfClass, Library, Link, Text, library_directory, prepare_root};
use cudock_testkit::driver_tree::{DEBIAN, DriverTree};

const ARCH: &str = std::env::consts::ARCH;

fn edits(directory: &str) -> Edits {
    let at = |name: &str| Path::new(directory).join(name);
    Edits {
        links: vec![
            Link { path: at("libcuda.so.1"), target: PathBuf::from("libcuda.so.580.1") },
            Link { path: at("libcuda.so"), target: PathBuf::from("libcuda.so.1") },
            Link { path: PathBuf::from("/dev/dri/by-path/pci-0-card"), target: PathBuf::from("../card0") },
        ],
        texts: vec![
            Text { path: PathBuf::from("/proc/driver/nvidia/params"), contents: "x".to_owned() },
            Text { path: PathBuf::from("/etc/nvidia/profile.conf"), contents: "{}\n".to_owned() },
        ],
        libraries: vec![Library {
            soname: "libcuda.so.1".to_owned(),
            path: at("libcuda.so.1"),
            class: ElfClass::Bits64,
        }],
        ..Edits::default()
    }
}

fn cached(tree: &DriverTree) -> Vec<(String, String)> {
    let bytes = fs::read(tree.at("/etc/ld.so.cache")).unwrap();
    Cache::parse(&bytes).unwrap().entries.into_iter().map(|entry| (entry.name, entry.path)).collect()
}

fn libcuda(directory: &str) -> (String, String) {
    ("libcuda.so.1".to_owned(), format!("{directory}/libcuda.so.1"))
}

/// The names in a directory, sorted.
fn names(path: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn links_texts_and_cache_are_made() {
    let tree = DriverTree::new().directory(DEBIAN);
    prepare_root(tree.path(), &edits(DEBIAN)).unwrap();
    assert_eq!(
        fs::read_link(tree.at(&format!("{DEBIAN}/libcuda.so.1"))).unwrap(),
        Path::new("libcuda.so.580.1")
    );
    assert_eq!(fs::read_link(tree.at(&format!("{DEBIAN}/libcuda.so"))).unwrap(), Path::new("libcuda.so.1"));
    assert_eq!(fs::read_to_string(tree.at("/etc/nvidia/profile.conf")).unwrap(), "{}\n");
    assert_eq!(cached(&tree), [libcuda(DEBIAN)]);
    let mode = fs::metadata(tree.at("/etc/ld.so.cache")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o644);
    assert!(!tree.at("/dev").exists(), "what is mounted later is left alone");
    assert!(!tree.at("/proc/driver").exists());
    assert!(!tree.at("/etc/ld.so.conf.d").exists(), "a directory every ldconfig searches needs no line");
    assert_eq!(names(&tree.at("/etc")), ["ld.so.cache", "nvidia"], "nothing is left over");
}

#[test]
fn doing_it_again_changes_nothing() {
    let tree = DriverTree::new().directory(DEBIAN);
    prepare_root(tree.path(), &edits(DEBIAN)).unwrap();
    let before = fs::read(tree.at("/etc/ld.so.cache")).unwrap();
    prepare_root(tree.path(), &edits(DEBIAN)).unwrap();
    assert_eq!(fs::read(tree.at("/etc/ld.so.cache")).unwrap(), before);
}

#[test]
fn what_the_image_had_in_the_cache_stays_behind_the_driver() {
    let tree = DriverTree::new().directory(DEBIAN);
    prepare_root(tree.path(), &edits("/opt/old")).unwrap();
    prepare_root(tree.path(), &edits(DEBIAN)).unwrap();
    assert_eq!(cached(&tree), [libcuda(DEBIAN), libcuda("/opt/old")]);
}

#[test]
fn a_directory_of_its_own_is_added_for_ldconfig() {
    let tree = DriverTree::new();
    prepare_root(tree.path(), &edits("/usr/local/nvidia/lib64")).unwrap();
    let line = fs::read_to_string(tree.at("/etc/ld.so.conf.d/00-cudock.conf")).unwrap();
    assert_eq!(line, "/usr/local/nvidia/lib64\n");
    assert_eq!(fs::read_to_string(tree.at("/etc/ld.so.conf")).unwrap(), "include /etc/ld.so.conf.d/*.conf\n");
}

#[test]
fn musls_list_of_directories_grows_and_keeps_its_entries() {
    let path = format!("/etc/ld-musl-{ARCH}.path");
    let loader = format!("/lib/ld-musl-{ARCH}.so.1");
    let tree = DriverTree::new().file(&loader, "loader");
    prepare_root(tree.path(), &edits("/usr/lib64")).unwrap();
    assert_eq!(fs::read_to_string(tree.at(&path)).unwrap(), "/lib\n/usr/local/lib\n/usr/lib\n/usr/lib64\n");
    assert!(!tree.at("/etc/ld.so.cache").exists(), "no loader here reads one");

    let tree = DriverTree::new().file(&loader, "loader").file(&path, "/lib:/opt/lib\n/usr/lib64");
    prepare_root(tree.path(), &edits("/usr/lib64")).unwrap();
    assert_eq!(fs::read_to_string(tree.at(&path)).unwrap(), "/lib:/opt/lib\n/usr/lib64", "it knew already");

    let tree = DriverTree::new().file(&loader, "loader");
    prepare_root(tree.path(), &edits("/usr/lib")).unwrap();
    assert!(!tree.at(&path).exists(), "it looks there by itself");
}

#[test]
fn files_of_the_image_in_the_way_are_replaced() {
    let tree = DriverTree::new()
        .file(&format!("{DEBIAN}/libcuda.so.1"), "baked in")
        .link(&format!("{DEBIAN}/libcuda.so"), "/nowhere")
        .file("/etc/ld.so.cache", "not a cache");
    prepare_root(tree.path(), &edits(DEBIAN)).unwrap();
    assert_eq!(
        fs::read_link(tree.at(&format!("{DEBIAN}/libcuda.so.1"))).unwrap(),
        Path::new("libcuda.so.580.1")
    );
    assert_eq!(fs::read_link(tree.at(&format!("{DEBIAN}/libcuda.so"))).unwrap(), Path::new("libcuda.so.1"));
    assert_eq!(cached(&tree), [libcuda(DEBIAN)]);
}

#[test]
fn a_directory_in_the_way_is_an_error_with_its_path() {
    let tree = DriverTree::new().directory(&format!("{DEBIAN}/libcuda.so.1"));
    let error = prepare_root(tree.path(), &edits(DEBIAN)).unwrap_err();
    assert!(error.to_string().starts_with(&format!("cannot link {DEBIAN}/libcuda.so.1 in ")), "{error}");
}

/// Links of all kinds that lead out of the root, in every place that is written to.
#[test]
fn no_link_leads_out_of_the_root() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("keep"), "mine").unwrap();
    let out = outside.path().to_str().unwrap();
    let up = format!("{}{}", "../".repeat(40), out.trim_start_matches('/'));
    for target in [out, up.as_str()] {
        for place in ["/etc", "/usr", "/usr/lib", DEBIAN, "/etc/nvidia", "/etc/ld.so.conf.d"] {
            let tree = DriverTree::new().link(place, target);
            // It may fail, since the target is not in the root; it must not get out.
            prepare_root(tree.path(), &edits(DEBIAN)).ok();
            prepare_root(tree.path(), &edits("/usr/local/odd")).ok();
            assert_eq!(names(outside.path()), ["keep"], "{place} -> {target}");
        }
        let file = format!("{target}/keep");
        for place in ["/etc/ld.so.cache", "/etc/nvidia/profile.conf", "/etc/ld.so.conf.d/00-cudock.conf"] {
            let tree = DriverTree::new().link(place, &file);
            prepare_root(tree.path(), &edits("/usr/local/odd")).unwrap();
            assert_eq!(fs::read_to_string(outside.path().join("keep")).unwrap(), "mine", "{place} -> {file}");
            assert!(!tree.at(place).is_symlink(), "the link itself is replaced");
        }
    }
}

#[test]
fn an_absolute_link_is_followed_inside_the_root() {
    let tree = DriverTree::new()
        .directory("/data/etc")
        .link("/etc", "/data/etc")
        .directory("/usr/lib64")
        .link("/lib64", "usr/lib64");
    prepare_root(tree.path(), &edits("/lib64")).unwrap();
    assert!(tree.at("/data/etc/ld.so.cache").exists());
    assert!(tree.at("/usr/lib64/libcuda.so.1").is_symlink());
}

#[test]
fn a_pipe_for_a_cache_does_not_hang() {
    let tree = DriverTree::new().directory("/etc");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        tree.at("/etc/ld.so.cache"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o644),
        0,
    )
    .unwrap();
    prepare_root(tree.path(), &edits(DEBIAN)).unwrap();
    assert_eq!(cached(&tree), [libcuda(DEBIAN)]);
}

#[test]
fn dots_in_edits_are_refused() {
    let tree = DriverTree::new();
    let edits = Edits {
        links: vec![Link { path: PathBuf::from("/usr/../../x"), target: PathBuf::from("y") }],
        ..Edits::default()
    };
    assert!(prepare_root(tree.path(), &edits).is_err());
}

#[test]
fn the_images_own_library_directory_is_chosen() {
    let triplet = format!("/usr/lib/{ARCH}-linux-gnu");
    assert_eq!(
        library_directory(DriverTree::new().directory(&triplet).directory("/usr/lib64").path()).unwrap(),
        Path::new(&triplet)
    );
    assert_eq!(
        library_directory(DriverTree::new().directory("/usr/lib64").path()).unwrap(),
        Path::new("/usr/lib64")
    );
    assert_eq!(
        library_directory(DriverTree::new().directory("/usr/lib").path()).unwrap(),
        Path::new("/usr/lib")
    );
    assert_eq!(library_directory(DriverTree::new().path()).unwrap(), Path::new("/usr/lib"));
    let outside = tempfile::tempdir().unwrap();
    let hostile = DriverTree::new().link("/usr/lib64", outside.path().to_str().unwrap());
    assert_eq!(
        library_directory(hostile.path()).unwrap(),
        Path::new("/usr/lib"),
        "a link that leads out is not a directory"
    );
}

/// A library with one section beside the names of sections.
fn library_with(section: &str, contents: &[u8]) -> Vec<u8> {
    let names = format!("\0{section}\0.shstrtab\0");
    let second = u32::try_from(section.len() + 2).unwrap();
    let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
    bytes.resize(64, 0);
    let at = bytes.len() as u64;
    bytes.extend(contents);
    let names_at = bytes.len() as u64;
    bytes.extend(names.as_bytes());
    let table = bytes.len() as u64;
    for (name, offset, size) in
        [(0, 0, 0), (1, at, contents.len() as u64), (second, names_at, names.len() as u64)]
    {
        let mut header = vec![0_u8; 64];
        header[..4].copy_from_slice(&u32::to_le_bytes(name));
        header[24..32].copy_from_slice(&u64::to_le_bytes(offset));
        header[32..40].copy_from_slice(&u64::to_le_bytes(size));
        bytes.extend(header);
    }
    bytes[40..48].copy_from_slice(&table.to_le_bytes());
    bytes[58..60].copy_from_slice(&64_u16.to_le_bytes());
    bytes[60..62].copy_from_slice(&3_u16.to_le_bytes());
    bytes[62..64].copy_from_slice(&2_u16.to_le_bytes());
    bytes
}

/// The libcuda that a root with this cuda-compat has first in its cache, under driver 535.161.08.
fn first_with_compat(tree: DriverTree) -> String {
    let tree = tree.directory(DEBIAN);
    let edits = Edits { driver: "535.161.08".parse().ok(), ..edits(DEBIAN) };
    prepare_root(tree.path(), &edits).unwrap();
    cached(&tree).into_iter().find(|(name, _)| name == "libcuda.so.1").unwrap().1
}

#[test]
fn a_newer_libcuda_of_the_image_goes_first_where_it_is_made_for_the_driver() {
    let place = "/usr/local/cuda/compat";
    let note = |branches: &str| {
        let json =
            format!("\x14\0\0\0NVIDIA Corporation\0{{\"CUDA Version\": \"12.4\", \"Driver\": [{branches}]}}");
        library_with(".note.cuda.fwd_compatibility", json.as_bytes())
    };
    let plain = library_with(".text", b"code");
    let compat = format!("{place}/libcuda.so.1");
    let driver = format!("{DEBIAN}/libcuda.so.1");
    for (version, bytes, first, why) in [
        ("550.54.14", note("470, 535"), &compat, "made for this branch, and newer"),
        ("550.54.14", note("470"), &driver, "not made for this branch"),
        ("535.54.03", note("535"), &driver, "made for this branch, and older"),
        ("550.54.14", plain.clone(), &compat, "without a note, of a newer branch"),
        ("535.200.01", plain.clone(), &driver, "without a note, of the same branch"),
    ] {
        let tree = DriverTree::new().library_of("/usr/local/cuda-12.4/compat", "libcuda", version, &bytes);
        let tree = tree.link("/usr/local/cuda", "cuda-12.4");
        assert_eq!(&first_with_compat(tree), first, "{why}");
    }
    let two = DriverTree::new().library_of(place, "libcuda", "550.54.14", &plain);
    let two = two.file(&format!("{place}/libcuda.so.560.28.03"), &plain);
    assert_eq!(first_with_compat(two), driver, "of two neither is taken");
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("libcuda.so.550.54.14"), &plain).unwrap();
    let hostile = DriverTree::new().link(place, outside.path().to_str().unwrap());
    assert_eq!(first_with_compat(hostile), driver, "outside the root nothing is looked at");
}
