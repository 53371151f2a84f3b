//! The sealed executable against the attack it is for (CVE-2019-5736).

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use cudock_confine::seal;
use cudock_testkit::process::{is_reentered, reenter, reenter_as};
use cudock_testkit::{missing, test_name};
use rustix::fs::{Mode, OFlags};

use crate::support;

const VICTIM: &str = "CUDOCK_TEST_VICTIM";

/// In a test that was reentered: the process whose executable is attacked. Says whether it is sealed and what it can do
/// to its own executable, then waits to be ended. False in the test itself.
fn is_victim(test: &str) -> bool {
    if !is_reentered(test) {
        return false;
    }
    let how = std::env::var(VICTIM).unwrap();
    if ["remove", "replace"].contains(&how.as_str()) {
        let own = std::env::current_exe().unwrap();
        std::fs::remove_file(&own).unwrap();
        if how == "replace" {
            std::fs::write(&own, "something else").unwrap();
        }
        assert!(seal::by_overlay().is_err());
    }
    if ["reseal", "again", "remove", "replace"].contains(&how.as_str()) {
        // What `cudock` does at its start: from a plain copy into a sealed one.
        let executable = seal::sealed_executable().unwrap();
        let own = rustix::fs::stat("/proc/self/exe").unwrap();
        let handed_on = rustix::fs::fstat(&executable).unwrap();
        eprintln!("\nsame={}", (own.st_dev, own.st_ino) == (handed_on.st_dev, handed_on.st_ino));
        let next = if how == "reseal" { "again" } else { "look" };
        let mut sealed = reenter_as(seal::command(&executable), test);
        assert!(sealed.env(VICTIM, next).status().unwrap().success());
        return true;
    }
    let opened = OpenOptions::new().write(true).open("/proc/self/exe");
    let wrote = opened.and_then(|mut file| file.write_all(b"owned"));
    eprintln!("\nsealed={} wrote={} handles={}", seal::is_sealed().unwrap(), wrote.is_ok(), own_handles());
    if how == "wait" {
        let _ = std::io::stdin().read(&mut [0]);
    }
    true
}

/// How many open descriptors of this process lead to its own executable.
fn own_handles() -> usize {
    let own = std::fs::read_link("/proc/self/exe").unwrap();
    let descriptors = std::fs::read_dir("/proc/self/fd").unwrap();
    descriptors.filter_map(|one| std::fs::read_link(one.ok()?.path()).ok()).filter(|to| *to == own).count()
}

/// A victim that has printed its line and waits.
fn wait_for_line(mut child: Child) -> (Child, String) {
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let line = lines.find_map(|line| line.ok().filter(|line| line.starts_with("sealed="))).unwrap();
    (child, line)
}

/// The attack: keep hold of a running process's executable, wait until nobody runs it any more, write to it. Says
/// whether anything was written.
fn attack(mut child: Child) -> bool {
    let door = format!("/proc/{}/exe", child.id());
    let held = rustix::fs::open(door, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap();
    drop(child.stdin.take());
    child.wait().unwrap();
    let again = format!("/proc/self/fd/{}", held.as_raw_fd());
    let truncated = OpenOptions::new().write(true).truncate(true).open(&again).is_ok();
    let wrote = OpenOptions::new().write(true).open(&again).and_then(|mut file| file.write_all(b"owned"));
    truncated || wrote.is_ok()
}

/// This test program, copied: what is attacked may break. A process of its own copies it: a child that another test starts
/// meanwhile would inherit a descriptor that writes, and a file that is open for writing cannot be executed.
fn copy(directory: &Path) -> PathBuf {
    let path = directory.join("victim");
    let copied = Command::new("cp").arg(std::env::current_exe().unwrap()).arg(&path).status().unwrap();
    assert!(copied.success());
    path
}

fn start(command: Command, test: &str) -> Child {
    reenter_as(command, test)
        .env(VICTIM, "wait")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Without this, the tests below would pass where the attack never works.
#[test]
fn an_executable_that_is_not_sealed_can_be_overwritten() {
    let test = test_name!();
    if is_victim(test) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = copy(directory.path());
    let (child, line) = wait_for_line(start(Command::new(&path), test));
    assert!(line.contains("sealed=false"), "{line}");
    assert!(attack(child));
    assert!(std::fs::read(&path).unwrap().starts_with(b"owned"));
}

fn withstands(executable: &OwnedFd, test: &str) {
    let own = std::env::current_exe().unwrap();
    let before = std::fs::read(&own).unwrap();
    let (child, line) = wait_for_line(start(seal::command(executable), test));
    assert_eq!(line, "sealed=true wrote=false handles=0");
    assert!(!attack(child));
    assert!(std::fs::read(&own).unwrap() == before, "the file on disk has changed");
}

#[test]
fn the_overlay_cannot_be_written_through() {
    let test = test_name!();
    if is_victim(test) {
        return;
    }
    match seal::by_overlay() {
        Ok(executable) => withstands(&executable, test),
        Err(error) => missing("overlay", format!("no overlay can be mounted here: {error}")),
    }
}

#[test]
fn the_copy_in_memory_cannot_be_written_through() {
    let test = test_name!();
    if is_victim(test) {
        return;
    }
    withstands(&seal::by_memory().unwrap(), test);
}

#[test]
fn the_handle_itself_writes_nothing() {
    for executable in seal::by_overlay().into_iter().chain([seal::by_memory().unwrap()]) {
        let length = File::open(std::env::current_exe().unwrap()).unwrap().metadata().unwrap().len();
        assert!(File::from(executable.try_clone().unwrap()).write_all(b"owned").is_err());
        let again = format!("/proc/self/fd/{}", executable.as_raw_fd());
        assert!(OpenOptions::new().write(true).open(&again).and_then(|file| file.set_len(0)).is_err());
        assert_eq!(File::open(&again).unwrap().metadata().unwrap().len(), length);
    }
}

#[test]
fn this_process_is_not_sealed_and_one_that_seals_itself_is() {
    let test = test_name!();
    if is_victim(test) {
        return;
    }
    assert!(!seal::is_sealed().unwrap());
    let output = reenter(test).env(VICTIM, "reseal").output().unwrap();
    let message = support::text(&output);
    assert!(message.contains("sealed=true wrote=false"), "{message}");
    // From the plain file to a sealed handle, and from there to the same one.
    let same: Vec<&str> = message.lines().filter(|line| line.starts_with("same=")).collect();
    assert_eq!(same, ["same=false", "same=true"], "{message}");
}

#[test]
fn an_executable_that_was_removed_or_replaced_is_sealed_all_the_same() {
    let test = test_name!();
    if is_victim(test) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    for how in ["remove", "replace"] {
        let path = copy(directory.path());
        let output = reenter_as(Command::new(&path), test).env(VICTIM, how).output().unwrap();
        let message = support::text(&output);
        assert!(message.contains("sealed=true wrote=false"), "{how}: {message}");
    }
}

#[test]
#[ignore = "a measurement: run it in a release build with --nocapture"]
fn what_sealing_costs() {
    let size = std::env::current_exe().unwrap().metadata().unwrap().len();
    for (name, make) in [("overlay", seal::by_overlay as fn() -> _), ("memory", seal::by_memory as fn() -> _)]
    {
        let mut times: Vec<_> = (0..200)
            .map(|_| {
                let from = Instant::now();
                let made: std::io::Result<OwnedFd> = make();
                let took = from.elapsed();
                made.map(|_| took)
            })
            .filter_map(Result::ok)
            .collect();
        times.sort();
        if let (Some(middle), Some(late)) = (times.get(times.len() / 2), times.get(times.len() * 99 / 100)) {
            eprintln!("{name}: p50 {middle:?}, p99 {late:?} of {} ({size} bytes)", times.len());
        }
    }
}
