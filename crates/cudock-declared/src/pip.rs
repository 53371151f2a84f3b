//! What pip and uv take on their command lines; pip takes the same options in requirements files.

use std::collections::BTreeSet;
use std::ops::Range;

use super::{excerpt, tag};

/// A word of a command, and whether all of it is known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Word {
    pub(super) text: String,
    /// Holds the output of a command, or a variable that the file does not set.
    pub(super) is_open: bool,
    /// Its bytes in the script.
    pub(super) bytes: Range<usize>,
}

/// Something to note about the word at these bytes.
pub(super) type NoteAt = (Range<usize>, String);

/// What the words after `pip install` ask for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Arguments {
    pub(super) requirements: Vec<Word>,
    /// Requirements files.
    pub(super) files: Vec<Word>,
    /// Files of constraints.
    pub(super) constraints: Vec<Word>,
    /// Projects that are installed as they stand.
    pub(super) editable: Vec<Word>,
    /// Extras of a project that is installed by its `pyproject.toml`.
    pub(super) extras: Vec<String>,
    /// Dependency groups.
    pub(super) groups: Vec<String>,
    /// Whether what is installed already is replaced by the newest.
    pub(super) upgrades: bool,
    pub(super) indexes: Indexes,
    pub(super) notes: Vec<NoteAt>,
}

/// The indexes that packages may come from, by their tags.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Indexes {
    main: Option<String>,
    further: BTreeSet<String>,
    backend: Option<String>,
}

impl Indexes {
    /// Of two main indexes, the later wins.
    pub(super) fn set_main(&mut self, address: &str) {
        self.main = tag::of_address(address);
    }

    pub(super) fn add(&mut self, address: &str) {
        self.further.extend(tag::of_address(address));
    }

    pub(super) fn set_backend(&mut self, backend: &str) {
        self.backend = tag::at_start(backend);
    }

    /// The tag of what is installed, if the indexes agree on one.
    pub(super) fn tag(&self) -> Option<&str> {
        match (&self.backend, self.tags().as_slice()) {
            (Some(backend), _) => Some(backend),
            (None, [tag]) => Some(tag),
            _ => None,
        }
    }

    /// Whether packages come from the index of the tag alone.
    pub(super) fn is_exclusive(&self) -> bool {
        self.main.is_some() && self.further.is_empty() && self.backend.is_none()
    }

    /// What to say if they do not agree.
    pub(super) fn conflict(&self) -> Option<String> {
        let tags = self.tags();
        (self.backend.is_none() && tags.len() > 1)
            .then(|| format!("indexes for {}: which build is taken is not told", tags.join(" and ")))
    }

    fn tags(&self) -> Vec<&str> {
        let tags: BTreeSet<&str> = self.main.iter().chain(&self.further).map(String::as_str).collect();
        tags.into_iter().collect()
    }

    /// The indexes of a surrounding, where a command names none itself.
    pub(super) fn or(self, surrounding: &Self) -> Self {
        if self.main.is_none() && self.further.is_empty() && self.backend.is_none() {
            surrounding.clone()
        } else {
            self
        }
    }
}

/// Options whose value says nothing about what is installed, but must not be taken for a package.
const OTHERS_WITH_VALUE: [&str; 52] = [
    "--abi",
    "--allow-insecure-host",
    "--build-constraint",
    "--build-constraints",
    "--cache-dir",
    "--cert",
    "--client-cert",
    "--color",
    "--compression",
    "--config-file",
    "--config-setting",
    "--config-settings",
    "--directory",
    "--exclude-newer",
    "--exists-action",
    "--fork-strategy",
    "--global-option",
    "--hash",
    "--implementation",
    "--index-strategy",
    "--install-option",
    "--keyring-provider",
    "--link-mode",
    "--log",
    "--no-binary",
    "--no-binary-package",
    "--no-build-isolation-package",
    "--no-build-package",
    "--no-compile-bytecode-package",
    "--only-binary",
    "--override",
    "--overrides",
    "--platform",
    "--prefix",
    "--prerelease",
    "--progress-bar",
    "--project",
    "--proxy",
    "--python",
    "--python-platform",
    "--python-version",
    "--refresh-package",
    "--reinstall-package",
    "--report",
    "--resolution",
    "--retries",
    "--root",
    "--src",
    "--target",
    "--timeout",
    "--trusted-host",
    "--upgrade-package",
];

const SHORT_OTHERS_WITH_VALUE: [&str; 6] = ["-C", "-P", "-b", "-p", "-t", "-d"];

/// Reads the words after `pip install`, or an option line of a requirements file.
pub(super) fn arguments(words: &[Word]) -> Arguments {
    let mut found = Arguments::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if !word.text.starts_with('-') {
            found.positional(word);
            continue;
        }
        let (name, glued) = split_option(&word.text);
        if let Some(meaning) = Meaning::of(name) {
            let value = match glued {
                Some(value) => Some(Word { text: value.to_owned(), ..word.clone() }),
                None => words.next().cloned(),
            };
            found.option(meaning, &value.unwrap_or_default());
        } else if matches!(name, "-U" | "--upgrade") {
            found.upgrades = true;
        } else if name == "--all-extras" {
            found.extras.push("*".to_owned());
        } else if glued.is_none()
            && (OTHERS_WITH_VALUE.binary_search(&name).is_ok() || SHORT_OTHERS_WITH_VALUE.contains(&name))
        {
            words.next();
        }
    }
    found
}

/// `--name=value`, and `-rvalue` for those short options that say what is installed.
fn split_option(word: &str) -> (&str, Option<&str>) {
    if word.starts_with("--") {
        return word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
    }
    match word.split_at_checked(2) {
        Some((name @ ("-r" | "-c" | "-e" | "-i" | "-f"), value)) if !value.is_empty() => (name, Some(value)),
        _ => (word, None),
    }
}

#[derive(Clone, Copy)]
enum Meaning {
    File,
    Constraint,
    Extra,
    Group,
    Editable,
    MainIndex,
    FurtherIndex,
    NamedIndex,
    Backend,
}

impl Meaning {
    fn of(option: &str) -> Option<Self> {
        Some(match option {
            "-r" | "--requirement" | "--requirements" => Self::File,
            "-c" | "--constraint" | "--constraints" => Self::Constraint,
            "--extra" => Self::Extra,
            "--group" => Self::Group,
            "-e" | "--editable" => Self::Editable,
            "-i" | "--index-url" | "--pypi-url" | "--default-index" => Self::MainIndex,
            "--extra-index-url" | "-f" | "--find-links" => Self::FurtherIndex,
            "--index" => Self::NamedIndex,
            "--torch-backend" => Self::Backend,
            _ => return None,
        })
    }
}

impl Arguments {
    fn option(&mut self, meaning: Meaning, value: &Word) {
        let text = value.text.as_str();
        let note = match meaning {
            Meaning::File => return self.files.push(value.clone()),
            Meaning::Constraint => return self.constraints.push(value.clone()),
            Meaning::Editable => return self.editable.push(value.clone()),
            Meaning::Extra => return self.extras.push(text.to_owned()),
            Meaning::Group => return self.groups.push(text.to_owned()),
            _ if value.is_open => format!("the index `{}` is not known here", excerpt(text)),
            Meaning::Backend if text == "auto" => {
                "the build is chosen by the machine that installs".to_owned()
            }
            Meaning::Backend => return self.indexes.set_backend(text),
            Meaning::MainIndex => return self.indexes.set_main(text),
            Meaning::FurtherIndex => return self.indexes.add(text),
            Meaning::NamedIndex => {
                let named = text.split_once('=').filter(|(name, _)| !name.contains(['/', ':']));
                return self.indexes.add(named.map_or(text, |(_, address)| address));
            }
        };
        self.notes.push((value.bytes.clone(), note));
    }

    /// What to say where files and projects that are named cannot be followed.
    pub(super) fn unfollowed(&self) -> Vec<NoteAt> {
        let files = self
            .files
            .iter()
            .chain(&self.constraints)
            .map(|word| (word.bytes.clone(), not_followed(&word.text)));
        files.chain(self.editable.iter().map(|word| (word.bytes.clone(), from_source(&word.text)))).collect()
    }

    fn positional(&mut self, word: &Word) {
        if word.is_open {
            self.notes.push((word.bytes.clone(), format!("`{}` is not known here", excerpt(&word.text))));
        } else if !word.text.trim().is_empty() {
            self.requirements.push(word.clone());
        }
    }
}

/// What to say of a file that is named and cannot be read.
pub(super) fn not_followed(file: &str) -> String {
    format!("what `{}` asks for is not read here", excerpt(file))
}

/// What to say of a project whose files cannot be read.
pub(super) fn from_source(project: &str) -> String {
    format!("`{}` is installed from source", excerpt(project))
}

/// The words of an option line, as pip splits them: by space, with quotes.
pub(super) fn split(line: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut word: Option<Word> = None;
    let mut quote = None;
    for (at, letter) in line.char_indices() {
        let start = || Word { bytes: at..at, ..Word::default() };
        match quote {
            Some(end) if letter == end => quote = None,
            None if matches!(letter, '"' | '\'') => {
                quote = Some(letter);
                word.get_or_insert_with(start);
            }
            None if letter.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_with(start).text.push(letter),
        }
        if let Some(word) = &mut word {
            word.bytes.end = at + letter.len_utf8();
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_are_in_order_for_the_search() {
        assert!(OTHERS_WITH_VALUE.is_sorted());
    }

    #[test]
    fn options_are_told_from_packages() {
        let words = split(
            "-U torch --target /opt -q 'numpy<2' --index-url=https://x.org/whl/cu124 --log l -rfile.txt",
        );
        let found = arguments(&words);
        let names: Vec<&str> = found.requirements.iter().map(|word| word.text.as_str()).collect();
        assert_eq!(names, ["torch", "numpy<2"]);
        assert_eq!(found.indexes.tag(), Some("cu124"));
        assert_eq!(found.unfollowed(), [(80..90, "what `file.txt` asks for is not read here".to_owned())]);
    }

    #[test]
    fn indexes_that_disagree_tell_no_build() {
        let words =
            split("torch --extra-index-url https://x.org/whl/cu124 --extra-index-url https://x.org/whl/cpu");
        let found = arguments(&words);
        assert_eq!(found.indexes.tag(), None);
        assert_eq!(
            found.indexes.conflict().as_deref(),
            Some("indexes for cpu and cu124: which build is taken is not told")
        );
    }
}
