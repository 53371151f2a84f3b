//! Parses Python requirements: `torch[extra]>=2.1,<3; sys_platform == "linux"`, `name @ url`, or a URL alone.

use cudock_base::bug::Parts;
use std::str::FromStr;

use cudock_base::{Arch, Span};
use pep440_rs::{Operator, Version, VersionSpecifiers};

use crate::pip::marker;
use crate::{Declared, DeclaredPackage, excerpt, tag};

/// A syntax error at a byte of a requirement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequirementError {
    pub(crate) at: usize,
    pub(crate) message: String,
}

impl RequirementError {
    pub(crate) fn new(at: usize, message: impl Into<String>) -> Self {
        Self { at, message: message.into() }
    }
}

/// The parts of a requirement, as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PipRequirement<'a> {
    pub(crate) name: String,
    pub(crate) extras: Vec<String>,
    pub(crate) version_or_url: VersionOrUrl<'a>,
    /// The marker and its offset.
    pub(crate) marker: Option<(usize, &'a str)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum VersionOrUrl<'a> {
    Versions(VersionSpecifiers),
    Url(&'a str),
}

/// Converts to lower case, and each run of `-`, `_` and `.` to one `-`.
pub(crate) fn normalize(name: &str) -> String {
    let mut normal = String::with_capacity(name.len());
    for ch in name.chars() {
        match ch {
            '-' | '_' | '.' if normal.ends_with('-') => {}
            '-' | '_' | '.' => normal.push('-'),
            _ => normal.push(ch.to_ascii_lowercase()),
        }
    }
    normal
}

/// The length of the package name at the start of `text`.
fn name_length(text: &str) -> usize {
    let inside = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let length = text.bytes().take_while(inside).count();
    text.part(..length).trim_end_matches(['-', '_', '.']).len()
}

pub(crate) fn parse(text: &str) -> Result<PipRequirement<'_>, RequirementError> {
    let at = |rest: &str| text.len() - rest.len();
    let start = text.trim_start();
    let (name, rest) = start.split_at_checked(name_length(start)).unwrap_or((start, ""));
    if !name.starts_with(|first: char| first.is_ascii_alphanumeric()) {
        return Err(RequirementError::new(at(start), "expected a package name"));
    }
    let mut rest = rest.trim_start();
    let mut extras = Vec::new();
    if let Some(inside) = rest.strip_prefix('[') {
        let Some((list, after)) = inside.split_once(']') else {
            return Err(RequirementError::new(at(rest), "extras without a closing `]`"));
        };
        for extra in list.split(',').map(str::trim).filter(|extra| !extra.is_empty()) {
            if name_length(extra) != extra.len() {
                return Err(RequirementError::new(
                    at(inside),
                    format!("`{}` is not an extra", excerpt(extra)),
                ));
            }
            extras.push(normalize(extra));
        }
        rest = after.trim_start();
    }
    let name = normalize(name);
    if let Some(url) = rest.strip_prefix('@') {
        let url = url.trim_start();
        // A `;` may be part of a URL; the one before a marker follows a space.
        let (url, marker) = match url.split_once(" ;") {
            Some((url, marker)) => (url, Some((at(marker), marker))),
            None => (url, None),
        };
        let url = url.trim_end();
        if url.is_empty() {
            return Err(RequirementError::new(at(rest), "expected a URL after `@`"));
        }
        return Ok(PipRequirement { name, extras, version_or_url: VersionOrUrl::Url(url), marker });
    }
    let (versions, marker) = match rest.split_once(';') {
        Some((versions, marker)) => (versions, Some((at(marker), marker))),
        None => (rest, None),
    };
    let bare = versions.trim();
    let bare = bare.strip_prefix('(').and_then(|bare| bare.strip_suffix(')')).unwrap_or(bare);
    let specifiers = VersionSpecifiers::from_str(bare).map_err(|_| {
        RequirementError::new(at(rest), format!("`{}` is not a version or range of versions", excerpt(bare)))
    })?;
    Ok(PipRequirement { name, extras, version_or_url: VersionOrUrl::Versions(specifiers), marker })
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) span: Span,
    pub(crate) arch: Arch,
    pub(crate) group: Option<&'a str>,
    /// The tag of the index.
    pub(crate) tag: Option<&'a str>,
}

/// Adds the required package, unless its marker excludes Linux.
pub(crate) fn declare(
    declared: &mut Declared,
    text: &str,
    context: Context<'_>,
) -> Result<(), RequirementError> {
    let text = text.trim_end();
    if is_url_or_path(text.trim_start()) {
        declare_url(declared, text.trim(), context);
        return Ok(());
    }
    let requirement = parse(text)?;
    if let Some((at, condition)) = requirement.marker {
        let held = marker::evaluate(condition, context.arch, context.group)
            .map_err(|offset| RequirementError::new(at + offset, "not a marker"))?;
        match held {
            Some(true) => {}
            Some(false) => return Ok(()),
            None => {
                let note = format!("{} is required only if {}", requirement.name, excerpt(condition.trim()));
                declared.note(context.span, note);
            }
        }
    }
    let mut package = DeclaredPackage {
        extras: requirement.extras,
        group: context.group.map(str::to_owned),
        ..DeclaredPackage::new(requirement.name, context.span)
    };
    match requirement.version_or_url {
        VersionOrUrl::Versions(specifiers) => {
            (package.exact, package.range) = exact_and_range(&specifiers);
            package.tag = match &package.exact {
                Some(version) if version.is_local() => tag_of_version(version),
                _ => index_tag(&package.name, context.tag),
            };
        }
        VersionOrUrl::Url(url) => {
            if let Some(wheel) = Wheel::from_url(url) {
                package.tag = tag_of_version(&wheel.version).or_else(|| tag::from_url(url));
                package.exact = Some(wheel.version);
            } else {
                let note = format!("{} comes from {}, which cannot be read", package.name, excerpt(url));
                declared.note(context.span, note);
            }
        }
    }
    declared.packages.push(package);
    Ok(())
}

/// The tag of the index, for a package that has one build per index.
pub(crate) fn index_tag(name: &str, tag: Option<&str>) -> Option<String> {
    tag.filter(|_| tag::is_built_per_index(name)).map(str::to_owned)
}

/// The exact version, and the range if more than that is specified.
pub(crate) fn exact_and_range(specifiers: &VersionSpecifiers) -> (Option<Version>, Option<String>) {
    let one = |operator: &Operator| matches!(operator, Operator::Equal | Operator::ExactEqual);
    let exact = specifiers.iter().find(|specifier| one(specifier.operator()));
    let exact = exact.map(|specifier| specifier.version().clone());
    let more = specifiers.len() > usize::from(exact.is_some());
    let range = more.then(|| specifiers.iter().map(ToString::to_string).collect::<Vec<_>>().join(","));
    (exact, range)
}

/// The tag in a version's local part.
pub(crate) fn tag_of_version(version: &Version) -> Option<String> {
    let local: Vec<String> = version.local().iter().map(ToString::to_string).collect();
    tag::at_start(&local.join("."))
}

/// Whether a requirement is a URL or a path, without a name before it.
pub(crate) fn is_url_or_path(text: &str) -> bool {
    let scheme = |(scheme, _): (&str, &str)| {
        scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'.' | b'-'))
    };
    let is_archive = [".whl", ".tar.gz", ".zip"].iter().any(|ending| text.ends_with(ending));
    text.split_once("://").is_some_and(scheme)
        || text.starts_with("file:")
        || text.starts_with(['.', '/', '~'])
        || is_archive && !text.contains('@')
}

fn declare_url(declared: &mut Declared, text: &str, context: Context<'_>) {
    let url = text.split_whitespace().next().unwrap_or(text);
    let Some(wheel) = Wheel::from_url(url) else {
        declared.note(context.span, format!("content of {} is unknown", excerpt(url)));
        return;
    };
    if wheel.is_for_another_system {
        declared.note(context.span, format!("{} is not for Linux", excerpt(url)));
        return;
    }
    declared.packages.push(DeclaredPackage {
        tag: tag_of_version(&wheel.version).or_else(|| tag::from_url(url)),
        exact: Some(wheel.version),
        group: context.group.map(str::to_owned),
        ..DeclaredPackage::new(wheel.name, context.span)
    });
}

/// The parts of a wheel's file name.
struct Wheel {
    name: String,
    version: Version,
    is_for_another_system: bool,
}

impl Wheel {
    fn from_url(url: &str) -> Option<Self> {
        let path = url.split(['?', '#']).next()?;
        let file = path.rsplit('/').next()?.strip_suffix(".whl")?;
        let file = file.replace("%2B", "+").replace("%2b", "+");
        let parts: Vec<&str> = file.split('-').collect();
        let ([name, version, _, _, _] | [name, version, _, _, _, _]) = parts.as_slice() else { return None };
        let platform = parts.last()?;
        let foreign = ["win", "macosx", "ios", "android"].iter().any(|system| platform.starts_with(system));
        let version = Version::from_str(version).ok()?;
        Some(Self { name: normalize(name), version, is_for_another_system: foreign })
    }
}
