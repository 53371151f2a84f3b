//! What the commands of a `RUN` install.

use std::collections::HashMap;
use std::ops::Range;

use cudock_base::shell::Script;
use cudock_base::{Arch, Span};

use super::expand::Variables;
use super::scene::Scene;
use super::shell::Command;
use crate::files::join;
use crate::pip::{Indexes, NoteAt, Word};
use crate::{CudaPackage, Declared, Manager, conda, excerpt, pip, system};

/// Scripts within scripts within scripts.
pub(super) const DEEPEST: usize = 3;

/// Words before a command that do not change what it installs.
const BEFORE_COMMANDS: [&str; 15] = [
    "!", "{", "command", "do", "elif", "else", "env", "exec", "if", "nice", "sudo", "then", "time", "until",
    "while",
];

const SHELLS: [&str; 5] = ["bash", "sh", "dash", "ash", "zsh"];

/// Reads scripts, and adds what they install.
pub(super) struct Reader<'a, 'f> {
    pub(super) declared: &'a mut Declared,
    pub(super) scene: &'a mut Scene<'f>,
    /// The directory that commands run in, without a `/` at the start.
    pub(super) cwd: String,
    pub(super) variables: &'a Variables,
    pub(super) arch: Arch,
    /// Turns bytes of the script into a span of the file.
    pub(super) locate: &'a dyn Fn(Range<usize>) -> Span,
    /// Variables that the script itself sets.
    pub(super) own: HashMap<String, Option<String>>,
}

impl Reader<'_, '_> {
    pub(super) fn script(&mut self, text: &str) {
        self.script_at(text, None, 0);
    }

    /// A script; `within` is the command whose argument it is.
    pub(super) fn script_at(&mut self, text: &str, within: Option<Span>, depth: usize) {
        for command in Script::new(text) {
            let (own, variables) = (&self.own, self.variables);
            let lookup = |name: &str| match own.get(name) {
                Some(value) => value.clone(),
                None => variables.get(name),
            };
            let expanded = Command::expand(text, &command, &lookup);
            self.notes(expanded.notes, within);
            self.command(&expanded.words, within, depth);
            let is_shell =
                matches!(expanded.words.as_slice(), [program] if SHELLS.contains(&program_name(program)));
            for here_doc in command.redirects.iter().filter_map(|redirect| redirect.here_doc.as_ref()) {
                let body = text.get(here_doc.body.clone()).filter(|_| is_shell && depth < DEEPEST);
                let shell = expanded.words.first().map_or(0..0, |program| program.bytes.clone());
                if let Some(body) = body {
                    let span = self.span(shell, within);
                    self.script_at(body, Some(span), depth + 1);
                }
            }
        }
    }

    pub(super) fn span(&self, bytes: Range<usize>, within: Option<Span>) -> Span {
        within.unwrap_or_else(|| (self.locate)(bytes))
    }

    pub(super) fn notes(&mut self, notes: Vec<NoteAt>, within: Option<Span>) {
        for (bytes, note) in notes {
            let span = self.span(bytes, within);
            self.declared.note(span, note);
        }
    }

    /// One command, in words.
    pub(super) fn command(&mut self, words: &[Word], within: Option<Span>, depth: usize) {
        let mut words = words;
        let mut set = Vec::new();
        let mut is_behind_prefix = false;
        while let [first, rest @ ..] = words {
            if let Some((name, value)) = assignment(&first.text) {
                set.push((name.to_owned(), (!first.is_open).then(|| value.to_owned())));
            } else if BEFORE_COMMANDS.contains(&first.text.as_str()) {
                is_behind_prefix = true;
            } else if !(is_behind_prefix && first.text.starts_with('-')) {
                break;
            }
            words = rest;
        }
        let [first, arguments @ ..] = words else {
            self.own.extend(set);
            return;
        };
        let end = arguments.last().map_or(first.bytes.end, |last| last.bytes.end);
        let span = self.span(first.bytes.start..end.max(first.bytes.end), within);
        let program = program_name(first);
        let is_python = program.starts_with("python") || program == "pypy3";
        match program {
            "export" => {
                let exported = arguments.iter().filter_map(|word| {
                    let (name, value) = assignment(&word.text)?;
                    Some((name.to_owned(), (!word.is_open).then(|| value.to_owned())))
                });
                self.own.extend(exported);
            }
            "cd" | "pushd" => {
                if let Some(directory) = arguments.first() {
                    self.cwd = join(&self.cwd, &directory.text);
                }
            }
            _ if SHELLS.contains(&program) => self.shell(arguments, span, depth),
            "conda" | "mamba" | "micromamba" => self.conda(program, arguments, within, depth),
            "apt" | "apt-get" | "aptitude" | "dnf" | "microdnf" | "tdnf" | "yum" | "zypper" => {
                self.system(arguments, within);
            }
            "poetry" => self.poetry(arguments, span),
            "pdm" | "pipenv" | "pixi" => {
                if let Some("install" | "sync" | "update" | "add") =
                    subcommand(arguments).map(|(name, _)| name)
                {
                    let note = format!("what {program} installs is in files that are not read here");
                    self.declared.note(span, note);
                }
            }
            "uv" => self.uv(arguments, &set, span, within),
            _ if is_pip(program) => self.pip(arguments, &set, span, within),
            _ if is_python => {
                let module =
                    arguments.iter().position(|word| !word.text.starts_with('-') || word.text == "-m");
                if let Some([option, rest @ ..]) = module.and_then(|at| arguments.get(at..))
                    && option.text == "-m"
                {
                    let module = rest.first().map_or("", |module| module.text.as_str());
                    if ["pip", "uv", "poetry"].contains(&module) && depth < DEEPEST {
                        self.own_for(set, |reader| reader.command(rest, within, depth + 1));
                    } else if ["venv", "virtualenv"].contains(&module) {
                        self.environment_at(rest.get(1..).unwrap_or_default());
                    } else if !["compileall", "ensurepip", "site", "http.server"].contains(&module) {
                        self.unknown(&format!("{program} -m {module}"), span);
                    }
                } else {
                    self.python(arguments, &set, span);
                }
            }
            "virtualenv" => self.environment_at(arguments),
            _ => self.other(program, first, arguments, &set, span, depth),
        }
    }

    /// A variable's value: that of the command, of the script, or of the stage.
    pub(super) fn value(&self, set: &[(String, Option<String>)], name: &str) -> Option<String> {
        let of_command = set.iter().rev().find(|(own, _)| own == name).map(|(_, value)| value.clone());
        of_command.or_else(|| self.own.get(name).cloned()).unwrap_or_else(|| self.variables.get(name))
    }

    /// Notes a command whose effect is not known.
    pub(super) fn unknown(&mut self, command: &str, span: Span) {
        self.declared.note(span, format!("what `{}` does is not read", excerpt(command)));
    }

    /// Remembers where a virtual environment is.
    pub(super) fn environment_at(&mut self, arguments: &[Word]) {
        let directory = arguments.iter().find(|word| !word.text.starts_with('-'));
        let directory = directory.map_or(".venv", |word| word.text.as_str());
        self.scene.prefixes.push(join(&self.cwd, directory));
    }

    /// Does something with variables that hold for one command only.
    fn own_for(&mut self, set: Vec<(String, Option<String>)>, act: impl FnOnce(&mut Self)) {
        let before: Vec<_> =
            set.iter().map(|(name, _)| (name.clone(), self.own.get(name).cloned())).collect();
        self.own.extend(set);
        act(self);
        for (name, value) in before {
            match value {
                Some(value) => self.own.insert(name, value),
                None => self.own.remove(&name),
            };
        }
    }

    fn shell(&mut self, arguments: &[Word], span: Span, depth: usize) {
        // `-c`, and flags that hold it: `-lc`, `-exc`.
        let is_command = |word: &Word| word.text.starts_with('-') && word.text.ends_with('c');
        let script = arguments.iter().position(is_command).and_then(|at| arguments.get(at + 1));
        if let Some(script) = script.filter(|_| depth < DEEPEST) {
            self.script_at(&script.text.clone(), Some(span), depth + 1);
        } else if let Some(file) = arguments.iter().find(|word| !word.text.starts_with('-')) {
            self.script_file(&file.text.clone(), span, depth);
        }
    }

    fn pip(
        &mut self,
        arguments: &[Word],
        set: &[(String, Option<String>)],
        span: Span,
        within: Option<Span>,
    ) {
        match subcommand(arguments) {
            Some(("install", rest)) => self.install(rest, set, span, within),
            Some(("wheel", rest)) => {
                let target = rest.iter().position(|word| ["-w", "--wheel-dir"].contains(&word.text.as_str()));
                let target = target.and_then(|at| rest.get(at + 1)).map_or(".", |word| word.text.as_str());
                let glued = rest.iter().find_map(|word| word.text.strip_prefix("--wheel-dir="));
                self.scene.prefixes.push(join(&self.cwd, glued.unwrap_or(target)));
                let is_target = |word: &&Word| word.text != target || target == ".";
                let rest: Vec<Word> = rest
                    .iter()
                    .filter(is_target)
                    .filter(|word| !["-w", "--wheel-dir"].contains(&word.text.as_str()))
                    .cloned()
                    .collect();
                self.install(&rest, set, span, within);
            }
            Some(("uninstall", rest)) => {
                let names: Vec<&str> = rest
                    .iter()
                    .map(|word| word.text.as_str())
                    .filter(|name| !name.starts_with('-'))
                    .collect();
                self.declared.packages.retain(|package| !names.contains(&package.name.as_str()));
                self.declared.remark(span, format!("removes {}", excerpt(&names.join(" "))));
            }
            _ => {}
        }
    }

    /// The indexes that variables name.
    pub(super) fn surrounding(&self, set: &[(String, Option<String>)]) -> Indexes {
        let value = |name: &str| self.value(set, name);
        let mut indexes = Indexes::default();
        for name in ["PIP_INDEX_URL", "UV_INDEX_URL", "UV_DEFAULT_INDEX"] {
            if let Some(address) = value(name) {
                indexes.set_main(&address);
            }
        }
        for name in
            ["PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS", "UV_INDEX"]
        {
            value(name)
                .iter()
                .flat_map(|list| list.split_whitespace())
                .for_each(|address| indexes.add(address));
        }
        if let Some(backend) = value("UV_TORCH_BACKEND") {
            indexes.set_backend(&backend);
        }
        indexes
    }

    fn conda(&mut self, program: &str, arguments: &[Word], within: Option<Span>, depth: usize) {
        let Some((name, rest)) = subcommand(arguments) else { return };
        match name {
            "install" | "create" | "update" | "upgrade" => self.conda_install(program, rest, within),
            "env" => {
                if let Some(("create" | "update", rest)) = subcommand(rest) {
                    self.conda_install("micromamba", rest, within);
                }
            }
            "run" if depth < DEEPEST => {
                let mut rest = rest;
                while let [option, behind @ ..] = rest
                    && option.text.starts_with('-')
                {
                    let has_value =
                        ["-n", "--name", "-p", "--prefix", "--cwd"].contains(&option.text.as_str());
                    rest = if has_value { behind.get(1..).unwrap_or_default() } else { behind };
                }
                self.command(rest, within, depth + 1);
            }
            _ => {}
        }
    }

    fn conda_install(&mut self, program: &str, words: &[Word], within: Option<Span>) {
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let span = self.span(word.bytes.clone(), within);
            let text = word.text.as_str();
            let (option, glued) =
                text.split_once('=').map_or((text, None), |(option, value)| (option, Some(value)));
            match option {
                "-c" | "--channel" => {
                    let channel =
                        glued.map(str::to_owned).or_else(|| words.next().map(|word| word.text.clone()));
                    self.declared.channels.extend(channel);
                }
                "-f" if program != "micromamba" => {}
                "-f" | "--file" => {
                    let file =
                        glued.or_else(|| words.next().map(|word| word.text.as_str())).unwrap_or_default();
                    let text = self.scene.text(&self.cwd, file);
                    let read =
                        text.and_then(|(path, text)| Some((conda::read(&text, self.arch).ok()?, path)));
                    match read {
                        Some((environment, path)) => self.declared.absorb(environment, &path),
                        None => self.declared.note(span, pip::not_followed(file)),
                    }
                }
                "-n" | "--name" | "-p" | "--prefix" | "-r" | "--root-prefix" | "--solver" | "--platform"
                | "--subdir" | "--experimental" | "--clone" => {
                    if glued.is_none() {
                        words.next();
                    }
                }
                _ if text.starts_with('-') || text.is_empty() => {}
                _ if word.is_open => {
                    self.declared.note(span, format!("`{}` is not known here", excerpt(text)));
                }
                _ => {
                    if let Err(message) = conda::declare(self.declared, text, span) {
                        self.declared.note(span, message);
                    }
                }
            }
        }
    }

    fn system(&mut self, arguments: &[Word], within: Option<Span>) {
        let Some(("install" | "reinstall", rest)) = subcommand(arguments) else { return };
        let mut words = rest.iter();
        while let Some(word) = words.next() {
            let text = word.text.as_str();
            if ["-t", "-o", "-c", "--target-release", "--option", "--enablerepo"].contains(&text) {
                words.next();
                continue;
            }
            if text.starts_with('-') || text.is_empty() {
                continue;
            }
            let span = self.span(word.bytes.clone(), within);
            if [".deb", ".rpm"].iter().any(|ending| text.ends_with(ending)) || is_gpu_program(text) {
                self.declared.note(span, format!("what `{}` installs is not read", excerpt(text)));
                continue;
            }
            if word.is_open {
                self.declared.note(span, format!("`{}` is not known here", excerpt(text)));
                continue;
            }
            let (name, version) =
                text.split_once('=').map_or((text, None), |(name, version)| (name, Some(version)));
            let name = name.split([':', '/']).next().unwrap_or(name).to_ascii_lowercase();
            let python = name.strip_prefix("python").filter(|version| {
                version.contains('.') && version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
            });
            if let Some(python) = python {
                self.declared.python = Some(python.to_owned());
            }
            if system::is_cuda_in_system(&name) {
                let cuda = system::cuda_of_system(&name, version);
                let version = version.map(str::to_owned);
                self.declared.cuda_packages.push(CudaPackage {
                    name,
                    version,
                    cuda,
                    manager: Manager::System,
                    span,
                });
            }
        }
    }
}

/// Packages of Debian and its like that can use a GPU by themselves.
fn is_gpu_program(name: &str) -> bool {
    const NAMES: [&str; 9] = [
        "blender",
        "boinc",
        "ffmpeg",
        "hashcat",
        "python3-tensorflow",
        "python3-torch",
        "gromacs",
        "opencv",
        "vulkan",
    ];
    NAMES.iter().any(|program| name.contains(program))
}

/// The program that a word names, without its directory.
fn program_name(word: &Word) -> &str {
    word.text.rsplit('/').next().unwrap_or_default()
}

/// The first word that is not an option, and what follows it.
pub(super) fn subcommand(words: &[Word]) -> Option<(&str, &[Word])> {
    let at = words.iter().position(|word| !word.text.starts_with('-'))?;
    Some((words.get(at)?.text.as_str(), words.get(at + 1..)?))
}

fn is_pip(program: &str) -> bool {
    program
        .strip_prefix("pip")
        .is_some_and(|version| version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
}

/// `NAME=value`
fn assignment(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let is_name = !name.is_empty()
        && !name.starts_with(|first: char| first.is_ascii_digit())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_name.then_some((name, value))
}
