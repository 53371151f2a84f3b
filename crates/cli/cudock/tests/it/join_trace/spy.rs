//! The hostile program, from the side of the test.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, poll};

/// Time limit of the spy. Not a promise of ours.
const PATIENCE: Duration = Duration::from_secs(120);

/// Compiles the spy. Without a compiler, prints the reason and returns `false`.
pub fn compile(program: &Path) -> bool {
    let source = program.with_extension("c");
    fs::write(&source, include_str!("spy.c")).unwrap();
    let compiled = Command::new("cc").args(["-O2", "-static", "-o"]).arg(program).arg(&source).output();
    fs::remove_file(source).unwrap();
    let compiled = compiled.is_ok_and(|output| output.status.success());
    if !compiled {
        cudock_testkit::missing("cc", "no C compiler that makes static programs");
    }
    compiled
}

/// Secrets of the host.
#[derive(Debug, Clone)]
pub struct Secrets {
    /// A file of the host.
    pub canary: PathBuf,
    /// A variable of the caller.
    pub variable: String,
    texts: Vec<String>,
}

impl Secrets {
    /// Secrets that include a file in a directory of the host, and the paths of both.
    pub fn new(dir: &Path) -> Self {
        let (contents, variable) = (random_text(), random_text());
        let canary = dir.join("canary");
        fs::write(&canary, &contents).unwrap();
        let here = dir.display().to_string();
        let program = env!("CARGO_BIN_EXE_cudock").to_owned();
        Self { canary, variable: variable.clone(), texts: vec![contents, variable, here, program] }
    }

    /// Adds a secret that nobody can guess, and returns it.
    pub fn add(&mut self) -> String {
        let text = random_text();
        self.texts.push(text.clone());
        text
    }

    /// Writes the secrets to look for into the spy's directory.
    pub fn write_to(&self, dir: &Path) {
        let text = format!("{}\n{}\n", self.canary.display(), self.texts.join("\n"));
        fs::write(dir.join("secrets.new"), text).unwrap();
        fs::rename(dir.join("secrets.new"), dir.join("secrets")).unwrap();
    }
}

fn random_text() -> String {
    let mut bytes = [0; 16];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()).unwrap();
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A process that a spy looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// Its number in the container.
    pub pid: i32,
    /// Whether its root and memory could be read.
    pub deep: bool,
}

/// A spy that runs in a container.
#[derive(Debug)]
pub struct Spy {
    dir: PathBuf,
    /// Its pid namespace, as `/proc/PID/ns/pid` names it.
    pub namespace: String,
    ask: File,
    answer: BufReader<File>,
}

impl Spy {
    /// Connects to the spy with this directory, once it runs.
    pub fn connect(dir: &Path) -> Self {
        let began = Instant::now();
        let namespace = loop {
            if let Ok(namespace) = fs::read_to_string(dir.join("namespace")) {
                break namespace;
            }
            assert!(began.elapsed() < PATIENCE, "no spy in {}", dir.display());
            std::thread::sleep(Duration::from_millis(10));
        };
        // Both directions, so that opening does not wait for the other side.
        let open = |name: &str| OpenOptions::new().read(true).write(true).open(dir.join(name)).unwrap();
        Self {
            dir: dir.to_owned(),
            namespace,
            ask: open("ask"),
            answer: BufReader::with_capacity(1 << 16, open("answer")),
        }
    }

    /// Has the spy look at all other processes of its pid namespace, and waits until it has.
    pub fn look(&mut self) -> Vec<Seen> {
        self.command(b"l")
    }

    /// Has the spy look without pause until [`Spy::look`] is called.
    pub fn race(&mut self) {
        self.command(b"r");
    }

    fn command(&mut self, command: &[u8]) -> Vec<Seen> {
        self.ask.write_all(command).unwrap();
        let patience = u16::try_from(PATIENCE.as_millis()).unwrap_or(u16::MAX);
        let mut polled = [PollFd::new(self.answer.get_ref().as_fd(), PollFlags::POLLIN)];
        let count = poll(&mut polled, patience).unwrap();
        assert_eq!(count, 1, "the spy in {} does not answer", self.dir.display());
        let mut line = String::new();
        self.answer.read_line(&mut line).unwrap();
        let seen =
            |word: &str| Seen { pid: word.trim_end_matches('+').parse().unwrap(), deep: word.ends_with('+') };
        line.split_whitespace().map(seen).collect()
    }

    /// The host secrets that it saw, one per line.
    pub fn leaks(&self) -> String {
        fs::read_to_string(self.dir.join("leaks")).unwrap()
    }
}
