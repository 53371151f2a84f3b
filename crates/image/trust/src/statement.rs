//! In-toto statements about an image: its signature, its provenance, and the proof that it ran on a GPU.

use std::collections::BTreeMap;

use cudock_base::Digest;
use cudock_gpu_test::DeviceReport;
use cudock_lock::LockFile;
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

/// The statement of a signature: nothing beyond the digest.
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

/// The proof that GPUs computed correctly from inside an image. Only a run that verified it creates one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    pub gpus: Vec<ProvenGpu>,
    pub driver: ProvenDriver,
    /// The program that verified it: `cudock 1.0.0, run --verify-gpu`.
    pub verifier: String,
    /// The output of that program.
    pub output: String,
    /// When, in RFC 3339.
    pub time: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProvenGpu {
    pub name: String,
    /// `9.0`
    pub capability: String,
    /// None with drivers before CUDA 9.2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProvenDriver {
    /// The newest CUDA version that it supports.
    pub cuda: String,
    /// The library that was loaded, with the driver's version in its name.
    pub library: String,
}

impl Proof {
    /// The proof in a report; `None` unless there are GPUs and all of them compute.
    pub fn of(report: &DeviceReport, time: String) -> Option<Self> {
        let gpus = report.devices.iter().map(|device| {
            let capability = device.capability?.to_string();
            Some(ProvenGpu { name: device.name.clone()?, capability, uuid: device.uuid.clone() })
        });
        let gpus: Vec<ProvenGpu> = gpus.collect::<Option<_>>()?;
        let driver = ProvenDriver { cuda: report.driver_cuda.to_string(), library: report.library.clone() };
        let verifier = concat!("cudock ", env!("CARGO_PKG_VERSION"), ", run --verify-gpu").to_owned();
        let is_proof = report.all_compute() && !gpus.is_empty();
        is_proof.then(|| Self { gpus, driver, verifier, output: report.text(), time })
    }

    /// The proof that a statement was made about.
    pub(crate) fn in_predicate(predicate: &Value) -> Option<Self> {
        Self::deserialize(predicate).ok().filter(|proof| !proof.gpus.is_empty())
    }
}

pub fn proof_statement(digest: &Digest, proof: &Proof) -> Statement {
    Statement::about(digest, PROOF, serde_json::to_value(proof).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use cudock_facts::version::{Capability, CudaVersion};
    use cudock_gpu_test::{ComputeResult, DeviceInfo};

    use super::*;

    #[test]
    fn a_proof_is_made_only_if_every_gpu_computes() {
        let device = DeviceInfo {
            name: Some("NVIDIA H200".to_owned()),
            capability: Some(Capability::new(9, 0)),
            ..DeviceInfo::default()
        };
        let report = |devices: Vec<DeviceInfo>| DeviceReport {
            driver_cuda: CudaVersion::new(13, 0),
            library: "/usr/lib/libcuda.so.580.159.04".to_owned(),
            devices,
        };
        let proof = |devices| Proof::of(&report(devices), "t".to_owned());
        let made = proof(vec![device.clone()]).unwrap();
        assert_eq!((made.gpus[0].name.as_str(), made.gpus[0].capability.as_str()), ("NVIDIA H200", "9.0"));
        assert_eq!(made.driver.library, "/usr/lib/libcuda.so.580.159.04");
        assert!(made.output.contains("NVIDIA H200, compute capability 9.0: computes"), "{}", made.output);
        let statement = proof_statement(&Digest::sha256_of(b"image"), &made);
        assert_eq!(Proof::in_predicate(&statement.predicate), Some(made));
        assert_eq!(Proof::in_predicate(&json!({"driver": "580", "gpus": [], "time": "t"})), None);
        let wrong = ComputeResult::Wrong { element: 0, expected: 1, found: 2, wrong: 1, of: 2 };
        assert_eq!(proof(vec![device.clone(), DeviceInfo { computes: wrong, ..device }]), None);
        assert_eq!(proof(vec![DeviceInfo::default()]), None);
        assert_eq!(proof(Vec::new()), None);
    }
}
