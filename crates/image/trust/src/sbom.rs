//! Bills of materials from a lock: SPDX 2.3 and `CycloneDX` 1.6.
//!
//! Both are written by hand: of each format a handful of fields is needed, and the crates for them bring dozens of
//! packages.

use cudock_base::Digest;
use cudock_base::bug::Parts;
use cudock_lock::{LockFile, LockedDeb, LockedWheel};
use serde_json::{Value, json};

/// SPDX requires a time; this one is the same for the same lock.
const CREATED: &str = "1970-01-01T00:00:00Z";

struct Component<'a> {
    name: &'a str,
    version: &'a str,
    file: &'a str,
    purl: String,
    digest: &'a Digest,
    kind: &'static str,
}

fn components(lock: &LockFile) -> Vec<Component<'_>> {
    let debs = lock.debs.iter().map(|deb| Component {
        name: &deb.name,
        version: &deb.version,
        file: &deb.file,
        purl: deb_purl(lock, deb),
        digest: &deb.digest,
        kind: "deb",
    });
    let wheels = lock.wheels.iter().map(|wheel| Component {
        name: &wheel.name,
        version: &wheel.version,
        file: &wheel.file,
        purl: wheel_purl(wheel),
        digest: &wheel.digest,
        kind: "pypi",
    });
    debs.chain(wheels).collect()
}

/// SPDX 2.3 in JSON, for an image of this name and digest.
pub fn spdx(lock: &LockFile, name: &str, image: &Digest) -> Value {
    let components = components(lock);
    let id = |component: &Component<'_>| {
        let safe = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
        let name: String = component.name.chars().map(safe).collect();
        // Two names may become the same; their hashes do not.
        let hash = component.digest.hex().part(..12);
        format!("SPDXRef-{}-{name}-{hash}", component.kind)
    };
    let checksum = |digest: &Digest| json!([{"algorithm": "SHA256", "checksumValue": digest.hex()}]);
    let packages = components.iter().map(|component| {
        json!({
            "SPDXID": id(component), "name": component.name, "versionInfo": component.version,
            "packageFileName": component.file, "downloadLocation": "NOASSERTION", "filesAnalyzed": false,
            "licenseConcluded": "NOASSERTION", "licenseDeclared": "NOASSERTION", "copyrightText": "NOASSERTION",
            "checksums": checksum(component.digest),
            "externalRefs": [{
                "referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": component.purl,
            }],
        })
    });
    let own = json!({
        "SPDXID": "SPDXRef-image", "name": name, "versionInfo": image.to_string(), "downloadLocation": "NOASSERTION",
        "filesAnalyzed": false, "licenseConcluded": "NOASSERTION", "licenseDeclared": "NOASSERTION",
        "copyrightText": "NOASSERTION", "primaryPackagePurpose": "CONTAINER", "checksums": checksum(image),
    });
    let contains = components.iter().map(|component| {
        json!({"spdxElementId": "SPDXRef-image", "relationshipType": "CONTAINS", "relatedSpdxElement": id(component)})
    });
    let describes = json!({"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": "SPDXRef-image"});
    json!({
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": name,
        "documentNamespace": format!("urn:cudock:spdx:{}", image.hex()),
        "creationInfo": {
            "created": CREATED, "creators": [concat!("Tool: cudock-", env!("CARGO_PKG_VERSION"))],
        },
        "packages": std::iter::once(own).chain(packages).collect::<Vec<_>>(),
        "relationships": std::iter::once(describes).chain(contains).collect::<Vec<_>>(),
    })
}

/// `CycloneDX` 1.6 in JSON, for an image of this name and digest.
pub fn cyclonedx(lock: &LockFile, name: &str, image: &Digest) -> Value {
    let components = components(lock);
    let hashes = |digest: &Digest| json!([{"alg": "SHA-256", "content": digest.hex()}]);
    let listed = components.iter().map(|component| {
        json!({
            "type": "library", "bom-ref": component.purl, "name": component.name, "version": component.version,
            "purl": component.purl, "hashes": hashes(component.digest),
        })
    });
    let refs: Vec<&str> = components.iter().map(|component| component.purl.as_str()).collect();
    json!({
        "bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
        "metadata": {
            "component": {
                "type": "container", "bom-ref": image.to_string(), "name": name, "version": image.to_string(),
                "hashes": hashes(image),
            },
            "tools": {"components": [
                {"type": "application", "name": "cudock", "version": env!("CARGO_PKG_VERSION")},
            ]},
        },
        "components": listed.collect::<Vec<_>>(),
        "dependencies": [{"ref": image.to_string(), "dependsOn": refs}],
    })
}

pub(crate) fn deb_purl(lock: &LockFile, deb: &LockedDeb) -> String {
    let release = lock.debian.as_ref();
    let distribution = release.map_or("debian", |release| release.distribution.as_str());
    let suite = release.map_or("", |release| release.suite.as_str());
    let arch = lock.target.arch.oci_name();
    let [name, version] = [&deb.name, &deb.version].map(|text| encode(text));
    format!("pkg:deb/{distribution}/{name}@{version}?arch={arch}&distro={suite}")
}

pub(crate) fn wheel_purl(wheel: &LockedWheel) -> String {
    format!("pkg:pypi/{}@{}?file_name={}", wheel.name, encode(&wheel.version), encode(&wheel.file))
}

fn encode(text: &str) -> String {
    cudock_base::text::percent::encode(text)
}
