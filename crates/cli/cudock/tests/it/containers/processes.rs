//! The user, working directory and host name of a program.

use super::images::Image;
use super::machine::{machine, run_arguments};

const WHO: &str = "echo $(id -u) $(id -g) $(id -G) $HOME";

#[test]
fn a_user_is_found_by_name_and_by_number() {
    let Some(machine) = machine() else { return };
    let cases = [
        ("", "0 0 0 /root"),
        ("root", "0 0 0 /root"),
        ("ann", "1000 100 100 44 /home/ann"),
        ("1000", "1000 100 100 44 /home/ann"),
        ("ann:video", "1000 44 44 /home/ann"),
        ("ann:55", "1000 55 55 /home/ann"),
        ("4242:77", "4242 77 77 /"),
    ];
    for (user, expected) in cases {
        let options = if user.is_empty() { vec![] } else { vec!["--user", user] };
        assert_eq!(machine.says(&options, WHO).trim(), expected, "{user}");
    }
    let added = machine.says(&["--user", "ann", "--group-add", "render", "--group-add", "7"], "id -G");
    let mut groups: Vec<&str> = added.split_whitespace().collect();
    groups.sort_unstable();
    assert_eq!(groups, ["100", "105", "44", "7"]);
}

#[test]
fn a_user_or_group_that_the_image_does_not_have_is_refused() {
    let Some(machine) = machine() else { return };
    for (user, expected) in [
        ("bob", "error: the image has no user `bob` in /etc/passwd"),
        ("ann:choir", "error: the image has no group `choir` in /etc/group"),
    ] {
        let message = machine.bad(2, &run_arguments(&["--rm", "--user", user], &["true"]));
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn the_working_directory_is_created_if_missing() {
    let Some(machine) = machine() else { return };
    assert_eq!(machine.says(&["--workdir", "/place/deep/er"], "pwd"), "/place/deep/er\n");
    assert_eq!(machine.says(&[], "pwd"), "/\n");
    assert!(!machine.root().join("work").exists(), "the directory it was made of is not written to");
    let message = machine.bad(2, &run_arguments(&["--rm", "--workdir", "/etc/passwd"], &["true"]));
    assert!(message.contains("/etc/passwd"), "{message}");
}

#[test]
fn a_container_has_a_name_for_itself() {
    let Some(machine) = machine() else { return };
    assert_eq!(
        machine.says(&["--hostname", "trainer"], "hostname; cat /etc/hostname; echo $HOSTNAME"),
        "trainer\ntrainer\ntrainer\n"
    );
    let id = machine.start("unnamed", &[], "sleep 1000");
    assert_eq!(machine.good(&["exec", "unnamed", "hostname"]).trim(), &id[..12]);
    let ours = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    assert_ne!(ours.trim(), "trainer", "the machine keeps its own");
}

#[test]
fn the_images_command_runs_where_the_user_gives_none() {
    let Some(machine) = machine() else { return };
    let image = Image::of(&machine).entrypoint(&["echo", "entry"]).command(&["and", "command"]);
    image.user("ann").workdir("/srv/app").write("app");
    let run = |options: &[&str], command: &[&str]| {
        let arguments = [&["run", "--rm", "--network", "none"], options, &["oci:app"], command].concat();
        machine.good(&arguments)
    };
    assert_eq!(run(&[], &[]), "entry and command\n");
    assert_eq!(run(&[], &["other"]), "entry other\n");
    assert_eq!(run(&["--entrypoint", "id"], &["-u"]), "1000\n");
    assert_eq!(run(&["--entrypoint", "pwd"], &[]), "/srv/app\n");
    assert_eq!(run(&["--entrypoint", ""], &["pwd"]), "/srv/app\n");
    assert_eq!(run(&["--entrypoint", "id", "--user", "0"], &["-u"]), "0\n");
}

#[test]
fn a_container_sees_its_own_processes_alone() {
    let Some(machine) = machine() else { return };
    assert_eq!(machine.says(&[], "echo $$; ls -d /proc/[0-9]* | wc -l").lines().next(), Some("1"));
    let processes: usize = machine.says(&[], "ls -d /proc/[0-9]* | wc -l").trim().parse().unwrap();
    assert!(processes <= 4, "{processes}");
    for kind in ["pid", "ipc", "uts", "mnt", "cgroup", "net"] {
        let ours = std::fs::read_link(format!("/proc/self/ns/{kind}")).unwrap();
        let theirs = machine.says(&[], &format!("readlink /proc/self/ns/{kind}"));
        assert_ne!(theirs.trim(), ours.to_str().unwrap(), "{kind}");
    }
}
