//! `cudock runtime` as a user types it, against an index and directories of the test's own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use cudock_testkit::http::{Reply, Server};

use crate::support::{code, cudock, json, schema, shown, zip};

const FILE: &str = "onnxruntime-1.31.1-cp312-cp312-test.whl";
/// Of [`wheel`].
const SHA256: &str = "ae0c7ad6dd263f79fe3239db5f0862176f8e285cfc3a6108a67a1f7e87b74d14";

fn wheel() -> Vec<u8> {
    zip(&[("onnxruntime/capi/libonnxruntime.so.1.31.1", b"a library"), ("onnxruntime/LICENSE", b"free")])
}

/// A home of its own, an empty cache, and a table that pins a small wheel.
struct User {
    directory: tempfile::TempDir,
}

impl User {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let cpu = std::env::consts::ARCH;
        let size = wheel().len();
        fs::create_dir(directory.path().join("facts")).unwrap();
        let table = format!(
            "[table]\nas_of = \"2026-11-15\"\nreplace = true\n\n[[wheel]]\npackage = \"onnxruntime\"\nversion = \"1.31.1\"\n\
             cpu = \"{cpu}\"\nfile = \"{FILE}\"\nsize = {size}\nsha256 = \"{SHA256}\"\nreleased = \"2026-10-26\"\n\
             library = \"onnxruntime/capi/libonnxruntime.so.1.31.1\"\n\
             members = [{{ path = \"onnxruntime/capi/libonnxruntime.so.1.31.1\", size = 9 }}, {{ path = \"onnxruntime/LICENSE\", size = 4 }}]\n\
             source = [\"https://pypi.org/simple/onnxruntime/\"]\n"
        );
        fs::write(directory.path().join("facts/runtimes.toml"), table).unwrap();
        Self { directory }
    }

    fn path(&self, below: &str) -> PathBuf {
        self.directory.path().join(below)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = cudock(arguments);
        command
            .env_clear()
            .env("NO_COLOR", "1")
            .env("CUDOCK_TODAY", "2026-11-15")
            .env("CUDOCK_FACTS", self.path("facts"))
            .env("CUDOCK_CACHE", self.path("cache"))
            .env("HOME", self.directory.path())
            .env("PIP_CONFIG_FILE", "/dev/null")
            .current_dir(self.directory.path());
        command
    }

    /// The text of the terminal, without the names of this run.
    fn terminal_text(&self, output: &Output) -> String {
        let directory = self.directory.path().display().to_string();
        shown(output).replace(&directory, "[folder]").replace(std::env::consts::ARCH, "[cpu]")
    }

    fn library(&self) -> PathBuf {
        let name = format!("cache/runtimes/onnxruntime-1.31.1-{}", std::env::consts::ARCH);
        self.path(&name).join("libonnxruntime.so.1.31.1")
    }
}

/// The address of an index with the wheel, which runs until the test process ends.
fn index() -> String {
    let address = Server::run_forever(|request| match request.path.as_str() {
        "/simple/onnxruntime/" => {
            Reply::new(200, format!("<a href='/files/{FILE}#sha256={SHA256}'>{FILE}</a>"))
        }
        path if path == format!("/files/{FILE}") => Reply::new(200, wheel()),
        _ => Reply::new(404, ""),
    });
    format!("http://{address}/simple")
}

#[test]
fn an_install_from_an_index_is_reported_and_done_once() {
    let user = User::new();
    let install = || {
        user.command(&["runtime", "install", "onnxruntime"]).env("PIP_INDEX_URL", index()).output().unwrap()
    };
    insta::assert_snapshot!("an_install", user.terminal_text(&install()));
    assert_eq!(fs::read(user.library()).unwrap(), b"a library");
    insta::assert_snapshot!("an_install_that_was_done_before", user.terminal_text(&install()));
}

#[test]
fn json_has_the_shape_that_others_rely_on() {
    let user = User::new();
    let arguments = ["runtime", "install", "onnxruntime", "--format", "json"];
    let report = json(&schema::output(user.command(&arguments).env("PIP_INDEX_URL", index())));
    assert_eq!(report["schema"], 1);
    assert_eq!(report["fetched"], true);
    assert_eq!(report["runtime"]["package"], "onnxruntime");
    assert_eq!(report["runtime"]["version"], "1.31.1");
    assert_eq!(report["runtime"]["found_by"]["how"], "cache");
    assert_eq!(report["runtime"]["library"], user.library().to_str().unwrap());
    assert_eq!(report["tables"][0]["name"], "runtimes");

    let list = json(&schema::output(&mut user.command(&["runtime", "list", "--format", "json"])));
    assert_eq!(list["schema"], 1);
    assert_eq!(list["found"][0]["library"], user.library().to_str().unwrap());
    assert_eq!(list["found"][0]["usable"], true);
    assert_eq!(list["installable"][0]["installed"], true);
    assert_eq!(list["installable"][0]["sha256"], SHA256);
}

#[test]
fn a_directory_of_wheels_serves_offline() {
    let user = User::new();
    let arguments = ["runtime", "install", "onnxruntime", "--offline"];
    let none = user.command(&arguments).output().unwrap();
    assert_eq!(code(&none), 3);
    insta::assert_snapshot!("offline_without_a_wheel", user.terminal_text(&none));
    fs::create_dir(user.path("wheels")).unwrap();
    fs::write(user.path("wheels").join(FILE), wheel()).unwrap();
    let output = user.command(&arguments).env("PIP_FIND_LINKS", user.path("wheels")).output().unwrap();
    assert_eq!(code(&output), 0, "{}", user.terminal_text(&output));
    assert!(user.library().is_file());
}

#[test]
fn an_index_that_fails_is_the_outside_s_fault_and_hides_its_password() {
    let user = User::new();
    let index = index().replace("/simple", "/elsewhere").replace("http://", "http://me:swordfish@");
    let output =
        user.command(&["runtime", "install", "onnxruntime"]).env("PIP_INDEX_URL", &index).output().unwrap();
    assert_eq!(code(&output), 3);
    let text = user.terminal_text(&output);
    assert!(text.contains("not found (404)") && text.contains("hint: "), "{text}");
    assert!(!text.contains("swordfish"), "{text}");
}

#[test]
fn settings_that_cannot_be_are_the_user_s() {
    let user = User::new();
    for (variable, value) in [
        ("PIP_NO_INDEX", "perhaps"),
        ("PIP_INDEX_URL", "ftp://index.example"),
        ("CUDOCK_ONNXRUNTIME", "/nowhere.so"),
    ] {
        let output = user.command(&["runtime", "list"]).env(variable, value).output().unwrap();
        assert_eq!(code(&output), 2, "{variable}");
        assert!(
            user.terminal_text(&output).contains(&format!("error: {variable}")),
            "{}",
            user.terminal_text(&output)
        );
    }
    assert_eq!(code(&user.command(&["runtime", "install", "tensorflow"]).output().unwrap()), 2);
}

#[test]
fn a_named_library_comes_first_and_its_providers_show_its_build() {
    let user = User::new();
    let directory = user.path("ort");
    fs::create_dir(&directory).unwrap();
    for name in ["libonnxruntime.so.1.31.1", "libonnxruntime_providers_cuda.so"] {
        fs::write(directory.join(name), "x").unwrap();
    }
    let listed = |named: &Path| {
        let mut command = user.command(&["runtime", "list", "--format", "json"]);
        json(&schema::output(command.env("CUDOCK_ONNXRUNTIME", named)))
    };
    let first = &listed(&directory)["found"][0];
    assert_eq!(first["package"], "onnxruntime-gpu");
    assert_eq!(first["found_by"]["name"], "CUDOCK_ONNXRUNTIME");
    assert_eq!(first["providers"][0], "cuda");
    assert!(first["cuda"]["directories"].is_array() && first["cuda"]["driver"].is_boolean());
}
