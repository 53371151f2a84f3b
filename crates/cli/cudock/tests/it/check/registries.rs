//! Registries and daemons that do not answer.

use super::workdir::Folder;
use crate::support::{code, shown};

#[test]
fn a_registry_that_nobody_runs_is_the_outside_s_fault() {
    // Bound and let go again: nobody listens there.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let output = Folder::new().check(&[&format!("127.0.0.1:{port}/team/app:1.4"), "--gpu", "T4"]);
    let told = shown(&output);
    assert_eq!(code(&output), 3, "{told}");
    assert!(output.stdout.is_empty(), "{told}");
    assert!(
        told.contains(&format!("error: manifest 1.4 of team/app on 127.0.0.1:{port}: connection refused")),
        "{told}"
    );
    assert!(told.contains("hint: check that 127.0.0.1"), "{told}");
}

#[test]
fn offline_nothing_is_asked_and_what_is_not_in_the_cache_is_said() {
    for subject in ["registry.example/team/app:1.4", "docker://registry.example/team/app:1.4", "python:3.12"]
    {
        let output = Folder::new().check(&[subject, "--gpu", "T4", "--offline"]);
        let told = shown(&output);
        assert_eq!(code(&output), 3, "{subject}: {told}");
        assert!(told.contains("not in the cache (--offline)"), "{subject}: {told}");
        assert!(told.contains("hint: download it first while online"), "{subject}: {told}");
    }
}

#[test]
fn a_daemon_that_is_not_there_is_the_outside_s_fault() {
    let output = Folder::new().check(&["docker-daemon:team/app:1.4", "--gpu", "T4"]);
    let told = shown(&output);
    // Another daemon of this machine may answer; then it does not have the image.
    assert!(matches!(code(&output), 2 | 3), "{told}");
    assert!(told.contains("error: ") && told.contains("team/app:1.4") && told.contains("hint: "), "{told}");
}

#[test]
fn names_that_no_image_can_have_are_refused_before_anything_is_asked() {
    for (subject, told) in
        [("Team_App", "lower case"), ("app:tag:tag", "not a tag"), ("docker://", "image name")]
    {
        let shown = Folder::new().refused(&[subject, "--gpu", "T4"]);
        assert!(shown.contains(told), "{subject}: {shown}");
    }
}
