//! Reads the commands of a `RUN` instruction, and what they install.

use std::collections::HashMap;
use std::ops::Range;

use cudock_base::shell::Script;
use cudock_base::{Arch, Span};
use cudock_dockerfile::{Argument, ExpandedCommand, NoteAt, assignment};

use super::stage_fs::StageFs;
use super::variables::Variables;
use crate::files::join;
use crate::pip::Indexes;
use crate::{CudaPackage, Declared, Manager, conda, excerpt, pip, system};

/// The limit for scripts within scripts.
pub(super) const MAX_DEPTH: usize = 3;

/// Prefixes and keywords before a command that do not change what it installs.
const COMMAND_PREFIXES: [&str; 15] = [
    "!", "{", "command", "do", "elif", "else", "env", "exec", "if", "nice", "sudo", "then", "time", "until",
    "while",
];

const SHELLS: [&str; 5] = ["bash", "sh", "dash", "ash", "zsh"];

/// Reads shell scripts, and records what they install.
pub(super) struct ScriptReader<'a, 'f> {
    pub(super) declared: &'a mut Declared,
    pub(super) fs: &'a mut StageFs<'f>,
    /// The working directory, without a leading `/`.
    pub(super) cwd: String,
    pub(super) variables: &'a Variables,
    pub(super) arch: Arch,
    /// Maps bytes of the script to a span of the file.
    pub(super) locate: &'a dyn Fn(Range<usize>) -> Span,
    /// Variables that the script sets.
    pub(super) own: HashMap<String, Option<String>>,
}

/// Variables set for one command.
pub(super) type CommandEnv = [(String, Option<String>)];

/// A command of a script, without its program.
#[derive(Clone, Copy)]
pub(super) struct Call<'c> {
    pub(super) args: &'c [Argument<'c>],
    pub(super) set: &'c CommandEnv,
    pub(super) span: Span,
    /// The span of the command whose argument the script is.
    pub(super) within: Option<Span>,
    pub(super) depth: usize,
}

impl<'c> Call<'c> {
    /// The first argument that is not an option, and the call with the arguments after it.
    pub(super) fn subcommand(self) -> Option<(&'c str, Self)> {
        let at = self.args.iter().position(|arg| !arg.text.starts_with('-'))?;
        Some((&self.args.get(at)?.text, Self { args: self.args.get(at + 1..)?, ..self }))
    }

    /// The argument after one of these options.
    pub(super) fn value_of(self, options: &[&str]) -> Option<&'c str> {
        let at = self.args.iter().position(|arg| options.contains(&&*arg.text))?;
        self.args.get(at + 1).map(|arg| &*arg.text)
    }

    pub(super) fn positional(self) -> Option<&'c Argument<'c>> {
        self.args.iter().find(|arg| !arg.text.starts_with('-'))
    }
}

impl ScriptReader<'_, '_> {
    pub(super) fn script(&mut self, text: &str) {
        self.script_at(text, None, 0);
    }

    /// Reads a script; `within` is the span of the command whose argument it is.
    pub(super) fn script_at(&mut self, text: &str, within: Option<Span>, depth: usize) {
        for command in Script::new(text) {
            let (own, variables) = (&self.own, self.variables);
            let lookup = |name: &str| match own.get(name) {
                Some(value) => value.clone(),
                None => variables.get(name),
            };
            let expanded = ExpandedCommand::expand(text, &command, &lookup);
            self.notes(expanded.notes, within);
            self.command(&expanded.args, within, depth);
            self.record_writes(text, &command, &expanded.args);
            let is_shell =
                matches!(expanded.args.as_slice(), [program] if SHELLS.contains(&program_name(program)));
            for here_doc in command.redirects.iter().filter_map(|redirect| redirect.here_doc.as_ref()) {
                let body = text.get(here_doc.body.clone()).filter(|_| is_shell && depth < MAX_DEPTH);
                let shell = expanded.args.first().map_or(0..0, |program| program.bytes.clone());
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

    pub(super) fn command(&mut self, args: &[Argument<'_>], within: Option<Span>, depth: usize) {
        let mut args = args;
        let mut set = Vec::new();
        let mut is_behind_prefix = false;
        while let [first, rest @ ..] = args {
            if let Some(assigned) = assignment(first) {
                set.push(assigned);
            } else if COMMAND_PREFIXES.contains(&&*first.text) {
                is_behind_prefix = true;
            } else if !(is_behind_prefix && first.text.starts_with('-')) {
                break;
            }
            args = rest;
        }
        let [first, arguments @ ..] = args else {
            self.own.extend(set);
            return;
        };
        let end = arguments.last().map_or(first.bytes.end, |last| last.bytes.end);
        let span = self.span(first.bytes.start..end.max(first.bytes.end), within);
        let program = program_name(first);
        let is_python = program.starts_with("python") || program == "pypy3";
        let call = Call { args: arguments, set: &set, span, within, depth };
        match program {
            "export" => self.own.extend(arguments.iter().filter_map(assignment)),
            "cd" | "pushd" => {
                if let Some(directory) = arguments.first() {
                    self.cwd = join(&self.cwd, &directory.text);
                }
            }
            _ if SHELLS.contains(&program) => self.shell(call),
            "conda" | "mamba" | "micromamba" => self.conda(program, call),
            "apt" | "apt-get" | "aptitude" | "dnf" | "microdnf" | "tdnf" | "yum" | "zypper" => {
                self.system(call);
            }
            "poetry" => self.poetry(call),
            "pdm" | "pipenv" | "pixi" => {
                if let Some(("install" | "sync" | "update" | "add", _)) = call.subcommand() {
                    let note =
                        format!("cannot determine what {program} installs: its files are not supported");
                    self.declared.note(span, note);
                }
            }
            "uv" => self.uv(call),
            _ if is_pip(program) => self.pip(call),
            _ if is_python => {
                let module = arguments.iter().position(|arg| !arg.text.starts_with('-') || arg.text == "-m");
                if let Some([option, rest @ ..]) = module.and_then(|at| arguments.get(at..))
                    && option.text == "-m"
                {
                    let module = rest.first().map_or("", |module| &*module.text);
                    if ["pip", "uv", "poetry"].contains(&module) && depth < MAX_DEPTH {
                        self.with_env(set, |reader| reader.command(rest, within, depth + 1));
                    } else if ["venv", "virtualenv"].contains(&module) {
                        self.virtual_environment(Call { args: rest.get(1..).unwrap_or_default(), ..call });
                    } else if !["compileall", "ensurepip", "site", "http.server"].contains(&module) {
                        self.unknown(&format!("{program} -m {module}"), span);
                    }
                } else {
                    self.python(call);
                }
            }
            "virtualenv" => self.virtual_environment(call),
            _ => self.other(program, first, call),
        }
    }

    /// A variable's value: from the command, the script, or the stage.
    pub(super) fn value(&self, set: &CommandEnv, name: &str) -> Option<String> {
        let of_command = set.iter().rev().find(|(own, _)| own == name).map(|(_, value)| value.clone());
        of_command.or_else(|| self.own.get(name).cloned()).unwrap_or_else(|| self.variables.get(name))
    }

    pub(super) fn unknown(&mut self, command: &str, span: Span) {
        self.fs.changed_by.get_or_insert_with(|| command.to_owned());
        self.declared.note(span, format!("effect of `{}` is unknown", excerpt(command)));
    }

    /// Records the directory of a virtual environment.
    pub(super) fn virtual_environment(&mut self, call: Call<'_>) {
        let directory = call.positional().map_or(".venv", |arg| &*arg.text);
        self.fs.prefixes.push(join(&self.cwd, directory));
    }

    /// Runs `read` with variables that are set for one command only.
    fn with_env(&mut self, set: Vec<(String, Option<String>)>, read: impl FnOnce(&mut Self)) {
        let before: Vec<_> =
            set.iter().map(|(name, _)| (name.clone(), self.own.get(name).cloned())).collect();
        self.own.extend(set);
        read(self);
        for (name, value) in before {
            match value {
                Some(value) => self.own.insert(name, value),
                None => self.own.remove(&name),
            };
        }
    }

    fn shell(&mut self, call: Call<'_>) {
        // `-c`, and combined flags that end with it: `-lc`, `-exc`.
        let is_command = |arg: &Argument<'_>| arg.text.starts_with('-') && arg.text.ends_with('c');
        let script = call.args.iter().position(is_command).and_then(|at| call.args.get(at + 1));
        if let Some(script) = script.filter(|_| call.depth < MAX_DEPTH) {
            self.script_at(&script.text, Some(call.span), call.depth + 1);
        } else if let Some(file) = call.positional() {
            self.script_file(&file.text, call);
        }
    }

    fn pip(&mut self, call: Call<'_>) {
        const TARGET: [&str; 2] = ["-w", "--wheel-dir"];
        match call.subcommand() {
            Some(("install", call)) => self.install(call),
            Some(("wheel", call)) => {
                let target = call.value_of(&TARGET).unwrap_or(".");
                let inline = call.args.iter().find_map(|arg| arg.text.strip_prefix("--wheel-dir="));
                self.fs.prefixes.push(join(&self.cwd, inline.unwrap_or(target)));
                let is_target = |text: &str| TARGET.contains(&text) || text == target && target != ".";
                let args: Vec<Argument<'_>> =
                    call.args.iter().filter(|arg| !is_target(&arg.text)).cloned().collect();
                self.install(Call { args: &args, ..call });
            }
            Some(("uninstall", call)) => {
                let names = call.args.iter().map(|arg| &*arg.text);
                let names: Vec<&str> = names.filter(|name| !name.starts_with('-')).collect();
                self.declared.packages.retain(|package| !names.contains(&package.name.as_str()));
                self.declared.remark(call.span, format!("removes {}", excerpt(&names.join(" "))));
            }
            _ => {}
        }
    }

    /// The indexes that environment variables name.
    pub(super) fn indexes_from_env(&self, set: &CommandEnv) -> Indexes {
        let value = |name: &str| self.value(set, name);
        let mut indexes = Indexes::default();
        for url in ["PIP_INDEX_URL", "UV_INDEX_URL", "UV_DEFAULT_INDEX"].into_iter().filter_map(value) {
            indexes.set_main(&url);
        }
        for name in
            ["PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS", "UV_INDEX"]
        {
            value(name).iter().flat_map(|list| list.split_whitespace()).for_each(|url| indexes.add(url));
        }
        if let Some(backend) = value("UV_TORCH_BACKEND") {
            indexes.set_backend(&backend);
        }
        indexes
    }

    fn conda(&mut self, program: &str, call: Call<'_>) {
        let Some((name, call)) = call.subcommand() else { return };
        match name {
            "install" | "create" | "update" | "upgrade" => self.conda_install(program, call),
            "env" => {
                if let Some(("create" | "update", call)) = call.subcommand() {
                    self.conda_install("micromamba", call);
                }
            }
            "run" if call.depth < MAX_DEPTH => {
                let mut rest = call.args;
                while let [option, behind @ ..] = rest
                    && option.text.starts_with('-')
                {
                    let has_value = ["-n", "--name", "-p", "--prefix", "--cwd"].contains(&&*option.text);
                    rest = if has_value { behind.get(1..).unwrap_or_default() } else { behind };
                }
                self.command(rest, call.within, call.depth + 1);
            }
            _ => {}
        }
    }

    fn conda_install(&mut self, program: &str, call: Call<'_>) {
        let mut args = call.args.iter();
        while let Some(arg) = args.next() {
            let span = self.span(arg.bytes.clone(), call.within);
            let text: &str = &arg.text;
            let (option, inline) =
                text.split_once('=').map_or((text, None), |(option, value)| (option, Some(value)));
            let mut value = || inline.or_else(|| args.next().map(|arg| &*arg.text));
            match option {
                "-c" | "--channel" => self.declared.channels.extend(value().map(str::to_owned)),
                "-f" if program != "micromamba" => {}
                "-f" | "--file" => {
                    let file = value().unwrap_or_default();
                    let text = self.fs.text(&self.cwd, file);
                    let read =
                        text.and_then(|(path, text)| Some((conda::read(&text, self.arch).ok()?, path)));
                    match read {
                        Some((environment, path)) => self.declared.merge(environment, &path),
                        None => self.declared.note(span, pip::cannot_read(file)),
                    }
                }
                "-n" | "--name" | "-p" | "--prefix" | "-r" | "--root-prefix" | "--solver" | "--platform"
                | "--subdir" | "--experimental" | "--clone" => {
                    value();
                }
                _ if text.starts_with('-') || text.is_empty() => {}
                _ if arg.is_unresolved => {
                    self.declared.note(span, format!("`{}` cannot be resolved", excerpt(text)));
                }
                _ => {
                    if let Err(message) = conda::declare(self.declared, text, span) {
                        self.declared.note(span, message);
                    }
                }
            }
        }
    }

    fn system(&mut self, call: Call<'_>) {
        let Some(("install" | "reinstall", call)) = call.subcommand() else { return };
        let mut args = call.args.iter();
        while let Some(arg) = args.next() {
            let text: &str = &arg.text;
            if ["-t", "-o", "-c", "--target-release", "--option", "--enablerepo"].contains(&text) {
                args.next();
                continue;
            }
            if text.starts_with('-') || text.is_empty() {
                continue;
            }
            let span = self.span(arg.bytes.clone(), call.within);
            if [".deb", ".rpm"].iter().any(|ending| text.ends_with(ending)) || is_gpu_program(text) {
                self.declared.note(span, format!("packages installed by `{}` are unknown", excerpt(text)));
                continue;
            }
            if arg.is_unresolved {
                self.declared.note(span, format!("`{}` cannot be resolved", excerpt(text)));
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
                let (version, manager) = (version.map(str::to_owned), Manager::System);
                self.declared.cuda_packages.push(CudaPackage { name, version, cuda, manager, span });
            }
        }
    }
}

/// Distribution packages that can use a GPU by themselves.
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

/// The program name without its directory.
pub(super) fn program_name<'c>(arg: &'c Argument<'_>) -> &'c str {
    arg.text.rsplit('/').next().unwrap_or_default()
}

fn is_pip(program: &str) -> bool {
    program
        .strip_prefix("pip")
        .is_some_and(|version| version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
}
