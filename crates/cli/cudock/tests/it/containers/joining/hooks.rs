//! The hooks of our CDI specifications, called by runc for a container in the pid namespace of a hostile one, as in a pod
//! that shares its processes.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::super::machine::installed;
use super::Scene;
use crate::join_trace::{CAPABILITIES, Hold, Spy, Trace, Tracer, attempts};
use crate::support::{code, shown};

/// A hook as specifications have it, which makes a link.
fn hook(link: &str) -> Value {
    let link = format!("target::{link}");
    json!({
        "path": env!("CARGO_BIN_EXE_cudock"),
        "args": ["cudock", "cdi-hook", "create-symlinks", "--link", link, "--join"],
    })
}

/// A container of runc in the pid namespace of a process, which has a hook make a link in its `/tmp`, a mount of its own.
fn write_bundle(bundle: &Path, root: &Path, pid: u64, hooks: &Value) {
    let namespaces = json!([
        {"type": "mount"},
        {"type": "pid", "path": format!("/proc/{pid}/ns/pid")},
    ]);
    let config = json!({
        "ociVersion": "1.0.2",
        "root": {"path": root},
        "process": {
            "user": {"uid": 0, "gid": 0},
            "args": ["/bin/readlink", "/tmp/made-by-the-hook"],
            "cwd": "/",
            "env": ["PATH=/bin"],
        },
        "mounts": [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs"},
        ],
        "hooks": hooks,
        "linux": {"namespaces": namespaces},
    });
    fs::create_dir_all(bundle).unwrap();
    fs::write(bundle.join("config.json"), config.to_string()).unwrap();
}

/// Has runc make a container, in the user namespace of the spy.
fn runc(scene: &Scene, pid: u64) -> Command {
    let path = scene.machine().path();
    let mut command = Command::new("nsenter");
    let same = |process: &str| fs::read_link(format!("/proc/{process}/ns/user")).unwrap();
    // One's own user namespace cannot be joined.
    if same("self") != same(&pid.to_string()) {
        command.arg(format!("--user=/proc/{pid}/ns/user"));
    }
    command
        .arg("--")
        .args(["runc", "--root"])
        .arg(path.join("runc"))
        .arg("--log")
        .arg(path.join("runc/log"))
        .args(["run", "--bundle"])
        .arg(path.join("bundle"));
    // runc names control groups after it, which must not be another test's nor the spy's.
    command.arg(format!("runc{}", scene.machine().cgroup().replace('/', "-")));
    command.env("SECRET_OF_THE_CALLER", &scene.secrets.variable);
    command
}

fn first_process(scene: &Scene) -> u64 {
    let output = scene.output(&["inspect-container", "spy"]);
    assert_eq!(code(&output), 0, "{}", shown(&output));
    let about: Value = serde_json::from_slice(&output.stdout).unwrap();
    about["status"]["pid"].as_u64().unwrap()
}

/// How often our program ran as a hook: in the spy's pid namespace, and elsewhere.
fn hooks(trace: &Trace, spy: &Spy) -> (usize, usize) {
    let ours = Path::new(env!("CARGO_BIN_EXE_cudock"));
    let ran = trace.programs.iter().filter(|(program, _)| program == ours);
    let (inside, outside): (Vec<_>, Vec<_>) = ran.partition(|(_, namespace)| *namespace == spy.namespace);
    (inside.len(), outside.len())
}

fn attack(scene: &Scene) {
    if !installed("runc") || !installed("nsenter") {
        return;
    }
    let (bundle, root) = (scene.machine().path().join("bundle"), scene.machine().root());
    let state = scene.machine().path().join("runc");
    fs::create_dir(&state).unwrap();
    fs::set_permissions(&state, fs::Permissions::from_mode(0o777)).unwrap();
    for added in CAPABILITIES {
        let mut spies = [scene.start_spy(added)];
        let pid = first_process(scene);
        let mut run = |hooks: &Value| {
            write_bundle(&bundle, &root, pid, hooks);
            let trace = Tracer::run(&runc(scene, pid), &mut spies, Hold::Programs);
            assert_eq!(trace.code, Some(0), "{trace:?}");
            trace
        };
        // That it would be noticed: a hook of the container itself is where the spy is.
        let mut inside = hook("/tmp/made-by-the-hook");
        inside["args"].as_array_mut().unwrap().pop();
        let traces: Vec<Trace> = [json!({"createContainer": [inside]})]
            .iter()
            .chain(std::iter::repeat_n(
                &json!({"createRuntime": [hook("/tmp/made-by-the-hook")]}),
                attempts(),
            ))
            .map(&mut run)
            .collect();
        assert_eq!(hooks(&traces[0], &spies[0]), (1, 0));
        for trace in &traces[1..] {
            assert_eq!(hooks(trace, &spies[0]), (0, 1), "{trace:?}");
        }
        eprintln!("hooks, capabilities `{added}`: {} hooks, none in the pid namespace", attempts());
        scene.good(&["rm", "--force", "spy"]);
    }
}

#[test]
fn a_hook_of_ours_is_never_in_the_pid_namespace_of_a_container() {
    if let Some(scene) = Scene::of_root() {
        attack(&scene);
    }
}

#[test]
fn a_hook_of_ours_is_never_in_the_pid_namespace_of_a_users_container() {
    if let Some(scene) = Scene::of_user() {
        attack(&scene);
    }
}

#[test]
fn hooks_of_other_specifications_are_not_run() {
    let Some(scene) = Scene::of_root() else { return };
    let arguments =
        ["run", "--rm", "--network", "none", "--device", "vendor.com/class=name", "--rootfs", "root", "true"];
    let output = scene.output(&arguments);
    assert_eq!(code(&output), 2, "{}", shown(&output));
    assert!(
        shown(&output).contains("CDI devices of kind vendor.com/class are not supported"),
        "{}",
        shown(&output)
    );
}
