//! A signed Debian archive, a package index, a stand-in for uv and a project.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cudock_base::{Digest, Environment};
use cudock_facts::Facts;
use cudock_http::{NoProgress, RetryPolicy};
use cudock_lock::{LockError, LockReport, PackageFetcher, Upgrade};
use cudock_project::Project;
use cudock_testkit::http::{Reply, Server, noise};
use tempfile::TempDir;

/// A key that signs release files, in a directory of its own.
pub(crate) struct SigningKey {
    home: TempDir,
    gpg: PathBuf,
}

impl SigningKey {
    pub(crate) fn new() -> Option<Self> {
        let (gpg, _) = (cudock_testkit::require_program("gpg")?, cudock_testkit::require_program("gpgv")?);
        let home = tempfile::tempdir().unwrap();
        fs::set_permissions(home.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let key = Self { home, gpg };
        key.run(&["--passphrase", "", "--quick-gen-key", "archive@example.com", "ed25519", "sign", "never"]);
        key.run(&["--output", key.keyring().to_str().unwrap(), "--export"]);
        Some(key)
    }

    pub(crate) fn keyring(&self) -> PathBuf {
        self.home.path().join("keyring.gpg")
    }

    pub(crate) fn sign(&self, text: &str) -> Vec<u8> {
        let (plain, signed) = (self.home.path().join("plain"), self.home.path().join("signed"));
        fs::write(&plain, text).unwrap();
        self.run(&["--yes", "--output", signed.to_str().unwrap(), "--clearsign", plain.to_str().unwrap()]);
        fs::read(signed).unwrap()
    }

    fn run(&self, args: &[&str]) {
        let mut command = Command::new(&self.gpg);
        command.arg("--homedir").arg(self.home.path()).args(["--batch", "--quiet"]).args(args);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

impl Drop for SigningKey {
    fn drop(&mut self) {
        // The agent of this directory was started by gpg.
        let _ = Command::new("gpgconf")
            .arg("--homedir")
            .arg(self.home.path())
            .args(["--kill", "gpg-agent"])
            .output();
    }
}

pub(crate) type Files = Arc<Mutex<BTreeMap<String, Reply>>>;

/// A machine with a project, and the servers that it uses.
pub(crate) struct Fixture {
    pub(crate) key: SigningKey,
    pub(crate) server: Server,
    pub(crate) files: Files,
    pub(crate) root: TempDir,
}

/// Packages of the archive: name, version and dependencies.
const DEBS: &[(&str, &str, &str)] = &[
    ("libc6", "2.41-12", "libgcc-s1"),
    ("libgcc-s1", "14.2.0-19", "gcc-14-base (= 14.2.0-19), libc6 (>= 2.35)"),
    ("gcc-14-base", "14.2.0-19", ""),
    ("libstdc++6", "14.2.0-19", "gcc-14-base (= 14.2.0-19), libc6, libgcc-s1"),
    ("ca-certificates", "20250419", "openssl, debconf (>= 0.5) | debconf-2.0"),
    ("python3", "3.13.5-1", "libpython3-stdlib"),
    ("libpython3-stdlib", "3.13.5-1", "libc6"),
    ("unused", "1", ""),
];

impl Fixture {
    pub(crate) fn new(image: &str) -> Option<Self> {
        let key = SigningKey::new()?;
        let files: Files = Arc::default();
        let published = Arc::clone(&files);
        let server = Server::start(move |request| {
            let reply = published.lock().unwrap().get(&request.path).cloned();
            let reply = reply.unwrap_or_else(|| Reply::new(404, "no such file"));
            match reply.status {
                200 if request.method == "HEAD" => {
                    Reply { pieces: vec![head(reply.body.len())], ..Reply::default() }
                }
                200 => Reply { headers: reply.headers, ..Reply::blob(request, &reply.body) },
                _ => reply,
            }
        });
        let fixture = Self { key, server, files, root: tempfile::tempdir().unwrap() };
        fixture.write("project/cudock.toml", &format!("name = \"test\"\n[image]\n{image}"));
        let host = fixture.server.host();
        fixture.write(
            "etc/apt/sources.list",
            &format!("deb http://{host}/debian trixie main\ndeb http://{host}/debian-security trixie-security main\n"),
        );
        for (archive, suite) in
            [("debian", "trixie"), ("debian", "trixie-updates"), ("debian-security", "trixie-security")]
        {
            let packages = if suite == "trixie" { DEBS } else { &[] };
            fixture.publish(archive, suite, packages, "Fri, 01 Jan 2100 00:00:00 UTC");
        }
        Some(fixture)
    }

    pub(crate) fn write(&self, path: &str, text: &str) -> PathBuf {
        let path = self.root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn serve(&self, path: &str, reply: Reply) {
        self.files.lock().unwrap().insert(path.to_owned(), reply);
    }

    /// Publishes a suite: packages, their index and the signed release file.
    pub(crate) fn publish(&self, archive: &str, suite: &str, debs: &[(&str, &str, &str)], until: &str) {
        let mut index = String::new();
        for (name, version, depends) in debs {
            let bytes = deb_bytes(name);
            let path = format!("pool/{name}_{version}_amd64.deb");
            self.serve(&format!("/{archive}/{path}"), Reply::new(200, bytes.clone()));
            let hash = Digest::sha256_of(&bytes).hex().to_owned();
            write!(
                index,
                "Package: {name}\nArchitecture: amd64\nVersion: {version}\nDepends: {depends}\nFilename: {path}\n\
                 Size: {}\nSHA256: {hash}\n\n",
                bytes.len()
            ).unwrap();
        }
        let packed = gzip(index.as_bytes());
        let directory = format!("/{archive}/dists/{suite}");
        let release = format!(
            "Origin: Debian\nSuite: stable\nCodename: {suite}\nValid-Until: {until}\nSHA256:\n {} {} \
             main/binary-amd64/Packages.gz\n",
            Digest::sha256_of(&packed).hex(),
            packed.len()
        );
        self.serve(&format!("{directory}/main/binary-amd64/Packages.gz"), Reply::new(200, packed));
        self.serve(&format!("{directory}/InRelease"), Reply::new(200, self.key.sign(&release)));
    }

    /// Puts wheels on the index, as HTML.
    pub(crate) fn index(&self, package: &str, wheels: &[&str]) {
        let links: String = wheels
            .iter()
            .map(|file| {
                let bytes = noise(file.len() * 10);
                let hash = Digest::sha256_of(&bytes).hex().to_owned();
                self.serve(&format!("/files/{file}"), Reply::new(200, bytes));
                format!("<a href=\"/files/{file}#sha256={hash}\">{file}</a>\n")
            })
            .collect();
        self.serve(&format!("/simple/{package}/"), Reply::new(200, links).with("Content-Type", "text/html"));
    }

    /// Puts a program in place of uv that chooses these versions, with the hashes of all files of the index.
    pub(crate) fn uv(&self, pins: &[(&str, &str)]) {
        let files = self.files.lock().unwrap();
        let hashes: String = files
            .iter()
            .filter(|(path, _)| path.starts_with("/files/"))
            .map(|(_, reply)| format!(" \\\n    --hash=sha256:{}", Digest::sha256_of(&reply.body).hex()))
            .collect();
        let text: String = pins
            .iter()
            .map(|(name, version)| format!("{name}=={version}{hashes}\n    # via -r requirements.txt\n"))
            .collect();
        self.write("bin/pins", &text);
        let script = "#!/bin/sh\ncd \"$(dirname \"$0\")\"\necho \"$*\" >> calls\n\
                      while [ $# -gt 0 ]; do [ \"$1\" = --output-file ] && out=$2; shift; done\ncp \"$out\" before\ncp pins \"$out\"\n";
        let path = self.write("bin/uv", script);
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub(crate) fn environment(&self) -> Environment {
        let path = format!("{}:/usr/bin:/bin", self.root.path().join("bin").display());
        let index = format!("http://{}/simple", self.server.host());
        let (cache, keyring) = (self.root.path().join("cache"), self.key.keyring());
        Environment::of(
            self.root.path(),
            [
                ("PATH", path),
                ("PIP_INDEX_URL", index),
                ("CUDOCK_CACHE", cache.display().to_string()),
                ("CUDOCK_KEYRING", keyring.display().to_string()),
            ],
        )
    }

    pub(crate) fn fetcher(&self) -> PackageFetcher {
        let (initial_delay, max_delay) = (Duration::from_millis(1), Duration::from_millis(5));
        let fetcher = PackageFetcher::new(&self.environment(), Arc::new(NoProgress)).unwrap();
        fetcher.retries(RetryPolicy { max_retries: 2, initial_delay, max_delay })
    }

    pub(crate) fn project(&self) -> Project {
        Project::open(&self.root.path().join("project")).unwrap()
    }

    pub(crate) fn lock(&self, upgrade: &Upgrade) -> Result<LockReport, LockError> {
        let facts = Facts::embedded();
        cudock_lock::lock(&self.project(), &facts, &self.environment(), &self.fetcher(), upgrade)
    }

    pub(crate) fn lock_path(&self) -> PathBuf {
        self.root.path().join("project").join(cudock_lock::LOCK_NAME)
    }

    pub(crate) fn read(&self, path: impl AsRef<Path>) -> String {
        fs::read_to_string(self.root.path().join(path)).unwrap()
    }
}

pub(crate) fn deb_bytes(name: &str) -> Vec<u8> {
    noise(100 + name.len())
}

fn head(length: usize) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n").into_bytes()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut encoder, bytes).unwrap();
    encoder.finish().unwrap()
}
