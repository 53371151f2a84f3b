//! Digests of content, as in the OCI image specification.

use std::fmt::{self, Write as _};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256, Sha512};
use thiserror::Error;

/// The hash functions that registries and package indexes use. Others are rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Algorithm {
    /// SHA-256, which nearly every image and wheel uses.
    Sha256,
    /// SHA-512, registered by OCI and rarely used.
    Sha512,
}

impl Algorithm {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sha256 => "sha256",
            Self::Sha512 => "sha512",
        }
    }

    const fn hex_length(self) -> usize {
        match self {
            Self::Sha256 => 64,
            Self::Sha512 => 128,
        }
    }
}

/// A digest such as `sha256:…`: a known algorithm and the right number of lower-case hexadecimal digits.
///
/// Other values cannot be constructed, so a digest is safe as a file name and as part of a URL.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest {
    algorithm: Algorithm,
    hex: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DigestError {
    #[error("digest `{0}` has no algorithm before its digits, as in `sha256:…`")]
    NoAlgorithm(String),
    #[error("digest algorithm `{0}` is not supported, only sha256 and sha512 are")]
    UnknownAlgorithm(String),
    #[error("digest `{text}` does not have {wanted} lower-case hexadecimal digits after its colon")]
    Digits { text: String, wanted: usize },
}

impl Digest {
    pub fn sha256_of(bytes: &[u8]) -> Self {
        Self::of(Algorithm::Sha256, bytes)
    }

    pub fn of(algorithm: Algorithm, bytes: &[u8]) -> Self {
        let mut hasher = Hasher::new(algorithm);
        hasher.update(bytes);
        hasher.digest()
    }

    pub const fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The digits after the colon.
    pub fn hex(&self) -> &str {
        &self.hex
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.algorithm.name(), self.hex)
    }
}

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        let shown = || crate::text::truncate(text, 160);
        let (name, hex) = text.split_once(':').ok_or_else(|| DigestError::NoAlgorithm(shown()))?;
        let algorithm = match name {
            "sha256" => Algorithm::Sha256,
            "sha512" => Algorithm::Sha512,
            other => return Err(DigestError::UnknownAlgorithm(crate::text::truncate(other, 40))),
        };
        let wanted = algorithm.hex_length();
        if hex.len() != wanted || !hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(DigestError::Digits { text: shown(), wanted });
        }
        Ok(Self { algorithm, hex: hex.to_owned() })
    }
}

impl TryFrom<String> for Digest {
    type Error = DigestError;

    fn try_from(text: String) -> Result<Self, DigestError> {
        text.parse()
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}

/// An incremental hash, to verify bytes while they are read.
#[derive(Clone)]
pub enum Hasher {
    Sha256(Sha256),
    Sha512(Sha512),
}

impl Hasher {
    pub fn new(algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::Sha256 => Self::Sha256(Sha256::new()),
            Algorithm::Sha512 => Self::Sha512(Sha512::new()),
        }
    }

    pub fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Sha256(hash) => hash.update(bytes),
            Self::Sha512(hash) => hash.update(bytes),
        }
    }

    /// The digest of the bytes so far; more may follow.
    pub fn digest(&self) -> Digest {
        let (algorithm, bytes): (_, Vec<u8>) = match self {
            Self::Sha256(hash) => (Algorithm::Sha256, hash.clone().finalize().to_vec()),
            Self::Sha512(hash) => (Algorithm::Sha512, hash.clone().finalize().to_vec()),
        };
        let mut hex = String::with_capacity(bytes.len() * 2);
        for byte in bytes {
            // Writing to a String cannot fail.
            let _ = write!(hex, "{byte:02x}");
        }
        Digest { algorithm, hex }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn a_digest_reads_back_as_it_is_written() {
        assert_eq!(Digest::sha256_of(b"").to_string(), EMPTY);
        assert_eq!(EMPTY.parse::<Digest>().unwrap(), Digest::sha256_of(b""));
        let long = Digest::of(Algorithm::Sha512, b"a");
        assert_eq!(long.hex().len(), 128);
        assert_eq!(long.to_string().parse::<Digest>().unwrap(), long);
    }

    #[test]
    fn an_invalid_digest_is_rejected() {
        for wrong in [
            EMPTY.to_uppercase(),
            EMPTY.replace("e3b0", "E3b0"),
            EMPTY.replace("sha256", "sha512"),
            EMPTY.replace("sha256:", ""),
            EMPTY.replace("sha256", "md5"),
            format!("{EMPTY}0"),
            EMPTY.replace("e3b0", "../x"),
            String::new(),
        ] {
            assert!(wrong.parse::<Digest>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_digest_is_text_in_json() {
        let json = format!("\"{EMPTY}\"");
        assert_eq!(serde_json::from_str::<Digest>(&json).unwrap(), Digest::sha256_of(b""));
        assert_eq!(serde_json::to_string(&Digest::sha256_of(b"")).unwrap(), json);
        assert!(serde_json::from_str::<Digest>("\"sha256:12\"").is_err());
    }
}
