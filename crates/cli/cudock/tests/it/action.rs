//! The script of the GitHub action, run as a runner runs it.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::shown;

#[test]
fn the_action_writes_findings_and_annotations_and_passes_the_exit_code_on() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let programs = Path::new(env!("CARGO_BIN_EXE_cudock")).parent().unwrap();
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("requirements.txt"), "torch==2.5.1\n").unwrap();
    let outputs = dir.path().join("outputs");
    let run_verb = |verb: &str, subject: &str, gpus: &str, extra: &str, for_lint: [&str; 2]| {
        fs::write(&outputs, "").unwrap();
        let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
        let mut command = Command::new(root.join("scripts/action-check"));
        command.current_dir(dir.path()).env("PATH", path);
        command.env("RUNNER_TEMP", dir.path()).env("GITHUB_OUTPUT", &outputs);
        command.envs([
            ("VERB", verb),
            ("SUBJECT", subject),
            ("GPU", gpus),
            ("SIZE", ""),
            ("DRIVER", if verb == "check" { "580" } else { "" }),
        ]);
        let [target, fail_level] = for_lint;
        command.envs([("FOR", target), ("FAIL_LEVEL", fail_level)]);
        command.envs([("EXTRA_ARGS", extra), ("PACKAGE", "cudock"), ("XDG_CONFIG_HOME", "/nonexistent")]);
        (command.output().unwrap(), fs::read_to_string(&outputs).unwrap())
    };
    let run = |subject: &str, gpus: &str, extra: &str| run_verb("check", subject, gpus, extra, ["", ""]);

    let (output, set) = run("requirements.txt", "T4\nB200\n", "");
    assert!(output.status.success(), "{}", shown(&output));
    let sarif = dir.path().join("cudock.sarif");
    assert_eq!(set, format!("exit-code=1\nsarif={}\n", sarif.display()));
    let findings: serde_json::Value = serde_json::from_slice(&fs::read(&sarif).unwrap()).unwrap();
    assert_eq!(findings["runs"][0]["results"][0]["ruleId"], "CD0501", "{findings}");
    assert!(shown(&output).contains("::error file=requirements.txt,line=1"), "{}", shown(&output));

    let (output, set) = run("requirements.txt", "T4", "--start\ncdi");
    assert!(output.status.success() && set.starts_with("exit-code=0\n"), "{}", shown(&output));

    fs::write(dir.path().join("Dockerfile"), "FROM a/b\n").unwrap();
    for (fail_level, expected) in [("", 0), ("warning", 1)] {
        let (output, set) = run_verb("lint", ".", "", "", ["cpu", fail_level]);
        assert!(output.status.success(), "{}", shown(&output));
        assert!(set.starts_with(&format!("exit-code={expected}\n")), "{set}");
        assert!(shown(&output).contains("::warning file=Dockerfile,line=1"), "{}", shown(&output));
    }

    // Neither a missing file nor text that a shell would run is a valid value.
    let (output, set) = run("missing.txt; touch executed", "T4", "");
    assert_eq!(output.status.code(), Some(2), "{}", shown(&output));
    assert!(set.is_empty() && !dir.path().join("executed").exists());
}
