//! Unpacking layers: files, sharing between images and processes, and cleanup after failures.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use cudock_base::{Digest, Report as _};
use cudock_http::Progress;
use cudock_image::unpack::{LayerStore, Ownership, StoreOptions, UnpackError, WhiteoutForm};
use cudock_testkit::process;
use serde_json::json;

use crate::support::open;
use crate::support::{
    self, BLOCK, Blobs, Tar, archive, gzip, header, index, layout, options, seal, set_number, zstd,
};
use crate::unpack_support::{Bench, attribute, diffs_of, image_with, is_root, layout_with, lines, silent};

fn tar() -> Tar {
    Tar::default()
}

fn with_mode(name: &str, kind: u8, mode: u32) -> [u8; BLOCK] {
    let mut block = header(name.as_bytes(), kind, 0, b"");
    block[100..107].copy_from_slice(format!("{mode:07o}").as_bytes());
    seal(&mut block);
    block
}

fn mode_of(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

/// Records all progress events.
#[derive(Default)]
struct Ears(Mutex<Vec<String>>);

impl Progress for Ears {
    fn started(&self, what: &str, size: Option<u64>, _: u64) {
        self.0.lock().unwrap().push(format!("started {} {}", &what[..10], size.unwrap()));
    }

    fn finished(&self, what: &str) {
        self.0.lock().unwrap().push(format!("finished {}", &what[..10]));
    }
}

#[test]
fn a_layer_is_unpacked_once_and_shared_by_images() {
    let bench = Bench::new();
    let shared = tar().directory("d").file("d/x", "1").end();
    let ears = Ears::default();
    let (_one, first) = image_with(&[shared.clone(), tar().file("a", "1").end()]);
    let (_two, second) = image_with(&[tar().file("b", "2").end(), gzip(&shared)]);
    let first = bench.store().unpack(&first, &ears).unwrap();
    assert_eq!(ears.0.lock().unwrap().len(), 4);
    let second = bench.store().unpack(&second, &ears).unwrap();
    assert_eq!(ears.0.lock().unwrap().len(), 6, "{:?}", ears.0);
    assert_eq!(first.layers[1], second.layers[0], "the same contents, compressed or not");
    assert_eq!(lines(&first.layers[1]), ["d/", "d/x=1"]);
    assert_eq!(
        (first.layers.len(), first.config.config.entrypoint.as_slice()),
        (2, &["/run".to_owned()][..])
    );
    let written = fs::metadata(first.layers[1].join("d/x")).unwrap();
    bench.unpack(&[shared]);
    let again = fs::metadata(first.layers[1].join("d/x")).unwrap();
    assert_eq!((written.ino(), written.ctime_nsec()), (again.ino(), again.ctime_nsec()));
}

#[test]
fn layers_come_uppermost_first() {
    let layers: Vec<Vec<u8>> = (0..5).map(|n| tar().file(&format!("f{n}"), "x").end()).collect();
    let bench = Bench::new();
    let names: Vec<String> = bench.unpack(&layers).layers.iter().flat_map(|layer| lines(layer)).collect();
    assert_eq!(names, ["f4=x", "f3=x", "f2=x", "f1=x", "f0=x"]);
}

#[test]
fn a_diff_id_mismatch_is_an_error_and_nothing_is_kept() {
    let good = tar().file("a", "1").end();
    for layer in [good.clone(), gzip(&good), zstd(&good)] {
        let directory = tempfile::tempdir().unwrap();
        let other = Digest::sha256_of(b"other").to_string();
        layout_with(directory.path(), std::slice::from_ref(&layer), std::slice::from_ref(&other));
        let image = open(&layout(directory.path()), &options(directory.path())).unwrap();
        let bench = Bench::new();
        let error = bench.store().unpack(&image, &silent()).unwrap_err();
        let UnpackError::WrongContents { number: 1, wanted, got, .. } = &error else { panic!("{error}") };
        assert_eq!((wanted, got), (&other, &Digest::sha256_of(&good).to_string()));
        assert!(error.hints()[0].contains("damaged"));
        assert_eq!(bench.layers_on_disk(), Vec::<String>::new());
    }
}

#[test]
fn bytes_after_the_end_of_the_archive_are_hashed() {
    let layer = [tar().file("a", "1").end(), b"something behind it".repeat(1000)].concat();
    for form in [layer.clone(), gzip(&layer)] {
        let bench = Bench::new();
        assert_eq!(lines(&bench.unpack(&[form]).layers[0]), ["a=1"]);
    }
}

#[test]
fn a_failing_layer_stops_the_others_and_completed_ones_stay() {
    let bench = Bench::new();
    let good = tar().file("a", "1").end();
    bench.unpack(std::slice::from_ref(&good));
    let bad = tar().file("../x", "1").end();
    let error = bench.try_unpack(&[good, bad, tar().file("c", "1").end()]).unwrap_err();
    assert!(error.to_string().starts_with("layer 2 (sha256:"), "{error}");
    assert!(bench.layers_on_disk().iter().all(|name| !name.contains('.')), "{:?}", bench.layers_on_disk());
}

#[test]
fn configurations_without_diff_ids_are_accepted_and_invalid_ones_rejected() {
    let layer = gzip(&tar().file("a", "1").end());
    let directory = tempfile::tempdir().unwrap();
    layout_with(directory.path(), std::slice::from_ref(&layer), &[]);
    let image = open(&layout(directory.path()), &options(directory.path())).unwrap();
    let bench = Bench::new();
    let unpacked = bench.store().unpack(&image, &silent()).unwrap();
    assert_eq!(lines(&unpacked.layers[0]), ["a=1"]);
    assert_eq!(unpacked.layers, bench.unpack(std::slice::from_ref(&layer)).layers);
    for wrong in ["sha256:../../../x", "", "sha512:00", "md5:1"] {
        layout_with(directory.path(), std::slice::from_ref(&layer), &[wrong.to_owned()]);
        let image = open(&layout(directory.path()), &options(directory.path())).unwrap();
        let error = bench.store().unpack(&image, &silent()).unwrap_err().to_string();
        assert!(error.contains("is not a sha256 diff id"), "{error}");
    }
}

#[test]
fn archives_of_both_kinds_are_unpacked() {
    let directory = tempfile::tempdir().unwrap();
    let layer = tar().file("a", "1").end();
    let mut blobs = Blobs::default();
    let descriptor = blobs.add(support::LAYER, gzip(&layer));
    let config = json!({"architecture": "amd64", "os": "linux",
        "rootfs": {"type": "layers", "diff_ids": diffs_of(std::slice::from_ref(&layer))}});
    let config_descriptor = blobs.document(support::CONFIG, &config);
    let manifest = blobs.manifest(&config_descriptor, &[descriptor], "amd64");
    let oci = directory.path().join("oci.tar");
    fs::write(&oci, blobs.archive(&index(&[manifest]))).unwrap();
    let docker = directory.path().join("docker.tar");
    let manifests = json!([{"Config": "c.json", "RepoTags": ["x:1"], "Layers": ["l/layer.tar"]}]);
    let saved = tar()
        .file("c.json", config.to_string())
        .entry("l/layer.tar", b'0', "", &layer)
        .file("manifest.json", manifests.to_string());
    fs::write(&docker, saved.end()).unwrap();
    let bench = Bench::new();
    for file in [oci, docker] {
        let image = open(&archive(&file), &options(directory.path())).unwrap();
        let unpacked = bench.store().unpack(&image, &silent()).unwrap();
        assert_eq!(lines(&unpacked.layers[0]), ["a=1"]);
    }
    assert_eq!(bench.layers_on_disk().len(), 1);
}

#[test]
fn modes_owners_and_times_are_those_of_the_entries() {
    let bench = Bench::new();
    let mut suid = with_mode("bin/su", b'0', 0o4755);
    set_number(&mut suid, 108, 1000);
    set_number(&mut suid, 116, 50);
    suid[136..147].copy_from_slice(b"14524560000");
    seal(&mut suid);
    let layer = tar()
        .raw(&with_mode("bin/", b'5', 0o2751))
        .raw(&suid)
        .pax(&[("mtime", b"1700000000.5"), ("uid", b"3000000"), ("gid", b"7")])
        .file("late", "x")
        .pax(&[("mtime", b"-1.25")])
        .symlink("l", "late")
        .raw(&with_mode("pipe", b'6', 0o620))
        .raw(&with_mode("./", b'5', 0o711));
    let unpacked = bench.unpack(&[layer.end()]);
    let root = &unpacked.layers[0];
    assert_eq!((mode_of(&root.join("bin")), mode_of(&root.join("bin/su"))), (0o2751, 0o4755));
    assert_eq!((mode_of(&root.join("pipe")), mode_of(root), unpacked.root.mode), (0o620, 0o711, 0o711));
    let meta = |name: &str| fs::symlink_metadata(root.join(name)).unwrap();
    assert_eq!(meta("bin/su").mtime(), 0o14_524_560_000);
    assert_eq!((meta("late").mtime(), meta("late").mtime_nsec()), (1_700_000_000, 500_000_000));
    assert_eq!((meta("l").mtime(), meta("l").mtime_nsec()), (-2, 750_000_000));
    if is_root() {
        assert_eq!((meta("bin/su").uid(), meta("bin/su").gid()), (1000, 50));
        assert_eq!((meta("late").uid(), meta("late").gid()), (3_000_000, 7));
        assert_eq!((meta("l").uid(), meta("l").gid()), (0, 0));
    } else {
        cudock_testkit::missing("root", "giving files away takes root");
    }
}

#[test]
fn without_permission_to_change_owners_all_files_are_ours() {
    let bench = Bench::new();
    let store_options = StoreOptions {
        ownership: Ownership::CurrentUser,
        whiteouts: WhiteoutForm::User,
        ..StoreOptions::for_process()
    };
    let store = LayerStore::open_with(bench.store_dir(), store_options).unwrap();
    let mut suid = with_mode("su", b'0', 0o4755);
    set_number(&mut suid, 108, 1000);
    let (_directory, image) = image_with(&[tar().raw(&suid).symlink("l", "x").directory("d").end()]);
    let unpacked = store.unpack(&image, &silent()).unwrap();
    let ours = fs::metadata("/proc/self").unwrap().uid();
    for name in ["su", "l", "d"] {
        assert_eq!(fs::symlink_metadata(unpacked.layers[0].join(name)).unwrap().uid(), ours);
    }
    assert_eq!(mode_of(&unpacked.layers[0].join("su")), 0o4755);
}

#[test]
fn file_capabilities_are_kept_only_for_root() {
    // Version 2, cap_net_raw permitted and effective.
    let value: &[u8] = b"\x01\0\0\x02\0\x20\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    let layer = || tar().pax(&[("SCHILY.xattr.security.capability", value)]).file("ping", "x").end();
    let bench = Bench::new();
    let store_options = StoreOptions {
        ownership: Ownership::CurrentUser,
        whiteouts: WhiteoutForm::User,
        ..StoreOptions::for_process()
    };
    let store = LayerStore::open_with(bench.store_dir(), store_options).unwrap();
    let (_directory, image) = image_with(&[layer()]);
    let unpacked = store.unpack(&image, &silent()).unwrap();
    assert_eq!(attribute(&unpacked.layers[0].join("ping"), "security.capability"), None);
    assert!(unpacked.notes[0].contains("security.capability of ping"), "{:?}", unpacked.notes);
    if !is_root() {
        cudock_testkit::missing("root", "setting capabilities takes root");
        return;
    }
    let unpacked = bench.unpack(&[layer()]);
    let kept = attribute(&unpacked.layers[0].join("ping"), "security.capability");
    assert!(kept.as_deref() == Some(value) || !unpacked.notes.is_empty(), "{kept:?}");
}

#[test]
fn hard_links_are_one_file() {
    let bench = Bench::new();
    let layer = tar().file("d/a", "1").hard_link("b", "d/a").symlink("s", "d").hard_link("c", "s/a");
    let unpacked = bench.unpack(&[layer.end()]);
    let ino = |name: &str| fs::metadata(unpacked.layers[0].join(name)).unwrap().ino();
    assert_eq!((ino("d/a"), ino("d/a")), (ino("b"), ino("c")));
}

#[test]
fn a_hard_link_to_a_file_of_a_lower_layer_copies_it_up() {
    let bench = Bench::new();
    let lower = tar().raw(&with_mode("d/", b'5', 0o750)).file("d/a", "below").symlink("l", "d/a");
    let gone = tar().whiteout("d/a");
    let upper = || tar().hard_link("b", "d/a").hard_link("m", "l").end();
    let unpacked = bench.unpack(&[lower.clone().end(), upper()]);
    assert_eq!(lines(&unpacked.layers[0]), ["b=below", "d/", "d/a=below", "l>d/a", "m>d/a"]);
    assert_eq!(mode_of(&unpacked.layers[0].join("d")), 0o750);
    let ino = |name: &str| fs::metadata(unpacked.layers[0].join(name)).unwrap().ino();
    assert_eq!(ino("b"), ino("d/a"));
    // The same bytes on top of other layers are another layer.
    let other = tar().directory("d").file("d/a", "different").symlink("l", "x");
    let above_other = bench.unpack(&[other.end(), upper()]);
    assert_eq!(fs::read_to_string(above_other.layers[0].join("b")).unwrap(), "different");
    assert_eq!(fs::read_to_string(unpacked.layers[0].join("b")).unwrap(), "below");
    let error = bench.try_unpack(&[lower.end(), gone.end(), upper()]).unwrap_err().to_string();
    assert!(error.contains("layer 3") && error.contains("which does not exist"), "{error}");
}

#[test]
fn a_directory_without_an_entry_keeps_its_metadata_from_below() {
    let bench = Bench::new();
    let lower = tar().raw(&with_mode("tmp/", b'5', 0o1777)).raw(&with_mode("tmp/s/", b'5', 0o700));
    let unpacked = bench.unpack(&[lower.end(), tar().file("tmp/s/x", "1").file("new/y", "2").end()]);
    let mode = |name: &str| mode_of(&unpacked.layers[0].join(name));
    assert_eq!((mode("tmp"), mode("tmp/s"), mode("new")), (0o1777, 0o700, 0o755));
}

#[test]
fn a_path_through_a_symlink_of_a_lower_layer_is_resolved() {
    let bench = Bench::new();
    let lower = tar().directory("usr").directory("usr/lib").file("usr/lib/a", "1").symlink("lib", "usr/lib");
    let upper = tar().file("lib/x", "2").whiteout("lib/a");
    let unpacked = bench.unpack(&[lower.end(), upper.end()]);
    assert_eq!(lines(&unpacked.layers[0]), ["usr/", "usr/lib/", "usr/lib/a!", "usr/lib/x=2"]);
}

#[test]
fn whiteouts_become_devices_and_opaque_directories_an_attribute() {
    let lower = || tar().file("a", "1").file("d/x", "1").file("e/y", "1").file("f/z", "1").end();
    let upper = || {
        tar()
            .whiteout("a")
            .whiteout("never")
            .whiteout("not/there")
            .directory("d")
            .opaque("d")
            .opaque("e")
            .opaque("nowhere")
            .whiteout("f")
            .directory("f")
            .file("f/new", "2")
            .end()
    };
    for (form, name) in
        [(WhiteoutForm::Trusted, "trusted.overlay.opaque"), (WhiteoutForm::User, "user.overlay.opaque")]
    {
        if form == WhiteoutForm::Trusted && !is_root() {
            cudock_testkit::missing("root", "trusted attributes take root");
            continue;
        }
        let bench = Bench::new();
        let store_options = StoreOptions { whiteouts: form, ..StoreOptions::for_process() };
        let store = LayerStore::open_with(bench.store_dir(), store_options).unwrap();
        let (_directory, image) = image_with(&[lower(), upper()]);
        let unpacked = store.unpack(&image, &silent()).unwrap();
        let root = &unpacked.layers[0];
        assert_eq!(lines(root), ["a!", "d/", "e/", "f/", "f/new=2"]);
        for directory in ["d", "e", "f"] {
            assert_eq!(attribute(&root.join(directory), name).as_deref(), Some(&b"y"[..]), "{directory}");
        }
    }
}

#[test]
fn an_opaque_root_hides_all_layers_below() {
    let bench = Bench::new();
    let layers = [
        tar().raw(&with_mode("./", b'5', 0o700)).file("a", "1").end(),
        tar().file("b", "2").opaque("").end(),
        tar().file("c/d", "3").whiteout("a").end(),
    ];
    let unpacked = bench.unpack(&layers);
    let seen: Vec<Vec<String>> = unpacked.layers.iter().map(|layer| lines(layer)).collect();
    assert_eq!(seen, [vec!["c/", "c/d=3"], vec!["b=2"]]);
    assert_eq!(unpacked.root.mode, 0o755);
}

#[test]
fn locked_layers_are_not_pruned() {
    let bench = Bench::new();
    let store = bench.store();
    let first = bench.unpack(&[tar().file("a", "12345").end()]);
    let second = bench.unpack(&[tar().file("b", "123").end()]);
    let paths: Vec<PathBuf> = first.layers.clone();
    drop(second);
    let pruned = store.prune(&|_| false).unwrap();
    assert_eq!((pruned.layers, pruned.bytes), (1, 3));
    drop(first);
    let queried = Mutex::new(Vec::new());
    let kept = store.prune(&|path| {
        // Whoever creates a container from it meanwhile waits, and then unpacks it again.
        let layer = fs::File::open(path.parent().unwrap()).unwrap();
        assert!(layer.try_lock_shared().is_err(), "it is queried while the layer is locked");
        queried.lock().unwrap().push(path.to_owned());
        true
    });
    assert_eq!((kept.unwrap().layers, queried.into_inner().unwrap()), (0, paths));
    assert_eq!(store.prune(&|_| false).unwrap().layers, 1);
    assert_eq!(bench.layers_on_disk().len(), 0);
}

#[test]
fn layers_that_were_not_synced_are_unpacked_again_after_a_reboot() {
    let bench = Bench::new();
    let layers = [tar().file("a", "1").end()];
    let unpacked = bench.unpack(&layers);
    let record = unpacked.layers[0].parent().unwrap().join("record.json");
    let file = unpacked.layers[0].join("a");
    drop(unpacked);
    let another_boot = |record: &Path| {
        let mut value: serde_json::Value = serde_json::from_slice(&fs::read(record).unwrap()).unwrap();
        value["boot_id"] = json!("another");
        fs::write(record, value.to_string()).unwrap();
    };
    another_boot(&record);
    fs::write(&file, "").unwrap();
    bench.unpack(&layers);
    assert_eq!(fs::read_to_string(&file).unwrap(), "1");
    bench.store().sync().unwrap();
    another_boot(&record);
    fs::write(&file, "still the one").unwrap();
    bench.unpack(&layers);
    assert_eq!(fs::read_to_string(&file).unwrap(), "still the one");
}

#[test]
fn concurrent_runs_unpack_each_layer_once() {
    let bench = Bench::new();
    let text = "x".repeat(100_000);
    let layers: Vec<Vec<u8>> = (0..4)
        .map(|n| {
            let layer = (0..20).fold(tar(), |tar, m| tar.directory("d").file(&format!("d/{n}-{m}"), &text));
            gzip(&layer.whiteout(&format!("d/{}-1", n - 1)).end())
        })
        .collect();
    let (_directory, image) = image_with(&layers);
    let ears = Ears::default();
    let results: Vec<Vec<PathBuf>> = std::thread::scope(|scope| {
        let workers: Vec<_> =
            (0..6).map(|_| scope.spawn(|| bench.store().unpack(&image, &ears).unwrap().layers)).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).collect()
    });
    assert!(results.iter().all(|layers| *layers == results[0]));
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for heard in ears.0.into_inner().unwrap() {
        *counts.entry(heard).or_default() += 1;
    }
    assert!(counts.len() == 8 && counts.values().all(|count| *count == 1), "{counts:?}");
    assert_eq!(bench.layers_on_disk().len(), 4);
}

#[test]
fn the_same_layer_twice_in_one_image_is_unpacked_once() {
    let layer = tar().directory("d").file("d/a", "1").end();
    let dependent = tar().file("d/b", "2").whiteout("d/a").end();
    let bench = Bench::new();
    let unpacked = bench.unpack(&[layer.clone(), layer.clone(), dependent.clone(), layer, dependent]);
    assert_eq!(unpacked.layers[1], unpacked.layers[4]);
    assert_ne!(unpacked.layers[0], unpacked.layers[2]);
    assert_eq!(lines(&unpacked.layers[0]), ["d/", "d/a!", "d/b=2"]);
}

fn child(from: &Path, to: &Path) -> std::process::Child {
    let mut command = std::process::Command::new(process::example("unpack_layout"));
    command.arg(from).arg(to).stdout(std::process::Stdio::null()).spawn().unwrap()
}

fn large_layers() -> Vec<Vec<u8>> {
    let text = "large ".repeat(30_000);
    let layer = |n: usize| {
        let files = (0..200).fold(tar(), |tar, m| tar.file(&format!("{n}/{m}"), &text));
        zstd(&files.end())
    };
    (0..3).map(layer).collect()
}

#[test]
fn leftovers_of_a_killed_run_are_removed_by_the_next() {
    let bench = Bench::new();
    let (from, image) = image_with(&large_layers());
    fs::create_dir_all(bench.store_dir()).unwrap();
    let mut killed = 0;
    for delay in [0, 5, 20, 60, 150] {
        let mut child = child(from.path(), &bench.store_dir());
        std::thread::sleep(std::time::Duration::from_millis(delay));
        child.kill().unwrap();
        child.wait().unwrap();
        let on_disk = bench.layers_on_disk();
        killed += usize::from(on_disk.iter().any(|name| name.contains(".partial")));
        for whole in on_disk.iter().filter(|name| !name.contains('.')) {
            let files = bench.store_dir().join(store_flavor()).join("sha256").join(whole).join("fs");
            assert_eq!(lines(&files).len(), 201, "a layer with a name of its own is whole");
        }
    }
    eprintln!("{killed} of 5 runs were killed while unpacking");
    let left = bench.store_dir().join(store_flavor()).join("sha256/some.partial");
    fs::create_dir_all(left.join("fs/deep")).unwrap();
    let unpacked = bench.store().unpack(&image, &silent()).unwrap();
    assert_eq!(unpacked.layers.iter().map(|layer| lines(layer).len()).collect::<Vec<_>>(), [201; 3]);
    drop(unpacked);
    bench.store().prune(&|_| true).unwrap();
    assert_eq!(bench.layers_on_disk().iter().filter(|name| name.contains('.')).count(), 0);
}

fn store_flavor() -> &'static str {
    if is_root() { "layers" } else { "layers-user-ours" }
}

#[test]
fn concurrent_processes_do_not_interfere() {
    let bench = Bench::new();
    let (from, image) = image_with(&large_layers());
    let mut children: Vec<_> = (0..3).map(|_| child(from.path(), &bench.store_dir())).collect();
    assert!(children.iter_mut().all(|child| child.wait().unwrap().success()));
    let unpacked = bench.store().unpack(&image, &silent()).unwrap();
    assert!(unpacked.layers.iter().all(|layer| lines(layer).len() == 201));
    assert_eq!(bench.layers_on_disk().len(), 3);
}

#[test]
fn an_unwritable_store_is_named_in_the_error() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    let error = LayerStore::open(file.join("below")).unwrap_err();
    assert!(error.is_outside() && error.to_string().contains("file/below"), "{error}");
}
