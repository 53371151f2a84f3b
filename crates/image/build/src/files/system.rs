//! Files that packages' scripts would make: users, certificates, the merged `/usr`, and what the loader searches.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cudock_base::Arch;
use cudock_fatbin::{LinkedFile, is_library};
use cudock_host::ld_cache::{Cache, CacheEntry, Hwcap};
use cudock_image::FileKind;
use cudock_lock::LayerGroup;

use crate::files::file::{FileOrigin, FileSource, ImageFile};
use crate::input::{CUDA, PlanInput, RUNTIME};
use crate::unpack::PackageKind;

/// The files of an image, by path.
type ImageFiles = BTreeMap<String, ImageFile>;

const CERTIFICATES: &str = "etc/ssl/certs/ca-certificates.crt";
const MAX_CERTIFICATES: u64 = 16 << 20;

pub(crate) fn add(files: &mut ImageFiles, input: &PlanInput<'_>, linked: &[LinkedFile]) {
    let origin = FileOrigin::new(LayerGroup::System, "generated", "what packages' scripts would write");
    for name in ["bin", "sbin", "lib", "lib64"] {
        let target = format!("usr/{name}");
        let used = files.range(format!("{target}/")..format!("{target}0")).next().is_some();
        if used {
            put(files, ImageFile::symlink(name, target, &origin));
        }
    }
    let (uid, gid) = input.user;
    let users = format!(
        "root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:{uid}:{gid}:nonroot:/home/nonroot:/sbin/nologin\n"
    );
    put(files, ImageFile::generated("etc/passwd", users, &origin));
    put(files, ImageFile::generated("etc/group", format!("root:x:0:\nnonroot:x:{gid}:\n"), &origin));
    put(
        files,
        ImageFile::generated("etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n", &origin),
    );
    put(files, ImageFile::directory("tmp", 0o1777, &origin));
    put(files, ImageFile::directory("var/tmp", 0o1777, &origin));
    // The user's own: caches of libraries go there, and which user it is may be changed when a container starts.
    put(files, ImageFile::directory("home/nonroot", 0o1777, &origin));
    if let Some(certificates) = certificates(files) {
        let of_package = files.values().find(|file| is_certificate(file)).map(|file| file.origin.clone());
        files.retain(|_, file| !is_certificate(file));
        put(
            files,
            ImageFile::generated(CERTIFICATES, certificates, &of_package.unwrap_or_else(|| origin.clone())),
        );
    }
    if let Some(python) = input.python {
        let origin = FileOrigin::new(LayerGroup::Python, "generated", "the interpreter of scripts");
        put(files, ImageFile::symlink("usr/local/bin/python3", format!("/usr/bin/python{python}"), &origin));
    }
    loader(files, input.arch, linked, &origin);
    packages(files, input, &origin);
}

fn put(files: &mut ImageFiles, file: ImageFile) {
    files.insert(file.path.clone(), file);
}

fn is_certificate(file: &ImageFile) -> bool {
    file.path.starts_with("usr/share/ca-certificates/") && file.path.strip_suffix(".crt").is_some()
}

/// All certificates in one file, as `update-ca-certificates` writes it.
fn certificates(files: &ImageFiles) -> Option<Vec<u8>> {
    let mut all = Vec::new();
    for file in files.values().filter(|file| is_certificate(file) && file.size() < MAX_CERTIFICATES) {
        if let FileKind::File(FileSource::Disk { path, .. }) = &file.kind {
            let text = std::fs::read(path).ok()?;
            all.extend(text.trim_ascii_end());
            all.push(b'\n');
        }
    }
    (!all.is_empty()).then_some(all)
}

/// `ld.so.conf` for those who run ldconfig, as NVIDIA's hook does, and the cache that ldconfig would write.
fn loader(files: &mut ImageFiles, arch: Arch, linked: &[LinkedFile], origin: &Arc<FileOrigin>) {
    let directory =
        |path: &str| path.rsplit_once('/').map_or_else(String::new, |(directory, _)| directory.to_owned());
    let triplet = format!("usr/lib/{}-linux-gnu", arch.name());
    let mut own: BTreeSet<String> = BTreeSet::new();
    for file in linked.iter().filter(|file| files.contains_key(&file.path)) {
        let parent = directory(&file.path);
        let of_nvidia = file.is_candidate && is_library(&file.path) && parent.contains("/nvidia/");
        if of_nvidia || parent == CUDA || parent == RUNTIME || parent == "usr/local/lib" {
            own.insert(parent);
        }
    }
    let searched: Vec<String> =
        own.iter().cloned().chain([triplet, "usr/lib".to_owned(), "usr/lib64".to_owned()]).collect();
    let flags = match arch {
        Arch::X86_64 => 0x0303,
        Arch::Aarch64 => 0x0a03,
    };
    let mut entries = Vec::new();
    for directory_name in &searched {
        let inside = linked.iter().filter(|file| {
            directory(&file.path) == *directory_name
                && files.contains_key(&file.path)
                && is_library(&file.path)
        });
        for file in inside {
            let name = file.linkage.soname.clone().unwrap_or_else(|| file.name().to_owned());
            // The loader opens a path; that of the soname may be a link.
            let by_soname = format!("{directory_name}/{name}");
            let path = if files.contains_key(&by_soname) { by_soname } else { file.path.clone() };
            let entry =
                CacheEntry { name, path: format!("/{path}"), flags, os_version: 0, hwcap: Hwcap::Bits(0) };
            if !entries.contains(&entry) {
                entries.push(entry);
            }
        }
    }
    // Files of a wheel are named by their soname, those of Debian have links; what has neither gets a link.
    for entry in &entries {
        let wanted = entry.path.trim_start_matches('/');
        let by_soname = format!("{}/{}", directory(wanted), entry.name);
        if !files.contains_key(&by_soname)
            && let Some(target) = wanted.rsplit('/').next()
        {
            put(files, ImageFile::symlink(by_soname, target, origin));
        }
    }
    let mut conf: String = own.iter().map(|directory| format!("/{directory}\n")).collect();
    conf.push_str("include /etc/ld.so.conf.d/*.conf\n");
    put(files, ImageFile::generated("etc/ld.so.conf", conf, origin));
    // It names libraries of all groups, so it changes with the last of them.
    let origin = FileOrigin::new(LayerGroup::Program, "generated", "where the loader finds libraries");
    if let Some(bytes) = (Cache { entries }).to_bytes() {
        put(files, ImageFile::generated("etc/ld.so.cache", bytes, &origin));
    }
}

/// Files from which scanners read the Debian packages of an image without dpkg.
fn packages(files: &mut ImageFiles, input: &PlanInput<'_>, origin: &Arc<FileOrigin>) {
    let architecture = input.arch.oci_name();
    for package in input.packages.iter().filter(|package| package.kind == PackageKind::Deb) {
        let Some((name, version)) = package.origin.name.split_once(' ') else { continue };
        let text = format!(
            "Package: {name}\nStatus: install ok installed\nArchitecture: {architecture}\nVersion: {version}\n"
        );
        put(files, ImageFile::generated(format!("var/lib/dpkg/status.d/{name}"), text, origin));
    }
}
