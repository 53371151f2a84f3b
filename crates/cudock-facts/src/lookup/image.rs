use std::fmt;

use crate::suggest;
use crate::tables::{Images, LibraryPath, Requirement, TagStatus, Tags};
use crate::version::CudaRelease;

/// A tag of nvidia/cuda, taken apart: `12.4.1-cudnn-runtime-ubuntu22.04`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageTag {
    /// 12.4.1, as written: two-part versions are a mistake worth naming.
    pub cuda: String,
    /// cudnn-runtime
    pub flavour: String,
    /// ubuntu22.04
    pub os: String,
}

/// What the table says about a tag.
#[derive(Debug, Clone, PartialEq)]
pub enum TagVerdict<'a> {
    /// It exists.
    Exists(&'a Tags),
    /// The full list for its release is not known, and it is not among what was seen.
    NotSeen(&'a Tags),
    /// It does not; tags that do and are near.
    Missing {
        /// Why not.
        reason: String,
        /// Tags that exist.
        near: Vec<String>,
    },
}

impl ImageTag {
    /// Takes a tag apart, with or without `nvidia/cuda:` before it.
    pub fn parse(text: &str) -> Option<Self> {
        let tag = text.rsplit_once(':').map_or(text, |(_, tag)| tag);
        let (cuda, rest) = tag.split_once('-')?;
        let (flavour, os) = rest.rsplit_once('-')?;
        let whole = !cuda.is_empty() && !flavour.is_empty() && !os.is_empty();
        let numbers = cuda.starts_with(|c: char| c.is_ascii_digit());
        (whole && numbers).then(|| Self {
            cuda: cuda.to_owned(),
            flavour: flavour.to_owned(),
            os: os.to_owned(),
        })
    }
}

impl fmt::Display for ImageTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.cuda, self.flavour, self.os)
    }
}

impl Images {
    /// Whether a tag exists, and if not why and what is near.
    pub fn tag(&self, tag: &ImageTag) -> TagVerdict<'_> {
        let missing = |reason: String| TagVerdict::Missing { reason, near: self.near(tag) };
        if self.deleted.iter().any(|row| row.cuda == tag.cuda) {
            return missing(format!("the images of CUDA {} were deleted", tag.cuda));
        }
        let Ok(cuda) = tag.cuda.parse::<CudaRelease>() else {
            return missing(format!("`{}` has no patch number, and tags without one were removed", tag.cuda));
        };
        let Some(tags) = self.tag.iter().find(|row| row.cuda == cuda) else {
            return missing(format!("no image of CUDA {cuda} is known"));
        };
        let has = |os: &str, flavour: &str| {
            tags.grid.iter().any(|grid| {
                grid.os.iter().any(|known| known == os) && grid.flavours.iter().any(|known| known == flavour)
            })
        };
        let os_known = tags.grid.iter().any(|grid| grid.os.contains(&tag.os));
        if has(&tag.os, &tag.flavour) {
            TagVerdict::Exists(tags)
        } else if tags.status == TagStatus::Seen {
            TagVerdict::NotSeen(tags)
        } else if os_known {
            missing(format!("CUDA {cuda} on {} has no flavour `{}`", tag.os, tag.flavour))
        } else {
            missing(format!("CUDA {cuda} was not built for `{}`", tag.os))
        }
    }

    /// What an image of a release demands of the host.
    pub fn requirement(&self, cuda: CudaRelease) -> Option<&Requirement> {
        self.require.iter().find(|row| row.cuda == cuda)
    }

    /// The `LD_LIBRARY_PATH` in images of a release.
    pub fn library_path(&self, cuda: CudaRelease) -> Option<&LibraryPath> {
        self.library_path.iter().find(|row| row.from <= cuda && row.to.is_none_or(|to| cuda <= to))
    }

    /// Every tag of the table.
    pub fn all_tags(&self) -> impl Iterator<Item = ImageTag> {
        self.tag.iter().flat_map(|tags| {
            tags.grid.iter().flat_map(move |grid| {
                grid.os.iter().flat_map(move |os| {
                    grid.flavours.iter().map(move |flavour| ImageTag {
                        cuda: tags.cuda.to_string(),
                        flavour: flavour.clone(),
                        os: os.clone(),
                    })
                })
            })
        })
    }

    fn near(&self, tag: &ImageTag) -> Vec<String> {
        let among = |fits: &dyn Fn(&ImageTag) -> bool| -> Vec<String> {
            let tags: Vec<String> = self.all_tags().filter(fits).map(|tag| tag.to_string()).collect();
            let near = suggest::nearest(&tag.to_string(), tags.iter().map(String::as_str));
            near.into_iter().map(str::to_owned).collect()
        };
        // Another flavour of the same CUDA is nearer than the same flavour of another.
        let near = among(&|known| known.cuda.starts_with(&tag.cuda));
        if near.is_empty() { among(&|_| true) } else { near }
    }
}
