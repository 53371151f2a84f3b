//! Evidence of a wheel, as if it were unpacked into an empty site-packages.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use cudock_host::python;
use cudock_image::{Content, EntryHeader, EntryKind, NodeKind, Tree, TreeNode};

use super::contents::TreeFiles;
use super::file_facts::{self, FileFacts};
use super::frameworks::{self, Completeness};
use super::linking::Search;
use super::survey::{machine_of, programs_and_rest, survey};
use super::{Context, GatherError, cpu_arch};
use crate::evidence::{Evidence, SubjectKind};

/// The limit of a file in a wheel.
const MAX_MEMBER: u64 = 8 << 30;
const SITE: &str = "/site-packages";

pub(super) fn evidence(path: &Path, name: &str, context: &Context<'_>) -> Result<Evidence, GatherError> {
    let tree = tree(path)?;
    let files = TreeFiles(&tree);
    let cpu = machine_of(&tree);
    let environment = context.environment.clone();
    let search = Search::new(&files, &environment, cpu_arch(cpu.as_deref()));
    let arch = cpu_arch(cpu.as_deref());
    let mut survey = survey(&tree, "");
    let python = python::at(&files, SITE.to_owned(), "wheel", vec![SITE.to_owned()]);
    let artifacts = frameworks::artifacts(
        context.facts,
        &files,
        &search,
        &python,
        arch,
        Completeness::Partial,
        &mut survey,
    );
    let mut evidence = Evidence {
        subject: name.to_owned(),
        kind: SubjectKind::Wheel,
        cpu,
        artifacts,
        ..Evidence::default()
    };
    programs_and_rest(context.facts, &files, &search, survey, Completeness::Partial, &mut evidence);
    evidence.environment = environment;
    Ok(evidence)
}

fn tree(path: &Path) -> Result<Tree<FileFacts>, GatherError> {
    let io_error = |source: io::Error| GatherError::Io { path: path.to_owned(), source };
    let invalid_zip = |error: zip::result::ZipError| GatherError::Broken {
        path: path.to_owned(),
        message: format!("invalid zip file: {error}"),
    };
    let mut archive = zip::ZipArchive::new(File::open(path).map_err(io_error)?).map_err(invalid_zip)?;
    let mut tree = Tree::default();
    for index in 0..archive.len() {
        let mut member = archive.by_index(index).map_err(invalid_zip)?;
        let Some(inside) = member.enclosed_name().filter(|_| member.is_file()) else { continue };
        let inside = inside.to_string_lossy().into_owned();
        if member.size() > MAX_MEMBER {
            return Err(GatherError::Broken {
                path: path.to_owned(),
                message: format!("{inside} claims {} bytes", member.size()),
            });
        }
        let header = EntryHeader {
            path: format!("{}/{inside}", SITE.trim_start_matches('/')),
            kind: EntryKind::File,
            size: member.size(),
            mode: 0o644,
            link: String::new(),
        };
        let kept = read_member(&mut member, &header).map_err(io_error)?;
        tree.insert(
            &header.path,
            TreeNode { mode: header.mode, kind: NodeKind::File { size: header.size, kept } },
        );
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
    member.take(header.size).read_to_end(&mut bytes)?;
    let mut content = Content::from_bytes(&bytes);
    file_facts::read(header, &mut content)
}
