//! One requirement of Python's: `torch[extra]>=2.1,<3; sys_platform == "linux"`, `name @ address`, or an address alone.

use std::str::FromStr;

use cudock_base::{Arch, Span};
use pep440_rs::{Operator, Version, VersionSpecifiers};

use super::{Declared, DeclaredPackage, Manager, excerpt, marker, tag};

/// What is wrong with a requirement, and at which byte of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mistake {
    pub(super) at: usize,
    pub(super) message: String,
}

impl Mistake {
    pub(super) fn new(at: usize, message: impl Into<String>) -> Self {
        Self { at, message: message.into() }
    }
}

/// A requirement's parts, as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Requirement<'a> {
    pub(super) name: String,
    pub(super) extras: Vec<String>,
    pub(super) asked: Asked<'a>,
    /// The marker and where it starts.
    pub(super) marker: Option<(usize, &'a str)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Asked<'a> {
    Versions(VersionSpecifiers),
    Address(&'a str),
}

/// Lower case, and each run of `-`, `_` and `.` one `-`.
pub(super) fn normalise(name: &str) -> String {
    let mut normal = String::with_capacity(name.len());
    for letter in name.chars() {
        match letter {
            '-' | '_' | '.' if normal.ends_with('-') => {}
            '-' | '_' | '.' => normal.push('-'),
            _ => normal.push(letter.to_ascii_lowercase()),
        }
    }
    normal
}

/// How many bytes of a package's name `text` starts with.
fn name_length(text: &str) -> usize {
    let inside = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let length = text.bytes().take_while(inside).count();
    text.get(..length).unwrap_or_default().trim_end_matches(['-', '_', '.']).len()
}

/// Reads a requirement with a name.
pub(super) fn parse(text: &str) -> Result<Requirement<'_>, Mistake> {
    let at = |rest: &str| text.len() - rest.len();
    let start = text.trim_start();
    let (name, rest) = start.split_at_checked(name_length(start)).unwrap_or((start, ""));
    if !name.starts_with(|first: char| first.is_ascii_alphanumeric()) {
        return Err(Mistake::new(at(start), "expected a package's name"));
    }
    let mut rest = rest.trim_start();
    let mut extras = Vec::new();
    if let Some(inside) = rest.strip_prefix('[') {
        let Some((list, after)) = inside.split_once(']') else {
            return Err(Mistake::new(at(rest), "extras without a closing `]`"));
        };
        for extra in list.split(',').map(str::trim).filter(|extra| !extra.is_empty()) {
            if name_length(extra) != extra.len() {
                return Err(Mistake::new(at(inside), format!("`{}` is not an extra", excerpt(extra))));
            }
            extras.push(normalise(extra));
        }
        rest = after.trim_start();
    }
    let name = normalise(name);
    if let Some(address) = rest.strip_prefix('@') {
        let address = address.trim_start();
        // A `;` may be part of an address; a marker's has a space before it.
        let (address, marker) = match address.split_once(" ;") {
            Some((address, marker)) => (address, Some((at(marker), marker))),
            None => (address, None),
        };
        let address = address.trim_end();
        if address.is_empty() {
            return Err(Mistake::new(at(rest), "expected an address after `@`"));
        }
        return Ok(Requirement { name, extras, asked: Asked::Address(address), marker });
    }
    let (versions, marker) = match rest.split_once(';') {
        Some((versions, marker)) => (versions, Some((at(marker), marker))),
        None => (rest, None),
    };
    let bare = versions.trim();
    let bare = bare.strip_prefix('(').and_then(|bare| bare.strip_suffix(')')).unwrap_or(bare);
    let specifiers = VersionSpecifiers::from_str(bare).map_err(|_| {
        Mistake::new(at(rest), format!("`{}` is not a version or range of versions", excerpt(bare)))
    })?;
    Ok(Requirement { name, extras, asked: Asked::Versions(specifiers), marker })
}

/// Where a requirement stands, and what its surroundings say about it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Context<'a> {
    pub(super) span: Span,
    pub(super) arch: Arch,
    pub(super) group: Option<&'a str>,
    /// The tag of the index packages come from.
    pub(super) tag: Option<&'a str>,
}

/// Adds what `text` asks for, unless its marker says that Linux is not meant.
pub(super) fn declare(declared: &mut Declared, text: &str, context: Context<'_>) -> Result<(), Mistake> {
    let text = text.trim_end();
    if is_address(text.trim_start()) {
        declare_address(declared, text.trim(), context);
        return Ok(());
    }
    let requirement = parse(text)?;
    if let Some((at, condition)) = requirement.marker {
        let held = marker::evaluate(condition, context.arch, context.group)
            .map_err(|offset| Mistake::new(at + offset, "not a marker"))?;
        match held {
            Some(true) => {}
            Some(false) => return Ok(()),
            None => {
                let note = format!("{} is asked for only if {}", requirement.name, excerpt(condition.trim()));
                declared.note(context.span, note);
            }
        }
    }
    let mut package = DeclaredPackage {
        name: requirement.name,
        extras: requirement.extras,
        exact: None,
        range: None,
        tag: None,
        manager: Manager::Pip,
        group: context.group.map(str::to_owned),
        exclusive: false,
        file: None,
        span: context.span,
    };
    match requirement.asked {
        Asked::Versions(specifiers) => {
            (package.exact, package.range) = exact_and_range(&specifiers);
            package.tag = match &package.exact {
                Some(version) if version.is_local() => tag_of_version(version),
                _ => index_tag(&package.name, context.tag),
            };
        }
        Asked::Address(address) => {
            if let Some(wheel) = Wheel::of_address(address) {
                package.tag = tag_of_version(&wheel.version).or_else(|| tag::of_address(address));
                package.exact = Some(wheel.version);
            } else {
                let note = format!("{} comes from {}, which is not read", package.name, excerpt(address));
                declared.note(context.span, note);
            }
        }
    }
    declared.packages.push(package);
    Ok(())
}

/// The tag of the index, for a package that has builds by index.
pub(super) fn index_tag(name: &str, tag: Option<&str>) -> Option<String> {
    tag.filter(|_| tag::is_built_per_index(name)).map(str::to_owned)
}

/// The one version, and what is asked beyond it.
pub(super) fn exact_and_range(specifiers: &VersionSpecifiers) -> (Option<Version>, Option<String>) {
    let one = |operator: &Operator| matches!(operator, Operator::Equal | Operator::ExactEqual);
    let exact = specifiers.iter().find(|specifier| one(specifier.operator()));
    let exact = exact.map(|specifier| specifier.version().clone());
    let more = specifiers.len() > usize::from(exact.is_some());
    let range = more.then(|| specifiers.iter().map(ToString::to_string).collect::<Vec<_>>().join(","));
    (exact, range)
}

/// The tag in a version's local part.
pub(super) fn tag_of_version(version: &Version) -> Option<String> {
    let local: Vec<String> = version.local().iter().map(ToString::to_string).collect();
    tag::at_start(&local.join("."))
}

/// Whether a requirement is an address or a path, without a name before it.
pub(super) fn is_address(text: &str) -> bool {
    let scheme = |(scheme, _): (&str, &str)| {
        scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'.' | b'-'))
    };
    let is_archive = [".whl", ".tar.gz", ".zip"].iter().any(|ending| text.ends_with(ending));
    text.split_once("://").is_some_and(scheme)
        || text.starts_with("file:")
        || text.starts_with(['.', '/', '~'])
        || is_archive && !text.contains('@')
}

fn declare_address(declared: &mut Declared, text: &str, context: Context<'_>) {
    let address = text.split_whitespace().next().unwrap_or(text);
    let Some(wheel) = Wheel::of_address(address) else {
        declared.note(context.span, format!("{} is not read", excerpt(address)));
        return;
    };
    if wheel.is_for_another_system {
        declared.note(context.span, format!("{} is not for Linux", excerpt(address)));
        return;
    }
    declared.packages.push(DeclaredPackage {
        name: wheel.name,
        extras: Vec::new(),
        tag: tag_of_version(&wheel.version).or_else(|| tag::of_address(address)),
        exact: Some(wheel.version),
        range: None,
        manager: Manager::Pip,
        group: context.group.map(str::to_owned),
        exclusive: false,
        file: None,
        span: context.span,
    });
}

/// What a wheel's file name tells.
struct Wheel {
    name: String,
    version: Version,
    is_for_another_system: bool,
}

impl Wheel {
    fn of_address(address: &str) -> Option<Self> {
        let path = address.split(['?', '#']).next()?;
        let file = path.rsplit('/').next()?.strip_suffix(".whl")?;
        let file = file.replace("%2B", "+").replace("%2b", "+");
        let parts: Vec<&str> = file.split('-').collect();
        let ([name, version, _, _, _] | [name, version, _, _, _, _]) = parts.as_slice() else { return None };
        let platform = parts.last()?;
        let foreign = ["win", "macosx", "ios", "android"].iter().any(|system| platform.starts_with(system));
        let version = Version::from_str(version).ok()?;
        Some(Self { name: normalise(name), version, is_for_another_system: foreign })
    }
}
