use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::*;

fn partial(begun: Begun) -> Box<Partial> {
    match begun {
        Begun::Partial(partial) => partial,
        Begun::Complete(path) => panic!("{} is there", path.display()),
    }
}

#[test]
fn the_user_s_cache_is_where_the_first_variable_says() {
    let root = tempfile::tempdir().unwrap();
    let at = |below: &str| root.path().join(below);
    let folder = |names: &[(&str, &str)]| {
        let environment = Environment::of(root.path(), names.iter().map(|(name, below)| (*name, at(below))));
        BlobStore::user_cache_in(&environment).map(|store| store.folder().to_owned())
    };
    let all = [("CUDOCK_CACHE", "own"), ("XDG_CACHE_HOME", "xdg"), ("HOME", "home")];
    assert_eq!(folder(&all).unwrap(), at("own"));
    assert_eq!(folder(&all[1..]).unwrap(), at("xdg/cudock"));
    assert_eq!(folder(&all[2..]).unwrap(), at("home/.cache/cudock"));
    assert!(matches!(folder(&[]), Err(RegistryError::NoCache)));
    let relative = Environment::of("/", [("XDG_CACHE_HOME", "x".into()), ("HOME", at("home"))]);
    assert_eq!(BlobStore::user_cache_in(&relative).unwrap().folder(), at("home/.cache/cudock"));
}

#[test]
fn a_blob_is_not_seen_before_it_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let (store, digest) = (BlobStore::open(folder.path()).unwrap(), Digest::sha256_of(b"whole"));
    let mut writer = partial(store.begin(&digest, 5, &|| {}).unwrap());
    assert!(writer.append(b"who").unwrap());
    assert!(!writer.append(b"lex").unwrap());
    assert_eq!(store.path_of(&digest), None);
    drop(writer);
    let mut writer = partial(store.begin(&digest, 5, &|| {}).unwrap());
    assert_eq!(writer.written(), 3);
    assert!(writer.append(b"le").unwrap());
    assert_eq!(store.path_of(&digest), None);
    assert!(matches!(writer.finish().unwrap(), Finished::Complete(_)));
    assert_eq!(fs::read(store.path_of(&digest).unwrap()).unwrap(), b"whole");
}

#[test]
fn who_waits_for_a_part_that_is_then_removed_starts_a_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let (store, digest) = (BlobStore::open(folder.path()).unwrap(), Digest::sha256_of(b"blob"));
    let first = partial(store.begin(&digest, 4, &|| {}).unwrap());
    let (waits, is_waiting) = mpsc::channel();
    let second = thread::spawn({
        let (store, digest) = (store.clone(), digest.clone());
        move || {
            let mut writer = partial(store.begin(&digest, 4, &|| waits.send(()).unwrap()).unwrap());
            assert!(writer.append(b"blob").unwrap());
            assert!(matches!(writer.finish().unwrap(), Finished::Complete(_)));
        }
    });
    is_waiting.recv_timeout(Duration::from_secs(10)).unwrap();
    assert_eq!(store.path_of(&digest), None);
    drop(first);
    second.join().unwrap();
    assert_eq!(fs::read(store.path_of(&digest).unwrap()).unwrap(), b"blob");
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let error = BlobStore::open(&file).unwrap_err();
    assert!(error.to_string().contains(&file.display().to_string()), "{error}");
}

#[test]
fn a_tag_is_kept_under_its_whole_name_and_one_that_cannot_be_read_is_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let store = BlobStore::open(folder.path()).unwrap();
    let name = |text: &str| text.parse::<Reference>().unwrap();
    let digest = Digest::sha256_of(b"manifest");
    store.keep_tag(&name("example.com/team/app:1"), &digest).unwrap();
    store.keep_tag(&name("example.com/team/app"), &digest).unwrap();
    assert_eq!(store.tag(&name("example.com/team/app:1")).unwrap().digest, digest);
    assert_eq!(store.tag(&name("example.com/team/app:latest")).unwrap().digest, digest);
    assert_eq!(store.tag(&name("example.com/team/app:2")), None);
    assert_eq!(store.tag(&name("other.example.com/team/app:1")), None);
    let names: Vec<String> = store.tags().iter().map(|tag| tag.reference.to_string()).collect();
    assert_eq!(names, ["example.com/team/app:1", "example.com/team/app:latest"]);
    fs::write(store.tag_path(&name("example.com/team/app:1")), "example.com/team/app:1\nsha256:x").unwrap();
    assert_eq!(store.tag(&name("example.com/team/app:1")), None);
    assert_eq!(store.tags().len(), 1);
}
