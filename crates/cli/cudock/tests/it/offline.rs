//! Verbs that need no network work without one, and give the same answers.

use std::path::Path;
use std::process::Command;

use crate::support::{cudock, shown};

const CALLS: &[&[&str]] = &[
    &["check", "requirements.txt", "--gpu", "B200", "--driver", "580"],
    &["check", "Dockerfile", "--all-sizes"],
    &["cdi", "check"],
    &["completion", "zsh"],
    &["doctor", "--root", "empty"],
    &["explain", "CD0501"],
    &["explain", "--text", "no kernel image is available for execution on the device"],
    &["facts"],
    &["facts", "size", "--gpu", "A100"],
    &["groups"],
    &["images"],
    &["init", "--example", "digits", "copy"],
    &["inspect", "library.so"],
    &["man", "plan"],
    &["migrate", "deploy.sh"],
    &["plan", "--gpu", "T4", "--duration", "1h"],
    &["plan", "--model", "digits.onnx", "--rate", "5"],
    &["prices"],
    &["ps"],
    &["runtime", "list"],
    &["slim", "library.so", "--for", "T4", "--dry-run"],
    &["stats", "--no-stream"],
    &["volume", "ls"],
];

#[test]
fn offline_verbs_work_in_a_namespace_without_a_route() {
    // Every test machine with containers has it: it is a part of util-linux.
    if cudock_testkit::require_program("unshare").is_none() {
        return;
    }
    let isolated = ["unshare", "--net", "--map-root-user"];
    let probe = Command::new(isolated[0]).args(&isolated[1..]).arg("true").status().unwrap();
    if !probe.success() {
        cudock_testkit::missing("namespaces", "cannot create a user and a network namespace");
        return;
    }
    for call in CALLS {
        let [online, offline] = [&[][..], &isolated].map(|prefix| {
            let dir = tempfile::tempdir().unwrap();
            write_inputs(dir.path());
            let plain = cudock(call);
            let prefix: Vec<&std::ffi::OsStr> = prefix.iter().map(std::ffi::OsStr::new).collect();
            let argv = [prefix, vec![plain.get_program()], plain.get_args().collect()].concat();
            let mut command = Command::new(argv[0]);
            command.args(&argv[1..]).current_dir(dir.path()).env("HOME", dir.path());
            command.env("CUDOCK_DATA", dir.path().join("data")).env("CUDOCK_CACHE", dir.path().join("cache"));
            for (name, value) in plain.get_envs() {
                match value {
                    Some(value) => command.env(name, value),
                    None => command.env_remove(name),
                };
            }
            let output = command.output().unwrap();
            shown(&output).replace(dir.path().to_str().unwrap(), "DIR")
        });
        assert_eq!(online, offline, "{call:?}");
        let answered = ["exit code 0\n", "exit code 1\n"].iter().any(|code| online.starts_with(code));
        assert!(answered, "{call:?}: {online}");
    }
}

fn write_inputs(dir: &Path) {
    let write = |name: &str, content: &[u8]| std::fs::write(dir.join(name), content).unwrap();
    write("requirements.txt", b"torch==2.5.1\n");
    write("Dockerfile", b"FROM nvidia/cuda:12.4.1-runtime-ubuntu22.04\nRUN pip install torch==2.5.1\n");
    write("deploy.sh", b"az vm create --size Standard_NC6s_v3\n");
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples");
    std::fs::copy(examples.join("digits/model.onnx"), dir.join("digits.onnx")).unwrap();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../gpu/fatbin/tests/fixtures");
    std::fs::copy(fixtures.join("library.so"), dir.join("library.so")).unwrap();
    std::fs::create_dir(dir.join("empty")).unwrap();
}
