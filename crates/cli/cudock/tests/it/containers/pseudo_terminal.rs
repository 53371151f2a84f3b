//! A terminal with a command at its other end, as a person has one.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use super::machine::until;

/// A terminal, its output, and the command that has it.
pub(crate) struct Terminal {
    ours: File,
    theirs: OwnedFd,
    shown: Arc<Mutex<Vec<u8>>>,
    child: Child,
}

impl Terminal {
    /// Starts a command in a terminal of this many rows and columns.
    pub(crate) fn start(command: &Command, rows: u16, columns: u16) -> Self {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let name = ptsname(&ours, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let theirs = openat(CWD, name, flags, Mode::empty()).unwrap();
        resize(&ours, rows, columns);
        let mut leader = Command::new("setsid");
        leader.args(["--ctty", "--wait"]).arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => leader.env(name, value),
                None => leader.env_remove(name),
            };
        }
        leader.env("TERM", "xterm").current_dir(command.get_current_dir().unwrap());
        let end = || Stdio::from(theirs.try_clone().unwrap());
        let child = leader.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
        let ours = File::from(ours);
        let shown = Arc::new(Mutex::new(Vec::new()));
        let (mut from, into) = (ours.try_clone().unwrap(), Arc::clone(&shown));
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = from.read(&mut buffer) {
                into.lock().unwrap().extend(&buffer[..count]);
            }
        });
        Self { ours, theirs, shown, child }
    }

    /// Presses keys.
    pub(crate) fn keys(&mut self, keys: &str) {
        self.ours.write_all(keys.as_bytes()).unwrap();
    }

    pub(crate) fn resize(&self, rows: u16, columns: u16) {
        resize(&self.ours, rows, columns);
    }

    /// The output so far.
    pub(crate) fn shown(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().unwrap()).into_owned()
    }

    pub(crate) fn until_shown(&self, what: &str) {
        until(&format!("the terminal shows {what:?}"), || self.shown().contains(what));
    }

    /// Whether the terminal still makes lines and signals of keys, as shells leave it.
    pub(crate) fn is_cooked(&self) -> bool {
        let modes = tcgetattr(&self.theirs).unwrap().local_modes;
        modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
    }

    /// The exit code of the command.
    pub(crate) fn wait(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

fn resize(terminal: impl AsFd, rows: u16, columns: u16) {
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(terminal, size).unwrap();
}
