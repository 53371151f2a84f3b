//! Debian's control files: stanzas of fields, and the relations between packages.

use std::collections::BTreeMap;

use cudock_base::{Arch, Digest};

use super::version::DebVersion;

/// Passes the fields of every stanza of a file to `take`, under their lower-case names. Lines of a field are joined by
/// line ends; comments and lines without a colon are ignored.
pub fn stanzas<'t>(text: &'t str, mut take: impl FnMut(&BTreeMap<String, String>)) {
    let mut fields: BTreeMap<String, String> = BTreeMap::new();
    let mut last: Option<String> = None;
    let mut end = |fields: &mut BTreeMap<String, String>| {
        if !fields.is_empty() {
            take(fields);
            fields.clear();
        }
    };
    let lines: std::str::Lines<'t> = text.lines();
    for line in lines {
        if line.trim().is_empty() {
            end(&mut fields);
            last = None;
        } else if line.starts_with('#') {
            // A comment does not end the field around it.
        } else if line.starts_with([' ', '\t']) {
            if let Some(value) = last.as_ref().and_then(|name| fields.get_mut(name)) {
                value.push('\n');
                value.push_str(line.trim());
            }
        } else if let Some((name, value)) = line.split_once(':') {
            let name = name.trim().to_ascii_lowercase();
            fields.insert(name.clone(), value.trim().to_owned());
            last = Some(name);
        }
    }
    end(&mut fields);
}

/// A package of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DebPackage {
    pub name: String,
    pub version: DebVersion,
    /// Below the archive's root.
    pub path: String,
    pub size: u64,
    pub digest: Digest,
    /// `Pre-Depends` and `Depends`.
    pub depends: Vec<Vec<Relation>>,
    pub provides: Vec<Relation>,
}

/// A package that another one refers to: `libc6 (>= 2.36)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relation {
    pub name: String,
    /// The operator and the version.
    pub version: Option<(VersionBound, DebVersion)>,
}

/// Operators in relations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VersionBound {
    Earlier,
    AtMost,
    Exactly,
    AtLeast,
    Later,
}

impl DebPackage {
    /// Reads a stanza of a Packages file; `None` if it is for another processor or lacks a field.
    pub fn read(fields: &BTreeMap<String, String>, arch: Arch) -> Option<Self> {
        let get = |name: &str| fields.get(name).map(String::as_str);
        if !matches!(get("architecture"), Some(name) if name == arch.oci_name() || name == "all") {
            return None;
        }
        let path = get("filename")?.trim_start_matches("./");
        let is_confined = !path.is_empty() && !path.split('/').any(|part| matches!(part, "" | "." | ".."));
        let mut depends = relations(get("pre-depends").unwrap_or_default(), arch);
        depends.extend(relations(get("depends").unwrap_or_default(), arch));
        let provides = relations(get("provides").unwrap_or_default(), arch);
        is_confined.then_some(())?;
        Some(Self {
            name: get("package")?.to_owned(),
            version: DebVersion::new(get("version")?),
            path: path.to_owned(),
            size: get("size")?.parse().ok()?,
            digest: format!("sha256:{}", get("sha256")?).parse().ok()?,
            depends,
            provides: provides.into_iter().flatten().collect(),
        })
    }

    /// The file's name.
    pub fn file(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }
}

impl Relation {
    pub fn accepts(&self, version: &DebVersion) -> bool {
        self.version.as_ref().is_none_or(|(bound, wanted)| match bound {
            VersionBound::Earlier => version < wanted,
            VersionBound::AtMost => version <= wanted,
            VersionBound::Exactly => version == wanted,
            VersionBound::AtLeast => version >= wanted,
            VersionBound::Later => version > wanted,
        })
    }
}

impl std::fmt::Display for Relation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Some((bound, version)) = &self.version else { return f.write_str(&self.name) };
        let operator = match bound {
            VersionBound::Earlier => "<<",
            VersionBound::AtMost => "<=",
            VersionBound::Exactly => "=",
            VersionBound::AtLeast => ">=",
            VersionBound::Later => ">>",
        };
        write!(f, "{} ({operator} {version})", self.name)
    }
}

/// Reads `a (>= 1) | b, c:any [amd64]`: alternatives within a list of requirements. Those of other processors are
/// left out.
pub fn relations(text: &str, arch: Arch) -> Vec<Vec<Relation>> {
    text.split(',')
        .map(|group| group.split('|').filter_map(|one| relation(one.trim(), arch)).collect())
        .filter(|group: &Vec<Relation>| !group.is_empty())
        .collect()
}

fn relation(text: &str, arch: Arch) -> Option<Relation> {
    let end = text.find(|c: char| c.is_whitespace() || matches!(c, '(' | '[' | '<')).unwrap_or(text.len());
    let (name, mut rest) = text.split_at(end);
    let name = name.split(':').next().filter(|name| !name.is_empty())?;
    if let Some((before, architectures)) = rest.split_once('[') {
        rest = before;
        let named: Vec<&str> = architectures.trim_end().trim_end_matches(']').split_whitespace().collect();
        let is_exclusion = named.iter().any(|name| name.starts_with('!'));
        let is_named = named.iter().any(|name| name.trim_start_matches('!') == arch.oci_name());
        if is_named == is_exclusion {
            return None;
        }
    }
    let version = match rest.split_once('(') {
        None => None,
        Some((_, inner)) => {
            let inner = inner.split(')').next().unwrap_or_default().trim();
            let start = inner.find(|c: char| !matches!(c, '<' | '>' | '=')).unwrap_or(inner.len());
            let (operator, version) = inner.split_at(start);
            let bound = match operator {
                "<<" => VersionBound::Earlier,
                "<=" | "<" => VersionBound::AtMost,
                "=" => VersionBound::Exactly,
                ">=" | ">" => VersionBound::AtLeast,
                ">>" => VersionBound::Later,
                _ => return None,
            };
            Some((bound, DebVersion::new(version.trim())))
        }
    };
    Some(Relation { name: name.to_owned(), version })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(text: &str) -> Vec<Vec<String>> {
        let groups = relations(text, Arch::X86_64).into_iter();
        groups.map(|group| group.iter().map(ToString::to_string).collect()).collect()
    }

    #[test]
    fn relations_have_alternatives_versions_and_processors() {
        assert_eq!(
            shown("libc6 (>= 2.36), debconf (>= 0.5) | debconf-2.0, python3:any, "),
            [vec!["libc6 (>= 2.36)"], vec!["debconf (>= 0.5)", "debconf-2.0"], vec!["python3"]]
        );
        assert_eq!(shown("a [amd64], b [arm64], c [!amd64], d(<<2)"), [vec!["a"], vec!["d (<< 2)"]]);
        assert_eq!(shown(" , | ,(>= 1), x (? 2)"), Vec::<Vec<String>>::new());
    }

    #[test]
    fn bounds_include_what_they_say() {
        let accepts = |text: &str, version: &str| {
            relations(text, Arch::X86_64)[0][0].accepts(&DebVersion::new(version))
        };
        for (bound, below, same, above) in [
            ("a (<< 2)", true, false, false),
            ("a (<= 2)", true, true, false),
            ("a (= 2)", false, true, false),
            ("a (>= 2)", false, true, true),
            ("a (>> 2)", false, false, true),
            ("a", true, true, true),
        ] {
            let found = ["1", "2", "3"].map(|version| accepts(bound, version));
            assert_eq!(found, [below, same, above], "{bound}");
        }
    }

    #[test]
    fn a_stanza_becomes_a_package_and_others_do_not() {
        let hash = "0".repeat(64);
        let text = format!(
            "Package: a\nArchitecture: amd64\nVersion: 1-1\nFilename: pool/a.deb\nSize: 5\nSHA256: {hash}\n\
             Description: x\n long: text\n# comment\nDepends: b\n\n\
             Package: b\nArchitecture: arm64\nVersion: 1\nFilename: pool/b.deb\nSize: 5\nSHA256: {hash}\n\n\
             Package: c\nArchitecture: all\nVersion: 1\nFilename: ../c.deb\nSize: 5\nSHA256: {hash}\n"
        );
        let mut packages = Vec::new();
        stanzas(&text, |fields| packages.extend(DebPackage::read(fields, Arch::X86_64)));
        let [a] = packages.as_slice() else { panic!("{packages:?}") };
        assert_eq!((a.name.as_str(), a.file(), a.depends.len()), ("a", "a.deb", 1));
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "(Package|Depends|Size|Filename)?[: \\na-z|(<>=)\\[\\]!,é.0-9]{0,80}") {
            stanzas(&text, |fields| { DebPackage::read(fields, Arch::Aarch64); });
            relations(&text, Arch::X86_64);
        }
    }
}
