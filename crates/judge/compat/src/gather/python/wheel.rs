//! Evidence of a wheel, as if it were unpacked into an empty site-packages.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use cudock_host::python;
use cudock_image::{Content, EntryHeader, FileKind, Tree, TreeFile, TreeNode};

use crate::evidence::{Evidence, SubjectKind};
use crate::gather::code_file::Completeness;
use crate::gather::contents::TreeFiles;
use crate::gather::file_facts::{self, FileFacts};
use crate::gather::survey::{ArtifactFinder, machine_of, survey};
use crate::gather::{Context, GatherError};

/// The limit of a file in a wheel.
const MAX_MEMBER: u64 = 8 << 30;
const SITE: &str = "/site-packages";

pub(in crate::gather) fn evidence(
    path: &Path,
    name: &str,
    context: &Context<'_>,
) -> Result<Evidence, GatherError> {
    let tree = tree(path)?;
    let files = TreeFiles(&tree);
    let cpu = machine_of(&tree);
    let environment = context.environment.clone();
    let python = python::at(&files, SITE.to_owned(), "wheel", vec![SITE.to_owned()]);
    let completeness = Completeness::Partial;
    let finder = ArtifactFinder::new(context.facts, &files, &environment, cpu.as_ref(), completeness);
    let subject = name.to_owned();
    let start = Evidence { subject, kind: SubjectKind::Wheel, cpu, environment, ..Evidence::default() };
    Ok(finder.evidence(survey(&tree, ""), &[python], start))
}

fn tree(path: &Path) -> Result<Tree<FileFacts>, GatherError> {
    let broken = |message: String| GatherError::Broken { path: path.to_owned(), message };
    let invalid_zip = |error: zip::result::ZipError| broken(format!("invalid zip file: {error}"));
    let file = File::open(path).map_err(GatherError::io(path))?;
    let mut archive = zip::ZipArchive::new(file).map_err(invalid_zip)?;
    let mut tree = Tree::default();
    for index in 0..archive.len() {
        let mut member = archive.by_index(index).map_err(invalid_zip)?;
        let Some(inside) = member.enclosed_name().filter(|_| member.is_file()) else { continue };
        let inside = inside.to_string_lossy().into_owned();
        if member.size() > MAX_MEMBER {
            return Err(broken(format!("{inside} claims {} bytes", member.size())));
        }
        let header = EntryHeader {
            path: format!("{}/{inside}", SITE.trim_start_matches('/')),
            kind: FileKind::File(member.size()),
            mode: 0o644,
        };
        let kept = read_member(&mut member, &header).map_err(GatherError::io(path))?;
        let kind = FileKind::File(TreeFile { size: header.size(), kept });
        tree.insert(&header.path, TreeNode { mode: header.mode, kind });
    }
    Ok(tree)
}

/// Reads a member if its name or its first bytes are relevant.
fn read_member(member: &mut impl Read, header: &EntryHeader) -> io::Result<Option<FileFacts>> {
    let mut bytes = Vec::new();
    member.by_ref().take(512).read_to_end(&mut bytes)?;
    let path = &header.path;
    let text = path.ends_with("/METADATA") || file_facts::is_record(path) || file_facts::is_source(path);
    if !text && !cudock_fatbin::is_candidate(&bytes) {
        return Ok(None);
    }
    member.take(header.size()).read_to_end(&mut bytes)?;
    let mut content = Content::from_bytes(&bytes);
    file_facts::read(header, &mut content)
}
