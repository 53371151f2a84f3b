//! Programs that may be started on a terminal.

/// A program that may be started once.
#[derive(Debug, Clone)]
pub(crate) struct TerminalRequest {
    /// The program, a single word: neither service takes arguments.
    pub(crate) program: String,
    pub(crate) columns: u16,
    pub(crate) rows: u16,
    pub(crate) protocol: Protocol,
}

#[derive(Debug, Clone)]
pub(crate) enum Protocol {
    /// Container Instances: the password is the first message.
    Password(String),
    /// Container Apps: two bytes before everything.
    Channels { container: String },
}
