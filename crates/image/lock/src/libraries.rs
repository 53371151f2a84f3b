//! Which packages have the libraries that a program is linked against.

use std::path::Path;

use cudock_base::FileError;
use cudock_facts::Facts;

use crate::LockError;
use crate::debian::Archive;

/// Libraries whose package has another name than Debian's rule gives it.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("ld-linux-aarch64.so.1", "libc6"),
    ("ld-linux-x86-64.so.2", "libc6"),
    ("libanl.so.1", "libc6"),
    ("libc.so.6", "libc6"),
    ("libcrypto.so.3", "libssl3"),
    ("libdl.so.2", "libc6"),
    ("libm.so.6", "libc6"),
    ("libmvec.so.1", "libc6"),
    ("libpthread.so.0", "libc6"),
    ("libresolv.so.2", "libc6"),
    ("librt.so.1", "libc6"),
    ("libutil.so.1", "libc6"),
    ("libz.so.1", "zlib1g"),
];

/// Libraries of the driver, which the container gets from its host.
const OF_DRIVER: &[&str] = &["libcuda.so.1", "libnvidia-ml.so.1", "libnvcuvid.so.1", "libnvidia-encode.so.1"];

/// The package that provides a library.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LibrarySource {
    /// A requirement of NVIDIA's wheels.
    Wheel(String),
    /// Names that its Debian package may have.
    Deb(Vec<String>),
    Driver,
}

/// The libraries that a program is linked against.
pub(crate) fn needed_by(program: &Path) -> Result<Vec<String>, LockError> {
    let wrong = |reason: String| LockError::Program { path: program.to_owned(), reason };
    let map = cudock_mmap::map(program).map_err(|error| wrong(error.to_string()))?;
    let binary = cudock_fatbin::read(&map).map_err(|error| wrong(error.to_string()))?;
    Ok(binary.linkage.needed)
}

pub(crate) fn source_of(soname: &str, facts: &Facts) -> LibrarySource {
    if OF_DRIVER.contains(&soname) {
        return LibrarySource::Driver;
    }
    if let Some(requirement) = facts.runtimes().requirement_for(soname) {
        return LibrarySource::Wheel(requirement.to_owned());
    }
    if let Some((_, package)) = EXCEPTIONS.iter().find(|(name, _)| *name == soname) {
        return LibrarySource::Deb(vec![(*package).to_owned(), format!("{package}t64")]);
    }
    // Debian policy 8.1: libNAME.so.VERSION is in libNAMEVERSION, with a dash after a digit.
    let (name, version) = soname.split_once(".so.").unwrap_or((soname.trim_end_matches(".so"), ""));
    let name = name.to_ascii_lowercase().replace('_', "-");
    let dash = if name.ends_with(|c: char| c.is_ascii_digit()) { "-" } else { "" };
    let package = format!("{name}{dash}{version}");
    LibrarySource::Deb(vec![package.clone(), format!("{package}t64")])
}

/// The first of these packages that an archive has.
pub(crate) fn first_in<'n>(archive: &Archive, names: &'n [String]) -> Option<&'n String> {
    names.iter().find(|name| archive.has(name))
}

/// An error unless the file can be read, so that a wrong path is reported before anything is downloaded.
pub(crate) fn check_file(path: &Path) -> Result<(), LockError> {
    std::fs::metadata(path).map_err(FileError::at("read", path))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debian_names_packages_by_their_library() {
        let facts = Facts::embedded();
        let deb = |soname: &str| match source_of(soname, &facts) {
            LibrarySource::Deb(names) => names[0].clone(),
            other => format!("{other:?}"),
        };
        for (soname, package) in [
            ("libstdc++.so.6", "libstdc++6"),
            ("libgcc_s.so.1", "libgcc-s1"),
            ("libgomp.so.1", "libgomp1"),
            ("libc.so.6", "libc6"),
            ("libsqlite3.so.0", "libsqlite3-0"),
            ("libz.so.1", "zlib1g"),
        ] {
            assert_eq!(deb(soname), package, "{soname}");
        }
        assert_eq!(source_of("libcuda.so.1", &facts), LibrarySource::Driver);
        assert!(matches!(source_of("libcublas.so.13", &facts), LibrarySource::Wheel(_)));
    }
}
