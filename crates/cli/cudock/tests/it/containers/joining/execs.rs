//! Programs that `exec` starts.

use super::Scene;
use crate::join_trace::{CAPABILITIES, Hold, Tracer, assert_looked_at, attempts};

/// The ways in which programs are started.
const EXECS: [&[&str]; 4] = [
    &["exec", "spy", "true"],
    &["exec", "-i", "spy", "cat"],
    &["exec", "-t", "spy", "true"],
    &["exec", "-w", "/tmp", "-e", "A=b", "spy", "sh", "-c", "exit 0"],
];

/// Has processes join a container that watches them, and fails if it saw anything of the host.
fn attack(scene: &Scene) {
    for added in CAPABILITIES {
        let mut spies = [scene.start_spy(added)];
        let mut looks = 0;
        for arguments in EXECS.iter().cycle().take(attempts()) {
            let trace = Tracer::run(&scene.command(arguments), &mut spies, Hold::Joining);
            assert_eq!(trace.code, Some(0), "{arguments:?}: {trace:?}");
            assert_eq!(trace.joins.len(), 1, "{arguments:?}: {trace:?}");
            assert_looked_at(&trace.joins[0], added);
            looks += trace.joins[0].looks;
        }
        // What a process shows in the middle of a system call can only be seen by chance.
        spies[0].race();
        for arguments in EXECS.iter().cycle().take(attempts().div_ceil(5)) {
            scene.good(arguments);
        }
        spies[0].look();
        eprintln!("exec, capabilities `{added}`: {} joins, {looks} looks before their programs", attempts());
        assert_eq!(spies[0].leaks(), "", "capabilities `{added}`");
        scene.good(&["rm", "--force", "spy"]);
    }
}

#[test]
fn a_process_that_joins_by_exec_shows_nothing_of_this_machine() {
    if let Some(scene) = Scene::of_root() {
        attack(&scene);
    }
}

#[test]
fn a_process_that_joins_a_users_container_shows_nothing_of_that_user() {
    if let Some(scene) = Scene::of_user() {
        attack(&scene);
    }
}
