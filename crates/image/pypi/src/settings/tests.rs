use std::fs;
use std::path::Path;

use cudock_base::Report as _;

use super::*;

/// A machine with these files, home at `/her`, and these variables. Paths in variables that begin with `@` are below
/// the machine's root.
fn machine(directory: &Path, files: &[(&str, &str)], variables: &[(&str, &str)]) -> Environment {
    for (path, text) in files {
        let path = directory.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let here = |value: &str| match value.strip_prefix('@') {
        Some(below) => directory.join(below).display().to_string(),
        None => value.to_owned(),
    };
    let home = ("HOME".to_owned(), here("@her"));
    let others = variables.iter().map(|(name, value)| ((*name).to_owned(), here(value)));
    Environment::of(directory, std::iter::once(home).chain(others))
}

fn settings(files: &[(&str, &str)], variables: &[(&str, &str)]) -> Settings {
    let directory = tempfile::tempdir().unwrap();
    Settings::from_environment(&machine(directory.path(), files, variables)).unwrap()
}

fn first_index(files: &[(&str, &str)], variables: &[(&str, &str)]) -> String {
    match settings(files, variables).indexes.first().unwrap() {
        PackageSource::Remote(address) => address.host().to_owned(),
        PackageSource::Local(path) => path.display().to_string(),
    }
}

const SYSTEM: (&str, &str) = ("etc/pip.conf", "[global]\nindex-url = https://system/");
const XDG: (&str, &str) = ("etc/xdg/pip/pip.conf", "[global]\nindex-url = https://xdg/");
const LEGACY: (&str, &str) = ("her/.pip/pip.conf", "[global]\nindex-url = https://legacy/");
const USER: (&str, &str) = ("her/.config/pip/pip.conf", "[global]\nindex-url = https://user/");
const VENV: (&str, &str) = ("venv/pip.conf", "[global]\nindex-url = https://venv/");
const NAMED: (&str, &str) = ("named.conf", "[global]\nindex-url = https://named/");
const IN_VENV: (&str, &str) = ("VIRTUAL_ENV", "@venv");
const BY_NAME: (&str, &str) = ("PIP_CONFIG_FILE", "@named.conf");

#[test]
fn the_file_with_the_highest_precedence_wins() {
    let all = [SYSTEM, XDG, LEGACY, USER, VENV, NAMED];
    for (files, variables, host) in [
        (&[][..], &[][..], "pypi.org"),
        (&[XDG], &[], "xdg"),
        (&[XDG, SYSTEM], &[], "system"),
        (&[XDG, SYSTEM, LEGACY], &[], "legacy"),
        (&[XDG, SYSTEM, LEGACY, USER], &[], "user"),
        (&all, &[], "user"),
        (&all, &[IN_VENV], "venv"),
        (&all, &[IN_VENV, BY_NAME], "named"),
        (&all, &[IN_VENV, BY_NAME, ("PIP_INDEX_URL", "https://variable/")], "variable"),
        (&all, &[("PIP_INDEX_URL", "")], "user"),
        // A named file replaces the user's own, and no other.
        (&[SYSTEM, USER, ("named.conf", "")], &[BY_NAME], "system"),
        // One that does not exist replaces nothing.
        (&[SYSTEM, USER], &[BY_NAME], "user"),
        (&all, &[IN_VENV, ("PIP_CONFIG_FILE", "/dev/null")], "pypi.org"),
        (&[("other/pip/pip.conf", USER.1)], &[("XDG_CONFIG_HOME", "@other")], "user"),
        (&[("other/pip/pip.conf", XDG.1), XDG], &[("XDG_CONFIG_DIRS", "@other")], "xdg"),
    ] {
        assert_eq!(first_index(files, variables), host, "{files:?} {variables:?}");
    }
}

#[test]
fn a_command_section_takes_precedence_over_global_in_any_file() {
    let weak = ("etc/pip.conf", "[install]\nindex-url = https://install/");
    assert_eq!(first_index(&[weak, USER], &[]), "install");
    let download =
        ("etc/pip.conf", "[download]\nindex-url = https://download/\n[list]\nindex-url = https://no/");
    assert_eq!(first_index(&[download, USER], &[]), "download");
    let emptied = ("her/.config/pip/pip.conf", "[install]\nindex-url =\n[global]\nindex-url = https://user/");
    assert_eq!(first_index(&[weak, emptied], &[]), "user");
}

#[test]
fn lists_are_split_at_blanks_and_lines_and_a_variable_replaces_a_file_s() {
    let file = (
        "etc/pip.conf",
        "[global]\nextra-index-url =\n  https://one/\n  https://two/\nfind-links = ~/wheels https://page/w.html\n\
         trusted-host = a.com b.com:81",
    );
    let read = settings(&[file], &[]);
    assert_eq!(read.indexes.len(), 3);
    assert_eq!(read.find_links.len(), 2);
    assert!(matches!(&read.find_links[0], PackageSource::Local(path) if path.ends_with("her/wheels")));
    assert_eq!(read.trusted_hosts, ["a.com", "b.com:81"]);
    let with = settings(&[file], &[("PIP_EXTRA_INDEX_URL", "https://three/"), ("PIP_FIND_LINKS", "/w")]);
    assert_eq!(with.indexes.len(), 2);
    assert_eq!(with.find_links, [PackageSource::Local(PathBuf::from("/w"))]);
}

#[test]
fn no_index_leaves_the_links() {
    let set = [("PIP_NO_INDEX", "1"), ("PIP_FIND_LINKS", "/w"), ("PIP_EXTRA_INDEX_URL", "https://x/")];
    let read = settings(&[], &set);
    assert_eq!((read.indexes.len(), read.find_links.len()), (0, 1));
    assert_eq!(settings(&[], &[("PIP_NO_INDEX", "off")]).indexes.len(), 1);
}

#[test]
fn certificates_are_those_pip_would_trust() {
    let system = ("etc/ssl/certs/ca-certificates.crt", "");
    let of = |variables: &[(&str, &str)]| settings(&[system], variables).certificates;
    assert!(of(&[]).unwrap().ends_with("etc/ssl/certs/ca-certificates.crt"));
    assert_eq!(of(&[("SSL_CERT_FILE", "/s")]), Some(PathBuf::from("/s")));
    assert_eq!(of(&[("SSL_CERT_FILE", "/s"), ("REQUESTS_CA_BUNDLE", "/r")]), Some(PathBuf::from("/r")));
    assert_eq!(of(&[("PIP_CERT", "/p"), ("REQUESTS_CA_BUNDLE", "/r")]), Some(PathBuf::from("/p")));
    assert!(of(&[("PIP_CERT", "~/ca.pem")]).unwrap().ends_with("her/ca.pem"));
    assert_eq!(settings(&[], &[]).certificates, None);
}

#[test]
fn an_invalid_setting_is_reported_without_its_value() {
    let directory = tempfile::tempdir().unwrap();
    for (files, variables, error) in [
        (&[][..], &[("PIP_NO_INDEX", "perhaps")][..], "PIP_NO_INDEX: is neither yes nor no"),
        (&[], &[("PIP_INDEX_URL", "ftp://me:secret@x/")], "PIP_INDEX_URL: is neither http:// nor https://"),
        (&[], &[("PIP_TIMEOUT", "-1")], "PIP_TIMEOUT: is not a number of seconds"),
        (&[("etc/pip.conf", "[global]\nsecret")], &[], "/etc/pip.conf: line 2: has no ="),
    ] {
        let error_seen =
            Settings::from_environment(&machine(directory.path(), files, variables)).unwrap_err();
        let shown = error_seen.to_string().replace(&directory.path().display().to_string(), "");
        assert_eq!(shown, error);
        assert!(!shown.contains("secret") && !error_seen.is_outside());
    }
}

#[test]
fn nothing_secret_prints() {
    let read = settings(
        &[("her/.netrc", "machine a login b password swordfish")],
        &[("PIP_INDEX_URL", "https://me:swordfish@x/"), ("PIP_PROXY", "http://me:swordfish@proxy:3128")],
    );
    assert!(!format!("{read:?}").contains("swordfish"));
    assert!(read.proxy.is_some() && read.netrc.authorization("a").is_some());
}

#[test]
fn uv_prefers_its_own_variables_and_the_default_index_comes_last() {
    let indexes = |variables: &[(&str, &str)]| {
        let environment = Environment::of("/nowhere", variables.iter().copied());
        let settings = Settings::for_uv(&environment).unwrap();
        let text = settings.indexes.iter().map(|source| match source {
            PackageSource::Remote(url) => url.to_string(),
            PackageSource::Local(path) => path.display().to_string(),
        });
        text.collect::<Vec<_>>()
    };
    let pip = [("PIP_INDEX_URL", "https://a.example/simple"), ("PIP_EXTRA_INDEX_URL", "https://b.example/w")];
    assert_eq!(indexes(&[]), [DEFAULT_INDEX]);
    assert_eq!(indexes(&pip), ["https://b.example/w", "https://a.example/simple"]);
    let uv = [
        pip[0],
        pip[1],
        ("UV_INDEX", "t=https://c.example/w?a=b /d"),
        ("UV_INDEX_URL", "https://e.example/"),
    ];
    assert_eq!(indexes(&uv), ["https://c.example/w", "/d", "https://e.example/"]);
    let wrong = Environment::of("/nowhere", [("UV_INDEX", "ftp://a.example")]);
    assert!(Settings::for_uv(&wrong).unwrap_err().to_string().contains("UV_INDEX"));
}
