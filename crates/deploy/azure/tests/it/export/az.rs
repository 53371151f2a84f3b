//! Scripts: what they pass to `az` are the requests.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use cudock_azure::{Deployment, ExportFormat, Plane, Step};
use serde_json::Value;

use super::{Comparison, deployments, exported};

/// A value for a secret that needs every kind of quoting, and names it.
const SECRET: &str = "a\"b\\c'd$e\nf ";

/// Stands in for `az`: writes its arguments and its input to files with increasing numbers.
const AZ: &str = r#"#!/usr/bin/env bash
number=$(ls "$AZ_LOG" | wc -l)
log=$(printf '%s/%03d' "$AZ_LOG" "$number")
mkdir "$log"
printf '%s\0' "$@" >"$log/arguments"
[[ " $* " != *" --body @- "* ]] || cat >"$log/input"
# What has ended cannot be canceled.
[[ " $* " != *"/cancel?"* ]] || { echo 'Conflict({"error": {"code": "Conflict"}})' >&2; exit 1; }
"#;

/// One call of `az`.
struct Invocation {
    arguments: Vec<String>,
    input: Option<Value>,
}

impl Invocation {
    fn flag(&self, name: &str) -> Option<&str> {
        let at = self.arguments.iter().position(|argument| argument == name)?;
        self.arguments.get(at + 1).map(String::as_str)
    }

    fn is(&self, command: &[&str]) -> bool {
        self.arguments.iter().map(String::as_str).take(command.len()).eq(command.iter().copied())
    }
}

fn run(directory: &Path, files: &[(String, String)], script: &str) -> Vec<Invocation> {
    let (bin, log) = (directory.join("bin"), directory.join("log"));
    fs::create_dir_all(&bin).unwrap();
    fs::create_dir_all(&log).unwrap();
    fs::write(bin.join("az"), AZ).unwrap();
    fs::set_permissions(bin.join("az"), fs::Permissions::from_mode(0o755)).unwrap();
    for (name, text) in files {
        fs::write(directory.join(name), text).unwrap();
    }
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new("bash");
    command.arg(directory.join(script)).env("PATH", path).env("AZ_LOG", &log);
    let text = fs::read_to_string(directory.join(script)).unwrap();
    for line in text.lines() {
        if let Some((name, _)) = line.strip_prefix(": \"${").and_then(|rest| rest.split_once(":?")) {
            command.env(name, format!("{SECRET}{name}"));
        }
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut names: Vec<_> = fs::read_dir(&log).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    let invocation = |path: &std::path::PathBuf| Invocation {
        arguments: String::from_utf8(fs::read(path.join("arguments")).unwrap())
            .unwrap()
            .split_terminator('\0')
            .map(str::to_owned)
            .collect(),
        input: fs::read_to_string(path.join("input")).ok().map(|text| serde_json::from_str(&text).unwrap()),
    };
    names.iter().map(invocation).collect()
}

/// The URL that a step's request goes to.
fn url(step: &Step) -> String {
    match &step.call.plane {
        Plane::Batch { account, region, .. } => {
            format!("https://{account}.{region}.batch.azure.com{}", step.call.path)
        }
        _ => step.call.path.clone(),
    }
}

fn compare(directory: &Path, deployment: &Deployment, name: &str) {
    let files = exported(deployment, ExportFormat::Az);
    let calls = run(directory, &files, "up.sh");
    let mut requests = calls.iter().filter(|call| !call.is(&["resource", "wait"]));
    let mut comparison = Comparison::new(|value| value.as_str()?.strip_prefix(SECRET).map(str::to_owned));
    for step in &deployment.steps {
        let call = requests.next().unwrap_or_else(|| panic!("{name}: no call for {}", step.id));
        if call.is(&["deployment"]) {
            let body = step.call.body.as_ref().unwrap().redacted();
            let template = fs::read_to_string(directory.join(call.flag("--template-file").unwrap())).unwrap();
            let mut template: Value = serde_json::from_str(&template).unwrap();
            template.as_object_mut().unwrap().remove("metadata");
            assert_eq!(template, body["properties"]["template"], "{name}: {}", step.id);
            assert!(step.call.path.contains(&format!("/deployments/{}?", call.flag("--name").unwrap())));
            assert_eq!(call.flag("--location"), body["location"].as_str());
            continue;
        }
        assert!(call.is(&["rest"]), "{name}: {:?}", call.arguments);
        assert_eq!(call.flag("--method").unwrap().to_uppercase(), step.call.method.as_str());
        assert_eq!(call.flag("--url").unwrap(), url(step), "{name}");
        match (&call.input, &step.call.body) {
            (Some(input), Some(body)) => comparison.assert_same(input, body, &format!("{name}: {}", step.id)),
            (input, body) => assert!(input.is_none() && body.is_none(), "{name}: {}", step.id),
        }
        let audience =
            matches!(step.call.plane, Plane::Batch { .. }).then_some("https://batch.core.windows.net/");
        assert_eq!(call.flag("--resource"), audience, "{name}");
    }
    assert!(requests.next().is_none(), "{name}");
}

#[test]
fn the_script_sends_the_requests() {
    let Some(_) = cudock_testkit::require_program("bash") else { return };
    for (name, deployment) in deployments() {
        let directory = tempfile::tempdir().unwrap();
        compare(directory.path(), &deployment, name);
    }
}

#[test]
fn the_other_script_deletes_in_the_order_of_the_cleanup() {
    let Some(_) = cudock_testkit::require_program("bash") else { return };
    for (name, deployment) in deployments() {
        let directory = tempfile::tempdir().unwrap();
        let files = exported(&deployment, ExportFormat::Az);
        let calls = run(directory.path(), &files, "down.sh");
        let requests: Vec<(String, String)> = calls
            .iter()
            .filter(|call| call.is(&["rest"]))
            .map(|call| {
                (call.flag("--method").unwrap().to_uppercase(), call.flag("--url").unwrap().to_owned())
            })
            .collect();
        let expected: Vec<(String, String)> =
            deployment.cleanup.iter().map(|step| (step.call.method.to_string(), url(step))).collect();
        assert_eq!(requests, expected, "{name}");
    }
}

#[test]
fn a_script_does_not_run_without_its_secrets() {
    let Some(bash) = cudock_testkit::require_program("bash") else { return };
    let (_, deployment) = deployments().into_iter().find(|(name, _)| *name == "aci").unwrap();
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in exported(&deployment, ExportFormat::Az) {
        fs::write(directory.path().join(name), text).unwrap();
    }
    let output =
        Command::new(bash).arg(directory.path().join("up.sh")).env("PATH", "/usr/bin:/bin").output().unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("HF_TOKEN: export it"));
}
