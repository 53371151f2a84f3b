//! `run --rm`, in the foreground and detached.

use std::fs;
use std::time::Instant;

use cudock_testkit::process::signal_at_random;
use cudock_testkit::random::cases;
use rustix::process::Signal;

use crate::containers::leftovers::leftovers;
use crate::containers::machine::{machine, run_arguments, until};
use crate::support::{code, shown};

#[test]
fn a_run_with_rm_that_is_ended_leaves_nothing_and_its_name_is_free() {
    let Some(machine) = machine() else { return };
    // A host port is in use as long as anything is left of it.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let publish = format!("127.0.0.1:{port}:80");
    let options = ["--rm", "--name", "killed", "-p", &publish];
    let arguments = run_arguments(&options, &["sleep", "0.05"]);
    machine.good(&arguments);
    let began = Instant::now();
    machine.good(&arguments);
    let whole = began.elapsed();
    let detached = run_arguments(&[&["-d"], &options[..]].concat(), &["sleep", "0.05"]);
    signal_at_random(
        cases(5),
        whole,
        &[Signal::KILL, Signal::INT, Signal::TERM, Signal::HUP],
        |round| machine.command(if round % 2 == 0 { &arguments } else { &detached }),
        |round, signal| {
            if round % 2 == 1 {
                // Its watcher goes on without the command that started it, until the container has ended.
                until("the detached container has ended", || {
                    machine.list().iter().all(|one| one["state"] != "running" && one["state"] != "created")
                });
            } else if signal != Signal::KILL {
                // Cleaned up by the command itself.
                until("nothing is left", || leftovers(&machine.data(), machine.cgroup()).is_empty());
            }
            // The kernel may still be ending processes of the command.
            let mut output = machine.call(&arguments);
            for _ in 0..100 {
                // Its port, or the name of a container that is being removed.
                if !shown(&output).contains("in use") {
                    break;
                }
                std::thread::sleep(std::time::Duration::from_millis(50));
                output = machine.call(&arguments);
            }
            assert_eq!(code(&output), 0, "{}", shown(&output));
            assert!(machine.list().is_empty());
            until("nothing is left", || leftovers(&machine.data(), machine.cgroup()).is_empty());
            assert_eq!(fs::read_dir(machine.data().join("trash")).unwrap().count(), 0);
        },
    );
}
