//! Registries and daemons that do not answer.

use super::workdir::Directory;
use crate::support::{code, shown};

#[test]
fn a_registry_that_nobody_runs_is_the_outside_s_fault() {
    // Bound and closed again: nobody listens there.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let output = Directory::new().check(&[&format!("127.0.0.1:{port}/team/app:1.4"), "--gpu", "T4"]);
    let text = shown(&output);
    assert_eq!(code(&output), 3, "{text}");
    assert!(output.stdout.is_empty(), "{text}");
    assert!(
        text.contains(&format!("error: manifest 1.4 of team/app on 127.0.0.1:{port}: connection refused")),
        "{text}"
    );
    assert!(text.contains("hint: check that 127.0.0.1"), "{text}");
}

#[test]
fn offline_nothing_is_requested_and_what_is_not_in_the_cache_is_reported() {
    for subject in ["registry.example/team/app:1.4", "docker://registry.example/team/app:1.4", "python:3.12"]
    {
        let output = Directory::new().check(&[subject, "--gpu", "T4", "--offline"]);
        let text = shown(&output);
        assert_eq!(code(&output), 3, "{subject}: {text}");
        assert!(text.contains("not in the cache (--offline)"), "{subject}: {text}");
        assert!(text.contains("hint: download it first while online"), "{subject}: {text}");
    }
}

#[test]
fn a_daemon_that_is_not_there_is_the_outside_s_fault() {
    let output = Directory::new().check(&["docker-daemon:team/app:1.4", "--gpu", "T4"]);
    let text = shown(&output);
    // Another daemon of this machine may answer; then it does not have the image.
    assert!(matches!(code(&output), 2 | 3), "{text}");
    assert!(text.contains("error: ") && text.contains("team/app:1.4") && text.contains("hint: "), "{text}");
}

#[test]
fn names_that_no_image_can_have_are_refused_before_any_request() {
    for (subject, expected) in
        [("Team_App", "lower case"), ("app:tag:tag", "not a tag"), ("docker://", "image name")]
    {
        let shown = Directory::new().refused(&[subject, "--gpu", "T4"]);
        assert!(shown.contains(expected), "{subject}: {shown}");
    }
}
