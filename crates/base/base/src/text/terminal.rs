//! The terminal of this process.

use std::io;

use rustix::termios::{OptionalActions, Termios, Winsize, tcgetattr, tcgetwinsize, tcsetattr};

/// The terminal in raw mode until this is dropped: every key goes to the program at its other end.
#[derive(Debug)]
pub struct RawMode {
    before: Termios,
}

impl RawMode {
    /// Switches to raw mode; `None` if standard input is not a terminal.
    pub fn enter() -> Option<Self> {
        let before = tcgetattr(io::stdin()).ok()?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(io::stdin(), OptionalActions::Now, &raw).ok()?;
        Some(Self { before })
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}

/// The size of the terminal that output, or else input, is connected to.
pub fn own_size() -> Option<Winsize> {
    tcgetwinsize(io::stdout()).or_else(|_| tcgetwinsize(io::stdin())).ok()
}
