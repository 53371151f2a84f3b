use std::fs;

use super::*;

fn found(json: &str, registry: &str, repository: &str) -> Result<Option<Credential>, Error> {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("auth.json");
    fs::write(&file, json).unwrap();
    let environment = Environment::of(directory.path(), [(REGISTRY_AUTH_FILE, file)]);
    Credentials::from_environment(&environment).find(registry, repository).map(|found| found.credential)
}

fn password(user: &str, password: &str) -> Credential {
    Credential::Password { user: user.to_owned(), password: Secret::new(password) }
}

fn auths(entries: &[(&str, &str)]) -> String {
    let entries: Vec<_> = entries
        .iter()
        .map(|(key, auth)| format!("\"{key}\":{{\"auth\":\"{}\"}}", STANDARD.encode(auth)))
        .collect();
    format!("{{\"auths\":{{{}}}}}", entries.join(","))
}

#[test]
fn the_most_specific_key_wins() {
    let own = [("q.io", "u:host"), ("q.io/a", "u:space"), ("q.io/a/b", "u:repository")];
    // Docker Hub's old URL stands for it; a key for a part of a host is not one for the host.
    let urls = [("https://index.docker.io/v1/", "u:p:with:colons"), ("https://r.io/a/b", "u:p")];
    for (keys, registry, repository, expected) in [
        (&own[..], "q.io", "a/b", Some("repository")),
        (&own, "q.io", "a/c", Some("space")),
        (&own, "q.io", "c/b", Some("host")),
        (&own, "q.io.example.com", "a", None),
        (&urls, "docker.io", "library/a", Some("p:with:colons")),
        (&urls, "other.io", "library/a", None),
        (&urls, "r.io", "c", None),
    ] {
        let credential = found(&auths(keys), registry, repository).unwrap();
        assert_eq!(credential, expected.map(|secret| password("u", secret)), "{registry}/{repository}");
    }
}

#[test]
fn an_identity_token_comes_before_a_password() {
    let json = r#"{"auths":{"q.io":{"auth":"dTo=","identitytoken":"t"},"r.io":{}}}"#;
    assert_eq!(found(json, "q.io", "a").unwrap(), Some(Credential::IdentityToken(Secret::new("t"))));
    assert_eq!(found(json, "r.io", "a").unwrap(), None);
}

#[test]
fn a_broken_file_is_an_error_that_does_not_quote_it() {
    for json in [
        r#"{"auths":{"q.io":"swordfish"}}"#,
        r#"{"auths":{"q.io":{"auth":"swordfish!"}}}"#,
        r#"{"auths":{"q.io":{"auth":"c3dvcmRmaXNo"}}}"#,
        r#"{"auths":{"q.io":{"auth":["swordfish"]}}"#,
    ] {
        let error = found(json, "q.io", "a").unwrap_err();
        let message = format!("{error} {error:?}");
        assert!(message.contains("auth.json") && !message.contains("swordfish"), "{message}");
        assert!(!message.contains("c3dvcmRmaXNo"), "{message}");
    }
}

#[test]
fn files_are_read_in_the_order_of_the_ecosystem() {
    let root = tempfile::tempdir().unwrap();
    let at = |path: &str| root.path().join(path);
    let environment = Environment::of(
        root.path(),
        [("HOME", at("home")), ("XDG_RUNTIME_DIR", at("run")), (REGISTRY_AUTH_FILE, at("own.json"))],
    );
    let credentials = Credentials::from_environment(&environment);
    for (path, secret) in [
        ("home/.docker/config.json", "docker"),
        ("home/.config/containers/auth.json", "user"),
        ("run/containers/auth.json", "run"),
        ("own.json", "own"),
    ] {
        fs::create_dir_all(at(path).parent().unwrap()).unwrap();
        fs::write(at(path), auths(&[("q.io", &format!("u:{secret}"))])).unwrap();
        assert_eq!(credentials.find("q.io", "a").unwrap().credential, Some(password("u", secret)));
    }
}
