//! Commands, terminals and logs of deployments that run.

use cudock_azure_testkit::CloudSettings;

use super::world::World;
use crate::containers::pseudo_terminal::Terminal;
use crate::support::{code, shown};

/// A deployment of a long job that runs.
fn running(target: &str) -> Option<World> {
    let mut world = World::new(CloudSettings { job_seconds: 100_000, ..CloudSettings::default() })?;
    let image = world.image();
    let arguments = [
        "up", ".", "--on", target, "--name", "train", "--image", &image, "--region", "eastus", "--price",
        "0.10", "--detach", "--", "python", "train.py",
    ];
    let output = world.run(&arguments).output;
    assert_eq!(code(&output), 0, "{}", shown(&output));
    Some(world)
}

#[test]
fn a_machine_runs_commands_shows_its_log_and_its_gpus() {
    let Some(mut world) = running("vm") else { return };
    let output = world.run(&["exec", "train", "--", "nvidia-smi", "-L"]).output;
    assert_eq!(
        (code(&output), output.stdout.as_slice()),
        (0, &b"GPU 0: Tesla T4 (UUID: GPU-1)\n"[..]),
        "{}",
        shown(&output)
    );
    let verified = world.run(&["verify", "train"]).output;
    assert_eq!(code(&verified), 0, "{}", shown(&verified));
    let logs = world.run(&["logs", "train"]).output;
    assert_eq!(logs.stdout, b"hello from the stand-in\n", "{}", shown(&logs));
    let refused = world.run(&["exec", "-t", "train", "--", "sh"]).output;
    assert_eq!(code(&refused), 2, "{}", shown(&refused));
}

#[test]
fn containers_run_commands_with_arguments_and_return_their_exit_code() {
    for target in ["aci", "container-apps"] {
        if cudock_testkit::require_program("setsid").is_none() {
            return;
        }
        let Some(mut world) = running(target) else { return };
        let mut exec = |command: &[&str]| {
            let output = world.run(&[&["exec", "train", "--"], command].concat()).output;
            (code(&output), String::from_utf8(output.stdout.clone()).unwrap(), shown(&output))
        };
        let (ended, stdout, all) =
            exec(&["sh", "-c", "printf 'a  b\\n\\n%s\\n' \"$0\"; exit 3", "it's $HOME"]);
        assert_eq!((ended, stdout.as_str()), (3, "a  b\n\nit's $HOME\n"), "{target}: {all}");
        let (ended, stdout, all) = exec(&["nvidia-smi", "-L"]);
        assert_eq!((ended, stdout.as_str()), (0, "GPU 0: Tesla T4 (UUID: GPU-1)\n"), "{target}: {all}");
        let (ended, _, all) = exec(&["no-such-program"]);
        assert_eq!(ended, 127, "{target}: {all}");
        // It has no input, and does not wait for some.
        let (ended, stdout, all) = exec(&["wc", "-c"]);
        assert_eq!((ended, stdout.trim()), (0, "0"), "{target}: {all}");
        let (ended, _, all) = exec(&["printf", "a\tb"]);
        assert_eq!(ended, 2, "{target}: {all}");
        assert!(all.contains("control characters"), "{target}: {all}");
        let verified = world.run(&["verify", "train"]).output;
        assert_eq!(code(&verified), 0, "{target}: {}", shown(&verified));
    }
}

#[test]
fn a_terminal_in_a_container_has_our_keys_and_our_size() {
    for target in ["aci", "container-apps"] {
        if cudock_testkit::require_program("setsid").is_none() {
            return;
        }
        let Some(world) = running(target) else { return };
        let mut command = world.command(&["exec", "-it", "train", "--", "sh"]);
        command.envs(world.stand_in.environment());
        let mut terminal = Terminal::start(&command, 37, 101);
        terminal.until_shown("# ");
        assert!(!terminal.is_cooked(), "keys are passed on one by one while it runs");
        terminal.keys("echo $((40 + 2)) $(stty size)\r");
        terminal.until_shown("42 37 101");
        terminal.keys("exit 5\r");
        assert_eq!(terminal.wait(), Some(0), "no service reports the exit code: {}", terminal.shown());
        assert!(terminal.is_cooked(), "our terminal is as it was");
    }
}

#[test]
fn a_terminal_in_container_apps_follows_our_size_and_passes_signals_on() {
    if cudock_testkit::require_program("setsid").is_none() {
        return;
    }
    let Some(world) = running("container-apps") else { return };
    let script = "trap 'echo now $(stty size)' WINCH; echo first $(stty size); while :; do sleep 0.1; done";
    let mut command = world.command(&["exec", "-it", "train", "--", "sh", "-c", script]);
    command.envs(world.stand_in.environment());
    let mut terminal = Terminal::start(&command, 37, 101);
    terminal.until_shown("first 37 101");
    terminal.resize(20, 64);
    terminal.until_shown("now 20 64");
    terminal.keys("\u{3}");
    assert_eq!(terminal.wait(), Some(0), "{}", terminal.shown());
}

#[test]
fn a_program_that_the_image_does_not_have_is_named() {
    if cudock_testkit::require_program("setsid").is_none() {
        return;
    }
    let Some(world) = running("container-apps") else { return };
    let mut command = world.command(&["exec", "-it", "train", "--", "no-such-program"]);
    command.envs(world.stand_in.environment());
    let mut terminal = Terminal::start(&command, 24, 80);
    assert_eq!(terminal.wait(), Some(3), "{}", terminal.shown());
    terminal.until_shown("executable file not found");
    assert!(terminal.is_cooked(), "our terminal is as it was");
}

#[test]
fn where_no_command_can_run_the_reason_and_an_alternative_are_shown() {
    let cases: [(&str, &[&str], &str); 3] = [
        ("batch", &[], "cudock logs"),
        ("container-apps", &["-it"], "standard input is not a terminal"),
        ("container-apps", &["-i"], "-it"),
    ];
    for (target, flags, expected) in cases {
        let Some(mut world) = running(target) else { return };
        let before = world.stand_in.requests().len();
        let arguments = [&["exec"], flags, &["train", "--", "nvidia-smi"]].concat();
        let output = world.run(&arguments).output;
        assert_eq!(code(&output), 2, "{}", shown(&output));
        assert!(shown(&output).contains(expected), "{}", shown(&output));
        assert_eq!(world.stand_in.requests().len(), before, "nothing is sent");
    }
}
