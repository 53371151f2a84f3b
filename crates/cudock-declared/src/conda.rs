//! conda's `environment.yml`, and the specifications that `conda install` takes.

use std::collections::{HashMap, VecDeque};
use std::str::FromStr;

use pep440_rs::Version;

use super::pip;
use super::requirement::normalise;
use super::requirements::{is_option, read_requirement};
use super::yaml_tree::{self, Node};
use super::{CudaPackage, Declared, DeclaredPackage, Fault, Machine, Manager, excerpt, system, tag};

pub(super) fn read(text: &str, machine: Machine) -> Result<Declared, Fault> {
    let root = yaml_tree::parse(text)?;
    if !matches!(root, Node::Map(_)) {
        return Err(Fault::new(1, 1, "expected a map with `dependencies`"));
    }
    let mut declared = Declared::default();
    let mut places = Places::of(text);
    let list = |key: &str| root.get(key).map_or(&[][..], Node::members);
    declared.channels = list("channels").iter().filter_map(Node::text).map(str::to_owned).collect();
    if let Some(Node::Map(variables)) = root.get("variables") {
        let values =
            variables.iter().filter_map(|(name, value)| Some((name.clone(), value.text()?.to_owned())));
        declared.environment.extend(values);
    }
    if root.get("dependencies").is_none() {
        declared.note(1, "no dependencies");
    }
    for member in list("dependencies") {
        match member {
            Node::Text(spec) => {
                let line = places.take(spec);
                declare(&mut declared, spec, line)
                    .map_err(|message| Fault::new(line, column(text, line), message))?;
            }
            Node::Map(entries) => {
                for (key, value) in entries {
                    if key == "pip" {
                        read_pip(&mut declared, value, &mut places, text, machine)?;
                    } else {
                        let line = places.take(&format!("{key}:"));
                        declared.note(line, format!("the list `{}` is not read", excerpt(key)));
                    }
                }
            }
            Node::Null => {}
            Node::List(_) => return Err(Fault::new(places.last, 1, "expected a package, not a list")),
        }
    }
    declared.notes.sort_by_key(|note| note.line);
    Ok(declared)
}

fn read_pip(
    declared: &mut Declared,
    list: &Node,
    places: &mut Places,
    text: &str,
    machine: Machine,
) -> Result<(), Fault> {
    let lines: Vec<(usize, &str)> =
        list.members().iter().filter_map(Node::text).map(|written| (places.take(written), written)).collect();
    let mut words = Vec::new();
    for (line, option) in lines.iter().filter(|(_, written)| is_option(written)) {
        let option = pip::split(option);
        let found = pip::arguments(&option);
        for (_, note) in found.unfollowed().into_iter().chain(found.notes) {
            declared.note(*line, note);
        }
        words.extend(option);
    }
    let indexes = pip::arguments(&words).indexes;
    if let (Some(conflict), Some((line, _))) = (indexes.conflict(), lines.first()) {
        declared.note(*line, conflict);
    }
    for (line, requirement) in lines.iter().filter(|(_, written)| !is_option(written)) {
        read_requirement(declared, requirement, *line, &indexes, machine).map_err(|mistake| {
            let before = requirement.get(..mistake.at).unwrap_or_default();
            Fault::new(*line, column(text, *line) + before.chars().count(), mistake.message)
        })?;
    }
    Ok(())
}

/// The lines that the members of lists stand on. The YAML parser does not tell, so they are found by their text.
struct Places {
    lines: HashMap<String, VecDeque<usize>>,
    last: usize,
}

impl Places {
    fn of(text: &str) -> Self {
        let mut lines: HashMap<String, VecDeque<usize>> = HashMap::new();
        for (index, line) in text.lines().enumerate() {
            let Some(member) =
                line.trim_start().strip_prefix('-').filter(|rest| rest.starts_with([' ', '\t']))
            else {
                continue;
            };
            let member = member.split_once(" #").map_or(member, |(member, _)| member);
            let member = member.trim().trim_matches(['"', '\'']);
            lines.entry(member.to_owned()).or_default().push_back(index + 1);
        }
        Self { lines, last: 1 }
    }

    /// The line of the next member of this text, or of the member before it where it is written otherwise.
    fn take(&mut self, member: &str) -> usize {
        if let Some(line) = self.lines.get_mut(member.trim()).and_then(VecDeque::pop_front) {
            self.last = line;
        }
        self.last
    }
}

/// Where the member of a list on a line starts.
fn column(text: &str, line: usize) -> usize {
    let line = text.lines().nth(line - 1).unwrap_or_default();
    line.chars().take_while(|letter| matches!(letter, ' ' | '\t' | '-' | '"' | '\'')).count() + 1
}

/// A specification's parts, as written.
#[derive(Debug, PartialEq, Eq)]
struct Spec<'a> {
    name: &'a str,
    version: Option<&'a str>,
    build: Option<&'a str>,
}

impl<'a> Spec<'a> {
    fn parse(written: &'a str) -> Result<Self, String> {
        let wrong = || format!("`{}` is not a package", excerpt(written));
        let spec = written.split_once(" #").map_or(written, |(spec, _)| spec).trim();
        let spec = spec.split_once("::").map_or(spec, |(_, spec)| spec);
        let (spec, bracket) = match spec.split_once('[') {
            Some((spec, rest)) => (spec, Some(rest.strip_suffix(']').ok_or_else(wrong)?)),
            None => (spec, None),
        };
        let end = spec.find([' ', '=', '<', '>', '!', '~']).unwrap_or(spec.len());
        let (name, rest) = spec.split_at_checked(end).ok_or_else(wrong)?;
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        if name.is_empty() || !name.bytes().all(is_name) {
            return Err(wrong());
        }
        let (version, build) = version_and_build(rest.trim());
        let inside = |key: &str| bracket.and_then(|bracket| in_bracket(bracket, key));
        Ok(Self {
            name,
            version: version.or_else(|| inside("version")),
            build: build.or_else(|| inside("build")),
        })
    }
}

/// `=1.2=build`, `==1.2`, `>=1,<2`, `1.2 build`.
fn version_and_build(rest: &str) -> (Option<&str>, Option<&str>) {
    let filled = |text: &'_ str| !text.is_empty();
    if let Some((version, build)) = rest.split_once(char::is_whitespace) {
        // `>= 1.2` and `>=1, <2` are versions with a space in them.
        let is_open = version.ends_with(['=', '<', '>', ',', '!', '~', '|']);
        if !is_open && !build.trim_start().starts_with([',', '|', '<', '>', '=']) {
            return (Some(version), Some(build.trim()).filter(|build| filled(build)));
        }
        return (Some(rest), None);
    }
    let signs = rest.len() - rest.trim_start_matches('=').len();
    match rest.get(signs..).and_then(|bare| bare.split_once('=')).filter(|_| signs > 0) {
        Some((version, build)) => {
            (rest.get(..signs + version.len()), Some(build).filter(|build| filled(build)))
        }
        None => (Some(rest).filter(|rest| filled(rest)), None),
    }
}

/// `version='>=1', build=cuda*`
fn in_bracket<'a>(bracket: &'a str, key: &str) -> Option<&'a str> {
    let start = bracket.match_indices(key).map(|(at, _)| at).find_map(|at| {
        let before = bracket.get(..at)?.trim_end();
        let value = bracket.get(at + key.len()..)?.trim_start().strip_prefix('=')?;
        (before.is_empty() || before.ends_with(',')).then_some(value.trim_start())
    })?;
    match start.chars().next()? {
        quote @ ('"' | '\'') => start.get(1..)?.split_once(quote).map(|(value, _)| value),
        _ => start.split(',').next().map(str::trim_end),
    }
}

/// Adds what a specification asks for.
pub(super) fn declare(declared: &mut Declared, written: &str, line: usize) -> Result<(), String> {
    let spec = Spec::parse(written)?;
    let name = spec.name.to_ascii_lowercase();
    let version = spec.version.map(|version| version.trim().to_owned());
    if name == "python" {
        declared.python =
            version.map(|version| version.trim_start_matches('=').to_owned()).or(declared.python.take());
        return Ok(());
    }
    if system::is_cuda_in_conda(&name) {
        let cuda = version.as_deref().and_then(|version| system::cuda_of_conda(&name, version));
        declared.cuda_packages.push(CudaPackage { name, version, cuda, manager: Manager::Conda, line });
        return Ok(());
    }
    let exact = version.as_deref().and_then(|version| exact(version, spec.build.is_some()));
    declared.packages.push(DeclaredPackage {
        name: normalise(&name),
        extras: Vec::new(),
        range: version.filter(|_| exact.is_none()),
        exact,
        tag: spec.build.and_then(tag::of_conda_build),
        manager: Manager::Conda,
        group: None,
        exclusive: false,
        file: None,
        line,
    });
    Ok(())
}

/// The one version that is meant. `=2.3.1` allows `2.3.1.1`, too, but of three numbers hardly any package has more;
/// with a build there is only one.
fn exact(version: &str, has_build: bool) -> Option<Version> {
    let bare = version.trim_start_matches('=').trim();
    let signs = version.len() - version.trim_start_matches('=').len();
    let is_fuzzy = signs == 1 && !has_build && bare.split('.').count() < 3;
    (signs <= 2 && !is_fuzzy).then(|| Version::from_str(bare).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specifications_are_taken_apart() {
        let cases = [
            ("pytorch", ("pytorch", None, None)),
            ("pytorch=2.3", ("pytorch", Some("=2.3"), None)),
            ("pytorch==2.3.0", ("pytorch", Some("==2.3.0"), None)),
            ("pytorch=2.3.0=py3.11_cuda12.1_0", ("pytorch", Some("=2.3.0"), Some("py3.11_cuda12.1_0"))),
            ("pytorch==2.3.0=py3_0", ("pytorch", Some("==2.3.0"), Some("py3_0"))),
            ("conda-forge::pytorch>=2,<3", ("pytorch", Some(">=2,<3"), None)),
            ("pytorch 2.3.0 cuda*", ("pytorch", Some("2.3.0"), Some("cuda*"))),
            ("pytorch >=2, <3", ("pytorch", Some(">=2, <3"), None)),
            ("pytorch[version='>=2,<3', build=*cuda*]", ("pytorch", Some(">=2,<3"), Some("*cuda*"))),
        ];
        for (written, (name, version, build)) in cases {
            assert_eq!(Spec::parse(written), Ok(Spec { name, version, build }), "{written}");
        }
        assert!(Spec::parse("=2").is_err() && Spec::parse("a[b").is_err() && Spec::parse("a/b").is_err());
    }

    #[test]
    fn a_single_sign_is_one_version_only_if_nothing_is_left_open() {
        assert_eq!(exact("=2.3", false), None);
        assert!(
            exact("=2.3.0", false).is_some()
                && exact("=2.3", true).is_some()
                && exact("2.3", false).is_some()
        );
        assert!(exact(">=2.3", false).is_none() && exact("2.3.*", false).is_none());
    }
}
