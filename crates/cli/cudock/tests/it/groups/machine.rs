//! State for the groups of one test, all of which is removed after it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

pub use cudock_testkit::client::eventually as until;
use serde_json::Value;

use super::rootfs::rootfs;
use crate::support::{Turn, cudock, json, schema, shown};

/// State of its own, with groups in it.
pub struct Machine {
    directory: tempfile::TempDir,
    root: &'static Path,
    _turn: Turn,
}

/// A machine; `None`, and the reason printed, where groups cannot run.
pub fn machine() -> Option<Machine> {
    let why = if fs::metadata("/proc/self").unwrap().uid() != 0 {
        "root is needed"
    } else {
        match rootfs() {
            Ok(root) => {
                let directory = tempfile::tempdir().unwrap();
                return Some(Machine { directory, root, _turn: Turn::shared() });
            }
            Err(why) => why,
        }
    };
    cudock_testkit::missing("containers", format_args!("{why}"));
    None
}

impl Machine {
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The state directory of cudock.
    pub fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = cudock(arguments);
        command.env("CUDOCK_DATA", self.data()).current_dir(self.directory.path());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        schema::output(&mut self.command(arguments))
    }

    /// The standard output of a command that must succeed.
    pub fn good(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", shown(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Writes a group's file. `ROOT` in it is the image.
    pub fn write(&self, text: &str) -> String {
        let name = text.lines().find_map(|line| line.strip_prefix("name: ")).unwrap_or("group");
        let file = self.directory.path().join(format!("{name}.yaml"));
        fs::write(&file, text.replace("ROOT", &format!("rootfs:{}", self.root.display()))).unwrap();
        file.display().to_string()
    }

    /// Starts a group without a network of this machine, and returns when it is ready.
    pub fn up(&self, text: &str) -> Output {
        self.run(&["up", "-f", &self.write(text), "--detach", "--network", "none"])
    }

    pub fn up_well(&self, text: &str) {
        let output = self.up(text);
        assert!(output.status.success(), "{}", shown(&output));
    }

    /// The group as `cudock groups --format json` has it.
    pub fn group(&self, name: &str) -> Value {
        json(&self.run(&["groups", name, "--format", "json"]))["groups"][0].clone()
    }

    /// A container of a group.
    pub fn container(&self, group: &str, name: &str) -> Value {
        let group = self.group(group);
        let found = group["containers"].as_array().unwrap().iter().find(|one| one["name"] == name);
        found.unwrap_or_else(|| panic!("no {name} in {group}")).clone()
    }

    pub fn logs(&self, container: &str) -> String {
        let output = self.run(&["logs", container]);
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let groups = fs::read_dir(self.data().join("groups")).into_iter().flatten().flatten();
        let names: Vec<String> =
            groups.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        for name in names {
            let output = self.run(&["down", &name, "--time", "0"]);
            if !output.status.success() {
                eprintln!("cannot clear {name} away: {}", shown(&output));
            }
        }
    }
}

/// A container's properties, for tests in which only the command matters.
pub fn container(name: &str, command: &str, more: &str) -> String {
    let command = serde_json::to_string(&["sh", "-c", command]).unwrap();
    format!("  - name: {name}\n    properties:\n      image: ROOT\n      command: {command}\n{more}")
}

/// A group of containers.
pub fn group(name: &str, more: &str, containers: &[String]) -> String {
    format!("name: {name}\nproperties:\n{more}  containers:\n{}", containers.concat())
}
