//! The exit code is that of the report, also where nobody reads it: `cudock check … | head -1` with pipefail.

use crate::support::{cudock, schema, shown};

/// Verbs that report from files and tables, with their exit code.
const CALLS: [(&[&str], i32); 18] = [
    (&["check", "requirements.txt", "--gpu", "B200", "--driver", "580"], 1),
    (&["check", "requirements.txt", "--gpu", "B200", "--gpu", "T4", "--driver", "580"], 1),
    (&["check", "requirements.txt", "--gpu", "B200", "--driver", "580", "--explain"], 1),
    (&["check", "requirements.txt", "--gpu", "B200", "--driver", "580", "--format", "json"], 1),
    (&["check", "requirements.txt", "--gpu", "B200", "--driver", "580", "--format", "sarif"], 1),
    (&["check", "requirements.txt", "--gpu", "T4", "--driver", "580"], 0),
    (&["check", "requirements.txt", "--all-sizes"], 0),
    (&["migrate", "deploy.sh"], 1),
    (&["migrate", "deploy.sh", "--format", "json"], 1),
    (&["explain", "nothing that any table has heard of"], 1),
    (&["explain", "nothing that any table has heard of", "--format", "json"], 1),
    (&["explain", "CD0501"], 0),
    (&["plan", "--gpu", "H200", "--region", "jioindiawest", "--duration", "1h"], 1),
    (&["plan", "--gpu", "H200", "--region", "jioindiawest", "--duration", "1h", "--format", "json"], 1),
    (&["doctor", "--root", "empty"], 1),
    (&["doctor", "--root", "empty", "--format", "json"], 1),
    (&["facts"], 0),
    (&["facts", "driver", "525"], 0),
];

#[test]
fn the_exit_code_survives_a_closed_stdout_in_every_verb() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("requirements.txt"), "torch==2.5.1\n").unwrap();
    std::fs::write(directory.path().join("deploy.sh"), "az vm create --size Standard_NC6s_v3\n").unwrap();
    std::fs::create_dir(directory.path().join("empty")).unwrap();
    for (arguments, wanted) in CALLS {
        let command = || {
            let mut command = cudock(arguments);
            command.current_dir(directory.path()).env("HOME", directory.path());
            command
        };
        let read = schema::output(&mut command());
        assert_eq!(read.status.code(), Some(wanted), "{arguments:?}: {}", shown(&read));
        // The reader has gone before the first byte: every write answers EPIPE.
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let unread = command().stdout(writer).output().unwrap();
        assert_eq!(unread.status.code(), Some(wanted), "{arguments:?}: {}", shown(&unread));
        assert!(!String::from_utf8_lossy(&unread.stderr).contains("roken pipe"), "{}", shown(&unread));
    }
}

#[test]
fn a_bad_call_stays_one_where_both_outputs_are_closed() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let other = writer.try_clone().unwrap();
    let status = cudock(&["facts", "driver", "not-a-driver"]).stdout(writer).stderr(other).status().unwrap();
    assert_eq!(status.code(), Some(2));
}

#[test]
fn a_full_disk_is_an_error_and_not_an_answer() {
    let Ok(full) = std::fs::OpenOptions::new().write(true).open("/dev/full") else {
        panic!("this system has no /dev/full");
    };
    let output = cudock(&["facts"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", shown(&output));
    assert!(shown(&output).contains("cannot write to standard output"), "{}", shown(&output));
}
