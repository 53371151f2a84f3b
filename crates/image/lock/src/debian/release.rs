//! The signed release file of a suite, and the index of packages that it vouches for.

use std::collections::BTreeMap;
use std::io::Read;
use std::process::Command;
use std::time::Duration;

use cudock_base::{Arch, Digest, Environment, Timestamp, bounded_output, files, text};

use super::control::{DebPackage, stanzas};
use super::sources::Mirror;
use crate::LockError;
use crate::deb;
use crate::fetch::PackageFetcher;

const MAX_RELEASE: u64 = 16 << 20;
const MAX_INDEX: u64 = 1 << 30;
const XZ: &str = "Packages.xz";
const GPGV_TIMEOUT: Duration = Duration::from_secs(60);

/// Reads the packages of a suite: the release file is verified by its signature, and the index by its hash.
pub(super) fn packages(
    fetcher: &PackageFetcher,
    environment: &Environment,
    mirror: &Mirror,
    arch: Arch,
    now: Timestamp,
) -> Result<Vec<DebPackage>, LockError> {
    let source = format!("{}/dists/{}", mirror.url, mirror.suite);
    let signed = fetcher.document(&format!("{source}/InRelease"), MAX_RELEASE)?;
    let release = ReleaseFile::parse(&verify(environment, mirror, &source, &signed)?);
    release.check(&source, &mirror.suite, now)?;
    let wrong = |reason: String| LockError::Archive { source_name: source.clone(), reason };
    let directory = format!("main/binary-{}", arch.oci_name());
    let (name, entry) = [XZ, "Packages.gz"]
        .into_iter()
        .find_map(|name| Some((name, release.files.get(&format!("{directory}/{name}"))?)))
        .ok_or_else(|| wrong(format!("release file does not list {directory}/Packages.xz or .gz")))?;
    let path = if release.has_by_hash {
        format!("{source}/{directory}/by-hash/SHA256/{}", entry.digest.hex())
    } else {
        format!("{source}/{directory}/{name}")
    };
    let label = format!("{} {name}", mirror.suite);
    let blob = fetcher.blob(&path, &label, entry.size, &entry.digest)?;
    let file = std::fs::File::open(&blob).map_err(cudock_base::FileError::at("read", &blob))?;
    let mut index = String::new();
    let decoded = if name == XZ { deb::xz(file) } else { deb::gzip(file) };
    let read = decoded.take(MAX_INDEX + 1).read_to_string(&mut index);
    read.map_err(|error| wrong(format!("{name}: {error}")))?;
    if index.len() as u64 > MAX_INDEX {
        return Err(wrong(format!("{name}: unpacks to more than {MAX_INDEX} bytes")));
    }
    let mut packages = Vec::new();
    stanzas(&index, |fields| packages.extend(DebPackage::read(fields, arch)));
    Ok(packages)
}

/// The fields of a release file.
#[derive(Debug, Default, PartialEq, Eq)]
struct ReleaseFile {
    codename: String,
    suite: String,
    valid_until: Option<String>,
    has_by_hash: bool,
    files: BTreeMap<String, IndexFile>,
}

#[derive(Debug, PartialEq, Eq)]
struct IndexFile {
    digest: Digest,
    size: u64,
}

impl ReleaseFile {
    fn parse(text: &str) -> Self {
        let mut release = Self::default();
        stanzas(text, |fields| {
            let get = |name: &str| fields.get(name).cloned();
            release.codename = get("codename").unwrap_or_default();
            release.suite = get("suite").unwrap_or_default();
            release.valid_until = get("valid-until");
            release.has_by_hash = get("acquire-by-hash").is_some_and(|value| value == "yes");
            for line in get("sha256").unwrap_or_default().lines() {
                let fields: Vec<&str> = line.split_whitespace().collect();
                let [hash, size, name] = fields.as_slice() else { continue };
                if let (Ok(digest), Ok(size)) = (format!("sha256:{hash}").parse(), size.parse()) {
                    release.files.insert((*name).to_owned(), IndexFile { digest, size });
                }
            }
        });
        release
    }

    /// An old or another release file is signed, too.
    fn check(&self, source: &str, suite: &str, now: Timestamp) -> Result<(), LockError> {
        let source_name = source.to_owned();
        if self.codename != suite && self.suite != suite {
            let has = text::truncate(&self.codename, 40);
            let reason = format!("release file is for `{has}`, not for `{suite}`");
            return Err(LockError::Archive { source_name, reason });
        }
        let Some(until) = &self.valid_until else { return Ok(()) };
        match Timestamp::parse_http(&until.replace("UTC", "GMT")) {
            Some(end) if now <= end => Ok(()),
            Some(_) => Err(LockError::Expired { source_name, until: until.clone() }),
            None => {
                let reason = format!("invalid Valid-Until `{}`", text::truncate(until, 40));
                Err(LockError::Archive { source_name, reason })
            }
        }
    }
}

/// The text that a known key signed. Nothing else of the file is used, so that what stands before or after it has no
/// effect.
fn verify(
    environment: &Environment,
    mirror: &Mirror,
    source: &str,
    signed: &[u8],
) -> Result<String, LockError> {
    if !mirror.keyring.is_file() {
        return Err(LockError::NoKeyring { path: mirror.keyring.clone() });
    }
    let programs = environment.program_directories();
    let gpgv =
        programs.iter().map(|directory| directory.join("gpgv")).find(|path| files::is_executable(path));
    let gpgv = gpgv.ok_or(LockError::NoGpgv)?;
    let bad = |reason: String| LockError::Signature { source_name: source.to_owned(), reason };
    let mut command = Command::new(gpgv);
    command.args(["--status-fd", "2", "--keyring"]).arg(&mirror.keyring);
    command.args(["--output", "-", "-"]);
    let output = bounded_output(&mut command, signed, GPGV_TIMEOUT, MAX_RELEASE)
        .map_err(|error| bad(format!("gpgv: {error}")))?;
    judge(&String::from_utf8_lossy(&output.stderr)).map_err(bad)?;
    String::from_utf8(output.stdout).map_err(|_| bad("signed text is not UTF-8".to_owned()))
}

/// Judges what gpgv reports: one good signature by a known key, and none that is wrong. Signatures by unknown keys are
/// usual while a distribution changes its keys.
fn judge(status: &str) -> Result<(), String> {
    let lines = status.lines().filter_map(|line| line.strip_prefix("[GNUPG:] "));
    let mut good = false;
    let mut unknown = Vec::new();
    for line in lines {
        let mut fields = line.split_whitespace();
        match fields.next().unwrap_or_default() {
            "GOODSIG" => good = true,
            "BADSIG" => return Err("the signature does not match the content".to_owned()),
            "EXPSIG" => return Err("the signature has expired".to_owned()),
            "EXPKEYSIG" => return Err("the key of the signature has expired".to_owned()),
            "REVKEYSIG" => return Err("the key of the signature is revoked".to_owned()),
            "NO_PUBKEY" => unknown.extend(fields.next().map(|key| text::truncate(key, 40))),
            _ => {}
        }
    }
    match (good, unknown.as_slice()) {
        (true, _) => Ok(()),
        (false, []) => Err("no valid signature".to_owned()),
        (false, keys) => Err(format!("no known key signed it, only {}", keys.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_good_signature_is_enough_and_one_bad_one_too_many() {
        let good = "[GNUPG:] NEWSIG\n[GNUPG:] GOODSIG 1 Debian\n[GNUPG:] VALIDSIG 1\n";
        assert_eq!(judge(good), Ok(()));
        assert_eq!(judge(&format!("[GNUPG:] ERRSIG 2\n[GNUPG:] NO_PUBKEY 2\n{good}")), Ok(()));
        for (status, reason) in [
            (format!("{good}[GNUPG:] BADSIG 3 x\n"), "does not match"),
            ("[GNUPG:] EXPKEYSIG 1 x\n[GNUPG:] VALIDSIG 1\n".to_owned(), "expired"),
            ("[GNUPG:] NO_PUBKEY ABC\n".to_owned(), "no known key signed it, only ABC"),
            ("gpgv: GOODSIG\n".to_owned(), "no valid signature"),
        ] {
            assert!(judge(&status).unwrap_err().contains(reason), "{status}");
        }
    }

    #[test]
    fn an_old_or_another_release_file_is_rejected() {
        let hash = "0".repeat(64);
        let text = format!(
            "Origin: Debian\nSuite: oldstable\nCodename: bookworm\nValid-Until: Sat, 21 Nov 2026 08:00:00 UTC\n\
             Acquire-By-Hash: yes\nSHA256:\n {hash} 12 main/binary-amd64/Packages.xz\n bad line\n"
        );
        let release = ReleaseFile::parse(&text);
        assert_eq!(release.files["main/binary-amd64/Packages.xz"].size, 12);
        let at = |text: &str| Timestamp::parse_http(text).unwrap();
        let (before, after) = (at("Fri, 20 Nov 2026 08:00:00 GMT"), at("Sun, 22 Nov 2026 08:00:00 GMT"));
        assert!(release.check("x", "bookworm", before).is_ok());
        let other = release.check("x", "trixie", before).unwrap_err().to_string();
        assert!(other.contains("is for `bookworm`, not for `trixie`"), "{other}");
        assert!(matches!(release.check("x", "bookworm", after), Err(LockError::Expired { .. })));
        let odd = ReleaseFile::parse(&text.replace("Sat, 21 Nov 2026 08:00:00 UTC", "soon"));
        assert!(matches!(odd.check("x", "bookworm", before), Err(LockError::Archive { .. })));
    }
}
