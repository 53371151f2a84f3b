//! The first start with a named volume, which copies the image's files into it.

use std::fs;
use std::time::Instant;

use cudock_testkit::process::signal_at_random;
use cudock_testkit::random::cases;
use cudock_testkit::tar::Tar;
use rustix::process::Signal;

use crate::containers::images::Image;
use crate::containers::leftovers::leftovers;
use crate::containers::machine::{Machine, machine, until};

/// Enough that copying them takes most of the start.
const FILES: usize = 1500;

fn command_line(volume: &str) -> Vec<String> {
    let mount = format!("{volume}:/srv");
    let arguments = ["run", "--rm", "--network", "none", "--name", "killed", "-v", &mount, "oci:app"];
    let count = ["sh", "-c", "find /srv -type f | wc -l; stat -c %a /srv"];
    arguments.iter().chain(&count).map(ToString::to_string).collect()
}

fn entries(machine: &Machine, volume: &str) -> Vec<String> {
    let directory = machine.data().join("volumes").join(volume);
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_first_start_that_is_ended_leaves_its_volume_empty_or_whole() {
    let Some(machine) = machine() else { return };
    let tar = (0..FILES).fold(Tar::default().entry_with_mode("srv/", b'5', 0o711, b""), |tar, number| {
        tar.file(&format!("srv/{}/{number}", number % 7), format!("{number}\n"))
    });
    Image::of(&machine).raw_layer(tar).write("app");
    let whole_volume = format!("{FILES}\n711\n");
    let run = |volume: &str| {
        let arguments = command_line(volume);
        machine.good(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
    };
    assert_eq!(run("unpacked"), whole_volume);
    let began = Instant::now();
    assert_eq!(run("measured"), whole_volume);
    let whole = began.elapsed();
    let volume = |round: u32| format!("v{round}");
    signal_at_random(
        cases(5),
        whole,
        &[Signal::KILL, Signal::INT, Signal::TERM, Signal::HUP],
        |round| {
            let arguments = command_line(&volume(round));
            machine.command(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
        },
        |round, signal| {
            let name = volume(round);
            if signal != Signal::KILL {
                // Cleaned up by the command itself.
                until("no container is left", || leftovers(&machine.data(), machine.cgroup()).is_empty());
                assert!(!entries(&machine, &name).contains(&"filling".to_owned()));
            }
            // The name is free, and a copy that exists is complete.
            assert_eq!(run(&name), whole_volume);
            assert_eq!(entries(&machine, &name), ["data", "volume.json"]);
            assert!(machine.list().is_empty());
            machine.good(&["volume", "rm", &name]);
            assert_eq!(entries(&machine, &name), [""; 0]);
            until("nothing is left", || leftovers(&machine.data(), machine.cgroup()).is_empty());
            assert_eq!(fs::read_dir(machine.data().join("trash")).unwrap().count(), 0);
        },
    );
}
