//! Packages that are as wrong as a test wants them.

use cudock_build::unpack::{Discard, Limits, PackageKind, PackageList, UnpackError, read_package};
pub(crate) use cudock_testkit::packages::{archive, deb};

pub(crate) const INFO: &str = "pkg-1.0.dist-info";

/// A wheel with these members, and a RECORD of them.
pub(crate) fn wheel(members: &[(&str, &[u8])]) -> Vec<u8> {
    cudock_testkit::packages::wheel(INFO, members)
}

pub(crate) fn read(kind: PackageKind, bytes: &[u8]) -> Result<PackageList, UnpackError> {
    let limits = Limits { entries: 1000, bytes: 1 << 20 };
    read_package(kind, "pkg-1.0-py3-none-any.whl", bytes, &mut Discard::new(limits))
}

/// The message of a refused package.
#[track_caller]
pub(crate) fn refused(kind: PackageKind, bytes: &[u8]) -> String {
    match read(kind, bytes) {
        Err(UnpackError::Refused(reason)) => reason,
        other => panic!("not refused: {other:?}"),
    }
}
