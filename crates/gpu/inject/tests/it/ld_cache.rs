//! The loader's cache, held against the real `ldconfig` and the real loader.

use std::cmp::Ordering;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use cudock_host::ld_cache::{Cache, CacheEntry, Hwcap, compare_names};
use cudock_inject::ld_cache::{flags, with_driver};
use cudock_inject::{ElfClass, Library};
use proptest::prelude::*;

const ARCH: &str = std::env::consts::ARCH;

fn library(soname: &str, path: &str, class: ElfClass) -> Library {
    Library { soname: soname.to_owned(), path: PathBuf::from(path), class }
}

fn entry(name: &str, path: &str) -> CacheEntry {
    CacheEntry {
        name: name.to_owned(),
        path: path.to_owned(),
        flags: flags(ARCH, ElfClass::Bits64),
        os_version: 0,
        hwcap: Hwcap::Bits(0),
    }
}

/// The libraries of a cache as `ldconfig -p` prints them, one line each.
fn printed(cache: &Path) -> Option<Vec<String>> {
    let output = ["/sbin/ldconfig", "/usr/sbin/ldconfig"].iter().find_map(|program| {
        Command::new(program).arg("-p").arg("-C").arg(cache).env("LC_ALL", "C").output().ok()
    });
    let Some(output) = output else {
        cudock_testkit::missing("ldconfig", "no ldconfig here");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    Some(text.lines().filter(|line| line.contains(" => ")).map(|line| line.trim().to_owned()).collect())
}

fn this_machines() -> Option<Vec<u8>> {
    let bytes = fs::read("/etc/ld.so.cache").ok();
    if bytes.is_none() {
        cudock_testkit::missing("ld-cache", "this machine has no /etc/ld.so.cache");
    }
    bytes
}

#[test]
fn this_machines_cache_survives_reading_and_writing() {
    let Some(bytes) = this_machines() else { return };
    let cache = Cache::parse(&bytes).unwrap();
    assert!(cache.entries.iter().any(|entry| entry.name.starts_with("libc.so.")));
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("cache");
    fs::write(&file, cache.to_bytes().unwrap()).unwrap();
    assert_eq!(Cache::parse(&fs::read(&file).unwrap()).unwrap(), cache, "ldconfig's order is ours");
    let (Some(theirs), Some(ours)) = (printed(Path::new("/etc/ld.so.cache")), printed(&file)) else { return };
    assert_eq!(ours, theirs);
}

#[test]
fn the_driver_stands_in_front_of_others_of_its_name() {
    let existing = Cache {
        entries: vec![
            entry("libcuda.so.1", "/usr/local/cuda/compat/libcuda.so.1"),
            CacheEntry {
                hwcap: Hwcap::Named("x86-64-v3".to_owned()),
                ..entry("libcuda.so.1", "/fast/libcuda.so.1")
            },
            CacheEntry {
                hwcap: Hwcap::Named("x86-64-v3".to_owned()),
                ..entry("libz.so.1", "/fast/libz.so.1")
            },
            entry("libz.so.1", "/lib/libz.so.1"),
            entry("liba.so.1", "/lib/liba.so.1"),
        ],
    };
    let driver = [library("libcuda.so.1", "/usr/lib64/libcuda.so.1", ElfClass::Bits64)];
    let bytes = with_driver(existing, &driver, ARCH).to_bytes().unwrap();
    let cache = Cache::parse(&bytes).unwrap();
    let of = |name: &str| -> Vec<&str> {
        cache.entries.iter().filter(|entry| entry.name == name).map(|entry| entry.path.as_str()).collect()
    };
    assert_eq!(of("libcuda.so.1"), ["/usr/lib64/libcuda.so.1", "/usr/local/cuda/compat/libcuda.so.1"]);
    assert_eq!(of("libz.so.1"), ["/fast/libz.so.1", "/lib/libz.so.1"], "others for certain processors stay");
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("cache");
    fs::write(&file, bytes).unwrap();
    let Some(lines) = printed(&file) else { return };
    assert!(
        lines.iter().any(|line| line.contains("hwcap: \"x86-64-v3\"") && line.contains("libz.so.1")),
        "{lines:?}"
    );
    let first = lines.iter().find(|line| line.starts_with("libcuda.so.1 ")).unwrap();
    assert!(first.ends_with("=> /usr/lib64/libcuda.so.1"), "{first}");
}

#[test]
fn both_classes_of_a_library_are_kept_apart() {
    let driver = [
        library("libcuda.so.1", "/usr/lib64/libcuda.so.1", ElfClass::Bits64),
        library("libcuda.so.1", "/usr/lib/libcuda.so.1", ElfClass::Bits32),
        library("libcuda.so.1", "/elsewhere/libcuda.so.1", ElfClass::Bits64),
    ];
    let cache = with_driver(Cache::default(), &driver, "x86_64");
    let found: Vec<(u32, &str)> =
        cache.entries.iter().map(|entry| (entry.flags, entry.path.as_str())).collect();
    assert_eq!(found, [(0x303, "/usr/lib64/libcuda.so.1"), (3, "/usr/lib/libcuda.so.1")]);
}

#[test]
fn the_older_format_in_front_is_stepped_over() {
    let new = Cache { entries: vec![entry("libc.so.6", "/lib/libc.so.6")] }.to_bytes().unwrap();
    let mut bytes = b"ld.so-1.7.0\0".to_vec();
    bytes.extend(1_u32.to_le_bytes());
    bytes.extend([0; 12]);
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    bytes.extend(new);
    assert_eq!(Cache::parse(&bytes).unwrap().entries[0].name, "libc.so.6");
}

/// A root with nothing but a program, its loader and its libraries, whose own library lies where only the cache leads.
#[test]
fn a_real_program_finds_its_library_through_the_cache() {
    let Some(bytes) = this_machines() else { return };
    let compiler = Command::new("cc").arg("--version").output();
    if compiler.is_err() {
        cudock_testkit::missing("cc", "no C compiler here");
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let at = |path: &str| root.path().join(path.trim_start_matches('/'));
    fs::create_dir_all(at("/driver")).unwrap();
    fs::create_dir_all(at("/etc")).unwrap();
    fs::write(at("/lib.c"), "int answer(void) { return 42; }\n").unwrap();
    fs::write(at("/main.c"), "int answer(void); int main(void) { return answer(); }\n").unwrap();
    let compile = |arguments: &[&str]| {
        let done = Command::new("cc").args(arguments).current_dir(root.path()).status().unwrap();
        assert!(done.success(), "{arguments:?}");
    };
    compile(&[
        "-shared",
        "-fPIC",
        "-Wl,-soname,libcudock-test.so.1",
        "-o",
        "driver/libcudock-test.so.1",
        "lib.c",
    ]);
    compile(&["-o", "main", "main.c", "driver/libcudock-test.so.1"]);
    // The loader and the C library at their usual places, as this machine's cache has them.
    let libc = Cache::parse(&bytes).unwrap();
    let class = flags(ARCH, ElfClass::Bits64);
    let of =
        |name: &str| libc.entries.iter().find(|entry| entry.name == name && entry.flags == class).unwrap();
    let loader = if ARCH == "x86_64" { "/lib64/ld-linux-x86-64.so.2" } else { "/lib/ld-linux-aarch64.so.1" };
    for path in [of("libc.so.6").path.as_str(), loader] {
        fs::create_dir_all(at(path).parent().unwrap()).unwrap();
        fs::copy(path, at(path)).unwrap();
    }
    let start = || Command::new("chroot").arg(root.path()).arg("/main").output();
    let Ok(before) = start() else {
        cudock_testkit::missing("chroot", "no chroot here");
        return;
    };
    if before.status.code() == Some(125) || before.status.code() == Some(126) {
        cudock_testkit::missing(
            "chroot",
            format_args!("chroot is not permitted: {}", String::from_utf8_lossy(&before.stderr)),
        );
        return;
    }
    assert_eq!(before.status.code(), Some(127), "without the cache the library is not found");
    // Among hundreds of other names, so that the loader's search by halves is what finds it.
    let driver = [library("libcudock-test.so.1", "/driver/libcudock-test.so.1", ElfClass::Bits64)];
    let cache = with_driver(libc.clone(), &driver, ARCH);
    fs::write(at("/etc/ld.so.cache"), cache.to_bytes().unwrap()).unwrap();
    let after = start().unwrap();
    assert_eq!(after.status.code(), Some(42), "{}", String::from_utf8_lossy(&after.stderr));
}

fn name() -> impl Strategy<Value = String> {
    "lib[a-c0-3._-]{0,6}\\.so(\\.[0-9]{1,3}){0,2}"
}

fn any_entry() -> impl Strategy<Value = CacheEntry> {
    let hwcap = prop_oneof![
        3 => Just(Hwcap::Bits(0)),
        1 => any::<u64>().prop_map(|bits| Hwcap::Bits(bits & !(1 << 62))),
        1 => "x86-64-v[2-4]".prop_map(Hwcap::Named),
    ];
    let flags = prop_oneof![Just(0x303_u32), Just(3), Just(0xa03), Just(0x803)];
    (name(), "/[a-z]{1,4}", flags, any::<u32>(), hwcap).prop_map(|(name, path, flags, os_version, hwcap)| {
        CacheEntry { name, path, flags, os_version, hwcap }
    })
}

proptest! {
    #[test]
    fn names_are_in_a_total_order(a in name(), b in name(), c in name()) {
        prop_assert_eq!(compare_names(&a, &b), compare_names(&b, &a).reverse());
        if compare_names(&a, &b) != Ordering::Greater && compare_names(&b, &c) != Ordering::Greater {
            prop_assert_ne!(compare_names(&a, &c), Ordering::Greater);
        }
    }

    /// Searches as the loader does, and finds the first entry of every name.
    #[test]
    fn a_search_by_halves_finds_every_library(entries in prop::collection::vec(any_entry(), 1..60)) {
        let cache = Cache { entries };
        let read = Cache::parse(&cache.to_bytes().unwrap()).unwrap();
        prop_assert_eq!(read.entries.len(), cache.entries.len());
        let rewritten = read.to_bytes().unwrap();
        prop_assert_eq!(&Cache::parse(&rewritten).unwrap(), &read, "written in order, it stays so");
        for wanted in &cache.entries {
            let (mut left, mut right) = (0_usize, read.entries.len());
            let mut found = None;
            while left < right {
                let middle = usize::midpoint(left, right);
                match compare_names(&wanted.name, &read.entries[middle].name) {
                    Ordering::Equal => {
                        found = Some(middle);
                        break;
                    }
                    Ordering::Less => left = middle + 1,
                    Ordering::Greater => right = middle,
                }
            }
            prop_assert!(found.is_some(), "{} is lost", wanted.name);
        }
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        Cache::parse(&bytes);
        let mut begun = b"glibc-ld.so.cache1.1".to_vec();
        begun.extend(bytes);
        Cache::parse(&begun);
    }

    #[test]
    fn no_damage_makes_it_panic(
        entries in prop::collection::vec(any_entry(), 1..6),
        damage in prop::collection::vec((0..400_usize, any::<u8>()), 1..6),
        cut in 0..300_usize,
    ) {
        let mut bytes = Cache { entries }.to_bytes().unwrap();
        for (at, byte) in damage {
            if let Some(place) = bytes.get_mut(at) {
                *place = byte;
            }
        }
        bytes.truncate(bytes.len().saturating_sub(cut));
        if let Some(cache) = Cache::parse(&bytes) {
            cache.to_bytes();
        }
    }
}
