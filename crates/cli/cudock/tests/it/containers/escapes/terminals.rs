//! The terminal of whoever starts a container.

use super::run;
use crate::containers::machine::{installed, machine, run_arguments};
use crate::containers::programs::install;
use crate::containers::pseudo_terminal::Terminal;
use crate::support::shown;

/// Types into every terminal it was given, also after making one its own.
const TYPE: &str = r#"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
static void type(int terminal) {
    const char *letter = "touch INJECTED\n";
    for (; *letter; letter++)
        if (ioctl(terminal, TIOCSTI, letter) == 0) fprintf(stderr, "TYPED\n");
}
int main(void) {
    for (int round = 0; round < 2; round++) {
        for (int number = 0; number < 3; number++) type(number);
        int own = open("/dev/tty", O_RDWR);
        if (own >= 0) type(own);
        setsid();
        for (int number = 0; number < 3; number++) ioctl(number, TIOCSCTTY, 1);
    }
    fprintf(stderr, "tried to type\n");
    return 0;
}
"#;

#[test]
fn no_container_types_into_our_terminal() {
    let Some(machine) = machine() else { return };
    let Some(_) = install(&machine, "typist", TYPE) else { return };
    if !installed("setsid") {
        return;
    }
    machine.start("held", &[], "sleep 1000");
    let run = run_arguments(&["--rm"], &["typist"]);
    let interactive = run_arguments(&["--rm", "-i"], &["typist"]);
    for arguments in
        [run.as_slice(), &interactive, &["exec", "held", "typist"], &["exec", "-i", "held", "typist"]]
    {
        let mut terminal = Terminal::start(&machine.command(arguments), 24, 80);
        terminal.until_shown("tried to type");
        terminal.wait();
        let shown = terminal.shown();
        assert!(!shown.contains("TYPED") && !shown.contains("INJECTED"), "{arguments:?}: {shown}");
        assert!(terminal.is_cooked(), "{arguments:?}");
    }
}

#[test]
fn control_sequences_are_passed_on_as_they_are() {
    // Not promised, and documented: a terminal handles a container's output, as with `cat`.
    let Some(machine) = machine() else { return };
    let output = run::sh(&machine, "control sequences", &[], r"printf '\033]0;title\007\033[31mred\033[0m'");
    assert_eq!(output.stdout, b"\x1b]0;title\x07\x1b[31mred\x1b[0m", "{}", shown(&output));
}
