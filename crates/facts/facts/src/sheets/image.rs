//! Looks up tags of nvidia/cuda.

use std::collections::BTreeSet;

use cudock_base::UsageError;

use crate::Facts;
use crate::lookup::{ImageTag, TagVerdict};
use crate::sheets::result::{LookupResult, Sheet, enum_name, joined};
use crate::sheets::rows::ImageRow;
use crate::tables::{ImageRequirement, TagStatus, Tags};

const TABLES: [&str; 1] = ["images"];

/// Tags of nvidia/cuda, or one of them.
pub fn image(facts: &Facts, name: Option<&str>) -> Result<LookupResult, UsageError> {
    let images = facts.images();
    let Some(name) = name else {
        let columns = ["CUDA", "status", "flavors", "systems"];
        return Ok(LookupResult::list(&TABLES, &images.tag, &columns, |tags| {
            let systems = tags.grid.iter().flat_map(|grid| grid.os.iter());
            let flavors: BTreeSet<&String> = tags.grid.iter().flat_map(|grid| grid.flavors.iter()).collect();
            vec![tags.cuda.to_string(), enum_name(&tags.status), joined(flavors), joined(systems)]
        }));
    };
    if name.ends_with(":latest") || matches!(name, "latest" | "nvidia/cuda") {
        return Err(UsageError::new("nvidia/cuda has no tag `latest`")
            .hint("`cudock facts image` lists the tags that exist"));
    }
    let tag = ImageTag::parse(name).ok_or_else(|| {
        UsageError::new(format!("`{name}` is not a tag such as 12.4.1-cudnn-runtime-ubuntu22.04")).hint(
            "a tag is CUDA's three-part version, a flavor and a system; `cudock facts image` lists them",
        )
    })?;
    let (tags, seen) = match images.tag(&tag) {
        TagVerdict::Exists(tags) => (tags, true),
        TagVerdict::NotSeen(tags) => (tags, false),
        TagVerdict::Missing { reason, near } => {
            return Err(UsageError::new(format!("image {tag} does not exist: {reason}")).near(&near));
        }
    };
    let requirement = images.requirement(tags.cuda);
    let path = images.library_path(tags.cuda);
    let status = match (seen, tags.status) {
        (false, _) => "not among the tags seen of this release, whose full list is not known".to_owned(),
        (true, TagStatus::Supported) => "supported".to_owned(),
        (true, TagStatus::Unsupported) => "end of life: NVIDIA deletes such tags after six months".to_owned(),
        (true, TagStatus::Seen) => "seen in use; the full tag list of its release is unknown".to_owned(),
    };
    let has_cudnn = tag.flavor.contains("cudnn");
    let has_nccl = !tag.flavor.ends_with("base");
    let sheet = Sheet::new(format!("nvidia/cuda:{tag}"))
        .field("status", status)
        .field("holds", holds(&tag.flavor))
        .field("cuDNN", if has_cudnn { joined(&tags.cudnn) } else { String::new() })
        .field("NCCL", if has_nccl { joined(&tags.nccl) } else { String::new() })
        .field("needs", requirement.map_or_else(String::new, needs))
        .maybe("LD_LIBRARY_PATH", path.map(|row| row.value.clone()))
        .maybe("note", requirement.and_then(|row| row.note.as_ref()))
        .sources(images.table.resolve(&tags.source));
    let row = ImageRow {
        tag: tag.to_string(),
        exists: seen,
        status: tags.status,
        cuda: tags.cuda,
        flavor: &tag.flavor,
        os: &tag.os,
        cudnn: has_cudnn.then_some(&tags.cudnn),
        nccl: has_nccl.then_some(&tags.nccl),
        requires: requirement,
        library_path: path.map(|row| row.value.as_str()),
        others: siblings(tags, &tag),
    };
    Ok(LookupResult::sheet(&TABLES, &row, sheet))
}

fn siblings(tags: &Tags, tag: &ImageTag) -> Vec<String> {
    let on_same_os = tags.grid.iter().filter(|grid| grid.os.contains(&tag.os));
    on_same_os.flat_map(|grid| &grid.flavors).filter(|flavor| **flavor != tag.flavor).cloned().collect()
}

fn holds(flavor: &str) -> &'static str {
    match flavor.rsplit('-').next() {
        Some("base") => "the CUDA runtime library and cuda-compat",
        Some("runtime") => "CUDA's shared libraries and NCCL; no compiler",
        Some("devel") => "compilers, headers and static libraries: for building, too large to ship",
        _ => "",
    }
}

/// The host requirements that the container toolkit's start gate checks.
fn needs(row: &ImageRequirement) -> String {
    let mut alternatives = vec![format!("a driver with CUDA {} or newer", row.minimum)];
    let branches = |branches: &[u16]| joined(branches.iter().map(|branch| format!("R{branch}")));
    if !row.with_geforce.is_empty() {
        alternatives.push(format!("or {} on any GPU", branches(&row.with_geforce)));
    }
    if !row.datacenter.is_empty() {
        alternatives.push(format!("or {} on any GPU except GeForce and Titan", branches(&row.datacenter)));
    }
    if !row.tesla.is_empty() {
        alternatives.push(format!("or {} on Tesla GPUs", branches(&row.tesla)));
    }
    alternatives.extend(row.any_brand.iter().map(|term| format!("or {term}")));
    alternatives.join("\n")
}
