//! Images of a real registry.

use std::process::Command;

use cudock_testkit::registry::start_registry;

use super::images::Image;
use super::machine::{installed, machine};
use crate::support::{code, schema, shown};

#[test]
fn an_image_of_a_registry_is_fetched_once_and_runs_without_it_later() {
    let Some(machine) = machine() else { return };
    if !installed("skopeo") {
        return;
    }
    let Some((running, port)) = start_registry(machine.path()) else { return };
    let layout =
        Image::of(&machine).layer(&[("srv/x", "from a registry\n")]).command(&["cat", "/srv/x"]).write("app");
    let name = format!("127.0.0.1:{port}/team/app");
    let mut push = Command::new("skopeo");
    push.args(["--insecure-policy", "copy", "--dest-tls-verify=false"]);
    push.arg(format!("oci:{}", layout.display())).arg(format!("docker://{name}:1"));
    let pushed = push.output().unwrap();
    assert!(pushed.status.success(), "{}", shown(&pushed));

    let run = |more: &[&str]| {
        let mut command = machine.command(&[&["run", "--rm", "--network", "none"], more].concat());
        let empty = machine.path().join("nothing");
        command
            .env("CUDOCK_CACHE", machine.path().join("cache"))
            .env("HOME", &empty)
            .env("XDG_RUNTIME_DIR", &empty);
        command.env("DOCKER_HOST", format!("unix://{}", empty.join("docker.sock").display()));
        command.output().unwrap()
    };
    let tagged = format!("{name}:1");
    let output = run(&[&tagged]);
    assert_eq!(
        (code(&output), output.stdout.as_slice()),
        (0, &b"from a registry\n"[..]),
        "{}",
        shown(&output)
    );
    assert!(shown(&output).contains("fetching"), "{}", shown(&output));
    let output = run(&[&tagged]);
    assert_eq!(output.stdout, b"from a registry\n", "{}", shown(&output));
    assert!(!shown(&output).contains("fetching"), "it is in the cache: {}", shown(&output));

    let mut skopeo = Command::new("skopeo");
    skopeo.args(["inspect", "--tls-verify=false", "--format", "{{.Digest}}", &format!("docker://{tagged}")]);
    let digest = String::from_utf8(skopeo.output().unwrap().stdout).unwrap();
    let pinned = format!("{name}@{}", digest.trim());
    assert_eq!(run(&[&pinned]).stdout, b"from a registry\n");
    let plain = |arguments: &[&str]| {
        let mut command = machine.command(arguments);
        command.env("CUDOCK_CACHE", machine.path().join("cache")).env("HOME", machine.path().join("nothing"));
        schema::output(&mut command)
    };
    let output = plain(&["pull", &tagged, "--format", "json"]);
    assert_eq!(crate::support::json(&output)["images"][0]["layers"], 2, "{}", shown(&output));
    let listed = crate::support::json(&plain(&["images", "--format", "json"]));
    assert_eq!(listed["images"].as_array().unwrap().len(), 1, "{listed:#}");
    assert_eq!(listed["images"][0]["image"], tagged.as_str());
    assert_eq!(listed["images"][0]["complete"], true, "{listed:#}");
    assert_eq!(listed["images"][0]["digest"], digest.trim());
    let output = plain(&["images"]);
    assert!(shown(&output).contains(&tagged) && shown(&output).contains("complete"), "{}", shown(&output));
    drop(running);
    let output = run(&["--offline", &pinned]);
    assert_eq!(output.stdout, b"from a registry\n", "{}", shown(&output));
    // Without the registry, these options take the image that was last fetched for the tag.
    for pull in ["missing", "never"] {
        let output = run(&["--pull", pull, &tagged]);
        assert_eq!(output.stdout, b"from a registry\n", "{pull}: {}", shown(&output));
    }
    assert_eq!(run(&["--offline", &tagged]).stdout, b"from a registry\n");
    assert_eq!(code(&run(&["--pull", "always", &tagged])), 3, "the registry is gone");
    let output = run(&["--pull", "never", &format!("{name}:2")]);
    assert_eq!(code(&output), 3, "{}", shown(&output));
    assert!(
        shown(&output).contains("not in the cache") && shown(&output).contains("cudock pull"),
        "{}",
        shown(&output)
    );
    let output = run(&[&format!("{name}:2")]);
    assert_eq!(code(&output), 3, "{}", shown(&output));
    assert!(shown(&output).contains("connection refused"), "{}", shown(&output));
}
