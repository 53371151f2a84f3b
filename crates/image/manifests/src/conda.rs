//! Reads conda's `environment.yml`, and the package specifications of `conda install`.

use cudock_base::bug::Parts;
use std::str::FromStr;

use cudock_base::{Arch, Span};
use cudock_yaml::{Data, ErrorKind, MapEntry, Node};
use pep440_rs::Version;

use super::pip;
use super::{CudaPackage, Declared, DeclaredPackage, Manager, PositionedError, excerpt, system, tag};
use crate::pip::requirement::normalize;
use crate::pip::requirements::{is_option, read_requirement};

pub(super) fn read(text: &str, arch: Arch) -> Result<Declared, PositionedError> {
    let expected_map = || PositionedError::new(1, 1, "expected a map with `dependencies`");
    let root = match cudock_yaml::parse(text) {
        Ok(root) if matches!(root.data, Data::Map(_)) => root,
        Ok(_) => return Err(expected_map()),
        Err(error) if error.kind == ErrorKind::Empty => return Err(expected_map()),
        Err(error) => {
            return Err(PositionedError::new(error.span.line, error.span.column, error.kind.to_string()));
        }
    };
    let mut declared = Declared::default();
    let list = |key: &str| root.get(key).map_or(&[][..], Node::members);
    declared.channels = list("channels").iter().filter_map(Node::text).map(str::to_owned).collect();
    if let Some(Data::Map(variables)) = root.get("variables").map(|node| &node.data) {
        let values =
            variables.iter().filter_map(|entry| Some((entry.key.clone(), entry.value.text()?.to_owned())));
        declared.environment.extend(values);
    }
    if root.get("dependencies").is_none() {
        declared.note(Span::START, "no dependencies");
    }
    for member in list("dependencies") {
        let span = member.span;
        match &member.data {
            Data::Scalar(_) => {
                let Some(spec) = member.text() else { continue };
                declare(&mut declared, spec, span).map_err(|message| {
                    PositionedError::new(span.line, content_column(text, span), message)
                })?;
            }
            Data::Map(entries) => {
                for MapEntry { key, span, value } in entries {
                    if key == "pip" {
                        read_pip(&mut declared, value, text, arch)?;
                    } else {
                        declared.note(*span, format!("list `{}` is not supported", excerpt(key)));
                    }
                }
            }
            Data::List(_) => {
                return Err(PositionedError::new(span.line, span.column, "expected a package, not a list"));
            }
        }
    }
    declared.notes.sort_by_key(|note| note.span.line);
    Ok(declared)
}

fn read_pip(declared: &mut Declared, list: &Node, text: &str, arch: Arch) -> Result<(), PositionedError> {
    let lines: Vec<(Span, &str)> =
        list.members().iter().filter_map(|member| Some((member.span, member.text()?))).collect();
    let mut args = Vec::new();
    for (span, option) in lines.iter().filter(|(_, written)| is_option(written)) {
        let option = pip::split(option);
        let found = pip::parse_args(&option);
        for (_, note) in found.unread().into_iter().chain(found.notes) {
            declared.note(*span, note);
        }
        args.extend(option);
    }
    let indexes = pip::parse_args(&args).indexes;
    if let (Some(conflict), Some((span, _))) = (indexes.conflict(), lines.first()) {
        declared.note(*span, conflict);
    }
    for (span, requirement) in lines.iter().filter(|(_, written)| !is_option(written)) {
        read_requirement(declared, requirement, *span, &indexes, arch).map_err(|error| {
            let before = requirement.part(..error.at);
            PositionedError::new(
                span.line,
                content_column(text, *span) + before.chars().count(),
                error.message,
            )
        })?;
    }
    Ok(())
}

/// The column of a value's text, after an opening quote.
fn content_column(text: &str, span: Span) -> usize {
    let is_quoted = text.get(span.start..).is_some_and(|value| value.starts_with(['"', '\'']));
    span.column + usize::from(is_quoted)
}

/// The parts of a package specification, as written.
#[derive(Debug, PartialEq, Eq)]
struct Spec<'a> {
    name: &'a str,
    version: Option<&'a str>,
    build: Option<&'a str>,
}

impl<'a> Spec<'a> {
    fn parse(written: &'a str) -> Result<Self, String> {
        let invalid = || format!("`{}` is not a package", excerpt(written));
        let spec = written.split_once(" #").map_or(written, |(spec, _)| spec).trim();
        let spec = spec.split_once("::").map_or(spec, |(_, spec)| spec);
        let (spec, bracket) = match spec.split_once('[') {
            Some((spec, rest)) => (spec, Some(rest.strip_suffix(']').ok_or_else(invalid)?)),
            None => (spec, None),
        };
        let end = spec.find([' ', '=', '<', '>', '!', '~']).unwrap_or(spec.len());
        let (name, rest) = spec.split_at_checked(end).ok_or_else(invalid)?;
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        if name.is_empty() || !name.bytes().all(is_name) {
            return Err(invalid());
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
    let non_empty = |text: &&str| !text.is_empty();
    if let Some((version, build)) = rest.split_once(char::is_whitespace) {
        // `>= 1.2` and `>=1, <2` are versions with a space in them.
        let is_incomplete = version.ends_with(['=', '<', '>', ',', '!', '~', '|']);
        if !is_incomplete && !build.trim_start().starts_with([',', '|', '<', '>', '=']) {
            return (Some(version), Some(build.trim()).filter(non_empty));
        }
        return (Some(rest), None);
    }
    let signs = rest.len() - rest.trim_start_matches('=').len();
    match rest.get(signs..).and_then(|bare| bare.split_once('=')).filter(|_| signs > 0) {
        Some((version, build)) => (rest.get(..signs + version.len()), Some(build).filter(non_empty)),
        None => (Some(rest).filter(non_empty), None),
    }
}

/// The value of a key in `version='>=1', build=cuda*`.
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

/// Adds the package of a specification.
pub(super) fn declare(declared: &mut Declared, written: &str, span: Span) -> Result<(), String> {
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
        declared.cuda_packages.push(CudaPackage { name, version, cuda, manager: Manager::Conda, span });
        return Ok(());
    }
    let exact = version.as_deref().and_then(|version| exact(version, spec.build.is_some()));
    declared.packages.push(DeclaredPackage {
        range: version.filter(|_| exact.is_none()),
        exact,
        tag: spec.build.and_then(tag::of_conda_build),
        manager: Manager::Conda,
        ..DeclaredPackage::new(normalize(&name), span)
    });
    Ok(())
}

/// The exact version. `=2.3.1` also allows `2.3.1.1`, but hardly any package has versions of more than three numbers;
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
    fn specifications_are_parsed() {
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
    fn a_single_sign_is_an_exact_version_only_if_it_is_complete() {
        assert_eq!(exact("=2.3", false), None);
        assert!(
            exact("=2.3.0", false).is_some()
                && exact("=2.3", true).is_some()
                && exact("2.3", false).is_some()
        );
        assert!(exact(">=2.3", false).is_none() && exact("2.3.*", false).is_none());
    }
}
