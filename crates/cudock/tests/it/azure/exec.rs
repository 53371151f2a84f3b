//! Commands and logs of deployments that run.

use cudock_azure_testkit::CloudSettings;

use super::world::World;
use crate::support::{code, shown};

/// A deployment of a long job that runs.
fn running(target: &str) -> Option<World> {
    let mut world = World::new(CloudSettings { job_seconds: 100_000, ..CloudSettings::default() })?;
    let image = world.image();
    let arguments = [
        "up", ".", "--on", target, "--name", "train", "--image", &image, "--region", "eastus", "--detach",
        "--", "python", "train.py",
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
fn where_no_command_can_be_run_the_reason_and_another_way_are_told() {
    for (target, words) in [("batch", "cudock logs"), ("container-apps", "does not connect to")] {
        let Some(mut world) = running(target) else { return };
        let before = world.stand_in.requests().len();
        let output = world.run(&["exec", "train", "--", "nvidia-smi"]).output;
        assert_eq!(code(&output), 2, "{}", shown(&output));
        assert!(shown(&output).contains(words), "{}", shown(&output));
        assert_eq!(world.stand_in.requests().len(), before, "nothing is sent");
    }
}
