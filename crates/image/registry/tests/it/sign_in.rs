//! Signing in as docker and podman do, and keeping secrets.

use std::fs;
use std::sync::{Mutex, MutexGuard, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cudock_base::{Digest, Report as _};
use cudock_http::HttpErrorKind;
use cudock_registry::Error;
use tempfile::tempdir;

use crate::support::{
    self, Registry, Reply, Request, Server, client, client_with_sign_in, refusal, script, secret,
};

const MANIFEST: &str = "{}";

/// A script that is still open for writing in a child that another test is just starting cannot be run, so the tests
/// that start programs take turns.
static PROGRAMS: Mutex<()> = Mutex::new(());

fn my_turn() -> MutexGuard<'static, ()> {
    PROGRAMS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Passes those with this header and sends the others to the token service at `realm`.
fn guarded(request: &Request, realm: &str, wanted: &str) -> Reply {
    if request.header("authorization") == Some(wanted) {
        return Reply::new(200, MANIFEST);
    }
    let challenge =
        format!("Bearer realm=\"{realm}\",service=\"the registry\",scope=\"repository:a/b:pull\"");
    refusal(401, "UNAUTHORIZED", "authentication required").with("WWW-Authenticate", challenge)
}

fn token_service(token: &str, wants: Option<String>) -> Server {
    let token = token.to_owned();
    Server::start(move |request| {
        if request.header("authorization").map(str::to_owned) == wants {
            Reply::new(200, format!("{{\"token\":\"{token}\",\"expires_in\":300}}"))
        } else {
            Reply::new(401, "")
        }
    })
}

fn registry(service: &Server, token: &str) -> Server {
    let (realm, wanted) = (format!("http://{}/token", service.host()), format!("Bearer {token}"));
    Server::start(move |request| guarded(request, &realm, &wanted))
}

fn basic(user: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
}

fn auths(host: &str, user: &str, password: &str) -> String {
    let auth = STANDARD.encode(format!("{user}:{password}"));
    format!("{{\"auths\":{{\"{host}\":{{\"auth\":\"{auth}\"}}}}}}")
}

#[test]
fn a_token_for_nobody_is_fetched_once_and_used_again() {
    let (directory, token) = (tempdir().unwrap(), secret());
    let service = token_service(&token, None);
    let registry = registry(&service, &token);
    let client = client(directory.path());
    for _ in 0..3 {
        client.manifest(&registry.image("a/b:1")).unwrap();
    }
    assert_eq!(service.requests().len(), 1);
    assert_eq!(service.requests()[0].path, "/token?service=the%20registry&scope=repository%3Aa%2Fb%3Apull");
    assert_eq!(registry.requests().len(), 4);
}

#[test]
fn a_token_is_fetched_with_user_and_password() {
    let (directory, token, password) = (tempdir().unwrap(), secret(), secret());
    let service = token_service(&token, Some(basic("me", &password)));
    let registry = registry(&service, &token);
    let client = client_with_sign_in(directory.path(), &auths(&registry.host(), "me", &password));
    client.manifest(&registry.image("a/b:1")).unwrap();
    assert!(
        registry
            .requests()
            .iter()
            .all(|request| request.header("authorization") != Some(&basic("me", &password)))
    );
}

#[test]
fn a_token_is_for_one_repository_only() {
    let (directory, token) = (tempdir().unwrap(), secret());
    let service = token_service(&token, None);
    let registry = registry(&service, &token);
    let client = client(directory.path());
    client.manifest(&registry.image("a/b:1")).unwrap();
    client.manifest(&registry.image("a/c:1")).unwrap();
    assert_eq!(service.requests().len(), 2);
    let unsigned =
        registry.requests().iter().filter(|request| request.header("authorization").is_none()).count();
    assert_eq!(unsigned, 2);
}

#[test]
fn a_token_that_is_no_longer_taken_is_renewed() {
    let (directory, tokens) = (tempdir().unwrap(), [secret(), secret()]);
    let issued = Mutex::new(0);
    let service = Server::start({
        let tokens = tokens.clone();
        move |_| {
            let mut issued = issued.lock().unwrap();
            *issued += 1;
            Reply::new(200, format!("{{\"access_token\":\"{}\"}}", tokens[*issued - 1]))
        }
    });
    let realm = format!("http://{}/token", service.host());
    let request_count = Mutex::new(0);
    let registry = Server::start(move |request| {
        let mut request_count = request_count.lock().unwrap();
        *request_count += 1;
        let token = &tokens[usize::from(*request_count > 2)];
        guarded(request, &realm, &format!("Bearer {token}"))
    });
    let client = client(directory.path());
    client.manifest(&registry.image("a/b:1")).unwrap();
    client.manifest(&registry.image("a/b:1")).unwrap();
    assert_eq!((service.requests().len(), registry.requests().len()), (2, 4));
}

#[test]
fn a_registry_that_wants_a_password_gets_it() {
    let (directory, password) = (tempdir().unwrap(), secret());
    let wanted = basic("me", &password);
    let registry = Server::start(move |request| {
        if request.header("authorization") == Some(&wanted) {
            Reply::new(200, MANIFEST)
        } else {
            Reply::new(401, "").with("WWW-Authenticate", "Basic realm=\"here\"")
        }
    });
    let image = registry.image("a/b:1");
    let client = client_with_sign_in(directory.path(), &auths(&registry.host(), "me", &password));
    client.manifest(&image).unwrap();
    client.manifest(&image).unwrap();
    assert_eq!(registry.requests().len(), 3);
    let error = support::client(directory.path()).manifest(&image).unwrap_err();
    assert!(matches!(error, Error::Unauthorized { signed_in: false, .. }), "{error:?}");
    assert!(error.hints()[0].contains(&format!("docker login {}", registry.host())));
}

#[test]
fn an_identity_token_is_traded_for_a_token() {
    let (directory, token, identity) = (tempdir().unwrap(), secret(), secret());
    let service = Server::start({
        let (token, identity) = (token.clone(), identity.clone());
        move |request| {
            let is_right = request.method == "POST"
                && request.path == "/token"
                && request.text().contains("grant_type=refresh_token")
                && request.text().contains(&format!("refresh_token={identity}"))
                && request.text().contains("scope=repository%3Aa%2Fb%3Apull")
                && request.header("authorization").is_none();
            if is_right {
                Reply::new(200, format!("{{\"access_token\":\"{token}\"}}"))
            } else {
                Reply::new(400, "")
            }
        }
    });
    let registry = registry(&service, &token);
    let config = format!("{{\"auths\":{{\"{}\":{{\"identitytoken\":\"{identity}\"}}}}}}", registry.host());
    client_with_sign_in(directory.path(), &config).manifest(&registry.image("a/b:1")).unwrap();
}

#[test]
fn a_credential_helper_is_queried_for_the_host() {
    let _turn = my_turn();
    let (token, password) = (secret(), secret());
    for config in
        ["{\"credHelpers\":{\"HOST\":\"test\"},\"credsStore\":\"other\"}", "{\"credsStore\":\"test\"}"]
    {
        let directory = tempdir().unwrap();
        let service = token_service(&token, Some(basic("me", &password)));
        let registry = registry(&service, &token);
        let query = directory.path().join("query");
        script(
            &directory.path().join("docker-credential-test"),
            &format!(
                "read host\nprintf '%s %s' \"$1\" \"$host\" >'{}'\nprintf '{{\"Username\":\"me\",\"Secret\":\"{password}\"}}'",
                query.display()
            ),
        );
        let client = client_with_sign_in(directory.path(), &config.replace("HOST", &registry.host()));
        client.manifest(&registry.image("a/b:1")).unwrap();
        assert_eq!(fs::read_to_string(query).unwrap(), format!("get {}", registry.host()));
    }
}

#[test]
fn a_helper_s_token_user_means_an_identity_token() {
    let _turn = my_turn();
    let (directory, token, identity) = (tempdir().unwrap(), secret(), secret());
    let service = Server::start({
        let (token, identity) = (token.clone(), identity.clone());
        move |request| {
            let is_right = request.text().contains(&format!("refresh_token={identity}"));
            if is_right { Reply::new(200, format!("{{\"token\":\"{token}\"}}")) } else { Reply::new(401, "") }
        }
    });
    let registry = registry(&service, &token);
    let answer = format!("printf '{{\"Username\":\"<token>\",\"Secret\":\"{identity}\"}}'");
    script(&directory.path().join("docker-credential-test"), &answer);
    let client = client_with_sign_in(directory.path(), "{\"credsStore\":\"test\"}");
    client.manifest(&registry.image("a/b:1")).unwrap();
}

#[test]
fn a_helper_that_fails_does_not_keep_public_images_from_us_and_is_named_for_private_ones() {
    let _turn = my_turn();
    let token = secret();
    let leak = secret();
    for (text, says) in [
        ("exit 3", "ended with"),
        ("exec /bin/sleep 20", "did not answer"),
        ("while :; do echo LEAK; done", "too long"),
        ("echo LEAK", "not Username and Secret"),
    ] {
        let directory = tempdir().unwrap();
        script(&directory.path().join("docker-credential-test"), &text.replace("LEAK", &leak));
        let client = client_with_sign_in(directory.path(), "{\"credsStore\":\"test\"}");
        let service = token_service(&token, None);
        client.manifest(&registry(&service, &token).image("a/b:1")).unwrap();
        let error = client.manifest(&registry(&service, "other").image("a/b:1")).unwrap_err();
        let hint = error.hints().remove(0);
        assert!(hint.contains("docker-credential-test") && hint.contains(says), "{hint}");
        assert!(!format!("{hint}{error}{error:?}").contains(&leak));
    }
    let directory = tempdir().unwrap();
    let service = token_service(&token, None);
    let client = client_with_sign_in(directory.path(), "{\"credsStore\":\"../test\"}");
    let error = client.manifest(&registry(&service, "other").image("a/b:1")).unwrap_err();
    assert!(error.hints()[0].contains("not one of a program"));
}

#[test]
fn a_helper_without_credentials_leaves_them_to_the_file() {
    let _turn = my_turn();
    let (directory, token, password) = (tempdir().unwrap(), secret(), secret());
    let service = token_service(&token, Some(basic("me", &password)));
    let registry = registry(&service, &token);
    script(
        &directory.path().join("docker-credential-test"),
        "echo credentials not found in native keychain; exit 1",
    );
    let config = auths(&registry.host(), "me", &password).replacen('{', "{\"credsStore\":\"test\",", 1);
    client_with_sign_in(directory.path(), &config).manifest(&registry.image("a/b:1")).unwrap();
}

#[test]
fn authorization_does_not_follow_a_redirect_to_another_host() {
    let (directory, token, blob) = (tempdir().unwrap(), secret(), support::noise(5000));
    let service = token_service(&token, None);
    let storage = Server::start({
        let blob = blob.clone();
        move |request| Reply::blob(request, &blob)
    });
    let (realm, wanted) = (format!("http://{}/token", service.host()), format!("Bearer {token}"));
    let to = format!("http://{}/signed?x=y", storage.host());
    let registry = Server::start(move |request| match guarded(request, &realm, &wanted) {
        Reply { status: 200, .. } if request.path.contains("/here/") => {
            Reply::new(307, "").with("Location", &*to)
        }
        Reply { status: 200, .. } => Reply::new(302, "").with("Location", "/v2/a/b/here/blob"),
        refusal => refusal,
    });
    client(directory.path()).blob(&registry.image("a/b"), &Digest::sha256_of(&blob), 5000).unwrap();
    assert_eq!(storage.requests().len(), 1);
    assert_eq!(storage.requests()[0].path, "/signed?x=y");
    assert_eq!(storage.requests()[0].header("authorization"), None);
    let within = registry.requests().pop().unwrap();
    assert_eq!((within.path.as_str(), within.header("authorization").is_some()), ("/v2/a/b/here/blob", true));
}

#[test]
fn a_redirect_or_a_token_service_on_plain_http_elsewhere_is_refused() {
    let (directory, password) = (tempdir().unwrap(), secret());
    let away = "http://registry.invalid/token";
    let registry = Server::start(move |request| {
        if request.path.contains("blobs") {
            Reply::new(302, "").with("Location", format!("{away}?signature=abc"))
        } else {
            Reply::new(401, "").with("WWW-Authenticate", format!("Bearer realm=\"{away}\""))
        }
    });
    let client = client_with_sign_in(directory.path(), &auths(&registry.host(), "me", &password));
    let errors = [
        client.manifest(&registry.image("a/b:1")).unwrap_err(),
        client.blob(&registry.image("a/b"), &Digest::sha256_of(b"x"), 1).unwrap_err(),
    ];
    for error in errors {
        let message = format!("{error} {error:?}");
        assert!(message.contains("plain http") && !message.contains("signature"), "{message}");
    }
    assert_eq!(registry.requests().len(), 2);
}

#[test]
fn a_challenge_from_behind_a_redirect_is_not_answered() {
    let (directory, password) = (tempdir().unwrap(), secret());
    let thief = Server::start(|_| Reply::new(200, "{\"token\":\"x\"}"));
    let storage = Server::start({
        let challenge = format!("Bearer realm=\"http://{}/token\"", thief.host());
        move |_| Reply::new(401, "").with("WWW-Authenticate", &*challenge)
    });
    let to = format!("http://{}/blob", storage.host());
    let registry = Server::start(move |_| Reply::new(307, "").with("Location", &*to));
    let client = client_with_sign_in(directory.path(), &auths(&registry.host(), "me", &password));
    let error = client.blob(&registry.image("a/b"), &Digest::sha256_of(b"x"), 1).unwrap_err();
    assert!(matches!(error, Error::Unauthorized { .. }), "{error:?}");
    assert!(thief.requests().is_empty());
}

#[test]
fn redirects_in_circles_end() {
    let directory = tempdir().unwrap();
    let registry = Server::start(|request| Reply::new(302, "").with("Location", request.path.clone()));
    let error = client(directory.path()).manifest(&registry.image("a/b:1")).unwrap_err();
    assert!(error.to_string().contains("too many redirects"), "{error}");
}

#[test]
fn no_secret_is_in_any_error_even_if_the_registry_echoes_it() {
    let (token, password) = (secret(), secret());
    let encoded = basic("me", &password).replace("Basic ", "");
    for status in [400, 401, 403, 404, 418, 429, 500] {
        let directory = tempdir().unwrap();
        let service = token_service(&token, Some(basic("me", &password)));
        let realm = format!("http://{}/token", service.host());
        let message = format!("bad token {token} from {password} as {encoded}");
        let registry = Server::start(move |request| match request.header("authorization") {
            Some(_) => refusal(status, "DENIED", &message),
            None => guarded(request, &realm, "nobody"),
        });
        let client = client_with_sign_in(directory.path(), &auths(&registry.host(), "me", &password));
        let error = client.manifest(&registry.image("a/b:1")).unwrap_err();
        let output = format!("{error} {error:?} {error:#?} {:?}", error.hints());
        for secret in [&token, &password, &encoded] {
            assert!(!output.contains(secret.as_str()), "{status}: {output}");
        }
        assert!(service.requests().len() == 1, "{status}");
        if status == 403 {
            assert!(output.contains("bad token … from …"), "{output}");
        }
        for entry in walk(&directory.path().join("cache")) {
            assert!(!String::from_utf8_lossy(&fs::read(entry).unwrap()).contains(token.as_str()));
        }
    }
}

#[test]
fn the_refusals_of_a_token_service_are_distinguished() {
    let directory = tempdir().unwrap();
    for (reply, requests) in [
        (Reply::new(401, ""), 1),
        (Reply::new(403, ""), 1),
        (Reply::new(503, ""), 4),
        (Reply::new(429, ""), 4),
        (Reply::new(200, "{}"), 1),
        (Reply::new(200, "nonsense"), 1),
        (Reply::new(200, "{\"token\":\"a\\r\\nX: y\"}"), 1),
    ] {
        let service = Server::start({
            let reply = reply.clone();
            move |_| reply.clone()
        });
        let error = client(directory.path()).manifest(&registry(&service, "x").image("a/b:1")).unwrap_err();
        assert_eq!(service.requests().len(), requests, "{error:?}");
        match (reply.status, &error) {
            (401 | 403, Error::Unauthorized { .. }) => {}
            (200, Error::Http { error, .. }) => assert_eq!(error.kind, HttpErrorKind::Malformed),
            (status, Error::Http { error, .. }) => {
                assert_eq!(error.kind, HttpErrorKind::Status(status));
            }
            _ => panic!("{}: {error:?}", reply.status),
        }
        assert!(error.is_outside());
    }
}

fn walk(directory: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files.extend(walk(&path)) } else { files.push(path) }
    }
    files
}
