//! Flags, `[lint]` in `cudock.toml`, and files as they are read.

use std::fs;
use std::path::Path;

use cudock_base::{Date, Report as _};
use cudock_facts::Facts;
use cudock_facts::finding::Severity;
use cudock_lint::{FixMode, LintError, LintFlags, LintTarget, LintedFile, Linter};
use cudock_project::FailLevel;

const UNTAGGED: &str = "FROM a/b\n";

fn linter(facts: &Facts, flags: LintFlags) -> Linter<'_> {
    Linter::new(facts, Date::new(2026, 11, 16).unwrap(), flags, None)
}

/// Lints a file in `a/b` of a directory with these files.
fn lint(files: &[(&str, &str)], flags: LintFlags) -> Result<LintedFile, LintError> {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir_all(directory.path().join("a/b")).unwrap();
    for (name, text) in files {
        fs::write(directory.path().join(name), text).unwrap();
    }
    let path = directory.path().join("a/b/Dockerfile");
    fs::write(&path, UNTAGGED).unwrap();
    linter(&Facts::embedded(), flags).lint_file(&path, std::io::empty(), FixMode::Off)
}

fn severities(toml: &str) -> Vec<Severity> {
    let file = lint(&[("a/cudock.toml", toml)], LintFlags::default()).unwrap();
    let own = file.findings.iter().filter(|finding| finding.code == "CD0702");
    own.map(|finding| finding.severity).collect()
}

#[test]
fn rules_are_selected_by_code_or_name() {
    let own = [Severity::Warning];
    assert_eq!(severities(""), own);
    for off in ["disable = 'CD0702'", "disable = ['missing-tag']", "disable = 'all'"] {
        assert_eq!(severities(&format!("[lint]\n{off}\n")), [], "{off}");
    }
    for on in ["disable = 'CD0613'", "disable = 'all'\nenable = ['missing-tag']", "enable = 'CD0702'"] {
        assert_eq!(severities(&format!("[lint]\n{on}\n")), own, "{on}");
    }
    for (key, severity) in [("CD0702", Severity::Error), ("missing-tag", Severity::Note)] {
        let toml = format!("[lint.severity]\n{key} = '{}'\n", severity.name());
        assert_eq!(severities(&toml), [severity]);
    }
}

#[test]
fn wrong_settings_name_the_place_and_the_nearest_name() {
    for (toml, expected) in [
        (
            "[lint]\ndisable = ['CD0702', 'mising-tag']\n",
            ":2:22: unknown rule `mising-tag`; did you mean `missing-tag`?",
        ),
        (
            "[lint.severity]\nmissing-tags = 'note'\n",
            ":2:1: unknown rule `missing-tags`; did you mean `missing-tag`?",
        ),
        ("[lint]\nenable = 'all'\n", ":2:10: unknown rule `all`"),
        ("[lint]\nseverity = {CD0702 = 'fatal'}\n", ":2:22: unknown variant `fatal`"),
        ("[lint]\ndisabled = []\n", ":2:1: unknown field `disabled`; did you mean `disable`?"),
        ("[lint]\nfor = 'T5'\n", ":2:7: "),
        ("[lint]\nfail_level = 'all'\n", ":2:14: unknown variant `all`"),
        ("[lint]\ndriver = '535'\n", "a driver without a GPU"),
    ] {
        let error = lint(&[("cudock.toml", toml)], LintFlags::default()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}\n{expected}");
    }
}

#[test]
fn the_nearest_file_counts_and_flags_come_first() {
    let facts = Facts::embedded();
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir_all(directory.path().join("inner/deep")).unwrap();
    fs::write(
        directory.path().join("cudock.toml"),
        "[lint]\nfor = 'H100'\ndriver = '535'\nfail_level = 'note'\n",
    )
    .unwrap();
    fs::write(directory.path().join("inner/cudock.toml"), "[lint]\nfor = 'cpu'\n").unwrap();
    let settings = |flags: LintFlags, below: &str| {
        let settings =
            linter(&facts, flags).settings(&directory.path().join(below).join("Dockerfile")).unwrap();
        let target = match settings.target.as_ref().unwrap() {
            LintTarget::Cpu => "cpu".to_owned(),
            LintTarget::Gpu(target) => {
                format!("{} {}", target.gpu.as_deref().unwrap(), target.driver.unwrap().branch())
            }
        };
        (target, settings.fail_level)
    };
    let flags = |target: Option<&str>, driver: Option<&str>| LintFlags {
        target: target.map(str::to_owned),
        driver: driver.map(|driver| driver.parse().unwrap()),
        fail_level: None,
    };
    assert_eq!(settings(flags(None, None), ""), ("H100 535".to_owned(), FailLevel::Note));
    assert_eq!(settings(flags(None, None), "inner/deep"), ("cpu".to_owned(), FailLevel::Error));
    assert_eq!(settings(flags(None, Some("550")), "").0, "H100 550");
    assert_eq!(settings(flags(Some("T4"), Some("470")), "inner").0, "T4 470");
    assert_eq!(settings(flags(Some("cpu"), None), "").0, "cpu");
    let all = LintFlags { fail_level: Some(FailLevel::None), ..LintFlags::default() };
    assert_eq!(settings(all, "").1, FailLevel::None);
}

#[test]
fn a_finding_fails_from_its_level_on() {
    for (level, expected) in [
        (FailLevel::Error, false),
        (FailLevel::Warning, true),
        (FailLevel::Note, true),
        (FailLevel::None, false),
    ] {
        let flags = LintFlags { fail_level: Some(level), ..LintFlags::default() };
        assert_eq!(lint(&[], flags).unwrap().fails, expected, "{level:?}");
    }
}

#[test]
fn a_text_that_is_not_a_dockerfile_is_a_finding_at_its_line() {
    let facts = Facts::embedded();
    let mut linter = linter(&facts, LintFlags::default());
    let mut lint = |text: &str| {
        let file = linter.lint_file(Path::new("-"), text.as_bytes(), FixMode::Apply).unwrap();
        assert_eq!((file.text.as_str(), file.fixed, file.name.as_str()), (text, 0, "<stdin>"));
        assert!(file.fails);
        let [finding] = file.findings.as_slice() else { panic!("{:?}", file.findings) };
        let region = finding.location.as_ref().unwrap().region;
        (finding.code, region.span.line, text[region.span.bytes()].to_owned())
    };
    assert_eq!(lint("FROM a:1\nFETCH b\nRUN c\n"), ("CD0700", 2, "FETCH b".to_owned()));
    assert_eq!(lint("RUN b\r\n"), ("CD0700", 1, "RUN b".to_owned()));
    assert_eq!(lint(""), ("CD0700", 1, String::new()));
}

#[test]
fn files_are_read_within_bounds() {
    let facts = Facts::embedded();
    let read = |bytes: &[u8]| {
        let file = linter(&facts, LintFlags::default()).lint_file(Path::new("-"), bytes, FixMode::Off);
        let error = file.err()?;
        Some((error.to_string(), error.hints()))
    };
    assert_eq!(read(UNTAGGED.as_bytes()), None);
    let (error, hints) = read(b"FROM a:1\nRUN \xff\n").unwrap();
    assert_eq!(error, "cannot read <stdin>: not UTF-8 at byte 13 (line 2)");
    assert_eq!(hints.len(), 1);
    assert_eq!(read(&vec![b'#'; (4 << 20) + 1]).unwrap().0, "cannot read <stdin>: larger than 4 MiB");
    let directory = tempfile::tempdir().unwrap();
    for path in [directory.path(), Path::new("/dev/zero"), &directory.path().join("absent")] {
        let mut linter = linter(&facts, LintFlags::default());
        let error = linter.lint_file(path, std::io::empty(), FixMode::Off).unwrap_err().to_string();
        assert!(error.starts_with(&format!("cannot read {}: ", path.display())), "{error}");
    }
}
