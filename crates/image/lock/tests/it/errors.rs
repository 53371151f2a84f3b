//! What goes wrong, and how it is reported.

use cudock_base::{ErrorKind, Report as _};
use cudock_lock::{LockError, Upgrade};
use cudock_testkit::http::Reply;

use crate::support::{Fixture, SigningKey};

const IN_RELEASE: &str = "/debian/dists/trixie/InRelease";

fn system_project() -> Option<Fixture> {
    Fixture::new("packages = [\"libc6\"]\n")
}

fn error(fixture: &Fixture) -> LockError {
    fixture.lock(&Upgrade::No).map(|report| report.text()).unwrap_err()
}

#[test]
fn only_what_a_known_key_signed_is_used() {
    let Some(fixture) = system_project() else { return };
    fixture.lock(&Upgrade::No).unwrap();
    let honest = fixture.files.lock().unwrap()[IN_RELEASE].body.clone();
    let text = String::from_utf8(honest.clone()).unwrap();
    let stranger = SigningKey::new().unwrap();
    let plain = text.split("\n\n").nth(1).unwrap().split("-----BEGIN").next().unwrap().to_owned();
    for (body, reason) in [
        (text.replace("Origin: Debian", "Origin: Mallory").into_bytes(), "does not match the content"),
        (stranger.sign(&plain), "no known key signed it, only "),
        (plain.into_bytes(), "no valid signature"),
        (Vec::new(), "no valid signature"),
    ] {
        fixture.serve(IN_RELEASE, Reply::new(200, body));
        let error = fixture.lock(&Upgrade::All).map(|report| report.text()).unwrap_err();
        assert!(error.to_string().contains(reason), "{error}");
        assert_eq!(error.kind(), ErrorKind::Outside);
    }
    // What stands around the signed text has no effect.
    let around = ["Codename: forky\nSHA256:\n\n".as_bytes(), &honest].concat();
    fixture.serve(IN_RELEASE, Reply::new(200, around));
    let text = fixture.read("project/cudock.lock");
    match fixture.lock(&Upgrade::All) {
        Ok(_) => assert_eq!(fixture.read("project/cudock.lock"), text),
        Err(error) => assert!(matches!(error, LockError::Signature { .. }), "{error}"),
    }
}

#[test]
fn an_expired_or_other_release_is_rejected() {
    let Some(fixture) = system_project() else { return };
    fixture.publish("debian", "trixie", &[], "Sat, 01 Jan 2000 00:00:00 UTC");
    let expired = error(&fixture);
    assert!(expired.to_string().contains("has expired: it was valid until Sat, 01 Jan 2000"), "{expired}");
    assert!(expired.hints()[0].contains("clock"), "{:?}", expired.hints());
    let other = fixture.files.lock().unwrap()["/debian/dists/trixie-updates/InRelease"].clone();
    fixture.serve(IN_RELEASE, other);
    assert!(error(&fixture).to_string().contains("is for `trixie-updates`, not for `trixie`"));
}

#[test]
fn servers_that_fail_are_named_with_the_reason() {
    let Some(fixture) = system_project() else { return };
    let index = "/debian/dists/trixie/main/binary-amd64/Packages.gz";
    let honest = fixture.files.lock().unwrap()[index].clone();
    for (path, reply, reason) in [
        (IN_RELEASE, Reply::new(404, ""), "server returned 404"),
        (IN_RELEASE, Reply::new(429, ""), "server returned 429"),
        (IN_RELEASE, Reply::new(503, ""), "server returned 503"),
        (index, Reply::new(200, vec![0; honest.body.len()]), "digest mismatch"),
    ] {
        let before = fixture.files.lock().unwrap()[path].clone();
        fixture.serve(path, reply);
        let failed = error(&fixture);
        assert!(failed.to_string().contains(reason), "{failed}");
        assert_eq!(failed.kind(), ErrorKind::Outside);
        fixture.serve(path, before);
    }
    // 429 and 503 are tried again.
    assert!(fixture.server.count("trixie/InRelease") > 6);
    fixture.lock(&Upgrade::No).unwrap();
}

#[test]
fn a_package_that_does_not_exist_is_named_with_the_nearest() {
    let Some(fixture) = Fixture::new("packages = [\"libcc6\"]\n") else { return };
    let failed = error(&fixture);
    assert_eq!(failed.to_string(), "[image] depends on libcc6, which is not in trixie");
    assert_eq!(failed.hints(), ["did you mean `libc6`?"]);
    assert_eq!(failed.kind(), ErrorKind::Input);
}

#[test]
fn a_missing_wheel_is_reported_with_those_that_exist() {
    let Some(fixture) = Fixture::new("requirements = \"requirements.txt\"\n") else { return };
    fixture.write("project/requirements.txt", "numpy\n");
    fixture
        .index("numpy", &["numpy-2.1.0-cp313-cp313-win_amd64.whl", "numpy-2.1.0-cp39-cp39-linux_x86_64.whl"]);
    fixture.uv(&[("numpy", "2.1.0")]);
    let failed = error(&fixture);
    assert_eq!(
        failed.to_string(),
        "numpy 2.1.0 has no wheel for Python 3.13 on x86_64; there are: \
         numpy-2.1.0-cp313-cp313-win_amd64.whl, numpy-2.1.0-cp39-cp39-linux_x86_64.whl"
    );
    assert_eq!(failed.kind(), ErrorKind::Input);
    fixture.serve("/simple/numpy/", Reply::new(500, ""));
    assert_eq!(error(&fixture).kind(), ErrorKind::Outside);
}

#[test]
fn unknown_releases_pythons_and_targets_are_rejected() {
    for (image, reason) in [
        ("python = \"3.9\"\n", "no supported release has Python 3.9; trixie has 3.13"),
        ("packages = \"libc6\"\nsuite = \"sid\"\n", "unknown release `sid`"),
        ("python = \"3.11\"\nsuite = \"trixie\"\n", "trixie does not have Python 3.11"),
        ("packages = \"libc6\"\ntargets = [\"T44\"]\n", "`T44` is not a GPU"),
        ("user = \"1\"\n", "names nothing to put into an image"),
    ] {
        let Some(fixture) = Fixture::new(image) else { return };
        let failed = error(&fixture);
        assert!(failed.to_string().contains(reason), "{failed}");
        assert_eq!(failed.kind(), ErrorKind::Input);
        assert_eq!(fixture.server.requests().len(), 0);
    }
}
