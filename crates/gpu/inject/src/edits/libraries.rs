use std::path::{Path, PathBuf};

use super::{Edits, Library, Placement, READ_ONLY};
use crate::InjectError;
use crate::driver::{Driver, DriverKind, LibraryFile};
use crate::elf::ElfClass;
use crate::request::{Capabilities, Capability, GpuRequest};

/// Libraries by capability. All others are only added by `all`.
const BY_CAPABILITY: [(Capability, &str); 5] = [
    (Capability::Utility, "libnvidia-ml libnvidia-cfg libnvidia-nscq"),
    (
        Capability::Compute,
        "libcuda libcudadebugger libnvidia-opencl libnvidia-gpucomp libnvidia-ptxjitcompiler \
         libnvidia-fatbinaryloader libnvidia-allocator libnvidia-compiler libnvidia-pkcs11 libnvidia-pkcs11-openssl3 \
         libnvidia-nvvm libnvidia-nvvm70 libnvidia-tileiras libnvidia-sandboxutils",
    ),
    (Capability::Video, "libvdpau_nvidia libnvidia-encode libnvidia-opticalflow libnvcuvid"),
    (
        Capability::Graphics,
        "libnvidia-eglcore libnvidia-glcore libnvidia-tls libnvidia-glsi libnvidia-fbc libnvidia-ifr libnvidia-rtcore \
         libnvoptix libGLX_nvidia libEGL_nvidia libGLESv2_nvidia libGLESv1_CM_nvidia libnvidia-glvkspirv \
         libnvidia-cbl libnvidia-gpucomp libnvidia-allocator libnvidia-egl-gbm libnvidia-egl-wayland \
         libnvidia-egl-wayland2 libnvidia-egl-xcb libnvidia-egl-xlib libnvidia-vulkan-producer",
    ),
    (Capability::Ngx, "libnvidia-ngx"),
];

/// Modules of an X server.
const SCREEN: [&str; 2] = ["nvidia_drv", "libglxserver_nvidia"];

/// Capabilities, a library that each needs, and the effect if it is missing.
const MISSED: [(Capability, &str, &str); 5] = [
    (
        Capability::Compute,
        "libnvidia-ptxjitcompiler",
        "programs without code for the GPU cannot compile their PTX",
    ),
    (Capability::Utility, "libnvidia-ml", "nvidia-smi and NVML do not work"),
    (Capability::Video, "libnvidia-encode", "video cannot be encoded"),
    (Capability::Graphics, "libEGL_nvidia", "EGL and Vulkan do not find the GPU"),
    (Capability::Ngx, "libnvidia-ngx", "DLSS does not work"),
];

/// Links that programs open and that some hosts lack: name, target, the library it goes with.
const ALWAYS: [(&str, &str, &str); 4] = [
    ("libcuda.so", "libcuda.so.1", "libcuda"),
    ("libnvidia-opticalflow.so", "libnvidia-opticalflow.so.1", "libnvidia-opticalflow"),
    ("libGLX_indirect.so.0", "libGLX_nvidia.so.0", "libGLX_nvidia"),
    ("gbm/nvidia-drm_gbm.so", "../libnvidia-allocator.so.1", "libnvidia-allocator"),
];

/// Adds libraries and their links; returns the directory of libcuda.
pub(super) fn add(
    edits: &mut Edits,
    driver: &Driver,
    request: &GpuRequest,
    placement: &Placement,
) -> Result<Option<PathBuf>, InjectError> {
    let capabilities = &request.capabilities;
    // Under WSL2 libraries find each other by the store's path, so they stay there.
    let placement = if driver.kind == DriverKind::Wsl { &Placement::SameAsHost } else { placement };
    let taken: Vec<&LibraryFile> = driver
        .libraries
        .iter()
        .filter(|library| driver.kind == DriverKind::Wsl || wanted(library, capabilities))
        .collect();
    let mut libcuda = None;
    for library in &taken {
        let directory = directory(library, placement);
        let at = library.below.map_or_else(|| directory.clone(), |below| directory.join(below));
        edits.mount(library.host.clone(), at.join(&library.file), &READ_ONLY);
        if library.stem() == "libcuda" && library.class == ElfClass::Bits64 {
            libcuda.get_or_insert_with(|| directory.clone());
        }
    }
    // All mounts first: a link must not take a place that a file needs.
    for library in &taken {
        links(edits, library, &directory(library, placement));
    }
    let has =
        |stem: &str, class| taken.iter().any(|library| library.stem() == stem && library.class == class);
    if capabilities.has(Capability::Compute) && !has("libcuda", ElfClass::Bits64) {
        return Err(InjectError::NoLibcuda { version: driver.suffix.clone() });
    }
    if driver.kind == DriverKind::Linux {
        for (capability, stem, effect) in MISSED {
            if capabilities.has(capability) && !has(stem, ElfClass::Bits64) && !capabilities.is_all() {
                edits.warnings.push(format!("the driver has no {stem}.so.{}: {effect}", driver.suffix));
            }
        }
        let narrow = taken.iter().any(|library| library.class == ElfClass::Bits32);
        if capabilities.has(Capability::Compat32) && !capabilities.is_all() && !narrow {
            let missing = "the driver has no 32-bit libraries: 32-bit programs do not find the GPU";
            edits.warnings.push(missing.to_owned());
        }
    }
    Ok(libcuda)
}

fn wanted(library: &LibraryFile, capabilities: &Capabilities) -> bool {
    if library.class == ElfClass::Bits32 && !capabilities.has(Capability::Compat32) {
        return false;
    }
    let stem = library.stem();
    let by_name = |(capability, stems): &(Capability, &str)| {
        stems.split(' ').any(|known| known == stem)
            && (capabilities.has(*capability)
                || *capability == Capability::Graphics && capabilities.has(Capability::Display))
    };
    capabilities.is_all()
        || BY_CAPABILITY.iter().any(by_name)
        || SCREEN.contains(&stem) && capabilities.has(Capability::Display)
}

fn directory(library: &LibraryFile, placement: &Placement) -> PathBuf {
    match (placement, library.class) {
        (Placement::SameAsHost, _) => PathBuf::from(&library.directory),
        (Placement::Directory(directory), ElfClass::Bits64) => directory.clone(),
        (Placement::Directory(directory), ElfClass::Bits32) => narrow_directory(directory),
    }
}

/// The directory of 32-bit libraries in an image that has its 64-bit ones in `directory`.
fn narrow_directory(directory: &Path) -> PathBuf {
    let name = directory.to_string_lossy();
    if name.ends_with("x86_64-linux-gnu") {
        PathBuf::from(name.replace("x86_64-linux-gnu", "i386-linux-gnu"))
    } else if name.ends_with("lib64") {
        PathBuf::from(name.trim_end_matches("64"))
    } else {
        PathBuf::from("/usr/lib32")
    }
}

fn links(edits: &mut Edits, library: &LibraryFile, directory: &Path) {
    let at = library.below.map_or_else(|| directory.to_owned(), |below| directory.join(below));
    let soname = library.soname.as_deref().unwrap_or(&library.file);
    if soname != library.file {
        edits.link(at.join(soname), &library.file);
    }
    for link in library.links.iter().filter(|link| *link != soname) {
        edits.link(at.join(link), soname);
    }
    for (link, target, stem) in ALWAYS {
        if library.stem() == stem && library.below.is_none() {
            let exists = target.trim_start_matches("../") == soname;
            edits.link(directory.join(link), if exists { target } else { library.file.as_str() });
        }
    }
    if library.below.is_none() {
        let (path, class) = (at.join(soname), library.class);
        edits.libraries.push(Library { soname: soname.to_owned(), path, class });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_libraries_go_where_the_distribution_has_them() {
        for (wide, narrow) in [
            ("/usr/lib/x86_64-linux-gnu", "/usr/lib/i386-linux-gnu"),
            ("/usr/lib64", "/usr/lib"),
            ("/usr/lib", "/usr/lib32"),
        ] {
            assert_eq!(narrow_directory(Path::new(wide)), Path::new(narrow));
        }
    }
}
