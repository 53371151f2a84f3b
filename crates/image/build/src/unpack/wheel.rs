//! Wheels: every file is in RECORD with its hash, and goes where its scheme says.

use cudock_base::bug::Parts;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Cursor, Read};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cudock_image::FileKind;
use sha2::{Digest as _, Sha256};
use zip::ZipArchive;

use super::error::UnpackError;
use super::store::Contents;
use super::{PackageList, PackedContent, PackedEntry, Scheme, check_path};

const MAX_MEMBERS: usize = 200_000;
/// RECORD and `entry_points.txt` are read as a whole.
const MAX_TEXT: u64 = 64 << 20;
const CHUNK: usize = 256 * 1024;
/// The interpreter of generated scripts: a link that every image with Python has.
pub(crate) const PYTHON: &str = "/usr/local/bin/python3";

type Zip<'a> = ZipArchive<Cursor<&'a [u8]>>;

pub(super) fn read(
    name: &str,
    bytes: &[u8],
    contents: &mut dyn Contents,
) -> Result<PackageList, UnpackError> {
    let broken =
        |error: zip::result::ZipError| UnpackError::refused(format!("not a valid zip file: {error}"));
    let mut zip = ZipArchive::new(Cursor::new(bytes)).map_err(broken)?;
    if zip.len() > MAX_MEMBERS {
        return Err(UnpackError::refused(format!("has {} members", zip.len())));
    }
    let layout = WheelLayout::of(name, &zip)?;
    let record = record(&text(&mut zip, &format!("{}/RECORD", layout.info))?)?;
    let mut reader = WheelReader { layout, record, seen: BTreeSet::new(), list: PackageList::default() };
    for index in 0..zip.len() {
        let mut member = zip.by_index(index).map_err(broken)?;
        reader.member(&mut member, contents)?;
    }
    let missing = reader.record.keys().find(|path| !reader.seen.contains(*path));
    if let Some(missing) = missing {
        return Err(UnpackError::refused(format!("RECORD lists `{missing}`, which is not in the archive")));
    }
    let entry_points = format!("{}/entry_points.txt", reader.layout.info);
    if reader.seen.contains(&entry_points) {
        let scripts = scripts(&text(&mut zip, &entry_points)?)?;
        for (name, script) in scripts {
            reader.script(name, script.as_bytes(), contents)?;
        }
    }
    Ok(reader.list)
}

/// The two directories that belong to the format itself.
struct WheelLayout {
    /// `torch-2.11.0.dist-info`
    info: String,
    /// `torch-2.11.0.data/`
    data: String,
}

impl WheelLayout {
    fn of(name: &str, zip: &Zip<'_>) -> Result<Self, UnpackError> {
        let mut parts = name.split('-');
        let (Some(project), Some(version)) = (parts.next(), parts.next()) else {
            return Err(UnpackError::refused("not the name of a wheel"));
        };
        let wanted = (normalized(project), normalized(version));
        let mut infos: BTreeSet<String> = BTreeSet::new();
        for path in zip.file_names().filter_map(Result::ok) {
            let Some((directory, _)) = path.split_once('/') else { continue };
            let stem = directory.strip_suffix(".dist-info").and_then(|stem| stem.rsplit_once('-'));
            if stem.is_some_and(|(name, version)| (normalized(name), normalized(version)) == wanted) {
                infos.insert(directory.to_owned());
            }
        }
        let mut infos = infos.into_iter();
        match (infos.next(), infos.next()) {
            (Some(info), None) => {
                let stem = info.trim_end_matches(".dist-info");
                Ok(Self { data: format!("{stem}.data/"), info })
            }
            (None, _) => Err(UnpackError::refused("has no .dist-info directory of its name and version")),
            (Some(_), Some(_)) => Err(UnpackError::refused("has several .dist-info directories")),
        }
    }

    /// The scheme of a member, and its path there.
    fn place<'p>(&self, path: &'p str) -> Result<(Scheme, &'p str), UnpackError> {
        let Some(rest) = path.strip_prefix(&self.data) else { return Ok((Scheme::Site, path)) };
        let (scheme, inside) = rest.split_once('/').unwrap_or((rest, ""));
        let scheme = match scheme {
            "purelib" | "platlib" => Scheme::Site,
            "scripts" => Scheme::Scripts,
            "headers" => Scheme::Headers,
            "data" => Scheme::Data,
            other => {
                let other = cudock_base::text::escape(other, 40);
                return Err(UnpackError::refused(format!("`{other}` is not a place for data of a wheel")));
            }
        };
        Ok((scheme, inside))
    }
}

/// The spelling of a name or a version does not matter.
fn normalized(name: &str) -> String {
    name.to_ascii_lowercase().replace(['-', '_', '.', '+'], "-")
}

struct WheelReader {
    layout: WheelLayout,
    record: BTreeMap<String, Option<[u8; 32]>>,
    seen: BTreeSet<String>,
    list: PackageList,
}

impl WheelReader {
    fn member<R: Read>(
        &mut self,
        member: &mut zip::read::ZipFile<'_, R>,
        contents: &mut dyn Contents,
    ) -> Result<(), UnpackError> {
        let name = member.name().map_err(|error| UnpackError::refused(error.to_string()))?;
        let path = name.into_owned();
        if path.ends_with('/') {
            return check_path(path.trim_end_matches('/')).map_err(UnpackError::Refused);
        }
        check_path(&path).map_err(UnpackError::Refused)?;
        if member.is_symlink() {
            return Err(UnpackError::refused(format!("`{path}` is a symlink, which wheels must not have")));
        }
        if member.unix_mode().is_some_and(|mode| !matches!(mode & 0o170_000, 0 | 0o100_000)) {
            return Err(UnpackError::refused(format!("`{path}` is not a regular file")));
        }
        if !self.seen.insert(path.clone()) {
            return Err(UnpackError::refused(format!("`{path}` is in the archive twice")));
        }
        let executable = member.unix_mode().is_some_and(|mode| mode & 0o111 != 0);
        let (scheme, inside) = self.layout.place(&path)?;
        check_path(inside).map_err(UnpackError::Refused)?;
        let (inside, is_script) = (inside.to_owned(), scheme == Scheme::Scripts);
        let expected = self.expected(&path)?;
        let index = contents.begin()?;
        let (size, hash) = copy(member, is_script, &path, contents)?;
        contents.end()?;
        if expected.is_some_and(|expected| expected != hash) {
            return Err(UnpackError::refused(format!("`{path}` does not have the hash in RECORD")));
        }
        let mode = if executable || is_script { 0o755 } else { 0o644 };
        self.push(scheme, inside, mode, FileKind::File(PackedContent { index, size }));
        Ok(())
    }

    /// The hash of a member; none for RECORD itself and its signatures.
    fn expected(&self, path: &str) -> Result<Option<[u8; 32]>, UnpackError> {
        let own = path
            .strip_prefix(&self.layout.info)
            .is_some_and(|name| matches!(name, "/RECORD" | "/RECORD.jws" | "/RECORD.p7s"));
        match self.record.get(path) {
            _ if own => Ok(None),
            Some(Some(hash)) => Ok(Some(*hash)),
            Some(None) => Err(UnpackError::refused(format!("`{path}` has no hash in RECORD"))),
            None => Err(UnpackError::refused(format!("`{path}` is not in RECORD"))),
        }
    }

    fn script(&mut self, name: String, text: &[u8], contents: &mut dyn Contents) -> Result<(), UnpackError> {
        let index = contents.begin()?;
        contents.write(text)?;
        contents.end()?;
        self.push(
            Scheme::Scripts,
            name,
            0o755,
            FileKind::File(PackedContent { index, size: text.len() as u64 }),
        );
        Ok(())
    }

    fn push(&mut self, scheme: Scheme, path: String, mode: u32, kind: FileKind<PackedContent>) {
        self.list.entries.push(PackedEntry { scheme, path, mode, kind });
    }
}

/// Copies a member, with its hash. The first line `#!python` of a script becomes the interpreter of the image.
fn copy(
    member: &mut impl Read,
    is_script: bool,
    path: &str,
    contents: &mut dyn Contents,
) -> Result<(u64, [u8; 32]), UnpackError> {
    let (mut size, mut hash, mut is_start) = (0_u64, Sha256::new(), true);
    let mut buffer = vec![0; CHUNK];
    loop {
        // An error is a corrupt stream, or a checksum mismatch.
        let bytes = cudock_base::files::read_some(member, &mut buffer)
            .map_err(|error| UnpackError::refused(format!("`{path}`: {error}")))?;
        if bytes.is_empty() {
            return Ok((size, hash.finalize().into()));
        }
        hash.update(bytes);
        let rest = if is_script && is_start { bytes.strip_prefix(b"#!python") } else { None };
        is_start = false;
        if let Some(rest) = rest {
            let line = format!("#!{PYTHON}");
            let rest = rest.strip_prefix(b"w").unwrap_or(rest);
            contents.write(line.as_bytes())?;
            contents.write(rest)?;
            size += (line.len() + rest.len()) as u64;
        } else {
            contents.write(bytes)?;
            size += bytes.len() as u64;
        }
    }
}

/// A member that is read as a whole.
fn text(zip: &mut Zip<'_>, path: &str) -> Result<String, UnpackError> {
    let wrong = |reason: String| UnpackError::refused(format!("`{path}`: {reason}"));
    let member = zip.by_name(path).map_err(|error| wrong(error.to_string()))?;
    let mut bytes = Vec::new();
    member.take(MAX_TEXT + 1).read_to_end(&mut bytes).map_err(|error| wrong(error.to_string()))?;
    if bytes.len() as u64 > MAX_TEXT {
        return Err(wrong("is too large".to_owned()));
    }
    String::from_utf8(bytes).map_err(|_| wrong("is not UTF-8".to_owned()))
}

/// The paths of RECORD with their hashes.
fn record(text: &str) -> Result<BTreeMap<String, Option<[u8; 32]>>, UnpackError> {
    let mut record = BTreeMap::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let wrong = || {
            UnpackError::refused(format!("RECORD: invalid line `{}`", cudock_base::text::escape(line, 80)))
        };
        // A path with a comma is quoted, and quotes in it are doubled.
        let (path, rest) = if let Some(quoted) = line.strip_prefix('"') {
            let end = quoted.find("\",").ok_or_else(wrong)?;
            let path = quoted.part(..end).replace("\"\"", "\"");
            (path, quoted.get(end + 2..).unwrap_or_default())
        } else {
            let (path, rest) = line.split_once(',').ok_or_else(wrong)?;
            (path.to_owned(), rest)
        };
        let hash = match rest.split(',').next().unwrap_or_default() {
            "" => None,
            hash => {
                let hash = hash.strip_prefix("sha256=").ok_or_else(wrong)?;
                let bytes = URL_SAFE_NO_PAD.decode(hash.trim_end_matches('=')).map_err(|_| wrong())?;
                Some(bytes.try_into().map_err(|_| wrong())?)
            }
        };
        record.insert(path, hash);
    }
    // They cannot contain their own hash; wheels that list them anyway mean nothing by it.
    record.retain(|path, hash| hash.is_some() || !path.ends_with(".dist-info/RECORD"));
    Ok(record)
}

/// The scripts of entry points, by name.
fn scripts(text: &str) -> Result<BTreeMap<String, String>, UnpackError> {
    let mut scripts = BTreeMap::new();
    let mut wanted = false;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(['#', ';'])) {
        if let Some(section) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            wanted = matches!(section.trim(), "console_scripts" | "gui_scripts");
        } else if wanted {
            let wrong = || {
                let line = cudock_base::text::escape(line, 80);
                UnpackError::refused(format!("entry_points.txt: invalid line `{line}`"))
            };
            let (name, target) = line.split_once('=').ok_or_else(wrong)?;
            let target = target.split('[').next().unwrap_or_default().trim();
            let (module, function) = target.split_once(':').ok_or_else(wrong)?;
            let (name, module, function) = (name.trim(), module.trim(), function.trim());
            let is_identifier = |text: &str| {
                !text.is_empty()
                    && text.split('.').all(|part| {
                        !part.is_empty() && part.chars().all(|one| one.is_alphanumeric() || one == '_')
                    })
            };
            let plain = check_path(name).is_ok() && !name.contains('/');
            if !plain || !is_identifier(module) || !is_identifier(function) {
                return Err(wrong());
            }
            scripts.insert(name.to_owned(), script(module, function));
        }
    }
    Ok(scripts)
}

fn script(module: &str, function: &str) -> String {
    let first = function.split('.').next().unwrap_or(function);
    format!(
        "#!{PYTHON}\nimport sys\nfrom {module} import {first}\nif __name__ == \"__main__\":\n    sys.exit({function}())\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_has_quoted_paths_and_hashes() {
        let hash = URL_SAFE_NO_PAD.encode([7; 32]);
        let text =
            format!("a/b.py,sha256={hash},3\n\"c,\"\"d\"\".py\",sha256={hash},3\nx.dist-info/RECORD,,\n");
        let record = record(&text).unwrap();
        assert_eq!(record.get("a/b.py"), Some(&Some([7; 32])));
        assert_eq!(record.get("c,\"d\".py"), Some(&Some([7; 32])));
        assert_eq!(record.len(), 2);
        for wrong in ["a.py", "a.py,md5=00,1", "a.py,sha256=!,1", "a.py,sha256=AAAA,1", "\"a.py,x"] {
            assert!(super::record(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn entry_points_become_scripts() {
        let text =
            "[console_scripts]\nrun = pkg.cli:main [extra]\n\n[other]\nx = y\n[gui_scripts]\ng=a:B.c\n";
        let scripts = scripts(text).unwrap();
        assert_eq!(scripts.keys().collect::<Vec<_>>(), ["g", "run"]);
        assert!(scripts["run"].contains("from pkg.cli import main\n"));
        assert!(scripts["g"].contains("from a import B\n") && scripts["g"].contains("B.c()"));
        for wrong in ["a", "a=b", "../a=b:c", "a=b:c()", "a=os;x:c", "a/b=c:d"] {
            assert!(super::scripts(&format!("[console_scripts]\n{wrong}\n")).is_err(), "{wrong}");
        }
    }
}
