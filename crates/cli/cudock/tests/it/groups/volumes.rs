//! Volumes, and secrets that are not stored anywhere.

use std::fs;
use std::path::Path;

use super::machine::{container, group, machine, until};
use crate::support::{code, shown};

const SECRET: &str = "wWqT7-nobody-may-see-this";

#[test]
fn containers_share_an_empty_directory_and_cannot_write_to_a_read_only_one() {
    let Some(machine) = machine() else { return };
    let writes = "      volumeMounts: [{name: v, mountPath: /v}]\n";
    let reads = "      volumeMounts: [{name: v, mountPath: /v, readOnly: true}]\n";
    let containers = [
        container("writer", "echo shared > /v/file; sleep 1000", writes),
        container("reader", "sleep 1000", reads),
    ];
    machine.up_well(&group("share", "  volumes: [{name: v, emptyDir: {}}]\n", &containers));
    until("it is there", || machine.run(&["exec", "share/reader", "cat", "/v/file"]).stdout == b"shared\n");
    assert!(!machine.run(&["exec", "share/reader", "touch", "/v/other"]).status.success());
    machine.good(&["down", "share", "--time", "0"]);
    assert!(!machine.data().join("groups/share").exists());
}

#[test]
fn secrets_reach_their_container_and_are_nowhere_on_disk() {
    let Some(machine) = machine() else { return };
    // In base64: the secret's own bytes are not in the file either, as text.
    let file = "d1dxVDctbm9ib2R5LW1heS1zZWUtdGhpcw==";
    let more = format!("  volumes: [{{name: keys, secret: {{token: {file}, other: aGVsbG8=}}}}]\n");
    let own = format!(
        "      environmentVariables: [{{name: TOKEN, secureValue: {SECRET}}}, {{name: PLAIN, value: seen}}]\n      \
         volumeMounts: [{{name: keys, mountPath: /keys}}]\n"
    );
    machine.up_well(&group(
        "quiet",
        &more,
        &[container("a", "sleep 1000", &own), container("b", "sleep 1000", "")],
    ));
    assert_eq!(
        machine.good(&["exec", "quiet/a", "cat", "/keys/token", "/keys/other"]),
        format!("{SECRET}hello")
    );
    assert_eq!(
        machine.good(&["exec", "quiet/a", "sh", "-c", "echo $TOKEN $PLAIN"]),
        format!("{SECRET} seen\n")
    );
    assert_eq!(machine.good(&["exec", "quiet/b", "sh", "-c", "echo $TOKEN; ls /keys 2>&1 | wc -l"]), "\n1\n");
    assert_eq!(holders(&machine.data()), Vec::<String>::new());
    assert!(fs::read_dir(machine.data().join("groups/quiet/secrets")).unwrap().next().is_none());
    let talk =
        machine.good(&["inspect-container", "quiet/a"]) + &machine.good(&["groups", "--format", "json"]);
    assert!(!talk.contains(SECRET), "{talk}");
    for line in command_lines() {
        assert!(!line.contains(SECRET), "{line}");
    }
    machine.good(&["down", "quiet", "--time", "0"]);
    assert_eq!(holders(&machine.data()), Vec::<String>::new());
}

/// Files below a directory that hold the secret, as text or in base64.
fn holders(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap().flatten() {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            found.extend(holders(&entry.path()));
        } else if kind.is_file() {
            let text = fs::read(entry.path()).unwrap();
            let text = String::from_utf8_lossy(&text);
            if text.contains(SECRET) || text.contains("d1dxVDctbm9ib2R5") {
                found.push(entry.path().display().to_string());
            }
        }
    }
    found
}

fn command_lines() -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    // This test's own threads and its children's files are named on no command line.
    lines.map(|line| String::from_utf8_lossy(&line).into_owned()).collect()
}

#[test]
fn a_share_of_azure_needs_a_directory_in_its_place() {
    let Some(machine) = machine() else { return };
    let more = "  volumes: [{name: share, azureFile: {shareName: s, storageAccountName: example}}]\n";
    let mounts = "      volumeMounts: [{name: share, mountPath: /data}]\n";
    let text = group("azure", more, &[container("a", "cat /data/file; sleep 1000", mounts)]);
    let output = machine.up(&text);
    assert_eq!(code(&output), 2, "{}", shown(&output));
    assert!(shown(&output).contains("give a directory for it: --volume share=DIR"), "{}", shown(&output));
    fs::create_dir(machine.path().join("given")).unwrap();
    fs::write(machine.path().join("given/file"), "from here\n").unwrap();
    let file = machine.write(&text);
    machine.good(&["up", "-f", &file, "-d", "--network", "none", "--volume", "share=./given"]);
    until("it is read", || machine.logs("azure/a") == "from here\n");
    let output = machine.run(&["up", "-f", &file, "-d", "--volume", "shared=./given"]);
    assert_eq!(code(&output), 2, "{}", shown(&output));
}
