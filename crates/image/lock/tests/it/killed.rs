//! Locking that is killed at random moments.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use cudock_base::Environment;
use cudock_facts::Facts;
use cudock_http::NoProgress;
use cudock_lock::{LOCK_NAME, PackageFetcher, Upgrade};
use cudock_project::Project;
use cudock_testkit::process;
use cudock_testkit::random::cases;

use crate::locking::python_project;
use crate::support::Fixture;

/// What the process that is killed gets of its environment.
const VARIABLES: [&str; 4] = ["PATH", "PIP_INDEX_URL", "CUDOCK_CACHE", "CUDOCK_KEYRING"];
const ROOT: &str = "CUDOCK_TEST_DIRECTORY";

/// The names below a directory.
fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_lock_is_whole_or_absent_and_nothing_is_left_of_a_killed_one() {
    let test = cudock_testkit::test_name!();
    if process::is_reentered(test) {
        let value = |name: &str| std::env::var(name).unwrap();
        let environment = Environment::of(value(ROOT), VARIABLES.map(|name| (name, value(name))));
        let fetcher = PackageFetcher::new(&environment, Arc::new(NoProgress)).unwrap();
        let project = Project::open(&Path::new(&value(ROOT)).join("project")).unwrap();
        cudock_lock::lock(&project, &Facts::embedded(), &environment, &fetcher, &Upgrade::No).unwrap();
        return;
    }
    let Some(fixture) = python_project() else { return };
    if cudock_testkit::require_program("setpriv").is_none() {
        return;
    }
    // uv takes a while, longer in the rounds in which the process is killed. What it starts ends with it.
    let path = fixture.root.path().join("bin/uv");
    let script = fs::read_to_string(&path).unwrap();
    fs::write(
        &path,
        script.replace(
            "cp \"$out\" before",
            "setpriv --pdeathsig KILL sleep $(cat seconds)\ncp \"$out\" before",
        ),
    )
    .unwrap();
    fixture.write("bin/seconds", "0.1");
    let start = |fixture: &Fixture| {
        let mut command = process::reenter(test);
        let environment = fixture.environment();
        for name in VARIABLES {
            command.env(name, environment.get(name).unwrap());
        }
        command.env(ROOT, fixture.root.path());
        command
    };
    let began = Instant::now();
    let output = start(&fixture).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let whole = began.elapsed();
    let (lock, project) = (fixture.lock_path(), fixture.root.path().join("project"));
    let expected = fs::read_to_string(&lock).unwrap();
    let scratch = fixture.root.path().join("cache/packages/scratch");
    process::kill_at_random(
        cases(5),
        whole,
        |round| {
            let _ = fs::remove_file(&lock);
            // Half of the rounds begin with an empty cache.
            if round.is_multiple_of(2) {
                fs::remove_dir_all(fixture.root.path().join("cache")).unwrap();
            }
            fixture.write("bin/seconds", if round % 3 == 0 { "1000" } else { "0.1" });
            start(&fixture)
        },
        |round| {
            fixture.write("bin/seconds", "0.1");
            if let Ok(found) = fs::read_to_string(&lock) {
                assert_eq!(found, expected, "round {round}");
            }
            let _ = fs::remove_file(&lock);
            assert!(start(&fixture).output().unwrap().status.success(), "round {round}");
            assert_eq!(fs::read_to_string(&lock).unwrap(), expected, "round {round}");
            assert_eq!(
                names(&project),
                [LOCK_NAME, "cudock.toml", "limits.txt", "requirements.txt"],
                "round {round}"
            );
            assert_eq!(names(&scratch), Vec::<String>::new(), "round {round}");
        },
    );
    // What uv is doing ends with the process that started it.
    let own = fixture.root.path().display().to_string();
    cudock_testkit::client::eventually("no uv is left", || {
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let lines = processes.filter_map(|entry| fs::read_to_string(entry.path().join("cmdline")).ok());
        lines.into_iter().all(|line| !line.contains(&own))
    });
}
