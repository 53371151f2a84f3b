//! In-toto statements about an image: its signature, its provenance, and the proof that it ran on a GPU.

use std::collections::BTreeMap;

use cudock_base::Digest;
use cudock_lock::LockFile;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The name of a subject whose digest says it all (in-toto). sigstore's Python client wants one.
const NO_NAME: &str = "_";
const STATEMENT: &str = "https://in-toto.io/Statement/v1";
/// The predicate of an image signature of cosign 3.
pub const COSIGN_SIGNATURE: &str = "https://sigstore.dev/cosign/sign/v1";
pub const PROVENANCE: &str = "https://slsa.dev/provenance/v1";
/// The predicate of a proof.
pub const PROOF: &str = "urn:cudock:proof:1";

/// A statement about images.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Statement {
    #[serde(rename = "_type")]
    kind: String,
    subject: Vec<StatementSubject>,
    pub predicate_type: String,
    pub predicate: Value,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct StatementSubject {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    digest: BTreeMap<String, String>,
}

impl Statement {
    /// A statement about the image with this digest.
    pub fn about(digest: &Digest, predicate_type: &str, predicate: Value) -> Self {
        let digest = BTreeMap::from([(digest.algorithm().name().to_owned(), digest.hex().to_owned())]);
        Self {
            kind: STATEMENT.to_owned(),
            subject: vec![StatementSubject { name: Some(NO_NAME.to_owned()), digest }],
            predicate_type: predicate_type.to_owned(),
            predicate,
        }
    }

    /// Whether it is about the image with this digest.
    pub fn is_about(&self, digest: &Digest) -> bool {
        let is_this = |subject: &StatementSubject| {
            subject.digest.get(digest.algorithm().name()).is_some_and(|hex| hex == digest.hex())
        };
        self.kind == STATEMENT && self.subject.iter().any(is_this)
    }
}

/// What a signature states: nothing beyond the digest.
pub fn signature_statement(digest: &Digest) -> Statement {
    Statement::about(digest, COSIGN_SIGNATURE, json!({}))
}

/// How an image was built: from which lock, and so from which packages.
pub fn provenance_statement(digest: &Digest, lock: &LockFile, lock_digest: &Digest) -> Statement {
    let dependency = |uri: String, digest: &Digest| json!({"uri": uri, "digest": {digest.algorithm().name(): digest.hex()}});
    let debs = lock.debs.iter().map(|deb| dependency(super::sbom::deb_purl(lock, deb), &deb.digest));
    let wheels = lock.wheels.iter().map(|wheel| dependency(super::sbom::wheel_purl(wheel), &wheel.digest));
    let inputs = lock.inputs.iter().map(|(name, digest)| dependency(format!("file:{name}"), digest));
    let own = dependency(format!("file:{}", cudock_lock::LOCK_NAME), lock_digest);
    Statement::about(
        digest,
        PROVENANCE,
        json!({
            "buildDefinition": {
                "buildType": "urn:cudock:build:1",
                "externalParameters": {"target": lock.target},
                "resolvedDependencies":
                    std::iter::once(own).chain(inputs).chain(debs).chain(wheels).collect::<Vec<_>>(),
            },
            "runDetails": {"builder": {"id": concat!("urn:cudock:", env!("CARGO_PKG_VERSION"))}},
        }),
    )
}

/// That an image ran on a GPU and computed correctly.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Proof {
    pub gpus: Vec<ProvenGpu>,
    /// The driver, as the verification names it.
    pub driver: String,
    /// How it was verified, such as `run --verify-gpu`.
    pub verification: String,
    /// When, in RFC 3339.
    pub time: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProvenGpu {
    pub name: String,
    /// `9.0`
    pub capability: String,
}

impl Proof {
    /// Reads what `run --verify-gpu` printed; `None` unless there are GPUs and all of them compute.
    pub fn read(output: &str, time: String) -> Option<Self> {
        let driver = output.lines().find_map(|line| line.strip_prefix("driver for "))?.to_owned();
        let lines = output.lines().filter_map(|line| line.strip_prefix("GPU ")?.split_once(": "));
        let gpus = lines.map(|(_, gpu)| {
            let (name, rest) = gpu.split_once(", compute capability ")?;
            let capability = rest.split([',', ':']).next().unwrap_or_default().to_owned();
            let (_, after) = rest.split_once(": computes")?;
            let is_right = after.is_empty() || after.starts_with(',');
            is_right.then(|| ProvenGpu { name: name.to_owned(), capability })
        });
        let gpus: Vec<ProvenGpu> = gpus.collect::<Option<_>>()?;
        let verification = "run --verify-gpu".to_owned();
        (!gpus.is_empty()).then_some(Self { gpus, driver, verification, time })
    }
}

pub fn proof_statement(digest: &Digest, proof: &Proof) -> Statement {
    Statement::about(digest, PROOF, serde_json::to_value(proof).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_is_read_only_if_every_gpu_computes() {
        let output = "driver for CUDA 13.0, /usr/lib/libcuda.so.580.159.04\nGPU 0: NVIDIA H200, compute capability 9.0, \
                      139.2 GiB, 0000:01:00.0: computes, kernel in 3.0 µs\n";
        let proof = Proof::read(output, "t".to_owned()).unwrap();
        assert_eq!(proof.gpus, [ProvenGpu { name: "NVIDIA H200".to_owned(), capability: "9.0".to_owned() }]);
        assert_eq!(proof.driver, "CUDA 13.0, /usr/lib/libcuda.so.580.159.04");
        let wrong =
            format!("{output}GPU 1: T4, compute capability 7.5: computes wrong results: 1 of 2 numbers\n");
        assert_eq!(Proof::read(&wrong, String::new()), None);
        assert_eq!(Proof::read("driver for CUDA 13.0, x\n", String::new()), None);
        assert_eq!(Proof::read("", String::new()), None);
    }
}
