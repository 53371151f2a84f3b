//! Checks that mounted layers look the same as walking the image.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use cudock_image::unpack::{LayerStore, StoreOptions, Unpacked, WhiteoutForm};
use cudock_image::{FileKind, LayerLimits, Special, Tree, TreeFile};
use cudock_testkit::process::{is_reentered, reenter_as};
use cudock_testkit::test_name;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::merge_property::path;
use crate::support::{BLOCK, Tar, header, seal};
use crate::unpack_support::{Bench, image_with, is_root, silent};

#[derive(Debug, Clone)]
enum Op {
    File(String, u32),
    Directory(String, u32),
    Symlink(String, String),
    HardLink(String, String),
    Whiteout(String),
    Opaque(String),
    Device(String),
}

fn target() -> impl Strategy<Value = String> {
    (path(), 0..4).prop_map(|(path, form)| match form {
        0 => format!("/{path}"),
        1 => format!("../{path}"),
        2 => format!("./{path}/."),
        _ => path,
    })
}

fn mode() -> impl Strategy<Value = u32> {
    prop::sample::select(vec![0o755, 0o700, 0o1777, 0o4711, 0o600])
}

fn operation() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (path(), mode()).prop_map(|(path, mode)| Op::File(path, mode)),
        2 => (path(), mode()).prop_map(|(path, mode)| Op::Directory(path, mode)),
        3 => (path(), target()).prop_map(|(path, target)| Op::Symlink(path, target)),
        2 => (path(), path()).prop_map(|(path, target)| Op::HardLink(path, target)),
        2 => path().prop_map(Op::Whiteout),
        1 => prop_oneof![4 => path(), 1 => Just(String::new())].prop_map(Op::Opaque),
        1 => path().prop_map(Op::Device),
    ]
}

fn layers() -> impl Strategy<Value = Vec<Vec<Op>>> {
    prop::collection::vec(prop::collection::vec(operation(), 1..=8), 1..=4)
}

fn with_mode(name: &str, kind: u8, size: usize, mode: u32) -> [u8; BLOCK] {
    let mut block = header(name.as_bytes(), kind, size as u64, b"");
    block[100..107].copy_from_slice(format!("{mode:07o}").as_bytes());
    seal(&mut block);
    block
}

fn tar(layer: usize, operations: &[Op]) -> Vec<u8> {
    let write = |tar: Tar, (number, operation): (usize, &Op)| match operation {
        Op::File(path, mode) => {
            let content = format!("{layer}.{number}");
            tar.raw(&with_mode(path, b'0', content.len(), *mode)).raw(content.as_bytes())
        }
        Op::Directory(path, mode) => tar.raw(&with_mode(&format!("{path}/"), b'5', 0, *mode)),
        Op::Symlink(path, target) => tar.symlink(path, target),
        Op::HardLink(path, target) => tar.hard_link(path, target),
        Op::Whiteout(path) => tar.whiteout(path),
        Op::Opaque(path) => tar.opaque(path),
        Op::Device(path) => tar.entry(path, b'3', "", b""),
    };
    operations.iter().enumerate().fold(Tar::default(), write).end()
}

/// `path/ 755`, `path=content 644`, `path>target`; devices are skipped.
fn lines_of_tree(tree: &Tree<Vec<u8>>) -> Vec<String> {
    let mut lines: Vec<String> = tree
        .iter()
        .filter_map(|(path, node)| match &node.kind {
            FileKind::Directory => Some(format!("{path}/ {:o}", node.mode)),
            FileKind::File(TreeFile { kept, .. }) => {
                let content = String::from_utf8_lossy(kept.as_deref().unwrap_or_default());
                Some(format!("{path}={content} {:o}", node.mode))
            }
            FileKind::Symlink(target) => Some(format!("{path}>{target}")),
            FileKind::Other(Special) => None,
        })
        .collect();
    lines.sort();
    lines
}

fn lines_of_directory(directory: &Path) -> Vec<String> {
    let mut lines = Vec::new();
    list(directory, "", &mut lines);
    lines.sort();
    lines
}

fn list(directory: &Path, prefix: &str, lines: &mut Vec<String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let path = format!("{prefix}{}", entry.file_name().to_str().unwrap());
        // A whiteout that is listed but cannot be examined is in the wrong directory.
        let meta = fs::symlink_metadata(entry.path()).unwrap_or_else(|error| panic!("{path}: {error}"));
        let mode = meta.permissions().mode() & 0o7777;
        if meta.is_dir() {
            list(&entry.path(), &format!("{path}/"), lines);
            lines.push(format!("{path}/ {mode:o}"));
        } else if meta.is_symlink() {
            lines.push(format!("{path}>{}", fs::read_link(entry.path()).unwrap().to_str().unwrap()));
        } else {
            lines.push(format!("{path}={} {mode:o}", fs::read_to_string(entry.path()).unwrap()));
        }
    }
}

/// Mounts an image and lists it.
fn mounted(unpacked: &Unpacked, form: WhiteoutForm) -> Vec<String> {
    let scratch = tempfile::tempdir().unwrap();
    for name in ["upper", "work", "merged"] {
        fs::create_dir(scratch.path().join(name)).unwrap();
    }
    // Short names, because all options together must fit in a page.
    let names: Vec<String> = (0..unpacked.layers.len()).map(|n| n.to_string()).collect();
    for (name, layer) in names.iter().zip(&unpacked.layers) {
        std::os::unix::fs::symlink(layer, scratch.path().join(name)).unwrap();
    }
    let upper = scratch.path().join("upper");
    unpacked.root.apply(&upper).unwrap();
    let user = if form == WhiteoutForm::User { ",userxattr" } else { "" };
    let mounting = format!(
        "lowerdir={},upperdir={},workdir={}{user}",
        names.join(":"),
        upper.display(),
        scratch.path().join("work").display(),
    );
    let merged = scratch.path().join("merged");
    let output = Command::new("mount")
        .args(["-t", "overlay", "overlay", "-o", &mounting])
        .arg(&merged)
        // `fsconfig` does not accept options of more than 255 bytes.
        .env("LIBMOUNT_FORCE_MOUNT2", "always")
        .current_dir(scratch.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{mounting}: {}", String::from_utf8_lossy(&output.stderr));
    let lines = lines_of_directory(&merged);
    assert!(Command::new("umount").arg(&merged).status().unwrap().success());
    lines
}

/// The listings after unpacking and walking; none if the layers are rejected.
fn both(layers: &[Vec<Op>], form: WhiteoutForm) -> (Option<Vec<String>>, Option<Vec<String>>) {
    let bytes: Vec<Vec<u8>> = layers.iter().enumerate().map(|(number, layer)| tar(number, layer)).collect();
    let (_directory, image) = image_with(&bytes);
    let walked = image.walk(LayerLimits::default(), |_, content| Ok(Some(content.all()?.to_vec())));
    let bench = Bench::new();
    let options = StoreOptions { whiteouts: form, ..StoreOptions::for_process() };
    let store = LayerStore::open_with(bench.store_dir(), options).unwrap();
    let unpacked = store.unpack(&image, &silent());
    (walked.ok().map(|tree| lines_of_tree(&tree)), unpacked.ok().map(|unpacked| mounted(&unpacked, form)))
}

/// Whether a layer links to a possible device of a lower layer, which unpacking skips and walking does not.
fn links_to_skipped_devices(layers: &[Vec<Op>]) -> bool {
    let device = layers.iter().position(|layer| layer.iter().any(|op| matches!(op, Op::Device(_))));
    let link = layers.iter().rposition(|layer| layer.iter().any(|op| matches!(op, Op::HardLink(..))));
    device.zip(link).is_some_and(|(device, link)| device < link)
}

/// Reruns a test in its own mount namespace, so that nothing stays mounted. Returns true inside.
fn in_namespace(test: &str) -> bool {
    if is_reentered(test) {
        return true;
    }
    if !is_root() {
        cudock_testkit::missing("root", "mounting overlayfs takes root");
        return false;
    }
    let works = Command::new("unshare").args(["--mount", "true"]).status();
    if !works.is_ok_and(|status| status.success()) {
        cudock_testkit::missing("namespaces", "no mount namespaces here");
        return false;
    }
    let mut unshare = Command::new("unshare");
    unshare.args(["--mount", "--propagation", "private"]).arg(std::env::current_exe().unwrap());
    assert!(reenter_as(unshare, test).status().unwrap().success(), "it fails inside");
    false
}

fn runner(cases: u32) -> TestRunner {
    TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() })
}

#[test]
fn mounted_layers_equal_the_walked_image() {
    if !in_namespace(test_name!()) {
        return;
    }
    let result = runner(400).run(&layers(), |layers| {
        prop_assume!(!links_to_skipped_devices(&layers));
        let (walked, mounted) = both(&layers, WhiteoutForm::Trusted);
        prop_assert_eq!(mounted, walked);
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn layers_mounted_with_user_attributes_equal_the_walked_image() {
    if !in_namespace(test_name!()) {
        return;
    }
    let result = runner(100).run(&layers(), |layers| {
        prop_assume!(!links_to_skipped_devices(&layers));
        let (walked, mounted) = both(&layers, WhiteoutForm::User);
        prop_assert_eq!(mounted, walked);
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn an_image_of_two_hundred_layers_can_be_mounted() {
    if !in_namespace(test_name!()) {
        return;
    }
    let layers: Vec<Vec<Op>> = (0..200)
        .map(|n| vec![Op::File(format!("f{n}"), 0o644), Op::Whiteout(format!("f{}", n - 1))])
        .collect();
    let (walked, mounted) = both(&layers, WhiteoutForm::Trusted);
    assert_eq!(mounted, walked);
    assert_eq!(mounted.unwrap().len(), 1);
}
