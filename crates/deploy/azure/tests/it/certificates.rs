//! A service principal with a certificate. Keys and certificates are made by openssl.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use cudock_azure::AzureError;
use cudock_base::{ErrorKind, Report, Timestamp};
use cudock_http::Method;
use cudock_testkit::http::Server;
use ring::digest::{SHA256, digest};
use ring::signature::{RSA_PSS_2048_8192_SHA256, UnparsedPublicKey};
use serde_json::{Value, json};

use crate::support::{CLIENT, TENANT, call, client_with, form, my_turn, reply};

fn openssl(directory: &Path, args: &str) -> Vec<u8> {
    let output = Command::new("openssl")
        .args(args.split(' '))
        .current_dir(directory)
        .stderr(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "openssl {args}");
    output.stdout
}

/// A key and its certificate as PEM texts.
fn key_and_certificate(directory: &Path, key: &str) -> (String, String) {
    openssl(
        directory,
        &format!("req -x509 -newkey {key} -nodes -days 2 -subj /CN=test -keyout key -out certificate"),
    );
    let read = |name: &str| fs::read_to_string(directory.join(name)).unwrap();
    (read("key"), read("certificate"))
}

fn write(directory: &Path, parts: &[&str]) -> PathBuf {
    let path = directory.join("sp.pem");
    fs::write(&path, parts.concat()).unwrap();
    path
}

fn sign_in(server: &Server, path: &Path, others: &[(&str, &str)]) -> Result<(), AzureError> {
    let variables = [
        ("AZURE_TENANT_ID", TENANT),
        ("AZURE_CLIENT_ID", CLIENT),
        ("AZURE_CLIENT_CERTIFICATE_PATH", path.to_str().unwrap()),
    ];
    client_with(server, &[&variables, others].concat()).send(&call(Method::GET, "/x")).map(drop)
}

/// Header, claims, signed text and signature of a JWT.
fn decode(jwt: &str) -> (Value, Value, String, Vec<u8>) {
    let parts: Vec<&str> = jwt.split('.').collect();
    let json = |part: &str| serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap();
    let signed = format!("{}.{}", parts[0], parts[1]);
    assert_eq!(parts.len(), 3);
    (json(parts[0]), json(parts[1]), signed, URL_SAFE_NO_PAD.decode(parts[2]).unwrap())
}

fn token() -> Value {
    json!({"access_token": "t", "expires_in": 3600})
}

#[test]
fn the_assertion_is_signed_with_the_key_of_the_certificate() {
    let _turn = my_turn();
    let Some(_) = cudock_testkit::require_program("openssl") else { return };
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let (_, authority) = key_and_certificate(directory, "rsa:2048");
    let (key, certificate) = key_and_certificate(directory, "rsa:2048");
    let der = openssl(directory, "x509 -in certificate -outform DER");
    let public = openssl(directory, "rsa -in key -RSAPublicKey_out -outform DER");
    let pkcs1 = String::from_utf8(openssl(directory, "rsa -in key -traditional")).unwrap();
    for (parts, sends_chain) in [
        (vec![&key, &certificate], false),
        // As `openssl pkcs12` writes them, in any order.
        (vec![&authority, &certificate, &key], true),
        (vec![&pkcs1, &certificate], false),
    ] {
        let parts: Vec<&str> = parts.into_iter().map(String::as_str).collect();
        let path = write(directory, &parts);
        let server = Server::start(|_| reply(200, &token()));
        let chain: &[(&str, &str)] = &[("AZURE_CLIENT_SEND_CERTIFICATE_CHAIN", "true")];
        sign_in(&server, &path, if sends_chain { chain } else { &[] }).unwrap();
        let request = &server.requests()[0];
        assert_eq!(request.path, format!("/{TENANT}/oauth2/v2.0/token"));
        let fields = form(request);
        let names: Vec<&str> = fields.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["client_id", "client_assertion", "client_assertion_type", "grant_type", "scope"]);
        assert_eq!(fields[0].1, CLIENT);
        assert_eq!(fields[2].1, "urn:ietf:params:oauth:client-assertion-type:jwt-bearer");
        assert_eq!(fields[3].1, "client_credentials");
        assert_eq!(fields[4].1, "https://management.azure.com/.default");
        let (header, claims, signed, signature) = decode(&fields[1].1);
        UnparsedPublicKey::new(&RSA_PSS_2048_8192_SHA256, &public)
            .verify(signed.as_bytes(), &signature)
            .unwrap();
        assert_eq!(header["alg"], "PS256");
        assert_eq!(header["typ"], "JWT");
        assert_eq!(header["x5t#S256"], URL_SAFE_NO_PAD.encode(digest(&SHA256, &der)));
        assert_eq!(header["x5c"].as_array().map(Vec::len), sends_chain.then_some(2));
        if sends_chain {
            assert_eq!(header["x5c"][0], STANDARD.encode(&der));
        }
        assert_eq!(claims["aud"], format!("http://{}/{TENANT}/oauth2/v2.0/token", server.host()));
        assert_eq!((&claims["iss"], &claims["sub"]), (&json!(CLIENT), &json!(CLIENT)));
        assert_eq!(claims["exp"].as_u64().unwrap() - claims["nbf"].as_u64().unwrap(), 600);
        assert_eq!(claims["jti"].as_str().map(str::len), Some(36));
    }
}

#[test]
fn a_clock_that_is_wrong_is_corrected_by_the_refusal() {
    let _turn = my_turn();
    let Some(_) = cudock_testkit::require_program("openssl") else { return };
    let directory = tempfile::tempdir().unwrap();
    let (key, certificate) = key_and_certificate(directory.path(), "rsa:2048");
    let path = write(directory.path(), &[&key, &certificate]);
    let now = Timestamp::parse("2040-01-01T00:00:00Z").unwrap().millis().unwrap() / 1000;
    let server = Server::start(move |request| {
        let date = "Sun, 01 Jan 2040 00:00:00 GMT";
        if request.method == "GET" {
            return reply(200, &json!({})).with("Date", date);
        }
        let (_, claims, ..) = decode(&form(request)[1].1);
        let begins = claims["nbf"].as_u64().unwrap();
        let answer = if (now..now + 60).contains(&begins) {
            reply(200, &token())
        } else {
            let description = "AADSTS700024: Client assertion is not within its valid time range.";
            let error = json!({"error": "invalid_client", "error_codes": [700_024], "error_description": description});
            reply(401, &error)
        };
        answer.with("Date", date)
    });
    sign_in(&server, &path, &[]).unwrap();
    assert_eq!(server.count("/token"), 2);
}

#[test]
fn an_unusable_file_is_named_with_the_reason() {
    let _turn = my_turn();
    let Some(_) = cudock_testkit::require_program("openssl") else { return };
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let (ec_key, ec_certificate) = key_and_certificate(directory, "ec -pkeyopt ec_paramgen_curve:prime256v1");
    let (other_key, _) = key_and_certificate(directory, "rsa:2048");
    let (key, certificate) = key_and_certificate(directory, "rsa:2048");
    let encrypted = openssl(directory, "pkcs8 -topk8 -in key -passout pass:test");
    let encrypted = String::from_utf8(encrypted).unwrap();
    let server = Server::start(|_| reply(200, &token()));
    for (parts, reason) in [
        (vec![other_key.as_str(), &certificate], "no certificate belongs to the key"),
        (vec![&key], "no certificate belongs to the key"),
        (vec![&certificate], "no private key"),
        (vec![&encrypted, &certificate], "the key is encrypted"),
        (vec![&ec_key, &ec_certificate], "the key is not an RSA key"),
        (vec!["nothing"], "no private key"),
    ] {
        let path = write(directory, &parts);
        let error = sign_in(&server, &path, &[]).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("sp.pem") && text.contains(reason), "{reason}: {text}");
        assert_eq!(error.kind(), ErrorKind::Input);
        assert!(error.hints()[0].contains("openssl pkcs12"));
    }
    fs::write(directory.join("sp.pem"), [0x30, 0x82, 0xff, 0xfe]).unwrap();
    assert!(sign_in(&server, &directory.join("sp.pem"), &[]).unwrap_err().to_string().contains("not PEM"));
    let absent = sign_in(&server, &directory.join("absent"), &[]).unwrap_err();
    assert!(absent.to_string().contains("no such file"), "{absent}");
    assert!(server.requests().is_empty());
}
