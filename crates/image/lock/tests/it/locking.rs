//! What is locked, and when a lock is out of date.

use std::fs;

use cudock_facts::Facts;
use cudock_lock::{LayerGroup, LockFile, LockState, Upgrade, locked, stale_reasons};

use crate::support::{Fixture, deb_bytes};

const WHEELS: [&str; 4] = [
    "numpy-2.1.0-cp313-cp313-manylinux_2_28_x86_64.whl",
    "numpy-2.1.0-cp313-cp313-win_amd64.whl",
    "numpy-2.1.0-cp312-cp312-manylinux_2_28_x86_64.whl",
    "numpy-2.0.0-cp313-cp313-manylinux_2_28_x86_64.whl",
];

pub(crate) fn python_project() -> Option<Fixture> {
    let fixture =
        Fixture::new("requirements = \"requirements.txt\"\nentrypoint = [\"python3\", \"-m\", \"app\"]\n")?;
    fixture.write("project/requirements.txt", "-c limits.txt\nnumpy\n");
    fixture.write("project/limits.txt", "numpy<3\n");
    fixture.index("numpy", &WHEELS);
    fixture.uv(&[("numpy", "2.1.0")]);
    Some(fixture)
}

#[test]
fn a_project_is_locked_with_its_wheels_and_the_closure_of_its_packages() {
    let Some(fixture) = python_project() else { return };
    let report = fixture.lock(&Upgrade::No).unwrap();
    assert_eq!(report.state, LockState::Written);
    let lock = LockFile::read(&fixture.lock_path()).unwrap().unwrap();
    assert_eq!(lock, report.lock);
    let [wheel] = lock.wheels.as_slice() else { panic!("{:?}", lock.wheels) };
    assert_eq!((wheel.file.as_str(), wheel.size), (WHEELS[0], WHEELS[0].len() as u64 * 10));
    assert_eq!(
        (wheel.path.as_str(), wheel.reason.as_str()),
        (format!("files/{}", WHEELS[0]).as_str(), "requirements.txt")
    );
    assert_eq!(wheel.group, LayerGroup::Dependencies);
    let debs: Vec<(&str, LayerGroup)> = lock.debs.iter().map(|deb| (deb.name.as_str(), deb.group)).collect();
    let (system, python) = (LayerGroup::System, LayerGroup::Python);
    assert_eq!(
        debs,
        [
            ("ca-certificates", system),
            ("gcc-14-base", system),
            ("libc6", system),
            ("libgcc-s1", system),
            ("libpython3-stdlib", python),
            ("libstdc++6", system),
            ("python3", python)
        ]
    );
    assert_eq!((lock.target.python.as_deref(), lock.target.cuda.as_deref()), (Some("3.13"), None));
    let calls = fixture.read("bin/calls");
    assert!(calls.contains("--python-version 3.13 --python-platform x86_64-manylinux_2_40"), "{calls}");

    let fetcher = fixture.fetcher();
    let path = fetcher.deb(&lock, &lock.debs[2]).unwrap();
    assert_eq!(fs::read(path).unwrap(), deb_bytes("libc6"));
    assert_eq!(fs::metadata(fetcher.wheel(wheel).unwrap()).unwrap().len(), wheel.size);
}

#[test]
fn locking_again_changes_nothing_and_asks_nobody() {
    let Some(fixture) = python_project() else { return };
    fixture.lock(&Upgrade::No).unwrap();
    let (text, requests) = (fixture.read("project/cudock.lock"), fixture.server.requests().len());
    assert_eq!(fixture.lock(&Upgrade::No).unwrap().state, LockState::Current);
    assert_eq!(fixture.server.requests().len(), requests);
    assert_eq!(fixture.lock(&Upgrade::All).unwrap().state, LockState::Current);
    assert_eq!(fixture.read("project/cudock.lock"), text);
    // uv was given the locked versions.
    assert_eq!(fixture.read("bin/before"), "numpy==2.1.0\n");
    assert!(fixture.read("bin/calls").lines().last().unwrap().contains("--upgrade"));
}

#[test]
fn an_upgrade_reports_what_changed() {
    let Some(fixture) = python_project() else { return };
    fixture.lock(&Upgrade::No).unwrap();
    fixture.uv(&[("numpy", "2.0.0")]);
    let report = fixture.lock(&Upgrade::Packages(vec!["numpy".to_owned()])).unwrap();
    assert!(report.text().contains("  ~ numpy 2.1.0 -> 2.0.0\n"), "{}", report.text());
    assert!(fixture.read("bin/calls").contains("--upgrade-package numpy"));
}

#[test]
fn a_lock_is_out_of_date_when_what_it_was_made_from_changes() {
    let Some(fixture) = python_project() else { return };
    let facts = Facts::embedded();
    let missing = locked(&fixture.project(), &facts).unwrap_err().to_string();
    assert!(missing.starts_with("no cudock.lock in "), "{missing}");
    let lock = fixture.lock(&Upgrade::No).unwrap().lock;
    let reasons = || stale_reasons(&fixture.project(), &facts, &lock).unwrap();
    assert_eq!(reasons(), Vec::<String>::new());
    fixture.write("project/limits.txt", "numpy<2\n");
    assert_eq!(reasons(), ["limits.txt has changed"]);
    fixture.write("project/requirements.txt", "numpy\n");
    assert_eq!(reasons(), ["requirements.txt has changed", "limits.txt is not used any more"]);
    let text = locked(&fixture.project(), &facts).unwrap_err().to_string();
    assert!(text.starts_with("cudock.lock is out of date: "), "{text}");
    // What only the image depends on does not matter.
    fixture.write("project/requirements.txt", "-c limits.txt\nnumpy\n");
    fixture.write("project/limits.txt", "numpy<3\n");
    let toml = fixture.read("project/cudock.toml");
    fixture.write("project/cudock.toml", &format!("{toml}user = \"1000\"\n"));
    assert_eq!(reasons(), Vec::<String>::new());
    fixture.write("project/cudock.toml", &format!("{toml}packages = \"unused\"\n"));
    assert_eq!(reasons(), ["[image] in cudock.toml has changed"]);
}

#[test]
fn a_newer_version_of_an_update_is_chosen() {
    let Some(fixture) = python_project() else { return };
    let update = [("libc6", "2.41-12+deb13u1", "libgcc-s1")];
    fixture.publish("debian-security", "trixie-security", &update, "Fri, 01 Jan 2100 00:00:00 UTC");
    let lock = fixture.lock(&Upgrade::No).unwrap().lock;
    let libc = lock.debs.iter().find(|deb| deb.name == "libc6").unwrap();
    assert_eq!((libc.version.as_str(), libc.archive.as_str()), ("2.41-12+deb13u1", "debian-security"));
    fixture.fetcher().deb(&lock, libc).unwrap();
}

#[test]
fn a_program_is_locked_with_the_packages_of_its_libraries() {
    let Some(fixture) = Fixture::new("program = \"app\"\n") else { return };
    fs::copy(std::env::current_exe().unwrap(), fixture.root.path().join("project/app")).unwrap();
    let lock = fixture.lock(&Upgrade::No).unwrap().lock;
    let libc = lock.debs.iter().find(|deb| deb.name == "libc6").unwrap();
    assert_eq!(libc.reason, "every program");
    assert_eq!((lock.target.python, lock.wheels.len()), (None, 0));
}
