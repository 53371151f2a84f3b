use std::fmt;

use crate::tables::{
    FlavorSize, FrameworkImage, ImageRequirement, Images, LibraryPath, System, TagStatus, Tags,
};
use crate::version::CudaRelease;
use cudock_base::text::suggest;

/// A parsed tag of nvidia/cuda: `12.4.1-cudnn-runtime-ubuntu22.04`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageTag {
    /// 12.4.1, as written: two-part versions are a mistake that is reported.
    pub cuda: String,
    /// cudnn-runtime
    pub flavor: String,
    /// ubuntu22.04
    pub os: String,
}

/// Whether a tag exists.
#[derive(Debug, Clone, PartialEq)]
pub enum TagVerdict<'a> {
    Exists(&'a Tags),
    /// It is unknown: the full list for its release is not known.
    NotSeen(&'a Tags),
    Missing {
        reason: String,
        near: Vec<String>,
    },
}

/// Whether an image of nvidia/cuda can be pulled.
#[derive(Debug, Clone, PartialEq)]
pub enum CudaImage<'a> {
    /// The row is absent for releases newer than the tables.
    Found {
        tag: ImageTag,
        row: Option<&'a Tags>,
    },
    Missing {
        reason: String,
        near: Vec<String>,
    },
}

/// A framework's image, found by its tag.
#[derive(Debug, Clone, PartialEq)]
pub struct FrameworkImageMatch<'a> {
    pub row: &'a FrameworkImage,
    pub version: &'a str,
    pub cuda: Option<&'a str>,
    pub flavor: &'a str,
}

impl FrameworkImage {
    /// Whether a flavor is based on an nvidia/cuda image.
    pub fn is_on_cuda_image(&self, flavor: &str) -> bool {
        self.on_cuda_image.iter().any(|known| known == "*" || known == flavor)
    }
}

impl FlavorSize {
    /// The minimum size that a flavor adds to `base`, in MiB.
    fn mib(&self, flavor: &str) -> Option<u64> {
        let (cudnn, plain) = match flavor.split_once('-') {
            Some((cudnn, plain)) if cudnn.starts_with("cudnn") => (self.cudnn_mib.unwrap_or(0), plain),
            _ => (0, flavor),
        };
        let own = match plain {
            "base" => 0,
            "runtime" => self.runtime_mib,
            "devel" => self.runtime_mib + self.devel_mib,
            _ => return None,
        };
        Some(own + cudnn)
    }
}

/// The repository and the tag of a reference, without its digest and the names of Docker Hub that may be left out. The copy
/// of nvidia/cuda in NVIDIA's own registry has the same tags.
pub fn split_reference(reference: &str) -> (&str, &str) {
    let name = reference.split_once('@').map_or(reference, |(name, _)| name);
    let slash = name.rfind('/').map_or(0, |at| at + 1);
    let colon = name.get(slash..).and_then(|last| last.find(':')).map(|at| at + slash);
    let (mut repository, tag) = match colon {
        Some(at) => (name.get(..at).unwrap_or(name), name.get(at + 1..).unwrap_or_default()),
        None => (name, ""),
    };
    for prefix in ["docker.io/", "index.docker.io/", "registry-1.docker.io/", "library/"] {
        repository = repository.strip_prefix(prefix).unwrap_or(repository);
    }
    (if repository == "nvcr.io/nvidia/cuda" { "nvidia/cuda" } else { repository }, tag)
}

impl ImageTag {
    /// Parses a tag, with or without `nvidia/cuda:` before it.
    pub fn parse(text: &str) -> Option<Self> {
        let tag = text.rsplit_once(':').map_or(text, |(_, tag)| tag);
        let (cuda, rest) = tag.split_once('-')?;
        let (flavor, os) = rest.rsplit_once('-')?;
        let whole = !cuda.is_empty() && !flavor.is_empty() && !os.is_empty();
        let numbers = cuda.starts_with(|c: char| c.is_ascii_digit());
        (whole && numbers).then(|| Self {
            cuda: cuda.to_owned(),
            flavor: flavor.to_owned(),
            os: os.to_owned(),
        })
    }
}

impl fmt::Display for ImageTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.cuda, self.flavor, self.os)
    }
}

impl Images {
    /// Whether a tag exists, and if not, the reason and similar tags.
    pub fn tag(&self, tag: &ImageTag) -> TagVerdict<'_> {
        let missing = |reason: String| TagVerdict::Missing { reason, near: self.near(tag) };
        if self.deleted.iter().any(|row| row.cuda == tag.cuda) {
            return missing(format!("the images of CUDA {} were deleted", tag.cuda));
        }
        let Ok(cuda) = tag.cuda.parse::<CudaRelease>() else {
            return missing(format!("`{}` has no patch number, and tags without one were removed", tag.cuda));
        };
        let Some(tags) = self.tag.iter().find(|row| row.cuda == cuda) else {
            return missing(format!("no known image has CUDA {cuda}"));
        };
        let has = |os: &str, flavor: &str| {
            tags.grid.iter().any(|grid| {
                grid.os.iter().any(|known| known == os) && grid.flavors.iter().any(|known| known == flavor)
            })
        };
        let os_known = tags.grid.iter().any(|grid| grid.os.contains(&tag.os));
        if has(&tag.os, &tag.flavor) {
            TagVerdict::Exists(tags)
        } else if tags.status == TagStatus::Seen {
            TagVerdict::NotSeen(tags)
        } else if os_known {
            missing(format!("CUDA {cuda} on {} has no flavor `{}`", tag.os, tag.flavor))
        } else {
            missing(format!("CUDA {cuda} was not built for `{}`", tag.os))
        }
    }

    /// Whether nvidia/cuda has a tag, which may be any text.
    pub fn cuda_image(&self, written: &str) -> CudaImage<'_> {
        let missing = |reason: String| CudaImage::Missing { reason, near: self.nearest(written) };
        let Some(tag) = ImageTag::parse(written) else {
            return missing(match written {
                "" | "latest" => "nvidia/cuda has no tag `latest`".to_owned(),
                written => format!("`{written}` is not a version, a flavor and a system"),
            });
        };
        let newest = self.tag.iter().map(|row| row.cuda).max();
        match self.tag(&tag) {
            TagVerdict::Exists(row) | TagVerdict::NotSeen(row) => CudaImage::Found { tag, row: Some(row) },
            // A release newer than the tables may well have come out.
            TagVerdict::Missing { .. } if tag.cuda.parse::<CudaRelease>().ok() > newest => {
                CudaImage::Found { tag, row: None }
            }
            TagVerdict::Missing { reason, near } => {
                let near = if near.is_empty() { self.nearest(written) } else { near };
                let best = self.replacement(&tag).map(|tag| tag.to_string());
                let others = near.into_iter().filter(|tag| Some(tag) != best.as_ref());
                CudaImage::Missing { reason, near: best.iter().cloned().chain(others).collect() }
            }
        }
    }

    /// The requirement that images of a release set for the host.
    pub fn requirement(&self, cuda: CudaRelease) -> Option<&ImageRequirement> {
        self.require.iter().find(|row| row.cuda == cuda)
    }

    /// The bytes that an image of one flavor has more than one of another flavor of the same release, at least.
    pub fn flavor_saving(&self, cuda: CudaRelease, from: &str, to: &str) -> Option<u64> {
        let row = self.flavor_size.iter().find(|row| row.cuda == cuda)?;
        let mib = row.mib(from)?.checked_sub(row.mib(to)?)?;
        (mib > 0).then_some(mib << 20)
    }

    /// The distribution of an image of a distribution or a language: `ubuntu:22.04`, `python:3.12-slim-bookworm`.
    pub fn system(&self, repository: &str, tag: &str) -> Option<&System> {
        if repository == "nvidia/cuda" {
            let tag = ImageTag::parse(tag)?;
            return self.system.iter().find(|system| system.os == tag.os);
        }
        let of_distribution = |system: &&System| system.repository == repository;
        if self.system.iter().any(|system| of_distribution(&system)) {
            let first = tag.split('-').next().unwrap_or_default();
            return self
                .system
                .iter()
                .filter(of_distribution)
                .find(|system| system.tags.iter().any(|own| own == first));
        }
        // The images of languages name Debian's releases, at the end of their tags.
        let is_plain = self.plain.iter().any(|row| row.repository == repository);
        let last = tag
            .rsplit('-')
            .next()
            .filter(|last| is_plain && last.starts_with(|c: char| c.is_ascii_alphabetic()))?;
        self.system.iter().find(|system| system.tags.iter().any(|own| own == last))
    }

    /// The `LD_LIBRARY_PATH` in images of a release.
    pub fn library_path(&self, cuda: CudaRelease) -> Option<&LibraryPath> {
        self.library_path.iter().find(|row| row.from <= cuda && row.to.is_none_or(|to| cuda <= to))
    }

    pub fn all_tags(&self) -> impl Iterator<Item = ImageTag> {
        self.tag.iter().flat_map(|tags| {
            tags.grid.iter().flat_map(move |grid| {
                grid.os.iter().flat_map(move |os| {
                    grid.flavors.iter().map(move |flavor| ImageTag {
                        cuda: tags.cuda.to_string(),
                        flavor: flavor.clone(),
                        os: os.clone(),
                    })
                })
            })
        })
    }

    pub fn framework_image<'a>(&'a self, repository: &str, tag: &'a str) -> Option<FrameworkImageMatch<'a>> {
        self.framework.iter().filter(|row| row.repository == repository).find_map(|row| {
            let found = captures(&row.tag, tag)?;
            let value = |name: &str| found.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
            let version =
                value("version").filter(|version| version.starts_with(|c: char| c.is_ascii_digit()))?;
            let flavor = value("flavor").unwrap_or_default();
            Some(FrameworkImageMatch { row, version, cuda: value("cuda"), flavor })
        })
    }

    /// Existing tags most similar to any text.
    pub fn nearest(&self, written: &str) -> Vec<String> {
        let end = written.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(written.len());
        let version = written.get(..end).unwrap_or_default().trim_end_matches('.');
        let minor: Vec<&str> = version.split('.').take(2).collect();
        let of_minor = |cuda: &CudaRelease| {
            let known = cuda.to_string();
            let known: Vec<&str> = known.split('.').take(minor.len()).collect();
            known == minor
        };
        let kind = |text: &str| ["devel", "runtime", "base"].into_iter().find(|kind| text.contains(kind));
        let os = written.rsplit('-').next().unwrap_or_default();
        let is_whole = |tags: &&Tags| tags.status == TagStatus::Supported;
        let newest = self.tag.iter().filter(is_whole).map(|tags| tags.cuda).max();
        let mut releases: Vec<CudaRelease> = self.tag.iter().map(|row| row.cuda).filter(of_minor).collect();
        if releases.is_empty() {
            releases.extend(newest);
        }
        let known = |tag: &ImageTag| tag.cuda.parse().is_ok_and(|cuda| releases.contains(&cuda));
        let mut tags: Vec<ImageTag> = self.all_tags().filter(known).collect();
        let wanted = kind(written).unwrap_or("base");
        let has_cudnn = written.contains("cudnn");
        tags.sort_by_key(|tag| {
            let misses = u8::from(kind(&tag.flavor) != Some(wanted)) * 4
                + u8::from(tag.flavor.contains("cudnn") != has_cudnn) * 2
                + u8::from(tag.os != os);
            let ubuntu = tag.os.strip_prefix("ubuntu").map(str::to_owned);
            (misses, std::cmp::Reverse((ubuntu, tag.cuda.parse::<CudaRelease>().ok())))
        });
        tags.iter().take(3).map(ToString::to_string).collect()
    }

    /// The supported tag that replaces an unsupported one: the same flavor and system, the next release.
    pub fn successor(&self, tag: &ImageTag) -> Option<ImageTag> {
        let own = tag.cuda.parse::<CudaRelease>().ok()?;
        let supported = |cuda: &CudaRelease| {
            self.tag.iter().any(|row| row.cuda == *cuda && row.status == TagStatus::Supported)
        };
        let fits = |known: &ImageTag| {
            known.os == tag.os
                && without_cudnn_version(&known.flavor) == without_cudnn_version(&tag.flavor)
                && known.cuda.parse::<CudaRelease>().is_ok_and(|cuda| cuda > own && supported(&cuda))
        };
        self.all_tags().filter(fits).min_by_key(|known| known.cuda.parse::<CudaRelease>().ok())
    }

    /// The tag to write instead of one that does not exist: the same flavor and system, of the same CUDA or the next one,
    /// supported if there is such a one.
    fn replacement(&self, tag: &ImageTag) -> Option<ImageTag> {
        let own: CudaRelease = tag.cuda.parse().or_else(|_| format!("{}.0", tag.cuda).parse()).ok()?;
        let mut rows: Vec<&Tags> = self.tag.iter().filter(|row| row.cuda >= own).collect();
        rows.sort_by_key(|row| {
            let version = row.cuda.version();
            let is_ended = row.status != TagStatus::Supported;
            (version != own.version(), is_ended, version, std::cmp::Reverse(row.cuda.patch()))
        });
        let wanted = without_cudnn_version(&tag.flavor);
        rows.into_iter().find_map(|row| {
            let grids = row.grid.iter().filter(|grid| grid.os.contains(&tag.os));
            let mut flavors = grids.flat_map(|grid| &grid.flavors);
            let flavor = flavors.find(|flavor| without_cudnn_version(flavor) == wanted)?;
            Some(ImageTag { cuda: row.cuda.to_string(), flavor: flavor.clone(), os: tag.os.clone() })
        })
    }

    fn near(&self, tag: &ImageTag) -> Vec<String> {
        let among = |fits: &dyn Fn(&ImageTag) -> bool| -> Vec<String> {
            let tags: Vec<String> = self.all_tags().filter(fits).map(|tag| tag.to_string()).collect();
            let near = suggest::nearest(&tag.to_string(), tags.iter().map(String::as_str));
            near.into_iter().map(str::to_owned).collect()
        };
        // Another flavor of the same CUDA is more similar than the same flavor of another.
        let near = among(&|known| known.cuda.starts_with(&tag.cuda));
        let near = if near.is_empty() { among(&|known| known.os == tag.os) } else { near };
        if near.is_empty() { among(&|_| true) } else { near }
    }
}

/// A flavor in the spelling of the newest images: `cudnn-devel` for `cudnn8-devel`.
fn without_cudnn_version(flavor: &str) -> String {
    match flavor.split_once('-') {
        Some((cudnn, rest)) if cudnn.starts_with("cudnn") => format!("cudnn-{rest}"),
        _ => flavor.to_owned(),
    }
}

/// Matches a text against a template with names in braces, and returns the names with their values.
fn captures<'a>(template: &'a str, text: &'a str) -> Option<Vec<(&'a str, &'a str)>> {
    let mut found = Vec::new();
    let (mut template, mut text) = (template, text);
    while let Some((literal, rest)) = template.split_once('{') {
        text = text.strip_prefix(literal)?;
        let (name, rest) = rest.split_once('}')?;
        let next = rest.split('{').next().unwrap_or_default();
        let end = if next.is_empty() { text.len() } else { text.find(next)? };
        let (value, behind) = text.split_at_checked(end)?;
        if value.is_empty() {
            return None;
        }
        found.push((name, value));
        (template, text) = (rest, behind);
    }
    (template == text).then_some(found)
}
