//! Wheels and Debian packages with any content, however wrong.

use std::fmt::Write as _;
use std::fs;
use std::io::{Cursor, Write as _};
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;
use zip::write::SimpleFileOptions;

/// A wheel with these members, and a RECORD of them in the directory `info` (`pkg-1.0.dist-info`).
pub fn wheel(info: &str, members: &[(&str, &[u8])]) -> Vec<u8> {
    let hash = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(Sha256::digest(bytes));
    let record: String = members
        .iter()
        .map(|(path, bytes)| format!("\"{path}\",sha256={},{}\n", hash(bytes), bytes.len()))
        .chain([format!("{info}/RECORD,,\n")])
        .collect();
    let path = format!("{info}/RECORD");
    let all: Vec<(&str, &[u8])> =
        members.iter().copied().chain([(path.as_str(), record.as_bytes())]).collect();
    archive(&all)
}

/// A zip file with these members, and nothing else.
pub fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (path, bytes) in members {
        zip.start_file(*path, SimpleFileOptions::default().unix_permissions(0o644)).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// A Debian package with this data, a tar file.
pub fn deb(data: &[u8]) -> Vec<u8> {
    let mut bytes = b"!<arch>\n".to_vec();
    for (name, content) in
        [("debian-binary", b"2.0\n".as_slice()), ("control.tar", &[0; 1024]), ("data.tar", data)]
    {
        bytes.extend(
            format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, 0, 100_644, content.len()).as_bytes(),
        );
        bytes.extend(content);
        if content.len() % 2 == 1 {
            bytes.push(b'\n');
        }
    }
    bytes
}

/// A project with its lock, and a cache that has all of its packages, so that it is built without a network.
pub struct LockedProject {
    directory: TempDir,
    target: String,
    packages: String,
}

impl LockedProject {
    /// A project with this text below `[image]`, and this text below `[target]` in its lock.
    pub fn new(image: &str, target: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir_all(directory.path().join("cache/packages/blobs/sha256")).unwrap();
        let project = Self { directory, target: target.to_owned(), packages: String::new() };
        project.write("cudock.toml", format!("name = \"app\"\n[image]\n{image}"));
        project
    }

    /// Writes a file of the project.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// The directory of the project.
    pub fn path(&self) -> PathBuf {
        self.directory.path().join("project")
    }

    /// The cache, for `CUDOCK_CACHE`.
    pub fn cache(&self) -> PathBuf {
        self.directory.path().join("cache")
    }

    /// A path next to the project and the cache.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Adds a Debian package with these files.
    #[must_use]
    pub fn deb(mut self, name: &str, version: &str, data: &[u8]) -> Self {
        let file = format!("{name}_{version}_amd64.deb");
        let source = format!("archive = \"debian\"\npath = \"pool/{file}\"\ngroup = \"system\"");
        self.add("deb", [name, version, &file], &source, &deb(data));
        self
    }

    /// Adds a wheel with these members to a group of layers.
    #[must_use]
    pub fn wheel(mut self, name: &str, version: &str, group: &str, members: &[(&str, &[u8])]) -> Self {
        let stem = format!("{}-{version}", name.replace('-', "_"));
        let file = format!("{stem}-py3-none-manylinux_2_27_x86_64.whl");
        let source = format!("path = \"packages/{file}\"\ngroup = \"{group}\"");
        self.add("wheel", [name, version, &file], &source, &wheel(&format!("{stem}.dist-info"), members));
        self
    }

    fn add(&mut self, kind: &str, [name, version, file]: [&str; 3], source: &str, bytes: &[u8]) {
        let hex: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        fs::write(self.cache().join("packages/blobs/sha256").join(&hex), bytes).unwrap();
        write!(
            self.packages,
            "[[{kind}]]\nname = \"{name}\"\nversion = \"{version}\"\nfile = \"{file}\"\n{source}\nsize = {}\n\
             digest = \"sha256:{hex}\"\nreason = \"test\"\n",
            bytes.len()
        )
        .unwrap();
    }

    /// The text of `cudock.lock`.
    pub fn lock(&self) -> String {
        let input = "0".repeat(64);
        format!(
            "schema = 1\n[target]\narch = \"x86_64\"\n{}\n[inputs]\nimage = \"sha256:{input}\"\n\
             [debian]\ndistribution = \"debian\"\nsuite = \"trixie\"\n{}",
            self.target, self.packages
        )
    }
}
