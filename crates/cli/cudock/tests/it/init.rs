//! `cudock init`.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::support::{code, cudock, json, run, shown};

#[test]
fn an_example_is_written_once_and_can_be_planned_and_served() {
    let dir = tempfile::tempdir().unwrap();
    let init = |args: &[&str]| cudock(&[&["init"], args].concat()).current_dir(dir.path()).output().unwrap();
    let output = init(&["--example", "digits"]);
    assert_eq!(code(&output), 0, "{}", shown(&output));
    assert!(dir.path().join("digits/model.onnx").is_file());
    let plan = cudock(&["plan", "digits", "--rate", "5"]).current_dir(dir.path()).output().unwrap();
    assert_eq!(code(&plan), 0, "{}", shown(&plan));

    let again = init(&["--example", "digits"]);
    assert_eq!(code(&again), 3, "{}", shown(&again));
    assert!(shown(&again).contains("cannot create digits/README.md"), "{}", shown(&again));
    let unknown = init(&["--example", "digit"]);
    assert_eq!(code(&unknown), 2);
    assert!(shown(&unknown).contains("did you mean `digits`"), "{}", shown(&unknown));
}

fn example(name: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples").join(name);
    for entry in std::fs::read_dir(source).unwrap().map(Result::unwrap).filter(|entry| entry.path().is_file())
    {
        std::fs::copy(entry.path(), dir.path().join(entry.file_name())).unwrap();
    }
    dir
}

fn files_of(dir: &std::path::Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_project_gets_files_that_check_accepts() {
    let dir = example("torch-pip");
    let path = dir.path().to_str().unwrap();
    let output = run(&["init", path, "--for", "T4", "--driver", "R580"]);
    assert_eq!(code(&output), 0, "{}", shown(&output));
    let written = [".dockerignore", "Dockerfile", "cudock.toml", "main.py", "requirements.txt"];
    assert_eq!(files_of(dir.path()), written);
    let check = run(&["check", path, "--gpu", "T4", "--driver", "R580"]);
    assert_eq!(code(&check), 0, "{}", shown(&check));
    let name = dir.path().file_name().unwrap().to_str().unwrap().to_ascii_lowercase();
    insta::assert_snapshot!(shown(&output).replace(path, "DIR").replace(&name, "NAME"));
}

#[test]
fn existing_files_are_replaced_only_with_force() {
    let dir = example("torch-pip");
    let path = dir.path().to_str().unwrap();
    std::fs::write(dir.path().join("Dockerfile"), "FROM scratch\n").unwrap();
    let refused = run(&["init", path, "--for", "cpu"]);
    assert_eq!(code(&refused), 2, "{}", shown(&refused));
    assert!(shown(&refused).contains("Dockerfile already exists"), "{}", shown(&refused));
    assert!(shown(&refused).contains("hint: pass --force"), "{}", shown(&refused));
    assert_eq!(files_of(dir.path()), ["Dockerfile", "main.py", "requirements.txt"]);

    let replaced = run(&["init", path, "--for", "cpu", "--force"]);
    assert_eq!(code(&replaced), 0, "{}", shown(&replaced));
    let text = std::fs::read_to_string(dir.path().join("Dockerfile")).unwrap();
    assert!(text.contains("https://download.pytorch.org/whl/cpu"), "{text}");
}

#[test]
fn print_writes_nothing_and_json_has_the_same_files() {
    let dir = example("onnx-model");
    let path = dir.path().to_str().unwrap();
    let printed = run(&["init", path, "--for", "T4", "--driver", "580", "--print"]);
    assert_eq!(code(&printed), 0, "{}", shown(&printed));
    assert_eq!(files_of(dir.path()), ["model.onnx"]);
    let report = json(&run(&["init", path, "--for", "T4", "--driver", "580", "--print", "--format", "json"]));
    assert_eq!(report["written"], false);
    assert_eq!(report["kind"], "onnx");
    let text = String::from_utf8(printed.stdout).unwrap();
    for file in report["files"].as_array().unwrap() {
        assert!(text.contains(file["text"].as_str().unwrap()), "{file}");
    }
    assert_eq!(files_of(dir.path()), ["model.onnx"]);
}

#[test]
fn what_cannot_be_decided_is_an_error_with_the_flag_that_decides_it() {
    let dir = example("torch-pip");
    let path = dir.path().to_str().unwrap();
    std::fs::write(dir.path().join("model.onnx"), "").unwrap();
    let several = run(&["init", path, "--for", "T4"]);
    assert_eq!(code(&several), 2, "{}", shown(&several));
    let expected = "several kinds of project found: torch by pip (requirements.txt), onnx (model.onnx)";
    assert!(shown(&several).contains(expected), "{}", shown(&several));
    assert!(shown(&several).contains("--kind"), "{}", shown(&several));
    let chosen = run(&["init", path, "--for", "T4", "--kind", "onnx", "--print"]);
    assert_eq!(code(&chosen), 0, "{}", shown(&chosen));

    let empty = tempfile::tempdir().unwrap();
    let none = run(&["init", empty.path().to_str().unwrap(), "--for", "T4"]);
    assert_eq!(code(&none), 2);
    assert!(shown(&none).contains("no project of a supported kind found"), "{}", shown(&none));
}

#[test]
fn the_kind_is_prompted_for_on_a_terminal() {
    let dir = example("torch-pip");
    std::fs::write(dir.path().join("model.onnx"), "").unwrap();
    let answered = |answer: &str| {
        let command =
            format!("{} init {} --for cpu --print", env!("CARGO_BIN_EXE_cudock"), dir.path().display());
        let mut terminal = Command::new("script");
        terminal.args(["--quiet", "--return", "--command", &command, "/dev/null"]).env("NO_COLOR", "1");
        terminal.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = terminal.spawn().unwrap();
        child.stdin.take().unwrap().write_all(answer.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    };
    let second = answered("2\n");
    assert_eq!(code(&second), 0, "{}", shown(&second));
    assert!(shown(&second).contains("2  onnx (model.onnx)"), "{}", shown(&second));
    assert!(shown(&second).contains("\"cudock\", \"serve\""), "{}", shown(&second));
    let first = answered("\n");
    assert!(shown(&first).contains("/whl/cpu torch=="), "{}", shown(&first));
    let neither = answered("3\n");
    assert_eq!(code(&neither), 2, "{}", shown(&neither));
    assert!(shown(&neither).contains("`3` is not one of them"), "{}", shown(&neither));
}
