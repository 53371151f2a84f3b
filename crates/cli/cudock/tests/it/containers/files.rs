//! Mounts of a container, and the files it may write to.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::machine::{installed, machine, run_arguments, started_by};
use crate::support::{code, shown};

#[test]
fn a_volume_is_read_and_written_on_both_sides() {
    let Some(machine) = machine() else { return };
    machine.write("data/in", "from outside\n");
    machine.write("volume/in", "from outside\n");
    let stdout =
        machine.says(&["-v", "volume:/mnt/deep"], "cat /mnt/deep/in; echo from inside > /mnt/deep/out");
    assert_eq!(stdout, "from outside\n");
    assert_eq!(fs::read_to_string(machine.path().join("volume/out")).unwrap(), "from inside\n");
    let file = machine.write("one", "a file\n");
    let volume = format!("{}:/etc/one", file.display());
    assert_eq!(machine.says(&["--volume", &volume], "cat /etc/one"), "a file\n");
    assert!(!machine.root().join("mnt").exists() && !machine.root().join("etc/one").exists());
}

#[test]
fn a_volume_that_may_only_be_read_is_not_written_to() {
    let Some(machine) = machine() else { return };
    machine.write("volume/in", "kept\n");
    for script in
        ["echo x > /mnt/in", "rm /mnt/in", "touch /mnt/new", "mount -o remount,rw /mnt; touch /mnt/new"]
    {
        let output = machine.sh(&["-v", "volume:/mnt:ro"], script);
        assert_ne!(code(&output), 0, "{script}: {}", shown(&output));
        assert!(shown(&output).contains("Read-only file system"), "{script}: {}", shown(&output));
    }
    assert_eq!(fs::read_to_string(machine.path().join("volume/in")).unwrap(), "kept\n");
}

/// A file system in memory on a directory of this machine, for as long as this lives.
struct Mounted<'p>(&'p Path);

impl<'p> Mounted<'p> {
    fn on(directory: &'p Path) -> Option<Self> {
        fs::create_dir_all(directory).unwrap();
        let made = Command::new("mount").args(["-t", "tmpfs", "cudock-test"]).arg(directory).status();
        if !made.is_ok_and(|status| status.success()) {
            cudock_testkit::missing("mounts", "nothing can be mounted here");
            return None;
        }
        Some(Self(directory))
    }
}

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        let status = Command::new("umount").arg(self.0).status();
        assert!(std::thread::panicking() || status.is_ok_and(|status| status.success()));
    }
}

#[test]
fn what_is_mounted_below_a_volume_that_may_only_be_read_may_only_be_read_too() {
    let Some(machine) = machine() else { return };
    let below = machine.path().join("volume/below");
    let Some(_mounted) = Mounted::on(&below) else { return };
    fs::write(below.join("in"), "seen\n").unwrap();
    assert_eq!(machine.says(&["-v", "volume:/mnt:ro"], "cat /mnt/below/in"), "seen\n");
    let output = machine.sh(&["-v", "volume:/mnt:ro"], "touch /mnt/below/new");
    assert!(!below.join("new").exists(), "it was written to: {}", shown(&output));
    assert_ne!(code(&output), 0, "{}", shown(&output));
    assert_eq!(code(&machine.sh(&["-v", "volume:/mnt"], "touch /mnt/below/new")), 0);
    assert!(below.join("new").exists());
}

#[test]
fn nothing_that_is_mounted_inside_is_seen_outside() {
    let Some(machine) = machine() else { return };
    machine.write("volume/in", "seen\n");
    let options = ["-v", "volume:/mnt", "--cap-add", "SYS_ADMIN", "--security-opt", "seccomp=unconfined"];
    machine.says(&options, "mount -t tmpfs none /mnt && test ! -e /mnt/in");
    assert!(machine.path().join("volume/in").exists());
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(machine.path().to_str().unwrap()), "{mounts}");
}

#[test]
fn a_volume_that_is_not_there_or_makes_no_sense_is_refused() {
    let Some(machine) = machine() else { return };
    for (word, expected) in [
        ("absent/below:/mnt", "at /mnt: not found"),
        ("/tmp", "it has no target"),
        ("/tmp:mnt", "the target must be an absolute path"),
        ("/tmp:/mnt:sometimes", "unknown option `sometimes`"),
    ] {
        let message = machine.bad(2, &run_arguments(&["-v", word], &["true"]));
        assert!(message.contains(expected) && message.contains("hint: "), "{word}: {message}");
    }
}

#[test]
fn a_directory_in_memory_has_its_size_and_mode() {
    let Some(machine) = machine() else { return };
    let options = ["--tmpfs", "/scratch:size=2m,mode=1750"];
    assert_eq!(machine.says(&options, "stat -c %a /scratch"), "1750\n");
    let output = machine.sh(&options, "dd if=/dev/zero of=/scratch/x bs=1M count=4");
    assert!(shown(&output).contains("No space left on device"), "{}", shown(&output));
    assert_eq!(machine.says(&options, "grep ' /scratch ' /proc/mounts | cut -d' ' -f3"), "tmpfs\n");
}

#[test]
fn shared_memory_has_the_size_of_the_option() {
    let Some(machine) = machine() else { return };
    let size = "df -k /dev/shm | tail -1 | awk '{print $2}'";
    assert_eq!(machine.says(&[], size), "65536\n");
    assert_eq!(machine.says(&["--shm-size", "200m"], size), "204800\n");
}

#[test]
fn a_root_that_may_only_be_read_is_not_written_to() {
    let Some(machine) = machine() else { return };
    let output = machine.sh(&["--read-only"], "touch /new");
    assert!(shown(&output).contains("Read-only file system"), "{}", shown(&output));
    let script = "touch /dev/shm/x /scratch/x /mnt/x && echo could";
    let options = ["--read-only", "--tmpfs", "/scratch", "-v", "volume:/mnt"];
    fs::create_dir(machine.path().join("volume")).unwrap();
    assert_eq!(machine.says(&options, script), "could\n");
}

#[test]
fn what_a_container_writes_is_its_own() {
    let Some(machine) = machine() else { return };
    machine.start(
        "writer",
        &[],
        "echo mine > /etc/new; rm /www/hello; echo changed >> /etc/passwd; echo done; sleep 1000",
    );
    machine.until_logged("writer", "done");
    assert_eq!(machine.says(&[], "ls /etc/new 2>/dev/null; cat /www/hello"), "hello from inside\n");
    assert!(!machine.root().join("etc/new").exists());
    assert_eq!(fs::read_to_string(machine.root().join("etc/passwd")).unwrap(), super::busybox::PASSWD);
    assert_eq!(machine.good(&["exec", "writer", "cat", "/etc/new"]), "mine\n");
    assert!(machine.inspect("writer")["written_bytes"].as_u64().unwrap() > 0);
}

#[test]
fn a_directory_on_an_overlay_is_refused_with_a_hint() {
    let Some(machine) = machine() else { return };
    if !installed("unshare") {
        return;
    }
    for name in ["lower", "upper", "work", "over"] {
        fs::create_dir(machine.path().join(name)).unwrap();
    }
    let script = "mount -t overlay -o lowerdir=lower,upperdir=upper,workdir=work overlay over && exec \"$@\"";
    let cudock = machine.command(&run_arguments(&["--rm"], &["true"]));
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script, "sh"]).arg(cudock.get_program()).args(cudock.get_args());
    let output = command
        .current_dir(machine.path())
        .env("CUDOCK_DATA", machine.path().join("over/data"))
        .env("CUDOCK_CGROUP", machine.cgroup())
        .output()
        .unwrap();
    if output.status.success() {
        cudock_testkit::missing("no-stacked-overlays", "this kernel stacks overlays");
        return;
    }
    assert_eq!(code(&output), 3, "{}", shown(&output));
    assert!(shown(&output).contains("overlayfs does not support"), "{}", shown(&output));
    assert!(shown(&output).contains("CUDOCK_DATA"), "{}", shown(&output));
}

#[test]
fn file_systems_that_are_mounted_later_are_seen_in_a_volume_that_propagates() {
    let Some(machine) = machine() else { return };
    if !installed("unshare") {
        return;
    }
    fs::create_dir_all(machine.path().join("shared/later")).unwrap();
    let containers = [("private", "ro"), ("slave", "rslave"), ("shared", "rshared")];
    let start = containers.map(|(name, option)| {
        let volume = format!("./shared:/mnt:{option}");
        let arguments = run_arguments(&["-d", "--name", name, "-v", &volume], &["sleep", "1000"]);
        format!("\"$0\" {} > /dev/null\n", arguments.join(" "))
    });
    let look = containers
        .map(|(name, _)| format!("\"$0\" exec {name} cat /mnt/later/file 2> /dev/null || echo hidden\n"));
    // A mount namespace of its own, in which mounts are shared as on most machines.
    let script = format!(
        "set -e\nmount --bind shared shared\nmount --make-shared shared\n{}mount -t tmpfs later shared/later\n\
         echo seen > shared/later/file\n{}\"$0\" rm --force private slave shared > /dev/null\n",
        start.concat(),
        look.concat()
    );
    let output =
        started_by(&["unshare", "--mount", "sh", "-c", &script], &machine.command(&[])).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "hidden\nseen\nseen\n", "{}", shown(&output));
}
