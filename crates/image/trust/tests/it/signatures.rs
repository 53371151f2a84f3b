//! Signatures, verified by this crate and by OpenSSL, and tampered with.

use std::collections::BTreeMap;
use std::sync::Arc;

use cudock_base::Digest;
use cudock_http::NoProgress;
use cudock_image::write::{Bundle, Destination, NewConfig, WriteOptions};
use cudock_image::{ImageSource, OpenOptions, Platform, ResolvedImage};
use cudock_trust::{
    COSIGN_SIGNATURE, ImageSigner, PROOF, Proof, ProvenDriver, ProvenGpu, PublicKey, SignatureBundle,
    proof_statement, sign, signature_statement, verify,
};
use proptest::prelude::*;
use serde_json::Value;

use crate::support::{Keys, image};

#[test]
fn openssl_accepts_what_is_signed_and_the_key_is_named() {
    let Some(keys) = Keys::new("P-256") else { return };
    let (signer, public) = (keys.signer(), keys.public());
    assert_eq!(signer.public_key(), public);
    assert_eq!(public.to_pem(), std::fs::read_to_string(keys.path("cosign.pub")).unwrap());
    let bundle = SignatureBundle::sign(&signature_statement(&image()), &signer).unwrap();
    let json: Value = serde_json::from_slice(&bundle.to_json().unwrap()).unwrap();
    assert_eq!(json["mediaType"], "application/vnd.dev.sigstore.bundle.v0.3+json");
    std::fs::write(keys.path("payload.b64"), json["dsseEnvelope"]["payload"].as_str().unwrap()).unwrap();
    std::fs::write(keys.path("sig.b64"), json["dsseEnvelope"]["signatures"][0]["sig"].as_str().unwrap())
        .unwrap();
    keys.run(&["base64", "-d", "-A", "-in", "payload.b64", "-out", "payload"]);
    keys.run(&["base64", "-d", "-A", "-in", "sig.b64", "-out", "sig"]);
    let payload = std::fs::read(keys.path("payload")).unwrap();
    let head = format!("DSSEv1 28 application/vnd.in-toto+json {} ", payload.len());
    std::fs::write(keys.path("signed"), [head.as_bytes(), &payload].concat()).unwrap();
    let verdict = keys.run(&["dgst", "-sha256", "-verify", "cosign.pub", "-signature", "sig", "signed"]);
    assert_eq!(verdict.trim(), "Verified OK");
    keys.run(&["pkey", "-pubin", "-in", "cosign.pub", "-outform", "DER", "-out", "der"]);
    let hint = Digest::sha256_of(&std::fs::read(keys.path("der")).unwrap());
    std::fs::write(keys.path("hint"), json["verificationMaterial"]["publicKey"]["hint"].as_str().unwrap())
        .unwrap();
    keys.run(&["base64", "-d", "-A", "-in", "hint", "-out", "hash"]);
    let hex: String =
        std::fs::read(keys.path("hash")).unwrap().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, hint.hex());
}

#[test]
fn another_key_or_content_is_not_accepted() {
    let (Some(keys), Some(other)) = (Keys::new("P-256"), Keys::new("P-256")) else { return };
    let bundle = SignatureBundle::sign(&signature_statement(&image()), &keys.signer()).unwrap();
    assert!(bundle.verify(&keys.public()).unwrap().unwrap().is_about(&image()));
    assert_eq!(bundle.verify(&other.public()).unwrap(), None);
    let text = String::from_utf8(bundle.to_json().unwrap()).unwrap();
    let forged =
        SignatureBundle::sign(&signature_statement(&Digest::sha256_of(b"evil")), &other.signer()).unwrap();
    let payload = |bundle: &SignatureBundle| {
        let json: Value = serde_json::from_slice(&bundle.to_json().unwrap()).unwrap();
        json["dsseEnvelope"]["payload"].as_str().unwrap().to_owned()
    };
    let swapped = text.replace(&payload(&bundle), &payload(&forged));
    let swapped = SignatureBundle::parse(swapped.as_bytes()).unwrap();
    assert_eq!(swapped.verify(&keys.public()).unwrap(), None);
    let typed = text.replace("application/vnd.in-toto+json", "text/plain");
    assert!(SignatureBundle::parse(typed.as_bytes()).unwrap().verify(&keys.public()).is_err());
}

#[test]
fn unsupported_keys_are_rejected_with_a_hint() {
    let Some(keys) = Keys::new("P-384") else { return };
    let error = ImageSigner::read(&keys.path("cosign.key")).err().unwrap().to_string();
    assert!(error.ends_with("not an ECDSA P-256 key"), "{error}");
    assert!(PublicKey::read(&keys.path("cosign.pub")).is_err());
    let encrypted = "-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----\n";
    let error = ImageSigner::from_pem("k", encrypted).err().unwrap().to_string();
    assert!(error.contains("encrypted private keys are not supported"), "{error}");
    assert!(ImageSigner::read(&keys.path("none")).is_err());
}

#[test]
fn a_signed_image_in_a_layout_is_verified_by_its_key_only() {
    let (Some(keys), Some(other)) = (Keys::new("P-256"), Keys::new("P-256")) else { return };
    let directory = tempfile::tempdir().unwrap();
    let platform = Platform { os: "linux".to_owned(), architecture: "amd64".to_owned(), variant: None };
    let image = Bundle::image(&NewConfig::new(platform), &[], &BTreeMap::new());
    let layout = directory.path().join("image");
    let destination = Destination::Layout { directory: layout.clone(), name: None };
    let write = WriteOptions {
        platform: None,
        client: None,
        sockets: Vec::new(),
        scratch: directory.path().to_owned(),
        progress: Arc::new(NoProgress),
    };
    image.write(&destination, &write).unwrap();
    let digest: Digest = image.digest().parse().unwrap();
    let proof = Proof {
        gpus: vec![ProvenGpu { name: "H200".to_owned(), capability: "9.0".to_owned(), uuid: None }],
        driver: ProvenDriver { cuda: "13.0".to_owned(), library: "libcuda.so.580.159.04".to_owned() },
        verifier: "cudock".to_owned(),
        output: "GPU 0: computes\n".to_owned(),
        time: "2026-11-17T00:00:00Z".to_owned(),
    };
    for statement in [signature_statement(&digest), proof_statement(&digest, &proof)] {
        sign(image.descriptor(), &statement, &keys.signer(), &destination, &write).unwrap();
    }
    // Somebody attaches a signature of another image.
    let stray = signature_statement(&Digest::sha256_of(b"other"));
    sign(image.descriptor(), &stray, &keys.signer(), &destination, &write).unwrap();

    let source = ImageSource::Layout { directory: layout, name: None };
    let options = OpenOptions {
        platform: None,
        client: None,
        sockets: Vec::new(),
        progress: None,
        scratch: directory.path().to_owned(),
    };
    let image = ResolvedImage::resolve(&source, &options).unwrap();
    let found = |key: &PublicKey, kind: Option<&str>| {
        let verified = verify(&image, &digest, key, kind).unwrap();
        assert!(verified.skipped.is_empty(), "{verified:?}");
        verified.statements
    };
    assert_eq!(found(&keys.public(), None).len(), 2);
    assert_eq!(found(&keys.public(), Some(COSIGN_SIGNATURE)).len(), 1);
    let [proven] = found(&keys.public(), Some(PROOF)).try_into().unwrap();
    assert_eq!(serde_json::from_value::<Proof>(proven.predicate).unwrap(), proof);
    assert!(found(&other.public(), None).is_empty());
}

proptest! {
    #[test]
    fn any_bundle_is_read_or_refused(payload in "[A-Za-z0-9+/=]{0,40}", sig in "[A-Za-z0-9+/=]{0,40}") {
        let text = format!(
            r#"{{"mediaType":"x","verificationMaterial":{{}},"dsseEnvelope":{{"payload":"{payload}","payloadType":"application/vnd.in-toto+json","signatures":[{{"sig":"{sig}"}}]}}}}"#
        );
        let key = "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEQ4Zr5WeX6r4iAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==\n-----END PUBLIC KEY-----";
        if let (Ok(bundle), Ok(key)) = (SignatureBundle::parse(text.as_bytes()), PublicKey::from_pem("k", key)) {
            prop_assert!(!matches!(bundle.verify(&key), Ok(Some(_))));
        }
    }
}
