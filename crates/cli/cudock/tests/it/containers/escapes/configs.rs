//! Configurations of images that no honest tool writes.

use serde_json::{Value, json};

use super::canary::Canary;
use super::image;
use super::run;
use crate::containers::machine::{Machine, machine};
use crate::support::shown;

/// Runs an image with this configuration. It ends in one of the ways we document, without harm.
fn attack(
    machine: &Machine,
    canary: &Canary,
    what: &str,
    config: &Value,
    command: &[&str],
) -> Option<String> {
    let name = image::write(machine, "config", &[], config);
    let output = run::image(machine, what, &[], &name, command);
    canary.is_safe(what, &output);
    run::ran(what, &output).then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn odd_variables_neither_end_us_nor_make_others() {
    let Some(machine) = machine() else { return };
    let canary = Canary::new();
    let script = "tr '\\0' '|' < /proc/self/environ";
    for (what, environment) in [
        ("a name with a line end", json!(["A\nB=1", "GOOD=1"])),
        ("a name with a NUL", json!(["A\u{0}LD_PRELOAD=/evil.so", "GOOD=1"])),
        ("a value with a NUL", json!(["A=1\u{0}LD_PRELOAD=/evil.so", "GOOD=1"])),
        ("no name", json!(["=1", "GOOD=1"])),
        ("no value", json!(["ALONE", "GOOD=1"])),
        ("the same name often", json!(vec!["GOOD=1"; 10_000])),
        ("many names", json!((0..20_000).map(|number| format!("N{number}=1")).collect::<Vec<_>>())),
        ("a value of a megabyte", json!([format!("LONG={}", "x".repeat(1 << 20)), "GOOD=1"])),
        ("no list", json!("GOOD=1")),
        ("a list of numbers", json!([1, 2])),
    ] {
        let config = json!({"Env": environment});
        if let Some(stdout) = attack(&machine, &canary, what, &config, &["/bin/sh", "-c", script]) {
            assert!(!stdout.contains("|LD_PRELOAD"), "{what}: a value became a variable: {stdout}");
        }
    }
}

#[test]
fn variables_of_an_image_are_not_in_force_outside() {
    // CVE-2025-23266: the image's LD_PRELOAD was in force in a hook on this machine.
    let Some(machine) = machine() else { return };
    let canary = Canary::new();
    let config = json!({"Env": [
        "LD_PRELOAD=/evil.so", "LD_LIBRARY_PATH=/evil", "LD_AUDIT=/evil.so", "PATH=/bin", "CUDOCK_DATA=/evil",
        format!("TMPDIR={}", canary.path()), format!("HOME={}", canary.path()), "CUDOCK_CGROUP=/evil",
    ]});
    let stdout = attack(&machine, &canary, "loader variables", &config, &["/bin/sh", "-c", "echo ran"]);
    assert_eq!(stdout.as_deref(), Some("ran\n"));
}

#[test]
fn odd_users_are_root_or_nobody_known() {
    let Some(machine) = machine() else { return };
    let canary = Canary::new();
    for user in [
        "root\n",
        "0\n",
        " 0",
        "-1",
        "4294967295",
        "4294967296",
        "99999999999999999999",
        "../etc",
        "\u{0}",
        "root:\n",
        ":",
        "::",
        "0:0:0",
        "ann\nroot",
    ] {
        let what = format!("user {user:?}");
        let script = "grep -E '^(Uid|Gid):' /proc/self/status";
        let stdout = attack(&machine, &canary, &what, &json!({"User": user}), &["/bin/sh", "-c", script]);
        if let Some(stdout) = stdout.filter(|_| !user.trim_start_matches([':', '0']).is_empty()) {
            assert!(!stdout.contains("Uid:\t0\t"), "{what} became root: {stdout}");
        }
    }
    let long = "x".repeat(1 << 20);
    attack(&machine, &canary, "a user of a megabyte", &json!({"User": long}), &["true"]);
}

#[test]
fn odd_working_directories_are_inside() {
    let Some(machine) = machine() else { return };
    let canary = Canary::new();
    for directory in [
        format!("/../../../../..{}", canary.path()),
        format!("/bin/../../../..{}/new", canary.path()),
        "relative".to_owned(),
        "..".to_owned(),
        "/bin/sh".to_owned(),
        "/a\u{0}b".to_owned(),
        "/a\nb".to_owned(),
        format!("/{}", "d/".repeat(3000)),
        format!("/{}", "x".repeat(300)),
    ] {
        let what = format!("WORKDIR {directory:.60?}");
        attack(
            &machine,
            &canary,
            &what,
            &json!({"WorkingDir": directory}),
            &["/bin/sh", "-c", &canary.raid()],
        );
    }
}

#[test]
fn gigantic_commands_are_refused_or_run() {
    let Some(machine) = machine() else { return };
    let canary = Canary::new();
    let long = "x".repeat(1 << 20);
    attack(&machine, &canary, "an entry point of a megabyte", &json!({"Entrypoint": [long]}), &[]);
    attack(&machine, &canary, "a word of a megabyte", &json!({"Entrypoint": ["/bin/true", long]}), &[]);
    attack(
        &machine,
        &canary,
        "a hundred thousand arguments",
        &json!({"Entrypoint": ["/bin/true"], "Cmd": vec!["x"; 100_000]}),
        &[],
    );
    attack(&machine, &canary, "an empty word", &json!({"Entrypoint": [""]}), &[]);
    attack(&machine, &canary, "a NUL", &json!({"Entrypoint": ["/bin/true\u{0}/bin/false"]}), &[]);
    attack(&machine, &canary, "no list", &json!({"Entrypoint": "/bin/true"}), &[]);
    attack(&machine, &canary, "nested lists", &json!({"Cmd": [["/bin/true"]]}), &[]);
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    machine.write("deep/oci-layout", r#"{"imageLayoutVersion":"1.0.0"}"#);
    machine.write("deep/index.json", deep);
    let output = run::image(&machine, "nested for ever", &[], "oci:deep", &["true"]);
    assert!(!run::ran("nested for ever", &output), "{}", shown(&output));
}

#[test]
fn signals_volumes_and_ports_of_an_image_are_text_and_no_more() {
    let Some(machine) = machine() else { return };
    let canary = Canary::new();
    for (what, config) in [
        ("a signal that is none", json!({"StopSignal": "SIGEVIL"})),
        ("a signal with a line end", json!({"StopSignal": "9\n"})),
        (
            "volumes on the machine's files",
            json!({"Volumes": {"/proc": {}, "/": {}, canary.path(): {}, "../..": {}}}),
        ),
        ("ports that are none", json!({"ExposedPorts": {"../../etc": {}, "99999/tcp": {}, "-1": {}}})),
        ("labels with line ends", json!({"Labels": {"a\nb": "c\u{0}d"}})),
        (
            "a health check",
            json!({"Healthcheck": {"Test": ["CMD-SHELL", format!("touch {}/new", canary.path())]}}),
        ),
        (
            "hooks",
            json!({"Hooks": {"prestart": [{"path": "/bin/touch", "args": [format!("{}/new", canary.path())]}]}}),
        ),
    ] {
        attack(&machine, &canary, what, &config, &["/bin/sh", "-c", &canary.raid()]);
    }
}
