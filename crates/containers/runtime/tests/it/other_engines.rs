//! Real containers, made by podman's command and by docker's. There is no daemon of docker's in the tests: its command
//! talks to podman's service, which speaks the same language; so docker's arguments are parsed by docker itself.
//!
//! An engine is driven with our own outputs and environment, so each act is a process of its own: `drive_engine`.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::Duration;

use cudock_testkit::client::eventually;
use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::engines::{Begun, Done, Engines, IMAGE, config, drive, shell};

#[test]
fn podman_runs_containers_as_requested() {
    let Some(engines) = Engines::set_up() else { return };
    a_container_is_as_requested(&engines, "podman");
    a_signal_reaches_the_program_and_no_variable_the_list_of_processes(&engines, "podman");
    a_life_from_start_to_removal(&engines, "podman");

    // A directory in place of an image; a path that must be quoted; a limit beyond what this process may hand down.
    // Through podman's service docker's command learns nothing of how a container ended that removes itself, so that
    // is tried here only, too.
    fs::create_dir(engines.at("a,\"b\"")).unwrap();
    fs::write(engines.at("a,\"b\"").join("file"), "found").unwrap();
    let changes = [
        ("/name", json!("brief")),
        ("/remove", json!(true)),
        ("/image", json!(format!("rootfs:{}", engines.at("root").display()))),
        (
            "/mounts",
            json!([{"kind": "bind", "source": engines.at("a,\"b\""), "target": "/c,d", "read_only": true}]),
        ),
    ];
    // More than the kernel gives anybody: refused, and never cut to what there is.
    let too_high = ("/limits/rlimits/0", json!({"name": "nofile", "soft": 1_u64 << 40, "hard": 1_u64 << 40}));
    let refused = engines.run("podman", "true", &[changes.as_slice(), &[too_high]].concat());
    assert!(refused.error().contains("cannot raise the hard limit of nofile"), "{refused:?}");
    let done = engines.run(
        "podman",
        "cat /c,d/file; touch /c,d/file && echo written; touch /new && exit 7",
        &changes,
    );
    assert_eq!((done.ok(), done.out.as_str()), (&json!(7), "found"), "{done:?}");
    assert!(!engines.at("root").join("new").exists(), "the directory was written to");
    let gone = engines.act(&json!({"verb": "inspect", "engine": "podman", "name": "brief"}));
    assert_eq!(gone.error(), "no container `brief`");
}

#[test]
fn docker_runs_containers_as_requested() {
    let Some(mut engines) = Engines::set_up() else { return };
    if !engines.serve() {
        return;
    }
    a_container_is_as_requested(&engines, "docker");
    a_signal_reaches_the_program_and_no_variable_the_list_of_processes(&engines, "docker");
    a_life_from_start_to_removal(&engines, "docker");
}

fn a_container_is_as_requested(engines: &Engines, engine: &str) {
    let profile = r#"{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO"}]}"#;
    // Docker's command sends the profile itself, as its daemon expects; podman's service expects a path.
    let filtered = engine == "podman";
    let filter = if filtered { json!({"profile": profile}) } else { json!("default") };
    let changes = [
        ("/security/read_only", json!(true)),
        ("/security/seccomp", filter),
        ("/mounts", json!([{"kind": "tmpfs", "target": "/memory", "size": 1 << 20, "mode": 0o777}])),
        ("/network/hostname", json!("box")),
        ("/network/hosts", json!([["db", "10.0.0.5"]])),
    ];
    let script =
        "echo \"$PLAIN|$ODD|$PATH|${EMPTY-unset}|$FROM_IMAGE\"; id -u; pwd; cat /proc/sys/kernel/hostname
        grep -o 'size=1024k' /proc/mounts; grep db /etc/hosts | grep -o 10.0.0.5
        grep -e CapBnd -e NoNewPrivs /proc/self/status
        touch /memory/file && echo memory; touch /file && echo root; mkdir /memory/directory && echo directory
        echo complaint >&2; exit 7";
    let done = engines.act(&json!({
        "verb": "run", "engine": engine, "config": config("", &changes), "entrypoint": ["/bin/sh", "-c"], "command": [script],
        "user": "ann", "cwd": "/tmp",
        "env": [["PLAIN", "a=b c"], ["ODD", "two\n'lines' # end "], ["PATH", "/bin:/elsewhere"], ["EMPTY", ""]],
    }));
    let expected = format!(
        "a=b c|two\n'lines' # end |/bin:/elsewhere||1\n1000\n/tmp\nbox\nsize=1024k\n10.0.0.5\n\
         CapBnd:\t0000000000000021\nNoNewPrivs:\t1\nmemory\n{}",
        if filtered { "" } else { "directory\n" }
    );
    assert_eq!((done.ok(), done.out.as_str()), (&json!(7), expected.as_str()), "{done:?}");
    assert!(done.err.contains("complaint\n"), "{done:?}");

    let done = engines.run(engine, "true", &[("/image", json!("localhost/none:1"))]);
    assert_eq!(done.error(), "cannot run the container", "{done:?}");
}

fn a_signal_reaches_the_program_and_no_variable_the_list_of_processes(engines: &Engines, engine: &str) {
    let act = json!({
        "verb": "run", "engine": engine, "config": config("", &[]),
        "env": [["PLAIN", "hunter2"], ["ODD", "'hunter2'"], ["LD_LIBRARY_PATH", "/hunter2"]],
        "command": shell("trap 'echo stopped; exit 9' TERM; echo ready; while true; do sleep 0.1; done"),
    });
    let mut begun = Begun::new(engines, &act);
    begun.wait_for("ready");
    let leaks: Vec<String> = command_lines().into_iter().filter(|line| line.contains("hunter2")).collect();
    assert!(leaks.is_empty(), "{leaks:?}");
    // podman shows the first output before it passes signals on: one that comes in between ends podman itself.
    std::thread::sleep(Duration::from_secs(1));
    let pid = Pid::from_raw(i32::try_from(begun.child.id()).unwrap()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    let (result, out) = begun.end();
    assert_eq!((&result["ok"], out.as_str()), (&json!(9), "stopped\n"), "{result}");
}

fn command_lines() -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|entry| fs::read(entry.path().join("cmdline")).ok())
        .map(|line| String::from_utf8_lossy(&line).into_owned())
        .collect()
}

fn a_life_from_start_to_removal(engines: &Engines, engine: &str) {
    let does = |verb: &str, more: &[(&str, Value)]| {
        let mut act = json!({"verb": verb, "engine": engine, "name": "life"});
        for (name, value) in more {
            act[*name] = value.clone();
        }
        engines.act(&act)
    };
    let _ = engines.podman().args(["rm", "--all", "--force", "--time=0"]).output();
    let unknown = |done: &Done| assert_eq!(done.error(), "no container `life`", "{done:?}");
    unknown(&does("stop", &[]));
    let inside = |script: &str| {
        (
            "exec",
            json!({
                "args": ["/bin/sh", "-c", script], "environment": [["WORD", "'x'"]], "user": null, "cwd": "/tmp", "tty": false,
                "stdin": false,
            }),
        )
    };
    // Someone else's container is not ours to see or touch.
    let foreign = engines
        .podman()
        .args(["run", "--detach", "--name=foreign", IMAGE, "/bin/sleep", "1000"])
        .output()
        .unwrap();
    assert!(foreign.status.success(), "{foreign:?}");
    let touched = engines.act(&json!({"verb": "remove", "engine": engine, "name": "foreign", "force": true}));
    assert_eq!(touched.error(), "no container `foreign`");
    assert_eq!(does("list", &[("all", json!(true))]).ok(), &json!([]));

    let script = "echo one; echo two >&2; trap 'exit 4' TERM; while true; do sleep 0.1; done";
    let changes = [("/labels", json!({"team": "a"})), ("/group", json!("web"))];
    let begun = does(
        "run",
        &[("config", config("life", &changes)), ("command", shell(script)), ("detach", json!(true))],
    );
    assert_eq!(begun.ok(), 0, "{begun:?}");
    let id = begun.out.trim().to_owned();

    let listed = does("list", &[]).ok().clone();
    let one = &listed[0];
    assert_eq!((one["id"].as_str(), one["name"].as_str()), (Some(id.as_str()), Some("life")), "{listed}");
    assert_eq!((one["state"].as_str(), one["image"].as_str()), (Some("running"), Some(IMAGE)), "{listed}");
    assert_eq!((one["group"].as_str(), &one["exit_code"]), (Some("web"), &Value::Null), "{listed}");
    assert_eq!(one["command"], format!("/bin/sh -c {script}"), "{listed}");
    assert!(
        one["started"].as_u64() >= one["created"].as_u64()
            && one["created"].as_u64() > Some(1_700_000_000_000)
    );
    assert_eq!(does("inspect", &[]).ok()["Config"]["Labels"]["team"], "a");

    eventually("both lines are in the log", || {
        let log = does("logs", &[]);
        log.ok();
        log.out == "one\n" && log.err.ends_with("two\n")
    });
    let last = does("logs", &[("tail", json!(1)), ("timestamps", json!(true))]);
    let stamped = format!("{}{}", last.out, last.err);
    assert!(stamped.starts_with("20") && stamped.trim_end().ends_with("Z two"), "{last:?}");

    let done = does("exec", &[inside("echo \"$WORD $PWD $FROM_IMAGE\"; exit 6")]);
    assert_eq!((done.ok(), done.out.as_str()), (&json!(6), "'x' /tmp 1\n"), "{done:?}");
    assert_eq!(does("remove", &[]).error(), "container life is running, not stopped");

    does("stop", &[]).ok();
    assert_eq!(does("wait", &[]).ok(), 4);
    assert_eq!(does("list", &[]).ok(), &json!([]));
    let ended = does("list", &[("all", json!(true))]).ok().clone();
    assert_eq!(
        (ended[0]["state"].as_str(), ended[0]["exit_code"].as_i64()),
        (Some("exited"), Some(4)),
        "{ended}"
    );
    assert_eq!(does("exec", &[inside("true")]).error(), "container life is exited, not running");

    does("remove", &[]).ok();
    unknown(&does("inspect", &[]));
    let _ = engines.podman().args(["rm", "--force", "--time=0", "foreign"]).output();
}

#[test]
fn the_engine_that_has_an_image_is_found() {
    let Some(engines) = Engines::set_up() else { return };
    let held = |name: &str| engines.act(&json!({"verb": "holding", "name": name})).ok().clone();
    assert_eq!(held(IMAGE), "podman");
    for name in ["localhost/none:1", "", "./directory", "/a/directory", "--help", "rootfs:/srv"] {
        assert_eq!(held(name), Value::Null, "{name}");
    }
}

#[test]
fn a_missing_engine_is_reported_with_a_hint() {
    let empty = TempDir::new().unwrap();
    let result = empty.path().join("result");
    for (engine, expected) in [
        ("docker", "docker not found in PATH"),
        ("podman", "podman not found in PATH"),
        ("lxc", "unknown engine `lxc`: expected docker or podman"),
    ] {
        let act = json!({"verb": "list", "engine": engine});
        let output = drive(&act, &result).env("PATH", empty.path()).output().unwrap();
        assert!(output.status.success());
        let outcome: Value = serde_json::from_str(&fs::read_to_string(&result).unwrap()).unwrap();
        assert_eq!(outcome["error"], expected);
        assert_eq!(outcome["hint"].is_null(), engine == "lxc", "{outcome}");
    }
}

#[test]
fn an_unavailable_engine_is_reported_with_its_own_message() {
    let fake = TempDir::new().unwrap();
    let program = fake.path().join("docker");
    fs::write(&program, "#!/bin/sh\necho 'Cannot connect to the daemon' >&2\nexit 1\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let result = fake.path().join("result");
    let act = json!({"verb": "list", "engine": "docker"});
    assert!(drive(&act, &result).env("PATH", fake.path()).output().unwrap().status.success());
    let outcome: Value = serde_json::from_str(&fs::read_to_string(&result).unwrap()).unwrap();
    assert_eq!(outcome["error"], "docker is not available: Cannot connect to the daemon");
    assert!(outcome["hint"].as_str().unwrap().contains("systemctl start docker"), "{outcome}");
}

/// A driver of nothing but names, with nodes that are `/dev/null` by number. None where nodes cannot be made.
fn fake_driver(root: &Path) -> Option<()> {
    let put = |path: &str, text: &str| {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let libraries = "usr/lib/x86_64-linux-gnu";
    for name in ["libcuda", "libnvidia-ml", "libnvidia-ptxjitcompiler"] {
        put(&format!("{libraries}/{name}.so.580.159.04"), name);
        symlink(format!("{name}.so.580.159.04"), root.join(libraries).join(format!("{name}.so.1"))).unwrap();
    }
    put("usr/bin/nvidia-smi", "#!/bin/sh\necho smi\n");
    fs::set_permissions(root.join("usr/bin/nvidia-smi"), fs::Permissions::from_mode(0o755)).unwrap();
    put(
        "proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Release\n",
    );
    for minor in 0..2 {
        let information =
            format!("Model: \t\t NVIDIA H200\nGPU UUID: \t GPU-{minor}\nDevice Minor: \t {minor}\n");
        put(&format!("proc/driver/nvidia/gpus/0000:0{minor}:00.0/information"), &information);
    }
    fs::create_dir_all(root.join("dev")).unwrap();
    for name in ["nvidiactl", "nvidia-uvm", "nvidia0", "nvidia1"] {
        let mode = Mode::from_raw_mode(0o666);
        let outcome =
            mknodat(CWD, root.join("dev").join(name), FileType::CharacterDevice, mode, makedev(1, 3));
        if let Err(error) = outcome {
            cudock_testkit::missing(
                "device-nodes",
                format_args!("device nodes cannot be made here: {error}"),
            );
            return None;
        }
    }
    Some(())
}

#[test]
fn a_container_of_podmans_has_the_gpus_it_was_given() {
    let Some(engines) = Engines::set_up() else { return };
    let driver = engines.at("driver");
    if fake_driver(&driver).is_none() {
        return;
    }
    let gpus = |devices: &str| {
        (
            "/gpus",
            json!({"devices": devices, "capabilities": null, "driver_root": driver, "device_root": null}),
        )
    };
    let see = "cd /usr/local/nvidia/lib64; cat libcuda.so.1 libcuda.so libnvidia-ml.so.1; ls /dev | grep nvidia; \
               cat /dev/nvidia1 && echo open; /usr/bin/nvidia-smi; echo $LD_LIBRARY_PATH $NVIDIA_VISIBLE_DEVICES";
    let seen = "libcudalibcudalibnvidia-mlnvidia-uvm\nnvidia1\nnvidiactl\nopen\nsmi\n\
                /opt/own:/usr/local/nvidia/lib64 void\n";
    // Docker's command asks what system its daemon runs on before it takes a device, and podman's service does not say.
    let done = engines.run("podman", see, &[gpus("device=1")]);
    assert_eq!((done.ok(), done.out.as_str()), (&json!(0), seen), "{done:?}");
    let done = engines.run("podman", "true", &[gpus("device=7")]);
    assert_eq!(done.error(), "no GPU `7` here");

    let _ = engines.podman().args(["rm", "--all", "--force", "--time=0"]).output();
    let listed = json!({"verb": "list", "engine": "podman", "all": true});
    let kept = engines.act(&json!({
        "verb": "run", "engine": "podman", "config": config("kept", &[gpus("0,1")]), "command": ["/bin/true"],
    }));
    assert_eq!(kept.ok(), 0, "{kept:?}");
    assert_eq!(engines.act(&listed).ok()[0]["gpus"], "0,1");

    let busybox = engines.at("root").join("bin/busybox");
    engines.import("localhost/picky:1", &busybox, &["ENV NVIDIA_REQUIRE_DRIVER=driver>=999"]).unwrap();
    let done = engines.run("podman", "true", &[gpus("all"), ("/image", json!("localhost/picky:1"))]);
    assert!(done.error().contains("driver>=999"), "{done:?}");
}

#[test]
fn podman_kills_starts_restarts_and_copies_for_us() {
    let Some(engines) = Engines::set_up() else { return };
    let script = "trap 'exit 43' USR1; echo begun >> /tmp/begun; while true; do sleep 0.05; done";
    let changes = [("/name", json!("lively"))];
    let run = json!({
        "verb": "run", "engine": "podman", "config": config("lively", &changes), "command": shell(script), "detach": true,
    });
    engines.act(&run).ok();
    let act = |more: Value| {
        let mut act = json!({"engine": "podman", "name": "lively"});
        act.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        engines.act(&act)
    };
    let copied = engines.at("copied");
    let out = json!({"verb": "copy", "inside": "/tmp/begun", "outside": copied});
    eventually("the container has begun", || act(out.clone()).result.get("ok").is_some());
    assert_eq!(fs::read_to_string(&copied).unwrap(), "begun\n");
    let own = engines.at("own");
    fs::write(&own, "from outside\n").unwrap();
    act(json!({"verb": "copy", "in": true, "inside": "/tmp/own", "outside": own})).ok();
    let exec = json!({"args": ["/bin/cat", "/tmp/own"], "environment": [], "tty": false, "stdin": false});
    let done = act(json!({"verb": "exec", "exec": exec}));
    assert!(done.out.contains("from outside"), "{done:?}");
    act(json!({"verb": "kill", "signal": "usr1"})).ok();
    assert_eq!(act(json!({"verb": "wait"})).ok(), 43);
    assert_eq!(act(json!({"verb": "start"})).ok(), 0);
    act(json!({"verb": "restart"})).ok();
    eventually("it began three times", || {
        act(out.clone()).ok();
        fs::read_to_string(&copied).unwrap().lines().count() == 3
    });
}
