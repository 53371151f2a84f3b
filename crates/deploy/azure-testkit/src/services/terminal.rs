//! Terminals in containers over web sockets. A container is a directory of this machine: programs in it are real ones, with a
//! real terminal.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use cudock_testkit::http::{Reply, Request};
use rustix::fs::OFlags;
use rustix::pty::OpenptFlags;
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::{Value, json};
use tungstenite::handshake::derive_accept_key;
use tungstenite::protocol::Role;
use tungstenite::{Error, Message, WebSocket};

use crate::cloud::Cloud;
use crate::resources::target::Target;
use crate::state::terminal::{Protocol, TerminalRequest};
use crate::wire::answer::Answer;
use crate::wire::form::fields;

/// The list of GPUs of every container.
pub(crate) const DEVICES: &str = "GPU 0: Tesla T4 (UUID: GPU-1)\n";

/// Time that a connection waits for the client before it polls the program.
const POLL: Duration = Duration::from_millis(5);

/// Number of polls within which a client must respond to a close frame.
const MOST_POLLS: usize = 400;

impl Cloud {
    /// `POST …/containers/{name}/exec` of a container group.
    pub(crate) fn start_terminal(&mut self, body: &Value) -> Answer {
        let number = |pointer: &str| {
            body.pointer(pointer).and_then(Value::as_u64).and_then(|number| u16::try_from(number).ok())
        };
        let (Some(program), Some(columns), Some(rows)) =
            (body["command"].as_str(), number("/terminalSize/cols"), number("/terminalSize/rows"))
        else {
            return Answer::error(400, "InvalidRequest", "command and terminalSize are required");
        };
        let (session, password) = (self.random.uuid(), self.random.uuid());
        let request = TerminalRequest {
            program: program.to_owned(),
            columns,
            rows,
            protocol: Protocol::Password(password.clone()),
        };
        let host = self.base.trim_start_matches("https://");
        let uri =
            format!("wss://{host}/execstream/sessionId/{session}?api-version=1.0&rows={rows}&cols={columns}");
        self.terminals.insert(session, request);
        Answer::json(200, json!({"webSocketUri": uri, "password": password}))
    }

    /// The program that the request for a web socket starts.
    fn terminal(&mut self, request: &Request) -> Result<TerminalRequest, Answer> {
        let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
        if let Some(session) = path.strip_prefix("/execstream/sessionId/") {
            return self.terminals.remove(session).ok_or_else(|| Answer::empty(404));
        }
        // The token is that of log streams.
        if let Some(refusal) = self.refuse_token(request.header("authorization"), "/logstream") {
            return Err(refusal);
        }
        let id = path.split("/replicas/").next().unwrap_or_default();
        let id = id.split("/revisions/").next().unwrap_or_default();
        let target = Target::parse(id).filter(|_| path.ends_with("/exec"));
        let owner = target.and_then(|target| self.find(&target.key));
        let is_running = owner.is_some_and(|owner| owner.started.is_some() && owner.ended.is_none());
        let command = fields(query).into_iter().find(|(name, _)| name == "command");
        match command {
            Some((_, program)) if is_running => {
                let container = "main".to_owned();
                Ok(TerminalRequest {
                    program,
                    columns: 80,
                    rows: 24,
                    protocol: Protocol::Channels { container },
                })
            }
            _ => Err(Answer::empty(404)),
        }
    }
}

/// Makes the directory that all containers are.
pub(crate) fn make_container(directory: &Path) -> PathBuf {
    let container = directory.join("container");
    std::fs::create_dir(&container).unwrap();
    let program = container.join("nvidia-smi");
    std::fs::write(&program, format!("#!/bin/sh\nprintf '{}'\n", DEVICES.replace('\n', "\\n"))).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    container
}

/// Answers the request for a web socket, and serves it until the program or the client ends.
pub(crate) fn serve(
    cloud: &std::sync::Mutex<Cloud>,
    container: &Path,
    request: &Request,
    mut stream: impl Read + Write,
    socket: &TcpStream,
) {
    let terminal = cloud.lock().unwrap().terminal(request);
    let (terminal, key) = match (terminal, request.header("sec-websocket-key")) {
        (Ok(terminal), Some(key)) => (terminal, key),
        (Err(refusal), _) => {
            let _ = Reply::new(refusal.status, "").send(&mut stream);
            return;
        }
        (Ok(_), None) => {
            let _ = Reply::new(400, "").send(&mut stream);
            return;
        }
    };
    let accept = derive_accept_key(key.as_bytes());
    let head = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
    );
    if stream.write_all(head.as_bytes()).and_then(|()| stream.flush()).is_err() {
        return;
    }
    socket.set_read_timeout(Some(POLL)).unwrap();
    let mut session = Session { socket: WebSocket::from_raw_socket(stream, Role::Server, None), terminal };
    // A client that is gone has seen enough.
    let _ = session.serve(container);
}

struct Session<S> {
    socket: WebSocket<S>,
    terminal: TerminalRequest,
}

impl<S: Read + Write> Session<S> {
    fn serve(&mut self, container: &Path) -> Result<(), Error> {
        if !self.is_welcome()? {
            return self.end();
        }
        let path = format!("{}:/usr/bin:/bin", container.display());
        let program = &self.terminal.program;
        let is_there = |directory: &str| Path::new(directory).join(program).is_file();
        if !path.split(':').any(is_there) {
            let why = format!(
                "OCI runtime exec failed: exec failed: \"{program}\": executable file not found in $PATH"
            );
            self.refuse(&why)?;
            return self.end();
        }
        let (mut terminal, child) = start(&self.terminal, container, &path).unwrap();
        let result = self.copy(&mut terminal);
        drop(terminal);
        end_process(child);
        result?;
        self.end()
    }

    /// Whether the client proved who it is.
    fn is_welcome(&mut self) -> Result<bool, Error> {
        match self.terminal.protocol.clone() {
            Protocol::Password(password) => Ok(self.first_message()? == password.as_bytes()),
            Protocol::Channels { container } => {
                self.inform(&format!("Connecting to the container '{container}'..."))?;
                self.inform(&format!("Successfully connected to container: '{container}'."))?;
                Ok(true)
            }
        }
    }

    fn first_message(&mut self) -> Result<Vec<u8>, Error> {
        for _ in 0..MOST_POLLS {
            if let Some(message) = self.receive()? {
                return Ok(message);
            }
        }
        Ok(Vec::new())
    }

    fn inform(&mut self, text: &str) -> Result<(), Error> {
        self.socket.send(Message::binary([&[1], text.as_bytes()].concat()))
    }

    fn refuse(&mut self, why: &str) -> Result<(), Error> {
        let message = match self.terminal.protocol {
            Protocol::Password(_) => why.as_bytes().to_vec(),
            Protocol::Channels { .. } => {
                let error = json!({"Error": {"Code": "ClusterExecFailure", "Message": why}});
                [&[2], error.to_string().as_bytes()].concat()
            }
        };
        self.socket.send(Message::binary(message))
    }

    /// The next message of the client, if one comes soon.
    fn receive(&mut self) -> Result<Option<Vec<u8>>, Error> {
        match self.socket.read() {
            Ok(Message::Text(text)) => Ok(Some(text.as_bytes().to_vec())),
            Ok(Message::Binary(bytes)) => Ok(Some(bytes.to_vec())),
            Ok(_) => Ok(None),
            Err(Error::Io(error)) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn copy(&mut self, terminal: &mut File) -> Result<(), Error> {
        let mut bytes = [0; 4096];
        loop {
            match terminal.read(&mut bytes) {
                Ok(0) => return Ok(()),
                Ok(count) => {
                    let prefix: &[u8] = match self.terminal.protocol {
                        Protocol::Password(_) => &[],
                        Protocol::Channels { .. } => &[0, 1],
                    };
                    self.socket.send(Message::binary([prefix, &bytes[..count]].concat()))?;
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                // The error of Linux once the other end is closed.
                Err(_) => return Ok(()),
            }
            let Some(message) = self.receive()? else { continue };
            match (&self.terminal.protocol, message.as_slice()) {
                (Protocol::Password(_), typed) | (Protocol::Channels { .. }, [0, 0, typed @ ..]) => {
                    terminal.write_all(typed)?;
                }
                (Protocol::Channels { .. }, [0, 4, size @ ..]) => {
                    let size: Value = serde_json::from_slice(size).unwrap();
                    let field = |name: &str| u16::try_from(size[name].as_u64().unwrap()).unwrap();
                    resize(terminal, field("Width"), field("Height"));
                }
                (Protocol::Channels { .. }, other) => panic!("no such message: {other:?}"),
            }
        }
    }

    /// Says goodbye, and waits for that of the client.
    fn end(&mut self) -> Result<(), Error> {
        self.socket.close(None)?;
        for _ in 0..MOST_POLLS {
            self.receive()?;
        }
        Ok(())
    }
}

fn resize(terminal: &File, columns: u16, rows: u16) {
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(terminal, size).unwrap();
}

/// Starts a program with a terminal of its own; returns our end of it.
fn start(request: &TerminalRequest, container: &Path, path: &str) -> io::Result<(File, Child)> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let ours = rustix::pty::openpt(flags)?;
    rustix::pty::grantpt(&ours)?;
    rustix::pty::unlockpt(&ours)?;
    let theirs = rustix::pty::ioctl_tiocgptpeer(&ours, flags)?;
    let status = rustix::fs::fcntl_getfl(&ours)?;
    rustix::fs::fcntl_setfl(&ours, status | OFlags::NONBLOCK)?;
    let ours = File::from(ours);
    resize(&ours, request.columns, request.rows);
    // The parent of the tests may ignore signals, which a container does not.
    let child = Command::new("env")
        .args(["--default-signal", "setsid", "--ctty", "--wait", &request.program])
        .env_clear()
        .env("PATH", path)
        .env("PS1", "# ")
        .current_dir(container)
        .stdin(theirs.try_clone()?)
        .stdout(theirs.try_clone()?)
        .stderr(theirs)
        .spawn()?;
    Ok((ours, child))
}

/// The terminal is gone, which ends the program by a signal.
fn end_process(mut child: Child) {
    let _ = child.kill();
    let _ = child.wait();
}
