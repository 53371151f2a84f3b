//! The certificate of a service principal, and the JWT that is signed with its key.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use cudock_base::{Secret, Timestamp, files};
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::{RSA_PSS_SHA256, RsaKeyPair};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde::Serialize;
use serde_json::json;

use super::SignInError;
use crate::guid;

/// Maximum size of a file with a key and a chain of certificates.
const MAX_FILE: u64 = 1 << 20;
/// Lifetime of an assertion in seconds; 10 minutes is the maximum.
const LIFETIME: u64 = 600;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ClientCertificate {
    /// A PEM file with the key and the certificate.
    pub(super) path: PathBuf,
    /// Whether the chain is sent, for applications that trust a subject name and issuer.
    pub(super) send_chain: bool,
}

#[derive(Serialize)]
struct JwtHeader {
    alg: &'static str,
    typ: &'static str,
    #[serde(rename = "x5t#S256")]
    thumbprint: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    x5c: Option<Vec<String>>,
}

struct SigningKey {
    key: RsaKeyPair,
    /// The certificates; that of the key is the first.
    chain: Vec<CertificateDer<'static>>,
}

impl ClientCertificate {
    /// A JWT for the token endpoint, signed with PS256.
    pub(super) fn assertion(
        &self,
        client_id: &str,
        endpoint: &str,
        now: Timestamp,
    ) -> Result<Secret, SignInError> {
        let SigningKey { key, chain } = read(&self.path)?;
        let leaf = chain.first().map(AsRef::as_ref).unwrap_or_default();
        let base64 = |certificate: &CertificateDer<'_>| STANDARD.encode(certificate);
        let header = JwtHeader {
            alg: "PS256",
            typ: "JWT",
            thumbprint: URL_SAFE_NO_PAD.encode(digest(&SHA256, leaf)),
            x5c: self.send_chain.then(|| chain.iter().map(base64).collect()),
        };
        let seconds = now.millis().unwrap_or_default() / 1000;
        let claims = json!({
            "aud": endpoint,
            "iss": client_id,
            "sub": client_id,
            "jti": guid::random(),
            "nbf": seconds,
            "exp": seconds + LIFETIME,
        });
        let part = |json: String| URL_SAFE_NO_PAD.encode(json);
        let message = format!("{}.{}", part(json!(header).to_string()), part(claims.to_string()));
        let mut signature = vec![0; key.public().modulus_len()];
        key.sign(&RSA_PSS_SHA256, &SystemRandom::new(), message.as_bytes(), &mut signature)
            .map_err(|_| unusable(&self.path, "the key cannot sign"))?;
        Ok(Secret::new(format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))))
    }
}

fn unusable(path: &Path, reason: &'static str) -> SignInError {
    SignInError::Certificate { path: path.to_owned(), reason }
}

fn read(path: &Path) -> Result<SigningKey, SignInError> {
    let text = match files::read_optional(path, MAX_FILE) {
        Ok(Some(text)) => text,
        Ok(None) => return Err(unusable(path, "no such file")),
        // A PKCS#12 file is not text.
        Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
            return Err(unusable(path, "not PEM"));
        }
        Err(error) => return Err(SignInError::File { path: path.to_owned(), reason: error.to_string() }),
    };
    let key = match PrivateKeyDer::from_pem_slice(text.as_bytes()) {
        Ok(PrivateKeyDer::Pkcs8(key)) => RsaKeyPair::from_pkcs8(key.secret_pkcs8_der()),
        Ok(PrivateKeyDer::Pkcs1(key)) => RsaKeyPair::from_der(key.secret_pkcs1_der()),
        Ok(_) => return Err(unusable(path, "the key is not an RSA key")),
        Err(_) if text.contains("ENCRYPTED PRIVATE KEY") => {
            return Err(unusable(path, "the key is encrypted"));
        }
        Err(_) => return Err(unusable(path, "no private key")),
    };
    let key = key.map_err(|_| unusable(path, "the key is not an RSA key of 2048 to 4096 bits"))?;
    let mut chain: Vec<_> = CertificateDer::pem_slice_iter(text.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(|_| unusable(path, "a certificate cannot be read"))?;
    // Files have certificates in any order. The right one holds the public key.
    let public: &[u8] = key.public().as_ref();
    let leaf =
        chain.iter().position(|certificate| certificate.windows(public.len()).any(|bytes| bytes == public));
    let leaf = leaf.ok_or_else(|| unusable(path, "no certificate belongs to the key"))?;
    chain.get_mut(..=leaf).unwrap_or_default().rotate_right(1);
    Ok(SigningKey { key, chain })
}
