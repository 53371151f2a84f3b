//! Containers of a user without rights.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::PathBuf;
use std::process::{Command, Output};

use super::leftovers::{groups, hierarchies};
use super::machine::{Machine, installed, machine, until};
use crate::support::{code, schema, shown};

/// A user id that nobody has.
const USER: u32 = 64_123;

/// A directory and control groups of a user without rights, removed when this is dropped.
pub(super) struct Visitor {
    machine: Machine,
    directory: PathBuf,
    given: bool,
}

impl Visitor {
    pub(super) fn new(given: bool) -> Option<Self> {
        let machine = machine()?;
        if !installed("setpriv") || !user_namespaces() {
            return None;
        }
        fs::set_permissions(machine.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let directory = machine.path().join("own");
        fs::create_dir(&directory).unwrap();
        // Files of ids that are not mapped cannot be written to, not even above them.
        let own = Command::new("chown")
            .args(["-hR", &format!("{USER}:{USER}"), "own", "root"])
            .current_dir(machine.path())
            .status();
        assert!(own.unwrap().success());
        let visitor = Self { machine, directory, given };
        if given {
            visitor.give_groups();
        }
        Some(visitor)
    }

    fn give_groups(&self) {
        for hierarchy in hierarchies() {
            let group = hierarchy.join(self.machine.cgroup().trim_start_matches('/'));
            fs::create_dir_all(&group).unwrap();
            // Processors and memory nodes are inherited by hand in version 1.
            for file in ["cpuset.cpus", "cpuset.mems"] {
                if let Ok(value) = fs::read_to_string(hierarchy.join(file)) {
                    fs::write(group.join(file), value.trim()).ok();
                }
            }
            chown(&group, Some(USER), Some(USER)).unwrap();
            for entry in fs::read_dir(&group).unwrap().flatten() {
                chown(entry.path(), Some(USER), Some(USER)).ok();
            }
        }
    }

    pub(super) fn machine(&self) -> &Machine {
        &self.machine
    }

    fn call(&self, arguments: &[&str]) -> Output {
        schema::output(&mut self.command(arguments))
    }

    /// A command of the user.
    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        let cudock = self.machine.command(arguments);
        let id = USER.to_string();
        let mut command = Command::new("setpriv");
        command.args([
            "--reuid",
            &id,
            "--regid",
            &id,
            "--clear-groups",
            "--inh-caps=-all",
            "--bounding-set=-all",
        ]);
        command.arg(cudock.get_program()).args(cudock.get_args());
        command.current_dir(self.machine.path()).env("NO_COLOR", "1").env_remove("XDG_RUNTIME_DIR");
        command.env("HOME", &self.directory).env("CUDOCK_DATA", self.directory.join("data"));
        if self.given {
            command.env("CUDOCK_CGROUP", self.machine.cgroup());
        }
        command
    }

    fn run(&self, options: &[&str], script: &str) -> Output {
        let own = ["run", "--network", "none", "--rootfs", "root"];
        self.call(&[own.as_slice(), options, &["--", "sh", "-c", script]].concat())
    }
}

impl Drop for Visitor {
    fn drop(&mut self) {
        let output = self.call(&["rm", "--all", "--force"]);
        assert!(std::thread::panicking() || output.status.success() || !self.given, "{}", shown(&output));
        let left = groups(self.machine.cgroup());
        assert!(std::thread::panicking() || left.is_empty(), "{left:?}");
    }
}

/// Whether users may create namespaces here; prints a message where not.
fn user_namespaces() -> bool {
    let id = USER.to_string();
    let mut command = Command::new("setpriv");
    command.args([
        "--reuid",
        &id,
        "--regid",
        &id,
        "--clear-groups",
        "unshare",
        "--user",
        "--map-root-user",
        "true",
    ]);
    let may = command.output().is_ok_and(|output| output.status.success());
    if !may {
        cudock_testkit::missing("user-namespaces", "this machine does not let users make namespaces");
    }
    may
}

#[test]
fn a_user_runs_containers_in_groups_that_were_given_to_it() {
    let Some(visitor) = Visitor::new(true) else { return };
    let output = visitor.run(&["--rm"], "echo $(id -u) $$; cat /proc/self/uid_map | xargs; exit 3");
    assert_eq!(code(&output), 3, "{}", shown(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout), format!("0 1\n0 {USER} 1\n"), "{}", shown(&output));
    let output = visitor.run(
        &["--rm"],
        "touch /new && mknod /tmp/null c 1 3; ls /dev/null; echo x > /dev/null && echo wrote",
    );
    assert!(shown(&output).contains("wrote"), "{}", shown(&output));
    let output = visitor.run(&["--rm"], "mknod /tmp/disk b 8 0 || echo none");
    assert!(shown(&output).contains("none"), "a user makes no nodes: {}", shown(&output));
}

#[test]
fn a_users_container_lives_on_and_is_found_again() {
    let Some(visitor) = Visitor::new(true) else { return };
    let output = visitor.run(&["-d", "--name", "mine", "--pids-limit", "30"], "echo begun; sleep 1000");
    assert_eq!(code(&output), 0, "{}", shown(&output));
    until("it has spoken", || visitor.call(&["logs", "mine"]).stdout == b"begun\n");
    let output = visitor.call(&["exec", "mine", "sh", "-c", "echo $(id -u); exit 6"]);
    assert_eq!((code(&output), output.stdout.as_slice()), (6, &b"0\n"[..]), "{}", shown(&output));
    let limits = groups(visitor.machine.cgroup())
        .into_iter()
        .filter_map(|group| fs::read_to_string(group.join("pids.max")).ok());
    assert_eq!(limits.map(|text| text.trim().to_owned()).collect::<Vec<_>>(), ["30"]);
    let output = visitor.call(&["stop", "--time", "0", "mine"]);
    assert_eq!(code(&output), 0, "{}", shown(&output));
    let output = visitor.call(&["rm", "mine"]);
    assert_eq!(code(&output), 0, "{}", shown(&output));
}

#[test]
fn a_user_without_a_control_group_gets_a_hint() {
    let Some(visitor) = Visitor::new(false) else { return };
    let output = visitor.run(&["--rm"], "echo started");
    if output.status.success() {
        cudock_testkit::missing("closed-cgroups", "this machine gives control groups to everyone");
        return;
    }
    assert_eq!(code(&output), 3, "{}", shown(&output));
    assert!(shown(&output).contains("this user may not create cgroups"), "{}", shown(&output));
    assert!(
        shown(&output).contains("hint: ") && shown(&output).contains("CUDOCK_CGROUP"),
        "{}",
        shown(&output)
    );
}

#[test]
fn a_directory_of_another_user_is_refused_with_a_hint() {
    let Some(visitor) = Visitor::new(true) else { return };
    let foreign = visitor.machine.root().join("srv");
    fs::create_dir(&foreign).unwrap();
    chown(&foreign, Some(USER + 1), Some(USER + 1)).unwrap();
    fs::set_permissions(&foreign, fs::Permissions::from_mode(0o777)).unwrap();
    let output = visitor.run(&["--rm", "-v", "./own:/srv/own"], "true");
    let text = shown(&output);
    assert_eq!(code(&output), 3, "{text}");
    assert!(text.contains("Value too large for defined data type"), "{text}");
    assert!(text.contains("hint: files of other users cannot be changed without root"), "{text}");
}
