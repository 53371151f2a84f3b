//! Checks the in-memory merge of layers against a model that unpacks the same layers to disk.
//!
//! The model unpacks with plain `std::fs` into a directory, and the kernel resolves symlinks. Three rules come from
//! container engines and not from the kernel: removals of a layer come before its additions, existing files are
//! replaced and not written through, and dangling symlinks are filled in at their target.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use proptest::prelude::*;

use crate::support::{Tar, gzip, lines, try_merge};

#[derive(Debug, Clone)]
enum Op {
    File(String),
    Directory(String),
    Symlink(String, String),
    HardLink(String, String),
    Whiteout(String),
    Opaque(String),
}

/// Few names, one of them frequent, so that entries collide.
pub(crate) fn path() -> impl Strategy<Value = String> {
    let depth = prop::sample::select(vec![1, 1, 2, 2, 2, 3]);
    let names = prop::sample::select(vec!["a", "a", "a", "b", "c"]);
    depth
        .prop_flat_map(move |depth| prop::collection::vec(names.clone(), depth))
        .prop_map(|parts| parts.join("/"))
}

/// Absolute, or next to the symlink. `..` is covered by other tests, because it would escape on disk.
fn target() -> impl Strategy<Value = String> {
    (path(), any::<bool>()).prop_map(|(path, absolute)| if absolute { format!("/{path}") } else { path })
}

fn operation() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => path().prop_map(Op::File),
        1 => path().prop_map(Op::Directory),
        3 => (path(), target()).prop_map(|(path, target)| Op::Symlink(path, target)),
        2 => (path(), path()).prop_map(|(path, target)| Op::HardLink(path, target)),
        1 => path().prop_map(Op::Whiteout),
        1 => path().prop_map(Op::Opaque),
    ]
}

fn layers() -> impl Strategy<Value = Vec<Vec<Op>>> {
    prop::collection::vec(prop::collection::vec(operation(), 1..=8), 1..=3)
}

/// Unique contents.
fn content(layer: usize, number: usize) -> String {
    format!("{layer}.{number}")
}

fn tar(layer: usize, operations: &[Op]) -> Vec<u8> {
    let write = |tar: Tar, (number, operation): (usize, &Op)| match operation {
        Op::File(path) => tar.file(path, content(layer, number)),
        Op::Directory(path) => tar.directory(path),
        Op::Symlink(path, target) => tar.symlink(path, target),
        Op::HardLink(path, target) => tar.hard_link(path, target),
        Op::Whiteout(path) => tar.whiteout(path),
        Op::Opaque(path) => tar.opaque(path),
    };
    operations.iter().enumerate().fold(Tar::default(), write).end()
}

/// A file system in a directory. Absolute symlinks are stored with the directory prepended.
struct Disk {
    root: PathBuf,
}

impl Disk {
    fn apply(&self, layer: usize, operations: &[Op]) -> io::Result<()> {
        for operation in operations {
            match operation {
                Op::Whiteout(path) => remove(&self.root.join(path)),
                Op::Opaque(path) => {
                    // A symlink in the directory may be part of the path.
                    let real = fs::canonicalize(self.root.join(path));
                    for entry in real.and_then(fs::read_dir).into_iter().flatten() {
                        remove(&entry.unwrap().path());
                    }
                }
                _ => {}
            }
        }
        for (number, operation) in operations.iter().enumerate() {
            match operation {
                Op::File(path) => fs::write(self.cleared(path)?, content(layer, number))?,
                Op::Directory(path) => {
                    let (parent, name) = self.parent(path)?;
                    if !fs::symlink_metadata(parent.join(&name)).is_ok_and(|meta| meta.is_dir()) {
                        remove(&parent.join(&name));
                        fs::create_dir(parent.join(&name))?;
                    }
                }
                Op::Symlink(path, target) => self.link(path, target)?,
                Op::HardLink(path, target) => {
                    let target = self.root.join(target);
                    let kind = fs::symlink_metadata(&target)?.file_type();
                    if kind.is_symlink() {
                        let leads = self.target(&target);
                        self.link(path, &leads)?;
                    } else {
                        // A directory cannot be read, and no other kind of file is created here.
                        let bytes = fs::read(&target)?;
                        fs::write(self.cleared(path)?, bytes)?;
                    }
                }
                Op::Whiteout(_) | Op::Opaque(_) => {}
            }
        }
        Ok(())
    }

    fn link(&self, path: &str, target: &str) -> io::Result<()> {
        let target = match target.strip_prefix('/') {
            Some(inside) => self.root.join(inside),
            None => PathBuf::from(target),
        };
        symlink(target, self.cleared(path)?)
    }

    /// The target of a symlink, as in the image.
    fn target(&self, link: &Path) -> String {
        let target = fs::read_link(link).unwrap();
        let inside = target.strip_prefix(&self.root).map(|inside| Path::new("/").join(inside));
        inside.unwrap_or(target).to_str().unwrap().to_owned()
    }

    fn parent(&self, path: &str) -> io::Result<(PathBuf, String)> {
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        let parent = if parent.is_empty() { self.root.clone() } else { self.root.join(parent) };
        make_directory(&parent, 0)?;
        // The replaced file may be a symlink on this path.
        Ok((fs::canonicalize(parent)?, name.to_owned()))
    }

    /// The location of a path on disk, after removing what is there and creating its parents.
    fn cleared(&self, path: &str) -> io::Result<PathBuf> {
        let (parent, name) = self.parent(path)?;
        remove(&parent.join(&name));
        Ok(parent.join(name))
    }

    fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        self.list(&self.root, "", &mut lines);
        lines.sort();
        lines
    }

    fn list(&self, directory: &Path, prefix: &str, lines: &mut Vec<String>) {
        for entry in fs::read_dir(directory).unwrap() {
            let entry = entry.unwrap();
            let path = format!("{prefix}{}", entry.file_name().to_str().unwrap());
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                self.list(&entry.path(), &format!("{path}/"), lines);
                lines.push(format!("{path}/"));
            } else if kind.is_symlink() {
                lines.push(format!("{path}>{}", self.target(&entry.path())));
            } else {
                lines.push(format!("{path}={}", fs::read_to_string(entry.path()).unwrap()));
            }
        }
    }
}

fn remove(path: &Path) {
    match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_dir() => fs::remove_dir_all(path).unwrap(),
        Ok(_) => fs::remove_file(path).unwrap(),
        Err(_) => {}
    }
}

/// Creates the directory a path resolves to; replaces files and fills in dangling symlinks.
fn make_directory(path: &Path, links: usize) -> io::Result<()> {
    let symlink_loop = || io::Error::other("symlink loop");
    match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_dir() => Ok(()),
        Ok(meta) if meta.is_symlink() => {
            if links > 40 {
                return Err(symlink_loop());
            }
            let target = path.parent().unwrap().join(fs::read_link(path)?);
            make_directory(&target, links + 1)
        }
        Ok(_) => {
            fs::remove_file(path)?;
            fs::create_dir(path)
        }
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            if links > 40 {
                return Err(symlink_loop());
            }
            make_directory(path.parent().unwrap(), links + 1)?;
            // The target of a symlink may exist by now.
            if path.is_dir() { Ok(()) } else { fs::create_dir(path) }
        }
        Err(error) => Err(error),
    }
}

/// The listing by both implementations; none if the layers are rejected.
fn both(layers: &[Vec<Op>]) -> (Option<Vec<String>>, Option<Vec<String>>) {
    let bytes: Vec<Vec<u8>> = layers.iter().enumerate().map(|(number, layer)| tar(number, layer)).collect();
    let merged = try_merge(&bytes).ok().map(|tree| {
        let mut lines = lines(&tree);
        lines.sort();
        lines
    });
    let directory = tempfile::tempdir().unwrap();
    let disk = Disk { root: fs::canonicalize(directory.path()).unwrap() };
    let unpacked = layers.iter().enumerate().try_for_each(|(number, layer)| disk.apply(number, layer));
    (merged, unpacked.ok().map(|()| disk.lines()))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn merged_layers_equal_unpacked_layers(layers in layers()) {
        let (merged, unpacked) = both(&layers);
        prop_assert_eq!(merged, unpacked);
    }

}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn compression_changes_nothing(layers in layers()) {
        let plain: Vec<Vec<u8>> = layers.iter().enumerate().map(|(number, layer)| tar(number, layer)).collect();
        let packed: Vec<Vec<u8>> = plain.iter().map(|layer| gzip(layer)).collect();
        let merged = |layers: &[Vec<u8>]| try_merge(layers).map(|tree| lines(&tree)).ok();
        prop_assert_eq!(merged(&plain), merged(&packed));
    }

    #[test]
    fn paths_resolve_as_in_the_kernel(layers in layers(), path in path()) {
        let bytes: Vec<Vec<u8>> = layers.iter().enumerate().map(|(number, layer)| tar(number, layer)).collect();
        let directory = tempfile::tempdir().unwrap();
        let disk = Disk { root: fs::canonicalize(directory.path()).unwrap() };
        let unpacked = layers.iter().enumerate().try_for_each(|(number, layer)| disk.apply(number, layer));
        if let (Ok(tree), Ok(())) = (try_merge(&bytes), unpacked) {
            let real = fs::canonicalize(disk.root.join(&path)).ok();
            let real = real.map(|real| real.strip_prefix(&disk.root).unwrap().to_str().unwrap().to_owned());
            prop_assert_eq!(tree.resolve(&path).map(|(path, _)| path), real);
            let mut names: Vec<String> = fs::read_dir(disk.root.join(&path))
                .into_iter()
                .flatten()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            prop_assert_eq!(tree.names(&path).collect::<Vec<_>>(), names);
        }
    }
}

#[test]
fn the_model_unpacks_as_engines_do() {
    let op = |word: &str, path: &str, target: &str| match word {
        "file" => Op::File(path.to_owned()),
        "link" => Op::Symlink(path.to_owned(), target.to_owned()),
        _ => Op::Whiteout(path.to_owned()),
    };
    let layers = [
        vec![op("file", "a/b", ""), op("link", "c", "/a"), op("link", "b", "nowhere")],
        vec![op("file", "c/c", ""), op("file", "b/a", ""), op("whiteout", "a/b", "")],
    ];
    let expected = ["a/", "a/c=1.0", "b>nowhere", "c>/a", "nowhere/", "nowhere/a=1.1"].map(str::to_owned);
    assert_eq!(both(&layers), (Some(expected.to_vec()), Some(expected.to_vec())));
    let symlink_loop = [vec![op("link", "a", "b"), op("link", "b", "a"), op("file", "a/c", "")]];
    assert_eq!(both(&symlink_loop), (None, None));
}

#[test]
fn a_file_that_replaces_a_directory_removes_the_symlinks_in_it() {
    let layers = [
        vec![Op::Symlink("a/a".to_owned(), "/a".to_owned())],
        vec![Op::File("a/a/b".to_owned()), Op::File("a".to_owned()), Op::File("a/a/c".to_owned())],
    ];
    let expected = ["a/", "a/a/", "a/a/c=1.2"].map(str::to_owned);
    assert_eq!(both(&layers), (Some(expected.to_vec()), Some(expected.to_vec())));
}
