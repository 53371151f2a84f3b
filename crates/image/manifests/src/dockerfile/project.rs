//! Reads installers that take files: pip and uv with requirements and projects, uv and Poetry with lock files.

use cudock_base::Span;
use cudock_base::bug::PartsMut;
use cudock_dockerfile::Argument;

use super::run::{Call, CommandEnv, ScriptReader};
use crate::compile::{Compiled, Targets};
use crate::files::join;
use crate::lock_files::{poetry, uv};
use crate::pip;
use crate::pip::requirement::{Context, declare};
use crate::pip::requirements::{self, IncludeContext, constrain, mark_exclusive, pin};
use crate::select::{Groups, Selection};
use crate::sources::is_cuda_source;
use crate::{Declared, excerpt, pyproject};

impl ScriptReader<'_, '_> {
    /// Reads `pip install` and `uv pip install`.
    pub(super) fn install(&mut self, call: Call<'_>) {
        let Call { args, set, within, .. } = call;
        let found = pip::parse_args(args);
        self.record_prefixes(args);
        self.notes(found.notes, within);
        let indexes = found.indexes.or_else(|| self.indexes_from_env(set));
        let first = self.declared.packages.len();
        let selection = Selection {
            extras: found.extras.iter().cloned().collect(),
            groups: found.groups.iter().cloned().collect(),
            ..Selection::default()
        };
        for file in &found.files {
            let span = self.span(file.bytes.clone(), within);
            let text = self.fs.text(&self.cwd, &file.text).filter(|_| !file.is_unresolved);
            let read = text.and_then(|(path, text)| {
                let read = if path.ends_with("pyproject.toml") {
                    pyproject::read(&text, self.arch).map(|project| selection.apply(project))
                } else {
                    let context = IncludeContext::new(&path, self.fs.files, &self.fs.included);
                    requirements::read(&text, self.arch, context.with_indexes(&indexes))
                };
                Some((read.ok()?, path))
            });
            match read {
                Some((included, path)) => self.declared.merge(included, &path),
                None => self.declared.note(span, pip::cannot_read(&file.text)),
            }
        }
        let editable = found.editable.iter().map(|arg| (arg, true));
        for (arg, is_editable) in found.requirements.iter().map(|arg| (arg, false)).chain(editable) {
            let span = self.span(arg.bytes.clone(), within);
            if let Some((directory, extras)) = local_project(&arg.text) {
                if self.is_wheel_directory(directory) {
                    continue;
                }
                let extras = extras.split(',').map(|extra| extra.trim().to_owned());
                let selection = Selection {
                    extras: extras.chain(selection.extras.clone()).collect(),
                    ..selection.clone()
                };
                self.local(directory, &selection, Call { span, ..call }, is_editable);
                continue;
            }
            if arg.text.starts_with("git+") || arg.text.contains("@ git+") {
                self.extension(&arg.text, set, span);
            }
            let context = Context { span, arch: self.arch, group: None, tag: indexes.tag() };
            let before = self.declared.packages.len();
            if let Err(error) = declare(self.declared, &arg.text, context) {
                self.declared.note(span, format!("`{}`: {}", excerpt(&arg.text), error.message));
            }
            mark_exclusive(self.declared, before, &indexes);
        }
        for file in &found.constraints {
            match self.fs.text(&self.cwd, &file.text) {
                Some((_, text)) => {
                    let packages = self.declared.packages.part_mut(first..);
                    constrain(packages, &text, self.arch);
                }
                None => self.declared.note(call.span, pip::cannot_read(&file.text)),
            }
        }
        if found.upgrades {
            let open = self.declared.packages.iter().skip(first).filter(|package| package.exact.is_none());
            let names: Vec<String> = open.map(|package| package.name.clone()).collect();
            self.declared.upgraded.extend(names);
        }
        if let (Some(conflict), Some(first)) = (indexes.conflict(), args.first()) {
            let span = self.span(first.bytes.clone(), within);
            self.declared.note(span, conflict);
        }
    }

    /// Records directories that packages are installed to, besides those of the system's Python.
    fn record_prefixes(&mut self, args: &[Argument<'_>]) {
        for (index, arg) in args.iter().enumerate() {
            let (option, inline) = arg.text.split_once('=').unwrap_or((&arg.text, ""));
            let next = || args.get(index + 1).map_or("", |arg| &*arg.text);
            match option {
                "--target" | "-t" | "--prefix" | "--root" => {
                    let directory = if inline.is_empty() { next() } else { inline };
                    self.fs.prefixes.push(join(&self.cwd, directory));
                }
                "--user" => self.fs.prefixes.push("root/.local".to_owned()),
                _ => {}
            }
        }
    }

    /// Whether a path holds wheels that were copied from another stage.
    fn is_wheel_directory(&self, path: &str) -> bool {
        let path = join(&self.cwd, path);
        let directory = path.trim_end_matches("*.whl").trim_end_matches('*').trim_end_matches('/');
        self.fs.prefixes.iter().any(|prefix| prefix == directory)
    }

    /// Installs a project from the container's file system.
    fn local(&mut self, directory: &str, selection: &Selection, call: Call<'_>, is_editable: bool) {
        let unknown_dependencies = if is_editable {
            pip::from_source(directory)
        } else {
            format!("dependencies of {} are unknown", excerpt(directory))
        };
        let base = join(&self.cwd, directory);
        let setup = self.fs.text(&base, "setup.py");
        let builds_cuda = setup.as_ref().is_some_and(|(_, text)| text.contains("CUDAExtension"))
            || self.fs.cuda_sources.iter().any(|path| is_cuda_source(path));
        if builds_cuda {
            self.extension(directory, call.set, call.span);
        }
        let project = self.pyproject(&base);
        let Some((project, path)) = project.filter(|_| setup.is_none() || !builds_cuda) else {
            self.declared.note(call.span, unknown_dependencies);
            return;
        };
        // Requirements in `setup.py` are code, which is not run.
        if project.packages.is_empty() && setup.is_some() {
            self.declared.note(call.span, unknown_dependencies);
        }
        if !call.args.iter().any(|arg| arg.text == "--no-deps") {
            self.declared.merge(selection.apply(project), &path);
        }
    }

    /// The project in a directory, and the path of its `pyproject.toml`.
    fn pyproject(&self, directory: &str) -> Option<(Declared, String)> {
        let (path, text) = self.fs.text(directory, "pyproject.toml")?;
        Some((pyproject::read(&text, self.arch).ok()?, path))
    }

    /// Records an extension that is compiled for the architectures of `TORCH_CUDA_ARCH_LIST`.
    pub(super) fn extension(&mut self, name: &str, set: &CommandEnv, span: Span) {
        let Some(list) = self.value(set, "TORCH_CUDA_ARCH_LIST") else { return };
        self.declared.compiled.push(Compiled {
            name: format!("extension built from {}", excerpt(name)),
            output: None,
            is_extension: true,
            targets: Targets::of_torch_list(&list),
            image: self.fs.image.clone(),
            file: None,
            span,
        });
    }

    pub(super) fn uv(&mut self, call: Call<'_>) {
        match call.subcommand() {
            Some(("pip", call)) => match call.subcommand() {
                Some(("install", call)) => self.install(call),
                Some(("sync", call)) => {
                    let option = Argument { text: "-r".into(), ..Argument::default() };
                    let files = call.args.iter().filter(|arg| !arg.text.starts_with('-'));
                    let args: Vec<Argument<'_>> =
                        files.flat_map(|arg| [option.clone(), arg.clone()]).collect();
                    self.install(Call { args: &args, ..call });
                }
                _ => {}
            },
            Some(("add", call)) => self.install(call),
            Some(("sync", call)) => self.uv_sync(call),
            Some(("venv", call)) => self.virtual_environment(call),
            _ => {}
        }
    }

    fn uv_sync(&mut self, call: Call<'_>) {
        let selection = uv_selection(call.args);
        let environment =
            self.value(call.set, "UV_PROJECT_ENVIRONMENT").unwrap_or_else(|| ".venv".to_owned());
        self.fs.prefixes.push(join(&self.cwd, &environment));
        let project = self.pyproject(&self.cwd);
        let lock = self.fs.text(&self.cwd, "uv.lock");
        let groups = project.as_ref().map(|(project, _)| project.groups.clone());
        if let Some((path, text)) = lock {
            // Without `pyproject.toml`, extras cannot be distinguished from groups.
            let either = Selection {
                groups: selection.groups.union(&selection.extras).cloned().collect(),
                ..selection.clone()
            };
            let known = if groups.is_some() { &selection } else { &either };
            let groups =
                groups.unwrap_or_else(|| Groups { default: ["dev".to_owned()].into(), ..Groups::default() });
            if let Ok(locked) = uv::read(&text, self.arch, Some((known, &groups))) {
                self.declared.merge(locked, &path);
                return;
            }
        }
        match project {
            Some((project, path)) => self.declared.merge(selection.apply(project), &path),
            None => self.declared.note(call.span, no_project("uv")),
        }
    }

    pub(super) fn poetry(&mut self, call: Call<'_>) {
        let Some(("install" | "sync" | "update" | "add", call)) = call.subcommand() else { return };
        let Some((mut project, path)) = self.pyproject(&self.cwd) else {
            self.declared.note(call.span, no_project("poetry"));
            return;
        };
        let lock = self.fs.text(&self.cwd, "poetry.lock");
        if let Some(locked) = lock.and_then(|(_, text)| poetry::read(&text).ok()) {
            pin(&mut project.packages, &locked);
            // Transitive dependencies are in the lock only.
            if !project.packages.iter().any(|package| package.name == "torch") {
                project.packages.extend(locked.into_iter().filter(|package| package.name == "torch"));
            }
        }
        self.fs.prefixes.push(join(&self.cwd, ".venv"));
        self.declared.merge(poetry_selection(call.args).apply(project), &path);
    }

    /// Reads `python setup.py …`, and Python scripts.
    pub(super) fn python(&mut self, call: Call<'_>) {
        let Some(script) = call.positional() else { return };
        if call.args.first().is_some_and(|option| option.text == "-c") {
            let runs = ["subprocess", "os.system", "urlretrieve", "urlopen"];
            if runs.iter().any(|arg| script.text.contains(arg)) {
                self.unknown("python -c", call.span);
            }
            return;
        }
        if script.text.ends_with("setup.py") {
            self.extension("setup.py", call.set, call.span);
        }
        self.unknown(&format!("python {}", script.text), call.span);
    }
}

fn no_project(program: &str) -> String {
    format!("cannot determine what {program} installs: pyproject.toml not found or not readable")
}

/// The directory and extras of a project: `.`, `./tools[gpu]`, `/src`.
fn local_project(text: &str) -> Option<(&str, &str)> {
    let (directory, extras) = match text.split_once('[') {
        Some((directory, extras)) => (directory, extras.strip_suffix(']')?),
        None => (text, ""),
    };
    let is_file = [".whl", ".tar.gz", ".zip"].iter().any(|ending| directory.ends_with(ending));
    let is_local = directory.starts_with(['.', '/']) && (!is_file || directory.contains('*'));
    is_local.then_some((directory, extras))
}

/// The names that follow an option: `--extra gpu`, `--with=a,b`.
fn values(args: &[Argument<'_>], options: &[&str]) -> impl Iterator<Item = String> {
    let mut found = Vec::new();
    for (index, arg) in args.iter().enumerate() {
        let (option, inline) = arg.text.split_once('=').unwrap_or((&arg.text, ""));
        if options.contains(&option) {
            let next = args.get(index + 1).map_or("", |arg| &*arg.text);
            let value = if inline.is_empty() { next } else { inline };
            found.extend(value.split([',', ' ']).filter(|name| !name.is_empty()).map(str::to_owned));
        }
    }
    found.into_iter()
}

fn uv_selection(args: &[Argument<'_>]) -> Selection {
    let flag = |option, name| flag_value(args, option, name);
    let only: Vec<String> = values(args, &["--only-group"]).collect();
    let only_dev = flag("--only-dev", "dev");
    Selection {
        only_groups: !only.is_empty() || only_dev.is_some(),
        default_groups: flag("--no-default-groups", "").is_none() && only.is_empty(),
        extras: values(args, &["--extra"]).chain(flag("--all-extras", "*")).collect(),
        groups: values(args, &["--group"])
            .chain(only)
            .chain(only_dev)
            .chain(flag("--all-groups", "*"))
            .collect(),
        without: values(args, &["--no-group"]).chain(flag("--no-dev", "dev")).collect(),
    }
}

fn poetry_selection(args: &[Argument<'_>]) -> Selection {
    let flag = |option, name| flag_value(args, option, name);
    let only: Vec<String> = values(args, &["--only"]).collect();
    let only_groups = !only.is_empty() && !only.iter().any(|group| group == "main");
    Selection {
        only_groups: only_groups || flag("--only-root", "").is_some(),
        default_groups: only.is_empty(),
        extras: values(args, &["--extras", "-E"]).chain(flag("--all-extras", "*")).collect(),
        groups: values(args, &["--with"]).chain(only).chain(flag("--all-groups", "*")).collect(),
        without: values(args, &["--without"]).chain(flag("--no-dev", "dev")).collect(),
    }
}

/// The name that a flag stands for, if it is given.
fn flag_value(args: &[Argument<'_>], flag: &str, name: &str) -> Option<String> {
    args.iter().any(|arg| arg.text == flag).then(|| name.to_owned())
}
