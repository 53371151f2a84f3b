//! Packages that are as wrong as a test wants them.

use std::io::Write;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cudock_build::unpack::{Discard, Limits, PackageKind, PackageList, UnpackError, read_package};
use sha2::{Digest as _, Sha256};
use zip::write::SimpleFileOptions;

pub(crate) const INFO: &str = "pkg-1.0.dist-info";

/// A wheel with these members, and a RECORD of them.
pub(crate) fn wheel(members: &[(&str, &[u8])]) -> Vec<u8> {
    let hash = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(Sha256::digest(bytes));
    let record: String = members
        .iter()
        .map(|(path, bytes)| format!("\"{path}\",sha256={},{}\n", hash(bytes), bytes.len()))
        .chain([format!("{INFO}/RECORD,,\n")])
        .collect();
    let path = format!("{INFO}/RECORD");
    let all: Vec<(&str, &[u8])> =
        members.iter().copied().chain([(path.as_str(), record.as_bytes())]).collect();
    archive(&all)
}

/// A zip file with these members, and nothing else.
pub(crate) fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (path, bytes) in members {
        zip.start_file(*path, SimpleFileOptions::default().unix_permissions(0o644)).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// A Debian package with this data.
pub(crate) fn deb(data: &[u8]) -> Vec<u8> {
    let mut bytes = b"!<arch>\n".to_vec();
    for (name, content) in
        [("debian-binary", b"2.0\n".as_slice()), ("control.tar", &[0; 1024]), ("data.tar", data)]
    {
        bytes.extend(
            format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, 0, 100_644, content.len()).as_bytes(),
        );
        bytes.extend(content);
        if content.len() % 2 == 1 {
            bytes.push(b'\n');
        }
    }
    bytes
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
