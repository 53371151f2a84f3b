//! What a supervisor is told by those who wait for something on its behalf.

use cudock_group::probe::Question;
use nix::sys::signal::Signal;

/// Something happened.
#[derive(Debug)]
pub(super) enum Message {
    /// A signal came: a child ended, or someone wants the group to end.
    Signal(Signal),
    /// The watcher of a container said how the start went, or ended without a word.
    Began {
        /// Which container.
        name: String,
        /// Which of its runs.
        run: u64,
        /// What it said.
        answer: String,
    },
    /// A request of a probe was answered.
    Answered {
        /// Which container.
        name: String,
        /// Which of its runs.
        run: u64,
        /// Which of its probes.
        probe: usize,
        /// Which question.
        question: Question,
        /// A good answer, or why it is not.
        outcome: Result<(), String>,
    },
}
