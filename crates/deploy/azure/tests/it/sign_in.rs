//! Every way to sign in, as it is on the wire.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cudock_azure::{AzureClient, AzureError, SignInError, SignInMethod, SignInOptions};
use cudock_base::{Environment, ErrorKind, Report};
use cudock_http::Method;
use cudock_testkit::http::{Reply, Request, Server, secret};
use serde_json::{Value, json};

use crate::support::{
    CLIENT, TENANT, azure, call, client, client_with, endpoints, form, my_turn, reply, settings,
};

const APPLICATION: [(&str, &str); 2] = [("AZURE_TENANT_ID", TENANT), ("AZURE_CLIENT_ID", CLIENT)];
const NOBODY: (&str, &str) = ("AZURE_POD_IDENTITY_AUTHORITY_HOST", "http://127.0.0.1:9");
const SCOPE: &str = "https://management.azure.com/.default";

fn send(client: &AzureClient) -> Result<(), AzureError> {
    client.send(&call(Method::GET, "/x")).map(drop)
}

/// The authorization of the last request.
fn authorization(server: &Server) -> String {
    server.requests().last().unwrap().headers["authorization"].clone()
}

fn pairs(fields: &[(&str, &str)]) -> Vec<(String, String)> {
    fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn a_client_secret_is_a_form() {
    let (server, secret) = (azure(|_| Reply::new(200, "{}")), secret());
    let client = client_with(&server, &[&APPLICATION[..], &[("AZURE_CLIENT_SECRET", &secret)]].concat());
    send(&client).unwrap();
    send(&client).unwrap();
    let requests = server.requests();
    assert_eq!(requests.len(), 3, "the token is kept");
    let token = &requests[0];
    assert_eq!(
        (token.method.as_str(), token.path.as_str()),
        ("POST", &*format!("/{TENANT}/oauth2/v2.0/token"))
    );
    assert_eq!(token.header("content-type"), Some("application/x-www-form-urlencoded"));
    let expected = [
        ("client_id", CLIENT),
        ("client_secret", &secret),
        ("grant_type", "client_credentials"),
        ("scope", SCOPE),
    ];
    assert_eq!(form(token), pairs(&expected));
    assert_eq!(authorization(&server), "Bearer token-1");
    assert_eq!(client.sign_in_method(), "service principal with a secret");
}

#[test]
fn a_refused_secret_is_explained() {
    let server = Server::start(|_| {
        let description =
            "AADSTS7000215: Invalid client secret provided.\r\nTrace ID: 1\r\nCorrelation ID: 2";
        reply(
            401,
            &json!({"error": "invalid_client", "error_description": description, "error_codes": [7_000_215]}),
        )
    });
    let error = send(&client(&server)).unwrap_err();
    let text = "cannot sign in to Azure with a client secret: AADSTS7000215: Invalid client secret provided.";
    assert_eq!((error.to_string().as_str(), error.kind()), (text, ErrorKind::Outside));
    assert!(error.hints()[0].contains("not its id"));
    assert!(matches!(error, AzureError::SignIn(error) if error.number() == Some(7_000_215)));
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_failing_token_endpoint_is_retried() {
    let count = AtomicUsize::new(0);
    let server =
        Server::start(move |request| match (request.method.as_str(), count.fetch_add(1, Ordering::SeqCst)) {
            (_, 0) => Reply::new(503, ""),
            (_, 1) => Reply::new(429, "").with("Retry-After", "0"),
            ("POST", _) => reply(200, &json!({"access_token": "t", "expires_in": 3600})),
            _ => Reply::new(200, "{}"),
        });
    send(&client(&server)).unwrap();
    assert_eq!(server.count("/token"), 3);
}

#[test]
fn a_token_is_replaced_before_it_expires_and_used_if_that_fails() {
    let count = AtomicUsize::new(0);
    let server = Server::start(move |request| match request.method.as_str() {
        "POST" => match count.fetch_add(1, Ordering::SeqCst) {
            0 => reply(200, &json!({"access_token": "first", "expires_in": 200})),
            1..5 => Reply::new(503, ""),
            _ => reply(200, &json!({"access_token": "second", "expires_in": "3600"})),
        },
        _ => Reply::new(200, "{}"),
    });
    let client = client(&server);
    for expected in ["first", "first", "second", "second"] {
        send(&client).unwrap();
        assert_eq!(authorization(&server), format!("Bearer {expected}"));
    }
}

#[test]
fn a_federated_token_is_read_anew_each_time() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("token");
    let server = Server::start(|request| match request.method.as_str() {
        "POST" => reply(200, &json!({"access_token": "t", "expires_in": 0})),
        _ => Reply::new(200, "{}"),
    });
    let variables = [&APPLICATION[..], &[("AZURE_FEDERATED_TOKEN_FILE", file.to_str().unwrap())]].concat();
    let client = client_with(&server, &variables);
    let error = send(&client).unwrap_err();
    assert!(error.to_string().contains("token: no such file"), "{error}");
    for assertion in ["first.jwt", "second.jwt"] {
        fs::write(&file, format!("{assertion}\n")).unwrap();
        let before = server.requests().len();
        send(&client).unwrap();
        let expected = [
            ("client_id", CLIENT),
            ("client_assertion", assertion),
            ("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"),
            ("grant_type", "client_credentials"),
            ("scope", SCOPE),
        ];
        assert_eq!(form(&server.requests()[before]), pairs(&expected));
    }
    assert_eq!(client.sign_in_method(), "workload identity");
}

#[test]
fn github_actions_exchanges_its_own_token() {
    let server = azure(|request| match request.path.as_str() {
        path if path.starts_with("/github") => reply(200, &json!({"count": 1, "value": "github.jwt"})),
        _ => Reply::new(200, "{}"),
    });
    let (url, token) = (format!("http://{}/github?api-version=2.0", server.host()), secret());
    let github = [("ACTIONS_ID_TOKEN_REQUEST_URL", url.as_str()), ("ACTIONS_ID_TOKEN_REQUEST_TOKEN", &token)];
    send(&client_with(&server, &[APPLICATION, github].concat())).unwrap();
    let requests = server.requests();
    assert_eq!(requests[0].path, "/github?api-version=2.0&audience=api%3A%2F%2FAzureADTokenExchange");
    assert_eq!(requests[0].header("authorization"), Some(&*format!("Bearer {token}")));
    assert_eq!(form(&requests[1])[1], ("client_assertion".to_owned(), "github.jwt".to_owned()));
}

/// How a token of each managed identity is requested: variables, path and header.
#[test]
fn every_managed_identity_has_its_request() {
    let header = secret();
    let resource = "https%3A%2F%2Fmanagement.azure.com%2F";
    let client_id = ("AZURE_CLIENT_ID", CLIENT);
    for (variables, is_user_assigned, path, (name, value)) in [
        (
            ["IDENTITY_ENDPOINT", "IDENTITY_HEADER"],
            true,
            format!("/id?api-version=2019-08-01&resource={resource}&client_id={CLIENT}"),
            ("x-identity-header", header.as_str()),
        ),
        (
            ["MSI_ENDPOINT", "MSI_SECRET"],
            true,
            format!("/id?api-version=2017-09-01&resource={resource}&clientid={CLIENT}"),
            ("secret", &header),
        ),
        (
            ["AZURE_POD_IDENTITY_AUTHORITY_HOST", "UNUSED"],
            false,
            format!("/id/metadata/identity/oauth2/token?api-version=2018-02-01&resource={resource}"),
            ("metadata", "true"),
        ),
    ] {
        let server = Server::start(|request| match request.path.as_str() {
            // Numbers are texts, and the end is that of the server's clock.
            path if path.starts_with("/id") => {
                reply(200, &json!({"access_token": "managed", "expires_on": "2208988800", "resource": "r"}))
                    .with("Date", "Sat, 31 Dec 2039 23:00:00 GMT")
            }
            _ => Reply::new(200, "{}"),
        });
        let endpoint = format!("http://{}/id", server.host());
        let mut all = vec![(variables[0], endpoint.as_str()), (variables[1], &header)];
        all.extend(is_user_assigned.then_some(client_id));
        let client = client_with(&server, &all);
        send(&client).unwrap();
        send(&client).unwrap();
        let requests = server.requests();
        assert_eq!((requests[0].method.as_str(), &requests[0].path), ("GET", &path));
        assert_eq!(requests[0].header(name), Some(value));
        assert_eq!(requests[0].header("x-forwarded-for"), None);
        assert_eq!((requests.len(), authorization(&server)), (3, "Bearer managed".to_owned()), "{path}");
        assert_eq!(client.sign_in_method(), "managed identity");
    }
}

#[test]
fn a_token_s_end_is_that_of_the_issuer_s_clock() {
    // One minute later by the server's clock, and years later by this machine's.
    let server = Server::start(|request| match request.path.as_str() {
        path if path.starts_with("/id") => {
            reply(200, &json!({"access_token": "t", "expires_on": "2208988800"}))
                .with("Date", "Sat, 31 Dec 2039 23:59:00 GMT")
        }
        _ => Reply::new(200, "{}"),
    });
    let endpoint = format!("http://{}/id", server.host());
    let client = client_with(&server, &[("IDENTITY_ENDPOINT", &endpoint), ("IDENTITY_HEADER", "h")]);
    send(&client).unwrap();
    send(&client).unwrap();
    assert_eq!(server.count("/id"), 2, "it is about to expire");
}

#[test]
fn an_identity_that_is_not_assigned_is_explained() {
    let server = Server::start(|_| {
        reply(400, &json!({"error": "invalid_request", "error_description": "Identity not found"}))
    });
    let imds = format!("http://{}", server.host());
    let error = send(&client_with(&server, &[("AZURE_POD_IDENTITY_AUTHORITY_HOST", &imds)])).unwrap_err();
    assert_eq!(error.to_string(), "cannot sign in to Azure with a managed identity: Identity not found");
    assert!(error.hints()[0].contains("AZURE_CLIENT_ID"));
}

#[test]
fn a_restarting_metadata_service_is_retried_if_it_must_exist() {
    let count = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&count);
    let server = Server::start(move |request| match request.path.as_str() {
        path if path.starts_with("/metadata") => match counter.fetch_add(1, Ordering::SeqCst) {
            0 => Reply::new(410, ""),
            1 => Reply::new(404, ""),
            _ => reply(200, &json!({"access_token": "t", "expires_in": "3600"})),
        },
        _ => Reply::new(200, "{}"),
    });
    let imds = format!("http://{}", server.host());
    let variables =
        [("AZURE_POD_IDENTITY_AUTHORITY_HOST", imds.as_str()), ("CUDOCK_AZURE_SIGN_IN", "managed-identity")];
    send(&client_with(&server, &variables)).unwrap();
    assert_eq!(count.load(Ordering::SeqCst), 3);
    // Another cloud's service at the same address says 404, and that is the answer.
    let other = Server::start(|_| Reply::new(404, ""));
    let imds = format!("http://{}", other.host());
    let error = send(&client_with(&other, &[("AZURE_POD_IDENTITY_AUTHORITY_HOST", &imds)])).unwrap_err();
    assert_eq!((error, other.requests().len()), (AzureError::SignIn(SignInError::NotSignedIn), 1));
}

#[test]
fn a_metadata_service_that_has_answered_may_fail_for_a_while() {
    let count = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&count);
    let server = Server::start(move |request| match request.path.as_str() {
        path if path.starts_with("/metadata") => match counter.fetch_add(1, Ordering::SeqCst) {
            // Valid, and due to be replaced.
            0 => reply(200, &json!({"access_token": "first", "expires_in": "60"})),
            1 => Reply::new(410, ""),
            2 => reply(200, &json!({"access_token": "second", "expires_in": "60"})),
            _ => Reply::new(404, ""),
        },
        _ => Reply::new(200, "{}"),
    });
    let imds = format!("http://{}", server.host());
    let client = client_with(&server, &[("AZURE_POD_IDENTITY_AUTHORITY_HOST", &imds)]);
    for token in ["first", "second", "second"] {
        send(&client).unwrap();
        assert_eq!(authorization(&server), format!("Bearer {token}"));
    }
}

#[test]
fn without_az_and_outside_of_azure_nobody_is_signed_in() {
    let server = azure(|_| Reply::new(200, "{}"));
    let error = send(&client_with(&server, &[NOBODY])).unwrap_err();
    assert_eq!(error, AzureError::SignIn(SignInError::NotSignedIn));
    assert!(error.hints()[0].contains("az login") && server.requests().is_empty());
    let chosen = [NOBODY, ("CUDOCK_AZURE_SIGN_IN", "managed-identity")];
    let error = send(&client_with(&server, &chosen)).unwrap_err();
    assert_eq!(error, AzureError::SignIn(SignInError::NoManagedIdentity));
}

/// A program named `az` that does what the script says and keeps its arguments.
fn az(directory: &Path, script: &str) {
    let (program, args) = (directory.join("az"), directory.join("args"));
    fs::write(&program, format!("#!/bin/sh\necho \"$@\" >> {}\n{script}\n", args.display())).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn az_is_run_once_for_each_audience() {
    let _turn = my_turn();
    let directory = tempfile::tempdir().unwrap();
    let claims = URL_SAFE_NO_PAD.encode(json!({"upn": "me@example.com", "oid": "1", "tid": "2"}).to_string());
    let token = format!("e30.{claims}.{}", secret());
    let printed = json!({"accessToken": token, "expiresOn": "2020-01-01 00:00:00.000000", "expires_on": 4_102_444_800_u64});
    az(
        directory.path(),
        &format!("case $2 in show) echo '{{\"id\":\"az-sub\"}}';; *) echo '{printed}';; esac"),
    );
    let server = azure(|_| Reply::new(200, "{}"));
    let path = directory.path().to_str().unwrap();
    let args = || fs::read_to_string(directory.path().join("args")).unwrap();
    let token_args = format!("account get-access-token -o json --scope {SCOPE}");

    let client = client_with(&server, &[("PATH", path), NOBODY]);
    send(&client).unwrap();
    send(&client).unwrap();
    assert_eq!(args(), format!("{token_args}\n"));
    assert_eq!(authorization(&server), format!("Bearer {token}"));
    assert_eq!(client.principal().unwrap().to_string(), "me@example.com");
    assert_eq!((client.sign_in_method(), client.subscription().unwrap()), ("az", "az-sub".to_owned()));
    assert_eq!(args().lines().last(), Some("account show -o json"));

    for (variables, option) in [
        (vec![("AZURE_TENANT_ID", TENANT)], format!("--tenant {TENANT}")),
        (
            vec![("AZURE_TENANT_ID", TENANT), ("AZURE_SUBSCRIPTION_ID", "s-1")],
            "--subscription s-1".to_owned(),
        ),
    ] {
        let client = client_with(&server, &[variables, vec![("PATH", path)]].concat());
        send(&client).unwrap();
        assert_eq!(args().lines().last(), Some(&*format!("{token_args} {option}")));
    }
}

#[test]
fn az_that_is_not_signed_in_is_quoted() {
    let _turn = my_turn();
    let directory = tempfile::tempdir().unwrap();
    let leaked = secret();
    let server = azure(|_| Reply::new(200, "{}"));
    let path = directory.path().to_str().unwrap();
    for (script, message) in [
        (
            "echo \"ERROR: Please run 'az login' to setup account.\" >&2; exit 1",
            "Please run 'az login' to setup account.",
        ),
        ("echo LEAK", "its output is not as expected"),
        ("echo '{\"accessToken\": \"\"}'", "its token is empty"),
    ] {
        az(directory.path(), &script.replace("LEAK", &leaked));
        let error = send(&client_with(&server, &[("PATH", path), NOBODY])).unwrap_err();
        assert!(error.to_string().ends_with(message), "{error}");
        assert!(!format!("{error:?}").contains(&leaked));
    }
    // Where az is not signed in, the machine may be.
    az(directory.path(), "exit 1");
    let server = Server::start(|request| match request.path.as_str() {
        path if path.starts_with("/metadata") => {
            reply(200, &json!({"access_token": "managed", "expires_in": "3600"}))
        }
        _ => Reply::new(200, "{}"),
    });
    let imds = format!("http://{}", server.host());
    let client = client_with(&server, &[("PATH", path), ("AZURE_POD_IDENTITY_AUTHORITY_HOST", &imds)]);
    send(&client).unwrap();
    assert_eq!(client.sign_in_method(), "managed identity");
}

/// A client that signs in by device code, and what it showed the user.
fn device_client(server: &Server) -> (AzureClient, Arc<Mutex<Vec<String>>>) {
    let shown: Arc<Mutex<Vec<String>>> = Arc::default();
    let screen = Arc::clone(&shown);
    let options = SignInOptions {
        method: Some(SignInMethod::DeviceCode),
        prompt: Some(Arc::new(move |message: &str| screen.lock().unwrap().push(message.to_owned()))),
        ..SignInOptions::default()
    };
    let environment = Environment::of("/", endpoints(server));
    (AzureClient::from_environment(&environment, &options, settings()).unwrap(), shown)
}

#[test]
fn a_device_code_is_shown_once_and_refreshed() {
    let polls = AtomicUsize::new(0);
    let answer = |refresh: &str| json!({"access_token": "t", "expires_in": 0, "refresh_token": refresh});
    let server = Server::start(move |request: &Request| {
        if request.method == "GET" {
            return Reply::new(200, "{}");
        }
        if request.path.ends_with("/devicecode") {
            return reply(
                200,
                &json!({"device_code": "d", "interval": 0, "expires_in": 900, "message": "go there"}),
            );
        }
        match form(request)[0].1.as_str() {
            "refresh_token" => reply(200, &answer("r2")),
            _ if polls.fetch_add(1, Ordering::SeqCst) < 2 => {
                reply(400, &json!({"error": "authorization_pending"}))
            }
            _ => reply(200, &answer("r1")),
        }
    });
    let (client, shown) = device_client(&server);
    for _ in 0..3 {
        send(&client).unwrap();
    }
    assert_eq!(*shown.lock().unwrap(), ["go there"]);
    let az = "04b07795-8ddb-461a-bbee-02f9e1bf7b46";
    let scope = format!("{SCOPE} offline_access openid profile");
    let posts: Vec<_> = server.requests().into_iter().filter(|request| request.method == "POST").collect();
    assert_eq!(posts[0].path, "/organizations/oauth2/v2.0/devicecode");
    assert_eq!(form(&posts[0]), pairs(&[("client_id", az), ("scope", &scope)]));
    let grant = ("grant_type", "urn:ietf:params:oauth:grant-type:device_code");
    assert_eq!(form(&posts[1]), pairs(&[grant, ("client_id", az), ("device_code", "d")]));
    for (post, refresh) in [(&posts[4], "r1"), (&posts[5], "r2")] {
        let fields = [
            ("grant_type", "refresh_token"),
            ("client_id", az),
            ("refresh_token", refresh),
            ("scope", &scope),
        ];
        assert_eq!(form(post), pairs(&fields));
    }
}

#[test]
fn a_declined_device_code_ends_the_sign_in() {
    let server = Server::start(|request| match request.path.as_str() {
        path if path.ends_with("/devicecode") => {
            reply(200, &json!({"device_code": "device-code", "interval": 0, "message": "go there"}))
        }
        _ => {
            reply(400, &json!({"error": "authorization_declined", "error_description": "AADSTS1: declined"}))
        }
    });
    let error = send(&device_client(&server).0).unwrap_err();
    assert!(error.to_string().ends_with("AADSTS1: declined"), "{error}");
}

#[test]
fn the_only_subscription_is_used_and_several_are_listed() {
    let entry = |id: &str, state: &str| json!({"subscriptionId": id, "state": state});
    for (entries, expected) in [
        (vec![entry("a", "Enabled"), entry("b", "Disabled")], Ok("a".to_owned())),
        (vec![entry("a", "Enabled"), entry("b", "Enabled")], Err(vec!["a".to_owned(), "b".to_owned()])),
        (vec![], Err(vec![])),
    ] {
        let body = json!({"value": Value::from(entries)});
        let server = azure(move |_| reply(200, &body));
        let subscription = client(&server).subscription();
        assert_eq!(subscription, expected.map_err(|names| AzureError::Subscription { names }));
        assert_eq!(server.count("/subscriptions?api-version=2022-12-01"), 1);
    }
}
