//! Finds the Dockerfiles of a directory: by their names, and those that compose and bake files name.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use cudock_base::files::read_optional;
use cudock_yaml::{Data, Node};
use ignore::WalkBuilder;

/// Endings of files that are named like a Dockerfile and are not one: templates, documentation, ignore files.
const OTHER_ENDINGS: [&str; 11] = [
    ".dockerignore",
    ".erb",
    ".in",
    ".j2",
    ".jinja",
    ".jinja2",
    ".md",
    ".mustache",
    ".template",
    ".tmpl",
    ".tpl",
];

/// The size limit of compose and bake files, in bytes.
const LARGEST: u64 = 1 << 20;

/// The Dockerfiles below a directory, without what `.gitignore` files exclude; sorted.
pub(crate) fn discover(directory: &Path) -> Vec<PathBuf> {
    let mut files = BTreeSet::new();
    let real = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
    let walk = WalkBuilder::new(directory)
        .standard_filters(false)
        .git_ignore(true)
        .parents(true)
        .require_git(false)
        .filter_entry(|entry| entry.file_name() != ".git")
        .build();
    for entry in walk.filter_map(Result::ok) {
        if !entry.file_type().is_some_and(|kind| kind.is_file()) {
            continue;
        }
        let name = entry.file_name().to_string_lossy();
        let path = entry.path();
        if is_dockerfile(&name) {
            files.insert(clean(path));
        } else if let Some(kind) = BuildFile::of_name(&name) {
            let named = kind.dockerfiles(path);
            // A file may name any path on this machine; only those below the directory were requested.
            let is_inside = |path: &PathBuf| {
                path.canonicalize().is_ok_and(|path| path.is_file() && path.starts_with(&real))
            };
            files.extend(named.into_iter().map(|path| clean(&path)).filter(is_inside));
        }
    }
    files.into_iter().collect()
}

/// Whether a file is a Dockerfile by its name: `Dockerfile`, `Dockerfile.gpu`, `Containerfile`, `gpu.dockerfile`.
fn is_dockerfile(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    if OTHER_ENDINGS.iter().any(|ending| lower.ends_with(ending)) {
        return false;
    }
    matches!(lower.as_str(), "dockerfile" | "containerfile")
        || lower.ends_with(".dockerfile")
        || lower.ends_with(".containerfile")
        || name.starts_with("Dockerfile.")
        || name.starts_with("Containerfile.")
}

/// A path without `.` and without `..` after a name, so that a file has one name.
fn clean(path: &Path) -> PathBuf {
    use std::path::Component;
    let mut cleaned = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir
                if matches!(cleaned.components().next_back(), Some(Component::Normal(_))) =>
            {
                cleaned.pop();
            }
            part => cleaned.push(part),
        }
    }
    cleaned
}

/// A file that names Dockerfiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BuildFile {
    Compose,
    BakeJson,
    BakeHcl,
}

impl BuildFile {
    fn of_name(name: &str) -> Option<Self> {
        let (stem, extension) = name.rsplit_once('.')?;
        let is = |word: &str| {
            stem == word || stem.strip_prefix(word).is_some_and(|rest| rest.starts_with(['.', '-']))
        };
        match extension {
            "yml" | "yaml" if is("compose") || is("docker-compose") => Some(Self::Compose),
            "json" if is("docker-bake") => Some(Self::BakeJson),
            "hcl" if is("docker-bake") => Some(Self::BakeHcl),
            _ => None,
        }
    }

    /// The Dockerfiles that a file names, whether they exist or not.
    fn dockerfiles(self, path: &Path) -> Vec<PathBuf> {
        let Ok(Some(text)) = read_optional(path, LARGEST) else { return Vec::new() };
        let builds = match self {
            Self::Compose => members(&text, "services", |service| service.get("build")),
            Self::BakeJson => members(&text, "target", |target| Some(target)),
            Self::BakeHcl => hcl_targets(&text),
        };
        let directory = path.parent().unwrap_or(Path::new(""));
        builds.iter().filter_map(|build| build.path(directory)).collect()
    }
}

/// The build of a service or target, as written.
#[derive(Debug, Default, PartialEq, Eq)]
struct BuildSection {
    context: Option<String>,
    dockerfile: Option<String>,
}

impl BuildSection {
    fn path(&self, directory: &Path) -> Option<PathBuf> {
        let context = self.context.as_deref().unwrap_or(".");
        let dockerfile = self.dockerfile.as_deref().unwrap_or("Dockerfile");
        let is_plain = |part: &str| !part.contains('$') && !part.contains("://");
        (is_plain(context) && is_plain(dockerfile)).then(|| directory.join(context).join(dockerfile))
    }
}

/// The builds of a YAML or JSON file; `build` selects the build of a member of `section`.
fn members(text: &str, section: &str, build: fn(&Node) -> Option<&Node>) -> Vec<BuildSection> {
    let Ok(root) = cudock_yaml::parse(text) else { return Vec::new() };
    let Some(Data::Map(entries)) = root.get(section).map(|section| &section.data) else { return Vec::new() };
    let text = |node: Option<&Node>| node.and_then(Node::text).map(str::to_owned);
    let builds = entries.iter().filter_map(|entry| build(&entry.value));
    builds
        .map(|build| BuildSection {
            // `build: DIR` names only the context.
            context: build.text().map(str::to_owned).or_else(|| text(build.get("context"))),
            dockerfile: text(build.get("dockerfile")),
        })
        .collect()
}

/// The targets of a bake file in HCL: `dockerfile = "…"` and `context = "…"`, one per line.
fn hcl_targets(text: &str) -> Vec<BuildSection> {
    let mut targets: Vec<BuildSection> = Vec::new();
    for line in text.lines().map(str::trim) {
        if line.starts_with("target ") {
            targets.push(BuildSection::default());
        }
        let Some((key, value)) = line.split_once('=') else { continue };
        let (Some(target), Some(value)) = (targets.last_mut(), value.trim().strip_prefix('"')) else {
            continue;
        };
        let value = value.split('"').next().map(str::to_owned);
        match key.trim() {
            "context" => target.context = value,
            "dockerfile" => target.dockerfile = value,
            _ => {}
        }
    }
    targets
}
