//! Reads the Linux part of `uv.lock`, which holds one resolution for all platforms.

use std::collections::HashMap;
use std::str::FromStr;

use cudock_base::{Arch, Span};
use pep440_rs::Version;
use toml::de::DeTable;

use crate::pip::marker;
use crate::pip::requirement::{index_tag, normalize, tag_of_version};
use crate::select::{Groups, Selection};
use crate::toml_tree::{self, Lines, Value, has_any, list, text};
use crate::{Declared, DeclaredPackage, PositionedError, excerpt, tag};

/// A package of the lock file.
struct Locked<'t> {
    name: String,
    version: Option<&'t str>,
    table: &'t DeTable<'t>,
    span: Span,
    /// The project itself, or another member of its workspace.
    is_root: bool,
    /// Whether something on Linux needs it.
    is_reached: bool,
}

pub(crate) fn read(
    input: &str,
    arch: Arch,
    selection: Option<(&Selection, &Groups)>,
) -> Result<Declared, PositionedError> {
    let lines = Lines::new(input);
    let root = toml_tree::parse(input, &lines)?;
    let python = text(&root, "requires-python").map(str::to_owned);
    let mut declared = Declared { python, is_lock: true, ..Declared::default() };
    let mut packages = Vec::new();
    for value in list(&root, "package") {
        packages.push(locked(value, &lines)?);
    }
    reach(&mut packages, arch, selection);
    for package in packages.iter().filter(|package| package.is_reached && !package.is_root) {
        add(&mut declared, package, arch, &lines)?;
    }
    declared.notes.sort_by_key(|note| note.span.line);
    Ok(declared)
}

fn locked<'t>(value: &'t Value<'t>, lines: &Lines<'_>) -> Result<Locked<'t>, PositionedError> {
    let at = value.span().start;
    let table = value.get_ref().as_table().ok_or_else(|| lines.error_at(at, "expected a table"))?;
    let name = text(table, "name").ok_or_else(|| lines.error_at(at, "package without a name"))?;
    let source = toml_tree::table(table, &["source"]);
    let is_root = source.is_some_and(|source| has_any(source, &["virtual", "editable"]));
    let version = text(table, "version");
    let span = lines.span(table.get("name").map_or(at..at, toml::Spanned::span));
    Ok(Locked { name: normalize(name), version, table, span, is_root, is_reached: false })
}

/// Marks what the roots need on Linux, through dependencies whose markers do not exclude it.
fn reach(packages: &mut [Locked<'_>], arch: Arch, selection: Option<(&Selection, &Groups)>) {
    // By name, and by name and version: a fork has several versions of a package, and names the one it means.
    let mut meant: HashMap<(String, Option<&str>), Vec<usize>> = HashMap::new();
    for (index, package) in packages.iter().enumerate() {
        meant.entry((package.name.clone(), None)).or_default().push(index);
        if package.version.is_some() {
            meant.entry((package.name.clone(), package.version)).or_default().push(index);
        }
    }
    let mut queue: Vec<usize> =
        packages.iter().enumerate().filter(|(_, package)| package.is_root).map(|(index, _)| index).collect();
    let has_roots = !queue.is_empty();
    for package in packages.iter_mut() {
        package.is_reached = package.is_root || !has_roots;
    }
    while let Some(found) =
        queue.pop().and_then(|index| packages.get(index)).map(|package| needed(package, selection))
    {
        for dependency in found {
            let Some(name) = text(dependency, "name").map(normalize) else { continue };
            let is_excluded = text(dependency, "marker")
                .is_some_and(|condition| marker::evaluate(condition, arch, None) == Ok(Some(false)));
            if is_excluded {
                continue;
            }
            // Each name is resolved once: later dependents find it removed and its packages reached.
            for index in meant.remove(&(name, text(dependency, "version"))).unwrap_or_default() {
                if let Some(package) = packages.get_mut(index).filter(|package| !package.is_reached) {
                    package.is_reached = true;
                    queue.push(index);
                }
            }
        }
    }
}

/// The dependencies of a package. Groups are selected for the project itself only: for others the lock lists what is
/// needed.
fn needed<'t>(package: &Locked<'t>, selection: Option<(&Selection, &Groups)>) -> Vec<&'t DeTable<'t>> {
    let of = |key: &str| toml_tree::table(package.table, &[key]).into_iter().flatten();
    let groups = || of("optional-dependencies").chain(of("dev-dependencies"));
    let chosen = selection.filter(|_| package.is_root).map(|(selection, known)| {
        let all = groups().map(|(name, _)| name.get_ref().to_string()).collect();
        (selection.chosen(known, &all), selection.only_groups)
    });
    let takes = |name: &str| chosen.as_ref().is_none_or(|(chosen, _)| chosen.contains(name));
    let only_groups = chosen.as_ref().is_some_and(|(_, only_groups)| *only_groups);
    let own = list(package.table, "dependencies").filter(|_| !only_groups);
    let grouped = groups().filter(|(name, _)| takes(name.get_ref()));
    let grouped = grouped.filter_map(|(_, group)| group.get_ref().as_array()).flat_map(|group| group.iter());
    own.chain(grouped).filter_map(|dependency| dependency.get_ref().as_table()).collect()
}

fn add(
    declared: &mut Declared,
    package: &Locked<'_>,
    arch: Arch,
    lines: &Lines<'_>,
) -> Result<(), PositionedError> {
    let mut held: Option<Option<bool>> = None;
    let mut undecided = "";
    for value in list(package.table, "resolution-markers") {
        let condition = value.get_ref().as_str().unwrap_or_default();
        let this = marker::evaluate(condition, arch, None)
            .map_err(|_| lines.error_at(value.span().start, "not a marker"))?;
        undecided = if this.is_none() { condition } else { undecided };
        held = Some(held.map_or(this, |held| marker::any(held, this)));
    }
    match held.unwrap_or(Some(true)) {
        Some(true) => {}
        Some(false) => return Ok(()),
        None => {
            let note = format!("{} is installed only if {}", package.name, excerpt(undecided));
            declared.note(package.span, note);
        }
    }
    let Some(written) = package.version else {
        declared.note(package.span, format!("{} has no version in the lock", package.name));
        return Ok(());
    };
    let version = Version::from_str(written).map_err(|_| {
        let at = package.table.get("version").map_or(0, |value| value.span().start);
        lines.error_at(at, format!("`{}` is not a version", excerpt(written)))
    })?;
    let source = toml_tree::table(package.table, &["source"]);
    let registry = source.and_then(|source| text(source, "registry"));
    if source.is_some_and(|source| has_any(source, &["git", "url", "path", "directory"])) {
        declared.note(package.span, format!("{} comes from a source that is not an index", package.name));
    }
    let of_registry = registry.and_then(tag::from_url);
    let tag = tag_of_version(&version).or_else(|| index_tag(&package.name, of_registry.as_deref()));
    declared.packages.push(DeclaredPackage {
        exact: Some(version),
        tag,
        ..DeclaredPackage::new(package.name.clone(), package.span)
    });
    Ok(())
}
