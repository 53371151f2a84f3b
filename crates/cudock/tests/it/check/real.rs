//! The real things: Debian's `docker-registry`, `skopeo` and `podman`. Where one is missing the test says so and is
//! skipped; CI installs them.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::layout::{Image, torch, write};
use super::workdir::Folder;
use crate::support::{code, json, schema, shown};

/// A process that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn is_missing(programs: &[&str]) -> bool {
    let missing = programs.iter().find(|program| {
        let asked =
            Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        asked.is_err()
    });
    if let Some(program) = missing {
        cudock_testkit::missing(program, format_args!("{program} is not installed"));
    }
    missing.is_some()
}

fn done(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&output.stderr));
}

/// A registry of its own on a free port of the loopback.
fn registry(folder: &Folder) -> (Running, u16) {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let data = folder.path().join("registry");
    folder.write(
        "registry.yml",
        format!(
            "version: 0.1\nstorage:\n  filesystem:\n    rootdirectory: {}\nhttp:\n  addr: 127.0.0.1:{port}\n",
            data.display()
        ),
    );
    let mut command = Command::new("docker-registry");
    command.arg("serve").arg(folder.path().join("registry.yml")).stdout(Stdio::null()).stderr(Stdio::null());
    let running = Running(command.spawn().unwrap());
    for _ in 0..600 {
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return (running, port);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("the registry does not come up");
}

fn push(folder: &Folder, layout: &str, to: &str) {
    let source = format!("oci:{}", folder.path().join(layout).display());
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
    if is_missing(&["docker-registry", "skopeo"]) {
        return;
    }
    let folder = Folder::new();
    write(&folder, "image", &[Image::new().layer(torch("2.6.0", Some("12.4")))]);
    let (running, port) = registry(&folder);
    let name = format!("127.0.0.1:{port}/team/app");
    push(&folder, "image", &format!("{name}:1"));

    // The processor is in the configuration.
    let other = folder.check(&[&format!("{name}:1"), "--gpu", "GB200", "--driver", "580"]);
    assert!(shown(&other).contains("exec format error"), "{}", shown(&other));
    assert!(!shown(&other).contains("fetching"), "no layer is needed: {}", shown(&other));

    let works = folder.check(&[&format!("{name}:1"), "--gpu", "H100", "--driver", "550", "--format", "json"]);
    assert_eq!(json(&works)["results"][0]["verdict"], "works", "{}", shown(&works));
    let fails = folder.check(&[&format!("{name}:1"), "--gpu", "B200", "--driver", "580", "--format", "json"]);
    assert_eq!(json(&fails)["results"][0]["error"]["code"], 209, "{}", shown(&fails));
    assert!(!shown(&fails).contains("fetching"), "the layers are in the cache: {}", shown(&fails));

    // By its digest all of it is in the cache, and the registry may be gone.
    let mut asked = Command::new("skopeo");
    asked.args(["inspect", "--tls-verify=false", "--format", "{{.Digest}}", &format!("docker://{name}:1")]);
    let digest = String::from_utf8(asked.output().unwrap().stdout).unwrap();
    let digest = digest.trim();
    let pinned = format!("{name}@{digest}");
    let fetched = folder.check(&[&pinned, "--gpu", "H100", "--driver", "550"]);
    assert_eq!(code(&fetched), 0, "{}", shown(&fetched));
    drop(running);
    let offline = folder.check(&[&pinned, "--gpu", "H100", "--driver", "550", "--offline"]);
    assert_eq!(code(&offline), 0, "{}", shown(&offline));
    let gone = folder.check(&[&format!("{name}:1"), "--gpu", "H100", "--driver", "550"]);
    assert_eq!(code(&gone), 3, "{}", shown(&gone));
}

#[test]
fn an_image_of_a_real_daemon_is_checked() {
    if is_missing(&["podman"]) {
        return;
    }
    let folder = Folder::new();
    write(&folder, "image", &[Image::new().layer(torch("2.6.0", Some("12.4")))]);
    let podman = |folder: &Folder| {
        let mut command = Command::new("podman");
        let (root, run) = (folder.path().join("podman"), folder.path().join("podman-run"));
        command.arg("--root").arg(root).arg("--runroot").arg(run).args(["--storage-driver", "vfs"]);
        command
    };
    // podman names the image after the path as it is given, and the name of a temporary directory has capitals.
    let pulled =
        podman(&folder).current_dir(folder.path()).args(["pull", "-q", "oci:image"]).output().unwrap();
    if !pulled.status.success() {
        // Without root or subordinate user ids it can hold no image.
        cudock_testkit::missing(
            "podman",
            format_args!("podman cannot pull here: {}", String::from_utf8_lossy(&pulled.stderr)),
        );
        return;
    }
    let id = String::from_utf8(pulled.stdout).unwrap();
    done(podman(&folder).args(["tag", id.trim(), "localhost/team/app:1"]));
    let socket = folder.path().join("podman.sock");
    let address = format!("unix://{}", socket.display());
    let _running = Running(
        podman(&folder)
            .args(["system", "service", "--time", "120", &address])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
    );
    wait_for(&socket);
    for name in ["docker-daemon:localhost/team/app:1", "localhost/team/app:1"] {
        let mut command = folder.command(&[name, "--gpu", "B200", "--driver", "580", "--format", "json"]);
        let output = schema::output(command.env("DOCKER_HOST", &address));
        assert_eq!(json(&output)["results"][0]["error"]["code"], 209, "{name}: {}", shown(&output));
    }
}

fn wait_for(socket: &Path) {
    for _ in 0..600 {
        if std::os::unix::net::UnixStream::connect(socket).is_ok() {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("the daemon does not come up");
}
