//! File systems whose files can be read: an image's, or that of this process.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use cudock_host::{Files, Root};
use cudock_image::Tree;

use super::file_facts::{self, ElfFacts, FileFacts};

/// A file system whose ELF files can be read.
pub(crate) trait Contents: Files {
    /// Facts about an ELF file, links followed.
    fn elf(&self, path: &str) -> Option<Arc<ElfFacts>>;
    /// A file's size, links followed.
    fn size(&self, path: &str) -> Option<u64>;
}

/// An image's file system, already read.
pub(crate) struct TreeFiles<'t>(pub(crate) &'t Tree<FileFacts>);

impl Files for TreeFiles<'_> {
    fn text(&self, path: &str) -> Option<String> {
        match self.0.resolve(path)?.1.kept()? {
            FileFacts::Text(text) => Some(text.to_string()),
            FileFacts::Elf(_) | FileFacts::OpensDriver => None,
        }
    }

    fn names(&self, path: &str) -> Vec<String> {
        self.0.names(path).map(str::to_owned).collect()
    }

    fn real(&self, path: &str) -> Option<String> {
        self.0.resolve(path).map(|(real, _)| format!("/{real}"))
    }

    fn is_dir(&self, path: &str) -> bool {
        self.0.resolve(path).is_some_and(|(_, node)| node.is_directory())
    }

    fn is_program(&self, path: &str) -> bool {
        let node = self.0.resolve(path).map(|(_, node)| node);
        node.is_some_and(|node| node.kind.is_file() && node.mode & 0o111 != 0)
    }
}

impl Contents for TreeFiles<'_> {
    fn elf(&self, path: &str) -> Option<Arc<ElfFacts>> {
        match self.0.resolve(path)?.1.kept()? {
            FileFacts::Elf(facts) => Some(facts.clone()),
            FileFacts::Text(_) | FileFacts::OpensDriver => None,
        }
    }

    fn size(&self, path: &str) -> Option<u64> {
        self.0.resolve(path)?.1.size()
    }
}

/// This machine's file system, read on demand.
pub(crate) struct Disk {
    root: Root,
    read: Mutex<HashMap<String, Option<Arc<ElfFacts>>>>,
}

impl Disk {
    pub(crate) fn new() -> Self {
        Self { root: Root::live(), read: Mutex::default() }
    }
}

impl Files for Disk {
    fn text(&self, path: &str) -> Option<String> {
        Files::text(&self.root, path)
    }

    fn names(&self, path: &str) -> Vec<String> {
        Files::names(&self.root, path)
    }

    fn real(&self, path: &str) -> Option<String> {
        Files::real(&self.root, path)
    }

    fn is_dir(&self, path: &str) -> bool {
        Files::is_dir(&self.root, path)
    }

    fn is_program(&self, path: &str) -> bool {
        Files::is_program(&self.root, path)
    }
}

impl Contents for Disk {
    fn elf(&self, path: &str) -> Option<Arc<ElfFacts>> {
        let real = self.real(path)?;
        let mut known = self.read.lock().ok()?;
        if let Some(facts) = known.get(&real) {
            return facts.clone();
        }
        let facts = cudock_mmap::map(Path::new(&real))
            .ok()
            .and_then(|bytes| bytes.starts_with(b"\x7fELF").then(|| Arc::new(file_facts::read_elf(&bytes))));
        known.insert(real, facts.clone());
        facts
    }

    fn size(&self, path: &str) -> Option<u64> {
        std::fs::metadata(self.real(path)?).ok().map(|meta| meta.len())
    }
}
