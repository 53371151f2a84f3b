//! `pyproject.toml`: the standard's tables, and what Poetry and uv add to them.

use std::collections::HashMap;
use std::str::FromStr;

use cudock_base::{Arch, Span};
use pep440_rs::{Version, VersionSpecifiers};
use toml::de::DeTable;

use super::pip::Indexes;
use super::requirement::{Context, declare, exact_and_range, index_tag, normalise, parse, tag_of_version};
use super::toml_tree::{self, Lines, Value, list, table, text};
use super::{Declared, DeclaredPackage, Fault, Manager, excerpt, marker, tag};

pub(super) fn read(input: &str, arch: Arch) -> Result<Declared, Fault> {
    let lines = Lines::of(input);
    let root = toml_tree::parse(input, &lines)?;
    let mut reader = Reader::new(&root, &lines, arch);
    reader.standard(&root)?;
    reader.poetry(&root);
    if table(&root, &["tool", "pixi"]).is_some() {
        reader.declared.note(Span::START, "the tables of pixi are not read");
    }
    let mut declared = reader.declared;
    if let Some(conflict) = reader.general.conflict() {
        declared.note(Span::START, conflict);
    }
    declared.notes.sort_by_key(|note| note.span.line);
    Ok(declared)
}

/// Where one package comes from.
struct Source<'t> {
    index: Option<&'t str>,
    marker: Option<&'t str>,
    group: Option<&'t str>,
    /// A path, repository or address in place of an index.
    elsewhere: bool,
}

/// What the source of a package tells.
struct Taken {
    tag: Option<String>,
}

struct Reader<'t> {
    declared: Declared,
    lines: &'t Lines<'t>,
    arch: Arch,
    sources: HashMap<String, Vec<Source<'t>>>,
    /// Addresses by the names that sources use.
    named: HashMap<&'t str, &'t str>,
    /// What holds for packages without a source.
    general: Indexes,
    /// Poetry's extras, by the packages they bring.
    extras_of: HashMap<String, String>,
}

impl<'t> Reader<'t> {
    fn new(root: &'t DeTable<'_>, lines: &'t Lines<'t>, arch: Arch) -> Self {
        let mut named = HashMap::new();
        let mut general = Indexes::default();
        let uv = table(root, &["tool", "uv"]);
        let poetry = table(root, &["tool", "poetry"]);
        let pdm = table(root, &["tool", "pdm"]);
        let of_uv = uv.into_iter().flat_map(|uv| list(uv, "index"));
        let of_others = [poetry, pdm].into_iter().flatten().flat_map(|tool| list(tool, "source"));
        for index in of_uv.chain(of_others).filter_map(|index| index.get_ref().as_table()) {
            let Some(address) = text(index, "url") else { continue };
            named.extend(text(index, "name").map(|name| (name, address)));
            let is_explicit = index.get("explicit").and_then(|value| value.get_ref().as_bool()) == Some(true)
                || text(index, "priority") == Some("explicit");
            if !is_explicit {
                general.add(address);
            }
        }
        let pip = uv.and_then(|uv| table(uv, &["pip"]));
        for options in [uv, pip].into_iter().flatten() {
            if let Some(address) = text(options, "index-url") {
                general.set_main(address);
            }
            for key in ["extra-index-url", "find-links"] {
                list(options, key)
                    .filter_map(|value| value.get_ref().as_str())
                    .for_each(|found| general.add(found));
            }
            if let Some(backend) = text(options, "torch-backend") {
                general.set_backend(backend);
            }
        }
        let sources = uv.and_then(|uv| table(uv, &["sources"])).into_iter().flatten();
        let sources = sources.map(|(name, value)| (normalise(name.get_ref()), sources_of(value))).collect();
        Self {
            declared: Declared::default(),
            lines,
            arch,
            sources,
            named,
            general,
            extras_of: HashMap::new(),
        }
    }

    fn standard(&mut self, root: &DeTable<'_>) -> Result<(), Fault> {
        if let Some(project) = table(root, &["project"]) {
            self.declared.python = text(project, "requires-python").map(str::to_owned);
            self.declared.groups.project = text(project, "name").map(normalise);
            self.declared.groups.default.insert("dev".to_owned());
            let extras = table(project, &["optional-dependencies"]).into_iter().flatten();
            self.declared.groups.extras.extend(extras.map(|(name, _)| name.get_ref().to_string()));
            for value in list(project, "dependencies") {
                self.requirement(value, None)?;
            }
            self.groups(table(project, &["optional-dependencies"]))?;
            for value in list(project, "dynamic") {
                if value.get_ref().as_str() == Some("dependencies") {
                    let span = self.lines.span(value.span());
                    self.declared.note(span, "dependencies are made by the build backend, which is not run");
                }
            }
        }
        self.groups(table(root, &["dependency-groups"]))?;
        if let Some(uv) = table(root, &["tool", "uv"]) {
            for value in list(uv, "dev-dependencies") {
                self.requirement(value, Some("dev"))?;
            }
            if let Some(groups) = uv.get("default-groups").and_then(|groups| groups.get_ref().as_array()) {
                let names = groups.iter().filter_map(|name| name.get_ref().as_str());
                self.declared.groups.default = names.map(str::to_owned).collect();
            }
            self.overrides(uv, "override-dependencies", true)?;
            self.overrides(uv, "constraint-dependencies", false)?;
        }
        Ok(())
    }

    /// Versions that hold in place of what is asked, or beside it.
    fn overrides(&mut self, uv: &DeTable<'_>, key: &str, replaces: bool) -> Result<(), Fault> {
        let asked = std::mem::take(&mut self.declared.packages);
        for value in list(uv, key) {
            self.requirement(value, None)?;
        }
        let rules = std::mem::replace(&mut self.declared.packages, asked);
        for package in &mut self.declared.packages {
            let rule = rules.iter().find(|rule| rule.name == package.name);
            let Some(rule) = rule.filter(|_| replaces || package.exact.is_none()) else { continue };
            package.exact = rule.exact.clone().or_else(|| package.exact.take().filter(|_| !replaces));
            package.range = rule.range.clone().or_else(|| package.range.take().filter(|_| !replaces));
            package.tag = rule.tag.clone().or_else(|| package.tag.take());
        }
        Ok(())
    }

    fn groups(&mut self, groups: Option<&DeTable<'_>>) -> Result<(), Fault> {
        for (name, group) in groups.into_iter().flatten() {
            let Some(members) = group.get_ref().as_array() else {
                return Err(self.lines.fault(group.span().start, "expected a list of requirements"));
            };
            for member in members {
                // An included group stands in the same file, where it is read under its own name.
                if let Some(table) = member.get_ref().as_table() {
                    let included = text(table, "include-group")
                        .map(|group| (name.get_ref().to_string(), group.to_owned()));
                    self.declared.groups.includes.extend(included);
                    continue;
                }
                let before = self.declared.packages.len();
                self.requirement(member, Some(name.get_ref()))?;
                // `all = ["app[gpu,web]"]` asks for extras of the project itself.
                let own = self
                    .declared
                    .packages
                    .get(before)
                    .filter(|package| self.declared.groups.project.as_ref() == Some(&package.name));
                let included: Vec<_> = own
                    .into_iter()
                    .flat_map(|own| own.extras.clone())
                    .map(|extra| (name.get_ref().to_string(), extra))
                    .collect();
                self.declared.groups.includes.extend(included);
            }
        }
        Ok(())
    }

    fn requirement(&mut self, value: &Value<'_>, group: Option<&str>) -> Result<(), Fault> {
        let bytes = value.span();
        let Some(written) = value.get_ref().as_str() else {
            return Err(self.lines.fault(bytes.start, "expected a requirement in quotes"));
        };
        let span = self.lines.span(bytes.clone());
        let source =
            parse(written).ok().and_then(|requirement| self.source_tag(&requirement.name, group, span));
        let context = Context { span, arch: self.arch, group, tag: self.general.tag() };
        let before = self.declared.packages.len();
        declare(&mut self.declared, written, context)
            .map_err(|mistake| self.lines.mistake(bytes, mistake))?;
        if let (Some(taken), Some(package)) = (source, self.declared.packages.get_mut(before))
            && package.exact.as_ref().is_none_or(|version| !version.is_local())
        {
            package.tag = taken.tag;
        }
        Ok(())
    }

    /// What uv takes a package from, if that is a source of its own.
    fn source_tag(&mut self, name: &str, group: Option<&str>, span: Span) -> Option<Taken> {
        let source = self.sources.get(name)?.iter().find(|source| {
            let met = |condition| marker::evaluate(condition, self.arch, group) != Ok(Some(false));
            source.group.is_none_or(|wanted| group == Some(wanted)) && source.marker.is_none_or(met)
        })?;
        if source.elsewhere {
            self.declared.note(span, format!("{name} comes from a source that is not an index"));
            return Some(Taken { tag: None });
        }
        let index = source.index?;
        let Some(address) = self.named.get(index) else {
            self.declared.note(span, format!("the index `{}` of {name} is not in this file", excerpt(index)));
            return Some(Taken { tag: None });
        };
        Some(Taken { tag: tag::of_address(address) })
    }

    fn poetry(&mut self, root: &DeTable<'_>) {
        let Some(poetry) = table(root, &["tool", "poetry"]) else { return };
        for (extra, members) in table(poetry, &["extras"]).into_iter().flatten() {
            self.declared.groups.extras.insert(extra.get_ref().to_string());
            let members = members.get_ref().as_array().into_iter().flatten();
            for member in members.filter_map(|member| member.get_ref().as_str()) {
                self.extras_of.entry(normalise(member)).or_insert_with(|| extra.get_ref().to_string());
            }
        }
        if let Some(dependencies) = table(poetry, &["dependencies"]) {
            self.poetry_table(dependencies, None);
        }
        if let Some(dependencies) = table(poetry, &["dev-dependencies"]) {
            self.poetry_table(dependencies, Some("dev"));
        }
        for (name, group) in table(poetry, &["group"]).into_iter().flatten() {
            let dependencies = group.get_ref().as_table().and_then(|group| table(group, &["dependencies"]));
            let optional = group.get_ref().as_table().and_then(|group| group.get("optional"));
            if optional.and_then(|optional| optional.get_ref().as_bool()) != Some(true) {
                self.declared.groups.default.insert(name.get_ref().to_string());
            }
            if let Some(dependencies) = dependencies {
                self.poetry_table(dependencies, Some(name.get_ref()));
            }
        }
    }

    fn poetry_table(&mut self, dependencies: &DeTable<'_>, group: Option<&str>) {
        for (name, value) in dependencies {
            if name.get_ref() == "python" {
                let python = value.get_ref().as_str().map(str::to_owned);
                self.declared.python = self.declared.python.take().or(python);
                continue;
            }
            let name = normalise(name.get_ref());
            match value.get_ref().as_array() {
                Some(alternatives) => {
                    alternatives.iter().for_each(|value| self.poetry_dependency(&name, value, group));
                }
                None => self.poetry_dependency(&name, value, group),
            }
        }
    }

    fn poetry_dependency(&mut self, name: &str, value: &Value<'_>, group: Option<&str>) {
        let span = self.lines.span(value.span());
        let mut package = DeclaredPackage {
            name: name.to_owned(),
            extras: Vec::new(),
            exact: None,
            range: None,
            tag: None,
            manager: Manager::Pip,
            group: group.map(str::to_owned),
            exclusive: false,
            file: None,
            span,
        };
        let mut index = None;
        let written = match (value.get_ref().as_str(), value.get_ref().as_table()) {
            (Some(version), _) => Some(version),
            (None, Some(details)) => {
                if !self.poetry_applies(name, details, span) {
                    return;
                }
                if is_optional(details) {
                    package.group = self.extras_of.get(name).cloned().or(package.group.take());
                }
                if let Some(address) = text(details, "url") {
                    let context = Context { span, arch: self.arch, group, tag: None };
                    if declare(&mut self.declared, &format!("{name} @ {address}"), context).is_err() {
                        self.declared
                            .note(span, format!("{name} comes from {}, which is not read", excerpt(address)));
                    }
                    return;
                }
                if ["git", "path", "file"].iter().any(|key| details.contains_key(*key)) {
                    self.declared.note(span, format!("{name} comes from a source that is not an index"));
                }
                let extras = list(details, "extras").filter_map(|extra| extra.get_ref().as_str());
                package.extras = extras.map(normalise).collect();
                index = text(details, "source").and_then(|source| self.named.get(source)).copied();
                text(details, "version")
            }
            _ => None,
        };
        (package.exact, package.range) = poetry_version(written.unwrap_or("*"));
        package.tag = match (&package.exact, index) {
            (Some(version), _) if version.is_local() => tag_of_version(version),
            (_, Some(address)) => tag::of_address(address),
            (_, None) => index_tag(name, self.general.tag()),
        };
        self.declared.packages.push(package);
    }

    /// Whether a dependency is for Linux, and a note if that is not told.
    fn poetry_applies(&mut self, name: &str, details: &DeTable<'_>, span: Span) -> bool {
        if text(details, "platform").is_some_and(|platform| platform != "linux") {
            return false;
        }
        if let Some(condition) = text(details, "markers") {
            match marker::evaluate(condition, self.arch, None) {
                Ok(Some(false)) => return false,
                Ok(Some(true)) => {}
                Ok(None) | Err(_) => {
                    self.declared.note(span, format!("{name} is asked for only if {}", excerpt(condition)));
                }
            }
        }
        if is_optional(details) && !self.extras_of.contains_key(name) {
            self.declared.note(span, format!("{name} is installed only with an extra"));
        }
        true
    }
}

fn is_optional(details: &DeTable<'_>) -> bool {
    details.get("optional").and_then(|value| value.get_ref().as_bool()) == Some(true)
}

fn sources_of<'t>(value: &'t Value<'_>) -> Vec<Source<'t>> {
    let one = |source: &'t DeTable<'_>| Source {
        index: text(source, "index"),
        marker: text(source, "marker"),
        group: text(source, "extra").or_else(|| text(source, "group")),
        elsewhere: ["git", "path", "url", "workspace"].iter().any(|key| source.contains_key(*key)),
    };
    match (value.get_ref().as_table(), value.get_ref().as_array()) {
        (Some(source), _) => vec![one(source)],
        (_, Some(sources)) => {
            sources.iter().filter_map(|source| source.get_ref().as_table()).map(one).collect()
        }
        _ => Vec::new(),
    }
}

/// Poetry's ranges: those of the standard, `^1.2` and `~1.2`, and a bare version, which is just that one.
fn poetry_version(written: &str) -> (Option<Version>, Option<String>) {
    let written = written.trim();
    if written == "*" || written.is_empty() {
        return (None, None);
    }
    if let Ok(version) = Version::from_str(written) {
        return (Some(version), None);
    }
    match VersionSpecifiers::from_str(written) {
        Ok(specifiers) => exact_and_range(&specifiers),
        Err(_) => (None, Some(caret(written).unwrap_or_else(|| written.to_owned()))),
    }
}

/// `^1.2.3` allows what does not change the first number that is not zero; `~1.2` the last number but one.
fn caret(written: &str) -> Option<String> {
    let is_caret = written.starts_with('^');
    let bare = written.strip_prefix(['^', '~'])?.trim();
    let version = Version::from_str(bare).ok()?;
    let numbers: Vec<u64> = version.release().to_vec();
    let kept = if is_caret {
        numbers.iter().position(|number| *number != 0).map_or(numbers.len(), |at| at + 1)
    } else {
        numbers.len().min(2)
    };
    let mut upper: Vec<u64> = numbers.into_iter().take(kept).collect();
    let last = upper.last_mut()?;
    *last = last.checked_add(1)?;
    let upper: Vec<String> = upper.iter().map(ToString::to_string).collect();
    Some(format!(">={bare},<{}", upper.join(".")))
}
