//! Releases that images may be made of, and the mirrors of their archives as apt is configured for them.

use std::path::{Path, PathBuf};

use cudock_base::{Arch, Environment, files};

use super::control::stanzas;

const MAX_SOURCES: u64 = 1 << 20;
/// A keyring that is used in place of the system's.
pub const CUDOCK_KEYRING: &str = "CUDOCK_KEYRING";

/// A release of a distribution.
#[derive(Debug, PartialEq, Eq)]
pub struct Release {
    pub distribution: &'static str,
    pub suite: &'static str,
    /// The version of Python that it has.
    pub python: &'static str,
    /// The minor version of its glibc 2, which decides which wheels run on it.
    pub glibc: u32,
}

/// Sources: packages.debian.org and packages.ubuntu.com, `python3` and `libc6` of each suite, 2026-11-17.
pub const RELEASES: &[Release] = &[
    Release { distribution: "debian", suite: "trixie", python: "3.13", glibc: 41 },
    Release { distribution: "debian", suite: "bookworm", python: "3.11", glibc: 36 },
    Release { distribution: "ubuntu", suite: "noble", python: "3.12", glibc: 39 },
];

/// A suite of an archive at a mirror.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mirror {
    /// `debian`, `debian-security` or `ubuntu`, which lock files name.
    pub archive: &'static str,
    /// The URL of the archive's root, without a slash at its end.
    pub url: String,
    /// `bookworm-security`
    pub suite: String,
    pub keyring: PathBuf,
}

impl Release {
    pub fn find(suite: &str) -> Option<&'static Self> {
        RELEASES.iter().find(|release| release.suite == suite)
    }

    /// The suites that are read: the release, its updates and its security updates.
    pub fn mirrors(&self, environment: &Environment, arch: Arch) -> Vec<Mirror> {
        let configured = configured(environment);
        let keyring =
            environment.system(format!("usr/share/keyrings/{}-archive-keyring.gpg", self.distribution));
        let of = |archive: &'static str, suite: String, default: &str| {
            let entry =
                configured.iter().find(|entry| entry.is_for(archive) && entry.suites.contains(&suite));
            let any = || configured.iter().find(|entry| entry.is_for(archive));
            let entry = entry.or_else(any);
            let url = entry.map_or_else(|| default.to_owned(), |entry| entry.url.clone());
            let named = entry.and_then(|entry| entry.signed_by.clone()).filter(|path| path.is_absolute());
            let named = named.map(|path| environment.system(path.strip_prefix("/").unwrap_or(&path)));
            let keyring = environment.path(CUDOCK_KEYRING).or(named).unwrap_or_else(|| keyring.clone());
            Mirror { archive, url, suite, keyring }
        };
        let suite = self.suite;
        let [updates, security] = ["updates", "security"].map(|end| format!("{suite}-{end}"));
        if self.distribution == "ubuntu" {
            let (archive, default) = match arch {
                Arch::X86_64 => ("ubuntu", "http://archive.ubuntu.com/ubuntu"),
                Arch::Aarch64 => ("ubuntu-ports", "http://ports.ubuntu.com/ubuntu-ports"),
            };
            return [suite.to_owned(), updates, security].map(|suite| of(archive, suite, default)).into();
        }
        vec![
            of("debian", suite.to_owned(), "http://deb.debian.org/debian"),
            of("debian", updates, "http://deb.debian.org/debian"),
            of("debian-security", security, "http://deb.debian.org/debian-security"),
        ]
    }
}

/// A source of apt.
#[derive(Debug, PartialEq, Eq)]
struct AptSource {
    url: String,
    suites: Vec<String>,
    signed_by: Option<PathBuf>,
}

impl AptSource {
    /// Mirrors keep the last part of the archive's path: `…/debian`, `…/debian-security`.
    fn is_for(&self, archive: &str) -> bool {
        self.url.rsplit('/').next() == Some(archive)
    }
}

/// The sources of apt that are reached over HTTP, in its order.
fn configured(environment: &Environment) -> Vec<AptSource> {
    let mut paths = vec![environment.system("etc/apt/sources.list")];
    let directory = environment.system("etc/apt/sources.list.d");
    let entries = std::fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok);
    let mut more: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    more.sort();
    paths.extend(more);
    let mut sources = Vec::new();
    for path in paths {
        let Ok(Some(text)) = files::read_optional(&path, MAX_SOURCES) else { continue };
        match path.extension().and_then(|end| end.to_str()) {
            Some("list") => sources.extend(text.lines().filter_map(one_line)),
            Some("sources") => stanzas(&text, |fields| {
                let get = |name: &str| fields.get(name).map(String::as_str).unwrap_or_default();
                if get("enabled").eq_ignore_ascii_case("no")
                    || !get("types").split_whitespace().any(|t| t == "deb")
                {
                    return;
                }
                let signed_by =
                    fields.get("signed-by").filter(|text| !text.contains('\n')).map(PathBuf::from);
                for url in get("uris").split_whitespace() {
                    let suites = get("suites").split_whitespace().map(str::to_owned).collect();
                    sources.extend(source(url, suites, signed_by.clone()));
                }
            }),
            _ => {}
        }
    }
    sources
}

/// `deb [signed-by=/usr/share/keyrings/a.gpg] http://deb.debian.org/debian bookworm main`
fn one_line(line: &str) -> Option<AptSource> {
    let rest = line.trim().strip_prefix("deb ")?.trim_start();
    let (options, rest) = match rest.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?,
        None => ("", rest),
    };
    let signed_by = options.split_whitespace().find_map(|option| option.strip_prefix("signed-by="));
    let mut words = rest.split_whitespace();
    let (url, suite) = (words.next()?, words.next()?);
    source(url, vec![suite.to_owned()], signed_by.map(|path| Path::new(path).to_owned()))
}

fn source(url: &str, suites: Vec<String>, signed_by: Option<PathBuf>) -> Option<AptSource> {
    let is_http = url.starts_with("http://") || url.starts_with("https://");
    is_http.then(|| AptSource { url: url.trim_end_matches('/').to_owned(), suites, signed_by })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mirrors(files: &[(&str, &str)], suite: &str, variables: &[(&str, &str)]) -> Vec<Mirror> {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = directory.path().join("etc/apt").join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let environment = Environment::of(directory.path(), variables.iter().copied());
        let mut mirrors = Release::find(suite).unwrap().mirrors(&environment, Arch::X86_64);
        for mirror in &mut mirrors {
            if let Ok(path) = mirror.keyring.strip_prefix(directory.path()) {
                mirror.keyring = path.to_owned();
            }
        }
        mirrors
    }

    #[test]
    fn the_public_archive_is_the_default() {
        let found = mirrors(&[], "trixie", &[]);
        let urls: Vec<_> = found.iter().map(|m| (m.url.as_str(), m.suite.as_str())).collect();
        let debian = "http://deb.debian.org/debian";
        let security = "http://deb.debian.org/debian-security";
        assert_eq!(urls, [(debian, "trixie"), (debian, "trixie-updates"), (security, "trixie-security")]);
        assert_eq!(found[0].keyring, Path::new("usr/share/keyrings/debian-archive-keyring.gpg"));
        assert_eq!(mirrors(&[], "noble", &[])[0].url, "http://archive.ubuntu.com/ubuntu");
        assert_eq!(mirrors(&[], "noble", &[(CUDOCK_KEYRING, "/k.gpg")])[2].keyring, Path::new("/k.gpg"));
    }

    #[test]
    fn mirrors_of_apt_are_used_also_for_other_suites() {
        let lists = "# deb http://no.example/debian trixie main\ndeb-src http://no.example/debian trixie main\n\
                     deb [arch=amd64 signed-by=/k/one.gpg] https://one.example/mirror/debian/ bookworm main\n\
                     deb cdrom:[Debian] bookworm main\n";
        let deb822 = "Types: deb\nURIs: http://two.example/debian-security\nSuites: bookworm-security\n\
                      Signed-By: /k/two.gpg\n\nTypes: deb\nEnabled: no\nURIs: http://no.example/debian\n";
        let files =
            [("sources.list", lists), ("sources.list.d/a.sources", deb822), ("sources.list.d/b.bak", lists)];
        for suite in ["bookworm", "trixie"] {
            let found = mirrors(&files, suite, &[]);
            let urls: Vec<_> = found.iter().map(|m| m.url.as_str()).collect();
            let one = "https://one.example/mirror/debian";
            assert_eq!(urls, [one, one, "http://two.example/debian-security"], "{suite}");
            assert_eq!(found[2].keyring, Path::new("k/two.gpg"));
        }
    }
}
