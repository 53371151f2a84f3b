//! `cudock completion`, driven as a shell drives it.

use std::process::Command;

use crate::support::{code, run};

/// The completions that bash offers after `line`.
fn offered(line: &str) -> Vec<String> {
    let program = env!("CARGO_BIN_EXE_cudock");
    let script = format!(
        "source <({program} completion bash)
         read -ra COMP_WORDS <<<'{line}'; [[ '{line}' == *' ' ]] && COMP_WORDS+=('')
         COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); COMP_LINE='{line}'; COMP_POINT=${{#COMP_LINE}}
         registered=$(complete -p cudock | sed 's/.*-F \\([^ ]*\\).*/\\1/')
         \"$registered\" cudock \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"
         printf '%s\\n' \"${{COMPREPLY[@]}}\""
    );
    let output = Command::new("bash").args(["--norc", "-c", &script]).output().unwrap();
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_verbs_flags_and_values() {
    for (line, wanted) in [
        ("cudock che", vec!["check"]),
        ("cudock check --dri", vec!["--driver"]),
        ("cudock check x --start ", vec!["hook", "cdi"]),
        ("cudock plan --form", vec!["--format"]),
        ("cudock volume c", vec!["create"]),
        ("cudock --color a", vec!["auto", "always"]),
    ] {
        assert_eq!(offered(line), wanted, "{line}");
    }
}

#[test]
fn processes_that_cudock_starts_itself_are_not_offered() {
    let verbs = offered("cudock ");
    assert!(verbs.iter().any(|verb| verb == "serve"), "{verbs:?}");
    for hidden in ["monitor", "supervise", "join", "forward", "engine", "nvml", "cdi-hook"] {
        assert!(!verbs.iter().any(|verb| verb == hidden), "{hidden} in {verbs:?}");
    }
}

#[test]
fn every_shell_has_a_script() {
    for (shell, part) in [
        ("zsh", "#compdef cudock"),
        ("fish", "complete -c cudock"),
        ("powershell", "Register-ArgumentCompleter"),
    ] {
        let output = run(&["completion", shell]);
        assert!(String::from_utf8(output.stdout).unwrap().contains(part), "{shell}");
    }
    assert_eq!(code(&run(&["completion", "tcsh"])), 2);
}
