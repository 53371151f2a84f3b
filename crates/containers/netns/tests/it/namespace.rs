//! Creating, binding and joining namespaces.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use cudock_netns::Namespace;
use cudock_testkit::process::{is_reentered, reenter, reenter_as};
use cudock_testkit::test_name;
use rustix::fs::{StatVfsMountFlags, statvfs};
use rustix::mount::UnmountFlags;

use crate::support::{inside, namespace, number, start};

#[test]
fn a_new_namespace_has_only_a_working_loopback_device() {
    let Some(made) = namespace() else { return };
    let devices = inside(&made, || {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let listener = TcpListener::bind(address).unwrap();
            TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        }
        fs::read_to_string("/proc/thread-self/net/dev").unwrap()
    });
    let names: Vec<&str> = devices.lines().skip(2).filter_map(|line| line.trim().split(':').next()).collect();
    assert!(names.contains(&"lo"), "{names:?}");
    // The kernel may add tunnel devices, which are down.
    let routes = inside(&made, || fs::read_to_string("/proc/thread-self/net/route").unwrap());
    assert_eq!(routes.lines().count(), 1, "{routes}");
}

/// The number of this thread's namespace.
fn current() -> u64 {
    fs::metadata("/proc/thread-self/ns/net").unwrap().ino()
}

#[test]
fn the_caller_stays_in_its_namespace() {
    let before = current();
    let Some(made) = namespace() else { return };
    assert_eq!(current(), before);
    assert_ne!(number(&made), before);
}

#[test]
fn no_thread_remains() {
    let test = test_name!();
    if !is_reentered(test) {
        // In a process in which no other test starts threads.
        if namespace().is_some() {
            assert!(reenter(test).status().unwrap().success());
        }
        return;
    }
    let threads = || -> BTreeSet<_> {
        fs::read_dir("/proc/self/task").unwrap().map(|entry| entry.unwrap().file_name()).collect()
    };
    let before = threads();
    for _ in 0..200 {
        Namespace::create().unwrap();
        assert_eq!(threads(), before);
    }
}

#[test]
fn an_unprivileged_port_is_any_port() {
    let Some(made) = namespace() else { return };
    let first =
        inside(&made, || fs::read_to_string("/proc/sys/net/ipv4/ip_unprivileged_port_start").unwrap());
    // Not by its permissions: nobody may write to the directory itself.
    if statvfs("/proc/sys").unwrap().f_flag.contains(StatVfsMountFlags::RDONLY) {
        cudock_testkit::missing("writable-sysctls", "/proc/sys is read-only");
        return;
    }
    assert_eq!(first.trim(), "0");
}

#[test]
fn a_bound_namespace_outlives_its_descriptor() {
    let Some(made) = namespace() else { return };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("net");
    if let Err(error) = made.bind_to(&path) {
        cudock_testkit::missing("namespaces", format_args!("{error}"));
        return;
    }
    let before = number(&made);
    drop(made);
    assert_eq!(number(&Namespace::open(&path).unwrap()), before);
    rustix::mount::unmount(&path, UnmountFlags::DETACH).unwrap();
}

#[test]
fn a_file_that_is_not_a_namespace_is_rejected_with_its_path() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let error = Namespace::open(file.path()).unwrap_err().to_string();
    assert!(error.contains(&file.path().display().to_string()), "{error}");
    assert!(Namespace::open(Path::new("/nowhere")).is_err());
}

/// A process that joins a namespace by path: one serves on its localhost, the other connects to it.
fn share_localhost(role: &str, namespace: &Path) {
    Namespace::open(namespace).unwrap().enter().unwrap();
    if role == "server" {
        let listener = TcpListener::bind("127.0.0.1:8081").unwrap();
        println!("ready: yes");
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(b"from the neighbor").unwrap();
    } else {
        let mut output = String::new();
        TcpStream::connect("127.0.0.1:8081").unwrap().read_to_string(&mut output).unwrap();
        println!("answer: {output}");
    }
}

#[test]
fn two_processes_that_join_by_path_share_localhost() {
    let test = test_name!();
    if is_reentered(test) {
        share_localhost(&env::var("ROLE").unwrap(), Path::new(&env::var_os("NETNS").unwrap()));
        return;
    }
    let Some(made) = namespace() else { return };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("net");
    if let Err(error) = made.bind_to(&path) {
        cudock_testkit::missing("namespaces", format_args!("{error}"));
        return;
    }
    let process = |role: &str| {
        let mut command = reenter(test);
        command.env("NETNS", &path).env("ROLE", role);
        command
    };
    let (_server, _) = start(process("server"), "ready: ");
    let (_client, answer) = start(process("client"), "answer: ");
    assert_eq!(answer, "from the neighbor");
    assert!(TcpStream::connect("127.0.0.1:8081").is_err(), "the host does not see the container's localhost");
    rustix::mount::unmount(&path, UnmountFlags::DETACH).unwrap();
}

#[test]
fn a_user_namespace_is_sufficient() {
    let test = test_name!();
    if is_reentered(test) {
        let made = Namespace::create().unwrap();
        assert_eq!(inside(&made, current), number(&made));
        return;
    }
    let exists = Command::new("unshare").args(["--user", "--map-root-user", "true"]).status();
    if !exists.is_ok_and(|status| status.success()) {
        cudock_testkit::missing("namespaces", "no user namespaces, or no unshare(1)");
        return;
    }
    let mut unshare = Command::new("unshare");
    unshare.args(["--user", "--map-root-user"]).arg(env::current_exe().unwrap());
    assert!(reenter_as(unshare, test).status().unwrap().success());
}
