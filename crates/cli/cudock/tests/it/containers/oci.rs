//! Containers of images: layers, hidden files and shared files.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use super::images::Image;
use super::machine::{installed, machine, until};
use crate::support::{code, shown};

/// Every file below a directory, with its inode number and modification time.
fn all(directory: &Path, found: &mut BTreeMap<String, (u64, i64, i64)>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let about = entry.path().symlink_metadata().unwrap();
        if about.is_dir() {
            all(&entry.path(), found);
        } else if about.is_file() && about.len() > 0 {
            found
                .insert(entry.path().display().to_string(), (about.ino(), about.mtime(), about.mtime_nsec()));
        }
    }
}

#[test]
fn layers_are_stacked_and_hide_what_they_say() {
    let Some(machine) = machine() else { return };
    Image::of(&machine)
        .layer(&[("srv/a", "first a\n"), ("srv/b", "first b\n"), ("srv/deep/c", "first c\n")])
        .layer(&[
            ("srv/.wh.a", ""),
            ("srv/b", "second b\n"),
            ("srv/deep/.wh..wh..opq", ""),
            ("srv/deep/d", "second d\n"),
        ])
        .write("app");
    let stdout = machine.good(&[
        "run",
        "--rm",
        "--network",
        "none",
        "oci:app",
        "sh",
        "-c",
        "cd srv; find . -type f | sort; cat b",
    ]);
    assert_eq!(stdout, "./b\n./deep/d\nsecond b\n");
}

#[test]
fn two_containers_share_what_was_unpacked_once() {
    let Some(machine) = machine() else { return };
    Image::of(&machine).write("one");
    Image::of(&machine).layer(&[("more", "more\n")]).write("two");
    let run = |image: &str, name: &str| {
        let arguments = [
            "run",
            "-d",
            "--name",
            name,
            "--network",
            "none",
            image,
            "sh",
            "-c",
            "echo mine > /new; sleep 1000",
        ];
        machine.good(&arguments);
    };
    let images = machine.data().join("images");
    run("oci:one", "a");
    let mut first = BTreeMap::new();
    all(&images, &mut first);
    let busybox =
        |found: &BTreeMap<String, _>| found.keys().filter(|path| path.ends_with("/bin/busybox")).count();
    assert_eq!(busybox(&first), 1, "{first:#?}");
    run("oci:one", "b");
    run("oci:two", "c");
    let mut second = BTreeMap::new();
    all(&images, &mut second);
    assert_eq!(busybox(&second), 1, "a layer that two images have is there once");
    for (path, known) in &first {
        assert!(!path.contains("/bin/") || second.get(path) == Some(known), "{path} was written again");
    }
    assert_eq!(machine.good(&["exec", "c", "cat", "/more", "/new"]), "more\nmine\n");
    machine.good(&["rm", "--force", "a"]);
    assert_eq!(machine.good(&["exec", "b", "cat", "/new"]), "mine\n", "the others go on");
}

#[test]
fn an_archive_and_a_bare_path_are_images_too() {
    let Some(machine) = machine() else { return };
    Image::of(&machine).command(&["echo", "from an archive"]).write("app");
    let packed =
        Command::new("tar").args(["-cf", "../app.tar", "."]).current_dir(machine.path().join("app")).status();
    assert!(packed.is_ok_and(|status| status.success()));
    let absolute = machine.path().join("app").display().to_string();
    for image in ["./app.tar", "oci-archive:app.tar", "./app", "oci:app", &absolute] {
        assert_eq!(
            machine.good(&["run", "--rm", "--network", "none", image]),
            "from an archive\n",
            "{image}"
        );
    }
}

#[test]
fn an_image_that_is_damaged_is_refused_and_leaves_nothing() {
    let Some(machine) = machine() else { return };
    let layout = Image::of(&machine).write("app");
    let largest = fs::read_dir(layout.join("blobs/sha256")).unwrap().flatten();
    let largest = largest.max_by_key(|entry| entry.metadata().unwrap().len()).unwrap().path();
    let mut bytes = fs::read(&largest).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&largest, bytes).unwrap();
    for _ in 0..2 {
        let output = machine.call(&["run", "--rm", "--network", "none", "oci:app", "true"]);
        assert!(matches!(code(&output), 2 | 3), "{}", shown(&output));
        assert!(shown(&output).contains("digest") || shown(&output).contains("sha256"), "{}", shown(&output));
    }
    assert_eq!(machine.list().len(), 0);
}

#[test]
fn a_missing_image_is_reported() {
    let Some(machine) = machine() else { return };
    let message = machine.bad(2, &["run", "--rm", "oci:absent", "true"]);
    assert!(message.contains("cannot read absent"), "{message}");
    let output = machine.call(&["run", "--offline", "registry.example/team/app:1.4"]);
    assert_eq!(code(&output), 3, "{}", shown(&output));
    assert!(shown(&output).contains("not in the cache (--offline)"), "{}", shown(&output));
}

#[test]
fn an_images_signal_asks_it_to_stop() {
    let Some(machine) = machine() else { return };
    Image::of(&machine).stop_signal("SIGUSR2").write("app");
    let script = "trap 'exit 46' USR2; echo ready; while :; do sleep 0.05; done";
    machine.good(&["run", "-d", "--name", "app", "--network", "none", "oci:app", "sh", "-c", script]);
    machine.until_logged("app", "ready");
    machine.good(&["stop", "app"]);
    assert_eq!(machine.good(&["wait", "app"]), "46\n");
}

#[test]
fn an_image_that_umoci_made_runs() {
    let Some(machine) = machine() else { return };
    if !installed("umoci") {
        return;
    }
    let umoci = |arguments: &[&str]| {
        let output = Command::new("umoci").args(arguments).current_dir(machine.path()).output().unwrap();
        assert!(output.status.success(), "umoci {arguments:?}: {}", shown(&output));
    };
    umoci(&["init", "--layout", "made"]);
    umoci(&["new", "--image", "made:latest"]);
    umoci(&["insert", "--image", "made:latest", "root", "/"]);
    umoci(&[
        "config",
        "--image",
        "made:latest",
        "--config.cmd",
        "id",
        "--config.user",
        "ann",
        "--config.env",
        "A=b",
    ]);
    let stdout = machine.good(&["run", "--rm", "--network", "none", "oci:made:latest"]);
    assert!(stdout.contains("uid=1000(ann)"), "{stdout}");
    until("it is gone", || machine.list().is_empty());
}

#[test]
fn prune_removes_what_no_container_is_made_of_and_nothing_else() {
    let Some(machine) = machine() else { return };
    Image::of(&machine).layer(&[("kept", "kept\n")]).write("kept");
    Image::of(&machine).layer(&[("gone", "gone\n")]).write("gone");
    let files = |name: &str| {
        let mut found = BTreeMap::new();
        all(&machine.data().join("images"), &mut found);
        found.keys().filter(|path| path.ends_with(name)).count()
    };
    machine.good(&["run", "--name", "stopped", "--network", "none", "oci:kept", "true"]);
    machine.good(&["run", "--rm", "--network", "none", "oci:gone", "true"]);
    assert_eq!((files("/kept"), files("/gone"), files("/bin/busybox")), (1, 1, 1));
    let stdout = machine.good(&["prune"]);
    assert_eq!(stdout, "removed 1 layers, 5 B\n");
    assert_eq!((files("/kept"), files("/gone"), files("/bin/busybox")), (1, 0, 1));
    machine.good(&["rm", "stopped"]);
    machine.good(&["prune", "--format", "json"]);
    assert_eq!((files("/kept"), files("/bin/busybox")), (0, 0));
    assert_eq!(machine.good(&["run", "--rm", "--network", "none", "oci:kept", "cat", "/kept"]), "kept\n");
}

#[test]
fn the_root_has_the_mode_and_the_owner_that_the_image_says() {
    let Some(machine) = machine() else { return };
    Image::of(&machine).root_mode(0o711).write("app");
    let stdout = machine.good(&["run", "--rm", "--network", "none", "oci:app", "stat", "-c", "%a %u", "/"]);
    assert_eq!(stdout, "711 0\n");
}
