//! Containers that must end: an attack may also make `cudock` wait forever.

use std::io::{Read, Seek, SeekFrom};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use crate::containers::machine::{Machine, run_arguments};
use crate::support::{code, shown};

/// Time after which a command counts as hanging. Not a promise of ours.
const PATIENCE: Duration = Duration::from_secs(120);

/// Runs a command to its end, which must be one of those that `cudock` documents.
pub(super) fn ended(attack: &str, mut command: Command) -> Output {
    let (mut out, mut err) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
    let mut child =
        command.stdout(out.try_clone().unwrap()).stderr(err.try_clone().unwrap()).spawn().unwrap();
    let began = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break Some(status);
        }
        if began.elapsed() > PATIENCE {
            child.kill().unwrap();
            child.wait().unwrap();
            break None;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let mut texts = [Vec::new(), Vec::new()];
    for (file, text) in [&mut out, &mut err].into_iter().zip(&mut texts) {
        file.seek(SeekFrom::Start(0)).unwrap();
        file.take(1 << 20).read_to_end(text).unwrap();
    }
    let [stdout, stderr] = texts;
    let Some(status) = status else {
        panic!("{attack}: it hangs: {}", String::from_utf8_lossy(&stderr));
    };
    let output = Output { status, stdout, stderr };
    assert!(!shown(&output).contains("panicked"), "{attack}: {}", shown(&output));
    assert_ne!(code(&output), -1, "{attack}: it was killed: {}", shown(&output));
    output
}

/// Runs a script in a container made of the machine's directory, or of the root in `options`.
pub(super) fn sh(machine: &Machine, attack: &str, options: &[&str], script: &str) -> Output {
    let options = [&["--rm"], options].concat();
    ended(attack, machine.command(&run_arguments(&options, &["/bin/sh", "-c", script])))
}

/// Runs an image with its own command, or with this one.
pub(super) fn image(
    machine: &Machine,
    attack: &str,
    options: &[&str],
    image: &str,
    command: &[&str],
) -> Output {
    let own = ["run", "--rm", "--network", "none"];
    ended(attack, machine.command(&[own.as_slice(), options, &[image], command].concat()))
}

/// Whether it ran. Fails if the program refused it instead of us.
pub(super) fn ran(attack: &str, output: &Output) -> bool {
    match code(output) {
        0 => true,
        2 | 3 | 126 | 127 => {
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert!(
                stderr.contains("error: ") || stderr.starts_with("cudock: "),
                "{attack}: {}",
                shown(output)
            );
            false
        }
        _ => panic!("{attack}: {}", shown(output)),
    }
}
