use std::path::Path;

use crate::root::Root;

/// A file system that can be asked: a machine's, a directory tree's or an image's. Paths begin with a slash.
pub trait Files {
    /// A file's text.
    fn text(&self, path: &str) -> Option<String>;
    /// The names in a directory, sorted.
    fn names(&self, path: &str) -> Vec<String>;
    /// Where a path leads when its links are followed; none if nowhere.
    fn real(&self, path: &str) -> Option<String>;
    /// Whether it is a directory.
    fn is_dir(&self, path: &str) -> bool;
    /// Whether it is a file that may be run.
    fn is_program(&self, path: &str) -> bool;

    /// Whether there is something.
    fn exists(&self, path: &str) -> bool {
        self.real(path).is_some()
    }

    /// A file's first line.
    fn line(&self, path: &str) -> Option<String> {
        Some(self.text(path)?.lines().next()?.trim().to_owned())
    }
}

impl Files for Root {
    fn text(&self, path: &str) -> Option<String> {
        Root::text(self, path)
    }

    fn names(&self, path: &str) -> Vec<String> {
        Root::names(self, path)
    }

    fn real(&self, path: &str) -> Option<String> {
        Root::real(self, path).as_deref().map(Path::to_string_lossy).map(std::borrow::Cow::into_owned)
    }

    fn is_dir(&self, path: &str) -> bool {
        Root::is_dir(self, path)
    }

    fn is_program(&self, path: &str) -> bool {
        Root::is_program(self, path)
    }
}
