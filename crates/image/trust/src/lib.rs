//! Evidence that an image is trustworthy: bills of materials, provenance, proofs, and signatures over them.
//!
//! Signatures are sigstore bundles (version 0.3) over in-toto statements, as cosign 3 writes them, and are attached to the
//! image as OCI referrers. Keys are ECDSA P-256 in PEM. Documents have no time of their own, so that the same lock gives
//! the same bytes; signatures differ each time.

mod access;
mod bundle;
mod error;
mod image;
mod key;
mod sbom;
mod skipped;
mod statement;

pub use access::TrustedImage;
pub use bundle::SignatureBundle;
pub use error::TrustError;
pub use image::{
    ImageVerifyReport, SignReport, Verified, VerifiedStatement, attach_documents, sign, signed_artifact,
    verify,
};
pub use key::{ImageSigner, PublicKey};
pub use sbom::{cyclonedx, spdx};
pub use skipped::SkippedReferrer;
pub use statement::{
    COSIGN_SIGNATURE, PROOF, PROVENANCE, Proof, ProvenDriver, ProvenGpu, Statement, proof_statement,
    provenance_statement, signature_statement,
};
