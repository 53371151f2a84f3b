//! Bills of materials and provenance.

use std::collections::BTreeMap;

use cudock_image::Platform;
use cudock_image::write::{Bundle, NewConfig};
use cudock_trust::{attach_documents, cyclonedx, provenance_statement, spdx};

use crate::support::{image, lock};

#[test]
fn every_package_is_in_both_bills_with_its_hash_and_purl() {
    let (lock, image) = (lock(), image());
    let spdx = spdx(&lock, "digits", &image);
    assert_eq!(spdx["spdxVersion"], "SPDX-2.3");
    let packages = spdx["packages"].as_array().unwrap();
    assert_eq!(packages.len(), 3);
    let id = |index: usize| packages[index]["SPDXID"].as_str().unwrap().to_owned();
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
    for index in 0..3 {
        assert!(id(index).strip_prefix("SPDXRef-").unwrap().chars().all(allowed), "{}", id(index));
        assert!(spdx["relationships"].to_string().contains(&id(index)));
    }
    let purl = "pkg:deb/debian/libstdc%2B%2B6@14.2.0-19?arch=amd64&distro=trixie";
    assert_eq!(packages[1]["externalRefs"][0]["referenceLocator"], purl);
    let bom = cyclonedx(&lock, "digits", &image);
    assert_eq!((bom["bomFormat"].as_str(), bom["specVersion"].as_str()), (Some("CycloneDX"), Some("1.6")));
    assert_eq!(bom["components"][0]["purl"], purl);
    assert_eq!(bom["components"][1]["purl"], "pkg:pypi/numpy@2.1.0%2Bcu?file_name=n.whl");
    assert_eq!(bom["components"][1]["hashes"][0]["content"], "0".repeat(64));
}

#[test]
fn provenance_names_the_image_the_lock_and_what_is_in_it() {
    let (lock, image) = (lock(), image());
    let digest = lock.digest().unwrap();
    let statement = provenance_statement(&image, &lock, &digest);
    assert!(statement.is_about(&image));
    assert!(!statement.is_about(&digest));
    let dependencies = statement.predicate["buildDefinition"]["resolvedDependencies"].as_array().unwrap();
    assert_eq!(dependencies.len(), 4);
    assert_eq!(dependencies[0]["uri"], "file:cudock.lock");
    assert_eq!(dependencies[0]["digest"]["sha256"], digest.hex());
}

#[test]
fn the_same_lock_gives_the_same_documents() {
    let make = || {
        let lock = lock();
        let digest = lock.digest().unwrap();
        let check = serde_json::json!({"schema": 1});
        let mut image = Bundle::image(&NewConfig::new(Platform::linux("amd64")), &[], &BTreeMap::new());
        attach_documents(&mut image, &lock, &digest, "digits", Some(&check)).unwrap()
    };
    assert_eq!(make(), make());
    let types: Vec<String> = make().into_iter().filter_map(|one| one.artifact_type).collect();
    assert_eq!(
        types,
        [
            "application/spdx+json",
            "application/vnd.cyclonedx+json",
            "application/vnd.in-toto+json",
            "application/vnd.cudock.check.v1+json"
        ]
    );
}
