//! Parses the command lines of pip and uv; requirements files have the same options.

pub(crate) mod marker;
pub(crate) mod requirement;
pub(crate) mod requirements;

use std::collections::{BTreeSet, HashSet};
use std::sync::LazyLock;

use cudock_dockerfile::{Argument, NoteAt};

use super::{excerpt, tag};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct InstallArgs<'t> {
    pub(super) requirements: Vec<Argument<'t>>,
    /// Requirements files.
    pub(super) files: Vec<Argument<'t>>,
    pub(super) constraints: Vec<Argument<'t>>,
    pub(super) editable: Vec<Argument<'t>>,
    /// Extras of a project that is installed by its `pyproject.toml`.
    pub(super) extras: Vec<String>,
    pub(super) groups: Vec<String>,
    pub(super) upgrades: bool,
    pub(super) indexes: Indexes,
    pub(super) notes: Vec<NoteAt>,
}

/// The indexes that packages may come from, by their tags.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Indexes {
    main: Option<String>,
    extra: BTreeSet<String>,
    backend: Option<String>,
}

impl Indexes {
    /// Sets the main index, replacing an earlier one.
    pub(super) fn set_main(&mut self, url: &str) {
        self.main = tag::from_url(url);
    }

    pub(super) fn add(&mut self, url: &str) {
        self.extra.extend(tag::from_url(url));
    }

    pub(super) fn set_backend(&mut self, backend: &str) {
        self.backend = tag::at_start(backend);
    }

    /// The tag of the installed build, if the indexes agree on one.
    pub(super) fn tag(&self) -> Option<&str> {
        match (&self.backend, self.tags().as_slice()) {
            (Some(backend), _) => Some(backend),
            (None, [tag]) => Some(tag),
            _ => None,
        }
    }

    /// Whether packages come only from the index of the tag.
    pub(super) fn is_exclusive(&self) -> bool {
        self.main.is_some() && self.extra.is_empty() && self.backend.is_none()
    }

    /// The note for indexes that disagree.
    pub(super) fn conflict(&self) -> Option<String> {
        let tags = self.tags();
        (self.backend.is_none() && tags.len() > 1)
            .then(|| format!("indexes for {}: cannot determine which build is installed", tags.join(" and ")))
    }

    fn tags(&self) -> Vec<&str> {
        let tags: BTreeSet<&str> = self.main.iter().chain(&self.extra).map(String::as_str).collect();
        tags.into_iter().collect()
    }

    /// These indexes, or others if there are none.
    pub(super) fn or_else(self, others: impl FnOnce() -> Self) -> Self {
        if self == Self::default() { others() } else { self }
    }
}

/// Options that do not affect what is installed, but whose value must not be read as a package.
static IGNORED_WITH_VALUE: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    let options = "
        --abi --allow-insecure-host --build-constraint --build-constraints --cache-dir --cert --client-cert --color
        --compression --config-file --config-setting --config-settings --directory --exclude-newer --exists-action
        --fork-strategy --global-option --hash --implementation --index-strategy --install-option --keyring-provider
        --link-mode --log --no-binary --no-binary-package --no-build-isolation-package --no-build-package
        --no-compile-bytecode-package --only-binary --override --overrides --platform --prefix --prerelease
        --progress-bar --project --proxy --python --python-platform --python-version --refresh-package
        --reinstall-package --report --resolution --retries --root --src --target --timeout --trusted-host
        --upgrade-package
        -C -P -b -p -t -d";
    options.split_ascii_whitespace().collect()
});

/// Parses the arguments of `pip install`, or an option line of a requirements file.
pub(super) fn parse_args<'t>(args: &[Argument<'t>]) -> InstallArgs<'t> {
    let mut found = InstallArgs::default();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        if !arg.text.starts_with('-') {
            found.positional(arg);
            continue;
        }
        let (name, inline) = split_option(&arg.text);
        let value = || match inline {
            Some(value) => Argument { text: value.to_owned().into(), ..arg.clone() },
            None => args.next().cloned().unwrap_or_default(),
        };
        if found.option(name, value) {
            continue;
        }
        if matches!(name, "-U" | "--upgrade") {
            found.upgrades = true;
        } else if name == "--all-extras" {
            found.extras.push("*".to_owned());
        } else if inline.is_none() && IGNORED_WITH_VALUE.contains(name) {
            args.next();
        }
    }
    found
}

/// Splits `--name=value`, and `-rvalue` for the short options that affect what is installed.
fn split_option(arg: &str) -> (&str, Option<&str>) {
    if arg.starts_with("--") {
        return arg.split_once('=').map_or((arg, None), |(name, value)| (name, Some(value)));
    }
    match arg.split_at_checked(2) {
        Some((name @ ("-r" | "-c" | "-e" | "-i" | "-f"), value)) if !value.is_empty() => (name, Some(value)),
        _ => (arg, None),
    }
}

impl<'t> InstallArgs<'t> {
    /// Applies an option that affects what is installed, with its value; returns whether it is one.
    fn option(&mut self, name: &str, value: impl FnOnce() -> Argument<'t>) -> bool {
        match name {
            "-r" | "--requirement" | "--requirements" => self.files.push(value()),
            "-c" | "--constraint" | "--constraints" => self.constraints.push(value()),
            "-e" | "--editable" => self.editable.push(value()),
            "--extra" => self.extras.push(value().text.into_owned()),
            "--group" => self.groups.push(value().text.into_owned()),
            "-i" | "--index-url" | "--pypi-url" | "--default-index" => {
                self.index(&value(), Indexes::set_main);
            }
            "--extra-index-url" | "-f" | "--find-links" => self.index(&value(), Indexes::add),
            "--index" => self.index(&value(), |indexes, text| {
                let named = text.split_once('=').filter(|(name, _)| !name.contains(['/', ':']));
                indexes.add(named.map_or(text, |(_, url)| url));
            }),
            "--torch-backend" => {
                let value = value();
                if value.text == "auto" && !value.is_unresolved {
                    let note = "the build is chosen at install time by the installing machine";
                    self.notes.push((value.bytes, note.to_owned()));
                } else {
                    self.index(&value, Indexes::set_backend);
                }
            }
            _ => return false,
        }
        true
    }

    fn index(&mut self, value: &Argument<'_>, apply: fn(&mut Indexes, &str)) {
        if value.is_unresolved {
            let note = format!("index `{}` cannot be resolved", excerpt(&value.text));
            self.notes.push((value.bytes.clone(), note));
        } else {
            apply(&mut self.indexes, &value.text);
        }
    }

    /// Notes for files and projects that were not read.
    pub(super) fn unread(&self) -> Vec<NoteAt> {
        let files =
            self.files.iter().chain(&self.constraints).map(|arg| (arg.bytes.clone(), cannot_read(&arg.text)));
        files.chain(self.editable.iter().map(|arg| (arg.bytes.clone(), from_source(&arg.text)))).collect()
    }

    fn positional(&mut self, arg: &Argument<'t>) {
        if arg.is_unresolved {
            self.notes.push((arg.bytes.clone(), format!("`{}` cannot be resolved", excerpt(&arg.text))));
        } else if !arg.text.trim().is_empty() {
            self.requirements.push(arg.clone());
        }
    }
}

pub(super) fn cannot_read(file: &str) -> String {
    format!("cannot read `{}`", excerpt(file))
}

pub(super) fn from_source(project: &str) -> String {
    format!("`{}` is installed from source", excerpt(project))
}

/// Splits an option line as pip does: by space, with quotes.
pub(super) fn split(line: &str) -> Vec<Argument<'_>> {
    let mut args = Vec::new();
    let mut arg: Option<Argument<'_>> = None;
    let mut quote = None;
    for (at, ch) in line.char_indices() {
        let start = || Argument { bytes: at..at, ..Argument::default() };
        match quote {
            Some(end) if ch == end => quote = None,
            None if matches!(ch, '"' | '\'') => {
                quote = Some(ch);
                arg.get_or_insert_with(start);
            }
            None if ch.is_whitespace() => args.extend(arg.take()),
            _ => arg.get_or_insert_with(start).text.to_mut().push(ch),
        }
        if let Some(arg) = &mut arg {
            arg.bytes.end = at + ch.len_utf8();
        }
    }
    args.extend(arg);
    args
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_distinguished_from_packages() {
        let args = split(
            "-U torch --target /opt -q 'numpy<2' --index-url=https://x.org/whl/cu124 --log l -rfile.txt",
        );
        let found = parse_args(&args);
        let names: Vec<&str> = found.requirements.iter().map(|arg| &*arg.text).collect();
        assert_eq!(names, ["torch", "numpy<2"]);
        assert_eq!(found.indexes.tag(), Some("cu124"));
        assert_eq!(found.unread(), [(80..90, "cannot read `file.txt`".to_owned())]);
    }

    #[test]
    fn indexes_that_disagree_do_not_determine_the_build() {
        let args =
            split("torch --extra-index-url https://x.org/whl/cu124 --extra-index-url https://x.org/whl/cpu");
        let found = parse_args(&args);
        assert_eq!(found.indexes.tag(), None);
        assert_eq!(
            found.indexes.conflict().as_deref(),
            Some("indexes for cpu and cu124: cannot determine which build is installed")
        );
    }
}
