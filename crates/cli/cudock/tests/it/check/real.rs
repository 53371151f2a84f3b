//! The real things: Debian's `docker-registry`, `skopeo` and `podman`. CI installs them.

use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

use cudock_testkit::client::eventually;
use cudock_testkit::process::ChildGuard;
use cudock_testkit::registry::start_registry;
use cudock_testkit::require_program;

use super::layout::{Image, torch, write};
use super::workdir::Directory;
use crate::support::{code, json, schema, shown};

/// Whether all of these programs are installed.
#[track_caller]
fn has(programs: &[&str]) -> bool {
    programs.iter().all(|program| require_program(program).is_some())
}

fn done(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&output.stderr));
}

fn push(directory: &Directory, layout: &str, to: &str) {
    let source = format!("oci:{}", directory.path().join(layout).display());
    done(Command::new("skopeo").args([
        "--insecure-policy",
        "copy",
        "--all",
        "--dest-tls-verify=false",
        &source,
        &format!("docker://{to}"),
    ]));
}

#[test]
fn an_image_of_a_real_registry_is_checked_and_fetched_only_where_its_layers_decide() {
    if !has(&["docker-registry", "skopeo"]) {
        return;
    }
    let directory = Directory::new();
    write(&directory, "image", &[Image::new().layer(torch("2.6.0", Some("12.4")))]);
    let Some((running, port)) = start_registry(directory.path()) else { return };
    let name = format!("127.0.0.1:{port}/team/app");
    push(&directory, "image", &format!("{name}:1"));

    // The processor is in the configuration.
    let other = directory.check(&[&format!("{name}:1"), "--gpu", "GB200", "--driver", "580"]);
    assert!(shown(&other).contains("exec format error"), "{}", shown(&other));
    assert!(!shown(&other).contains("fetching"), "no layer is needed: {}", shown(&other));

    let works =
        directory.check(&[&format!("{name}:1"), "--gpu", "H100", "--driver", "550", "--format", "json"]);
    assert_eq!(json(&works)["results"][0]["verdict"], "works", "{}", shown(&works));
    let fails =
        directory.check(&[&format!("{name}:1"), "--gpu", "B200", "--driver", "580", "--format", "json"]);
    assert_eq!(json(&fails)["results"][0]["error"]["code"], 209, "{}", shown(&fails));
    assert!(!shown(&fails).contains("fetching"), "the layers are in the cache: {}", shown(&fails));

    // By its digest all of it is in the cache, and the registry may be gone.
    let mut skopeo = Command::new("skopeo");
    skopeo.args(["inspect", "--tls-verify=false", "--format", "{{.Digest}}", &format!("docker://{name}:1")]);
    let digest = String::from_utf8(skopeo.output().unwrap().stdout).unwrap();
    let digest = digest.trim();
    let pinned = format!("{name}@{digest}");
    let fetched = directory.check(&[&pinned, "--gpu", "H100", "--driver", "550"]);
    assert_eq!(code(&fetched), 0, "{}", shown(&fetched));
    drop(running);
    let offline = directory.check(&[&pinned, "--gpu", "H100", "--driver", "550", "--offline"]);
    assert_eq!(code(&offline), 0, "{}", shown(&offline));
    let gone = directory.check(&[&format!("{name}:1"), "--gpu", "H100", "--driver", "550"]);
    assert_eq!(code(&gone), 3, "{}", shown(&gone));
}

#[test]
fn an_image_of_a_real_daemon_is_checked() {
    if !has(&["podman"]) {
        return;
    }
    let directory = Directory::new();
    write(&directory, "image", &[Image::new().layer(torch("2.6.0", Some("12.4")))]);
    let podman = |directory: &Directory| {
        let mut command = Command::new("podman");
        let (root, run) = (directory.path().join("podman"), directory.path().join("podman-run"));
        command.arg("--root").arg(root).arg("--runroot").arg(run).args(["--storage-driver", "vfs"]);
        command
    };
    // podman names the image after the path as it is given, and the name of a temporary directory has capitals.
    let pulled =
        podman(&directory).current_dir(directory.path()).args(["pull", "-q", "oci:image"]).output().unwrap();
    if !pulled.status.success() {
        // Without root or subordinate user ids it can hold no image.
        cudock_testkit::missing(
            "podman",
            format_args!("podman cannot pull here: {}", String::from_utf8_lossy(&pulled.stderr)),
        );
        return;
    }
    let id = String::from_utf8(pulled.stdout).unwrap();
    done(podman(&directory).args(["tag", id.trim(), "localhost/team/app:1"]));
    let socket = directory.path().join("podman.sock");
    let address = format!("unix://{}", socket.display());
    let _running = ChildGuard(
        podman(&directory)
            .args(["system", "service", "--time", "120", &address])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
    );
    eventually("the daemon listens", || UnixStream::connect(&socket).is_ok());
    for name in ["docker-daemon:localhost/team/app:1", "localhost/team/app:1"] {
        let mut command = directory.command(&[name, "--gpu", "B200", "--driver", "580", "--format", "json"]);
        let output = schema::output(command.env("DOCKER_HOST", &address));
        assert_eq!(json(&output)["results"][0]["error"]["code"], 209, "{name}: {}", shown(&output));
    }
}
