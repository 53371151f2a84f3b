//! Installers that read files: pip and uv with requirements and projects, uv and Poetry with lock files.

use cudock_base::Span;

use super::run::{Reader, subcommand};
use crate::compile::{Compiled, of_torch};
use crate::files::join;
use crate::pip::{self, Word};
use crate::requirement::{Context, declare};
use crate::requirements::{Beside, constrain, mark_exclusive, pin, read_in};
use crate::select::{Groups, Selection};
use crate::sources::is_cuda_source;
use crate::{excerpt, poetry_lock, pyproject, uv_lock};

/// Variables that hold for one command.
type Set = [(String, Option<String>)];

impl Reader<'_, '_> {
    /// `pip install` and `uv pip install`.
    pub(super) fn install(&mut self, words: &[Word], set: &Set, span: Span, within: Option<Span>) {
        let found = pip::arguments(words);
        self.remember_target(words);
        self.notes(found.notes, within);
        let indexes = found.indexes.or(&self.surrounding(set));
        let first = self.declared.packages.len();
        let selection = Selection {
            extras: found.extras.iter().cloned().collect(),
            groups: found.groups.iter().cloned().collect(),
            ..Selection::default()
        };
        for file in &found.files {
            let span = self.span(file.bytes.clone(), within);
            let Some((path, text)) = self.scene.text(&self.cwd, &file.text).filter(|_| !file.is_open) else {
                self.declared.note(span, pip::not_followed(&file.text));
                continue;
            };
            let read = if path.ends_with("pyproject.toml") {
                pyproject::read(&text, self.arch).map(|mut project| {
                    selection.apply(&mut project);
                    project
                })
            } else {
                read_in(
                    &text,
                    self.arch,
                    Beside::new(&path, self.scene.files, &self.scene.included).with_indexes(&indexes),
                )
            };
            match read {
                Ok(included) => self.declared.absorb(included, &path),
                Err(_) => self.declared.note(span, pip::not_followed(&file.text)),
            }
        }
        let without_dependencies = words.iter().any(|word| word.text == "--no-deps");
        for (word, is_editable) in found
            .requirements
            .iter()
            .map(|word| (word, false))
            .chain(found.editable.iter().map(|word| (word, true)))
        {
            let span = self.span(word.bytes.clone(), within);
            if let Some((directory, extras)) = local_project(&word.text) {
                if self.is_wheel_directory(directory) {
                    continue;
                }
                let extras = extras.split(',').map(|extra| extra.trim().to_owned());
                let selection = Selection {
                    extras: extras.chain(selection.extras.clone()).collect(),
                    ..selection.clone()
                };
                self.local(directory, &selection, without_dependencies, set, span, is_editable);
                continue;
            }
            if word.text.starts_with("git+") || word.text.contains("@ git+") {
                self.extension(&word.text, set, span);
            }
            let context = Context { span, arch: self.arch, group: None, tag: indexes.tag() };
            let before = self.declared.packages.len();
            if let Err(mistake) = declare(self.declared, &word.text, context) {
                self.declared.note(span, format!("`{}`: {}", excerpt(&word.text), mistake.message));
            }
            mark_exclusive(self.declared, before, &indexes);
        }
        for file in &found.constraints {
            match self.scene.text(&self.cwd, &file.text) {
                Some((_, text)) => {
                    let packages = self.declared.packages.get_mut(first..).unwrap_or_default();
                    constrain(packages, &text, self.arch);
                }
                None => self.declared.note(span, pip::not_followed(&file.text)),
            }
        }
        if found.upgrades {
            let open = self.declared.packages.iter().skip(first).filter(|package| package.exact.is_none());
            let names: Vec<String> = open.map(|package| package.name.clone()).collect();
            self.declared.upgraded.extend(names);
        }
        if let (Some(conflict), Some(first)) = (indexes.conflict(), words.first()) {
            let span = self.span(first.bytes.clone(), within);
            self.declared.note(span, conflict);
        }
    }

    /// Where packages are put that are not for the system's own Python.
    fn remember_target(&mut self, words: &[Word]) {
        for (index, word) in words.iter().enumerate() {
            let (option, glued) = word.text.split_once('=').unwrap_or((&word.text, ""));
            let next = || words.get(index + 1).map_or("", |word| word.text.as_str());
            match option {
                "--target" | "-t" | "--prefix" | "--root" => {
                    let directory = if glued.is_empty() { next() } else { glued };
                    self.scene.prefixes.push(join(&self.cwd, directory));
                }
                "--user" => self.scene.prefixes.push("root/.local".to_owned()),
                _ => {}
            }
        }
    }

    /// Whether a path holds wheels that another stage built and this one was given.
    fn is_wheel_directory(&self, path: &str) -> bool {
        let path = join(&self.cwd, path);
        let directory = path.trim_end_matches("*.whl").trim_end_matches('*').trim_end_matches('/');
        self.scene.prefixes.iter().any(|prefix| prefix == directory)
    }

    /// A project in the container's file system.
    fn local(
        &mut self,
        directory: &str,
        selection: &Selection,
        without_dependencies: bool,
        set: &Set,
        span: Span,
        is_editable: bool,
    ) {
        let not_read = if is_editable {
            pip::from_source(directory)
        } else {
            format!("{} is not read", excerpt(directory))
        };
        let base = join(&self.cwd, directory);
        let setup = self.scene.text(&base, "setup.py");
        let builds_cuda = setup.as_ref().is_some_and(|(_, text)| text.contains("CUDAExtension"))
            || self.scene.cuda_sources.iter().any(|path| is_cuda_source(path));
        if builds_cuda {
            self.extension(directory, set, span);
        }
        let project = self.scene.text(&base, "pyproject.toml");
        let read = project.and_then(|(path, text)| Some((pyproject::read(&text, self.arch).ok()?, path)));
        let Some((mut project, path)) = read.filter(|_| setup.is_none() || !builds_cuda) else {
            self.declared.note(span, not_read);
            return;
        };
        // What `setup.py` asks for is in code, which is not run.
        if project.packages.is_empty() && setup.is_some() {
            self.declared.note(span, not_read);
        }
        selection.apply(&mut project);
        if !without_dependencies {
            self.declared.absorb(project, &path);
        }
    }

    /// An extension that is compiled for the architectures of `TORCH_CUDA_ARCH_LIST`.
    pub(super) fn extension(&mut self, name: &str, set: &Set, span: Span) {
        let Some(list) = self.value(set, "TORCH_CUDA_ARCH_LIST") else { return };
        self.declared.compiled.push(Compiled {
            name: format!("extension built from {}", excerpt(name)),
            output: None,
            is_extension: true,
            targets: of_torch(&list),
            image: self.scene.image.clone(),
            file: None,
            span,
        });
    }

    pub(super) fn uv(&mut self, arguments: &[Word], set: &Set, span: Span, within: Option<Span>) {
        match subcommand(arguments) {
            Some(("pip", rest)) => match subcommand(rest) {
                Some(("install", rest)) => self.install(rest, set, span, within),
                Some(("sync", rest)) => {
                    let files = rest.iter().filter(|word| !word.text.starts_with('-'));
                    let words: Vec<Word> = files
                        .flat_map(|word| [Word { text: "-r".to_owned(), ..Word::default() }, word.clone()])
                        .collect();
                    self.install(&words, set, span, within);
                }
                _ => {}
            },
            Some(("add", rest)) => self.install(rest, set, span, within),
            Some(("sync", rest)) => self.uv_sync(rest, set, span),
            Some(("venv", rest)) => self.environment_at(rest),
            _ => {}
        }
    }

    fn uv_sync(&mut self, words: &[Word], set: &Set, span: Span) {
        let selection = uv_selection(words);
        let environment = self.value(set, "UV_PROJECT_ENVIRONMENT").unwrap_or_else(|| ".venv".to_owned());
        self.scene.prefixes.push(join(&self.cwd, &environment));
        let project = self.scene.text(&self.cwd, "pyproject.toml");
        let project = project.and_then(|(path, text)| Some((pyproject::read(&text, self.arch).ok()?, path)));
        let lock = self.scene.text(&self.cwd, "uv.lock");
        let groups = project.as_ref().map(|(project, _)| project.groups.clone());
        if let Some((path, text)) = lock {
            // Without the project's own file extras and groups are not told apart.
            let either = Selection {
                groups: selection.groups.union(&selection.extras).cloned().collect(),
                ..selection.clone()
            };
            let known = if groups.is_some() { &selection } else { &either };
            let groups =
                groups.unwrap_or_else(|| Groups { default: ["dev".to_owned()].into(), ..Groups::default() });
            if let Ok(locked) = uv_lock::read(&text, self.arch, Some((known, &groups))) {
                self.declared.absorb(locked, &path);
                return;
            }
        }
        match project {
            Some((mut project, path)) => {
                selection.apply(&mut project);
                self.declared.absorb(project, &path);
            }
            None => self.declared.note(span, "what uv installs is in files that are not read here"),
        }
    }

    pub(super) fn poetry(&mut self, arguments: &[Word], span: Span) {
        let Some(("install" | "sync" | "update" | "add", words)) = subcommand(arguments) else { return };
        let project = self.scene.text(&self.cwd, "pyproject.toml");
        let read = project.and_then(|(path, text)| Some((pyproject::read(&text, self.arch).ok()?, path)));
        let Some((mut project, path)) = read else {
            self.declared.note(span, "what poetry installs is in files that are not read here");
            return;
        };
        let lock = self.scene.text(&self.cwd, "poetry.lock");
        if let Some(locked) = lock.and_then(|(_, text)| poetry_lock::read(&text).ok()) {
            pin(&mut project.packages, &locked);
            // What others need in turn is in the lock alone.
            let known: Vec<String> = project.packages.iter().map(|package| package.name.clone()).collect();
            let further = locked
                .into_iter()
                .filter(|package| package.name == "torch" && !known.contains(&package.name));
            project.packages.extend(further);
        }
        poetry_selection(words).apply(&mut project);
        self.scene.prefixes.push(join(&self.cwd, ".venv"));
        self.declared.absorb(project, &path);
    }

    /// `python setup.py …`, and scripts.
    pub(super) fn python(&mut self, arguments: &[Word], set: &Set, span: Span) {
        let Some(script) = arguments.iter().find(|word| !word.text.starts_with('-')) else { return };
        if arguments.first().is_some_and(|option| option.text == "-c") {
            let runs = ["subprocess", "os.system", "urlretrieve", "urlopen"];
            if runs.iter().any(|word| script.text.contains(word)) {
                self.unknown("python -c", span);
            }
            return;
        }
        if script.text.ends_with("setup.py") {
            self.extension("setup.py", set, span);
        }
        self.unknown(&format!("python {}", script.text), span);
    }
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
fn values(words: &[Word], options: &[&str]) -> impl Iterator<Item = String> {
    let mut found = Vec::new();
    for (index, word) in words.iter().enumerate() {
        let (option, glued) = word.text.split_once('=').unwrap_or((&word.text, ""));
        if options.contains(&option) {
            let next = words.get(index + 1).map_or("", |word| word.text.as_str());
            let value = if glued.is_empty() { next } else { glued };
            found.extend(value.split([',', ' ']).filter(|name| !name.is_empty()).map(str::to_owned));
        }
    }
    found.into_iter()
}

fn uv_selection(words: &[Word]) -> Selection {
    let has = |option: &str| words.iter().any(|word| word.text == option);
    let all = |option: &str| has(option).then(|| "*".to_owned());
    let only: Vec<String> = values(words, &["--only-group"]).collect();
    let mut without: std::collections::BTreeSet<String> = values(words, &["--no-group"]).collect();
    if has("--no-dev") {
        without.insert("dev".to_owned());
    }
    Selection {
        only_groups: !only.is_empty() || has("--only-dev"),
        extras: values(words, &["--extra"]).chain(all("--all-extras")).collect(),
        groups: values(words, &["--group"])
            .chain(only.clone())
            .chain(has("--only-dev").then(|| "dev".to_owned()))
            .chain(all("--all-groups"))
            .collect(),
        without,
        default_groups: !has("--no-default-groups") && only.is_empty(),
    }
}

fn poetry_selection(words: &[Word]) -> Selection {
    let has = |option: &str| words.iter().any(|word| word.text == option);
    let all = |option: &str| has(option).then(|| "*".to_owned());
    let only: Vec<String> = values(words, &["--only"]).collect();
    let mut without: std::collections::BTreeSet<String> = values(words, &["--without"]).collect();
    if has("--no-dev") {
        without.insert("dev".to_owned());
    }
    Selection {
        only_groups: !only.is_empty() && !only.iter().any(|group| group == "main") || has("--only-root"),
        extras: values(words, &["--extras", "-E"]).chain(all("--all-extras")).collect(),
        groups: values(words, &["--with"]).chain(only.clone()).chain(all("--all-groups")).collect(),
        without,
        default_groups: only.is_empty(),
    }
}
