//! Variables; those from the user are not in any file.

use std::fs;
use std::path::Path;

use super::images::Image;
use super::machine::{Machine, machine, run_arguments};

const SECRET: &str = "correct-horse-battery-staple";

#[test]
fn the_users_variables_come_over_the_images() {
    let Some(machine) = machine() else { return };
    Image::of(&machine).variable("KIND", "image").variable("ONLY", "image").write("app");
    let file = machine.write("vars", "# a comment\n\nKIND=file\nFROM_FILE=a b=c\nHANDED_FILE\n");
    let script = "echo $KIND $ONLY $FROM_FILE $HANDED $HANDED_FILE $GIVEN; echo ${ABSENT-unset}";
    let arguments = [
        "run",
        "--rm",
        "--network",
        "none",
        "--env-file",
        file.to_str().unwrap(),
        "-e",
        "KIND=word",
        "-e",
        "HANDED",
        "-e",
        "ABSENT",
        "-e",
        "GIVEN=first",
        "--env",
        "GIVEN=last",
        "oci:app",
        "sh",
        "-c",
        script,
    ];
    let output =
        machine.command(&arguments).env("HANDED", "ours").env("HANDED_FILE", "too").output().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "word image a b=c ours too last\nunset\n",
        "{output:?}"
    );
}

#[test]
fn nothing_of_our_own_environment_gets_in_by_default() {
    let Some(machine) = machine() else { return };
    let mut command = machine.command(&run_arguments(&["--rm"], &["env"]));
    let output = command.env("OURS", "alone").env("LD_PRELOAD_LATER", "x").output().unwrap();
    let mut names: Vec<String> = String::from_utf8(output.stdout).unwrap().lines().map(name_of).collect();
    names.sort();
    assert_eq!(names, ["HOME", "HOSTNAME", "PATH"]);
}

fn name_of(line: &str) -> String {
    line.split('=').next().unwrap().to_owned()
}

#[test]
fn what_the_user_gives_is_in_no_file_and_on_no_command_line() {
    let Some(machine) = machine() else { return };
    let file = machine.write("vars", format!("FROM_FILE={SECRET}\n"));
    let given = format!("GIVEN={SECRET}");
    let options = ["-e", &given, "--env-file", file.to_str().unwrap()];
    machine.start("keeper", &options, "echo ready; sleep 1000");
    machine.until_logged("keeper", "ready");
    let script = "test $GIVEN = $FROM_FILE && echo $GIVEN | wc -c";
    assert_eq!(machine.good(&["exec", "keeper", "sh", "-c", script]), format!("{}\n", SECRET.len() + 1));
    nowhere(&machine);
    let inspected = machine.inspect("keeper");
    assert!(!inspected.to_string().contains(SECRET));
    assert_eq!(
        inspected["config"]["process"]["given"],
        serde_json::json!(["FROM_FILE", "GIVEN"]),
        "names are kept"
    );

    let child = machine.command(&["exec", "-e", &given, "keeper", "sleep", "1000"]).spawn().unwrap();
    let process = cudock_testkit::process::ChildGuard(child);
    super::machine::until("exec runs", || {
        machine.good(&["exec", "keeper", "ps"]).lines().filter(|line| line.contains("sleep 1000")).count()
            >= 2
    });
    nowhere(&machine);
    drop(process);
    machine.good(&["stop", "--time", "0", "keeper"]);
    nowhere(&machine);
}

fn nowhere(machine: &Machine) {
    let mut searched = 0;
    files(&machine.data(), &mut |path, bytes| {
        searched += 1;
        assert!(!contains(bytes), "{} has it", path.display());
    });
    assert!(searched > 3, "there are files to search");
    for process in fs::read_dir("/proc").unwrap().flatten() {
        let command_line = fs::read(process.path().join("cmdline")).unwrap_or_default();
        assert!(!contains(&command_line), "{} has it on its command line", process.path().display());
    }
}

fn contains(bytes: &[u8]) -> bool {
    bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes())
}

fn files(directory: &Path, see: &mut dyn FnMut(&Path, &[u8])) {
    for entry in fs::read_dir(directory).unwrap().flatten() {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            files(&entry.path(), see);
        } else if kind.is_file() {
            see(&entry.path(), &fs::read(entry.path()).unwrap());
        }
    }
}

#[test]
fn a_file_of_variables_is_refused_by_its_line_and_without_its_values() {
    let Some(machine) = machine() else { return };
    let file = machine.write("vars", format!("GOOD=1\n={SECRET}\n"));
    let message = machine.bad(2, &run_arguments(&["--env-file", file.to_str().unwrap()], &["true"]));
    assert!(message.contains("vars:2: not a variable"), "{message}");
    assert!(!message.contains(SECRET), "{message}");
    let message = machine.bad(2, &run_arguments(&["--env-file", "absent"], &["true"]));
    assert!(message.contains("cannot read absent"), "{message}");
}
