//! `--quiet`, `--verbose` and `--color`.

use cudock_testkit::http::{Reply, Server};

use crate::support::{code, cudock, shown};

#[test]
fn quiet_hides_notes_and_progress_but_no_warnings() {
    let dir = tempfile::tempdir().unwrap();
    for (quiet, wanted) in [(&[][..], true), (&["--quiet"], false), (&["-q"], false)] {
        let name = format!("copy{}", quiet.len() + quiet.concat().len());
        let args = [&["init", "--example", "digits", name.as_str()], quiet].concat();
        let output = cudock(&args).current_dir(dir.path()).output().unwrap();
        assert_eq!(code(&output), 0);
        assert_eq!(shown(&output).contains("created"), wanted, "{args:?}");
    }
    // The tables are years old by then.
    let output =
        cudock(&["facts", "gpu", "T4", "--quiet"]).env("CUDOCK_TODAY", "2036-01-01").output().unwrap();
    assert!(shown(&output).contains("warning: tables older than"), "{}", shown(&output));
}

#[test]
fn color_is_as_requested() {
    for (args, environment, colored) in [
        (vec![], None, false),
        (vec!["--color", "always"], None, true),
        (vec!["--color=never"], Some(("CLICOLOR_FORCE", "1")), false),
        (vec![], Some(("CLICOLOR_FORCE", "1")), true),
    ] {
        let mut command = cudock(&[&["facts", "gpu", "T4"], &args[..]].concat());
        command.env_remove("NO_COLOR").envs(environment);
        let output = command.output().unwrap();
        assert_eq!(output.stdout.contains(&0x1b), colored, "{args:?} {environment:?}: {}", shown(&output));
    }
}

#[test]
fn verbose_lists_every_request_without_its_query() {
    let server = Server::start(|_| Reply::new(404, "no"));
    let dir = tempfile::tempdir().unwrap();
    let endpoint = format!("http://{}/prices", server.host());
    let args = ["prices", "refresh", "--region", "westeurope", "--endpoint", &endpoint, "--verbose"];
    let output = cudock(&args).env("XDG_CONFIG_HOME", dir.path()).output().unwrap();
    assert_eq!(code(&output), 3, "{}", shown(&output));
    assert!(shown(&output).contains(&format!("GET {endpoint}?…: 404 in 0.")), "{}", shown(&output));
    assert!(server.requests().iter().all(|request| request.path.contains("westeurope")));
}
