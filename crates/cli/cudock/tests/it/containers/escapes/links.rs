//! Links in an image where something is mounted, made or written at the start of a container.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::canary::Canary;
use super::run;
use crate::containers::machine::{Machine, machine};
use crate::support::shown;

/// Replaces a path of the root with a link.
pub(super) fn replace(machine: &Machine, path: &str, to: &str) {
    let place = machine.root().join(path);
    fs::create_dir_all(place.parent().unwrap()).unwrap();
    match place.symlink_metadata() {
        Ok(about) if about.is_dir() => fs::remove_dir_all(&place).unwrap(),
        Ok(_) => fs::remove_file(&place).unwrap(),
        Err(_) => {}
    }
    symlink(to, place).unwrap();
}

/// Creates the canary's directory in the root, too, so that a path resolved inside exists there.
pub(super) fn mirror(machine: &Machine, canary: &Canary) {
    let inside = machine.root().join(canary.path().trim_start_matches('/'));
    fs::create_dir_all(&inside).unwrap();
    fs::write(inside.join("inside"), "").unwrap();
}

/// The directory of this machine that is given to containers, with a mark in it.
fn given(machine: &Machine) -> String {
    let mark = machine.write("given/mark", "given\n");
    mark.parent().unwrap().to_str().unwrap().to_owned()
}

/// The path of the canary, as links may give it.
fn ways(canary: &Canary) -> [String; 2] {
    [canary.path().to_owned(), format!("../../../../../../../../../..{}", canary.path())]
}

#[test]
fn an_image_whose_own_mount_points_are_links_touches_nothing_outside() {
    for place in ["proc", "sys", "dev", "etc", "dev/pts", "dev/shm", "dev/mqueue", "sys/fs/cgroup", "tmp"] {
        for mirrored in [false, true] {
            let Some(machine) = machine() else { return };
            let canary = Canary::new();
            if mirrored {
                mirror(&machine, &canary);
            }
            for to in ways(&canary) {
                let what = format!("/{place} -> {to}");
                replace(&machine, place, &to);
                for options in [&[][..], &["-t"], &["--read-only"]] {
                    let output = run::sh(&machine, &what, options, &canary.raid());
                    run::ran(&what, &output);
                    canary.is_safe(&what, &output);
                }
            }
        }
    }
}

#[test]
fn files_that_are_mounted_over_links_of_the_image_touch_nothing_outside() {
    for file in ["hosts", "hostname", "resolv.conf"] {
        for mirrored in [false, true] {
            let Some(machine) = machine() else { return };
            let canary = Canary::new();
            for to in ways(&canary) {
                let what = format!("/etc/{file} -> {to}/{file}");
                replace(&machine, &format!("etc/{file}"), &format!("{to}/{file}"));
                if mirrored {
                    mirror(&machine, &canary);
                    machine.write(&format!("root{}/{file}", canary.path()), "inside\n");
                }
                let script = format!("cat /etc/{file}; echo changed >> /etc/{file}; {}", canary.raid());
                let output = run::sh(&machine, &what, &[], &script);
                run::ran(&what, &output);
                canary.is_safe(&what, &output);
            }
        }
    }
}

#[test]
fn a_volume_or_memory_on_a_link_of_the_image_stays_inside() {
    let Some(machine) = machine() else { return };
    let canary = Canary::new();
    let given = given(&machine);
    mirror(&machine, &canary);
    for to in [
        &ways(&canary)[..],
        &[
            "/".to_owned(),
            "..".to_owned(),
            "/proc".to_owned(),
            "/proc/self/cwd".to_owned(),
            "/proc/self/root".to_owned(),
            "/proc/1/root".to_owned(),
        ],
    ]
    .concat()
    {
        replace(&machine, "link", &to);
        replace(&machine, "chain", "link");
        for target in
            ["/link", "/link/new", "/link/inner", "/chain/new", "/link/../new", "/link/inner/../../x"]
        {
            for options in
                [["-v".to_owned(), format!("{given}:{target}")], ["--tmpfs".to_owned(), target.to_owned()]]
            {
                let what = format!("{options:?} with /link -> {to}");
                let options: Vec<&str> = options.iter().map(String::as_str).collect();
                let output = run::sh(&machine, &what, &options, &canary.raid());
                // A mount over /proc or / may break the shell, which is not tested here.
                assert!(!shown(&output).contains("panicked"), "{}", shown(&output));
                canary.is_safe(&what, &output);
            }
        }
    }
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(&given), "it is mounted on this machine: {mounts}");
    assert_eq!(fs::read_to_string(Path::new(&given).join("mark")).unwrap(), "given\n");
}

#[test]
fn a_volume_on_a_link_to_the_root_brings_no_dev_of_its_own() {
    // Nodes of /dev must not be created in that of a volume, which another container filled.
    let Some(machine) = machine() else { return };
    let canary = Canary::new();
    let given = given(&machine);
    for name in ["dev", "proc", "sys", "etc", "bin"] {
        symlink(canary.path(), Path::new(&given).join(name)).unwrap();
    }
    for to in ["/", "..", "/dev/..", "/proc/..", "/data/../.."] {
        replace(&machine, "data", to);
        for options in [
            vec!["-v".to_owned(), format!("{given}:/data")],
            vec!["-v".to_owned(), format!("{given}:/data/")],
            vec!["-v".to_owned(), format!("{given}:/data:ro")],
            vec!["--tmpfs".to_owned(), "/data".to_owned(), "-v".to_owned(), format!("{given}:/data")],
            // The second goes through a link that only the first brings.
            vec!["-v".to_owned(), format!("{given}:/mnt"), "-v".to_owned(), format!("{given}:/mnt/dev")],
        ] {
            let what = format!("{options:?} with /data -> {to}");
            let options: Vec<&str> = options.iter().map(String::as_str).collect();
            let output = run::sh(&machine, &what, &options, "true");
            canary.is_safe(&what, &output);
        }
    }
}

#[test]
fn a_volume_below_a_volume_brings_no_dev_of_its_own() {
    // The outer volume's link leads to the root; the image's link hides that one volume is below the other.
    let Some(machine) = machine() else { return };
    let canary = Canary::new();
    let (outer, inner) = (machine.path().join("outer"), machine.path().join("inner"));
    fs::create_dir_all(machine.root().join("m")).unwrap();
    for directory in [&outer, &inner] {
        fs::create_dir(directory).unwrap();
    }
    symlink(canary.path(), inner.join("dev")).unwrap();
    replace(&machine, "a", "/m");
    replace(&machine, "chain", "a");
    for to in ["/", "..", "../..", "/a/..", "/dev/.."] {
        let _ = fs::remove_file(outer.join("b"));
        symlink(to, outer.join("b")).unwrap();
        for (first, second) in [
            ("/a", "/a/b"),
            ("/m", "/a/b"),
            ("/a", "/m/b"),
            ("/chain", "/a/b"),
            ("/m", "/chain/b"),
            ("/a/", "/a/b/"),
        ] {
            let what = format!("{first} and {second} with b -> {to}");
            let (first, second) =
                (format!("{}:{first}", outer.display()), format!("{}:{second}", inner.display()));
            let output = run::sh(&machine, &what, &["-v", &first, "-v", &second], "true");
            canary.is_safe(&what, &output);
        }
    }
}

#[test]
fn a_link_turns_no_volume_into_a_way_to_change_this_machine() {
    let Some(machine) = machine() else { return };
    let pattern = fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap();
    let given = given(&machine);
    // CVE-2019-16884, CVE-2025-52881: writes to files of /proc at the start are redirected.
    for (name, to) in [
        ("current", "/proc/sys/kernel/core_pattern"),
        ("exec", "/proc/sys/kernel/core_pattern"),
        ("keycreate", "/proc/sysrq-trigger"),
        ("sys", "/"),
    ] {
        symlink(to, Path::new(&given).join(name)).unwrap();
    }
    for to in [
        "/proc/self/attr",
        "/proc/1/attr",
        "/proc/thread-self/attr",
        "/proc/sys",
        "/proc",
        "/sys",
        "/sys/fs/cgroup",
    ] {
        for target in [to, "/link"] {
            replace(&machine, "link", to);
            let what = format!("-v given:{target} ({to})");
            let script = "(echo '|/evil' > /proc/sys/kernel/core_pattern) 2>/dev/null; (echo '|/evil' > /proc/self/attr/current) 2>/dev/null
echo '|/evil' > /link/current; echo '|/evil' > /link/exec; true";
            let output = run::sh(&machine, &what, &["-v", &format!("{given}:{target}")], script);
            let now = fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap();
            assert_eq!(now, pattern, "{what}: {}", shown(&output));
        }
    }
}

#[test]
fn a_volume_whose_directory_is_the_images_proc_gives_no_false_proc() {
    // CVE-2019-19921, CVE-2023-27561: /proc is a link into a volume, which another container fills.
    let Some(machine) = machine() else { return };
    let given = given(&machine);
    machine.write("given/proc/sys/kernel/core_pattern", "false\n");
    replace(&machine, "proc", "/vol/proc");
    let output = run::sh(
        &machine,
        "/proc -> /vol/proc",
        &["-v", &format!("{given}:/vol")],
        "cat /proc/sys/kernel/core_pattern",
    );
    assert!(!run::ran("/proc -> /vol/proc", &output), "a false /proc is no /proc: {}", shown(&output));
}
