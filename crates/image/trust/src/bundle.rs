//! Sigstore bundles with a DSSE envelope: a statement, and a signature over it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::statement::Statement;
use crate::{ImageSigner, PublicKey, TrustError};

/// The media type of bundles, and the artifact type of referrers that hold one.
pub(crate) const BUNDLE_TYPE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";
const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";

/// A signed statement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SignatureBundle {
    media_type: String,
    verification_material: VerificationMaterial,
    dsse_envelope: Envelope,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct VerificationMaterial {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    public_key: Option<KeyHint>,
    /// Entries of a transparency log, which a signature by key does not need. sigstore's Python models want the list even
    /// if it is empty.
    #[serde(default)]
    tlog_entries: Vec<Value>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct KeyHint {
    hint: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope {
    payload: String,
    payload_type: String,
    signatures: Vec<EnvelopeSignature>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct EnvelopeSignature {
    sig: String,
}

impl SignatureBundle {
    /// Signs a statement.
    pub fn sign(statement: &Statement, signer: &ImageSigner) -> Result<Self, TrustError> {
        let payload = serde_json::to_vec(statement).map_err(|error| TrustError::Bundle(error.to_string()))?;
        let signature = signer.sign(&pre_authentication(PAYLOAD_TYPE, &payload))?;
        Ok(Self {
            media_type: BUNDLE_TYPE.to_owned(),
            verification_material: VerificationMaterial {
                public_key: Some(KeyHint { hint: signer.public_key().hint() }),
                tlog_entries: Vec::new(),
            },
            dsse_envelope: Envelope {
                payload: STANDARD.encode(payload),
                payload_type: PAYLOAD_TYPE.to_owned(),
                signatures: vec![EnvelopeSignature { sig: STANDARD.encode(signature) }],
            },
        })
    }

    pub fn parse(bytes: &[u8]) -> Result<Self, TrustError> {
        serde_json::from_slice(bytes).map_err(|error| TrustError::Bundle(error.to_string()))
    }

    pub fn to_json(&self) -> Result<Vec<u8>, TrustError> {
        serde_json::to_vec(self).map_err(|error| TrustError::Bundle(error.to_string()))
    }

    /// The statement, if this key signed it.
    pub fn verify(&self, key: &PublicKey) -> Result<Option<Statement>, TrustError> {
        let envelope = &self.dsse_envelope;
        if envelope.payload_type != PAYLOAD_TYPE {
            return Err(TrustError::Bundle("its payload is not an in-toto statement".to_owned()));
        }
        let decode = |text: &str| {
            STANDARD.decode(text).map_err(|_| TrustError::Bundle("it is not valid base64".to_owned()))
        };
        let payload = decode(&envelope.payload)?;
        let signed = pre_authentication(&envelope.payload_type, &payload);
        for signature in &envelope.signatures {
            if key.has_signed(&signed, &decode(&signature.sig)?) {
                let statement = serde_json::from_slice(&payload);
                return statement.map(Some).map_err(|error| TrustError::Bundle(error.to_string()));
            }
        }
        Ok(None)
    }
}

/// The signed bytes (DSSE 1.0): type and payload with their lengths.
fn pre_authentication(payload_type: &str, payload: &[u8]) -> Vec<u8> {
    let head = format!("DSSEv1 {} {payload_type} {} ", payload_type.len(), payload.len());
    [head.as_bytes(), payload].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_signed_has_the_lengths_of_its_parts() {
        assert_eq!(
            pre_authentication("http://example.com/HelloWorld", b"hello world"),
            b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
        );
    }
}
