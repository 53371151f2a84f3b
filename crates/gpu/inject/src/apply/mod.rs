//! Edits applied to an unpacked root that is not trusted.

mod compat;
mod inside;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use cudock_facts::version::DriverVersion;
use cudock_host::ld_cache::Cache;
use cudock_host::{Files, Root};

use crate::InjectError;
use crate::edits::{Edits, Library, Link, Text};
use crate::ld_cache::with_driver;

pub(crate) use inside::Inside;

const CACHE: &str = "/etc/ld.so.cache";
const MOST_CACHE: u64 = 16 << 20;
const MOST_PATHS: u64 = 1 << 16;
/// Directories that every `ldconfig` searches.
const STANDARD: &str = "/lib /usr/lib /lib64 /usr/lib64 /usr/lib/x86_64-linux-gnu /usr/lib/aarch64-linux-gnu \
    /usr/lib/i386-linux-gnu";
/// Default search directories of musl.
const MUSL_DIRECTORIES: [&str; 3] = ["/lib", "/usr/local/lib", "/usr/lib"];

/// Prepares an unpacked root for a driver: links, files, and the loader's configuration.
///
/// Files below `/dev` and `/proc` are left to the process that mounts these. Nothing is created
/// outside the root, even if its links lead out of it. Device nodes and mounts are up to the
/// engine.
pub fn prepare_root(root: &Path, edits: &Edits) -> Result<(), InjectError> {
    let inside = Inside::open(root)?;
    let mounted = |path: &Path| path.starts_with("/dev") || path.starts_with("/proc");
    make_links(&inside, edits.links.iter().filter(|link| !mounted(&link.path)))?;
    write_texts(&inside, edits.texts.iter().filter(|text| !mounted(&text.path)))?;
    teach_loader(&inside, &edits.libraries, edits.driver)
}

pub(crate) fn make_links<'a>(
    inside: &Inside,
    links: impl Iterator<Item = &'a Link>,
) -> Result<(), InjectError> {
    for link in links {
        inside.link(&link.path, &link.target)?;
    }
    Ok(())
}

pub(crate) fn write_texts<'a>(
    inside: &Inside,
    texts: impl Iterator<Item = &'a Text>,
) -> Result<(), InjectError> {
    for text in texts {
        inside.write(&text.path, text.contents.as_bytes())?;
    }
    Ok(())
}

/// Registers libraries with the loaders of a root: with glibc in its cache, with musl in its list
/// of directories. The image's own cuda-compat precedes `driver` if it supports it.
pub(crate) fn teach_loader(
    inside: &Inside,
    libraries: &[Library],
    driver: Option<DriverVersion>,
) -> Result<(), InjectError> {
    if libraries.is_empty() {
        return Ok(());
    }
    let newer = driver.map(|driver| compat::libraries(inside, driver)).unwrap_or_default();
    let libraries: &[Library] = &[newer.as_slice(), libraries].concat();
    let arch = std::env::consts::ARCH;
    let musl = inside.exists(&format!("/lib/ld-musl-{arch}.so.1"));
    if musl {
        teach_musl(inside, libraries, arch)?;
    }
    let loaders = ["/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"];
    let glibc = loaders.iter().any(|path| inside.exists(path)) || inside.exists(CACHE);
    if musl && !glibc {
        return Ok(());
    }
    let existing = inside.read(CACHE, MOST_CACHE).and_then(|bytes| Cache::parse(&bytes)).unwrap_or_default();
    let too_large = || std::io::Error::other("the cache would be too large");
    let bytes = with_driver(existing, libraries, arch).to_bytes();
    let bytes = bytes.ok_or_else(|| inside.wrong("write", Path::new(CACHE), too_large()))?;
    inside.write(Path::new(CACHE), &bytes)?;
    remember(inside, libraries)
}

/// Records unusual library directories, so that a container that runs `ldconfig` itself finds the
/// driver again.
fn remember(inside: &Inside, libraries: &[Library]) -> Result<(), InjectError> {
    let odd: BTreeSet<PathBuf> = directories(libraries)
        .into_iter()
        .filter(|directory| !STANDARD.split(' ').any(|known| Path::new(known) == directory))
        .collect();
    if odd.is_empty() {
        return Ok(());
    }
    let lines: String = odd.iter().map(|directory| format!("{}\n", directory.display())).collect();
    inside.write(Path::new("/etc/ld.so.conf.d/00-cudock.conf"), lines.as_bytes())?;
    if !inside.exists("/etc/ld.so.conf") {
        inside.write(Path::new("/etc/ld.so.conf"), b"include /etc/ld.so.conf.d/*.conf\n")?;
    }
    Ok(())
}

fn teach_musl(inside: &Inside, libraries: &[Library], arch: &str) -> Result<(), InjectError> {
    let path = format!("/etc/ld-musl-{arch}.path");
    let text = inside.read(&path, MOST_PATHS).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let known: Vec<String> = match &text {
        Some(text) => {
            text.split(['\n', ':']).filter(|directory| !directory.is_empty()).map(str::to_owned).collect()
        }
        None => MUSL_DIRECTORIES.iter().map(|directory| (*directory).to_owned()).collect(),
    };
    let more: Vec<String> = directories(libraries)
        .into_iter()
        .map(|directory| directory.display().to_string())
        .filter(|directory| !known.contains(directory))
        .collect();
    if more.is_empty() {
        return Ok(());
    }
    let lines: String = known.iter().chain(&more).map(|directory| format!("{directory}\n")).collect();
    inside.write(Path::new(&path), lines.as_bytes())
}

fn directories(libraries: &[Library]) -> BTreeSet<PathBuf> {
    libraries.iter().filter_map(|library| library.path.parent()).map(Path::to_owned).collect()
}

/// The directory in which an image's loader looks for libraries of this architecture; the driver's
/// are mounted there.
pub fn library_directory(root: &Path) -> Result<PathBuf, InjectError> {
    let files = Root::tree(root).map_err(|error| InjectError::file("read", &error.path)(error.source))?;
    let triplet = format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    let directory =
        [triplet.as_str(), "/usr/lib64"].into_iter().find(|directory| Files::is_dir(&files, directory));
    Ok(PathBuf::from(directory.unwrap_or("/usr/lib")))
}
