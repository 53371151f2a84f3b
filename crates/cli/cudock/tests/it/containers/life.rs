//! `kill`, `start`, `restart`, `cp`, `top`, `stats`, named volumes, and lines of a log by their time.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

use serde_json::json;

use super::images::Image;
use super::machine::{installed, machine, run_arguments, until};
use crate::support::{self, code, shown};

const LISTENS: &str =
    "trap 'exit 41' TERM; trap 'echo again' HUP; trap 'exit 43' 37; echo ready; while :; do sleep 0.05; done";

#[test]
fn exec_has_the_containers_variables_whatever_its_first_process_made_of_its_own() {
    let Some(machine) = machine() else { return };
    Image::of(&machine).variable("FROM_IMAGE", "image").variable("PATH", "/bin").write("app");
    // Programs that change their title overwrite this memory; here another program with other variables takes over.
    let script =
        "echo ready; exec env -i PATH=/nowhere FROM_IMAGE=wrong sh -c 'while :; do /bin/sleep 1; done'";
    let arguments =
        ["run", "-d", "--network", "none", "--name", "titled", "-e", "GIVEN=given value", "-u", "ann"];
    machine.good(
        &[&arguments[..], &["-w", "/tmp", "--group-add", "105", "oci:app", "sh", "-c", script]].concat(),
    );
    machine.until_logged("titled", "ready");
    until("the memory is overwritten", || {
        let pid = machine.status("titled")["pid"].as_u64().unwrap();
        let environ = fs::read(format!("/proc/{pid}/environ")).unwrap();
        String::from_utf8_lossy(&environ).contains("FROM_IMAGE=wrong")
    });
    let stdout = machine.good(&[
        "exec",
        "titled",
        "sh",
        "-c",
        "echo $PATH $FROM_IMAGE $GIVEN $HOME $(id -u) $(pwd); id -G",
    ]);
    assert_eq!(stdout, "/bin image given value /home/ann 1000 /tmp\n100 44 105\n");
    let stdout = machine.good(&["exec", "-u", "root", "titled", "sh", "-c", "echo $HOME $GIVEN"]);
    assert_eq!(stdout, "/root given value\n");
    // The values are in no file that others can see.
    let directory = machine.inspect("titled")["directory"].as_str().unwrap().to_owned();
    let found = Command::new("grep").args(["-r", "given value", &directory]).output().unwrap();
    assert!(found.stdout.is_empty(), "{}", String::from_utf8_lossy(&found.stdout));
}

#[test]
fn kill_sends_any_signal() {
    let Some(machine) = machine() else { return };
    machine.start("listener", &["--restart", "always"], LISTENS);
    machine.until_logged("listener", "ready");
    assert_eq!(machine.good(&["kill", "-s", "hup", "listener"]), "listener\n");
    machine.until_logged("listener", "again");
    assert_eq!(machine.status("listener")["state"], "running");
    machine.good(&["kill", "listener"]);
    machine.good(&["wait", "listener"]);
    let status = machine.status("listener");
    assert_eq!((&status["exit_code"], &status["restarts"]), (&json!(137), &json!(0)), "{status:#}");
    let message = machine.bad(2, &["kill", "listener"]);
    assert!(message.contains("container listener is exited, not running"), "{message}");
    machine.start("real-time", &[], LISTENS);
    machine.until_logged("real-time", "ready");
    machine.good(&["kill", "--signal", "SIGRTMIN+3", "real-time"]);
    assert_eq!(machine.good(&["wait", "real-time"]), "43\n");
    assert!(machine.bad(2, &["kill", "-s", "NOPE", "real-time"]).contains("unknown signal `NOPE`"));
}

#[test]
fn a_container_is_started_again_with_its_files_and_logs() {
    let Some(machine) = machine() else { return };
    machine.start("counter", &[], "echo x >> /count; wc -l < /count");
    machine.good(&["wait", "counter"]);
    assert_eq!(machine.good(&["start", "counter"]), "counter\n");
    machine.good(&["wait", "counter"]);
    let output = machine.call(&["start", "--attach", "counter"]);
    assert_eq!((code(&output), output.stdout.as_slice()), (0, &b"3\n"[..]), "{}", shown(&output));
    assert_eq!(machine.logs("counter"), "1\n2\n3\n");
    // One that was stopped can be started again, and stopped again.
    machine.start("service", &["--restart", "always"], LISTENS);
    for _ in 0..2 {
        until("it runs", || machine.status("service")["state"] == "running");
        machine.good(&["stop", "--time", "0", "service"]);
        machine.good(&["start", "service"]);
    }
    machine.good(&["start", "service"]);
    assert_eq!(machine.status("service")["state"], "running", "starting one that runs changes nothing");
}

#[test]
fn restart_keeps_the_variables_that_no_file_has_and_start_asks_for_them() {
    let Some(machine) = machine() else { return };
    let script = "echo token is $TOKEN; trap 'exit 0' TERM; while :; do sleep 0.05; done";
    machine.start("secretive", &["-e", "TOKEN=t0p"], script);
    machine.until_logged("secretive", "token is t0p");
    let before = machine.status("secretive")["pid"].clone();
    assert_eq!(machine.good(&["restart", "secretive"]), "secretive\n");
    assert_ne!(machine.status("secretive")["pid"], before);
    until("its log has it a second time", || machine.logs("secretive").matches("token is t0p").count() == 2);
    machine.good(&["stop", "secretive"]);
    for verb in ["start", "restart"] {
        let message = machine.bad(2, &[verb, "secretive"]);
        assert!(
            message.contains("TOKEN") && message.contains("cudock start -e TOKEN=… secretive"),
            "{verb}: {message}"
        );
    }
    machine.good(&["start", "-e", "TOKEN=other", "secretive"]);
    machine.until_logged("secretive", "token is other");
}

#[test]
fn files_are_copied_both_ways_as_docker_copies_them() {
    let Some(machine) = machine() else { return };
    machine.start("box", &[], "mkdir -p /out/sub; echo one > /out/one; echo two > /out/sub/two; chmod 4755 /out/one; ln -s one /out/link; mkfifo /out/pipe; echo ready; sleep 1000");
    machine.until_logged("box", "ready");
    let at = |name: &str| machine.path().join(name);
    let read = |name: &str| fs::read_to_string(at(name)).unwrap();
    machine.good(&["cp", "box:/out", "copied"]);
    assert_eq!((read("copied/one"), read("copied/sub/two")), ("one\n".into(), "two\n".into()));
    assert_eq!(fs::read_link(at("copied/link")).unwrap().to_str(), Some("one"));
    assert_eq!(
        fs::metadata(at("copied/one")).unwrap().permissions().mode() & 0o7777,
        0o755,
        "no set-user-ID bit comes out"
    );
    assert!(!at("copied/pipe").exists());
    machine.good(&["cp", "box:/out", "copied"]);
    assert_eq!(read("copied/out/one"), "one\n", "into a directory that exists");
    machine.good(&["cp", "box:/out/.", "copied"]);
    machine.good(&["cp", "box:/out/one", "renamed"]);
    assert_eq!(read("renamed"), "one\n");
    machine.good(&["cp", "box:/out/link", "link"]);
    assert!(fs::symlink_metadata(at("link")).unwrap().is_symlink());
    machine.good(&["cp", "-L", "box:/out/link", "followed"]);
    assert_eq!(read("followed"), "one\n");
    // In.
    machine.write("here/a/b", "deep\n");
    machine.good(&["cp", "here", "box:/in"]);
    assert_eq!(machine.good(&["exec", "box", "cat", "/in/a/b"]), "deep\n");
    machine.good(&["cp", "renamed", "box:/tmp/"]);
    assert_eq!(
        machine.good(&["exec", "box", "sh", "-c", "cat /tmp/renamed; stat -c %u /tmp/renamed"]),
        "one\n0\n"
    );
    for wrong in [
        ["box:/no-such", "x"],
        ["box:/out/one", "no-such-dir/"],
        ["no-such", "box:/tmp"],
        ["x", "y"],
        ["box:/a", "box:/b"],
        ["box:/out", "renamed"],
        ["box:/out/one", "-"],
    ] {
        let output = machine.call(&["cp", wrong[0], wrong[1]]);
        assert!(matches!(code(&output), 2 | 3), "{wrong:?}: {}", shown(&output));
    }
    // Of one that is stopped, and nothing is left mounted.
    machine.good(&["stop", "--time", "0", "box"]);
    machine.good(&["cp", "box:/out/sub", "later"]);
    assert_eq!(read("later/two"), "two\n");
    machine.good(&["cp", "renamed", "box:/out/back"]);
    assert_eq!(machine.status("box")["state"], "exited");
    machine.good(&["start", "box"]);
    assert_eq!(machine.good(&["exec", "box", "cat", "/out/back"]), "one\n");
}

#[test]
fn cp_never_follows_the_containers_links_out_of_it() {
    let Some(machine) = machine() else { return };
    let secret = machine.write("secret/key", "of the host\n");
    let path = secret.display().to_string();
    let directory = secret.parent().unwrap().display().to_string();
    let up = "../".repeat(40);
    let script = format!(
        "mkdir /t; ln -s {path} /t/absolute; ln -s {up}{path} /t/relative; ln -s {directory} /t/dir; ln -s /proc/1/root{path} /t/magic; \
         ln -s /proc/self/root /t/self; echo fake > /etc/fake; echo ready; sleep 1000"
    );
    machine.start("hostile", &[], &script);
    machine.until_logged("hostile", "ready");
    for inside in [
        "/t/absolute",
        "/t/relative",
        "/t/dir/key",
        "/t/magic",
        &format!("/t/self{path}"),
        &format!("{up}{path}"),
    ] {
        for options in [&["-L"][..], &[]] {
            let output = machine.call(&[&["cp"], options, &[&format!("hostile:{inside}"), "taken"]].concat());
            let taken = machine.path().join("taken");
            // A link itself may be copied unchanged; its target may not.
            let is_link = fs::symlink_metadata(&taken).is_ok_and(|about| about.is_symlink());
            if is_link {
                assert!(options.is_empty(), "{inside}: {}", shown(&output));
            } else {
                let text = fs::read_to_string(&taken).unwrap_or_default();
                assert!(!text.contains("of the host"), "{inside} {options:?}: {}", shown(&output));
            }
            let _ = fs::remove_file(&taken);
        }
    }
    // Into the container, nothing of the host is written.
    machine.write("new", "from outside\n");
    for inside in ["/t/absolute", "/t/dir", "/t/dir/key", "/t/relative"] {
        machine.call(&["cp", "new", &format!("hostile:{inside}")]);
        assert_eq!(fs::read_to_string(&secret).unwrap(), "of the host\n", "{inside}");
        assert_eq!(fs::read_dir(secret.parent().unwrap()).unwrap().count(), 1, "{inside}");
    }
    // A link that one copy brought is not written through by the next.
    machine.good(&["exec", "hostile", "sh", "-c", &format!("mkdir /twice; ln -s {directory} /twice/x")]);
    machine.good(&["cp", "hostile:/twice/.", "twice"]);
    machine.good(&[
        "exec",
        "hostile",
        "sh",
        "-c",
        "rm /twice/x; mkdir /twice/x; echo overwritten > /twice/x/key",
    ]);
    let output = machine.call(&["cp", "hostile:/twice/.", "twice"]);
    assert_eq!(fs::read_to_string(&secret).unwrap(), "of the host\n", "{}", shown(&output));
    assert_ne!(code(&output), 0, "{}", shown(&output));
}

#[test]
fn processes_are_listed_with_both_their_numbers() {
    let Some(machine) = machine() else { return };
    machine.start("busy", &["-u", "ann"], "echo ready; exec sleep 1234");
    machine.until_logged("busy", "ready");
    until("it is asleep", || machine.good(&["top", "busy"]).contains("sleep 1234"));
    let listed = support::json(&machine.call(&["top", "busy", "--format", "json"]));
    let one = &listed["processes"][0];
    assert_eq!(
        (&one["pid_inside"], &one["uid"], &one["command"]),
        (&json!(1), &json!(1000), &json!("sleep 1234"))
    );
    assert_eq!(one["pid"], machine.status("busy")["pid"]);
    machine.good(&["stop", "--time", "0", "busy"]);
    assert!(machine.bad(2, &["top", "busy"]).contains("container busy is exited, not running"));
}

#[test]
fn stats_show_what_a_container_uses() {
    let Some(machine) = machine() else { return };
    machine.start("spinner", &["-m", "64m", "--cpus", "0.5"], "while :; do :; done");
    machine.start("sleeper", &[], "sleep 1000");
    let report = support::json(&machine.call(&["stats", "--no-stream", "--format", "json"]));
    assert_eq!(report["schema"], 1);
    let all = report["containers"].as_array().unwrap();
    let of = |name: &str| all.iter().find(|one| one["name"] == name).unwrap();
    let (spinner, sleeper) = (of("spinner"), of("sleeper"));
    assert!(
        spinner["cpu_percent"].as_f64().unwrap() > sleeper["cpu_percent"].as_f64().unwrap(),
        "{report:#}"
    );
    assert_eq!(spinner["memory_limit_bytes"], 64 << 20, "{report:#}");
    assert!(spinner["memory_bytes"].as_u64().unwrap() < 64 << 20);
    assert_eq!(
        (&sleeper["pids"], &sleeper["gpu_percent"], &sleeper["gpus"]),
        (&json!(1), &json!(null), &json!([]))
    );
    let text = machine.good(&["stats", "--no-stream", "sleeper"]);
    assert!(text.starts_with("NAME") && text.contains("GPU MEMORY") && text.lines().count() == 2, "{text}");
    machine.good(&["stop", "--time", "0", "sleeper"]);
    assert!(machine.bad(2, &["stats", "--no-stream", "sleeper"]).contains("not running"));
    let left = support::json(&machine.call(&["stats", "--no-stream", "--format", "json"]));
    assert_eq!(left["containers"].as_array().unwrap().len(), 1);
}

#[test]
fn a_named_volume_outlives_its_containers_and_begins_with_what_the_image_has() {
    let Some(machine) = machine() else { return };
    Image::of(&machine)
        .layer(&[("srv/data/seed", "from the image\n"), ("srv/data/sub/x", "x\n")])
        .write("app");
    let run = |volume: &str, script: &str| {
        machine.good(&["run", "--rm", "--network", "none", "-v", volume, "oci:app", "sh", "-c", script])
    };
    assert_eq!(run("kept:/srv/data", "cat /srv/data/seed; echo more > /srv/data/more"), "from the image\n");
    assert_eq!(
        run("kept:/elsewhere:ro", "cat /elsewhere/more; ls /elsewhere; touch /elsewhere/x || true"),
        "more\nmore\nseed\nsub\n"
    );
    assert_eq!(run("empty:/srv/data:nocopy", "ls /srv/data"), "");
    machine.good(&[
        "run",
        "-d",
        "--network",
        "none",
        "--name",
        "user",
        "-v",
        "kept:/x",
        "oci:app",
        "sleep",
        "1000",
    ]);
    let volumes = support::json(&machine.call(&["volume", "ls", "--format", "json"]))["volumes"].clone();
    assert_eq!(
        (&volumes[0]["name"], &volumes[1]["name"], &volumes[1]["used_by"]),
        (&json!("empty"), &json!("kept"), &json!(["user"]))
    );
    let message = machine.bad(2, &["volume", "rm", "kept"]);
    assert!(message.contains("volume kept is used by container user"), "{message}");
    let message = machine.bad(2, &["volume", "prune"]);
    assert!(message.contains("would remove empty") && message.contains("--all"), "{message}");
    assert_eq!(machine.good(&["volume", "prune", "--all"]), "empty\n");
    machine.good(&["rm", "-f", "user"]);
    assert_eq!(machine.good(&["volume", "ls", "-q"]), "kept\n", "removing a container leaves its volumes");
    assert_eq!(machine.good(&["volume", "rm", "kept"]), "kept\n");
    assert!(machine.bad(2, &["volume", "rm", "kept"]).contains("no volume `kept`"));
    for wrong in ["../x", "", "a/b", ".hidden"] {
        machine.bad(2, &["volume", "create", wrong]);
    }
    assert_eq!(machine.good(&["volume", "create", "made"]), "made\n");
    let made = support::json(&machine.call(&["volume", "inspect", "made"]))["volumes"][0].clone();
    assert_eq!(fs::metadata(made["path"].as_str().unwrap()).unwrap().uid(), 0);
    machine.good(&["volume", "rm", "made"]);
}

#[test]
fn lines_of_a_log_can_be_selected_by_their_time() {
    let Some(machine) = machine() else { return };
    machine.start("talker", &[], "echo early; sleep 1.2; echo middle; sleep 1.2; echo late");
    machine.good(&["wait", "talker"]);
    let stdout = machine.good(&["logs", "-t", "talker"]);
    let times: Vec<&str> = stdout.lines().map(|line| line.split(' ').next().unwrap()).collect();
    let (middle, late) = (times[1], times[2]);
    assert_eq!(machine.good(&["logs", "--since", middle, "talker"]), "middle\nlate\n");
    assert_eq!(machine.good(&["logs", "--until", late, "talker"]), "early\nmiddle\n");
    assert_eq!(machine.good(&["logs", "--since", middle, "--until", late, "talker"]), "middle\n");
    assert_eq!(machine.good(&["logs", "--since", middle, "-n", "1", "talker"]), "late\n");
    assert_eq!(machine.good(&["logs", "--since", "1h", "--tail", "all", "talker"]), "early\nmiddle\nlate\n");
    assert_eq!(machine.good(&["logs", "--until", "1h", "talker"]), "");
    assert!(
        machine
            .bad(2, &["logs", "--since", "yesterday", "talker"])
            .contains("--since yesterday is not a time")
    );
    let one = run_arguments(&["--rm"], &["true"]);
    machine.good(&one);
}

#[test]
fn a_root_made_for_a_compiled_program_has_the_libraries_it_needs() {
    let Some(machine) = machine() else { return };
    if !installed("g++") || !installed("python3") {
        return;
    }
    let source =
        machine.write("plain.cc", "#include <iostream>\nint main() { std::cout << \"ran\" << std::endl; }\n");
    let program = machine.path().join("plain");
    let compiled = Command::new("g++").arg("-o").arg(&program).arg(source).output().unwrap();
    assert!(compiled.status.success(), "{}", shown(&compiled));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/group/make-root.sh");
    let root = machine.path().join("made");
    let made = Command::new("sh").arg(script).arg(&root).arg(&program).output().unwrap();
    assert!(made.status.success(), "{}", shown(&made));
    let arguments =
        ["run", "--rm", "--network", "none", "-v", "./plain:/plain:ro", "--rootfs", "made", "--", "/plain"];
    assert_eq!(machine.good(&arguments), "ran\n");
}
