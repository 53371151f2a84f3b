//! Keys: ECDSA P-256, private ones in PKCS #8 and public ones as cosign writes them.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cudock_base::{FileError, Secret, files};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _, UnparsedPublicKey,
};

use crate::TrustError;

const MAX_KEY: u64 = 64 << 10;
/// DER prefix of a P-256 public key: a `SubjectPublicKeyInfo` (RFC 5480) up to the point.
const SPKI_PREFIX: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86,
    0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];
const POINT: usize = 65;

/// A private key that signs.
pub struct ImageSigner {
    pair: EcdsaKeyPair,
    random: SystemRandom,
}

/// A public key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey {
    /// The uncompressed point.
    point: Vec<u8>,
}

impl ImageSigner {
    /// Reads a private key in PKCS #8.
    pub fn read(path: &Path) -> Result<Self, TrustError> {
        let text = Secret::<String>::new(read(path)?);
        Self::from_pem(&path.display().to_string(), text.expose())
    }

    /// Parses a private key; `name` is for errors.
    pub fn from_pem(name: &str, pem: &str) -> Result<Self, TrustError> {
        let wrong = |reason| TrustError::Key { name: name.to_owned(), reason };
        if pem.contains("BEGIN ENCRYPTED") {
            return Err(wrong("encrypted private keys are not supported; decrypt it first"));
        }
        let der = decode(pem, "PRIVATE KEY").ok_or_else(|| wrong("not a private key in PKCS #8"))?;
        let random = SystemRandom::new();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &der, &random);
        Ok(Self { pair: pair.map_err(|_| wrong("not an ECDSA P-256 key"))?, random })
    }

    pub fn public_key(&self) -> PublicKey {
        PublicKey { point: self.pair.public_key().as_ref().to_vec() }
    }

    pub(crate) fn sign(&self, bytes: &[u8]) -> Result<Vec<u8>, TrustError> {
        let signature = self.pair.sign(&self.random, bytes).map_err(|_| TrustError::Signing)?;
        Ok(signature.as_ref().to_vec())
    }
}

impl PublicKey {
    /// Reads a public key as cosign writes it.
    pub fn read(path: &Path) -> Result<Self, TrustError> {
        Self::from_pem(&path.display().to_string(), &read(path)?)
    }

    /// Parses a public key; `name` is for errors.
    pub fn from_pem(name: &str, pem: &str) -> Result<Self, TrustError> {
        let wrong = |reason| TrustError::Key { name: name.to_owned(), reason };
        let der = decode(pem, "PUBLIC KEY").ok_or_else(|| wrong("not a public key in PEM"))?;
        let point = der.strip_prefix(SPKI_PREFIX.as_slice()).filter(|point| point.len() == POINT);
        let point = point.ok_or_else(|| wrong("not an ECDSA P-256 key"))?;
        Ok(Self { point: point.to_vec() })
    }

    /// The key as cosign writes it.
    pub fn to_pem(&self) -> String {
        let text = STANDARD.encode(self.to_der());
        let lines: Vec<&str> =
            (0..text.len()).step_by(64).filter_map(|at| text.get(at..(at + 64).min(text.len()))).collect();
        format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n", lines.join("\n"))
    }

    /// The hint by which a bundle names the key: the hash of its DER form.
    pub(crate) fn hint(&self) -> String {
        let digest = ring::digest::digest(&ring::digest::SHA256, &self.to_der());
        STANDARD.encode(digest.as_ref())
    }

    pub(crate) fn has_signed(&self, bytes: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, &self.point).verify(bytes, signature).is_ok()
    }

    fn to_der(&self) -> Vec<u8> {
        [SPKI_PREFIX.as_slice(), &self.point].concat()
    }
}

fn read(path: &Path) -> Result<String, TrustError> {
    let missing = || FileError::at("read", path)(std::io::ErrorKind::NotFound.into());
    Ok(files::read_optional(path, MAX_KEY).map_err(FileError::at("read", path))?.ok_or_else(missing)?)
}

/// The bytes of the first PEM block with this label.
fn decode(pem: &str, label: &str) -> Option<Vec<u8>> {
    let (_, rest) = pem.split_once(&format!("-----BEGIN {label}-----"))?;
    let (body, _) = rest.split_once(&format!("-----END {label}-----"))?;
    let body: String = body.chars().filter(|c| !c.is_whitespace()).collect();
    STANDARD.decode(body).ok()
}
