//! Commands in a deployment that runs.

use std::io::{self, IsTerminal, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use cudock_azure::{
    ExecMethod, ExecOutput, SHELL, Terminal, TerminalOutput, TerminalProtocol, TerminalSize, TypedCommand,
    interactive_program,
};
use cudock_base::UsageError;
use cudock_base::text::terminal::{RawMode, own_size};
use cudock_http::{HttpError, SocketEvent, WebSocket};
use signal_hook::consts::SIGWINCH;

use crate::cloud::{ApiError, ApiErrorReason, CloudApi};
use crate::error::DeployError;
use crate::journal::DeploymentRecord;
use crate::observe::response_body;

/// Time that the loop of a terminal waits for output before it checks the keyboard.
const KEYBOARD_POLL: Duration = Duration::from_millis(10);

/// The same for a terminal without keyboard input.
const POLL: Duration = Duration::from_millis(100);

/// Polls after which a shell is assumed to print no prompt.
const POLLS_FOR_PROMPT: u32 = 20;

/// Maximum output of a command without a visible terminal.
const MAX_OUTPUT: usize = 64 << 20;

/// Maximum number of bytes after the end of a command: a prompt, a farewell.
const AFTER_END: usize = 512;

/// The size of a terminal that is not shown.
const UNSEEN: TerminalSize = TerminalSize { columns: 80, rows: 24 };

/// Runs a command in a deployment's container and waits for its end. The journal is about what exists and what it costs,
/// which a command does not change.
pub fn exec(
    cloud: &dyn CloudApi,
    record: &DeploymentRecord,
    command: &[String],
    interrupted: &AtomicBool,
) -> Result<ExecOutput, DeployError> {
    let method = record.identity.exec_method(command)?;
    let output = match method {
        ExecMethod::Script(step) => cloud.run(&step).and_then(|reply| {
            let missing = || ApiError::new(ApiErrorReason::Outside, "the response has no exit code");
            ExecOutput::read(&reply.body).ok_or_else(missing)
        }),
        ExecMethod::Terminal => {
            let typed = TypedCommand::new(command)?;
            typed_output(cloud, record, &typed, interrupted)
        }
    };
    output.map_err(|error| cannot(record, error))
}

fn cannot(record: &DeploymentRecord, error: ApiError) -> DeployError {
    DeployError::cloud(format!("cannot run a command in `{}`", record.name), error)
}

/// The output of a command that is typed into a shell.
fn typed_output(
    cloud: &dyn CloudApi,
    record: &DeploymentRecord,
    typed: &TypedCommand,
    interrupted: &AtomicBool,
) -> Result<ExecOutput, ApiError> {
    let mut session = TerminalSession::open(cloud, record, SHELL, UNSEEN)?;
    let mut written = Vec::new();
    let (mut polls, mut is_typed) = (0, false);
    loop {
        if interrupted.load(Ordering::Relaxed) {
            return Err(ApiError::new(ApiErrorReason::Interrupted, "interrupted"));
        }
        match session.next(POLL)? {
            SessionEvent::Bytes(bytes) => {
                written.extend(bytes);
                if written.len() > MAX_OUTPUT {
                    let message = format!("the command wrote more than {} MiB", MAX_OUTPUT >> 20);
                    return Err(ApiError::new(ApiErrorReason::Refused, message));
                }
            }
            SessionEvent::Silence => polls += 1,
            SessionEvent::End => return typed.output(&written).ok_or_else(closed_early),
        }
        // A shell that has not started may lose what is typed.
        if !is_typed && (!written.is_empty() || polls >= POLLS_FOR_PROMPT) {
            session.type_bytes(typed.line.as_bytes())?;
            is_typed = true;
        }
        let end = written.get(written.len().saturating_sub(AFTER_END)..).unwrap_or_default();
        if typed.is_end(end)
            && let Some(output) = typed.output(&written)
        {
            return Ok(output);
        }
    }
}

/// Container Apps were seen to close terminals that were silent for 30 seconds (microsoft/azure-container-apps#849).
fn closed_early() -> ApiError {
    ApiError::new(ApiErrorReason::Outside, "the terminal was closed before the command ended").hint(
        "let it print something at least every 20 seconds, or run it in the background and write a file",
    )
}

/// Connects this process's terminal to a command in a deployment's container until the command
/// ends. No service reports its exit code.
pub fn exec_on_terminal(
    cloud: &dyn CloudApi,
    record: &DeploymentRecord,
    command: &[String],
    interrupted: &AtomicBool,
) -> Result<(), DeployError> {
    let ExecMethod::Terminal = record.identity.exec_method(command)? else {
        let error = UsageError::new("commands in this service have no terminal");
        return Err(error.hint("leave out -t and -i").into());
    };
    if !io::stdin().is_terminal() {
        let error = UsageError::new("standard input is not a terminal");
        return Err(error.hint("leave out -t and -i").into());
    }
    let resized = Arc::new(AtomicBool::new(false));
    let cannot_handle = |error| UsageError::new(format!("cannot handle signals: {error}"));
    signal_hook::flag::register(SIGWINCH, Arc::clone(&resized)).map_err(cannot_handle)?;
    let (program, first_line) = interactive_program(command);
    let mut session =
        TerminalSession::open(cloud, record, &program, size()).map_err(|error| cannot(record, error))?;
    let _raw = RawMode::enter();
    session.copy(&keyboard(first_line), &resized, interrupted).map_err(|error| cannot(record, error))
}

/// Keyboard input, until the end of the input.
fn keyboard(first_line: Option<String>) -> Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    let read = move || {
        let mut bytes = [0; 4096];
        let mut next = first_line.map(String::into_bytes);
        loop {
            if next.take().is_some_and(|typed| sender.send(typed).is_err()) {
                return;
            }
            next = match io::stdin().read(&mut bytes) {
                Ok(0) => return,
                Ok(count) => bytes.get(..count).map(<[u8]>::to_vec),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => None,
                Err(_) => return,
            };
        }
    };
    // It ends with the process: nothing else wakes a read of a terminal.
    thread::spawn(read);
    receiver
}

fn size() -> TerminalSize {
    own_size().map_or(UNSEEN, |size| TerminalSize { columns: size.ws_col, rows: size.ws_row })
}

/// A program with a terminal in a container.
#[derive(Debug)]
struct TerminalSession {
    socket: WebSocket,
    protocol: TerminalProtocol,
}

/// An event of a terminal.
enum SessionEvent {
    Bytes(Vec<u8>),
    Silence,
    End,
}

impl TerminalSession {
    fn open(
        cloud: &dyn CloudApi,
        record: &DeploymentRecord,
        program: &str,
        size: TerminalSize,
    ) -> Result<Self, ApiError> {
        let (identity, mut responses, mut delay) = (&record.identity, Vec::new(), None);
        for call in identity.terminal_calls(program, size) {
            responses.push(response_body(cloud, &call, &mut delay)?);
        }
        for call in identity.log_follow_up_calls(&responses) {
            responses.push(response_body(cloud, &call, &mut delay)?);
        }
        let terminal: Option<Terminal> = identity.terminal(program, &responses);
        let terminal = terminal.ok_or_else(|| {
            ApiError::new(ApiErrorReason::Refused, "its container is not running")
                .hint("`cudock ps` shows its state")
        })?;
        let mut session = Self { socket: cloud.connect(&terminal)?, protocol: terminal.protocol };
        session.resize(size)?;
        Ok(session)
    }

    fn next(&mut self, wait: Duration) -> Result<SessionEvent, ApiError> {
        let message = match self.socket.receive(wait).map_err(|error| lost(&error))? {
            SocketEvent::Message(message) => message,
            SocketEvent::Silence => return Ok(SessionEvent::Silence),
            SocketEvent::Closed => return Ok(SessionEvent::End),
        };
        match self.protocol.output(&message) {
            TerminalOutput::Bytes(bytes) => Ok(SessionEvent::Bytes(bytes.to_vec())),
            TerminalOutput::Info(_) => Ok(SessionEvent::Silence),
            TerminalOutput::End => Ok(SessionEvent::End),
            TerminalOutput::Error(message) => Err(ApiError::new(ApiErrorReason::Refused, message)
                .hint(format!("commands need {SHELL} in the image, or are one word with -it"))),
        }
    }

    fn type_bytes(&mut self, typed: &[u8]) -> Result<(), ApiError> {
        self.socket.send_bytes(self.protocol.input(typed)).map_err(|error| lost(&error))
    }

    fn resize(&mut self, size: TerminalSize) -> Result<(), ApiError> {
        self.protocol
            .resize(size)
            .map_or(Ok(()), |message| self.socket.send_bytes(message).map_err(|error| lost(&error)))
    }

    /// Copies both ways until the program ends.
    fn copy(
        &mut self,
        typed: &Receiver<Vec<u8>>,
        resized: &AtomicBool,
        interrupted: &AtomicBool,
    ) -> Result<(), ApiError> {
        let mut output = io::stdout();
        loop {
            match self.next(KEYBOARD_POLL)? {
                SessionEvent::Bytes(bytes) => {
                    let written = output.write_all(&bytes).and_then(|()| output.flush());
                    written.map_err(|error| ApiError::new(ApiErrorReason::Outside, error.to_string()))?;
                }
                SessionEvent::Silence => {}
                SessionEvent::End => return Ok(()),
            }
            for typed in typed.try_iter() {
                self.type_bytes(&typed)?;
            }
            if resized.swap(false, Ordering::Relaxed) {
                self.resize(size())?;
            }
            if interrupted.load(Ordering::Relaxed) {
                return Err(ApiError::new(ApiErrorReason::Interrupted, "interrupted"));
            }
        }
    }
}

fn lost(error: &HttpError) -> ApiError {
    ApiError::new(ApiErrorReason::Outside, format!("the terminal was lost: {error}"))
}
