//! Full disks, deep trees, damaged files, readers that go away, helpers that are killed: each affects one container at
//! most, and can be cleared away.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use cudock_testkit::tar::Tar;
use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
use rustix::process::Signal;

use super::images::Image;
use super::leftovers::{groups, hierarchies};
use super::machine::{Machine, machine, run_arguments, send, started_by, until};
use super::programs::install;
use crate::support::{code, json, shown};

/// A small disk for all state of a machine, unmounted when this is dropped.
struct SmallDisk<'a> {
    machine: &'a Machine,
}

impl<'a> SmallDisk<'a> {
    fn new(machine: &'a Machine) -> Self {
        fs::create_dir_all(machine.data()).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=8m", "tmpfs"])
            .arg(machine.data())
            .status();
        assert!(mounted.unwrap().success());
        Self { machine }
    }

    fn is_full(&self) -> bool {
        let probe = self.machine.data().join("probe");
        let full = fs::write(&probe, [1; 4096]).is_err();
        let _ = fs::remove_file(probe);
        full
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let _ = self.machine.call(&["rm", "--all", "--force"]);
        let _ = Command::new("umount").arg("-l").arg(self.machine.data()).status();
    }
}

const FILL: &str =
    "dd if=/dev/zero of=/fill bs=4k 2>/dev/null; cat /dev/zero >> /fill2 2>/dev/null; touch /go/full;";

#[test]
fn a_full_disk_blocks_neither_stop_nor_list_nor_removal_and_keeps_the_exit_code() {
    let Some(machine) = machine() else { return };
    let disk = SmallDisk::new(&machine);
    fs::create_dir(machine.path().join("go")).unwrap();
    let script = format!("trap 'exit 7' TERM; {FILL} while true; do sleep 0.1; done");
    machine.start("filler", &["-v", "go:/go"], &script);
    until("the disk is full", || machine.path().join("go/full").exists());
    assert!(disk.is_full());
    assert_eq!(machine.list()[0]["state"], "running");
    machine.good(&["exec", "filler", "true"]);
    machine.good(&["stop", "filler"]);
    assert!(disk.is_full());
    let listed = machine.good(&["ps", "--all"]);
    assert!(listed.contains("exited (7)"), "{listed}");
    assert_eq!(machine.good(&["wait", "filler"]), "7\n");
    machine.good(&["rm", "--force", "filler"]);
    assert!(machine.list().is_empty());
    assert!(!disk.is_full(), "what it wrote is gone");
}

#[test]
fn a_container_that_removes_itself_does_so_on_a_full_disk() {
    let Some(machine) = machine() else { return };
    let disk = SmallDisk::new(&machine);
    fs::create_dir(machine.path().join("go")).unwrap();
    let output = machine.sh(&["-v", "go:/go"], &format!("{FILL} echo said; exit 5"));
    assert_eq!(code(&output), 5, "{}", shown(&output));
    assert_eq!(output.stdout, b"said\n");
    assert!(machine.list().is_empty());
    until("what it wrote is gone", || !disk.is_full());
}

/// The directory with the files that a container wrote.
fn upper(machine: &Machine, name: &str) -> PathBuf {
    Path::new(machine.inspect(name)["directory"].as_str().unwrap()).join("upper")
}

#[test]
fn a_tree_of_three_thousand_levels_is_removed_with_few_descriptors_and_fails_no_list() {
    let Some(machine) = machine() else { return };
    machine.good(&run_arguments(&["--name", "deep"], &["true"]));
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut here = openat(CWD, upper(&machine, "deep"), flags, Mode::empty()).unwrap();
    for _ in 0..3000 {
        mkdirat(&here, "level", Mode::RWXU).unwrap();
        here = openat(&here, "level", flags, Mode::empty()).unwrap();
    }
    drop(here);
    let with_few = |arguments: &[&str]| {
        let limited = ["sh", "-c", "ulimit -n 64; exec \"$0\" \"$@\""];
        started_by(&limited, &machine.command(arguments)).output().unwrap()
    };
    for arguments in [&["ps", "--all"][..], &["inspect-container", "deep"], &["rm", "deep"], &["ps", "--all"]]
    {
        let output = with_few(arguments);
        assert_eq!(code(&output), 0, "{arguments:?}: {}", shown(&output));
    }
    assert!(machine.list().is_empty());
}

#[test]
fn users_other_than_root_open_their_own_streams() {
    let Some(machine) = machine() else { return };
    let script = "echo out > /dev/stdout && echo err > /dev/stderr && cat /dev/stdin";
    machine.start(
        "host",
        &["--user", "1000"],
        "echo logged > /dev/stdout; echo too > /dev/stderr; sleep 1000",
    );
    until("both are in the log", || machine.logs("host") == "logged\ntoo\n");
    let runs = [
        run_arguments(&["--rm", "--user", "1000"], &["sh", "-c", script]),
        run_arguments(&["--rm", "-i", "--user", "1000"], &["sh", "-c", script]),
        run_arguments(
            &["--rm", "-t", "--user", "1000"],
            &["sh", "-c", "echo out > /dev/stdout && echo err > /dev/stderr"],
        ),
        vec!["exec", "host", "sh", "-c", script],
        vec!["exec", "-i", "--user", "1000", "host", "sh", "-c", script],
        vec!["exec", "-t", "host", "sh", "-c", "echo out > /dev/stdout && echo err > /dev/stderr"],
    ];
    for arguments in runs {
        let output = machine.call(&arguments);
        assert_eq!(code(&output), 0, "{arguments:?}: {}", shown(&output));
        assert!(
            shown(&output).contains("out") && shown(&output).contains("err"),
            "{arguments:?}: {}",
            shown(&output)
        );
    }
}

#[test]
fn a_file_of_the_caller_is_not_opened_anew_by_a_container() {
    let Some(machine) = machine() else { return };
    machine.start("host", &[], "sleep 1000");
    let run = run_arguments(
        &["--rm", "-i"],
        &["sh", "-c", "ls -l /proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2"],
    );
    let exec =
        vec!["exec", "-i", "host", "sh", "-c", "ls -l /proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2"];
    for arguments in [run, exec] {
        let (input, output) = (machine.write("input", "x"), machine.path().join("output"));
        let status = machine
            .command(&arguments)
            .stdin(fs::File::open(input).unwrap())
            .stdout(fs::File::create(&output).unwrap())
            .stderr(fs::File::create(machine.path().join("errors")).unwrap())
            .status();
        assert!(status.unwrap().success());
        let listed = fs::read_to_string(output).unwrap();
        assert_eq!(listed.matches("-> pipe:").count(), 3, "{listed}");
    }
}

#[test]
fn a_container_whose_reader_goes_away_ends_as_a_program_without_it_would() {
    let Some(machine) = machine() else { return };
    for options in [&["--rm"][..], &["--rm", "-t"]] {
        let mut child = machine
            .command(&run_arguments(options, &["yes"]))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // The pipe is closed after this.
        child.stdout.take().unwrap().read_exact(&mut [0; 2]).unwrap();
        let mut over = None;
        until("it has ended", || {
            over = over.or(child.try_wait().unwrap());
            over.is_some()
        });
    }
    machine.start("host", &[], "sleep 1000");
    let mut child = machine
        .command(&["exec", "host", "yes"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    child.stdout.take().unwrap().read_exact(&mut [0; 2]).unwrap();
    until("it has ended", || child.try_wait().unwrap().is_some());
}

/// Enlarges the pipe it writes to, fills it, and ends.
const BURST: &str = r"
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
static char bytes[1 << 20];
int main(void) {
    fcntl(1, F_SETPIPE_SZ, sizeof bytes);
    memset(bytes, 'x', sizeof bytes);
    return write(1, bytes, sizeof bytes) == sizeof bytes ? 0 : 1;
}
";

#[test]
fn nothing_is_lost_to_a_slow_reader_of_a_large_pipe() {
    let Some(machine) = machine() else { return };
    let Some(_) = install(&machine, "burst", BURST) else { return };
    machine.start("host", &[], "sleep 1000");
    for arguments in [run_arguments(&["--rm"], &["burst"]), vec!["exec", "host", "burst"]] {
        let mut child = machine.command(&arguments).stdout(Stdio::piped()).spawn().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        // Longer than output may come after the end of a program.
        std::thread::sleep(Duration::from_secs(3));
        let mut came = Vec::new();
        stdout.read_to_end(&mut came).unwrap();
        assert_eq!((came.len(), child.wait().unwrap().code()), (1 << 20, Some(0)), "{arguments:?}");
    }
}

#[test]
fn a_damaged_file_of_one_container_hides_no_other_and_can_be_removed() {
    let Some(machine) = machine() else { return };
    for (file, text) in
        [("config.json", ""), ("config.json", "{\"id\""), ("status.json", ""), ("status.json", "[]")]
    {
        let id = machine.start("damaged", &[], "exit 0");
        machine.good(&["wait", "damaged"]);
        machine.start("whole", &[], "sleep 1000");
        fs::write(machine.data().join("containers").join(&id).join(file), text).unwrap();
        let listed = machine.good(&["ps", "--all"]);
        assert!(listed.contains("whole") && listed.contains(&id[..12]), "{file}: {listed}");
        assert_eq!(machine.says(&[], "echo runs"), "runs\n", "{file}");
        machine.good(&["exec", "whole", "true"]);
        machine.good(&["inspect-container", "whole"]);
        if file == "config.json" {
            let message = machine.bad(3, &["inspect-container", &id]);
            assert!(message.contains("config.json"), "{message}");
            assert!(listed.contains("damaged"), "{listed}");
            machine.good(&["rm", &id[..8]]);
            assert_eq!(machine.list().len(), 1);
        }
        machine.good(&["rm", "--all", "--force"]);
        assert!(machine.list().is_empty(), "{file}");
    }
}

/// Runs a command that must end, and succeed.
fn ends_well(machine: &Machine, arguments: &[&str]) {
    let mut child = machine.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut ended = None;
    until(&format!("{arguments:?} ends"), || {
        ended = ended.or(child.try_wait().unwrap());
        ended.is_some()
    });
    let output = child.wait_with_output().unwrap();
    assert_eq!(code(&output), 0, "{arguments:?}: {}", shown(&output));
}

#[test]
fn a_container_that_runs_with_a_damaged_status_is_seen_entered_stopped_and_removed() {
    let Some(machine) = machine() else { return };
    let script = "trap 'exit 7' TERM; echo ready; while true; do sleep 0.05; done";
    for text in ["", "{\"state\"", "[]"] {
        let id = machine.start("damaged", &["-e", "GIVEN=value"], script);
        machine.until_logged("damaged", "ready");
        let file = machine.data().join("containers").join(&id).join("status.json");
        fs::write(&file, text).unwrap();
        let status = machine.status("damaged");
        assert_eq!(status["state"], "running", "{status:#}");
        assert_eq!(status["error"], "its status file is damaged");
        assert!(machine.good(&["ps"]).contains("damaged"), "it is among those that run");
        assert_eq!(machine.good(&["exec", "damaged", "sh", "-c", "echo $GIVEN"]), "value\n");
        ends_well(&machine, &["stop", "damaged"]);
        assert_eq!(machine.status("damaged")["exit_code"], 7, "its watcher wrote a new one");
        machine.good(&["start", "-e", "GIVEN=value", "damaged"]);
        fs::write(&file, text).unwrap();
        ends_well(&machine, &["rm", "--force", "damaged"]);
        assert!(machine.list().is_empty());
    }
}

#[test]
fn a_container_that_runs_with_a_damaged_plan_is_killed_and_removed() {
    let Some(machine) = machine() else { return };
    let id = machine.start("damaged", &["--restart", "always"], "sleep 1000");
    let watcher = machine.status("damaged")["watcher"].as_u64().unwrap();
    fs::write(machine.data().join("containers").join(&id).join("config.json"), "").unwrap();
    ends_well(&machine, &["rm", &id]);
    cudock_testkit::process::wait_until_gone(watcher);
    assert!(machine.list().is_empty());
}

#[test]
fn one_that_several_remove_at_once_is_removed_without_an_error() {
    let Some(machine) = machine() else { return };
    for round in 0..10 {
        let options: &[&str] = if round % 2 == 0 { &[] } else { &["--rm"] };
        machine.start("wanted", options, "sleep 1000");
        let removals: Vec<_> = (0..4)
            .map(|_| {
                let mut command = machine.command(&["rm", "--force", "wanted"]);
                command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
            })
            .collect();
        for removal in removals {
            let output = removal.wait_with_output().unwrap();
            let known = code(&output) == 0 || shown(&output).contains("no container `wanted`");
            assert!(known, "{}", shown(&output));
        }
        assert!(machine.list().is_empty());
    }
}

#[test]
fn one_whose_output_nobody_reads_is_removed() {
    let Some(machine) = machine() else { return };
    // The pipe is full, and its reader never reads.
    let mut child = machine
        .command(&run_arguments(&["--name", "talker"], &["yes"]))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until("it runs", || machine.call(&["exec", "talker", "true"]).status.success());
    ends_well(&machine, &["rm", "--force", "talker"]);
    assert!(machine.list().is_empty());
    child.wait().unwrap();
}

#[test]
fn a_volume_that_does_not_fit_the_disk_is_not_half_filled() {
    let Some(machine) = machine() else { return };
    let disk = SmallDisk::new(&machine);
    let (name, bytes) = ("srv/some/where/inside/large", vec![1; 5 << 20]);
    Image::of(&machine).raw_layer(Tar::default().file(name, bytes)).write("app");
    let arguments = ["run", "--rm", "--network", "none", "-v", "small:/srv", "oci:app", "true"];
    for _ in 0..2 {
        let message = machine.bad(3, &arguments);
        let error = message.lines().find(|line| line.starts_with("error: ")).unwrap();
        assert!(
            error.contains("cannot fill the volume") && error.contains("No space left on device"),
            "{error}"
        );
        assert_eq!(error.matches("some/where/inside/large").count(), 1, "{error}");
        assert_eq!(error.matches("No space left").count(), 1, "{error}");
        assert!(!disk.is_full(), "what was copied is gone");
        assert_eq!(fs::read_dir(machine.data().join("volumes/small/data")).unwrap().count(), 0);
    }
    machine.good(&["volume", "rm", "small"]);
}

fn get(port: u16) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream.write_all(b"GET /hello HTTP/1.0\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer).filter(|answer| answer.ends_with("hello from inside\n"))
}

/// The forwarder of a container, by its watcher.
fn forwarder(watcher: u64) -> Option<u64> {
    fs::read_dir("/proc").unwrap().flatten().find_map(|entry| {
        let pid: u64 = entry.file_name().to_string_lossy().parse().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        let parent: u64 = stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()?;
        let command_line = fs::read(entry.path().join("cmdline")).ok()?;
        (parent == watcher && command_line.windows(9).any(|word| word == b"\0forward\0")).then_some(pid)
    })
}

#[test]
fn a_forwarder_that_is_killed_is_started_again_and_one_that_keeps_ending_is_reported() {
    let Some(machine) = machine() else { return };
    machine.start("web", &["-p", "127.0.0.1:0:80"], "httpd -f -p 80 -h /www");
    let status = machine.status("web");
    let watcher = status["watcher"].as_u64().unwrap();
    let port: u16 = status["ports"][0].as_str().unwrap().split(['-', ':']).nth(1).unwrap().parse().unwrap();
    until("it answers", || get(port).is_some());
    send(forwarder(watcher).unwrap(), Signal::KILL);
    until("it answers again", || get(port).is_some());
    assert!(machine.good(&["ps"]).contains(&port.to_string()));
    until("it is given up", || {
        if let Some(pid) = forwarder(watcher) {
            send(pid, Signal::KILL);
        }
        machine.status("web")["ports"].as_array().unwrap().is_empty()
    });
    let error = machine.status("web")["error"].as_str().unwrap().to_owned();
    assert!(error.contains("the port forwarder exited"), "{error}");
    assert!(!machine.good(&["ps"]).contains(&format!("{port}->")));
    machine.good(&["exec", "web", "true"]);
}

#[test]
fn one_that_is_removed_while_it_starts_leaves_no_control_group() {
    let Some(machine) = machine() else { return };
    for _ in 0..25 {
        let mut command = machine.command(&run_arguments(&["-d", "--name", "early"], &["sleep", "1000"]));
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        until("it can be removed", || machine.call(&["rm", "--force", "early"]).status.success());
        child.wait().unwrap();
    }
    assert_eq!(groups(machine.cgroup()), Vec::<PathBuf>::new());
}

#[test]
fn control_groups_that_are_left_behind_are_pruned_and_no_others() {
    let Some(machine) = machine() else { return };
    machine.start("lives", &[], "sleep 1000");
    let left =
        hierarchies()[0].join(machine.cgroup().trim_start_matches('/')).join("cudock-0123456789abcdef");
    fs::create_dir(&left).unwrap();
    until("it is pruned", || {
        let pruned = json(&machine.call(&["prune", "--format", "json"]));
        pruned["control_groups"] == 1
    });
    assert!(!left.exists());
    machine.good(&["exec", "lives", "true"]);
}

#[test]
fn several_get_their_signal_before_the_first_is_waited_for() {
    let Some(machine) = machine() else { return };
    fs::create_dir(machine.path().join("notes")).unwrap();
    let loops = "while true; do sleep 0.1; done";
    let first = format!(
        "trap 'while test ! -e /notes/stopped; do sleep 0.1; done; exit 0' TERM; echo ready; {loops}"
    );
    let second = format!("trap 'touch /notes/stopped; exit 0' TERM; echo ready; {loops}");
    for (name, script) in [("first", first), ("second", second)] {
        machine.start(name, &["-v", "notes:/notes"], &script);
        machine.until_logged(name, "ready");
    }
    // One after the other, the first would be killed after this time.
    machine.good(&["stop", "--time", "60", "first", "second"]);
    assert_eq!(machine.status("first")["exit_code"], 0);
}

#[test]
fn one_that_cannot_be_removed_does_not_keep_the_others() {
    let Some(machine) = machine() else { return };
    machine.start("runs", &[], "sleep 1000");
    machine.good(&run_arguments(&["--name", "ended"], &["true"]));
    let message = machine.bad(2, &["rm", "runs", "ended"]);
    assert!(message.contains("container runs is running"), "{message}");
    assert_eq!(machine.list().len(), 1);
}

#[test]
fn values_that_mean_nothing_are_the_callers_fault() {
    let Some(machine) = machine() else { return };
    for (options, word) in [
        (["--cpuset-cpus", "x"], "`x` is not a list of processors"),
        (["--cpuset-cpus", "3-1"], "`3-1` is not a list of processors"),
        (["--device", "/nope"], "--device: cannot read /nope"),
        (["--device", "/etc/passwd"], "is not a device node"),
        (["--env-file", "/dev/zero"], "cannot read /dev/zero: not a regular file"),
        (["--security-opt", "seccomp=/dev/zero"], "cannot read /dev/zero: not a regular file"),
    ] {
        let message = machine.bad(2, &run_arguments(&[&["--rm"], options.as_slice()].concat(), &["true"]));
        assert!(message.contains(word), "{options:?}: {message}");
    }
    let message = machine.bad(2, &["up", "-f", "/dev/zero"]);
    assert!(message.contains("cannot read /dev/zero: not a regular file"), "{message}");
}
